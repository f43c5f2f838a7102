#!/usr/bin/env python3
"""Test rows through every layer: a real set cut in two, networks, snapshots, groups, trees, folds, stages of
boosting and ensembles. The figures are
those of the predictions of `assay predict`, by the definitions of scikit-learn; and other targets of the test rows
change no bit of anything but the test figures."""
import array
import csv
import json
import math
import os
import struct
import sys
import tempfile

from harness import SOURCE, Assay, Problem

DIGITS = os.path.join(SOURCE, "examples", "digits.csv")


def cut(folder, shift):
    """Every fourth row is a test row; their classes are moved by `shift`."""
    with open(DIGITS, encoding="utf-8", newline="") as f:
        header, *rows = list(csv.reader(f))
    at = header.index("class")
    paths = os.path.join(folder, "train.csv"), os.path.join(folder, f"test{shift}.csv")
    tests = [r[:at] + [str((int(r[at]) + shift) % 10)] + r[at + 1:] for r in rows[3::4]]
    for path, part in zip(paths, ([r for i, r in enumerate(rows) if i % 4 != 3], tests)):
        with open(path, "w", encoding="utf-8", newline="") as f:
            csv.writer(f).writerows([header] + part)
    return *paths, [int(r[at]) for r in tests]


def read_npy(data):
    """Shape and values of a small array."""
    assert data[:6] == b"\x93NUMPY", data[:6]
    size = struct.unpack("<H", data[8:10])[0]
    head = eval(data[10:10 + size].decode(), {})  # our own file: a dict of three literals
    values = array.array({"<f4": "f", "<i8": "q"}[head["descr"]])
    values.frombytes(data[10 + size:])
    return head["shape"], values


def figures(predictions, classes):
    """error, accuracy, balanced_accuracy and log_loss as sklearn.metrics defines them."""
    (rows, outputs), p = predictions
    assert rows == len(classes), (rows, len(classes))
    right, logs = [], 0.0
    for i, c in enumerate(classes):
        row = p[i * outputs:(i + 1) * outputs]
        right.append(row.index(max(row)) == c)
        logs -= math.log(max(row[c], 2.0 ** -23))
    shares = [sum(r for r, c in zip(right, classes) if c == k) / classes.count(k) for k in sorted(set(classes))]
    accuracy = sum(right) / rows
    return {"error": 1 - accuracy, "accuracy": accuracy, "log_loss": logs / rows,
            "balanced_accuracy": sum(shares) / len(shares)}


def near(a, b):
    return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-7)


def document(name, train, trials=3, metric="val_error"):
    parameters = {"lr": {"type": "float", "min": 0.002, "max": 0.05, "scale": "log"}}
    rate = {"optimizer": {"lr": "${lr}"}}
    if train.get("model", {}).get("kind") == "boosted_trees":
        rate = {}
        train = {**train, "model": {**train["model"], "learning_rate": "${lr}"}}
    resources = {"resources": train["resources"]} if "resources" in train else {}
    train = {k: v for k, v in train.items() if k != "resources"}
    return {**resources, "name": name, "search": {"method": "random", "seed": 7}, "metric": {"name": metric, "goal": "minimize"},
            "parameters": parameters, "limits": {"max_trials": trials},
            "trial": {"train": {"dataset": "digits", **rate, **train}}}


SWEEPS = {
    "network": {"epochs": 4, "model": {"kind": "mlp", "layers": [24]}},
    "snapshots": {"epochs": 4, "schedule": {"kind": "cosine", "cycles": 2, "snapshots": 2}, "model": {"kind": "mlp", "layers": [16]}},
    "trees": {"model": {"kind": "boosted_trees", "n_estimators": 6}},
    "ranks": {"epochs": 2, "batch_size": 64, "micro_batch": 32, "model": {"kind": "mlp", "layers": [16]}, "resources": {"ranks": 2}},
    "folds": {"epochs": 3, "model": {"kind": "mlp", "layers": [16]}, "validation": {"folds": 3}},
}


def artifacts(assay, sweep, number):
    files = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{number}/artifacts")
    return {f["path"]: f["sha256"] for f in files["items"]}


def run(assay, name, *args, **kw):
    sweep = assay.call("POST", "/v1/sweeps", document(name, *args, **kw))["id"]
    assay.wait_ended(sweep)
    trials = assay.trials(sweep)
    assert all(t["state"] == "completed" for t in trials), trials
    return sweep, trials


def content(assay, folder, sweep, number, path):
    to = os.path.join(folder, f"{sweep}-{number}")
    assay.cli("artifacts", "get", f"{sweep}/{number}", path, "--output", to)
    with open(to, "rb") as f:
        return f.read(), to


def check_trial(assay, folder, sweep, number, test_path, classes):
    detail = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{number}")
    test = detail["test"]
    assert test["rows"] == len(classes), test
    assert not any(name.startswith("test") for name in detail["metrics"]), detail["metrics"]
    _, model = content(assay, folder, sweep, number, "model.safetensors")
    out = os.path.join(folder, "out.npy")
    assay.cli("predict", model, "--data", test_path, "--output", out)
    with open(out, "rb") as f:
        predicted = read_npy(f.read())
    stored = read_npy(content(assay, folder, sweep, number, "test_predictions.npy")[0])
    assert predicted == stored, f"{sweep}/{number}: the stored test predictions are not those of `assay predict`"
    for name, value in figures(predicted, classes).items():
        assert near(test["metrics"][name], value), (sweep, number, name, test["metrics"], value)
    return stored


def check_ensemble(assay, folder, ensemble, sweep, classes):
    """The members' test predictions, combined by their weights."""
    parts = [(m["weight"], read_npy(content(assay, folder, sweep, m["number"], "test_predictions.npy")[0]))
             for m in ensemble["members"]]
    shape = parts[0][1][0]
    mixed = [sum(w * p[i] for w, (_, p) in parts) for i in range(shape[0] * shape[1])]
    test = ensemble["test"]
    assert test["rows"] == len(classes), test
    assert near(test["ensemble"]["value"], figures((shape, mixed), classes)[ensemble["metric"]]), test
    for figure in (test["ensemble"], test["best_single"], test["gain"]):
        assert figure["low"] <= figure["value"] <= figure["high"], test
    single = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{ensemble['best_single']['number']}")["test"]
    assert near(test["best_single"]["value"], single["metrics"][ensemble["metric"]]), (test, single)


def check_refusals(assay, folder, train_path, test_path):
    for change, part in (({"metric": "test_error"}, "no search sees them"), ({}, "apart from its reports")):
        train = SWEEPS["network"] if change else {**SWEEPS["network"], "metrics": ["test_auc"]}
        try:
            assay.call("POST", "/v1/sweeps", document("bad", train, **change))
        except Problem as e:
            assert part in str(e.body), e.body
        else:
            raise AssertionError(f"{part}: accepted")
    bad = os.path.join(folder, "bad.csv")
    with open(test_path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    for line, text, parts in ((0, lines[0].replace("pixel_0_0", "pixel"), ("line 1", "'pixel_0_0'", "are: pixel, ")),
                              (5, lines[5][:lines[5].rindex(",")] + ",eleven", ("line 6", "class", "eleven")),
                              (3, "x" + lines[3][lines[3].index(","):], ("line 4", "pixel_0_0", "'x'"))):
        with open(bad, "w", encoding="utf-8") as f:
            f.write("\n".join(lines[:line] + [text] + lines[line + 1:]) + "\n")
        done = assay.cli("data", "add", "worse", train_path, "--target", "class", "--test", bad, check=False)
        assert done.returncode != 0 and all(p in done.stderr for p in (*parts, "bad.csv")), done.stderr


def pass_over(assay, folder, shift, suffix):
    """Register, search, check; returns everything but the test figures."""
    train_path, test_path, classes = cut(folder, shift)
    assay.cli("data", "add", "digits", train_path, "--target", "class", "--test", test_path)
    shown = json.loads(assay.cli("data", "show", "digits", "--json").stdout)
    assert (shown["rows"], shown["test"]["rows"]) == (1797 - 449, 449), shown
    seen = {}
    for name, train in SWEEPS.items():
        sweep, trials = run(assay, name + suffix, train)
        for t in trials:
            number = t["number"]
            check_trial(assay, folder, sweep, number, test_path, classes)
            files = artifacts(assay, sweep, number)
            seen[name, number] = {k: v for k, v in files.items() if k not in ("test.json", "test_targets.npy")}
            series = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{number}/measurements")["series"]
            seen[name, number, "report"] = [t["params"], t["metrics"], series]
        ensemble = assay.call("GET", f"/v1/sweeps/{sweep}/ensemble")
        check_ensemble(assay, folder, ensemble, sweep, classes)
        seen[name, "ensemble"] = {k: v for k, v in ensemble.items() if k != "test"}
        best = assay.sweep(sweep)["best"]["number"]
        seen[name, "best"] = best
    return seen, train_path, test_path, classes


def check_words(assay, folder, classes):
    """What people see, an ensemble that is asked for, and what a model's version keeps."""
    sweep = "network"
    asked = json.loads(assay.cli("ensemble", sweep, "--method", "average", "--size", "2", "--json").stdout)
    check_ensemble(assay, folder, asked["ensemble"], sweep, classes)
    assert "449 that chose nothing" in assay.cli("ensemble", sweep).stderr
    shown = assay.cli("show", sweep).stdout
    assert "test single" in shown and "test ensemble" in shown, shown
    assert "test.error" in assay.cli("trial", f"{sweep}/0").stdout
    added = assay.call("POST", "/v1/models/digits/versions", {"sweep": sweep, "use": "ensemble"})
    ensemble = assay.call("GET", f"/v1/sweeps/{sweep}/ensemble")
    assert near(added["metrics"]["test_error"], ensemble["test"]["ensemble"]["value"]), added
    assert "test" in added["measured_on"], added
    single = assay.call("POST", "/v1/models/digits/versions", {"sweep": sweep, "trial": 1})
    test = assay.call("GET", f"/v1/sweeps/{sweep}/trials/1")["test"]
    assert near(single["metrics"]["test_log_loss"], test["metrics"]["log_loss"]), single
    path = os.path.join(folder, "none.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({**document("none", SWEEPS["network"]), "ensemble": False}, f)
    said = assay.cli("run", path, "--watch").stdout
    assert "Test rows" in said and "trial" in said, said


def check_weights_and_buckets(assay, folder, train_path, test_path):
    """Test rows weigh what their column says, and an ensemble by buckets gives each the model of its value. Few training
    rows are `far`."""
    paths, tests = [], []
    for path in (train_path, test_path):
        paths.append(path + ".weighted.csv")
        with open(path, encoding="utf-8", newline="") as f, open(paths[-1], "w", encoding="utf-8") as out:
            header, *rows = list(csv.reader(f))
            many = path == train_path and len(rows) - 5
            regions = ["far" if i >= many else ("north", "south")[i % 2] for i in range(len(rows))] if many else [
                ("north", "south", "far")[i % 3] for i in range(len(rows))]
            tests = [(i % 3 + 1, regions[i], r[header.index("class")]) for i, r in enumerate(rows)]
            csv.writer(out).writerows([["w", "region", *header]] + [[w, g, *r] for r, (w, g, _) in zip(rows, tests)])
    assay.cli("data", "add", "weighted", paths[0], "--target", "class", "--test", paths[1])
    doc = document("weighted", {**SWEEPS["network"], "dataset": "weighted", "weights": "w", "buckets": "region"}, 6)
    assay.call("POST", "/v1/sweeps", {**doc, "ensemble": {"method": "bucketing"}})
    assay.wait_ended("weighted")
    e = assay.call("GET", "/v1/sweeps/weighted/ensemble")
    assert e["combine"]["kind"] == "by" and e["weighted"] is True, e
    model = {b["value"]: b["number"] for b in e["combine"]["buckets"]}
    wrong = {}
    for number in {*model.values(), e["combine"]["other"]["number"]}:
        (_, outputs), p = read_npy(content(assay, folder, "weighted", number, "test_predictions.npy")[0])
        rows = [p[i * outputs:(i + 1) * outputs] for i in range(len(tests))]
        wrong[number] = [row.index(max(row)) != int(c) for row, (_, _, c) in zip(rows, tests)]
    mine = [wrong[model.get(g, e["combine"]["other"]["number"])][i] for i, (_, g, _) in enumerate(tests)]
    error = sum(w * m for m, (w, _, _) in zip(mine, tests)) / sum(w for w, _, _ in tests)
    assert near(e["test"]["ensemble"]["value"], error), (e["test"], error)
    single = e["best_single"]["number"]
    alone = assay.call("GET", f"/v1/sweeps/weighted/trials/{single}")["test"]["metrics"]["error"]
    assert near(e["test"]["best_single"]["value"], alone), (e["test"], alone)


def check_column(assay, folder):
    """One file, cut by a column when it is added."""
    path = os.path.join(folder, "parts.csv")
    with open(DIGITS, encoding="utf-8") as f, open(path, "w", encoding="utf-8") as out:
        for i, line in enumerate(f):
            out.write(("part" if i == 0 else "test" if i % 5 == 0 else "train") + "," + line)
    assay.cli("data", "add", "parts", path, "--target", "class", "--test-column", "part")
    shown = assay.call("GET", "/v1/datasets/parts")
    assert (shown["rows"], shown["test"]["rows"], shown["features"]) == (1797 - 359, 359, 64), shown
    assert [f["role"] for f in shown["files"]] == ["table", "test"], shown
    assert "part" not in [c["name"] for c in shown["columns"]], shown
    done = assay.cli("data", "add", "worse", path, "--target", "class", "--test-column", "class", check=False)
    assert done.returncode != 0 and "expected test or train" in done.stderr, done.stderr


with tempfile.TemporaryDirectory() as folder, Assay() as assay:
    first, train_path, test_path, classes = pass_over(assay, folder, 0, "")
    check_words(assay, folder, classes)
    check_refusals(assay, folder, train_path, test_path)
    check_weights_and_buckets(assay, folder, train_path, test_path)
    assay.cli("ensemble", "network", "--method", "boosting", "--size", "3")
    for trial in assay.trials("network-boosting"):
        check_trial(assay, folder, "network-boosting", trial["number"], test_path, classes)
    check_column(assay, folder)
    assay.cli("data", "delete", "digits", "--yes")
    second, *_ = pass_over(assay, folder, 1, "-again")
    for key, value in first.items():
        assert second[key] == value, (key, value, second[key])
    print("ok", file=sys.stderr)
