#!/usr/bin/env python3
"""Every suite of a test program is run. A program has the suites of several files (tests/support/check_main.c); a file
that joins it, and that no test names, would compile and never run. Found from what Meson knows of the build."""
import json
import os
import sys

BUILD = sys.argv[1]


def known(what):
    with open(os.path.join(BUILD, "meson-info", f"intro-{what}.json")) as f:
        return json.load(f)


def is_named(path, name):
    """Is `gp/quality` the name of .../search/gp/test_quality.c?"""
    folder, file = os.path.split(path)
    return f"{folder}/{file[len('test_'):-len('.c')]}".endswith("/" + name)


def main():
    runs, bad, n_files = {}, [], 0  # the arguments of each program
    for test in known("tests"):
        runs.setdefault(test["cmd"][0], []).append(test["cmd"][1:])
    for target in known("targets"):
        if target["type"] != "executable" or not target["name"].startswith("test_"):
            continue
        files = [path for group in target["target_sources"] for path in group.get("sources", [])
                 if os.path.basename(path).startswith("test_") and path.endswith(".c")]
        n_files += len(files)
        for path in files:
            named = [args for args in runs.get(target["filename"][0], []) if (is_named(path, args[0]) if args else len(files) == 1)]
            if not named:
                bad.append(f"{path}: it is in {target['name']}, and no test runs its suite")
    print("\n".join(sorted(bad)) or f"the suites of {n_files} files are run")
    return bool(bad) or n_files == 0


sys.exit(main())
