#!/usr/bin/python3
"""`assay fit` on public tables in ten stratified folds, against peers on the same rows and against published figures.

    bench/models/folds.py BUILD CLONES WORK [--sets wilt,…] [--folds 0-9] [--trials 25] [--configurations 100]
    bench/models/folds.py --summary WORK

CLONES has a clone of each repository (published.py). A fold is the test part, which nothing sees before the end; on the other nine:

    fit        `assay fit --time 10m`, with at most --trials configurations and its own folds; the server forgets each sweep
    boosting   scikit-learn's HistGradientBoosting: the best of --configurations random ones in three folds by the table's metric,
               fitted again on all rows
    forest     RandomForest, 500 trees
    extra      ExtraTrees, 500 trees

The metric: AUC of two classes, log loss of more, RMSE of numbers. Tables on which the first trials that `assay fit` ships were learned
get none of these (--no-warm). One line of JSON for each score goes to WORK/folds.jsonl as soon as it is known; what is there is not run
again, so that a run can be stopped. One round is a fold of each table. Needs XGBoost's library and python3-sklearn, -pandas, -yaml."""
import argparse
import json
import math
import os
import statistics
import time
import types

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before OpenMP is loaded
os.environ.setdefault("OMP_NUM_THREADS", "1")

import default_tables  # noqa: E402
import driver  # noqa: E402
import published  # noqa: E402

TEST_FOLDS, INNER_FOLDS, SEED = 10, 3, 1
PEERS = ("boosting", "forest", "extra")
WHO = ("fit", *PEERS)


def path_of(work):
    return os.path.join(work, "folds.jsonl")


def load(work):
    """{(table, fold, who): line}"""
    found = {}
    if os.path.exists(path_of(work)):
        with open(path_of(work), encoding="utf-8") as f:
            for line in map(json.loads, f):
                if "who" in line:
                    found[line["table"], line["fold"], line["who"]] = line
    return found


def keep(work, **values):
    driver.say(**values)
    with open(path_of(work), "a", encoding="utf-8") as f:
        f.write(json.dumps(values) + "\n")


# ---- tables and scores ----

def read_table(clones, name):
    """(names, rows, metric)"""
    if name in published.TABLES:
        return published.read(clones, name)
    names, rows, task = default_tables.read(clones, name)
    return names, rows, "rmse" if task == "regression" else "auc" if len({r[-1] for r in rows}) == 2 else "log_loss"


def read_frame(clones, name):
    import pandas
    names, rows, metric = read_table(clones, name)
    frame = pandas.DataFrame(rows, columns=names).replace("", None)
    for c in frame.columns[:-1]:
        try:
            frame[c] = pandas.to_numeric(frame[c])
        except (ValueError, TypeError):
            continue
    if metric == "rmse":
        frame[published.TARGET] = pandas.to_numeric(frame[published.TARGET])
    return frame, metric


def task_of(metric):
    return "regression" if metric == "rmse" else "classification"


def splits(frame, metric, n):
    """Pairs of (training rows, held-out rows), with each class in proportion."""
    from sklearn.model_selection import KFold, StratifiedKFold
    cut = (KFold if metric == "rmse" else StratifiedKFold)(n, shuffle=True, random_state=SEED)
    return list(cut.split(frame, frame[published.TARGET]))


def loss(frame, predicted, metric):
    """1 - AUC, the log loss, or the RMSE. predicted: numbers, or (classes, probabilities [rows, classes])."""
    import numpy
    from sklearn.metrics import roc_auc_score
    y = frame[published.TARGET]
    if metric == "rmse":
        return math.sqrt(float(numpy.mean((numpy.array(predicted, float) - y.to_numpy()) ** 2)))
    classes, p = predicted
    if metric == "auc":
        return 1 - roc_auc_score(y == classes[1], p[:, 1])
    at = {c: i for i, c in enumerate(classes)}
    mine = [p[r, at[v]] if v in at else 0.0 for r, v in enumerate(y)]
    return float(-numpy.mean(numpy.log(numpy.clip(mine, 1e-15, 1))))


# ---- who predicts ----

def boosting(train, test, metric, a):
    import numpy
    import tabular
    rng = numpy.random.default_rng(SEED)
    parts, best = splits(train, metric, INNER_FOLDS), (math.inf, None, None)
    for _ in range(a.configurations):
        params = tabular.draw_boosting(rng)
        sums, rounds = 0.0, 0
        for fit, held in parts:
            model = tabular.boosting_of(train, task_of(metric), params, SEED)
            model.fit(train.iloc[fit].drop(columns=published.TARGET), train.iloc[fit][published.TARGET])
            rounds += model[-1].n_iter_
            x = train.iloc[held]
            sums += loss(x, tabular.predictions_of(model, x.drop(columns=published.TARGET), task_of(metric)), metric)
        if sums < best[0]:
            best = (sums, params, max(1, round(rounds / INNER_FOLDS)))
    model = tabular.boosting_of(train, task_of(metric), best[1], SEED, best[2])
    model.fit(train.drop(columns=published.TARGET), train[published.TARGET])
    return tabular.predictions_of(model, test.drop(columns=published.TARGET), task_of(metric))


def peer(who, train, test, metric, a):
    import tabular
    if who == "boosting":
        return boosting(train, test, metric, a)
    name = {"forest": "RandomForest", "extra": "ExtraTrees"}[who]
    return tabular.forest(train, test, task_of(metric), types.SimpleNamespace(seed=SEED), name)


def forget_sweeps(assay):
    """A later fold's training rows are this one's test rows: nothing may be a warm start."""
    for sweep in assay.call("GET", "/v1/sweeps")["items"]:
        assay.call("DELETE", f"/v1/sweeps/{sweep['id']}")


def fit(models, name, train, test, metric, a):
    import tabular
    paths = [os.path.join(models.folder, f"{name}-{side}.csv") for side in ("train", "test")]
    train.to_csv(paths[0], index=False)
    test.drop(columns=published.TARGET).to_csv(paths[1], index=False)
    more = ["--no-warm"] if name.rsplit("-", 1)[0] in default_tables.LEARNED else []
    report, took = models.fit(name, paths[0], published.TARGET, task_of(metric), metric, a.time, a.trials, *more)
    predicted = tabular.of_model(models.rows_of(report["model"], paths[1]))
    forget_sweeps(models.assay)
    return predicted, took[1], {"value": report["value"], "kinds": [t["params"]["kind"] for t in report["trials"]], "size": report["size"], "row_ms": report["row_ms"]}


def run_fold(models, name, fold, done, a):
    frame, metric = read_frame(a.clones, name)
    train, test = (frame.iloc[i].reset_index(drop=True) for i in splits(frame, metric, TEST_FOLDS)[fold])
    for who in a.who.split(","):
        if (name, fold, who) in done:
            continue
        more, start = {}, time.process_time()
        if who == "fit":
            predicted, processor, more = fit(models, f"{name}-{fold}", train, test, metric, a)
        else:
            predicted = peer(who, train, test, metric, a)
            processor = time.process_time() - start
        keep(a.work, table=name, fold=fold, who=who, loss=loss(test, predicted, metric), processor=round(processor, 1), **more)


# ---- the summary ----

def worth(metric, mean):
    """A loss as it is published, and the other way round: of an AUC what is missing to 1."""
    return 1 - mean if metric == "auc" else mean


def differs(mine, theirs, error):
    return "=" if abs(mine - theirs) <= error else "+" if mine < theirs else "-"


def row_of(name, found):
    """{who: losses, …, and processor minutes} of the folds that all have."""
    folds = [f for f in range(TEST_FOLDS) if all((name, f, w) in found for w in WHO)]
    lines = {w: [found[name, f, w] for f in folds] for w in WHO}
    return {w: ([v["loss"] for v in lines[w]], sum(v["processor"] for v in lines[w]) / 60 / max(1, len(folds))) for w in WHO}


def mean_of(values):
    return statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values))


def verdict(row, who, published_one, metric):
    """+ ahead of it, = within a standard error, - behind: of the same folds their differences, else both means."""
    own = mean_of(row["fit"][0])
    if who in row:
        d = mean_of([x - y for x, y in zip(row["fit"][0], row[who][0])])
        return differs(d[0], 0, d[1])
    return differs(own[0], worth(metric, published_one[0]), math.hypot(own[1], published_one[1]))


def summary(work):
    found, figures = load(work), published.figures()
    theirs = [who for who, *_ in published.SOURCES]
    counts = {w: [0, 0, 0] for w in (*PEERS, *theirs)}
    ranks = {w: [] for w in WHO}
    print("| table, folds | " + " | ".join((*WHO, *theirs)) + " |\n| --- |" + " --- |" * (len(WHO) + len(theirs)))
    for name, (*_, metric, _) in published.TABLES.items():
        row = row_of(name, found)
        n = len(row["fit"][0])
        if n < 2:
            continue
        cells = []
        for w in (*WHO, *theirs):
            one = figures[name].get(w)
            if w in theirs and not one:
                cells.append("")
                continue
            mean, error = one if w in theirs else mean_of(row[w][0])
            mark = "" if w == "fit" else verdict(row, w, one, metric)
            if mark:
                counts[w]["+=-".index(mark)] += 1
            took = "" if w in theirs else f" ({row[w][1]:.2g})"
            cells.append(f"{mean if w in theirs else worth(metric, mean):.4g} ± {error:.2g}{took} {mark}")
        for w in WHO:
            ranks[w].append(1 + sum(statistics.mean(row[o][0]) < statistics.mean(row[w][0]) for o in WHO))
        print(f"| {name}, {n} | " + " | ".join(cells) + " |")
    if not ranks["fit"]:
        return
    print("| mean rank of four | " + " | ".join(f"{statistics.mean(ranks[w]):.2f}" for w in WHO) + " | | |")
    print("| `fit` ahead, within an error, behind | | " + " | ".join("{}, {}, {}".format(*counts[w]) for w in (*PEERS, *theirs)) + " |")


def folds_of(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", nargs="?")
    p.add_argument("clones", nargs="?")
    p.add_argument("work", nargs="?")
    p.add_argument("--summary", metavar="WORK")
    p.add_argument("--sets", default=",".join(published.TABLES), help="also those of default_tables.py, which have no published figures")
    p.add_argument("--folds", default="0-9", help="one, or FIRST-LAST")
    p.add_argument("--who", default=",".join(WHO))
    p.add_argument("--time", default="10m")
    p.add_argument("--trials", type=int, default=25)
    p.add_argument("--configurations", type=int, default=100)
    a = p.parse_args()
    if a.summary:
        summary(a.summary)
        return
    if not a.work:
        p.error("expected BUILD CLONES WORK, or --summary WORK")
    os.makedirs(a.work, exist_ok=True)
    keep(a.work, revision=driver.revision(), options=vars(a))
    with driver.installation(a.build) as assay:
        models = driver.Models(assay, a.work)
        for fold in folds_of(a.folds):
            for name in a.sets.split(","):
                run_fold(models, name, fold, load(a.work), a)


if __name__ == "__main__":
    main()
