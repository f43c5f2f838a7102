#!/usr/bin/env python3
"""bench/scheduler and bench/scheduler/slots_busy.py run to their ends with small numbers, and every figure is one. What
the figures are is not judged."""
import json
import math
import os
import subprocess
import sys
import unittest

SOURCE = os.environ["ASSAY_SOURCE_ROOT"]
CASES = ["bare commit, one at a time", "bare commits, 8 connections", "bare tables, one at a time", "bare tables, sets of 50",
         "our tables, sets of 50, 1 sweep", "our tables, sets of 48, 8 sweeps", "HTTP alone",
         *(f"{shape}, {routes}{figure}" for shape in ("1 sweep, 1 runner", "1 sweep, 8 runners", "8 sweeps, 8 runners")
           for routes in ("single routes", "batch route") for figure in ("", ", processor time")),
         *(f"claim at half load, {routes}, {q}" for routes in ("single routes", "batch route") for q in ("p50", "p99")),
         *(line for shape in ("1 sweep, 1 runner", "1 sweep, 8 runners", "8 sweeps, 8 runners")
           for line in (f"{shape}, processor time of a cycle", "its rate")),
         "measured points, 1000 in a request", "points, without early stopping", "points, five rungs of 82 steps",
         "points, with early stopping to without", "ask, random", "tell, random", "ask, gp", "tell, gp",
         "after 80 trials, not analysed", "after 80 trials, analysed", "beside a transaction idle for 1 s",
         "claim while a sweep is cancelled"]


def lines(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode == 77:
        raise unittest.SkipTest("PostgreSQL is not installed")
    assert done.returncode == 0, f"{command} ended with {done.returncode}"
    return [json.loads(line) for line in done.stdout.splitlines()]


class Runs(unittest.TestCase):
    def check(self, found):
        for line in found:
            if line.get("note") != "there is no pgbench":
                self.assertTrue(line["value"] is not None and math.isfinite(line["value"]) and line["value"] >= 0, line)

    def test_all_cases(self):
        found = lines(PROGRAM, "--json", "--rounds", "1", "--seconds", "0.2", "--filled", "80", "--points", "3",
                      "--idle-transaction", "1", "--cancel", "20")
        self.assertEqual([line["case"] for line in found], CASES)
        self.check(found)

    def test_slots_busy(self):
        found = lines(sys.executable, os.path.join(SOURCE, "bench", "scheduler", "slots_busy.py"), "--trials", "8", "--slots", "2",
                      os.environ["ASSAY_BUILD_ROOT"])
        self.assertEqual([line["of"] for line in found], [8])
        self.check(found)


PROGRAM = sys.argv.pop(1)
unittest.main()
