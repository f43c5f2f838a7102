#!/usr/bin/env python3
"""How long a slot is without a step when early stopping resumes a trial, beside a trial that begins: from the end of the
process that had the slot until the next one's first step, in milliseconds. The end of the attempt, the claim, the checkpoint
(kept on the runner, or downloaded) and the start of the process are in it.

    bench/stop_resume.py [--build DIR] [--trials N] [--checkpoint BYTES]

A line of JSON for each place of the checkpoint, with the medians, and the ratio that is asked to be at most 1.5. The
programs are as they are, with a private PostgreSQL. As root they take the processor before others."""
import argparse
import contextlib
import json
import os
import shutil
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Writes when its first step was done, and when it ends.
TRIAL = r'''
import os, signal, sys, time
out, x, size = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
state = os.path.join(os.environ["ASSAY_CHECKPOINTS"], "state")
log = os.open(out, os.O_WRONLY | os.O_APPEND)
step = 0
if os.path.exists(state):
    with open(state, "rb") as f:
        step = int(f.readline())
        f.read()
kind = b"resumed" if step else b"begun"


def end(*_):
    with open(state + ".new", "wb") as f:
        f.write(b"%d\n" % step + os.urandom(size))
    os.rename(state + ".new", state)
    leave()


def leave():
    os.write(log, b"end %d\n" % time.monotonic_ns())
    os._exit(0)


signal.signal(signal.SIGTERM, end)
report = os.open(os.environ["ASSAY_REPORT"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
while step < 9:
    step += 1
    os.write(report, b'{"step": %d, "loss": %f}\n' % (step, x + 1 / step))
    if kind:
        os.write(log, b"%s %d\n" % (kind, time.monotonic_ns()))
        kind = None
    time.sleep(0.15)
leave()
'''


def gaps(path):
    """Of trials that begin and of trials that are resumed, in milliseconds. The first process follows no other."""
    found, ended = {"begun": [], "resumed": []}, None
    with open(path, encoding="utf-8") as f:
        for what, at in (line.split() for line in f):
            if what != "end" and ended is not None:
                found[what].append((int(at) - ended) / 1e6)
            ended = int(at) if what == "end" else None
    return found


def measure(assay, place, options):
    path, out = os.path.join(assay.data, "trial.py"), os.path.join(assay.data, place)
    with open(path, "w", encoding="utf-8") as f:
        f.write(TRIAL)
    with open(out, "w", encoding="utf-8"):
        os.chmod(out, 0o666)
    assay.call("POST", "/v1/sweeps", {
        "name": place, "metric": {"name": "loss", "goal": "minimize"}, "ensemble": False,
        "trial": {"command": [sys.executable, "-S", path, out, "${x}", str(options.checkpoint)], "checkpoints": True},
        "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "search": {"method": "random", "seed": 5},
        "early_stopping": {"method": "asha", "min_steps": 1, "max_steps": 9, "eta": 2, "mode": "pause"},
        "limits": {"max_trials": options.trials}})
    while assay.sweep(place)["state"] == "running":
        if place == "downloaded":
            shutil.rmtree(os.path.join(assay.data, "cache"), ignore_errors=True)
        time.sleep(0.02 if place == "downloaded" else 1)
    found = gaps(out)
    begun, resumed = (statistics.median(found[kind]) for kind in ("begun", "resumed"))
    return {"checkpoint": place, "bytes": options.checkpoint, "begun": round(begun, 1), "of": len(found["begun"]),
            "resumed": round(resumed, 1), "of_resumed": len(found["resumed"]), "ratio": round(resumed / begun, 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--checkpoint", type=int, default=1 << 20)
    options = parser.parse_args()
    os.environ.update(ASSAY_SOURCE_ROOT=ROOT, ASSAY_BUILD_ROOT=os.path.abspath(options.build))
    sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
    from harness import Assay
    with contextlib.suppress(PermissionError):
        os.nice(-10)
    with Assay(runners=1, slots=1) as assay:
        for place in ("kept", "downloaded"):
            print(json.dumps({**measure(assay, place, options), "load": round(os.getloadavg()[0], 1)}), flush=True)


main()
