#!/usr/bin/env python3
"""From the creation of a sweep to the first measurement of its trial: on 8 ranks, on 1, and without ranks. Two
runners with four slots, one epoch of one step for each rank, programs as they are, a private PostgreSQL. The three
take turns; what came before has just ended, so runners have claims under way that are smaller than what is free.

    bench/seats.py [BUILD]      BUILD: the build folder (build)

One line of JSON per case. `value` is the median over `of` sweeps; min and max are beside it. `times`: that of the
trial without ranks; the goal is at most 3. On a busy machine run it with `chrt -f 10` or `nice -n -20`."""
import datetime
import json
import os
import statistics
import sys
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ["ASSAY_SOURCE_ROOT"] = ROOT
os.environ["ASSAY_BUILD_ROOT"] = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build"))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from harness import Assay  # noqa: E402

ROUNDS = 9
QUIET_S = 0.6  # longer than a trial here takes
CASES = {"a trial": {}, "1 seat": {"ranks": 1}, "8 seats": {"ranks": 8}}


def document(name, resources):
    return {"name": name, "metric": {"name": "val_error", "goal": "minimize"},
            "parameters": {"lr": {"type": "categorical", "values": [0.01]}}, "search": {"method": "random"},
            "limits": {"max_trials": 1}, "resources": resources, "ensemble": False,
            "trial": {"train": {"dataset": "digits", "model": {"layers": [32]}, "epochs": 1, "batch_size": 1024,
                                "micro_batch": 128, "optimizer": {"kind": "sgd", "lr": "${lr}"}}}}


def events(assay, sweep):
    """The events of a sweep that has ended, by type, each with its time on the database's clock."""
    found = []
    request = urllib.request.Request(f"{assay.url}/v1/sweeps/{sweep}/events?after=0",
                                     headers={"Authorization": f"Bearer {assay.token}"})
    with urllib.request.urlopen(request, timeout=60) as stream:
        for line in stream:
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:]))
                if found[-1]["type"] == "sweep.changed" and found[-1]["state"] == "completed":
                    return found


def first_measurement_ms(assay, name, resources):
    """By the times of events: a client that looked for the measurement would take the processor from the ranks."""
    sweep = assay.call("POST", "/v1/sweeps", document(name, resources))["id"]
    time.sleep(QUIET_S)
    assay.wait_ended(sweep)
    at = {}
    for event in events(assay, sweep):
        at.setdefault(event["type"], datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")))
    return (at["trial.measured"] - at["sweep.created"]).total_seconds() * 1e3


def main():
    found = {case: [] for case in CASES}
    with Assay(runners=2, slots=4) as assay:
        assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")
        for k in range(ROUNDS):
            for i, (case, resources) in enumerate(CASES.items()):
                found[case].append(first_measurement_ms(assay, f"s{i}-{k}", resources))
    alone = statistics.median(found["a trial"])
    for case, values in found.items():
        median = statistics.median(values)
        print(json.dumps({"case": f"{case}: creation to first measurement", "value": round(median, 1), "unit": "ms",
                          "of": ROUNDS, "min": round(min(values), 1), "max": round(max(values), 1),
                          "times": round(median / alone, 2)}))


main()
