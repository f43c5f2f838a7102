#!/usr/bin/env python3
"""The validation loss that each strategy of a large trial ends with, beside plain training with the same samples.

    bench/losses.py TABLE [--strategy PART] [--seeds N] [--build BUILD]

TABLE: digits, adult, letter, california (of /work/shared/data, or --data FOLDER). For each optimizer and strategy one
sweep of N seeds (3), each trial with 4 ranks of one slot: the document is the same but for `distributed`. One line of JSON
for each: the mean of the seeds' last validation losses and errors, and their ratio to the plain ones. Rates were chosen for
plain training and are not tuned for strategies: the question is what the defaults cost."""
import argparse
import json
import os
import re
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

SHAPES = {  # epochs, batch_size, layers
    "digits": (20, 64, [64, 32]), "adult": (5, 128, [64, 32]), "letter": (5, 128, [128, 64]),
    "california": (8, 128, [64, 32])}
OPTIMIZERS = {
    "sgd": {"kind": "sgd", "lr": 0.02, "momentum": 0.9},
    "adamw": {"kind": "adamw", "lr": 0.002}}
STRATEGIES = {
    "plain": {},
    "gossip": {"gossip": {}},
    "local_sgd 1": {"local_sgd": {"steps": 1}},
    "local_sgd 16": {"local_sgd": {"steps": 16}},
    "local_sgd 16, reset": {"local_sgd": {"steps": 16, "moments": "reset"}},
    "local_sgd 16, block momentum": {"local_sgd": {"steps": 16, "block_momentum": 0.5}},
    "local_sgd 16, outer": {"local_sgd": {"steps": 16, "outer": {}}},
    "ssp": {"server": {"mode": "ssp"}},
    "async": {"server": {"mode": "async"}},
    "groups 2": {"groups": 2},
}


def document(table, optimizer, name, distributed, seeds):
    epochs, batch, layers = SHAPES[table]
    return {
        "name": name, "metric": {"name": "val_loss", "goal": "minimize"},
        "parameters": {"copy": {"type": "int", "min": 0, "max": seeds - 1}}, "search": {"method": "grid", "seed": 11},
        "limits": {"max_trials": seeds}, "resources": {"ranks": 4}, "ensemble": False,
        "trial": {"train": {
            "dataset": table, "model": {"kind": "mlp", "layers": layers}, "optimizer": OPTIMIZERS[optimizer],
            "epochs": epochs, "batch_size": batch, "micro_batch": batch // 4, "validation": {"fraction": 0.2},
            "distributed": distributed}}}


def add_data(assay, table, folder):
    path = {"digits": os.path.join(ROOT, "examples", "digits.csv"), "letter": os.path.join(folder, "letter.csv"),
            "california": os.path.join(folder, "california_housing.csv"),
            "adult": os.path.join(assay.data, "adult.csv")}[table]
    if table == "adult":
        names = ("age,workclass,weight,education,education_num,marital,occupation,relationship,race,sex,gain,loss,hours,"
                 "country,target")
        with open(os.path.join(folder, "adult_train.csv")) as raw, open(path, "w") as out:
            out.write(names + "\n" + "".join(line.replace(", ", ",") for line in raw if line.strip()))
    target = {"digits": "target", "letter": None, "california": "median_house_value", "adult": "target"}[table]
    with open(path) as f:
        columns = f.readline().strip().split(",")
    if table == "digits":
        target = columns[-1]
    assay.cli("data", "add", table, path, "--target", target or columns[0])


def run(assay, table, optimizer, strategy, seeds):
    name = re.sub(r"[^a-z0-9]+", "-", f"{table}-{optimizer}-{strategy}")
    assay.call("POST", "/v1/sweeps", document(table, optimizer, name, STRATEGIES[strategy], seeds))
    assay.wait_ended(name)
    losses, errors = [], []
    for trial in assay.trials(name):
        assert trial["state"] == "completed", trial
        last = {k: v["value"] if isinstance(v, dict) else v for k, v in trial["metrics"].items()} \
            if "metrics" in trial else {}
        losses.append(trial["value"])
        errors.append(last.get("val_error", last.get("val_rmse", float("nan"))))
    return statistics.mean(losses), statistics.mean(errors)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("table", choices=list(SHAPES))
    options.add_argument("--strategy", default="")
    options.add_argument("--optimizer", default="")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--data", default="/work/shared/data")
    options.add_argument("--build", default=os.path.join(ROOT, "build"))
    o = options.parse_args()
    os.environ["ASSAY_SOURCE_ROOT"] = ROOT
    os.environ["ASSAY_BUILD_ROOT"] = os.path.abspath(o.build)
    sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
    from harness import Assay  # noqa: E402: it reads the two variables
    with Assay(runners=1, slots=4) as assay:
        add_data(assay, o.table, o.data)
        for optimizer in OPTIMIZERS:
            if o.optimizer not in optimizer:
                continue
            plain = None
            for strategy in STRATEGIES:
                if strategy != "plain" and o.strategy not in strategy:
                    continue
                loss, error = run(assay, o.table, optimizer, strategy, o.seeds)
                plain = plain or (loss, error)
                print(json.dumps({"table": o.table, "optimizer": optimizer, "strategy": strategy, "loss": round(loss, 5),
                                  "of_plain": round(loss / plain[0], 3), "error": round(error, 5),
                                  "error_of_plain": round(error / plain[1], 3)}), flush=True)


main()
