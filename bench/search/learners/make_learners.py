#!/usr/bin/env python3
"""Make the problems of learners.c: surrogates of real runs of a choice among five learners.

    /usr/bin/python3 bench/search/learners/make_learners.py --data DIR [NAME…]

DIR holds digits.csv, letter.csv, california_housing.csv and adult_train.csv (tables/make.py says what they are). Needs
numpy and scikit-learn. Writes NAME.json beside this script.

A run trains one learner of scikit-learn on 300 rows, behind a scaler, and measures its error on 1,000 rows held out.
Each learner (of support vector machines, each kernel) is a part with a few hundred runs of random configurations and
a forest fitted to them. What a part does not read has no effect there, as in the real thing. Forests and boosted
trees are measured after 4, 8, … 64 of their trees, so one of their runs is several rows.

A file: "parameters", the space as a sweep document; "optimum" and "best", the lowest value that was found, and where;
"parts", each with "when", the values that choose it, "columns", the parameters that it reads, and "trees": numbers in
preorder, column and threshold of a split (left where the value is at most that; of a choice, its index), -1 and value
of a leaf. A value is the sum of the leaves.
"""
import argparse
import csv
import json
import math
import os
import sys
import warnings

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = 20261129
N_TRAIN, N_VALID = 300, 1000
STAGES = (4, 8, 16, 32, 64)


def when(learner, **more):
    return {"when": {"learner": learner, **more}}


def real(low, high, scale="log"):
    return {"type": "float", "min": low, "max": high, "scale": scale}


def whole(low, high, scale="linear"):
    return {"type": "int", "min": low, "max": high, "scale": scale}


def choice(*values):
    return {"type": "categorical", "values": list(values)}


SPACE = {
    "learner": choice("svm", "neighbours", "forest", "boosting", "network"),
    "scaler": choice("none", "standard", "range"),
    "svm_kernel": {**choice("linear", "rbf", "poly"), **when("svm")},
    "svm_c": {**real(0.01, 1000), **when("svm")},
    "svm_gamma": {**real(1e-4, 10), **when("svm", svm_kernel=["rbf", "poly"])},
    "svm_degree": {**whole(2, 4), **when("svm", svm_kernel="poly")},
    "knn_k": {**whole(1, 60, "log"), **when("neighbours")},
    "knn_weights": {**choice("uniform", "distance"), **when("neighbours")},
    "knn_power": {**real(1, 4, "linear"), **when("neighbours")},
    "rf_trees": {**whole(4, 64, "log"), **when("forest")},
    "rf_depth": {**whole(1, 15), **when("forest")},
    "rf_features": {**real(0.05, 1), **when("forest")},
    "rf_leaf": {**whole(1, 30, "log"), **when("forest")},
    "gb_rounds": {**whole(4, 64, "log"), **when("boosting")},
    "gb_rate": {**real(0.01, 1), **when("boosting")},
    "gb_depth": {**whole(1, 6), **when("boosting")},
    "gb_subsample": {**real(0.2, 1, "linear"), **when("boosting")},
    "nn_width": {**whole(4, 128, "log"), **when("network")},
    "nn_rate": {**real(1e-4, 0.3), **when("network")},
    "nn_decay": {**real(1e-5, 10), **when("network")},
}
KERNELS = ("linear", "rbf", "poly")
# a part: what chooses it, and how many runs it gets
PARTS = [({"learner": "svm", "svm_kernel": k}, n) for k, n in zip(KERNELS, (100, 300, 350))] + [
    ({"learner": "neighbours"}, 350), ({"learner": "forest"}, 130), ({"learner": "boosting"}, 130),
    ({"learner": "network"}, 350)]


def columns_of(chosen):
    """The parameters that have an effect under these values, without those that are fixed by them."""
    def holds(p):
        return all(chosen.get(k) in (v if isinstance(v, list) else [v]) for k, v in p.get("when", {}).items())
    return [name for name, p in SPACE.items() if name not in chosen and holds(p)]


# ---- data ----

def read(path):
    return [[v.strip() for v in r] for r in csv.reader(open(path)) if r]


def digits(folder):
    """Which of five digits."""
    rows = np.array([[float(v) for v in r] for r in read(os.path.join(folder, "digits.csv"))[1:]])
    rows = rows[np.isin(rows[:, -1], [1, 3, 5, 8, 9])]
    return rows[:, :-1], rows[:, -1]


def letter(folder):
    """Which of five letters that look alike."""
    rows = [r for r in read(os.path.join(folder, "letter.csv"))[1:] if r[0] in "BERSH"]
    return np.array([[float(v) for v in r[1:]] for r in rows]), np.array([r[0] for r in rows])


def adult(folder):
    """Income above 50,000; categories as numbers, without the census weight."""
    columns = []
    for column in list(zip(*read(os.path.join(folder, "adult_train.csv")))):
        try:
            columns.append([float(v) for v in column])
        except ValueError:
            places = {v: i for i, v in enumerate(sorted(set(column)))}
            columns.append([places[v] for v in column])
    x = np.array(columns, float).T
    return np.delete(x[:, :-1], 2, axis=1), x[:, -1]


def california(folder):
    """Which third of the house values."""
    rows = list(csv.DictReader(open(os.path.join(folder, "california_housing.csv"))))
    names = [n for n in rows[0] if n not in ("median_house_value", "ocean_proximity")]
    x = np.nan_to_num(np.array([[float(r[n] or "nan") for n in names] for r in rows]), nan=500)
    y = np.array([float(r["median_house_value"]) for r in rows])
    return x, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))


SETS = {"learners-adult": adult, "learners-letter": letter, "learners-california": california,
        "learners-digits": digits}


# ---- runs ----

def scaled(kind, xa, xb):
    from sklearn.preprocessing import MinMaxScaler, StandardScaler
    if kind == "none":
        return xa, xb
    s = (StandardScaler() if kind == "standard" else MinMaxScaler()).fit(xa)
    return s.transform(xa), s.transform(xb)


def draw(rng, name):
    p = SPACE[name]
    if p["type"] == "categorical":
        return str(rng.choice(p["values"]))
    low, high, u = p["min"], p["max"], rng.random()
    if p["type"] == "int":
        low, high = low - 0.5, high + 0.5
    v = low * (high / low) ** u if p["scale"] == "log" else low + u * (high - low)
    return int(min(max(round(v), p["min"]), p["max"])) if p["type"] == "int" else float(v)


def learner_of(c):
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC
    if c["learner"] == "svm":
        return SVC(kernel=c["svm_kernel"], C=c["svm_c"], gamma=c.get("svm_gamma", 1.0), degree=c.get("svm_degree", 3),
                   max_iter=2000)
    if c["learner"] == "neighbours":
        return KNeighborsClassifier(c["knn_k"], weights=c["knn_weights"], p=c["knn_power"])
    if c["learner"] == "forest":
        return RandomForestClassifier(STAGES[-1], max_depth=c["rf_depth"], max_features=c["rf_features"],
                                      min_samples_leaf=c["rf_leaf"], random_state=SEED)
    if c["learner"] == "boosting":
        return GradientBoostingClassifier(n_estimators=STAGES[-1], learning_rate=c["gb_rate"], max_depth=c["gb_depth"],
                                          subsample=c["gb_subsample"], random_state=SEED)
    return MLPClassifier((c["nn_width"],), learning_rate_init=c["nn_rate"], alpha=c["nn_decay"], batch_size=50,
                         max_iter=30, random_state=SEED)


def run(c, data):
    """(configuration, error) of each stage of one run."""
    xa, ya, xb, yb = data
    xa, xb = scaled(c["scaler"], xa, xb)
    try:
        model = learner_of(c).fit(xa, ya)
    except ValueError:  # coefficients that are not finite: the commonest class remains
        return [(c, float(np.mean(yb != np.unique(ya)[np.unique(ya, return_counts=True)[1].argmax()])))]
    if c["learner"] == "boosting":
        out = dict(enumerate(model.staged_predict(xb), 1))
        return [({**c, "gb_rounds": n}, float(np.mean(out[n] != yb))) for n in STAGES]
    if c["learner"] == "forest":
        sums = np.cumsum([tree.predict_proba(xb) for tree in model.estimators_], axis=0)
        return [({**c, "rf_trees": n}, float(np.mean(model.classes_[sums[n - 1].argmax(1)] != yb))) for n in STAGES]
    return [(c, float(np.mean(model.predict(xb) != yb)))]


def rows_of(chosen, n, data, rng):
    """Of n runs: the columns as numbers, and the errors."""
    names = columns_of(chosen)

    def number(c, name):
        return SPACE[name]["values"].index(c[name]) if SPACE[name]["type"] == "categorical" else c[name]
    rows = [row for _ in range(n) for row in run({**chosen, **{name: draw(rng, name) for name in names}}, data)]
    x = np.array([[number(c, name) for name in names] for c, _ in rows], float)
    return names, x, np.array([v for _, v in rows])


# ---- forests ----

def forest():
    """An average of trees, which never leaves the range of what was measured."""
    from sklearn.ensemble import RandomForestRegressor
    return RandomForestRegressor(24, max_leaf_nodes=32, min_samples_leaf=2, max_features=0.7, random_state=SEED)


def preorder(tree, share):
    out = []

    def visit(i):
        if tree.children_left[i] < 0:
            out.extend([-1, float(f"{share * tree.value[i, 0, 0]:.5g}")])
            return
        out.extend([int(tree.feature[i]), float(f"{tree.threshold[i]:.6g}")])
        visit(tree.children_left[i])
        visit(tree.children_right[i])

    visit(0)
    return out


class Sum:
    """A part as it is stored: the same sums as learners.c computes."""

    def __init__(self, part):
        self.part = part
        self.cuts = [set() for _ in part["columns"]]
        for tree in part["trees"]:
            for column, threshold in zip(tree[::2], tree[1::2]):
                if column >= 0:
                    self.cuts[column].add(threshold)

    def values(self, x):
        out = np.zeros(len(x))
        for tree in self.part["trees"]:
            self.add(tree, 0, x, np.arange(len(x)), out)
        return out

    def add(self, tree, at, x, rows, out):
        """The end of the subtree that begins at `at`."""
        if tree[at] < 0:
            out[rows] += tree[at + 1]
            return at + 2
        left = x[rows, tree[at]] <= tree[at + 1]
        at_right = self.add(tree, at + 2, x, rows[left], out)
        return self.add(tree, at_right, x, rows[~left], out)

    def choices(self, j):
        """A value of the column in every interval between two cuts."""
        p = SPACE[self.part["columns"][j]]
        if p["type"] == "categorical":
            return np.arange(len(p["values"]))
        if p["type"] == "int":
            return np.arange(p["min"], p["max"] + 1)
        ends = [p["min"], *sorted(c for c in self.cuts[j] if p["min"] < c < p["max"]), p["max"]]
        return (np.array(ends[:-1]) + np.array(ends[1:])) / 2

    def lowest(self, rng):
        """Of 20,000 random points, and of the best 20 after moves of one and then two columns until none is better."""
        d = len(self.part["columns"])
        places = [self.choices(j) for j in range(d)]
        x = np.stack([rng.choice(places[j], 20000) for j in range(d)], axis=1).astype(float)
        values = self.values(x)
        return min((self.descend(u.copy(), places) for u in x[np.argsort(values)[:20]]), key=lambda found: found[0])

    def descend(self, u, places):
        value, d = self.values(u[None])[0], len(u)
        moves = [(j,) for j in range(d)] + [(i, j) for i in range(d) for j in range(i)]
        again = True
        while again:
            again = False
            for move in moves:
                grid = np.stack(np.meshgrid(*[places[j] for j in move]), axis=-1).reshape(-1, len(move))
                x = np.repeat(u[None], len(grid), axis=0)
                x[:, move] = grid
                found = self.values(x)
                if found.min() < value:
                    value, u, again = found.min(), x[found.argmin()], True
        return float(value), u


def value_of(name, v):
    kind = SPACE[name]["type"]
    return SPACE[name]["values"][int(v)] if kind == "categorical" else int(v) if kind == "int" else float(f"{v:.6g}")


def part_of(chosen, n, data, rng):
    from sklearn.model_selection import cross_val_predict
    names, x, y = rows_of(chosen, n, data, rng)
    model = forest().fit(x, y)
    part = {"when": chosen, "columns": names,
            "trees": [preorder(t.tree_, 1 / len(model.estimators_)) for t in model.estimators_]}
    part_sum = Sum(part)
    assert np.abs(part_sum.values(x) - model.predict(x)).max() < 2e-3
    held_out = cross_val_predict(forest(), x, y, cv=5)
    r2 = 1 - np.mean((held_out - y) ** 2) / y.var()
    low, u = part_sum.lowest(rng)
    print(f"  {' '.join(chosen.values())}: {len(y)} rows, lowest {y.min():.4f}, median {np.median(y):.4f}, "
          f"lowest sum {low:.4f}, R2 held out {r2:.2f}", file=sys.stderr)
    return low, {**chosen, **{name: value_of(name, v) for name, v in zip(names, u)}}, part


def make(name, folder):
    import sklearn
    print(name, file=sys.stderr)
    x, y = SETS[name](folder)
    order = np.random.RandomState(SEED).permutation(len(x))
    a, b = order[:N_TRAIN], order[N_TRAIN:N_TRAIN + N_VALID]
    rng = np.random.default_rng(SEED)
    made = [part_of(chosen, n, (x[a], y[a], x[b], y[b]), rng) for chosen, n in PARTS]
    about = (f"Error on {len(b)} rows held out of one of five learners trained on {len(a)} rows of "
             f"{name.split('-')[1]}: {SETS[name].__doc__} make_learners.py, seed {SEED}, scikit-learn "
             f"{sklearn.__version__}, numpy {np.__version__}.")
    low, best, _ = min(made, key=lambda one: one[0])
    doc = {"about": about, "parameters": SPACE, "optimum": math.floor(low * 1e9) / 1e9,
           "best": best, "parts": [part for _, _, part in made]}
    with open(os.path.join(HERE, name + ".json"), "w") as out:
        out.write(json.dumps(doc, separators=(",", ":")) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", default="data")
    p.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SETS))
    args = p.parse_args()
    warnings.simplefilter("ignore")
    for name in args.names or SETS:
        make(name, args.data)


if __name__ == "__main__":
    main()
