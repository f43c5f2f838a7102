#!/usr/bin/env python3
"""How much of the time two runners keep their slots busy: 1,000 trials of 50 ms, each a program of its own. A private
PostgreSQL, programs as they are.

    bench/scheduler/slots_busy.py [--trials N] [--slots N,N…] [BUILD]     BUILD: the build folder (build)

One line of JSON for each number of slots of a runner. `value` is the share of the slots' time, from the first start to
the last end, in which a trial's program ran, by what the programs wrote themselves; `floor` that of a shell for each
slot that starts the same programs one after another. The goal is 0.95."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUNNERS = 2
# bash reads the clock without a process of its own. Short lines that are appended do not mix.
SCRIPT = 'begin=$EPOCHREALTIME; sleep 0.05; echo \'{{"loss": 1}}\' >> "$ASSAY_REPORT"; echo "$begin $EPOCHREALTIME" >> {path}'


def busy(path, slots):
    with open(path, encoding="ascii") as f:
        times = [tuple(float(x) for x in line.split()) for line in f]
    ran = sum(end - begin for begin, end in times)
    return len(times), ran / (slots * (max(t[1] for t in times) - min(t[0] for t in times)))


def alone(path, report, slots, trials):
    """The floor: `slots` shells that share the trials."""
    loop = f'for i in $(seq {trials // slots}); do bash -c "$1"; done'
    shells = [subprocess.Popen(["bash", "-c", loop, "loop", SCRIPT.format(path=path)], env={**os.environ, "ASSAY_REPORT": report})
              for _ in range(slots)]
    for shell in shells:
        shell.wait()
    return busy(path, slots)[1]


def document(path, trials):
    return {"name": "busy", "metric": {"name": "loss", "goal": "minimize"},
            "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "search": {"method": "random"},
            "limits": {"max_trials": trials}, "ensemble": False,
            "trial": {"command": ["bash", "-c", SCRIPT.format(path=path)]}}


def measure(slots, trials):
    from harness import Assay
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        path = os.path.join(folder, "times")
        floor = alone(os.path.join(folder, "floor"), os.path.join(folder, "report"), RUNNERS * slots, trials)
        with Assay(runners=RUNNERS, slots=slots) as assay:
            assay.wait_ended(assay.call("POST", "/v1/sweeps", document(path, trials))["id"])
        n, value = busy(path, RUNNERS * slots)
    print(json.dumps({"bench": "scheduler", "case": f"slots busy, 2 runners of {slots}", "value": round(value, 3),
                      "unit": "share", "floor": round(floor, 3), "of": n, "load": round(os.getloadavg()[0], 1)}), flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--trials", type=int, default=1000)
    options.add_argument("--slots", default="1,4")
    options.add_argument("build", nargs="?", default=os.path.join(ROOT, "build"))
    o = options.parse_args()
    os.environ["ASSAY_SOURCE_ROOT"] = ROOT
    os.environ["ASSAY_BUILD_ROOT"] = os.path.abspath(o.build)
    sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
    for slots in o.slots.split(","):
        measure(int(slots), o.trials)


main()
