#!/usr/bin/env python3
"""No two files of the product have one base name for different things. What is one thing on several
levels may share a name: SAME says so, with the reason. Twins of the back ends are one kernel each."""
import os
import re
import subprocess
import sys

ROOT = sys.argv[1]
SAME = {
    "main": "a program's entry",
    "claimed": "what a claim hands out: written by the server, read by the runner",
    "combination": "one formula: chosen in search/, computed in model/, written as ONNX",
    "loss": "the loss of a network and its kernels",
    "optimizer": "the optimizer of a network and its kernels",
    "problem_document": "errors of the API (RFC 9457): written by the server, read by the client",
}


def stem(path):
    return re.sub(r"(_priv)?\.(c|h|cu|cuh)$", "", os.path.basename(path))


def main():
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "*.c", "*.h", "*.cu", "*.cuh"],
                           capture_output=True, text=True, check=True).stdout.split()
    folders = {}
    for path in files:
        if not path.startswith(("tests/", "bench/", "kernels/cpu/", "kernels/cuda/")) and os.path.exists(os.path.join(ROOT, path)):
            folders.setdefault(stem(path), set()).add(os.path.dirname(path))
    bad = [f"{name}: in {', '.join(sorted(where))}; one name for different things?" for name, where in sorted(folders.items())
           if len(where) > 1 and name not in SAME]
    bad += [f"{name}: allowed in tests/lint/names.py, and in one folder only" for name in SAME if len(folders.get(name, ())) < 2]
    print("\n".join(bad) or f"{len(folders)} names are in order")
    return bool(bad) or not folders


sys.exit(main())
