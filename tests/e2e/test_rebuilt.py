#!/usr/bin/env python3
"""What docs/models.md says of a model file is enough to predict with it: networks that are rebuilt from the document alone
(rebuild.py, numpy), and calibrated stacked ensembles of extra trees, neighbours, naive Bayes and networks (rebuild_whole.py),
predict what `assay predict` does."""
import os
import random
import subprocess
import sys
import tempfile

from harness import PATIENCE_S, Assay, skip

HERE = os.path.dirname(os.path.abspath(__file__))
SWEEP = """
name: {name}
metric: {{name: val_loss, goal: minimize}}
parameters: {{p: {{type: constant, value: 1}}}}
search: {{method: random, seed: 1}}
limits: {{max_trials: 1}}
trial: {{train: {{dataset: {data}, epochs: 4, batch_size: 16, optimizer: {{lr: 0.01}}, {fields}}}}}
"""
# One trial of each kind, two of neighbours, in three folds: networks see a part of the parameters.
KINDS = """
name: {name}
metric: {{name: {metric}, goal: minimize}}
search: {{method: grid}}
parameters:
  kind: {{type: categorical, values: [extra_trees, knn, {kinds}]}}
  epochs: {{type: constant, value: 5, when: {{kind: [mlp, {linear}]}}}}
  lr: {{type: constant, value: 0.01, when: {{kind: [mlp, {linear}]}}}}
  weights: {{type: categorical, values: [uniform, distance], when: {{kind: knn}}}}
  neighbours: {{type: constant, value: 7, when: {{kind: knn}}}}
trial:
  train:
    dataset: {data}
    epochs: "${{epochs}}"
    optimizer: {{lr: "${{lr}}"}}
    validation: {{folds: 3}}
    model: {{kind: "${{kind}}", weights: "${{weights}}", neighbours: "${{neighbours}}"}}
"""
# Of each ensemble its data set, its metric and how it is asked for.
WHOLE = {
    "whole-classes": ("classes", "val_log_loss", "naive_bayes, logistic, mlp", "logistic", ["--method", "stacking", "--calibrate"]),
    "whole-numbers": ("table", "val_rmse", "linear, mlp", "linear", ["--method", "stacking"]),
    "whole-mean": ("classes", "val_log_loss", "naive_bayes, logistic, mlp", "logistic", ["--method", "greedy"]),
}
# Of each network its data set and its fields.
NETWORKS = {
    "normed": ("table", "model: {layers: [7, 5], norm: batch}"),
    "embedded": ("table", "model: {layers: [6], embedding: 3, activation: gelu}"),
    "linear": ("table", "standardize: false, model: {kind: linear}"),
    "bins": ("table", "numbers: {encode: piecewise_linear, bins: 7}, model: {layers: [9]}"),
    "bce": ("classes", "loss: bce, model: {layers: [9], activation: tanh}"),
    "cnn": ("images", "model: {kind: cnn, layers: [{conv: 4, norm: batch}, {residual: [{conv: 6, stride: 2, norm: batch}, "
                      "{conv: 6, activation: none}]}, {conv: 12, depthwise: true, padding: valid}, {pool: max, size: 3, stride: 1, "
                      "padding: 1}, {pool: avg, size: 2}, {dense: 5}]}"),
    "gpt": ("text", "model: {kind: transformer, width: 12, depth: 2, heads: 3, context: 16}"),
}


def find_numpy():
    """Debian's packages are for Debian's own Python."""
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0:
            return python
    return skip("no Python here has numpy")


def write_table(path, classes, seed, n):
    """Categories, one of which training has not seen where n is small, and missing values."""
    r = random.Random(seed)
    with open(path, "w", encoding="utf-8") as f:
        f.write("town,a,kind,b,y\n")
        for _ in range(n):
            a, town, kind = r.gauss(0, 3), r.choice(["Ulm", "Bern", "Graz", ""]), r.choice("pqrs")
            b = "" if r.random() < 0.2 else f"{r.gauss(50, 9):.3f}"
            y = 2 * a + 3 * (town == "Ulm") + r.gauss(0, 0.3) + 10
            f.write(f"{town},{a:.4f},{kind},{b},{('no' if y < 10 else 'yes') if classes else f'{y:.5f}'}\n")


WRITE_IMAGES = """
import sys, numpy as np
r = np.random.default_rng(3)
y = r.integers(0, 3, 150)
x = r.random((150, 9, 9, 2)) + 0.4 * (np.arange(162).reshape(9, 9, 2) % 3 == y[:, None, None, None])
np.save(sys.argv[1], x.astype("f4")); np.save(sys.argv[2], y)
"""
FARTHEST = "import sys, numpy as np; a, b = map(np.load, sys.argv[1:]); assert a.shape == b.shape; print(np.abs(a - b).max() / np.abs(b).max())"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_data(assay, python, work):
    """The rows that are predicted of each data set. Those of tables are new ones."""
    at = {name: os.path.join(work, name) for name in ("table.csv", "classes.csv", "x.npy", "y.npy", "text.txt")}
    write_table(at["table.csv"], False, 5, 200)
    write_table(at["classes.csv"], True, 6, 200)
    run(python, "-c", WRITE_IMAGES, at["x.npy"], at["y.npy"])
    r = random.Random(1)
    with open(at["text.txt"], "w", encoding="utf-8") as f:
        f.write("".join(r.choice(["the cat ", "a dog ", "sat. ", "ran! "]) for _ in range(500)))
    assay.cli("data", "add", "table", at["table.csv"], "--target", "y")
    assay.cli("data", "add", "classes", at["classes.csv"], "--target", "y")
    assay.cli("data", "add", "images", at["x.npy"], "--targets", at["y.npy"])
    assay.cli("data", "add", "text", at["text.txt"])
    new = os.path.join(work, "new.csv")
    write_table(new, False, 7, 90)
    with open(new, "a", encoding="utf-8") as f:
        f.write("Oslo,1.5,p,,1\nUlm,-2,zebra,44,1\n")
    return {"table": new, "classes": new, "images": at["x.npy"], "text": at["text.txt"]}


def check(assay, python, work, name, data, rows):
    model, mine, theirs = (os.path.join(work, name + end) for end in (".safetensors", ".npy", ".predict.npy"))
    assay.cli("artifacts", "get", f"{name}/0", "model.safetensors", "--output", model)
    if data == "text":
        loss = float(run(python, os.path.join(HERE, "rebuild.py"), model, rows))
        reported = assay.call("GET", f"/v1/sweeps/{name}/trials/0")["metrics"]["val_loss"]
        far = abs(loss - reported) / reported
    else:
        run(python, os.path.join(HERE, "rebuild.py"), model, rows, mine)
        assay.cli("predict", model, "--data", rows, "--output", theirs)
        far = float(run(python, "-c", FARTHEST, mine, theirs))
    print(f"{name}: farthest apart {far:.1e}", flush=True)
    assert far < 1e-5, (name, far)


def check_whole(assay, python, work, name, data, asked, rows):
    model, mine, theirs = (os.path.join(work, name + end) for end in (".safetensors", ".npy", ".predict.npy"))
    assay.cli("ensemble", name, *asked)
    assay.cli("models", "add", name, "--ensemble", "1", name)
    assay.cli("models", "get", name, model)
    run(python, os.path.join(HERE, "rebuild_whole.py"), model, rows, mine)
    assay.cli("predict", model, "--data", rows, "--output", theirs, *(["--proba"] if data == "classes" else []))
    far = float(run(python, "-c", FARTHEST, mine, theirs))
    print(f"{name}: farthest apart {far:.1e}", flush=True)
    assert far < 1e-5, (name, far)


def write_sweep(work, name, text):
    path = os.path.join(work, name + ".yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def main():
    python = find_numpy()
    with Assay(runners=2) as assay, tempfile.TemporaryDirectory() as work:
        rows = make_data(assay, python, work)
        for name, (data, fields) in NETWORKS.items():
            assay.cli("run", write_sweep(work, name, SWEEP.format(name=name, data=data, fields=fields)))
        for name, (data, metric, kinds, linear, _) in WHOLE.items():
            text = KINDS.format(name=name, data=data, metric=metric, kinds=kinds, linear=linear)
            assay.cli("run", write_sweep(work, name, text))
        for name, (data, _) in NETWORKS.items():
            assert assay.wait_ended(name)["state"] == "completed", assay.trials(name)
            check(assay, python, work, name, data, rows[data])
        for name, (data, _, _, _, asked) in WHOLE.items():
            assert assay.wait_ended(name)["state"] == "completed", assay.trials(name)
            check_whole(assay, python, work, name, data, asked, rows[data])


main()
