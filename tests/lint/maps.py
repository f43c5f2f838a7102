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


def ends(paths):
    """What a map may call these files and their folders: the end of a path, with or without the ending of the file."""
    found = set()
    for path in paths:
        parts = path.split("/")
        for at in range(len(parts)):
            tail = "/".join(parts[at:])
            found |= {tail, re.sub(r"(_priv)?\.\w+$", "", tail)}
            found |= {"/".join(parts[at:end]) for end in range(at + 1, len(parts))}
    return found


def is_there(name, known):
    name = name.rstrip("/")
    return name in known or "*" in name and bool(fnmatch.filter(known, name))


def main():
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    files = [f for f in files if os.path.isfile(os.path.join(ROOT, f))]
    bad, seen = [], 0
    for readme in (f for f in files if os.path.basename(f) == "README.md"):
        folder = os.path.dirname(readme)
        known = ends(f for f in files if f.startswith(f"{folder}/" if folder else "") and f != readme)
        for number, name in named(open(os.path.join(ROOT, readme)).read().split("\n")):
            seen += 1
            bad += [f"{readme}:{number}: there is no {part}" for part in spelled_out(name) if not is_there(part, known)]
    print("\n".join(bad) or f"{seen} names in maps are those of files and folders")
    return bool(bad) or not seen


sys.exit(main())
