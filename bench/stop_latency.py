#!/usr/bin/env python3
"""From a line in a trial's report to the SIGTERM of early stopping: median, p90, p99 and the longest, in milliseconds.

    bench/stop_latency.py [--build DIR] [--slots N] [--trials N] [report|csv|stdout …]

One line of JSON for each way to report. The programs are as they are, with a private PostgreSQL: the wait for its disk is
in it. The goal is a p99 of 50 ms on a quiet machine. As root the programs take the processor before others."""
import argparse
import contextlib
import json
import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Writes a line at times of its own, and what the signal took.
TRIAL = r'''
import os, signal, sys, time
how, out, x = sys.argv[1], sys.argv[2], float(sys.argv[3])
last = 0


def stop(*_):
    os.write(took, b"%d\n" % (time.monotonic_ns() - last))
    os._exit(0)


signal.signal(signal.SIGTERM, stop)
took = os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
report = os.open(os.environ["ASSAY_REPORT"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
rows = os.open(os.path.join(os.environ["ASSAY_ARTIFACTS"], "m.csv"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for step in range(1, 10):
    time.sleep(0.1 + (x * 7919 + step * 0.37) % 0.2)
    last = time.monotonic_ns()
    if how == "report":
        os.write(report, b'{"step": %d, "loss": %f}\n' % (step, x))
    elif how == "stdout":
        os.write(1, b"step %d loss %f\n" % (step, x))
    else:
        os.write(rows, (b"step,loss\n" if step == 1 else b"") + b"%d,%f\n" % (step, x))
'''
WAYS = {"report": None, "csv": {"csv": "${trial_dir}/m.csv"},
        "stdout": {"stdout": r"step (?P<step>\d+) loss (?P<loss>[0-9.]+)"}}


def measure(assay, how, trials):
    path, out = (os.path.join(assay.data, f"{how}.{end}") for end in ("py", "took"))
    with open(path, "w", encoding="utf-8") as f:
        f.write(TRIAL)
    trial = {"command": [sys.executable, "-S", path, how, out, "${x}"]}
    if WAYS[how]:
        trial["report"] = WAYS[how]
    assay.call("POST", "/v1/sweeps", {
        "name": how, "metric": {"name": "loss", "goal": "minimize"}, "ensemble": False, "trial": trial,
        "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "search": {"method": "random", "seed": 5},
        "early_stopping": {"method": "asha", "min_steps": 1, "max_steps": 9, "eta": 3, "mode": "stop"},
        "limits": {"max_trials": trials}})
    while assay.sweep(how)["state"] == "running":
        time.sleep(1)
    with open(out, encoding="utf-8") as f:
        took = sorted(int(line) / 1e6 for line in f)
    at = {name: took[min(len(took) - 1, int(len(took) * part))] for name, part in (("p50", .5), ("p90", .9), ("p99", .99))}
    return {"report": how, "stopped": len(took), **{k: round(v, 1) for k, v in at.items()}, "longest": round(took[-1], 1)}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", default=os.path.join(ROOT, "build"))
    options.add_argument("--slots", type=int, default=2)
    options.add_argument("--trials", type=int, default=200)
    options.add_argument("ways", nargs="*", metavar="WAY", help=", ".join(WAYS) + "; default: all")
    chosen = options.parse_args()
    os.environ.update(ASSAY_SOURCE_ROOT=ROOT, ASSAY_BUILD_ROOT=os.path.abspath(chosen.build))
    sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
    from harness import Assay
    with contextlib.suppress(PermissionError):
        os.nice(-10)
    with Assay(runners=1, slots=chosen.slots) as assay:
        for how in chosen.ways or WAYS:
            print(json.dumps({**measure(assay, how, chosen.trials), "load": round(os.getloadavg()[0], 1)}), flush=True)


main()
