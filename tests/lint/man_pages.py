#!/usr/bin/env python3
"""Every option that a program prints for --help stands in its manual page. man_pages.py PROGRAM PAGE"""
import re
import subprocess
import sys

OPTION = r"--[a-z][a-z-]+"
options = set(re.findall(OPTION, subprocess.run([sys.argv[1], "--help"], capture_output=True, text=True, check=True).stdout))
page = open(sys.argv[2]).read().replace("\\-", "-")
missing = options - set(re.findall(OPTION, page))
print(f"{sys.argv[2]}: missing: {' '.join(sorted(missing))}" if missing else f"{len(options)} options")
sys.exit(bool(missing) or not options or ".SH DESCRIPTION\n.SH" in page)
