#!/usr/bin/env python3
"""Every relative link of a Markdown file leads to a file, and to a heading where it names one. No file of the
tree speaks of a Markdown document that is not in the tree. Every page of docs/decisions/ has its four parts and
stands in the index."""
import os
import re
import subprocess
import sys

ROOT = sys.argv[1]
LINK = re.compile(r"\]\(([^)\s]+)\)")
DOCUMENT = re.compile(r"(?<![\w/.$-])((?:[\w.-]+/)*[\w.-]+\.md)\b")
TEXT = re.compile(r"\.(c|h|cu|cuh|md|py|sh|ts|tsx|mjs|yaml|build|sql)$|^dev$")


def anchors(path):
    """The anchors of a file's headings, as hosts of repositories make them."""
    found = set()
    for line in open(path, errors="replace"):
        m = re.match(r"#+\s+(.*)", line)
        if m:
            words = re.sub(r"[^\w\s-]", "", m.group(1).strip().lower())
            found.add(re.sub(r"\s", "-", words))
    return found


def check_links(path, text):
    folder = os.path.dirname(path)
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        at = os.path.normpath(os.path.join(folder, name)) if name else path
        if not os.path.exists(os.path.join(ROOT, at)):
            yield f"{path}: the link {target} leads nowhere"
        elif anchor and at.endswith(".md") and anchor not in anchors(os.path.join(ROOT, at)):
            yield f"{path}: {at} has no heading #{anchor}"


PARTS = ["## Context", "## Decision", "## Consequence", "## What would change it"]


def check_decisions(documents):
    pages = sorted(d for d in documents if re.match(r"docs/decisions/\d{4}-[\w-]+\.md$", d))
    index = os.path.join(ROOT, "docs/decisions/README.md")
    listed = open(index).read() if os.path.exists(index) else ""
    for page in pages:
        lines = open(os.path.join(ROOT, page)).read().split("\n")
        number = os.path.basename(page)[:4]
        if not lines[0].startswith(f"# {number}: ") or [line for line in lines if line.startswith("## ")] != PARTS:
            yield f"{page}: expected '# {number}: Title', then {', '.join(PARTS)}"
        elif f"[{lines[0][2:]}]({os.path.basename(page)})" not in listed:
            yield f"{page}: docs/decisions/README.md does not list it as [{lines[0][2:]}]({os.path.basename(page)})"


def main():
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    documents = {f for f in files if f.endswith(".md")}
    names = {os.path.basename(f) for f in documents}
    bad, seen = list(check_decisions(documents)), 0
    for path in filter(TEXT.search, files):
        full = os.path.join(ROOT, path)
        if not os.path.isfile(full) or path.startswith("tests/lint/"):
            continue
        text = open(full, errors="replace").read()
        if path.endswith(".md"):
            bad += check_links(path, text)
        for number, line in enumerate(text.split("\n"), 1):
            for name in DOCUMENT.findall(line):
                seen += 1
                if os.path.basename(name) not in names:
                    bad.append(f"{path}:{number}: speaks of {name}, which is not in the tree")
    print("\n".join(bad) or f"{len(documents)} documents and {seen} mentions of them are in order")
    return bool(bad) or not documents


sys.exit(main())
