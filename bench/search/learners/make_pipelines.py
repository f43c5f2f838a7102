#!/usr/bin/env python3
"""Make the problems pipelines-* and texts-*: surrogates of real runs of pipelines before a linear model.

    /usr/bin/python3 bench/search/learners/make_pipelines.py --data DIR [--licences DIR] [NAME…]

DIR as make_learners.py has it; --licences is Debian's folder of licences. Needs numpy and scikit-learn.
pipelines-*: 400 rows, of whose values a tenth is missing; imputer, scaler, polynomials, reducer, stochastic gradient
descent (17 parameters). texts-*: from which licence a piece of text comes; a vectoriser and one of three classifiers (15
parameters). A run's error is measured on rows held out. Parts are as forests.py has them.
"""
import argparse
import os
import re
import sys
import warnings

import numpy as np

import forests
import make_learners
from forests import choice, real, whole

SEED = 20261130
N_TRAIN, N_VALID = 400, 1000

PIPELINE = {
    "loss": choice("hinge", "log_loss", "modified_huber"),
    "scaler": choice("none", "standard", "range", "robust", "quantile"),
    "imputer": choice("mean", "median", "most_frequent", "constant"),
    "indicator": choice(True, False),
    "polynomials": choice("none", "products", "squares"),
    "reducer": choice("none", "pca", "best", "variance"),
    "pca_share": real(0.05, 1, "linear", reducer="pca"),
    "best_share": real(0.05, 1, "linear", reducer="best"),
    "variance_above": real(1e-6, 1, "log", reducer="variance"),
    "penalty": choice("l1", "l2", "elasticnet"),
    "l1_ratio": real(0, 1, "linear", penalty="elasticnet"),
    "alpha": real(1e-8, 1),
    "rate": choice("optimal", "constant", "invscaling", "adaptive"),
    "rate_start": real(1e-6, 10, "log", rate=["constant", "invscaling", "adaptive"]),
    "rate_power": real(0.05, 1, "linear", rate="invscaling"),
    "epochs": whole(1, 60, "log"),
    "average": choice(True, False),
}
PIPELINE_PARTS = [({"loss": k}, 260) for k in PIPELINE["loss"]["values"]]

LINEAR = ["svm", "logistic"]
TEXT = {
    "classifier": choice("bayes", "svm", "logistic"),
    "unit": choice("word", "char"),
    "ngram_max": whole(1, 5),
    "min_df": whole(1, 20, "log"),
    "max_df": real(0.05, 1, "linear"),
    "max_features": whole(20, 5000, "log"),
    "weighting": choice("counts", "present", "tfidf"),
    "sublinear": choice(True, False, weighting="tfidf"),
    "norm": choice("none", "l1", "l2", weighting="tfidf"),
    "stop_words": choice("none", "english", unit="word"),
    "smoothing": real(1e-5, 100, "log", classifier="bayes"),
    "fit_prior": choice(True, False, classifier="bayes"),
    "c": real(1e-5, 1e5, "log", classifier=LINEAR),
    "svm_loss": choice("hinge", "squared_hinge", classifier="svm"),
    "balanced": choice(True, False, classifier=LINEAR),
}
TEXT_PARTS = [({"classifier": "bayes"}, 250), ({"classifier": "svm"}, 280), ({"classifier": "logistic"}, 280)]


# ---- pipelines ----

def scaler(kind):
    from sklearn import preprocessing as s
    return {"none": lambda: s.FunctionTransformer(), "standard": lambda: s.StandardScaler(),
            "range": lambda: s.MinMaxScaler(), "robust": lambda: s.RobustScaler(),
            "quantile": lambda: s.QuantileTransformer(n_quantiles=100)}[kind]()


def steps_of(c, n_columns):
    from sklearn.decomposition import PCA
    from sklearn.feature_selection import SelectPercentile, VarianceThreshold
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import SGDClassifier
    from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
    steps = [SimpleImputer(strategy=c["imputer"], fill_value=0, add_indicator=c["indicator"]), scaler(c["scaler"])]
    if c["polynomials"] != "none":
        steps.append(PolynomialFeatures(2, interaction_only=c["polynomials"] == "products", include_bias=False))
    if c["reducer"] == "pca":
        steps.append(PCA(max(1, int(c["pca_share"] * n_columns)), random_state=SEED))
    if c["reducer"] == "best":
        steps.append(SelectPercentile(percentile=100 * c["best_share"]))
    if c["reducer"] == "variance":
        steps.append(VarianceThreshold(c["variance_above"]))
    steps.append(FunctionTransformer(lambda x: np.clip(x, -1e6, 1e6)))
    return steps + [SGDClassifier(
        loss=c["loss"], penalty=c["penalty"], l1_ratio=c.get("l1_ratio", 0.15), alpha=c["alpha"],
        learning_rate=c["rate"], eta0=c.get("rate_start", 0.1), power_t=c.get("rate_power", 0.5),
        max_iter=c["epochs"], tol=None, average=c["average"], random_state=SEED)]


def error_of(steps, data):
    from sklearn.pipeline import make_pipeline
    xa, ya, xb, yb = data
    try:
        out = make_pipeline(*steps).fit(xa, ya).predict(xb)
    except (ValueError, FloatingPointError, OverflowError):  # nothing is left, or it diverged: the commonest class
        out = np.bincount(ya).argmax()
    return float(np.mean(out != yb))


def pipelines(of, args):
    x, y = make_learners.SETS["learners-" + of](args.data)
    order = np.random.RandomState(SEED).permutation(len(x))[:N_TRAIN + N_VALID]
    x, y = x[order], np.unique(y[order], return_inverse=True)[1]
    keep = x[:N_TRAIN].std(0) > 0
    x = x[:, keep][:, :16]
    rng = np.random.default_rng(SEED)
    x[rng.random(x.shape) < 0.1] = np.nan
    data = x[:N_TRAIN], y[:N_TRAIN], x[N_TRAIN:], y[N_TRAIN:]
    made = [forests.part_of(PIPELINE, chosen, n, lambda c: [(c, error_of(steps_of(c, x.shape[1]), data))], rng, SEED)
            for chosen, n in PIPELINE_PARTS]
    return PIPELINE, made, f"stochastic gradient descent behind a pipeline, trained on {N_TRAIN} rows of {of}"


# ---- texts ----

KINDS = {"licences": ("GPL-2", "LGPL-2.1", "MPL-1.1", "Artistic", "Apache-2.0", "CC0-1.0", "GFDL-1.2"),
         "versions": ("GPL-1", "GPL-2", "GPL-3", "LGPL-2", "LGPL-3", "GFDL-1.3")}
WORDS = {"licences": 8, "versions": 14}


def pieces(of, folder):
    texts, kinds = [], []
    for kind, name in enumerate(KINDS[of]):
        words = re.findall(r"\S+", open(os.path.join(folder, name), errors="replace").read())
        found = [" ".join(words[i:i + WORDS[of]]) for i in range(0, len(words) - WORDS[of], WORDS[of])]
        texts += found
        kinds += [kind] * len(found)
    return texts, np.array(kinds)


def text_steps(c):
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.svm import LinearSVC
    steps = [CountVectorizer(
        analyzer=c["unit"], ngram_range=(1, c["ngram_max"]), min_df=c["min_df"], max_df=c["max_df"],
        max_features=c["max_features"], binary=c["weighting"] == "present",
        stop_words="english" if c.get("stop_words") == "english" else None)]
    if c["weighting"] == "tfidf":
        steps.append(TfidfTransformer(norm=None if c["norm"] == "none" else c["norm"], sublinear_tf=c["sublinear"]))
    weight = "balanced" if c.get("balanced") else None
    if c["classifier"] == "bayes":
        return steps + [MultinomialNB(alpha=c["smoothing"], fit_prior=c["fit_prior"])]
    if c["classifier"] == "svm":
        return steps + [LinearSVC(C=c["c"], loss=c["svm_loss"], class_weight=weight, max_iter=200, random_state=SEED)]
    return steps + [LogisticRegression(C=c["c"], class_weight=weight, max_iter=40)]


def licences(of, args):
    texts, kinds = pieces(of, args.licences)
    order = np.random.RandomState(SEED).permutation(len(texts))[:N_TRAIN + N_VALID]
    texts, kinds = [texts[i] for i in order], kinds[order]
    data = texts[:N_TRAIN], kinds[:N_TRAIN], texts[N_TRAIN:], kinds[N_TRAIN:]
    rng = np.random.default_rng(SEED)
    made = [forests.part_of(TEXT, chosen, n, lambda c: [(c, error_of(text_steps(c), data))], rng, SEED)
            for chosen, n in TEXT_PARTS]
    return TEXT, made, f"a classifier of texts, trained on {N_TRAIN} pieces of {len(KINDS[of])} licences"


NAMES = {**{"pipelines-" + name.split("-")[1]: pipelines for name in make_learners.SETS},
         **{"texts-" + name: licences for name in KINDS}}


def main():
    import sklearn
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", default="data")
    p.add_argument("--licences", default="/usr/share/common-licenses")
    p.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    args = p.parse_args()
    warnings.simplefilter("ignore")
    for name in args.names or NAMES:
        print(name, file=sys.stderr)
        space, made, what = NAMES[name](name.split("-")[1], args)
        about = (f"Error on rows held out of {what}. make_pipelines.py, seed {SEED}, scikit-learn "
                 f"{sklearn.__version__}, numpy {np.__version__}.")
        forests.write(name, about, space, made)


if __name__ == "__main__":
    main()
