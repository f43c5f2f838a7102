#!/usr/bin/env python3
"""Every relative link of a Markdown file leads to a file, and to a heading where it names one. No file of the
tree speaks of a Markdown document that is not in the tree."""
import functools
import os
import re
import subprocess
import sys

ROOT = sys.argv[1]
LINK = re.compile(r"\]\(([^)\s]+)\)")
DOCUMENT = re.compile(r"(?<![\w/.$-])((?:[\w.-]+/)*[\w.-]+\.md)\b")
TEXT = re.compile(r"\.(c|h|cu|cuh|md|py|sh|ts|tsx|mjs|yaml|build|sql)$|^dev$")


@functools.cache
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


def main():
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    documents = {f for f in files if f.endswith(".md")}
    names = {os.path.basename(f) for f in documents}
    bad, seen = [], 0
    for path in filter(TEXT.search, files):
        full = os.path.join(ROOT, path)
        if not os.path.isfile(full) or path.startswith("tests/lint/"):
            continue
        text = open(full, errors="replace").read()
        if path.endswith(".md"):
            bad += check_links(path, text)
        if ".md" not in text:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            for name in DOCUMENT.findall(line) if ".md" in line else ():
                seen += 1
                if os.path.basename(name) not in names:
                    bad.append(f"{path}:{number}: speaks of {name}, which is not in the tree")
    print("\n".join(bad) or f"{len(documents)} documents and {seen} mentions of them are in order")
    return bool(bad) or not documents


sys.exit(main())
