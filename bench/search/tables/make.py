#!/usr/bin/env python3
"""Make the tables of real tuning problems: every cell of a grid, trained once.

    /usr/bin/python3 bench/search/tables/make.py --data DIR [--trainer build/trial-runner/train/assay-train] [NAME…]

DIR holds digits.csv, and letter.csv, california_housing.csv and adult_train.csv, which are not in this repository
(UCI Letter Recognition and Adult, StatLib California housing). Needs numpy and scikit-learn; mlp-digits and trainer-* need the built trainer instead. Writes NAME.csv beside this
script: comment lines (what it is, how it was made, the space as JSON), a header, a row per cell. An empty parameter
is inactive; an empty value is a run that ended without a finite result.

Each cell is one run with one seed, on one fixed split. So a table is an exact function: what noise the training had
is frozen in it, as bumps of the surface, and its lowest cell is the best of this seed, not of the method in general.
"""
import argparse
import csv
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = 20261120


def log2(low, high):
    return {"type": "int", "min": low, "max": high}


def choice(*values):
    return {"type": "categorical", "values": list(values)}


def numbers(path):
    import numpy
    rows = [r for r in csv.reader(open(path))]
    return rows[0], numpy.array([[float(v or "nan") for v in r] for r in rows[1:]])


def split(x, y, n_train, n_valid):
    import numpy
    order = numpy.random.RandomState(SEED).permutation(len(x))
    a, b = order[:n_train], order[n_train:n_train + n_valid]
    return x[a], y[a], x[b], y[b]


class SvmLetter:
    about = ("Error of a support vector machine (sklearn.svm.SVC) on letter recognition: 1,000 rows to train on, "
             "3,000 held out, features divided by 15")
    space = {
        "kernel": choice("linear", "rbf", "poly", "sigmoid"),
        "log2_c": log2(-6, 12),
        "log2_gamma": {**log2(-8, 5), "when": {"kernel": ["rbf", "poly", "sigmoid"]}},
        "degree": {"type": "int", "min": 2, "max": 4, "when": {"kernel": "poly"}},
    }

    def rows(self, args):
        import numpy
        from sklearn.svm import SVC
        rows = list(csv.reader(open(os.path.join(args.data, "letter.csv"))))[1:]
        x = numpy.array([[float(v) / 15 for v in r[1:]] for r in rows])
        xa, ya, xb, yb = split(x, numpy.array([ord(r[0]) for r in rows]), 1000, 3000)
        for kernel, c in itertools.product(["linear", "rbf", "poly", "sigmoid"], range(-6, 13)):
            for gamma in [None] if kernel == "linear" else range(-8, 6):
                for degree in [2, 3, 4] if kernel == "poly" else [None]:
                    svm = SVC(kernel=kernel, C=2.0 ** c, gamma=2.0 ** (gamma or 0), degree=degree or 3,
                              max_iter=20000, cache_size=200)
                    yield [kernel, c, gamma, degree], 1 - svm.fit(xa, ya).score(xb, yb)


class BoostingCalifornia:
    about = ("Root mean squared error of log(house value), gradient boosting (sklearn.ensemble."
             "GradientBoostingRegressor) on California housing: 1,200 rows to train on, 4,000 held out")
    space = {
        "log2_rate": log2(-7, 0),
        "depth": {"type": "int", "min": 1, "max": 6},
        "log2_trees": log2(3, 7),
        "subsample": {"type": "float", "min": 0.4, "max": 1.0, "step": 0.2},
        "log2_leaf": log2(0, 4),
    }

    def rows(self, args):
        import numpy
        from sklearn.ensemble import GradientBoostingRegressor
        rows = list(csv.DictReader(open(os.path.join(args.data, "california_housing.csv"))))
        names = [n for n in rows[0] if n not in ("median_house_value", "ocean_proximity")]
        x = numpy.nan_to_num(numpy.array([[float(r[n] or "nan") for n in names] for r in rows]), nan=-1)
        y = numpy.log(numpy.array([float(r["median_house_value"]) for r in rows]))
        xa, ya, xb, yb = split(x, y, 1200, 4000)
        for rate, depth, sub, leaf in itertools.product(range(-7, 1), range(1, 7), [0.4, 0.6, 0.8, 1.0], range(5)):
            model = GradientBoostingRegressor(learning_rate=2.0 ** rate, max_depth=depth, subsample=sub,
                                              min_samples_leaf=2 ** leaf, n_estimators=128, random_state=SEED)
            model.fit(xa, ya)
            for trees, out in enumerate(model.staged_predict(xb), 1):
                if trees in (8, 16, 32, 64, 128):
                    yield ([rate, depth, trees.bit_length() - 1, sub, leaf],
                           math.sqrt(numpy.mean((out - yb) ** 2)))


class ForestAdult:
    about = ("Log loss of a random forest (sklearn.ensemble.RandomForestClassifier) on census income: 1,500 rows to "
             "train on, 4,000 held out, categories as numbers")
    space = {
        "depth": {"type": "int", "min": 2, "max": 14, "step": 2},
        "log2_leaf": log2(0, 6),
        "features": choice("sqrt", "third", "half", "all"),
        "criterion": choice("gini", "entropy"),
        "bootstrap": {"type": "bool"},
        "log2_trees": log2(2, 5),
    }

    def rows(self, args):
        import numpy
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.metrics import log_loss
        rows = [[v.strip() for v in r] for r in csv.reader(open(os.path.join(args.data, "adult_train.csv"))) if r]
        columns = []
        for column in list(zip(*rows))[:-1]:
            try:
                columns.append([float(v) for v in column])
            except ValueError:
                places = {v: i for i, v in enumerate(sorted(set(column)))}
                columns.append([places[v] for v in column])
        x, y = numpy.array(columns, float).T, numpy.array([r[-1] == ">50K" for r in rows], int)
        xa, ya, xb, yb = split(x, y, 1500, 4000)
        share = {"sqrt": "sqrt", "third": 1 / 3, "half": 0.5, "all": 1.0}
        for depth, leaf, features, criterion, boot in itertools.product(
                range(2, 15, 2), range(7), share, ["gini", "entropy"], [False, True]):
            forest = RandomForestClassifier(max_depth=depth, min_samples_leaf=2 ** leaf, max_features=share[features],
                                            criterion=criterion, bootstrap=boot, random_state=SEED, n_estimators=32)
            forest.fit(xa, ya)
            total = 0
            for trees, tree in enumerate(forest.estimators_, 1):
                total = total + tree.predict_proba(xb)
                if trees in (4, 8, 16, 32):
                    yield ([depth, leaf, features, criterion, boot, trees.bit_length() - 1],
                           log_loss(yb, numpy.clip(total / trees, 1e-4, 1 - 1e-4)))


class MlpDigits:
    about = ("Cross-entropy of rows held out, after 6 epochs of assay-train's multilayer perceptron on handwritten "
             "digits: 1,258 rows to train on, 539 held out, ASSAY_SEED=1")
    space = {
        "log2_lr": log2(-13, -1),
        "log2_width": log2(4, 7),
        "layers": {"type": "int", "min": 1, "max": 3},
        "log2_batch": log2(4, 6),
        "optimizer": choice("sgd", "adamw"),
        "momentum": {"type": "float", "min": 0.0, "max": 0.9, "step": 0.3, "when": {"optimizer": "sgd"}},
        "log10_decay": {**log2(-4, -1), "when": {"optimizer": "adamw"}},
    }

    def rows(self, args):
        self.trainer, self.table = os.path.abspath(args.trainer), os.path.abspath(os.path.join(args.data, "digits.csv"))
        self.target = open(self.table).readline().strip().split(",")[-1]
        for lr, width, layers, batch in itertools.product(range(-13, 0), range(4, 8), range(1, 4), range(4, 7)):
            for momentum in (0.0, 0.3, 0.6, 0.9):
                yield [lr, width, layers, batch, "sgd", momentum, None], self.train(
                    lr, width, layers, batch, {"kind": "sgd", "momentum": momentum})
            for decay in range(-4, 0):
                yield [lr, width, layers, batch, "adamw", None, decay], self.train(
                    lr, width, layers, batch, {"kind": "adamw", "weight_decay": 10.0 ** decay})

    def train(self, lr, width, layers, batch, optimizer):
        data = {"name": "digits", "format": "csv", "target": self.target, "task": "classification", "rows": 1797,
                "features": 64, "outputs": 10, "classes": [str(i) for i in range(10)], "paths": {"table": self.table}}
        return run_trainer(self.trainer, data, [2 ** width] * layers, 2.0 ** lr, 2 ** batch, optimizer, 6)


def run_trainer(trainer, data, layers, lr, batch, optimizer, epochs):
    """The last val_loss of one run of assay-train; NaN when it diverged."""
    with tempfile.TemporaryDirectory() as folder:
        job, report = os.path.join(folder, "job.json"), os.path.join(folder, "report")
        train = {"dataset": data["name"], "model": {"layers": layers}, "epochs": epochs,
                 "optimizer": {**optimizer, "lr": lr}, "batch_size": batch, "validation": {"fraction": 0.3}}
        json.dump({"train": train, "dataset": data}, open(job, "w"))
        env = {"PATH": os.environ.get("PATH", ""), "ASSAY_SEED": "1", "ASSAY_REPORT": report,
               "ASSAY_BACKEND": "cpu", "OPENBLAS_NUM_THREADS": "1"}
        ended = subprocess.run([trainer, job], env=env, capture_output=True, text=True)
        lines = open(report).read().splitlines() if os.path.exists(report) else []
        if ended.returncode == 1 and lines:  # diverged: the last line of its report says NaN
            return math.nan
        if ended.returncode != 0:
            sys.exit(f"{trainer}: {ended.stderr}")
        return float(json.loads(lines[-1])["val_loss"])


class Trainer:
    """Depth opens widths, the optimizer opens its own parameter."""
    depths = {"type": "int", "min": 1, "max": 3}
    width = {"type": "int", "min": 3, "max": 7, "step": 2}
    space = {
        "depth": depths,
        "log2_width1": {**width, "when": {"depth": [1, 2, 3]}},
        "log2_width2": {**width, "when": {"depth": [2, 3]}},
        "log2_width3": {**width, "when": {"depth": 3}},
        "log2_lr": {"type": "int", "min": -12, "max": 0, "step": 2},
        "log2_batch": {"type": "int", "min": 4, "max": 6, "step": 2},
        "optimizer": choice("sgd", "adamw", "lion"),
        "momentum": {"type": "float", "min": 0.0, "max": 0.9, "step": 0.45, "when": {"optimizer": "sgd"}},
        "log10_decay": {"type": "int", "min": -4, "max": -1, "step": 3, "when": {"optimizer": ["adamw", "lion"]}},
    }

    def rows(self, args):
        trainer = os.path.abspath(args.trainer)
        optimizers = [("sgd", m, None) for m in (0.0, 0.45, 0.9)]
        optimizers += [(kind, None, decay) for kind in ("adamw", "lion") for decay in (-4, -1)]
        with tempfile.TemporaryDirectory() as folder:
            data, epochs = self.data(args, folder)
            for depth in (1, 2, 3):
                for widths, lr, batch, chosen in itertools.product(
                        itertools.product((3, 5, 7), repeat=depth), range(-12, 1, 2), (4, 6), optimizers):
                    kind, momentum, decay = chosen
                    more = {"momentum": momentum} if kind == "sgd" else {"weight_decay": 10.0 ** decay}
                    value = run_trainer(trainer, data, [2 ** w for w in widths], 2.0 ** lr, 2 ** batch,
                                        {"kind": kind, **more}, epochs)
                    yield [depth, *widths, *[None] * (3 - depth), lr, batch, kind, momentum, decay], value


class TrainerDigits(Trainer):
    about = ("Cross-entropy of rows held out, after 4 epochs of assay-train's multilayer perceptron on handwritten "
             "digits: 1,258 rows to train on, 539 held out, ASSAY_SEED=1")

    def data(self, args, folder):
        table = os.path.abspath(os.path.join(args.data, "digits.csv"))
        target = open(table).readline().strip().split(",")[-1]
        return {"name": "digits", "format": "csv", "target": target, "task": "classification", "rows": 1797,
                "features": 64, "outputs": 10, "classes": [str(i) for i in range(10)], "paths": {"table": table}}, 4


class TrainerCalifornia(Trainer):
    about = ("Mean squared error of log(house value), standardised, on rows held out, after 8 epochs of assay-train's "
             "multilayer perceptron on California housing: 1,400 rows to train on, 600 held out, ASSAY_SEED=1")

    def data(self, args, folder):
        rows = list(csv.DictReader(open(os.path.join(args.data, "california_housing.csv"))))
        names = [n for n in rows[0] if n not in ("median_house_value", "ocean_proximity")]
        rows = [r for r in rows if all(r[n] for n in names)]
        rows = rows[::len(rows) // 2000][:2000]
        columns = [[float(r[n]) for r in rows] for n in names]
        columns.append([math.log(float(r["median_house_value"])) for r in rows])
        for column in columns:
            mean = sum(column) / len(column)
            deviation = math.sqrt(sum((v - mean) ** 2 for v in column) / len(column))
            column[:] = [(v - mean) / deviation for v in column]
        table = os.path.join(folder, "houses.csv")
        with open(table, "w") as out:
            out.write(",".join([*names, "value"]) + "\n")
            out.writelines(",".join(f"{v:.6g}" for v in row) + "\n" for row in zip(*columns))
        return {"name": "houses", "format": "csv", "target": "value", "task": "regression", "rows": len(rows),
                "features": len(names), "outputs": 1, "paths": {"table": table}}, 8


TABLES = {"svm-letter": SvmLetter(), "boosting-california": BoostingCalifornia(), "forest-adult": ForestAdult(),
          "mlp-digits": MlpDigits(), "trainer-digits": TrainerDigits(), "trainer-california": TrainerCalifornia()}


def versions(name):
    if isinstance(TABLES[name], (MlpDigits, Trainer)):
        return "assay-train, back end cpu"
    import numpy
    import sklearn
    return f"Python {sys.version.split()[0]}, scikit-learn {sklearn.__version__}, numpy {numpy.__version__}"


def text(value):
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def make(name, args):
    table = TABLES[name]
    rows = list(table.rows(args))
    with open(os.path.join(HERE, name + ".csv"), "w") as out:
        out.write(f"# {table.about}.\n# Made by make.py: {versions(name)}; seed {SEED} of split and model; one run a cell.\n")
        out.write(f"# parameters: {json.dumps(table.space)}\n")
        out.write(",".join([*table.space, "value"]) + "\n")
        for cell, value in rows:
            out.write(",".join([*map(text, cell), f"{value:.6g}" if math.isfinite(value) else ""]) + "\n")
    print(f"{name}: {len(rows)} cells, lowest {min(v for _, v in rows if math.isfinite(v)):.6g}", file=sys.stderr)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", default="data")
    p.add_argument("--trainer", default="build/trial-runner/train/assay-train")
    p.add_argument("names", nargs="*", metavar="NAME")
    args = p.parse_args()
    for name in args.names or TABLES:
        if name not in TABLES:
            p.error(f"no table '{name}'; there are {', '.join(TABLES)}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make(name, args)


if __name__ == "__main__":
    main()
