#!/usr/bin/env python3
"""Ensembles that train: the sweep that they make, its trials, and the model that predicts as they recorded."""
import contextlib
import csv
import json
import os
import random
import signal

from harness import ENDED, Assay


def table(assay, name, rows=400):
    """Two moons, roughly: a linear model is not enough."""
    rng = random.Random(name)
    path = os.path.join(assay.data, name + ".csv")
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["a", "b", "y"])
        for _ in range(rows):
            a, b = rng.uniform(-2, 2), rng.uniform(-2, 2)
            out.writerow([a, b, "in" if a * a + b * b + rng.gauss(0, 0.3) < 2 else "out"])
    assay.cli("data", "add", name, path, "--target", "y")
    return path


def run(assay, name, train, parameters):
    doc = {"name": name, "metric": {"name": "val_log_loss", "goal": "minimize"}, "parameters": parameters,
           "limits": {"max_trials": 3}, "search": {"method": "random", "seed": 1}, "trial": {"train": train}}
    assay.call("POST", "/v1/sweeps", doc)
    assay.wait_ended(name)
    return assay.call("GET", f"/v1/sweeps/{name}")


def predictions(assay, model, path):
    out = os.path.join(assay.data, model + ".csv")
    assay.cli("predict", model, "--data", path, "--output", out, "--proba")
    return list(csv.DictReader(open(out)))


def snapshot(assay):
    path = table(assay, "ring")
    s = run(assay, "nets", {"dataset": "ring", "epochs": 9, "patience": 5, "model": {"layers": [16]},
                            "optimizer": {"kind": "adamw", "lr": "${lr}"}},
            {"lr": {"type": "float", "min": 1e-3, "max": 0.1, "scale": "log"}})
    assay.cli("ensemble", "nets", "--method", "snapshot", "--size", "3")
    made = assay.call("GET", "/v1/sweeps/nets-snapshot")
    trials = assay.trials("nets-snapshot")
    assert made["state"] == "completed" and len(trials) == 1, made
    assert trials[0]["params"]["lr"] == s["best"]["params"]["lr"], trials
    assert made["document"]["trial"]["train"]["schedule"] == {"kind": "cosine", "cycles": 3, "snapshots": 3}, made
    assay.cli("models", "add", "nets-snapshot/0", "snap")
    version = json.loads(assay.cli("models", "show", "snap", "--json").stdout)["items"][0]
    assert abs(version["metrics"]["val_log_loss"] - trials[0]["value"]) < 1e-6, (version, trials)
    assert len(predictions(assay, "snap", path)) == 400
    wrong = assay.cli("ensemble", "nets", "--method", "snapshot", "--size", "65", check=False)
    assert wrong.returncode != 0 and "1 to 64 snapshots" in wrong.stderr, wrong
    wrong = assay.cli("ensemble", "nets", "--method", "snapshot", "--size", "20", check=False)
    assert wrong.returncode != 0 and "cycles: found 20" in wrong.stderr, wrong


def boosting(assay):
    """Each stage a trial with the model of all before it; the ensemble says where to stop."""
    path = os.path.join(assay.data, "ring.csv")
    run(assay, "weak", {"dataset": "ring", "epochs": "${n}", "model": {"layers": [8]}, "optimizer": {"lr": 0.01}},
        {"n": {"type": "int", "min": 3, "max": 5}})
    assay.cli("ensemble", "weak", "--method", "boosting", "--size", "4")
    made = assay.call("GET", "/v1/sweeps/weak-boosting")
    trials = sorted(assay.trials("weak-boosting"), key=lambda t: t["number"])
    assert made["state"] == "completed" and len(trials) == 4, (made, trials)
    assert [t["params"]["stage"] for t in trials] == [0, 1, 2, 3], trials
    assert min(t["value"] for t in trials[1:]) < trials[0]["value"], trials
    e = assay.call("GET", "/v1/sweeps/weak-boosting/ensemble")
    assert e["state"] == "ready" and e["method"] == "bucketing" and e["folds"] == 5, e
    assay.cli("models", "add", "weak-boosting/3", "sum")
    assert len(predictions(assay, "sum", path)) == 400
    manifest = json.loads(assay.cli("models", "show", "sum", "--json").stdout)["items"][0]
    assert abs(manifest["metrics"]["val_log_loss"] - trials[3]["value"]) < 1e-6, (manifest, trials)
    chosen = json.loads(assay.cli("models", "add", "weak-boosting", "chosen", "--json").stdout)
    best = min(trials, key=lambda t: t["value"])["number"]
    assert chosen["trials"] == [best] and best > 0, (chosen, trials)
    wrong = assay.cli("ensemble", "weak", "--method", "boosting", "--size", "257", check=False)
    assert wrong.returncode != 0 and "256" in wrong.stderr, wrong


def stages(name):
    return {"name": name, "metric": {"name": "val_log_loss", "goal": "minimize"}, "ensemble": False,
            "parameters": {"stage": {"type": "int", "min": 0, "max": 2}}, "search": {"method": "grid", "seed": 5},
            "limits": {"max_concurrent_trials": 1},
            "trial": {"train": {"dataset": "ring", "epochs": 5000, "model": {"layers": [8]}, "optimizer": {"lr": 0.001},
                                "report_every": 100, "boost": {"stage": "${stage}"}}}}


def killed(assay):
    """A stage whose process is killed gets its base again, and the sum ends with the numbers of one that was left alone."""
    def ended(name):
        assay.wait_ended(name)
        trials = sorted(assay.trials(name), key=lambda t: t["number"])
        assert [t["state"] for t in trials] == ["completed"] * 3, trials
        return [t["value"] for t in trials], sum(t["restarts"] for t in trials)

    assay.call("POST", "/v1/sweeps", stages("alone"))
    alone, _ = ended("alone")
    for i in range(5):  # until the signal comes while a stage trains
        name = f"killed-{i}"
        assay.call("POST", "/v1/sweeps", stages(name))
        assay.wait(lambda: assay.sweep(name)["counts"]["completed"] >= 1, "the first stage")
        assay.wait(lambda: kill_trainer(assay) or assay.sweep(name)["state"] in ENDED, "a stage that trains")
        values, restarts = ended(name)
        assert values == alone, (values, alone)
        if restarts:
            return
    raise AssertionError("no stage was killed")


def kill_trainer(assay):
    found = assay.processes("assay-train")
    for pid in found[:1]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return found


def buckets(assay):
    """Two regions with opposite rules, and models of one input each: each region gets its own trial."""
    rng = random.Random("regions")
    path = os.path.join(assay.data, "regions.csv")
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["a", "b", "region", "y"])
        for i in range(400):
            a, b, region = rng.gauss(0, 1), rng.gauss(0, 1), ("north", "south")[i % 2]
            out.writerow([a, b, region, "in" if (a if i % 2 else b) > 0 else "out"])
    assay.cli("data", "add", "regions", path, "--target", "y")
    doc = {"name": "regional", "metric": {"name": "val_error", "goal": "minimize"},
           "parameters": {"epochs": {"type": "int", "min": 1, "max": 12}}, "limits": {"max_trials": 5},
           "search": {"method": "random", "seed": 3}, "ensemble": {"method": "bucketing", "by": "region"},
           "trial": {"train": {"dataset": "regions", "epochs": "${epochs}", "model": {"layers": [16]},
                               "optimizer": {"lr": 0.02}}}}
    assay.call("POST", "/v1/sweeps", doc)
    assay.wait_ended("regional")
    e = assay.call("GET", "/v1/sweeps/regional/ensemble")
    combine = e["combine"]
    assert e["state"] == "ready" and combine["kind"] == "by" and combine["column"] == "region", e
    assert sorted(b["value"] for b in combine["buckets"]) == ["north", "south"] and "number" in combine["other"], combine
    asked = assay.cli("ensemble", "regional", "--method", "greedy", "--json")
    assert json.loads(asked.stdout)["ensemble"]["combine"]["kind"] == "mean", asked
    again = json.loads(assay.cli("ensemble", "regional", "--method", "bucketing", "--json").stdout)
    assert again["ensemble"]["combine"] == combine, again
    kept = json.loads(assay.cli("models", "add", "regional", "r", "--ensemble", str(again["number"]), "--json").stdout)
    assert kept["lineage"]["ensemble"]["combine"] == combine and len(predictions(assay, "r", path)) == 400, kept


def main():
    with Assay(runners=1) as assay:
        for step in (snapshot, boosting, killed, buckets):
            step(assay)
            print(f"{step.__name__}: ok", flush=True)


main()
