#!/usr/bin/env python3
"""The format check of ./dev finds a file that is not as .clang-format has it, and nothing in one that is. It is the
script's own function, in a repository of one file."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = sys.argv[1]
CASES = {"int f(void)\n{\n    return 0;\n}\n": 0, "int f(void) { return  0;}\n": 1}


def main():
    if not shutil.which("clang-format"):
        print("skipped: clang-format is not installed")
        sys.exit(77)
    dev = open(os.path.join(ROOT, "dev")).read()
    functions = [re.search(rf"^{name}\(\) {{.*?}}\n(?=\n)", dev, re.M | re.S)[0] for name in ("say", "c_files", "check_format")]
    script = "\n".join(["set -euo pipefail", *functions, "check_format"])
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q", folder], check=True)
        shutil.copy(os.path.join(ROOT, ".clang-format"), folder)
        for text, code in CASES.items():
            open(os.path.join(folder, "f.c"), "w").write(text)
            done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True)
            assert done.returncode == code and ("f.c:1:" in done.stdout) == bool(code), (text, done)


main()
