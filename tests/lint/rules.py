#!/usr/bin/env python3
"""The rules of CONTRIBUTING.md that a program can hold, beside those of layers.py (includes), words.py (banned
calls, SQL) and circles.py: functions of at most 60 lines, a head on each long file, no log below the services, no
file named for what it might hold."""
import os
import re
import subprocess
import sys

ROOT = sys.argv[1]
FUNCTION_LINES = 60  # between the braces
LONGER = {  # a function that may be longer: why
    ("api/server/main.c", "parse_options"): "one line for each option of assayd",
}
HEAD_FROM = 100  # a file of more lines begins with what it does and why so
NEVER_LOG = ("kernels/", "search/")
LOGS = re.compile(r'#\s*include\s+"base/log\.h"|\b(log_write|printf|vprintf|fprintf|vfprintf|puts|fputs|perror|syslog)\s*\(')
VAGUE = re.compile(r"(^|/)(utils?|common|types|manager|helpers?|misc)(_priv)?\.(c|h|cu|cuh)$")


def functions(lines):
    """(name, line, length) of each function whose body begins with a brace in the first column."""
    start = None
    for i, line in enumerate(lines):
        if line == "{" and start is None:
            at = i - 1
            while at > 0 and not re.match(r"[A-Za-z_]", lines[at]):
                at -= 1
            name = next(filter(None, (re.search(r"(\w+)\(", lines[k]) for k in range(at, i))), None)
            start = (name.group(1) if name else "?", at + 1, i)
        elif line.startswith("}"):
            if line == "}" and start:
                yield start[0], start[1], i - start[2] - 1
            start = None


def main():
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    bad, seen, longer = [], 0, set()
    for path in files:
        full = os.path.join(ROOT, path)
        if not re.search(r"\.(c|h|cu|cuh)$", path) or path.startswith(("tests/", "bench/")) or not os.path.isfile(full):
            continue
        text = open(full, errors="replace").read()
        lines = text.split("\n")
        if VAGUE.search(path):
            bad.append(f"{path}: a file is named for its noun or its verb")
        if re.search(r"\.(c|cu)$", path) and len(lines) - 1 > HEAD_FROM and not text.startswith("/*"):
            bad.append(f"{path}: {len(lines) - 1} lines, and does not begin with a comment that says what it does and why so")
        for number, line in enumerate(lines, 1):
            if path.startswith(NEVER_LOG) and LOGS.search(line):
                bad.append(f"{path}:{number}: {' and '.join(NEVER_LOG)} never log: {line.strip()[:80]}")
        for name, line, length in functions(lines):
            seen += 1
            if length <= FUNCTION_LINES:
                continue
            longer.add((path, name))
            if (path, name) not in LONGER:
                bad.append(f"{path}:{line}: {name}() has {length} lines, expected at most {FUNCTION_LINES}, "
                           "or a reason in tests/lint/rules.py")
    bad += [f"tests/lint/rules.py: {path} {name} is no longer than {FUNCTION_LINES} lines" for path, name in set(LONGER) - longer]
    print("\n".join(bad) or f"{seen} functions are in order")
    return bool(bad) or not seen


sys.exit(main())
