#!/usr/bin/env python3
"""Ensembles by a column, asked for after the trials have run, and the models that are made of them. For each way to
hold rows out the ensemble is the one of a sweep whose trials left the column's values. The model predicts each
held-out row with the bits that the trial of its value recorded, from the registry and over HTTP. A model of
boosting takes part beside others."""
import csv
import json
import os
import random
import struct
import tempfile

from harness import Assay, Problem
from test_serve import serving
from test_stacked_models import close, combined, read_npy

WAYS = {"part": {"column": "part"}, "strata": {"fraction": 0.4, "seed": 3}, "chance": {"split": "random", "fraction": 0.4},
        "folds": {"folds": 3}, "order": {"order": "day", "last": 0.3}, "groups": {"groups": "team", "fraction": 0.4}}
NUMBERS = ("a", "b", "shop", "day", "team")


def table(path, rows, seed):
    """Most rows of the north and of shop 7 are `in`, the others `out`; shops are numbers that are written in two ways;
    `far` is in one row."""
    rng = random.Random(seed)
    with open(path, "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f)
        out.writerow(["a", "b", "region", "shop", "day", "team", "part", "y"])
        for i in range(rows):
            a, b, region = rng.gauss(0, 1), rng.gauss(0, 1), rng.choice(["north", "south"])
            shop = rng.choice(["1", "1.0", "02", "7"])
            likely = 0.85 if region == "north" or shop == "7" else 0.1
            out.writerow([f"{a:.4f}", f"{b:.4f}", "far" if i == 1 else region, shop, i % 50, rng.randrange(20),
                          "val" if i % 3 == 0 else "train", "in" if rng.random() < likely else "out"])


def sweep(assay, name, way, ensemble, dataset="shops"):
    """Trials that say `in` or `out` of nearly every row."""
    assay.call("POST", "/v1/sweeps", {
        "name": name, "metric": {"name": "val_error", "goal": "minimize"}, "limits": {"max_trials": 3},
        "parameters": {"weights": {"type": "categorical", "values": [[60, 1], [1, 60], [1, 30]]}},
        "search": {"method": "grid", "seed": 5},
        "ensemble": ensemble,
        "trial": {"train": {"dataset": dataset, "epochs": 4, "model": {"layers": [6]}, "validation": WAYS[way],
                            "class_weights": "${weights}", "optimizer": {"kind": "adamw", "lr": 0.03}}}})


def asked(assay, *args):
    return json.loads(assay.cli("ensemble", *args, "--json").stdout)


def check_ways(assay):
    for way in WAYS:
        sweep(assay, f"left-{way}", way, {"method": "bucketing", "by": "region"})
        sweep(assay, f"none-{way}", way, {"method": "greedy"})
    for way in WAYS:
        assay.wait_ended(f"left-{way}")
        assay.wait_ended(f"none-{way}")
        own = assay.call("GET", f"/v1/sweeps/left-{way}/ensemble")
        later = asked(assay, f"none-{way}", "--method", "bucketing", "--by", "region")
        assert later["request"]["by"] == "region", later
        assert own["state"] == "ready" and own["combine"]["kind"] == "by", own
        assert "reason" not in own["test"] and own["test"]["rows"] == 90, own
        assert later["ensemble"] == own, (way, later["ensemble"], own)
        assert len({b["number"] for b in own["combine"]["buckets"]}) > 1 and own["recommended"] == "ensemble", own
        again = asked(assay, f"none-{way}", "--method", "bucketing", "--by", "region")
        assert again == later, again
        other = asked(assay, f"left-{way}", "--method", "bucketing", "--by", "shop")["ensemble"]
        assert other["combine"]["column"] == "shop", other
        assert sorted(b["value"] for b in other["combine"]["buckets"]) == ["1", "2", "7"], other


def check_late_members(assay):
    """Members that join a group when the first one has ended, and its folder is gone, read the column all the same."""
    assay.call("POST", "/v1/sweeps", {
        "name": "late", "metric": {"name": "val_error", "goal": "minimize"}, "limits": {"max_concurrent_trials": 2},
        "parameters": {"epochs": {"type": "categorical", "values": [1, 1500, 2, 3, 4]}},
        "search": {"method": "grid", "seed": 5}, "ensemble": {"method": "bucketing", "by": "region"},
        "trial": {"train": {"dataset": "shops", "epochs": "${epochs}", "model": {"layers": [6]}, "validation": WAYS["part"],
                            "optimizer": {"kind": "adamw", "lr": 0.03}}}})
    ended, trials = assay.wait_ended("late"), assay.trials("late")
    assert ended["counts"]["completed"] == 5, [t["reason"] for t in trials]
    assert len({t["group"] for t in trials}) < 5, trials


def recorded(assay, work, name, number):
    path = os.path.join(work, f"{name}-{number}.npy")
    if not os.path.exists(path):
        assay.cli("artifacts", "get", f"{name}/{number}", "predictions.npy", "--output", path)
    return read_npy(path)


def predicted(assay, work, model, data):
    path = os.path.join(work, "p.npy")
    assay.cli("predict", model, "--data", data, "--output", path)
    return read_npy(path)


def by_value(assay, work, name, combine, rows, alike=str):
    """What the trials recorded, each row by the trial of its value."""
    trial = {alike(b["value"]): b["number"] for b in combine["buckets"]}
    return [recorded(assay, work, name, trial.get(alike(r[combine["column"]]), combine["other"]["number"]))[i]
            for i, r in enumerate(rows)]


def check_models(assay, work, data):
    with open(data, encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    held = [i for i, r in enumerate(rows) if r["part"] == "val"]
    name = "none-part"
    for column, alike in (("region", str), ("shop", float)):
        made = asked(assay, name, "--method", "bucketing", "--by", column)
        e = made["ensemble"]
        v = json.loads(assay.cli("models", "add", name, column, "--ensemble", str(made["number"]), "--json").stdout)
        assert v["lineage"]["ensemble"]["combine"] == e["combine"], v
        assert {m["trial"] for m in v["members"]} == {
            b["number"] for b in [*e["combine"]["buckets"], e["combine"]["other"]]}, v
        found = predicted(assay, work, column, data)
        expected = by_value(assay, work, name, e["combine"], [rows[i] for i in held], alike)
        assert [found[i] for i in held] == expected, column
        shown = assay.cli("models", "show", f"{column}@1").stdout
        assert f"by {column}: " in shown and ", others trial " in shown, shown
        path = os.path.join(work, column + ".safetensors")
        assay.cli("models", "get", column, path)
        assert predicted(assay, work, path, data) == found
        served(path, rows[:11], found[:11])
        check_onnx(assay, path, work)
    fresh = os.path.join(work, "fresh.csv")
    with open(fresh, "w", encoding="utf-8", newline="") as f:
        csv.writer(f).writerows([list(rows[0])] + [["0.5", "-1", region, "7", "1", "2", "val", "in"]
                                                   for region in ("north", "far", "nowhere", "")])
    north, *others = predicted(assay, work, "region", fresh)
    assert others[0] == others[1] and len(others) == 3, (north, others)


def served(path, rows, expected):
    """JSON, and binary tensors."""
    names = [n for n in rows[0] if n not in ("part", "y")]
    texts = [n for n in names if n not in NUMBERS]
    inputs = [{"name": n, "shape": [len(rows), 1], "datatype": "BYTES" if n in texts else "FP32",
               "data": [r[n] if n in texts else float(r[n]) for r in rows]} for n in names]
    binary, tail = [], b""
    for n in names:
        data = b"".join(struct.pack("<I", len(r[n])) + r[n].encode() if n in texts else struct.pack("<f", float(r[n]))
                        for r in rows)
        binary.append({"name": n, "shape": [len(rows), 1], "datatype": "BYTES" if n in texts else "FP32",
                       "parameters": {"binary_data_size": len(data)}})
        tail += data
    with serving(f"m={path}") as server:
        for body, headers in ((json.dumps({"inputs": inputs}).encode(), {}), (json.dumps({"inputs": binary}).encode(), tail)):
            more = headers or b""
            status, answer = server.ask("POST", "/v2/models/m/infer", body + more,
                                        {"Inference-Header-Content-Length": str(len(body))} if more else {})
            assert status == 200, answer
            got, = [o["data"] for o in answer["outputs"] if o["name"] == "probabilities"]
            packed = [struct.unpack("<f", struct.pack("<f", v))[0] for v in got]
            assert packed == [v for row in expected for v in row], (packed, expected)


def check_onnx(assay, path, work):
    made = assay.cli("models", "get", os.path.join(work, "m.onnx"), "--from", path, "--format", "onnx", check=False)
    assert made.returncode == 0 or "without" in made.stderr, made


def check_boosting(assay, work, data):
    """A model of boosting beside others, in a mean and by a column."""
    assay.cli("ensemble", "none-part", "--method", "boosting", "--size", "2")
    with open(data, encoding="utf-8", newline="") as f:
        held = [i for i, r in enumerate(csv.DictReader(f)) if r["part"] == "val"]
    for method in ("average", "stacking"):
        made = asked(assay, "none-part", "none-part-boosting", "--method", method, "--size", "5")
        e = made["ensemble"]
        assert any(m["sweep"] == "none-part-boosting" and m["number"] == 1 for m in e["members"]), e
        assay.cli("models", "add", "none-part", method, "--ensemble", str(made["number"]))
        found = predicted(assay, work, method, data)
        close([found[i] for i in held], combined(assay, work, "none-part", e))


def check_refusals(assay):
    for body, words in (({"by": "region"}, "/by: found with method greedy, expected bucketing"),
                        ({"method": "bucketing", "by": "nothing"}, "/by: found 'nothing', expected a column of the data set 'shops' of the sweep 'none-part': 'a', 'b', 'region'"),
                        ({"method": "bucketing", "by": 3}, "/by"), ({"method": "bucketing", "by": ""}, "/by")):
        try:
            assay.call("POST", "/v1/sweeps/none-part/ensembles", body)
        except Problem as p:
            assert p.status == 400 and words in p.body["detail"], (body, p.body)
            continue
        raise AssertionError(body)
    wrong = assay.cli("ensemble", "none-part", "--method", "boosting", "--by", "region", check=False)
    assert wrong.returncode != 0 and "a --method that trains takes one SWEEP" in wrong.stderr, wrong
    made = asked(assay, "none-part", "--method", "bucketing", "--by", "part")
    wrong = assay.cli("models", "add", "none-part", "p", "--ensemble", str(made["number"]), check=False)
    assert wrong.returncode != 0 and "/combine/column: found 'part', expected a column that the model takes" in wrong.stderr, wrong


def check_every_sweep(assay, work, data):
    """The column is looked for in the data set of each sweep: one has it with gaps, one under another name."""
    with open(data, encoding="utf-8", newline="") as f:
        head, *rows = csv.reader(f)
    at = head.index("region")
    for name, title, gaps in (("gaps", "region", {2, 5}), ("area", "area", set())):
        path = os.path.join(work, name + ".csv")
        with open(path, "w", newline="", encoding="utf-8") as f:
            out = csv.writer(f)
            out.writerow([*head[:at], title, *head[at + 1:]])
            out.writerows([*r[:at], "" if i in gaps else r[at], *r[at + 1:]] for i, r in enumerate(rows))
        assay.cli("data", "add", name, path, "--target", "y")
        sweep(assay, f"{name}-part", "part", False, name)
    for name in ("gaps", "area"):
        assay.wait_ended(f"{name}-part")
    before = assay.call("GET", "/v1/sweeps/none-part/ensembles")
    for sweeps, words in ((["gaps-part"], "/by: column 'region' of the data set 'gaps' of the sweep 'gaps-part' has 2 missing "
                                          "cells, expected none"),
                          (["left-part", "area-part"], "/by: found 'region', expected a column of the data set 'area' of the "
                                                       "sweep 'area-part': 'a', 'b', 'area'")):
        try:
            assay.call("POST", "/v1/sweeps/none-part/ensembles", {"method": "bucketing", "by": "region", "sweeps": sweeps})
        except Problem as p:
            assert p.status == 400 and words in p.body["detail"], (words, p.body)
            continue
        raise AssertionError(sweeps)
    assert assay.call("GET", "/v1/sweeps/none-part/ensembles") == before
    made = asked(assay, "none-part", "left-part", "--method", "bucketing", "--by", "region")["ensemble"]
    assert made["state"] == "ready" and made["combine"]["column"] == "region", made


def check_programs(assay, work):
    """The server knows no data set of a program that left no values."""
    script = os.path.join(work, "p.py")
    with open(script, "w", encoding="utf-8") as f:
        f.write("import os, struct\nd = os.environ['ASSAY_ARTIFACTS']\n"
                "def npy(name, kind, shape, data):\n"
                "    h = repr({'descr': kind, 'fortran_order': False, 'shape': shape}).ljust(117) + '\\n'\n"
                "    open(os.path.join(d, name), 'wb').write(b'\\x93NUMPY\\x01\\x00' + struct.pack('<H', len(h)) + h.encode() + data)\n"
                "npy('predictions.npy', '<f4', (40, 2), struct.pack('<80f', *[0.5] * 80))\n"
                "npy('targets.npy', '<i8', (40,), struct.pack('<40q', *[i % 2 for i in range(40)]))\n"
                "open(os.environ['ASSAY_REPORT'], 'a').write('{\"error\": 0.5}\\n')\n")
    assay.call("POST", "/v1/sweeps", {
        "name": "other", "metric": {"name": "error", "goal": "minimize"}, "ensemble": False,
        "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "limits": {"max_trials": 2},
        "trial": {"command": ["python3", script]}})
    assay.wait_ended("other")
    e = asked(assay, "other", "--method", "bucketing", "--by", "region")["ensemble"]
    assert e["state"] == "none" and "no trial left buckets.json of the column 'region'" in e["reason"], e


def main():
    with tempfile.TemporaryDirectory() as work, Assay() as assay:
        data, test = os.path.join(work, "shops.csv"), os.path.join(work, "test.csv")
        table(data, 360, "train")
        table(test, 90, "test")
        assay.cli("data", "add", "shops", data, "--target", "y", "--test", test)
        check_late_members(assay)
        check_ways(assay)
        print("ways: ok", flush=True)
        check_models(assay, work, data)
        print("models: ok", flush=True)
        check_refusals(assay)
        check_every_sweep(assay, work, data)
        check_programs(assay, work)
        print("refusals: ok", flush=True)
        check_boosting(assay, work, data)
        print("boosting: ok", flush=True)


if __name__ == "__main__":
    main()
