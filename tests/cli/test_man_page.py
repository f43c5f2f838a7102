#!/usr/bin/env python3
"""The manual page has a heading for each verb of `assay help`, with every option of `assay help VERB`, and the
exit codes of `assay help`. `man` finds it and the other programs' where the build has put them.
Usage: test_man_page.py ASSAY PAGE"""
import os
import re
import shutil
import subprocess
import sys

ASSAY, PAGE = sys.argv[1:3]


def run(*args):
    return subprocess.run([ASSAY, "help", *args], check=True, capture_output=True, text=True).stdout


def plain(roff):
    """The text of the page without the escapes of roff."""
    return re.sub(r"\\f[BIR]|\\&", "", roff).replace("\\-", "-").replace("\\e", "\\")


def options(text):
    return set(re.findall(r"--[a-z][a-z-]+", text))


def check(verb, sections, common):
    section = next((s for s in sections if s.split("\n")[0].split()[1:2] == [verb]), None)
    if section is None:
        return [f"the verb {verb} has no section"]
    text = section + (common if "This verb also takes the common options." in section else "")
    _, _, table = run(verb).partition("\nOptions\n")
    return [f"{verb}: {option} is missing" for option in sorted(options(table) - options(text))]


def found_by_man():
    """Without installing, with the folder of `assay` in PATH."""
    if not shutil.which("man"):
        return []
    env = {n: v for n, v in os.environ.items() if n != "MANPATH"}
    env["PATH"] = os.path.dirname(os.path.abspath(ASSAY)) + ":" + os.environ["PATH"]
    bad = []
    for name in ("assay", "assayd", "assay-runner", "assay-train", "assay-serve"):
        done = subprocess.run(["man", "-w", name], env=env, capture_output=True, text=True)
        here = os.path.join(os.path.dirname(os.path.abspath(PAGE)), name + ".1")
        if os.path.realpath(done.stdout.strip()) != os.path.realpath(here):
            bad.append(f"man -w {name}: {done.stdout or done.stderr}, expected {here}")
    return bad


def main():
    page = plain(open(PAGE, encoding="utf-8").read())
    overview = run()
    verbs = re.findall(r"^  ([a-z]+) ", overview.split("\nEnvironment\n")[0], re.M)
    parts = re.split(r"^\.SH ", page, flags=re.M)
    common = next(p for p in parts if p.startswith("COMMON OPTIONS"))
    status = next(p for p in parts if p.startswith("EXIT STATUS"))
    sections = re.split(r"^\.SS ", next(p for p in parts if p.startswith("VERBS")), flags=re.M)[1:]
    bad = [] if len(verbs) > 20 else [f"`assay help` lists only {verbs}"]
    if len(sections) != len(verbs):
        bad.append(f"{len(sections)} sections for {len(verbs)} verbs")
    for verb in verbs:
        bad += check(verb, sections, common)
    for code in re.findall(r"(?:^|   ?)(\d+) [a-z]", overview.split("\nExit codes\n")[1], re.M):
        if f".TP\n{code}\n" not in status:
            bad.append(f"exit code {code} is missing")
    bad += found_by_man()
    print("\n".join(bad) or f"{len(verbs)} verbs are in the manual page")
    return bool(bad)


sys.exit(main())
