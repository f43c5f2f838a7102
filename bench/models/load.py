#!/usr/bin/env python3
"""What loading a model costs: load.py MODEL TABLE ASSAY… runs `assay predict MODEL --data TABLE` of several builds in turn, four times, and
prints processor seconds, page faults and the largest memory of each. TABLE has a few rows. All must write the same bytes."""
import os
import subprocess
import sys

ROUNDS = 4


def run(program, model, table):
    child = subprocess.Popen([program, "predict", model, "--data", table], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out = child.stdout.read()
    _, status, use = os.wait4(child.pid, 0)
    assert status == 0 and out, (program, status)
    return out, use.ru_utime + use.ru_stime, use.ru_minflt, use.ru_maxrss >> 10


def main():
    model, table, *programs = sys.argv[1:]
    written = set()
    for _ in range(ROUNDS):
        for program in programs:
            out, seconds, faults, mib = run(program, model, table)
            written.add(out)
            print(f"{program}: {seconds:.2f} s, {faults:,} faults, {mib} MiB")
    assert len(written) == 1, "the builds predict different bytes"


main()
