#!/usr/bin/env python3
"""Check the model of leases (leases.pml) with spin: what holds, and that each planted error is found.

usage: check.py SPIN CC MODEL [--all]

Each check is one run of spin, the C compiler and the program that spin makes. --all: also the
largest check, which needs 4 GB of memory and minutes (target `nightly`).
"""
import os
import re
import subprocess
import sys
import tempfile

# What holds: options of the model, what it covers, options of the compiler.
# The compiler takes longer to optimise than a small search takes, and COLLAPSE doubles the time of a state. The largest
# has it as when its memory was measured (README.md).
HOLDS = [
    (["FAULTS=1"], "any one fault, with measurements", ["-DMEMLIM=1000"]),
    (["FAULTS=2", "NO_MEASURES"], "any two faults, ends alone", ["-O1", "-DMEMLIM=1000"]),
]
HOLDS_LARGE = [
    (["FAULTS=2"], "any two faults, with measurements", ["-O1", "-DCOLLAPSE", "-DMEMLIM=6000"]),
]
# What must fail: a planted error, and a part of the assertion that finds it.
FAILS = [
    ("NO_FENCE", "values=="),
    ("EARLY", "told_end"),
    ("NO_WAIT", "told_end"),
    ("CARRY", "values=="),
    ("FORGET", "trial[0].state==2"),
    ("SEE_SECOND", "attempt<2"),
    ("SEE_LATE", ".state==1"),
]


def run(args, cwd):
    done = subprocess.run(args, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(args)}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def explore(tools, defines, compiler_flags, folder):
    """The report of the program that looks at every state."""
    spin, cc, model = tools
    run([spin, "-a", *(f"-D{d}" for d in defines), model], folder)
    run([cc, "-w", "-DSAFETY", *compiler_flags, "-o", "pan", "pan.c"], folder)
    return run(["./pan", "-w22", "-m2000"], folder)


def states(report):
    return int(re.search(r"(\d+) states, stored", report).group(1))


def check_holds(tools, defines, what, compiler_flags):
    with tempfile.TemporaryDirectory() as folder:
        report = explore(tools, defines, compiler_flags, folder)
    whole = "errors: 0" in report and "Search not completed" not in report
    if not whole or "max search depth too small" in report:
        sys.exit(f"{what}: the check failed or was not exhaustive\n{report}")
    print(f"holds: {what}: all {states(report)} states")


def check_fails(tools, error, sign):
    with tempfile.TemporaryDirectory() as folder:
        report = explore(tools, ["FAULTS=2", error], ["-DMEMLIM=1000"], folder)
    found = re.search(r"assertion violated (.*) \(at depth (\d+)\)", report)
    if not found or sign not in found.group(1).replace(" ", ""):
        sys.exit(f"{error}: found no counter-example with '{sign}'\n{report}")
    print(f"fails: {error}: a counter-example of {found.group(2)} steps")


def main():
    tools = (sys.argv[1], sys.argv[2], os.path.abspath(sys.argv[3]))
    for error, sign in FAILS:
        check_fails(tools, error, sign)
    for check in HOLDS + (HOLDS_LARGE if "--all" in sys.argv else []):
        check_holds(tools, *check)


if __name__ == "__main__":
    main()
