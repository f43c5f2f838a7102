#!/usr/bin/env python3
"""Are ensembles better than the best single trial, on rows that the sweep never saw?

    bench/ensemble.py BUILD DATA [--trials 30] [--seeds 2] [--splits 6] [--sets NAMES]
                      [--work FOLDER]

BUILD is a build folder, DATA holds digits.csv, letter.csv, adult_train.csv, california_housing.csv. assay-train
trains random networks on a small share of each table. Of the rows that are left, 150 or 450 are the held-out
rows of a sweep, which choose; the others are new and measure. Each set is trained with several seeds of the
split, and its rows are drawn several times. Prints a Markdown table: the metric on new rows of the best single
trial, of the ensemble before 2026-11-22, and of today's, and how often each ensemble is worse than the single."""
import argparse
import csv
import json
import math
import os
import random
import subprocess
import tempfile

HELD = (150, 450)
SIZE = 16  # of an ensemble: the default of a sweep
METHODS = ("ensemble", "average", "stacking", "non_negative")


def read(path, header=True):
    with open(path, newline="") as f:
        rows = [r for r in csv.reader(f, skipinitialspace=True) if r]
    return (rows[0], rows[1:]) if header else ([f"c{i}" for i in range(len(rows[0]))], rows)


def relabel(rows, column, name):
    return [r[:column] + [name(r[column])] + r[column + 1:] for r in rows]


def data_sets(folder):
    """(name, header, rows, target, share held out, task)"""
    def of(name, **more):
        return read(os.path.join(folder, name), **more)

    def mixed(rows, seed):
        random.Random(seed).shuffle(rows)
        return rows

    head, rows = of("digits.csv")
    yield "digits", head, rows, head[-1], .8, "classification"
    yield "digits: odd", head, relabel(rows, len(head) - 1, lambda v: "odd" if int(v) % 2 else "even"), head[-1], .8, "classification"
    head, rows = of("letter.csv")
    rows = mixed(rows, 1)
    yield "letter", head, rows[:6000], head[0], .8, "classification"
    yield "letter: vowel", head, relabel(rows[6000:11000], 0, lambda v: "v" if v in "AEIOU" else "c"), head[0], .8, "classification"
    head, rows = of("adult_train.csv", header=False)
    yield "adult", head, mixed([r for r in rows if len(r) == len(head)], 2)[:8000], head[-1], .85, "classification"
    head, rows = of("california_housing.csv")
    rows, at = mixed(rows, 3), head.index("median_house_value")
    yield "california", head, rows[:7000], head[at], .85, "regression"
    dear = sorted(float(r[at]) for r in rows)[len(rows) * 8 // 10]
    yield "california: dear", head, relabel(rows[7000:14000], at, lambda v: "dear" if float(v) > dear else "cheap"), head[at], .85, "classification"


def train(build, folder, record, held, name, seed, trials):
    """Train random networks; returns the paths of their predictions and of the targets."""
    rng = random.Random(f"{name} {seed}")
    paths = []
    for trial in range(trials):
        out = os.path.join(folder, str(seed), str(trial))
        os.makedirs(out, exist_ok=True)
        model = {"kind": "mlp", "layers": [2 ** rng.randint(3, 7) for _ in range(rng.randint(1, 2))],
                 "dropout": rng.choice([0, 0, 0.1, 0.3]), "activation": rng.choice(["relu", "tanh"])}
        optimizer = {"kind": "adamw", "lr": 10 ** rng.uniform(-3.7, -1.5), "weight_decay": 10 ** rng.uniform(-4, -1)}
        document = {"dataset": "d", "model": model, "optimizer": optimizer, "epochs": rng.randint(4, 25), "report_every": 100,
                    "batch_size": 2 ** rng.randint(4, 7), "validation": {"fraction": held, "seed": seed, "split": "stratified"}}
        with open(os.path.join(out, "job.json"), "w") as f:
            json.dump({"train": document, "dataset": record}, f)
        paths.append(os.path.join(out, "predictions.npy"))
        if os.path.exists(paths[-1]):  # of an earlier run with the same --work
            continue
        subprocess.run([os.path.join(build, "trial-runner", "train", "assay-train"), f.name], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "ASSAY_SEED": str(trial), "ASSAY_ARTIFACTS": out, "ASSAY_BACKEND": "cpu"})
    return paths, os.path.join(out, "targets.npy")


def loss(metric, value):
    """What is missing to the best value, so that ratios compare metrics of any direction."""
    return max(1 - value if metric in ("auc", "f1") else value, 1e-9)


def ratio_of(metric, lines, rule):
    """The geometric mean of the rule's loss by that of the best single trial."""
    return math.exp(sum(math.log(loss(metric, r[rule]) / loss(metric, r["single"])) for r in lines) / len(lines))


def worse_of(metric, lines, rule):
    """The share of cases in which the rule is worse than the best single trial, in percent."""
    return 100 * sum(loss(metric, r[rule]) > loss(metric, r["single"]) + 1e-12 for r in lines) / len(lines)


def methods(metric, lines):
    return " | ".join(f"{ratio_of(metric, lines, rule):.3f} | {worse_of(metric, lines, rule):.0f} %" for rule in METHODS) + " |"


def write_set(program, folder, head, rows, target, task):
    """The set as a table in its folder; returns its record, as a job has it."""
    os.makedirs(folder, exist_ok=True)
    table = os.path.join(folder, "data.csv")
    with open(table, "w", newline="") as f:
        csv.writer(f).writerows([head] + rows)
    record = json.loads(subprocess.run([program, "record", table, target, task], check=True, capture_output=True).stdout)
    return {**record, "paths": {"table": table}}


def summary(metric, lines):
    def ratio(rule):
        return ratio_of(metric, lines, rule)

    def worse(rule):
        return worse_of(metric, lines, rule)

    inside = [r for r in lines if not r["within_noise"]]
    wrong = sum(r["gain"] * (loss(metric, r["single"]) - loss(metric, r["ensemble"])) < 0 for r in inside)
    return (f"{ratio('before'):.3f} | {worse('before'):.0f} % | {ratio('ensemble'):.3f} | {worse('ensemble'):.0f} % | "
            f"{ratio('recommended'):.3f} | {worse('recommended'):.0f} % | {len(inside)} of {len(lines)}, {wrong} wrong |")


def parser(doc, trials):
    """The arguments that bench/boosting.py has too."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("data")
    p.add_argument("--trials", type=int, default=trials)
    p.add_argument("--seeds", type=int, default=2)
    p.add_argument("--sets", help="only those whose names begin with one of these, comma-separated")
    p.add_argument("--work", help="keep the data sets and predictions here")
    return p


def written_sets(a):
    """Writes each set that is asked for, and yields its name, folder, record, the rows to hold out and the task."""
    with tempfile.TemporaryDirectory() as temporary:
        for name, head, rows, target, held, task in data_sets(a.data):
            if not a.sets or name.startswith(tuple(a.sets.split(","))):
                folder = os.path.join(a.work or temporary, name.replace(": ", "-"))
                record = write_set(os.path.join(a.build, "bench", "ensemble"), folder, head, rows, target, task)
                yield name, folder, record, held, task


def main():
    p = parser(__doc__, trials=30)
    p.add_argument("--splits", type=int, default=6)
    a = p.parse_args()
    program = os.path.join(a.build, "bench", "ensemble")
    by_metric, by_set = {}, {}
    for name, folder, record, held, task in written_sets(a):
        for seed in range(a.seeds):
            paths, targets = train(a.build, folder, record, held, name, seed, a.trials)
            for metric in ("rmse", "mae") if task == "regression" else ("error", "auc", "f1", "log_loss"):
                for n in HELD:
                    done = subprocess.run([program, "compare", metric, str(n), str(a.splits), str(SIZE), targets, *paths],
                                          check=True, capture_output=True, text=True)
                    lines = [json.loads(line) for line in done.stdout.splitlines()]
                    by_metric.setdefault((metric, n), []).extend(lines)
                    by_set.setdefault((name, metric), []).extend(lines)
    columns = "before: loss / single's | worse | now | worse | recommended | worse | beyond the noise |"
    for title, table in (("metric, held-out rows", by_metric), ("set, metric", by_set)):
        print(f"| {title} | {columns}\n| --- |" + " --- |" * 7)
        for key, lines in table.items():
            print(f"| {', '.join(map(str, key))} | {summary(key[0] if key[0] in ('error', 'auc', 'f1', 'log_loss', 'rmse', 'mae') else key[1], lines)}")
        print()
    print("| metric, held-out rows | greedy | worse | average | worse | stacking | worse | stacking, non-negative | worse |\n| --- |" + " --- |" * 8)
    for key, lines in by_metric.items():
        print(f"| {', '.join(map(str, key))} | {methods(key[0], lines)}")


if __name__ == "__main__":
    main()
