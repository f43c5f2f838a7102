#!/usr/bin/env python3
"""The pages of docs/decisions/: each has a title with its number, one line with date, status and what it replaces,
its four parts, and a question in the index. Numbers of one part follow each other without a gap. Every number of
before leads somewhere. Every reference to a decision in the tree, by number or by link, leads to a page."""
import os
import re
import subprocess
import sys

ROOT = sys.argv[1]
FOLDER = "docs/decisions/"
PARTS = ["## Context", "## Decision", "## Consequences", "## What would change it"]
PAGE = re.compile(r"docs/decisions/(\d{4})-[\w-]+\.md$")
HEAD = re.compile(r"Date: \d{4}-\d\d-\d\d(, revised \d{4}-\d\d-\d\d)? · Status: (accepted|proposed) · Replaces: ([\d, ]+|nothing)$")
BEFORE = re.compile(r"^\| (0\d{3}) \| (.+) \|$", re.M)
# "decision 1001", "decisions 1001 and 1002", "docs/decisions/1001", "[1001](…/1001-….md)"
REFERENCE = re.compile(r"decisions?(?:/|\s+)\[?(\d{4})\b(?!-\d\d)|\[(?:decision )?(\d{4})\]\(|(?<=/)(\d{4})-[\w-]+\.md", re.I)
FURTHER = re.compile(r"(?:,| and| or| to)\s+\[?(\d{4})\b")
TEXT = re.compile(r"\.(c|h|cu|cuh|inc|md|py|sh|ts|tsx|mjs|yaml|build|sql|txt)$|^dev$")


def check_page(path, number, text, index):
    lines = text.split("\n")
    title = lines[0]
    if not title.startswith(f"# {number}: "):
        yield f"{path}: the first line is '{title}', expected '# {number}: Title'"
    if not HEAD.match(" ".join(text.split("\n\n")[1].split("\n"))):
        yield f"{path}: the second paragraph is no 'Date: … · Status: … · Replaces: …'"
    found = [line for line in lines if line.startswith("## ")]
    if found != PARTS:
        yield f"{path}: has the parts {found}, expected {PARTS}"
    for part in text.split("\n## ")[1:]:
        if not part.partition("\n")[2].strip():
            yield f"{path}: the part '{part.partition(chr(10))[0]}' is empty"
    name = os.path.basename(path)
    if f"- [{title[2:]}]({name})" not in index:
        yield f"{FOLDER}README.md: does not list [{title[2:]}]({name})"
    if not re.search(rf"^- .+\? \[{number}\]\({re.escape(name)}\)$", index, re.M):
        yield f"{FOLDER}README.md: has no question that leads to {name}"


def check_numbers(numbers):
    for part in sorted({n[0] for n in numbers}):
        own = sorted(int(n) for n in numbers if n[0] == part)
        if own != list(range(own[0], own[0] + len(own))) or own[0] % 1000 != 1:
            yield f"{FOLDER}: the numbers of part {part} are not {part}001, {part}002, …"


def check_before(pages, index):
    """Each page's 'Replaces' is in the table of numbers of before, and leads to that page."""
    table = dict(BEFORE.findall(index))
    for path, text in pages.items():
        for old in re.findall(r"\d{4}", text.split("Replaces: ", 1)[-1].split("\n\n")[0]):
            if os.path.basename(path) not in table.get(old, ""):
                yield f"{FOLDER}README.md: {old}, which {path} replaces, does not lead to it"


def references(text):
    for found in REFERENCE.finditer(text):
        yield next(filter(None, found.groups())), found.start()
        end = found.end()
        while further := FURTHER.match(text, end):
            yield further.group(1), further.start()
            end = further.end()


def main():
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    files = [f for f in files if f and os.path.isfile(os.path.join(ROOT, f))]
    read = lambda f: open(os.path.join(ROOT, f), errors="replace").read()
    pages = {f: read(f) for f in files if PAGE.match(f)}
    numbers = {PAGE.match(f).group(1): f for f in pages}
    index = read(FOLDER + "README.md")
    bad, seen = list(check_numbers(numbers)) + list(check_before(pages, index)), 0
    for path, text in pages.items():
        bad += check_page(path, PAGE.match(path).group(1), text, index)
    for path in filter(TEXT.search, files):
        text = read(path)
        if path == FOLDER + "README.md" or "decision" not in text.lower() or path.startswith("tests/lint/"):
            continue
        for number, at in references(text):
            seen += 1
            if number not in numbers:
                bad.append(f"{path}:{text.count(chr(10), 0, at) + 1}: refers to decision {number}, which is no page")
    print("\n".join(bad) or f"{len(pages)} pages and {seen} references to them are in order")
    return bool(bad) or not pages or not seen


sys.exit(main())
