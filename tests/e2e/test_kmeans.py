#!/usr/bin/env python3
"""Clusters from end to end: a table without a target is added, a sweep over the number of clusters runs, its best model is
kept, predicts and is served; two ranks have the centroids of one process; what has no meaning is refused by name.

The table has three far blobs, so the right number is known. The predictions are computed again here, from the model file
alone, in plain Python."""
import csv
import io
import json
import math
import os
import random
import struct
import tempfile

from harness import Assay, Problem
from test_serve import serving

SWEEP = """
name: %s
metric: {name: val_davies_bouldin, goal: minimize}
parameters: {k: {type: int, min: 2, max: 5}}
search: {method: grid, seed: 4}
resources: {ranks: %d}
limits: {max_trials: 4}
trial: {train: {dataset: blobs, model: {kind: kmeans, clusters: "${k}"}}}
"""
PLACES = [(0, 0, "near"), (40, 5, "near"), (0, 60, "far")]


def write_table(path, header="x,y,place"):
    draw = random.Random(5)
    with open(path, "w") as f:
        print(header, file=f)
        for i in range(300):
            x, y, word = PLACES[i % 3]
            print(f"{x + draw.gauss(0, 1):.4f},{y + draw.gauss(0, 1):.4f},{word}", file=f)


def read_model(path):
    """The metadata and the tensors of a file, as lists of floats."""
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8 : 8 + n])
    tensors = {}
    for name, t in head.items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            raw = data[8 + n + begin : 8 + n + end]
            tensors[name.split("/")[-1]] = (t["shape"], struct.unpack(f"<{len(raw) // 4}f", raw))
    return head["__metadata__"], tensors


def nearest(row, tensors):
    """The cluster and the distance of a row of inputs, by the definition."""
    shape, c = tensors["centroids"]
    squares = [sum((row[d] - c[k * shape[1] + d]) ** 2 for d in range(shape[1])) for k in range(shape[0])]
    return squares.index(min(squares)), math.sqrt(min(squares))


def inputs_of(cells, tensors, categories):
    mean, scale = tensors["input.mean"][1], tensors["input.scale"][1]
    hot = [1.0 if cells["place"] == c else 0.0 for c in categories] + [0.0]
    values = [float(cells["x"]), float(cells["y"])] + hot
    return [(v - (mean[i] if i < len(mean) else 0)) / (scale[i] if i < len(scale) else 1) for i, v in enumerate(values)]


def check_predictions(assay, work, table):
    path = os.path.join(work, "k.safetensors")
    assay.cli("models", "get", "clusters", path)
    meta, tensors = read_model(path)
    told = list(csv.DictReader(io.StringIO(assay.cli("predict", path, "--data", table).stdout)))
    rows = list(csv.DictReader(open(table)))
    assert list(told[0]) == ["prediction_cluster", "prediction_distance"] and len(told) == len(rows) == 300, told[0]
    assert tensors["centroids"][0][0] == 3, tensors["centroids"][0]
    for given, row in zip(told, rows):
        cluster, distance = nearest(inputs_of(row, tensors, ["far", "near"]), tensors)
        assert int(given["prediction_cluster"]) == cluster, (given, row)
        assert abs(float(given["prediction_distance"]) - distance) < 1e-4, (given, distance)
    assert len({(i % 3, t["prediction_cluster"]) for i, t in enumerate(told)}) == 3  # a cluster is a blob
    return tensors


def check_served(assay, work, table):
    """The service says what the command line says."""
    path = os.path.join(work, "k.safetensors")
    told = list(csv.DictReader(io.StringIO(assay.cli("predict", path, "--data", table).stdout)))
    rows = list(csv.DictReader(open(table)))[:5]
    inputs = [{"name": n, "shape": [5], "datatype": "BYTES" if n == "place" else "FP32",
               "data": [r[n] if n == "place" else float(r[n]) for r in rows]} for n in ("x", "y", "place")]
    with serving(f"k={path}") as server:
        status, answer = server.ask("POST", "/v2/models/k/infer", {"inputs": inputs})
        assert status == 200, answer
    (output,) = answer["outputs"]
    assert output["shape"] == [5, 2], output
    expected = [float(t[f"prediction_{n}"]) for t in told[:5] for n in ("cluster", "distance")]
    assert all(abs(a - b) < 1e-6 for a, b in zip(output["data"], expected)), (output, expected)


def refused(assay, document, pointer, words):
    try:
        assay.call("POST", "/v1/sweeps", document)
    except Problem as p:
        text = json.dumps(p.body)
        assert p.status in (400, 422) and pointer in text and words in text, p.body
        return
    raise AssertionError(f"accepted: {document}")


def check_refusals(assay):
    def sweep(train, **more):
        metric = {"name": "val_inertia", "goal": "minimize"}
        return {"name": "no", "metric": metric, "parameters": {"x": {"type": "float", "min": 0, "max": 1}},
                "limits": {"max_trials": 1}, "trial": {"train": {"dataset": "blobs", **train}}, **more}
    kmeans = {"model": {"kind": "kmeans"}}
    refused(assay, sweep({**kmeans, "loss": "mse"}), "/trial/train/loss", "it minimises squared distances")
    refused(assay, sweep(kmeans, ensemble={"method": "stacking"}), "/ensemble", "clusters of different models")
    refused(assay, sweep({"model": {"kind": "kmeans", "clusters": 300}}), "/trial/train/model/clusters", "at most the 225 training rows")
    refused(assay, {**sweep({"model": {"layers": [4]}, "epochs": 1}), "metric": {"name": "val_loss", "goal": "minimize"}},
            "/metric/name", "the data set 'blobs' is for clustering")


def main():
    with Assay(runners=2) as assay, tempfile.TemporaryDirectory(prefix="assay-kmeans-", dir="/var/tmp") as work:
        table = os.path.join(work, "blobs.csv")
        write_table(table)
        added = json.loads(assay.cli("data", "add", "blobs", table, "--task", "clustering", "--json").stdout)
        assert (added["task"], added["outputs"], added["features"]) == ("clustering", 2, 3) and not added.get("target"), added
        check_refusals(assay)
        for name, ranks in (("alone", 1), ("both", 2)):
            document = os.path.join(work, f"{name}.yaml")
            open(document, "w").write(SWEEP % (name, ranks))
            assay.cli("run", document)
            s = assay.wait_ended(name)
            assert s["counts"]["completed"] == 4, s
        trials = [{t["params"]["k"]: t for t in assay.call("GET", f"/v1/sweeps/{name}/trials")["items"]} for name in ("alone", "both")]
        for k in range(2, 6):
            one, two = (t[k]["metrics"] for t in trials)
            assert one == two and set(one) == {"inertia", "val_inertia", "val_davies_bouldin"}, (one, two)
        best = min(trials[0].values(), key=lambda t: t["metrics"]["val_davies_bouldin"])
        assert best["params"]["k"] == 3, best
        assay.cli("models", "add", f"alone/{best['number']}", "clusters")
        check_predictions(assay, work, table)
        version = assay.call("GET", "/v1/models/clusters/versions/1")
        assert (version["task"], version["outputs"]) == ("clustering", {"targets": ["cluster", "distance"]}), version
        check_served(assay, work, table)
    print("kmeans: ok")


if __name__ == "__main__":
    main()
