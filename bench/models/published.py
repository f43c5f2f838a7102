#!/usr/bin/python3
"""Public tables of the AutoML benchmark, and what AutoGluon and auto-sklearn have on them by published figures.

    bench/models/published.py CLONES > bench/models/published.csv    the figures, from clones of the repositories with results

The tables are files of public git repositories, read from clones (default_tables.py) and never copied here. Figures are of ten
stratified folds, an hour of eight cores for each: AUC of two classes, log loss of more, RMSE of numbers. The folds are the
benchmark's own, which are not in any repository that we know of: ours are stratified, too, and others."""
import csv
import io
import math
import os
import re
import subprocess
import sys

import default_tables as tables

IS = "victorhb/IS2020_results"
CE = "Moffran/calibrated_explanations"
CE_MULTI, HEAD = "6af1cf4e545753be670215f85b6df4a9e71a0c6f", "HEAD"
LW = "lwawrowski/adversarial_attacks_detection"
# name: (repository, commit, path, target: the place of its column, metric, columns that are left out)
TABLES = {
    "blood-transfusion": (IS, HEAD, "datasets/blood-transfusion-service-center.arff", -1, "auc", ()),
    "australian": (IS, HEAD, "datasets/Australian.arff", -1, "auc", ()),
    "qsar-biodeg": (IS, HEAD, "datasets/qsar-biodeg.arff", -1, "auc", ()),
    "kc1": (IS, HEAD, "datasets/kc1.arff", -1, "auc", ()),
    "ozone": (IS, HEAD, "datasets/ozone-level-8hr.arff", -1, "auc", ()),
    "wilt": (LW, HEAD, "data/wilt.csv", -2, "auc", ("name", "is_train", "prediction")),
    "phoneme": (LW, HEAD, "data/phoneme.csv", -2, "auc", ("name", "is_train", "prediction")),
    "churn": (LW, HEAD, "data/churn.csv", -2, "auc", ("name", "is_train", "prediction")),
    "eucalyptus": (tables.ARFF, HEAD, "agridata/eucalyptus.arff", -1, "log_loss", ()),
    "yeast": (CE, CE_MULTI, "data/Multiclass/multi/yeast.csv", -1, "log_loss", ()),
    "steel-plates": (CE, CE_MULTI, "data/Multiclass/multi/steel.csv", -1, "log_loss", ()),
    "boston": (tables.ARFF, HEAD, "regression/housing.arff", -1, "rmse", ()),
    "sensory": (tables.ARFF, HEAD, "regression/sensory.arff", -1, "rmse", ()),
    "quake": (tables.ARFF, HEAD, "regression/quake.arff", -1, "rmse", ()),
    "socmob": (tables.ARFF, HEAD, "statlib/numeric/socmob.arff", -1, "rmse", ()),
    "space-ga": (tables.ARFF, HEAD, "statlib/numeric/space_ga.arff", 0, "rmse", ()),
    # the shipped first trials of `assay fit` were learned on parts of these: without them only
    "credit-g": (tables.ARFF, HEAD, "classification/credit.g.arff", -1, "auc", ()),
    "vehicle": (tables.ARFF, HEAD, "classification/vehicle.arff", -1, "log_loss", ()),
    "cmc": (tables.ARFF, HEAD, "classification/cmc.arff", -1, "log_loss", ()),
    "car": (tables.ARFF, HEAD, "classification/car.arff", -1, "log_loss", ()),
    "segment": (tables.ARFF, HEAD, "classification/segment.arff", -1, "log_loss", ()),
}
TARGET = tables.TARGET
# what the benchmark calls some of them
NAMES = {"blood-transfusion-service-center": "blood-transfusion", "ozone-level-8hr": "ozone", "steel-plates-fault": "steel-plates"}
AMLB, AG = "openml/automlbenchmark", "Innixma/autogluon-benchmark"
SOURCES = (  # who, repository, path, framework in the file, constraint or None
    ("AutoGluon 1.0 (2023)", AG, "v1_results/autogluon_v1.csv", "AutoGluon_bq_v1", "1h8c"),
    ("auto-sklearn 0.5 (2019)", AMLB, "reports/old/tables/1h/all_results.csv", "autosklearn", None))
FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "published.csv")


def show(clones, repository, commit, path):
    git = os.path.join(clones, repository.replace("/", "+"), "repo")
    return subprocess.run(["git", "-C", git, "show", f"{commit}:{path}"], capture_output=True, check=True).stdout.decode("utf-8", "replace")


def read(clones, name):
    """(names, rows, metric): the target last, named TARGET; all rows, in the file's order."""
    repository, commit, path, target, metric, left_out = TABLES[name]
    text = show(clones, repository, commit, path)
    if path.endswith(".arff"):
        names, rows = tables.read_arff(text)
    else:
        names, *rows = csv.reader(io.StringIO(text), delimiter=";" if ";" in text.split("\n", 1)[0] else ",")
    at = target % len(names)
    keep = [i for i in range(len(names)) if i != at and names[i] not in left_out]
    prefix = "" if metric == "rmse" else "c"
    plain = [f"c{n}_{re.sub('[^A-Za-z0-9_]', '_', names[i])}" for n, i in enumerate(keep)]
    return plain + [TARGET], [[r[i] for i in keep] + [prefix + r[at]] for r in rows if len(r) == len(names) and r[at] != ""], metric


def _name(theirs):
    ours = theirs.lower().replace("_", "-")
    return NAMES.get(ours, ours)


def extract(clones):
    """Lines of published.csv."""
    yield "table,who,folds,mean,standard_error"
    for who, repository, path, framework, constraint in SOURCES:
        found = {}
        for r in csv.DictReader(io.StringIO(show(clones, repository, HEAD, path))):
            if r["framework"] == framework and constraint in (None, r.get("constraint")) and r["result"]:
                found.setdefault(_name(r["task"]), []).append(abs(float(r["result"])))
        for name in TABLES:
            v = found.get(name, [])
            if len(v) > 1:
                mean = sum(v) / len(v)
                error = math.sqrt(sum((x - mean) ** 2 for x in v) / (len(v) - 1) / len(v))
                yield f"{name},{who},{len(v)},{mean:.6g},{error:.2g}"


def figures():
    """{table: {who: (mean, standard error)}}"""
    found = {}
    with open(FILE, newline="", encoding="utf-8") as f:
        for r in csv.DictReader(f):
            found.setdefault(r["table"], {})[r["who"]] = float(r["mean"]), float(r["standard_error"])
    return found


if __name__ == "__main__":
    print("\n".join(extract(sys.argv[1])))
