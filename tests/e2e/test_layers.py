#!/usr/bin/env python3
"""Stacking in layers: the sweep that is made, the ensemble of both layers, and models of several layers."""
import csv
import json
import os
import random

from harness import Assay, Problem


def table(assay, name, rows=300):
    """Two moons, roughly: a linear model is not enough."""
    rng = random.Random(name)
    path = os.path.join(assay.data, name + ".csv")
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["a", "b", "colour", "y"])
        for _ in range(rows):
            a, b, c = rng.uniform(-2, 2), rng.uniform(-2, 2), rng.choice(["red", "blue"])
            inside = a * a + b * b + rng.gauss(0, 0.5) + (c == "red") < 2.5
            out.writerow([round(a, 4), round(b, 4), c, "in" if inside else "out"])
    assay.cli("data", "add", name, path, "--target", "y")
    return path


def sweep(assay, name, validation, trials=3):
    doc = {"name": name, "metric": {"name": "val_log_loss", "goal": "minimize"},
           "parameters": {"kind": {"type": "categorical", "values": ["mlp", "extra_trees"]},
                          "leaf": {"type": "float", "min": 2, "max": 20, "when": {"kind": "extra_trees"}},
                          "width": {"type": "int", "min": 4, "max": 16, "when": {"kind": "mlp"}}},
           "limits": {"max_trials": trials}, "search": {"method": "random", "seed": 5},
           "ensemble": {"method": "greedy", "size": 8},
           "trial": {"train": {"dataset": "moons", "epochs": 12, "model": {
               "kind": "${kind}", "layers": ["${width}"], "min_child_weight": "${leaf}", "n_estimators": 12},
               "validation": validation}}}
    assay.call("POST", "/v1/sweeps", doc)
    assay.wait_ended(name)


def predictions(assay, model, path):
    out = os.path.join(assay.data, model + ".csv")
    assay.cli("predict", model, "--data", path, "--output", out, "--proba")
    return list(csv.DictReader(open(out)))


def layers(assay, path):
    sweep(assay, "base", {"folds": 3}, trials=5)
    assay.cli("ensemble", "base", "--method", "stacking", "--layers", "2", "--size", "2")
    made = assay.call("GET", "/v1/sweeps/base-layer2")
    stack = made["document"]["trial"]["train"]["stack"]
    trials = assay.trials("base-layer2")
    below = {f"base/{t['number']}": t for t in assay.trials("base")}
    assert made["state"] == "completed" and len(stack) == 2 and len(trials) == 2, (made, trials)
    assert [t["params"] for t in sorted(trials, key=lambda t: t["number"])] == [below[s]["params"] for s in stack], stack
    # one ensemble of both layers, judged as all are
    asked = [e for e in assay.call("GET", "/v1/sweeps/base/ensembles")["items"] if len(e["request"]["sweeps"]) == 2]
    assert len(asked) == 1 and asked[0]["ensemble"]["folds"] == 5, asked
    asked = asked[0]
    # a trial is a model that needs nothing beside its file
    number = min(trials, key=lambda t: t["value"])["number"]
    assay.cli("models", "add", f"base-layer2/{number}", "deep")
    rows = predictions(assay, "deep", path)
    assert len(rows) == 300, rows[0]
    # so is an ensemble of both
    assay.cli("models", "add", "base", "--ensemble", str(asked["number"]), "both")
    assert len(predictions(assay, "both", path)) == 300
    version = json.loads(assay.cli("models", "show", "both", "--json").stdout)["items"][0]
    assert abs(version["metrics"]["log_loss"] - asked["ensemble"]["value"]) < 1e-9, version


def third_layer(assay, path):
    """What the second layer predicts is seen by the third; its model goes through all of them."""
    assay.cli("ensemble", "base-layer2", "--method", "stacking", "--layers", "2", "--size", "1")
    made = assay.call("GET", "/v1/sweeps/base-layer3")
    assert made["document"]["trial"]["train"]["stack"][0].startswith("base-layer2/"), made
    assay.cli("models", "add", made["id"] + "/0", "deeper")
    rows = predictions(assay, "deeper", path)
    right = sum((r["prediction"] == t["y"]) for r, t in zip(rows, csv.DictReader(open(path))))
    assert right > 220, right


def refusal(assay, doc):
    try:
        assay.call("POST", "/v1/sweeps", doc)
    except Problem as e:
        return json.dumps(e.body)
    raise AssertionError("the document was not refused")


def refused(assay):
    sweep(assay, "part", {"fraction": 0.3}, trials=1)
    wrong = assay.cli("ensemble", "part", "--method", "stacking", "--layers", "2", check=False)
    assert wrong.returncode == 1 and "hold out a part of the rows" in wrong.stderr, wrong.stderr
    wrong = assay.cli("ensemble", "base", "--method", "greedy", "--layers", "2", check=False)
    assert wrong.returncode != 0 and "--layers is of --method stacking" in wrong.stderr, wrong.stderr
    doc = assay.call("GET", "/v1/sweeps/base-layer2")["document"]
    train = doc["trial"]["train"]
    for stack, why in ((["part/0"], "found a trial that held out a part of the rows"),
                       (["base/99"], "there is no trial 'base/99'"), (["base/0", "base/0"], "twice"),
                       (["base"], "expected a trial: SWEEP/NUMBER"), ([], "found 0 trials")):
        train["stack"] = stack
        answer = refusal(assay, doc)
        assert why in answer and "/trial/train/stack" in answer, answer
    train["stack"] = ["base/0"]
    train["validation"] = {"fraction": 0.3}
    assert "found without validation.folds" in refusal(assay, doc)


def main():
    with Assay(runners=1, slots=2) as assay:
        path = table(assay, "moons")
        layers(assay, path)
        third_layer(assay, path)
        refused(assay)


main()
