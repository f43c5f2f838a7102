#!/usr/bin/env python3
"""What the service costs beside the training: from a claim's answer to the first training step with a cached
data set, and for each of 64 tiny trials. Programs as they are, a private PostgreSQL, one runner with one slot.

    bench/service.py [BUILD]      BUILD: the build folder (build)

One line of JSON per case. `value` is the median over `of` trials, or of sweeps; min and max are beside it."""
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ["ASSAY_SOURCE_ROOT"] = ROOT
os.environ["ASSAY_BUILD_ROOT"] = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build"))
os.environ["ASSAY_LOG_LEVEL"] = "debug"
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from harness import BUILD, Assay  # noqa: E402

TINY = 64
SWEEPS = 5
STARTS = 9


def document(name, data, trials, group):
    return {"name": name, "metric": {"name": "val_loss", "goal": "minimize"},
            "parameters": {"lr": {"type": "float", "min": 1e-3, "max": 0.1, "scale": "log"}},
            "search": {"method": "random", "seed": 1}, "limits": {"max_trials": trials},
            "resources": {"group": group}, "ensemble": False,
            "trial": {"train": train(data, "${lr}")}}


def train(data, lr):
    return {"dataset": data, "model": {"kind": "mlp", "layers": [32]}, "optimizer": {"kind": "sgd", "lr": lr},
            "epochs": 1, "batch_size": 128}


def write_wide(path):
    """As many rows and columns as UCI's Adult: 6 numbers, 8 categories, 2 classes."""
    rng = random.Random(1)
    kinds = [9, 16, 7, 15, 6, 5, 2, 42]
    with open(path, "w") as f:
        f.write(",".join([f"n{i}" for i in range(6)] + [f"c{i}" for i in range(8)] + ["class"]) + "\n")
        for _ in range(48842):
            numbers = [str(rng.randrange(10 ** (i + 1))) for i in range(6)]
            f.write(",".join(numbers + [f"w{rng.randrange(k)}" for k in kinds] + [rng.choice("ab")]) + "\n")


def tell(case, values, unit="ms"):
    print(json.dumps({"case": case, "value": round(statistics.median(values), 2), "unit": unit, "of": len(values),
                      "min": round(min(values), 2), "max": round(max(values), 2)}), flush=True)


def run(assay, name, data, trials, group):
    """Wall time in ms from the sweep's creation to the end of its last trial, by the server's clock. (A sweep itself
    ends a moment later, with its ensemble.)"""
    sweep = assay.call("POST", "/v1/sweeps", document(name, data, trials, group))["id"]
    s = assay.wait_ended(sweep)
    assert s["counts"]["completed"] == trials, s
    last = max(seconds(t["finished_at"]) for t in assay.trials(sweep))
    return (last - seconds(s["created_at"])) * 1e3


def seconds(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def first_steps(assay, sweeps):
    """ms from "trial claimed" to "member trains" of each sweep's first trial, from the runner's log."""
    log = open(os.path.join(assay.data, "logs", "runner-1.log")).read()
    found = []
    for sweep in sweeps:
        at = [re.search(rf'ts=(\S+) .*msg="{what}".* trial={sweep}/0[. ]', log).group(1)
              for what in ("trial claimed", "member trains")]
        found.append((seconds(at[1]) - seconds(at[0])) * 1e3)
    return found


def training_ms(assay, folder):
    """Of 64 tiny trials by assay-train itself, in one group."""
    info = assay.call("GET", "/v1/datasets/digits")
    info["paths"] = {"table": os.path.join(ROOT, "examples", "digits.csv")}
    members = []
    for i in range(TINY):
        path = os.path.join(folder, str(i))
        members.append({"id": f"t/{i}.1", "train": train("digits", 0.01 + i / 1e3), "seed": str(i), "report": f"{path}.report",
                        "checkpoints": f"{path}.checkpoints", "artifacts": f"{path}.artifacts"})
    job = os.path.join(folder, "job.json")
    json.dump({"dataset": info, "slots": TINY, "members": members}, open(job, "w"))
    start = time.monotonic()
    subprocess.run([os.path.join(BUILD, "trial-runner", "train", "assay-train"), job], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return (time.monotonic() - start) * 1e3


def main():
    with Assay(runners=1, slots=1) as assay, tempfile.TemporaryDirectory() as folder:
        wide = os.path.join(folder, "wide.csv")
        write_wide(wide)
        assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")
        assay.cli("data", "add", "wide", wide, "--target", "class")
        for data in ("digits", "wide"):
            run(assay, f"{data}-warm", data, 1, 2)
            names = [f"{data}-start-{i}" for i in range(STARTS)]
            for name in names:
                run(assay, name, data, 1, 2)
            tell(f"claim to first step, {data}", first_steps(assay, names))
        alone = [training_ms(assay, folder) for _ in range(3)]
        tell(f"assay-train by itself, {TINY} tiny trials", alone)
        for group in (1, 8, TINY):
            walls = [run(assay, f"tiny-{group}-{i}", "digits", TINY, group) for i in range(SWEEPS)]
            tell(f"sweep of {TINY} tiny trials, groups of {group}", walls)
            tell(f"service for each trial, groups of {group}",
                 [(w - statistics.median(alone)) / TINY for w in walls])


main()
