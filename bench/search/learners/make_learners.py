#!/usr/bin/env python3
"""Make the problems of learners.c: surrogates of real runs of a choice among five learners.

    /usr/bin/python3 bench/search/learners/make_learners.py --data DIR [NAME…]

DIR holds digits.csv, letter.csv, california_housing.csv and adult_train.csv (tables/make.py says what they are). Needs
numpy and scikit-learn. Writes NAME.json beside this script.

A run trains one learner of scikit-learn on 300 rows, behind a scaler, and measures its error on 1,000 rows held out.
Each learner (of support vector machines, each kernel) is a part with a few hundred runs of random configurations and
a forest fitted to them. What a part does not read has no effect there, as in the real thing. Forests and boosted
trees are measured after 4, 8, … 64 of their trees, so one of their runs is several rows.
forests.py writes the files.
"""
import argparse
import csv
import os
import sys
import warnings

import numpy as np

import forests
from forests import choice, real, whole

SEED = 20261129
N_TRAIN, N_VALID = 300, 1000
STAGES = (4, 8, 16, 32, 64)


SPACE = {
    "learner": choice("svm", "neighbours", "forest", "boosting", "network"),
    "scaler": choice("none", "standard", "range"),
    "svm_kernel": choice("linear", "rbf", "poly", learner="svm"),
    "svm_c": real(0.01, 1000, "log", learner="svm"),
    "svm_gamma": real(1e-4, 10, "log", learner="svm", svm_kernel=["rbf", "poly"]),
    "svm_degree": whole(2, 4, "linear", learner="svm", svm_kernel="poly"),
    "knn_k": whole(1, 60, "log", learner="neighbours"),
    "knn_weights": choice("uniform", "distance", learner="neighbours"),
    "knn_power": real(1, 4, "linear", learner="neighbours"),
    "rf_trees": whole(4, 64, "log", learner="forest"),
    "rf_depth": whole(1, 15, "linear", learner="forest"),
    "rf_features": real(0.05, 1, "log", learner="forest"),
    "rf_leaf": whole(1, 30, "log", learner="forest"),
    "gb_rounds": whole(4, 64, "log", learner="boosting"),
    "gb_rate": real(0.01, 1, "log", learner="boosting"),
    "gb_depth": whole(1, 6, "linear", learner="boosting"),
    "gb_subsample": real(0.2, 1, "linear", learner="boosting"),
    "nn_width": whole(4, 128, "log", learner="network"),
    "nn_rate": real(1e-4, 0.3, "log", learner="network"),
    "nn_decay": real(1e-5, 10, "log", learner="network"),
}
KERNELS = ("linear", "rbf", "poly")
# a part: what chooses it, and how many runs it gets
PARTS = [({"learner": "svm", "svm_kernel": k}, n) for k, n in zip(KERNELS, (100, 300, 350))] + [
    ({"learner": "neighbours"}, 350), ({"learner": "forest"}, 130), ({"learner": "boosting"}, 130),
    ({"learner": "network"}, 350)]


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


def make(name, folder):
    import sklearn
    print(name, file=sys.stderr)
    x, y = SETS[name](folder)
    order = np.random.RandomState(SEED).permutation(len(x))
    a, b = order[:N_TRAIN], order[N_TRAIN:N_TRAIN + N_VALID]
    rng = np.random.default_rng(SEED)
    data = x[a], y[a], x[b], y[b]
    made = [forests.part_of(SPACE, chosen, n, lambda c: run(c, data), rng, SEED, leaves=32, descents=20, most=100_000)
            for chosen, n in PARTS]
    about = (f"Error on {len(b)} rows held out of one of five learners trained on {len(a)} rows of "
             f"{name.split('-')[1]}: {SETS[name].__doc__} make_learners.py, seed {SEED}, scikit-learn "
             f"{sklearn.__version__}, numpy {np.__version__}.")
    forests.write(name, about, SPACE, made)


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
