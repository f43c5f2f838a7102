#!/usr/bin/env python3
"""Words that may not stand in the tree: banned calls, markers of unfinished work, registry hosts, SQL
outside of scheduler/store, comments beyond 100 columns, words that docs/words.md has retired, and folders
without a README. Every file that docs/words.md names exists."""
import os
import re
import subprocess
import sys

ROOT = sys.argv[1]
BANNED = re.compile(r"\b(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atof|gets|alloca|MHD_quiesce_daemon)\s*\(")
MARK = re.compile(r"\b(TODO|FIXME|XXX|HACK|stub|not implemented|placeholder)\b", re.I)
HOSTS = re.compile(r"registry\.(npmjs|yarnpkg)|deb\.debian\.org|pypi\.org|files\.pythonhosted|proxy\.golang")
COMMENT = re.compile(r"\s*(/\*|\*\s)")
SQL = re.compile(r'"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\s', re.S)
TOP = ["base", "data", "model", "kernels", "search", "scheduler", "trial-runner", "api", "cli", "web", "clients", "migrations", "tests"]

WORDS = "docs/words.md"
HISTORY = (WORDS, "CHANGELOG.md", "bench/notes/", "migrations/")  # may name what was


def retired(page):
    """The left column of the page's last table, as one pattern."""
    words = re.findall(r"^\| `(\w+)` \|", page[page.index("## Retired words"):], re.M)
    return re.compile(r"(?<![A-Za-z0-9])(" + "|".join(words) + r")(?![A-Za-z0-9])", re.I)


def main():
    page = open(os.path.join(ROOT, WORDS)).read()
    old = retired(page)
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    bad = [f"{top}/ has no README.md" for top in TOP if not os.path.exists(os.path.join(ROOT, top, "README.md"))]
    bad += [f"{WORDS}: there is no {path}" for path in re.findall(r"`([a-z-]+(?:/[a-z_.-]+)+)`", page)
            if not os.path.exists(os.path.join(ROOT, path))]
    for path in filter(None, files):
        full = os.path.join(ROOT, path)
        if not os.path.isfile(full) or os.path.getsize(full) > 2_000_000 or path.startswith("tests/lint/"):
            continue
        text = open(full, errors="replace").read()
        is_code = re.search(r"\.(c|h|cu|cuh)$", path)
        for number, line in enumerate(text.split("\n"), 1):
            at = f"{path}:{number}"
            if (is_code or path.endswith((".md", ".ts", ".tsx"))) and not path.startswith(HISTORY) and old.search(line):
                bad.append(f"{at}: '{old.search(line).group(1)}' is retired ({WORDS}): {line.strip()[:80]}")
            if HOSTS.search(line):
                bad.append(f"{at}: names a registry's host")
            if is_code and BANNED.search(line.split("//")[0]):
                bad.append(f"{at}: banned call: {line.strip()[:80]}")
            if is_code and MARK.search(line):
                bad.append(f"{at}: unfinished: {line.strip()[:80]}")
            if is_code and len(line) > 100 and COMMENT.match(line):
                bad.append(f"{at}: a comment beyond 100 columns (clang-format leaves comments alone)")
            if is_code and SQL.search(line) and not path.startswith(("scheduler/store/", "tests/", "bench/")):
                bad.append(f"{at}: SQL outside scheduler/store: {line.strip()[:80]}")
    print("\n".join(bad) or f"{len(files)} files are in order")
    return bool(bad)


sys.exit(main())
