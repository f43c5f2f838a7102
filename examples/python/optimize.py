#!/usr/bin/env python3
"""A search over a Python function: two models on two noisy rings, each with parameters of its own.

    PYTHONPATH=clients/python python3 examples/python/optimize.py [TRIALS]

It finds the `assay up` of this machine, or starts one."""
import math
import random
import sys

import assay


def rings(n, seed):
    draw = random.Random(seed)
    rows = []
    for i in range(n):
        angle, radius = draw.uniform(0, 2 * math.pi), (1.0 if i % 2 else 1.8) + draw.gauss(0, 0.3)
        rows.append(((radius * math.cos(angle), radius * math.sin(angle)), i % 2))
    return rows


TRAIN, HELD_OUT = rings(200, 1), rings(200, 2)


def nearest(point, k):
    """The share of the second class among the k nearest rows."""
    near = sorted(TRAIN, key=lambda row: math.dist(row[0], point))[:k]
    return sum(label for _, label in near) / k


def kernel(point, width):
    """The same with weights that fall with the distance."""
    weights = [(math.exp(-(math.dist(p, point) / width) ** 2), label) for p, label in TRAIN]
    return sum(w for w, label in weights if label) / max(1e-300, sum(w for w, _ in weights))


def objective(trial):
    if trial.suggest_categorical("model", ["nearest", "kernel"]) == "nearest":
        model, value = nearest, trial.suggest_int("k", 1, 101, step=2)
    else:
        model, value = kernel, trial.suggest_float("width", 0.01, 10, log=True)
    wrong = 0
    for i, (point, label) in enumerate(HELD_OUT, 1):
        wrong += (model(point, value) > 0.5) != label
        if i % 50 == 0:
            trial.report(wrong / i, i)
            if trial.should_prune():
                raise assay.TrialPruned()
    return wrong / len(HELD_OUT)


if __name__ == "__main__":
    study = assay.optimize(objective, n_trials=int(sys.argv[1]) if len(sys.argv) > 1 else 20, name="rings", metric="error")
    print(f"error {study.best_value} with {study.best_params}; {study.url}")
