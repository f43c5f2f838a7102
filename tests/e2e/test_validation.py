#!/usr/bin/env python3
"""Columns that hold rows out, weights, patience and folds through every layer: CLI, server, groups, runners, trainer."""
import os
import random
import sys
import tempfile

from harness import Assay, Problem


def table(path):
    """120 rows; the class is the sign of a + b. Groups of four rows, a part, a weight."""
    rng = random.Random(4)
    with open(path, "w", encoding="utf-8") as f:
        f.write("a,b,who,part,w,label\n")
        for i in range(120):
            a, b = rng.gauss(0, 1), rng.gauss(0, 1)
            part = "validation" if i % 4 == 0 else "train"
            f.write(f"{a:.4f},{b:.4f},g{i // 4},{part},{1 + i % 3},{'up' if a + b > 0 else 'down'}\n")


def document(name, validation, metric="val_error", goal="minimize", **train):
    return {"name": name, "metric": {"name": metric, "goal": goal},
            "parameters": {"lr": {"type": "float", "min": 0.01, "max": 0.05}},
            "limits": {"max_trials": 4}, "search": {"seed": 2},
            "trial": {"train": {"dataset": "people", "epochs": 12, "optimizer": {"lr": "${lr}"},
                                "validation": validation, **train}}}


def run(assay, *args, **kw):
    sweep = assay.call("POST", "/v1/sweeps", document(*args, **kw))["id"]
    assay.wait_ended(sweep)
    trials = assay.trials(sweep)
    assert [t["state"] for t in trials] == ["completed"] * 4, trials
    return trials


def refused(assay, part, *args, **kw):
    try:
        assay.call("POST", "/v1/sweeps", document(*args, **kw))
    except Problem as e:
        assert part in str(e.body), e.body
        return
    raise AssertionError(f"{args} was accepted")


def check_models(assay, path):
    """A trial with folds, and an ensemble of such trials, are models: all folds' trainings are in them."""
    doc = document("kinds", {"folds": 3}, model={"kind": "${kind}", "layers": [4]})
    doc["parameters"]["kind"] = {"type": "categorical", "values": ["mlp", "logistic"]}
    doc["ensemble"] = {"method": "average", "size": 4}
    sweep = assay.call("POST", "/v1/sweeps", doc)["id"]
    assay.wait_ended(sweep)
    kinds = {t["number"]: t["params"]["kind"] for t in assay.trials(sweep)}
    assert len(set(kinds.values())) == 2, kinds
    assay.cli("models", "add", "kinds/1", "one")
    assay.cli("models", "add", "--use", "ensemble", "kinds", "all")
    for name, trials in (("one", 1), ("all", 4)):
        members = assay.call("GET", f"/v1/models/{name}/versions/1")["members"]
        assert len(members) == trials and all(m["kind"] == kinds[m["trial"]] for m in members), members
        rows = assay.cli("predict", name, "--data", path).stdout.splitlines()[1:]
        with open(path, encoding="utf-8") as f:
            truth = [line.rstrip().rsplit(",", 1)[1] for line in f][1:]
        assert sum(r != t for r, t in zip(rows, truth, strict=True)) < 24, rows


def weighted(assay, name, trials):
    """The ensemble weighs rows as the trials' metrics do: each member alone has the value that it reported."""
    e = assay.call("GET", f"/v1/sweeps/{name}/ensemble")
    reported = {t["number"]: t["value"] for t in trials}
    assert e["state"] == "ready" and e["weighted"] is True and e["is_sweep_metric"], e
    assert all(abs(m["value"] - reported[m["number"]]) < 1e-6 for m in e["members"]), (e["members"], reported)


with tempfile.TemporaryDirectory() as folder, Assay() as assay:
    path = os.path.join(folder, "people.csv")
    table(path)
    assay.cli("data", "add", "people", path, "--target", "label")
    for name, validation in (("words", {"column": "part"}), ("time", {"order": "w", "last": 0.2}),
                             ("groups", {"groups": "who", "fraction": 0.3})):
        trials = run(assay, name, validation, weights="w")
        assert all(0 <= t["metrics"]["val_error"] < 0.6 for t in trials), trials
        weighted(assay, name, trials)
    trials = run(assay, "quantile", {"column": "part"}, "val_average_precision", "maximize", patience=2)
    assert all("best_step" in t["metrics"] for t in trials), trials
    trials = run(assay, "folds", {"folds": 3}, "val_brier")
    assert all(t["metrics"]["val_brier_std"] > 0 for t in trials), trials
    check_models(assay, path)
    assert "weighted" not in assay.call("GET", "/v1/sweeps/folds/ensemble")
    run(assay, "weighted-folds", {"folds": 3}, "val_brier", weights="w")
    assert assay.call("GET", "/v1/sweeps/weighted-folds/ensemble")["weighted"] is True
    refused(assay, "/trial/train/weights", "bad", {"column": "part"}, weights="weight")
    refused(assay, "expected numbers", "bad", {"column": "part"}, weights="who")
    refused(assay, "found beside column", "bad", {"column": "part", "folds": 3})
    refused(assay, "never reports", "bad", {"column": "part"}, "val_pinball_90")
    print("ok", file=sys.stderr)
