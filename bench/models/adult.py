#!/usr/bin/python3
"""UCI Adult in ten stratified folds, as the AutoML benchmark cuts it: the mean AUC of what a sweep recommends.

    bench/models/adult.py BUILD DATA [--folds 10] [--only 0,1] [--trials 30] [--minutes 20] [--inner 4] [--work FOLDER]

DATA holds adult_train.csv and adult_test.csv, which are joined: 48,842 rows. Each fold in turn is the test part,
which no part of Assay sees before `assay predict`. On the other rows one sweep searches over kinds of models, each
trial with `--inner` folds of its own (0: a quarter of the rows held out), and the server makes an ensemble of the best. A sweep ends after `--minutes` of
two cores: `limits.wall_time`, which with `--processor` counts processor time instead of the clock, for a machine that does other work
beside. One line of JSON for each fold and one for the mean. Needs XGBoost's library."""
import argparse
import csv
import os
import tempfile

import driver

COLUMNS = ("age workclass fnlwgt education education_num marital_status occupation relationship race sex "
           "capital_gain capital_loss hours_per_week native_country income").split()
BAR = 0.9298  # the best of the AutoML benchmark of 2019: auto-sklearn, four hours of eight cores for each fold


def read(folder):
    rows = []
    for name in ("adult_train.csv", "adult_test.csv"):
        with open(os.path.join(folder, name), newline="") as f:
            for r in csv.reader(f, skipinitialspace=True):
                if len(r) == len(COLUMNS):
                    rows.append([("" if v == "?" else v) for v in r[:-1]] + [r[-1].rstrip(".")])
    return rows


def document(name, a):
    """Boosted trees in the ranges that the literature searches, a forest, and networks, each of which adds to an
    ensemble what the others do not see."""
    boosted, mlp = {"kind": "boosted_trees"}, {"kind": "mlp"}
    return {
        "name": name, "metric": {"name": a.metric, "goal": "maximize" if a.metric == "val_auc" else "minimize"},
        "parameters": {
            "kind": {"type": "categorical", "values": a.kinds.split(",")},
            "rate": {"type": "float", "min": 0.03, "max": 0.15, "scale": "log", "when": boosted},
            "leaves": {"type": "int", "min": 8, "max": 48, "scale": "log", "when": boosted},
            "child": {"type": "float", "min": 1, "max": 30, "scale": "log", "when": boosted},
            "rows": {"type": "float", "min": 0.5, "max": 1, "when": boosted},
            "columns": {"type": "float", "min": 0.3, "max": 1, "when": boosted},
            "l2": {"type": "float", "min": 0.1, "max": 30, "scale": "log", "when": boosted},
            "onehot": {"type": "ordinal", "values": [4, 100], "when": boosted},
            **({"width": {"type": "int", "min": 32, "max": 128, "scale": "log", "when": mlp},
                "lr": {"type": "float", "min": 1e-3, "max": 1e-2, "scale": "log", "when": mlp}} if "mlp" in a.kinds else {})},
        "search": {"method": "gp", "seed": a.seed},
        "limits": {"max_trials": a.trials, **({} if a.processor else {"wall_time": f"{a.minutes}m"})},
        "ensemble": {"method": "greedy", "size": 25},
        "trial": {"train": {
            "dataset": name, "metrics": ["val_auc", "val_log_loss"],
            "model": {"kind": "${kind}", "n_estimators": 1200, "early_stopping_rounds": 30, "grow_policy": "lossguide",
                      "max_depth": 0, "learning_rate": "${rate}", "max_leaves": "${leaves}", "min_child_weight": "${child}",
                      "subsample": "${rows}", "colsample_bytree": "${columns}", "reg_lambda": "${l2}",
                      "max_cat_to_onehot": "${onehot}",
                      **({"layers": ["${width}", "${width}"], "dropout": 0.2, "embedding": 8} if "mlp" in a.kinds else {})},
            **({"optimizer": {"kind": "adamw", "lr": "${lr}"}, "schedule": {"kind": "cosine"}} if "mlp" in a.kinds else {}),
            "epochs": 15, "batch_size": 256, "report_every": 100,
            "validation": {"folds": a.inner} if a.inner else {"fraction": 0.25}}}}


def test_parts(rows, n, seed):
    """Which test part each row is in: stratified, from the seed alone."""
    import numpy
    from sklearn.model_selection import StratifiedKFold
    y = [r[-1] for r in rows]
    return [set(test) for _, test in StratifiedKFold(n, shuffle=True, random_state=seed).split(numpy.zeros(len(y)), y)]


def auc(truth, columns):
    from sklearn.metrics import roc_auc_score
    return roc_auc_score([t == ">50K" for t in truth], [float(v) for v in columns["probability_>50K"]])


def run_fold(models, rows, part, name, a):
    train, test = (os.path.join(models.folder, f"{name}-{side}.csv") for side in ("train", "test"))
    driver.write_table(train, COLUMNS, [r for i, r in enumerate(rows) if i not in part])
    held = [r for i, r in enumerate(rows) if i in part]
    driver.write_table(test, COLUMNS[:-1], [r[:-1] for r in held])
    truth = [r[-1] for r in held]
    models.add_data(name, train, "income", "classification")
    s, trials, (wall, processor) = models.sweep(document(name, a), 120 * a.minutes if a.processor else None)
    found = {"fold": name, "rows": len(held), "trials": s["counts"]["completed"], "minutes": round(wall / 60, 1),
             "processor_minutes": round(processor / 60, 1)}
    e = models.ensemble(s["id"])
    found["recommended"] = e.get("recommended", "single")
    found["auc"] = auc(truth, models.predict(s["id"], test))
    found["auc_single"] = auc(truth, models.predict(s["id"], test, "single"))
    if e["state"] == "ready":
        found["members"] = len(e["members"])
        found["auc_ensemble"] = auc(truth, models.predict(s["id"], test, "ensemble"))
    best = next(t for t in trials if t["number"] == s["best"]["number"])
    found["best"] = {**best["params"], **{k: best["metrics"][k] for k in ("val_auc", "val_log_loss")}}
    found["kinds"] = {k: sum(t["params"]["kind"] == k for t in trials) for k in a.kinds.split(",")}
    if e["state"] == "ready":
        found["held_out"] = {"metric": e["metric"], "ensemble": e["value"], "single": e["best_single"]["value"]}
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("data")
    p.add_argument("--folds", type=int, default=10)
    p.add_argument("--only", help="numbers of the folds to run, with commas")
    p.add_argument("--trials", type=int, default=30)
    p.add_argument("--minutes", type=float, default=20, help="of a fold, on two cores")
    p.add_argument("--processor", action="store_true", help="count processor time: the sweep ends after twice the minutes of it")
    p.add_argument("--inner", type=int, default=4, help="folds within the training part; 0: a quarter is held out")
    p.add_argument("--metric", default="val_log_loss", choices=("val_auc", "val_log_loss"))
    p.add_argument("--kinds", default="boosted_trees,mlp")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--work", help="keep tables and predictions here")
    a = p.parse_args()
    driver.run_nice()
    rows = read(a.data)
    parts = test_parts(rows, a.folds, a.seed)
    chosen = [int(v) for v in a.only.split(",")] if a.only else range(a.folds)
    driver.say(revision=driver.revision(), rows=len(rows), options=vars(a))
    found = []
    with driver.installation(a.build) as assay, tempfile.TemporaryDirectory() as temporary:
        models = driver.Models(assay, a.work or temporary)
        for i in chosen:
            found.append(run_fold(models, rows, parts[i], f"adult-{i}", a))
            driver.say(**found[-1])
    if found:
        driver.say(folds=len(found), bar=BAR, **{k: sum(f[k] for f in found) / len(found) for k in ("auc", "auc_single", "processor_minutes")})


if __name__ == "__main__":
    main()
