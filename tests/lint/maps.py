#!/usr/bin/env python3
"""What the map of a README names is there: each file of its tables `| file | … |` and `| room | file | … |` lies below the
README's folder. `gossip.[ch]` is two files, `h_*.c` is any; a name without an ending is that of any file, or of a folder."""
import fnmatch
import os
import re
import subprocess
import sys

ROOT = sys.argv[1]
HEAD = re.compile(r"\|\s*(room|files?|room, files)\s*\|")


def named(lines):
    """(number, name) of each name in the columns of a map for rooms and files."""
    columns = 0
    for number, line in enumerate(lines, 1):
        if not line.startswith("|"):
            columns = 0
        elif HEAD.match(line):
            columns = 2 if re.match(r"\|\s*room\s*\|\s*file\s*\|", line) else 1
        elif columns:
            for cell in line.split("|")[1:1 + columns]:
                for name in re.findall(r"`([^`]+)`", cell):
                    yield number, name


def spelled_out(name):
    m = re.fullmatch(r"(.*)\.\[(\w+)\]", name)
    return [f"{m[1]}.{ending}" for ending in m[2]] if m else [name]


def is_there(name, below):
    """Is it the end of a path, with or without the ending of the file, or of a folder's?"""
    pattern = name.rstrip("/")
    for path in below:
        parts = path.split("/")
        for at in range(len(parts)):
            tail = "/".join(parts[at:])
            stem = re.sub(r"(_priv)?\.\w+$", "", tail)
            if any(fnmatch.fnmatch(x, pattern) for x in (tail, stem)) or tail.startswith(f"{pattern}/"):
                return True
    return False


def main():
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    files = [f for f in files if os.path.isfile(os.path.join(ROOT, f))]
    bad, seen = [], 0
    for readme in (f for f in files if os.path.basename(f) == "README.md"):
        folder = os.path.dirname(readme)
        below = [f for f in files if f.startswith(f"{folder}/" if folder else "") and f != readme]
        for number, name in named(open(os.path.join(ROOT, readme)).read().split("\n")):
            seen += 1
            bad += [f"{readme}:{number}: there is no {part}" for part in spelled_out(name) if not is_there(part, below)]
    print("\n".join(bad) or f"{seen} names in maps are those of files and folders")
    return bool(bad) or not seen


sys.exit(main())
