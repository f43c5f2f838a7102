#!/usr/bin/env python3
"""What a trial costs beside its program: the wall-clock time from one start of a trial's program to the next, on a
runner with one slot, less that of the program alone. The program writes the time and one measurement. A private
PostgreSQL, programs as they are.

    bench/trials.py [BUILD]     BUILD: the build folder (build)

One line of JSON per sweep. `value` is the median of the intervals, `floor` that of the same program started by a shell
one after another, `cost` the difference; the goal is at most 10 ms."""
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ["ASSAY_SOURCE_ROOT"] = ROOT
os.environ["ASSAY_BUILD_ROOT"] = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build"))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from harness import Assay  # noqa: E402

TRIALS, SWEEPS = 200, 5


def intervals_ms(path):
    with open(path, encoding="ascii") as f:
        starts = sorted(int(line) for line in f)
    return [(b - a) / 1e6 for a, b in zip(starts, starts[1:])]


def document(name, script):
    return {"name": name, "metric": {"name": "loss", "goal": "minimize"},
            "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "search": {"method": "random"},
            "limits": {"max_trials": TRIALS}, "ensemble": False, "trial": {"command": ["sh", "-c", script]}}


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        path, report = os.path.join(folder, "starts"), os.path.join(folder, "report")
        script = f'date +%s%N >> {path}; echo "{{\\"loss\\": 1}}" >> "$ASSAY_REPORT"'
        for _ in range(TRIALS):
            subprocess.run(["sh", "-c", script], check=True, env={**os.environ, "ASSAY_REPORT": report})
        floor = statistics.median(intervals_ms(path))
        with Assay(runners=1, slots=1) as assay:
            for i in range(SWEEPS):
                os.unlink(path)
                sweep = assay.call("POST", "/v1/sweeps", document(f"t{i}", script))["id"]
                assay.wait_ended(sweep)
                found = intervals_ms(path)
                value = statistics.median(found)
                print(json.dumps({"bench": "trials", "case": "one slot", "value": round(value, 2),
                                  "p90": round(statistics.quantiles(found, n=10)[8], 2), "floor": round(floor, 2),
                                  "cost": round(value - floor, 2), "unit": "ms", "of": len(found)}), flush=True)


main()
