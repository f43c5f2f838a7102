#!/usr/bin/env python3
"""Figures say what they are: nothing is derived from the name of a metric; whole numbers that become classes
are announced; each class is held out in proportion, and a metric without a value names the class; the ensemble
is chosen by the sweep's metric and compared by one rule."""
import csv
import json
import os
import random

from harness import Assay


def run(assay, doc, completed=None):
    sweep = assay.call("POST", "/v1/sweeps", doc)["id"]
    assay.wait_ended(sweep)
    s = assay.call("GET", f"/v1/sweeps/{sweep}")
    if completed is not None:
        assert s["counts"]["completed"] == completed, (s, [t["reason"] for t in assay.trials(sweep)])
    return s


def own_metric(assay):
    """A program may report any quantity under any name; 1 - 7 is no accuracy."""
    command = ["sh", "-c", "echo '{\"val_error\": 7}' >> $ASSAY_REPORT"]
    s = run(assay, {"name": "own", "metric": {"name": "val_error", "goal": "minimize"},
                    "parameters": {"x": {"type": "float", "min": 0, "max": 1}},
                    "limits": {"max_trials": 2}, "trial": {"command": command}}, 2)
    lines = assay.cli("watch", s["id"]).stdout.splitlines()
    best = [line for line in lines if line.startswith("Best trial")]
    assert best and best[0].split() == ["Best", "trial", "val_error", "7,", "trial", "0"], lines
    assert not [line for line in lines if "accuracy" in line or "held-out" in line], lines


def table(assay, name, target, task=()):
    rng = random.Random(name)
    path = os.path.join(assay.data, name + ".csv")
    with open(path, "w", newline="") as f:
        rows = csv.writer(f)
        rows.writerow(["a", "b", "y"])
        for i in range(400):
            rows.writerow([rng.gauss(0, 1), rng.gauss(0, 1) + (2 if target(i) in ("yes", 1) else 0), target(i)])
    return assay.cli("data", "add", name, path, "--target", "y", *task).stderr


def classes_are_announced(assay):
    said = table(assay, "whole", lambda i: i % 7)
    assert "7 whole numbers are taken as classes" in said and "--task regression" in said, said
    assert "--task regression" in assay.cli("data", "show", "whole").stdout
    for name, target, task in (("numbers", lambda i: i % 7, ["--task", "regression"]),
                               ("asked", lambda i: i % 7, ["--task", "classification"]),
                               ("words", lambda i: "abc"[i % 3], [])):
        said = table(assay, name, target, task)
        assert "taken as classes" not in said, said
    assert "--task regression" not in assay.cli("data", "show", "words").stdout


def rare(name, **validation):
    return {"name": name, "metric": {"name": "val_auc", "goal": "maximize"}, "search": {"method": "grid"},
            "parameters": {"s": {"type": "int", "min": 0, "max": 5}}, "limits": {"max_failed_trials": 100},
            "trial": {"train": {"dataset": "rare", "epochs": 1, "validation": {"fraction": 0.05, "seed": "${s}", **validation}}}}


def rare_classes(assay):
    """4 of 400 rows are 'yes', and 20 are held out: 4 splits of 5 at random hold out none of them."""
    table(assay, "rare", lambda i: "yes" if i % 100 == 0 else "no")
    s = run(assay, rare("stratified"), 6)
    assert s["document"]["trial"]["train"]["validation"]["split"] == "stratified", s["document"]
    s = run(assay, rare("random", split="random"))
    failed = [t["reason"] for t in assay.trials(s["id"]) if t["state"] == "failed"]
    assert failed, "with these seeds some splits have none"
    for why in failed:
        assert "val_auc has no value: none of the 20 held-out rows is of class 'yes'" in why, why


def ensemble(assay):
    table(assay, "two", lambda i: "yes" if i % 3 == 0 else "no")
    s = run(assay, {"name": "auc", "metric": {"name": "val_auc", "goal": "maximize"},
                    "parameters": {"lr": {"type": "float", "min": 1e-4, "max": 0.1, "scale": "log"}},
                    "limits": {"max_trials": 8}, "search": {"method": "random", "seed": 1},
                    "trial": {"train": {"dataset": "two", "epochs": 3, "optimizer": {"kind": "adamw", "lr": "${lr}"}}}}, 8)
    e = assay.call("GET", f"/v1/sweeps/{s['id']}/ensemble")
    assert (e["metric"], e["goal"], e["is_sweep_metric"], e["rows"]) == ("auc", "maximize", True, 100), e
    reported = {t["number"]: t["value"] for t in assay.trials(s["id"])}
    for m in e["members"]:  # alone, on all held-out rows: what the trial itself reported
        assert abs(m["value"] - reported[m["number"]]) < 1e-6, (m, reported)
    assert e["best_single"]["number"] == s["best"]["number"], (e, s["best"])
    assert set(e["best_single"]["picked"]) <= set(reported), e
    gain = e["gain"]
    assert abs(gain["value"] - (e["value"] - e["best_single"]["value"])) < 1e-9, e
    assert gain["low"] <= gain["value"] <= gain["high"] and gain["probability"] == 0.9, e
    assert gain["within_noise"] == (gain["low"] <= 0 <= gain["high"]), e
    assert e["recommended"] == ("ensemble" if gain["value"] > 0 and len(e["members"]) > 1 else "single"), e
    said = assay.cli("ensemble", s["id"]).stderr
    assert "Recommended" in said and "90 % interval" in said and "all 100 held-out rows" in said, said
    assert ("within the noise" in said) == gain["within_noise"], said


def asked(assay):
    """Other methods after the end, and over two sweeps; the second time it is the one that is kept."""
    other = {"name": "auc-too", "metric": {"name": "val_auc", "goal": "maximize"},
             "parameters": {"lr": {"type": "float", "min": 1e-4, "max": 0.1, "scale": "log"}},
             "limits": {"max_trials": 3}, "search": {"method": "random", "seed": 2},
             "ensemble": {"method": "average", "size": 2},
             "trial": {"train": {"dataset": "two", "epochs": 3, "optimizer": {"kind": "adamw", "lr": "${lr}"}}}}
    s = run(assay, other, 3)
    e = assay.call("GET", f"/v1/sweeps/{s['id']}/ensemble")
    assert (e["method"], e["size"], len(e["members"])) == ("average", 2, 2), e
    a = json.loads(assay.cli("ensemble", "auc", s["id"], "--method", "stacking", "--non-negative", "--json").stdout)
    e = a["ensemble"]
    assert (a["number"], a["request"]["sweeps"], e["state"]) == (1, ["auc", s["id"]], "ready"), a
    assert e["combine"]["kind"] == "linear" and e["combine"]["inputs"] == "log" and len(e["combine"]["biases"]) == 2, e
    assert {m["sweep"] for m in e["members"]} <= {"auc", s["id"]} and all(m["weight"] > 0 for m in e["members"]), e
    assert e["candidates"] == 11 and e["folds"] == 5, e
    again = json.loads(assay.cli("ensemble", "auc", s["id"], "--method", "stacking", "--non-negative", "--json").stdout)
    assert again == a
    said = assay.cli("ensemble", "auc", "--method", "bucketing")
    assert "bucketing, 1 model of 8" in said.stderr and "cut into 5 folds" in said.stderr, said.stderr
    other = json.loads(assay.cli("ensemble", "auc", "--metric", "log_loss", "--json").stdout)
    e = other["ensemble"]
    assert other["request"]["metric"] == e["metric"] == "log_loss" and not e["is_sweep_metric"], other
    assert e["goal"] == "minimize" and "val_auc" in e["metric_reason"], e
    assert (e["recommended"] == "ensemble") == (len(e["members"]) > 1 and e["gain"]["value"] > 0), e
    same = json.loads(assay.cli("ensemble", "auc", "--metric", "auc", "--json").stdout)["ensemble"]
    assert same["is_sweep_metric"] and same["value"] == assay.call("GET", "/v1/sweeps/auc/ensemble")["value"], same
    wrong = assay.cli("ensemble", "auc", "--metric", "rmse", check=False)
    assert "There is no ensemble" in wrong.stderr and "expected a metric of classes" in wrong.stderr, wrong
    wrong = assay.cli("ensemble", "auc", "--metric", "val_auc", check=False)
    assert wrong.returncode != 0 and "/metric" in wrong.stderr, wrong
    table = assay.cli("ensemble", "auc", "--list").stdout.splitlines()
    assert len(table) == 6 and "stacking" in table[5] and "bucketing" in table[4], table
    wrong = assay.cli("ensemble", "auc", "--method", "voting", check=False)
    assert wrong.returncode != 0 and "bucketing" in wrong.stderr, wrong


def bagging(assay):
    """The best configuration on four samples: four models that differ, in one process, and their mean."""
    assay.cli("ensemble", "auc", "--method", "bagging", "--size", "4")
    s = assay.call("GET", "/v1/sweeps/auc-bagging")
    best = assay.call("GET", "/v1/sweeps/auc")["best"]
    trials = assay.trials("auc-bagging")
    assert s["state"] == "completed" and len(trials) == 4, s
    assert {t["params"]["resample"] for t in trials} == {1, 2, 3, 4}, trials
    assert {t["params"]["lr"] for t in trials} == {best["params"]["lr"]}, trials
    assert len({t["metrics"]["val_loss"] for t in trials}) == 4, trials
    e = assay.call("GET", "/v1/sweeps/auc-bagging/ensemble")
    assert (e["method"], len(e["members"])) == ("average", 4) and all(m["weight"] == 0.25 for m in e["members"]), e
    assert abs(e["value"] - e["value_select"]) < 1e-9, "a mean of all is not selected"
    wrong = assay.cli("ensemble", "auc", "--method", "bagging", "--size", "65", check=False)
    assert wrong.returncode != 0 and "1 to 64" in wrong.stderr, wrong


def loss(assay):
    """The trainer's val_loss is the log loss of its predictions, which its values show."""
    s = run(assay, {"name": "loss", "metric": {"name": "val_loss", "goal": "minimize"},
                    "parameters": {"lr": {"type": "float", "min": 1e-4, "max": 0.01, "scale": "log"}},
                    "limits": {"max_trials": 4}, "search": {"method": "random", "seed": 1},
                    "trial": {"train": {"dataset": "two", "epochs": 2, "optimizer": {"kind": "adamw", "lr": "${lr}"}}}}, 4)
    e = assay.call("GET", f"/v1/sweeps/{s['id']}/ensemble")
    assert e["metric"] == "log_loss" and e["is_sweep_metric"] and "val_loss" in e["metric_reason"], e


def main():
    with Assay(runners=2) as assay:
        for step in (own_metric, classes_are_announced, rare_classes, ensemble, asked, bagging, loss):
            step(assay)
            print(f"{step.__name__}: ok", flush=True)


main()
