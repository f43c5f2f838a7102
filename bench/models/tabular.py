#!/usr/bin/python3
"""Public tabular sets: one sweep over kinds of models and its ensemble, against scikit-learn's forest and
boosting, and against sweeps over one kind.

    bench/models/tabular.py BUILD DATA [--trials 60] [--rows 2000] [--folds 5] [--seed 1] [--sets adult,…] [--work FOLDER]

DATA holds adult_train.csv, adult_test.csv, california_housing.csv, letter.csv, digits.csv; three sets come with
scikit-learn, and those of default_tables.JUDGED with --clones. A quarter of each set's rows is the test part (of Adult: its own test file), drawn by the seed and
seen by nothing before the end; of larger sets at most `--rows` rows train and as many test. The space is that of
examples/automl.yaml. Each candidate sees the same training rows:

    kinds          the sweep over all kinds, and what it recommends (the ensemble, or the best trial)
    kinds, single  the best trial of the same sweep
    KIND           the same sweep over one kind alone, with as many trials, and what it recommends
    fit            `assay fit` in --fit, with as many trials, and the model that it keeps
    forest         RandomForest, 500 trees
    extra          ExtraTrees, 500 trees
    boosting       HistGradientBoosting, the best of as many random configurations, fitted again on all rows

Sweeps and boosting choose by the same cut: `--folds` folds of the training rows, 0: a held-out quarter. Scores on the
test part: log loss of classes, with the error rate beside it; RMSE of numbers. Prints one line of JSON for each
score, and a summary in Markdown: mean ranks, geometric means of score / best, and on how many sets the ensemble is
no worse than the best single trial. That difference has a 90 % interval, from the losses of the test rows
(numbers: squared errors); "worse" beyond it is worse. Needs XGBoost's library and python3-sklearn, -pandas, -yaml."""
import argparse
import copy
import io
import math
import os
import tempfile
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before OpenMP is loaded: idle threads must not take cores from others

import default_tables  # noqa: E402
import driver  # noqa: E402
import numpy  # noqa: E402
import pandas  # noqa: E402
import yaml  # noqa: E402

SETS = ("adult", "california", "digits", "breast_cancer", "diabetes", "wine")
MORE = ("letter",)  # of 26 classes: scikit-learn's boosting alone takes more than an hour
CLONED = tuple(default_tables.JUDGED)
KINDS = ("boosted_trees", "random_forest", "extra_trees", "mlp", "linear")
TARGET = "target"
LEAST = 1e-15  # a probability counts as at least that in a log loss, as in scikit-learn


# ---- the sets ----

def read_adult(folder):
    from adult import COLUMNS
    parts = []
    for name in ("adult_train.csv", "adult_test.csv"):
        t = pandas.read_csv(os.path.join(folder, name), names=COLUMNS, skipinitialspace=True, na_values="?", comment="|")
        t["income"] = t["income"].str.rstrip(".")
        parts.append(t.rename(columns={"income": TARGET}))
    return parts


def read_bundled(name):
    from sklearn import datasets
    t = getattr(datasets, f"load_{name}")(as_frame=True)
    frame = t.frame.rename(columns=lambda c: c.replace(" ", "_"))
    if hasattr(t, "target_names") and name != "diabetes":
        frame[TARGET] = [f"c{v}" for v in frame[TARGET]]
    return frame


def read_file(folder, name, target):
    t = pandas.read_csv(os.path.join(folder, name))
    t = t.rename(columns={c: (TARGET if c == target else f"x{c}" if c[0].isdigit() else c) for c in t.columns})
    return t[[c for c in t.columns if c != TARGET] + [TARGET]]


def read_cloned(a, name):
    names, rows, task = default_tables.read(a.clones, name)
    t = pandas.read_csv(io.StringIO("\n".join(",".join(c.replace(",", " ") for c in r) for r in [names, *rows])))
    t = t.sample(frac=1, random_state=a.seed)
    return t[len(t) // 4:], t[:len(t) // 4], task


def load(name, a):
    """(training rows, test rows, task)"""
    files = {"california": ("california_housing.csv", "median_house_value"), "letter": ("letter.csv", "Letter"),
             "digits": ("digits.csv", "class")}
    task = "regression" if name in ("california", "diabetes") else "classification"
    if name in CLONED:
        train, test, task = read_cloned(a, name)
    elif name == "adult":
        train, test = read_adult(a.data)
    else:
        t = read_file(a.data, *files[name]) if name in files else read_bundled(name)
        if name == "digits":
            t[TARGET] = [f"d{v}" for v in t[TARGET]]
        t = t.sample(frac=1, random_state=a.seed)
        train, test = t[len(t) // 4:], t[:len(t) // 4]
    return tuple(p.sample(n=min(len(p), a.rows), random_state=a.seed).reset_index(drop=True) for p in (train, test)) + (task,)


# ---- scores ----

class Truth:
    """The targets of the test part, and what predictions of them are worth."""

    def __init__(self, test, task):
        self.task, self.y = task, list(test[TARGET])

    def losses(self, predicted):
        """The loss of each test row. predicted: numbers, or (classes, probabilities [rows, classes])."""
        if self.task == "regression":
            return (numpy.array(predicted, float) - numpy.array(self.y, float)) ** 2
        classes, p = predicted
        at = {c: i for i, c in enumerate(classes)}
        mine = numpy.array([p[r][at[y]] if y in at else 0.0 for r, y in enumerate(self.y)])
        return -numpy.log(numpy.clip(mine, LEAST, 1))

    def score(self, predicted):
        mean = float(numpy.mean(self.losses(predicted)))
        return math.sqrt(mean) if self.task == "regression" else mean

    def error(self, predicted):
        if self.task == "regression":
            return self.score(predicted)
        classes, p = predicted
        return float(numpy.mean([classes[int(i)] != y for i, y in zip(numpy.argmax(p, 1), self.y)]))


def of_model(columns):
    """What `assay predict` wrote, as Truth takes it."""
    prefix = "probability_"
    classes = [c[len(prefix):] for c in columns if c.startswith(prefix)]
    if not classes:
        return numpy.array(columns["prediction"], float)
    return classes, numpy.array([columns[prefix + c] for c in classes], float).T


# ---- sweeps ----

def document(name, task, kinds, a):
    """examples/automl.yaml for a data set and some of its kinds: parameters of the others are left out."""
    with open(os.path.join(driver.ROOT, "examples", "automl.yaml"), encoding="utf-8") as f:
        doc = yaml.safe_load(f)
    linear = "logistic" if task == "classification" else "linear"
    kinds = [linear if k == "linear" else k for k in kinds]

    def active(p):
        asked = p.get("when", {}).get("kind", kinds)
        asked = [linear if k == "logistic" else k for k in (asked if isinstance(asked, list) else [asked])]
        if "when" in p:
            p["when"] = {"kind": [k for k in asked if k in kinds]}
        return any(k in kinds for k in asked)
    doc["parameters"]["kind"]["values"] = kinds
    doc["parameters"] = {n: p for n, p in copy.deepcopy(doc["parameters"]).items() if active(p)}

    def known(v):
        if isinstance(v, list):
            return all(known(i) for i in v)
        return not (isinstance(v, str) and v.startswith("${")) or ":-" in v or v[2:-1] in doc["parameters"]

    def prune(tree):
        return {n: prune(v) if isinstance(v, dict) else v for n, v in tree.items() if known(v)}
    metric = "val_log_loss" if task == "classification" else "val_rmse"
    doc.update(name=name, metric={"name": metric, "goal": "minimize"}, limits={"max_trials": a.trials, "trial_timeout": "10m"})
    doc["search"]["seed"] = a.seed
    train = prune(doc["trial"]["train"])
    train.update(dataset=name.split("-")[0], validation={"folds": a.folds, "seed": a.seed} if a.folds else {"fraction": 0.25, "seed": a.seed},
                 metrics=[metric] if task == "classification" else [])
    train["model"]["n_estimators"] = "${rounds:-%d}" % a.trees if "rounds" in doc["parameters"] else a.trees
    doc["trial"]["train"] = train
    return doc


def run_sweep(models, name, task, kinds, test, a):
    """Returns what is recommended, the best single trial's and the ensemble's predictions, and what it took."""
    s, trials, took = models.sweep(document(name, task, kinds, a))
    failed = [t.get("reason") for t in trials if t["state"] != "completed"]
    if failed:
        driver.say(sweep=name, failed=len(failed), first=failed[0])
    e = models.ensemble(s["id"])
    single = of_model(models.predict(s["id"], test, "single"))
    both = of_model(models.predict(s["id"], test, "ensemble")) if e["state"] == "ready" else single
    used = both if e.get("recommended") == "ensemble" else single
    counts = {}
    for t in trials:
        counts[t["params"].get("kind", kinds[0])] = counts.get(t["params"].get("kind", kinds[0]), 0) + 1
    return used, single, both, {"trials": counts, "wall": round(took[0], 1), "processor": round(took[1], 1),
                                "recommended": e.get("recommended"), "members": len(e.get("members", []))}


# ---- peers ----

def split_columns(train):
    inputs = [c for c in train.columns if c != TARGET]
    texts = [c for c in inputs if train[c].dtype == object]
    return texts, [c for c in inputs if c not in texts]


def predictions_of(model, x, task):
    return model.predict(x) if task == "regression" else ([str(c) for c in model.classes_], model.predict_proba(x))


def forest(train, test, task, a, name="RandomForest"):
    from sklearn import ensemble
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    texts, numbers = split_columns(train)
    kind = getattr(ensemble, name + ("Classifier" if task == "classification" else "Regressor"))
    encode = ColumnTransformer([("texts", OneHotEncoder(handle_unknown="ignore"), texts), ("numbers", SimpleImputer(strategy="median"), numbers)])
    model = make_pipeline(encode, kind(500, n_jobs=2, random_state=a.seed))
    model.fit(train.drop(columns=TARGET), train[TARGET])
    return predictions_of(model, test.drop(columns=TARGET), task)


def extra(train, test, task, a):
    return forest(train, test, task, a, "ExtraTrees")


def boosting_of(train, task, params, seed, rounds=None, most=300):
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder
    texts, numbers = split_columns(train)
    kind = HistGradientBoostingClassifier if task == "classification" else HistGradientBoostingRegressor
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=numpy.nan, encoded_missing_value=numpy.nan)
    encode = ColumnTransformer([("texts", codes, texts), ("numbers", "passthrough", numbers)])
    alone = task == "classification" and train[TARGET].value_counts().min() < 2  # its cut takes two rows of each class
    more = {"max_iter": rounds or most, "early_stopping": False} if rounds or alone else {"max_iter": most, "early_stopping": True, "n_iter_no_change": 20, "validation_fraction": 0.15}
    return make_pipeline(encode, kind(categorical_features=list(range(len(texts))), random_state=seed, **params, **more))


def draw_boosting(rng):
    return {"learning_rate": math.exp(rng.uniform(math.log(0.03), math.log(0.3))),
            "max_leaf_nodes": int(round(math.exp(rng.uniform(math.log(4), math.log(64))))),
            "min_samples_leaf": int(round(math.exp(rng.uniform(math.log(2), math.log(60))))),
            "l2_regularization": math.exp(rng.uniform(math.log(1e-3), math.log(30)))}


def boosting(train, test, task, a):
    """The best of random configurations by the same folds (or cut) as the sweeps', fitted again on all rows."""
    from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit
    rng = numpy.random.default_rng(a.seed)
    classes = task == "classification"
    if a.folds:
        cut = (StratifiedKFold if classes else KFold)(a.folds, shuffle=True, random_state=a.seed)
    else:
        cut = (StratifiedShuffleSplit if classes else ShuffleSplit)(1, test_size=0.25, random_state=a.seed)
    parts = list(cut.split(train, train[TARGET]))
    best = (math.inf, None, None)
    for _ in range(a.trials):
        params = draw_boosting(rng)
        sums, n, rounds = 0.0, 0, []
        for fit, held in parts:
            model = boosting_of(train, task, params, a.seed, most=a.rounds)
            model.fit(train.iloc[fit].drop(columns=TARGET), train.iloc[fit][TARGET])
            rounds.append(model[-1].n_iter_)
            losses = Truth(train.iloc[held], task).losses(predictions_of(model, train.iloc[held].drop(columns=TARGET), task))
            sums, n = sums + float(numpy.sum(losses)), n + len(held)
        if sums / n < best[0]:
            best = (sums / n, params, max(1, round(sum(rounds) / len(rounds))))
    model = boosting_of(train, task, best[1], a.seed, best[2])
    model.fit(train.drop(columns=TARGET), train[TARGET])
    return predictions_of(model, test.drop(columns=TARGET), task)


# ---- one set ----

def run_set(models, name, a):
    train, test, task = load(name, a)
    truth, scores = Truth(test, task), {}
    paths = [os.path.join(models.folder, f"{name}-{side}.csv") for side in ("train", "test")]
    train.to_csv(paths[0], index=False)
    test.drop(columns=TARGET).to_csv(paths[1], index=False)
    models.add_data(name.replace("_", "."), paths[0], TARGET, task)

    def note(who, predicted, **more):
        scores[who] = truth.score(predicted)
        driver.say(set=name, who=who, score=scores[who], error=truth.error(predicted), **more)
    driver.say(set=name, task=task, training_rows=len(train), test_rows=len(test), columns=len(train.columns) - 1)
    worse = None
    if a.kinds:
        used, single, both, took = run_sweep(models, f"{name.replace('_', '.')}-kinds", task, KINDS, paths[1], a)
        note("kinds", used, **took)
        note("kinds, single", single)
        note("kinds, ensemble", both)
        worse = truth.losses(both) - truth.losses(single)
    if a.fit:
        report, took = models.fit(f"{name.replace('_', '-')}-fitted", paths[0], TARGET, task, "rmse" if task == "regression" else "log_loss",
                                  a.fit, a.trials)
        note("fit", of_model(models.rows_of(report["model"], paths[1])), wall=round(took[0], 1), processor=round(took[1], 1),
             size=report["size"], row_ms=report["row_ms"], cross_fitted=report["value"], wider=report.get("before") is not None)
    for who, peer in (("forest", forest), ("extra", extra), ("boosting", boosting)):
        start = time.process_time()
        note(who, peer(train, test, task, a), processor=round(time.process_time() - start, 1))
    for kind in KINDS if a.single else ():
        used, _, _, took = run_sweep(models, f"{name.replace('_', '.')}-{kind.replace('_', '.')}", task, (kind,), paths[1], a)
        note(kind, used, **took)
    return scores, worse


# ---- the summary ----

def summary(found):
    who = [w for w in next(iter(found.values()))[0] if not w.startswith("kinds, ")]
    names = list(found)
    print("\n| set | " + " | ".join(who) + " |\n| --- |" + " --- |" * len(who))
    for n in names:
        print(f"| {n} | " + " | ".join(f"{found[n][0][w]:.4g}" for w in who) + " |")

    def rank(n, w):
        return 1 + sum(found[n][0][o] < found[n][0][w] for o in who)

    def ratio(w):
        return math.exp(sum(math.log(max(found[n][0][w], 1e-9) / max(min(found[n][0][o] for o in who), 1e-9)) for n in names) / len(names))
    print("| mean rank | " + " | ".join(f"{sum(rank(n, w) for n in names) / len(names):.2f}" for w in who) + " |")
    print("| geometric mean of score / best | " + " | ".join(f"{ratio(w):.3f}" for w in who) + " |")
    if found[names[0]][1] is None:
        return
    print("\n| set | ensemble - best single trial, mean loss of a test row | 90 % | |\n| --- | --- | --- | --- |")
    for n in names:
        worse = found[n][1]
        mean, half = float(numpy.mean(worse)), 1.645 * float(numpy.std(worse)) / math.sqrt(len(worse))
        verdict = "better" if mean < 0 else "equal" if mean == 0 else "within noise" if mean <= half else "worse"
        print(f"| {n} | {mean:+.4g} | ± {half:.2g} | {verdict} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("data")
    p.add_argument("--trials", type=int, default=60)
    p.add_argument("--rows", type=int, default=2000, help="of a training part and of a test part, at most")
    p.add_argument("--rounds", type=int, default=300, help="of scikit-learn's boosting at most; ours has the example's limit")
    p.add_argument("--trees", type=int, default=300, help="of our forests and extra trees")
    p.add_argument("--folds", type=int, default=5, help="by which sweeps and boosting choose; 0: a held-out quarter")
    p.add_argument("--fit", metavar="TIME", help="also `assay fit` in so much time, such as 2m")
    p.add_argument("--as-it-is", dest="nice", action="store_false", help="without giving way to other programs")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--sets", default=",".join(SETS), help=f"of {', '.join(SETS + MORE + CLONED)}")
    p.add_argument("--clones", help="a folder of git clones, of which default_tables.py says more; for the sets that come with them")
    p.add_argument("--no-kinds", dest="kinds", action="store_false", help="without the sweep over all kinds: `assay fit` has one of its own")
    p.add_argument("--no-single", dest="single", action="store_false", help="without the sweeps over one kind")
    p.add_argument("--work", help="keep tables and predictions here")
    a = p.parse_args()
    unknown = set(a.sets.split(",")) - set(SETS + MORE + CLONED)
    if unknown:
        p.error(f"--sets: found {', '.join(sorted(unknown))}, expected some of {', '.join(SETS + MORE + CLONED)}")
    if set(a.sets.split(",")) & set(CLONED) and not a.clones:
        p.error("--clones: expected a folder, for " + ", ".join(sorted(set(a.sets.split(",")) & set(CLONED))))
    if not a.kinds and not a.fit:
        p.error("--no-kinds: expected --fit beside it")
    if a.nice:
        driver.run_nice()
    driver.say(revision=driver.revision(), options=vars(a))
    found = {}
    with driver.installation(a.build) as assay, tempfile.TemporaryDirectory() as temporary:
        models = driver.Models(assay, a.work or temporary)
        for name in a.sets.split(","):
            found[name] = run_set(models, name, a)
            summary(found)


if __name__ == "__main__":
    main()
