#!/usr/bin/env python3
"""Is a second layer of stacking worth its processor time, on rows that no trial saw?

    bench/layers.py BUILD DATA FOLDER [--sets NAMES] [--rows 2000] [--test 4000] [--trials 12] [--seed 1]

BUILD is a build folder, DATA holds adult_train.csv, california_housing.csv, letter.csv, digits.csv; FOLDER is made. A
sweep over four kinds of models in five folds is the first layer. `assay ensemble SWEEP --method stacking --layers 2`
trains the second one. Each ensemble of one and of both layers becomes a model, and predicts test rows. Scores are the log loss, of
numbers the RMSE, with 90 % intervals from the test rows; the difference is that to the greedy ensemble of one layer
(positive: better). Prints a Markdown table, and processor seconds of each layer."""
import argparse
import csv
import math
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "models"))
from driver import Models, installation, processor_seconds, revision, write_table  # noqa: E402

FOLDS = 5
SETS = {"adult": ("adult_train.csv", -1, False, "classification"),
        "california": ("california_housing.csv", 8, True, "regression"),
        "letter": ("letter.csv", 0, True, "classification"),
        "digits": ("digits.csv", -1, True, "classification")}
WAYS = (("best trial", "bucketing", 1, False), ("greedy", "greedy", 1, False), ("stacking", "stacking", 1, False),
        ("greedy, second layer alone", "greedy", 2, True), ("greedy, both layers", "greedy", 2, False),
        ("stacking, both layers", "stacking", 2, False))


def table(data, name, rows, test, seed):
    file, target, has_header, task = SETS[name]
    with open(os.path.join(data, file), newline="") as f:
        lines = [r for r in csv.reader(f, skipinitialspace=True) if len(r) > 1]
    header = lines.pop(0) if has_header else [f"c{i}" for i in range(len(lines[0]))]
    random.Random(seed).shuffle(lines)
    if len(lines) < rows + test:
        rows = len(lines) * 2 // 3
    return header, header[target], task, lines[:rows], lines[rows:rows + test]


def document(name, task, trials, seed):
    of_classes = task == "classification"
    linear = "logistic" if of_classes else "linear"
    return {"name": name, "metric": {"name": "val_log_loss" if of_classes else "val_rmse", "goal": "minimize"},
            "parameters": {
                "kind": {"type": "categorical", "values": [linear, "mlp", "boosted_trees", "extra_trees"]},
                "lr": {"type": "float", "min": 0.001, "max": 0.03, "scale": "log", "when": {"kind": [linear, "mlp"]}},
                "width": {"type": "int", "min": 32, "max": 128, "when": {"kind": "mlp"}},
                "rate": {"type": "float", "min": 0.03, "max": 0.2, "scale": "log", "when": {"kind": "boosted_trees"}},
                "leaves": {"type": "int", "min": 4, "max": 32, "scale": "log", "when": {"kind": "boosted_trees"}},
                "leaf_weight": {"type": "float", "min": 1, "max": 10, "scale": "log", "when": {"kind": ["boosted_trees", "extra_trees"]}}},
            "search": {"method": "random", "seed": seed}, "limits": {"max_trials": trials},
            "ensemble": {"method": "greedy", "size": 16},
            "trial": {"train": {"dataset": name, "epochs": 30, "patience": 5, "validation": {"folds": FOLDS, "seed": 1},
                                "optimizer": {"kind": "adamw", "lr": "${lr}"},
                                "model": {"kind": "${kind}", "layers": ["${width}"], "n_estimators": 150,
                                          "learning_rate": "${rate}", "max_leaves": "${leaves}",
                                          "min_child_weight": "${leaf_weight}", "early_stopping_rounds": 20}}}}


def losses(columns, truth, of_classes):
    if of_classes:
        return [-math.log(max(float(columns["probability_" + t][i]), 1e-7)) for i, t in enumerate(truth)]
    return [(float(p) - float(t)) ** 2 for p, t in zip(columns["prediction"], truth)]


def mean_and_half(values):
    n, m = len(values), sum(values) / len(values)
    return m, 1.645 * math.sqrt(sum((v - m) ** 2 for v in values) / (n - 1) / n)


def score(values, of_classes):
    m, half = mean_and_half(values)
    return (m, half) if of_classes else (math.sqrt(m), half / (2 * math.sqrt(m)))  # delta method


def ensemble(assay, sweeps, method):
    body = {"method": method, "size": 16, **({"sweeps": sweeps[1:]} if len(sweeps) > 1 else {})}
    number = assay.call("POST", f"/v1/sweeps/{sweeps[0]}/ensembles", body)["number"]
    path = f"/v1/sweeps/{sweeps[0]}/ensembles/{number}"
    return number, assay.wait(lambda: (e := assay.call("GET", path)["ensemble"])["state"] != "pending" and e, "an ensemble")


def compare(models, name, target, task, rows, test, header, args):
    assay, of_classes = models.assay, task == "classification"
    train_path, test_path = (os.path.join(models.folder, f"{name}-{part}.csv") for part in ("train", "test"))
    write_table(train_path, header, rows)
    write_table(test_path, header, test)
    models.add_data(name, train_path, target, task)
    _, _, (_, first_s) = models.sweep(document(name, task, args.trials, args.seed))
    models.ensemble(name)
    before, start = processor_seconds(assay.up.pid), time.monotonic()
    assay.cli("ensemble", name, "--method", "stacking", "--layers", "2")
    second_s = processor_seconds(assay.up.pid) - before
    truth = [r[header.index(target)] for r in test]
    base, out = None, []
    for label, method, layers, alone in WAYS:
        sweeps = [f"{name}-layer2"] if alone else [name, f"{name}-layer2"][:layers]
        number, e = ensemble(assay, sweeps, method)
        model = f"{name}-{len(out)}"
        assay.cli("models", "add", sweeps[0], "--ensemble", str(number), model)
        size = assay.call("GET", f"/v1/models/{model}/versions/1")["size"]
        own = losses(models.rows_of(model, test_path), truth, of_classes)
        base = own if label == "greedy" else base
        out.append((label, own, e["value"], size))
    for label, own, value, size in out:
        s, half = score(own, of_classes)
        gain, gain_half = mean_and_half([b - o for b, o in zip(base, own)])
        if not of_classes:
            scale = 2 * math.sqrt(sum(base) / len(base))
            gain, gain_half = gain / scale, gain_half / scale
        print(f"| {name} | {label} | {s:.5g} ± {half:.2g} | {value:.5g} | {gain:.2g} ± {gain_half:.2g} | {size / 1e6:.1f} |", flush=True)
    print(f"<!-- {name}: {len(rows)} rows, {len(test)} test rows; processor seconds: first layer {first_s:.0f}, "
          f"second {second_s:.0f} ({time.monotonic() - start:.0f} s of the clock) -->", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build"), p.add_argument("data"), p.add_argument("folder")
    p.add_argument("--sets", default=",".join(SETS))
    for name, usual in (("rows", 2000), ("test", 4000), ("trials", 12), ("seed", 1)):
        p.add_argument("--" + name, type=int, default=usual)
    args = p.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    print(f"<!-- {revision()} -->\n| set | ensemble | test | cross-fitted | gain over greedy | MB |\n| --- | --- | --- | --- | --- | --- |")
    with installation(args.build) as assay:
        models = Models(assay, args.folder)
        for name in args.sets.split(","):
            header, target, task, rows, test = table(args.data, name, args.rows, args.test, args.seed)
            compare(models, name, target, task, rows, test, header, args)


main()
