#!/usr/bin/env python3
"""Is boosting better than the best single trial, on rows that the sweep never saw?

    bench/boosting.py BUILD DATA [--trials 12] [--stages 8] [--seeds 2] [--rate 0.3] [--sets NAMES]
                      [--work FOLDER]

As bench/ensemble.py, whose data sets these are: random networks, logistic models or trees are trained on a small
share of a table. 450 of the other rows choose, by log loss or RMSE, the best configuration, and then after how
many stages of boosting (train.boost) to stop. The rest are new and measure. Prints a Markdown table with one line
for each set and kind: the loss on new rows of the single model and of the chosen sum, their geometric ratio, and
how often the sum is worse."""
import array
import ast
import json
import math
import os
import random
import subprocess

from ensemble import parser, written_sets

CHOOSE = 450


def array_of(path):
    """The shape and values of an .npy file of float32, float64 or int64."""
    with open(path, "rb") as f:
        start = f.read(10)
        head = ast.literal_eval(f.read(int.from_bytes(start[8:10], "little")).decode())
        kind = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i"}[head["descr"]]
        return head["shape"], array.array(kind, f.read())


def losses(folder):
    """Of each held-out row: the log loss, or the squared error; and whether the class is wrong."""
    shape, p = array_of(os.path.join(folder, "predictions.npy"))
    of_classes, y = array_of(os.path.join(folder, "targets.npy"))
    c = len(p) // shape[0]
    if y.typecode in "fd":
        return [((a - b) ** 2, 0) for a, b in zip(p, y)]
    rows = [p[i * c:(i + 1) * c] for i in range(shape[0])]
    return [(-math.log(max(r[t], 1e-15)), int(max(range(c), key=r.__getitem__) != t)) for r, t in zip(rows, y)]


def mean(values):
    return sum(v[0] for v in values) / len(values)


def document(kind, rng):
    if kind == "trees":
        return {"model": {"kind": "boosted_trees", "n_estimators": rng.randint(20, 200), "max_depth": rng.randint(2, 6),
                          "learning_rate": 10 ** rng.uniform(-2, -0.5), "subsample": rng.uniform(0.5, 1)}}
    model = {"kind": "mlp", "layers": [2 ** rng.randint(3, 7) for _ in range(rng.randint(1, 2))], "dropout": rng.choice([0, 0, 0.1, 0.3])}
    return {"model": model if kind == "networks" else {"kind": "linear"}, "epochs": rng.randint(4, 25), "batch_size": 2 ** rng.randint(4, 7),
            "optimizer": {"kind": "adamw", "lr": 10 ** rng.uniform(-3.7, -1.5), "weight_decay": 10 ** rng.uniform(-4, -1)}}


def train(build, out, record, document, seed, base=None):
    os.makedirs(out, exist_ok=True)
    if not os.path.exists(os.path.join(out, "targets.npy")):
        with open(os.path.join(out, "job.json"), "w") as f:
            json.dump({"train": document, "dataset": record, **({"base": base} if base else {})}, f)
        subprocess.run([os.path.join(build, "trial-runner", "train", "assay-train"), f.name], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "ASSAY_SEED": str(seed), "ASSAY_ARTIFACTS": out, "ASSAY_BACKEND": "cpu"})
    return losses(out)


def case(a, folder, record, held, task, kind, seed):
    """The losses of new rows of stages 0, 1, …, and the stage that was chosen."""
    rng = random.Random(f"{kind} {seed}")
    common = {"dataset": "d", "report_every": 1000, "validation": {"fraction": held, "seed": seed}}
    if task == "classification":
        common["validation"]["split"] = "stratified"
    trials = []
    for trial in range(a.trials):
        d = {**common, **document(kind, rng)}
        if kind == "linear":
            d["model"] = {"kind": "logistic" if task == "classification" else "linear"}
        out = os.path.join(folder, kind, str(seed), str(trial))
        trials.append((mean(train(a.build, out, record, d, trial)[:CHOOSE]), trial, out, d))
    _, best, out, d = min(trials, key=lambda t: t[:2])
    stages = [losses(out)]
    for stage in range(1, a.stages):
        base, out = os.path.join(out, "model.safetensors"), os.path.join(folder, kind, str(seed), f"{best}-{a.rate}-{stage}")
        stages.append(train(a.build, out, record, {**d, "boost": {"stage": stage, "rate": a.rate}}, stage, base))
    chosen = min(range(a.stages), key=lambda s: mean(stages[s][:CHOOSE]))
    return [s[CHOOSE:] for s in stages], chosen


def main():
    p = parser(__doc__, trials=12)
    p.add_argument("--stages", type=int, default=8)
    p.add_argument("--rate", type=float, default=0.3)
    a = p.parse_args()
    print("| set | kind | single | boosted | ratio | error: single | boosted | stages | worse |\n" + "| --- " * 9 + "|", flush=True)
    for name, folder, record, held, task in written_sets(a):
        for kind in ("networks", "linear", "trees"):
            cases = [case(a, folder, record, held, task, kind, seed) for seed in range(a.seeds)]
            single = [mean(s[0]) for s, _ in cases]
            chosen = [mean(s[c]) for s, c in cases]
            ratio = math.exp(sum(math.log(b / s) for s, b in zip(single, chosen)) / len(cases))
            error = [sum(sum(v[1] for v in s[k]) / len(s[k]) for s, k in pairs) / len(cases)
                     for pairs in ([(s, 0) for s, _ in cases], cases)]
            root = math.sqrt if task == "regression" else float
            print(f"| {name} | {kind} | {root(sum(single) / len(cases)):.4g} | {root(sum(chosen) / len(cases)):.4g} | {root(ratio):.3f} | "
                  f"{error[0]:.4f} | {error[1]:.4f} | {', '.join(str(c) for _, c in cases)} | "
                  f"{sum(b > s for s, b in zip(single, chosen))} of {len(cases)} |", flush=True)


main()
