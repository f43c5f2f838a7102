#!/usr/bin/env python3
"""Ensembles become models, whatever their method: the model of a stacked ensemble predicts the held-out rows with
the figure that the ensemble reported, computed here once more from the members' recorded predictions; the same over
two sweeps, of numbers, of bags, over HTTP; members of other programs are refused by name."""
import csv
import json
import math
import os
import random
import struct
import subprocess
import tempfile

from harness import Assay, Problem
from test_serve import serving

CLASSES = ["high", "low", "mid"]


def table(path):
    """400 rows, every third of them held out: a class, and a number."""
    rng = random.Random(7)
    with open(path, "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f)
        out.writerow(["a", "b", "c", "part", "label", "size"])
        for i in range(400):
            a, b, c = rng.gauss(0, 1), rng.gauss(0, 1), rng.choice(["u", "v", "w"])
            y = a + b * b + (1 if c == "u" else 0) + rng.gauss(0, 0.5)
            label = "low" if y < 0.5 else "mid" if y < 2 else "high"
            out.writerow([f"{a:.4f}", f"{b:.4f}", c, "validation" if i % 3 == 0 else "train", label, f"{100 + 9 * y:.4f}"])


def held_out(path, target):
    with open(path, encoding="utf-8") as f:
        return [row[target] for row in csv.DictReader(f) if row["part"] == "validation"]


def document(name, data, metric, ensemble, trials=5, **train):
    return {"name": name, "metric": {"name": metric, "goal": "minimize"},
            "parameters": {"lr": {"type": "float", "min": 0.002, "max": 0.1, "scale": "log"},
                           "width": {"type": "categorical", "values": [4, 16]}},
            "search": {"method": "random", "seed": 3}, "limits": {"max_trials": trials}, "ensemble": ensemble,
            "trial": {"train": {"dataset": data, "epochs": 6, "model": {"layers": ["${width}"]},
                                "optimizer": {"kind": "adamw", "lr": "${lr}"},
                                **({"validation": {"column": "part"}} | train)}}}


def run(assay, *args, **kw):
    doc = document(*args, **kw)
    assay.call("POST", "/v1/sweeps", doc)
    assay.wait_ended(doc["name"])
    ensemble = assay.call("GET", f"/v1/sweeps/{doc['name']}/ensemble")
    assert ensemble["state"] == "ready", ensemble
    return ensemble


def read_npy(path):
    """float32 [rows, columns], as lists of rows."""
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + size].decode())  # noqa: S307: of a file that Assay wrote
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    rows, columns = header["shape"]
    values = struct.unpack(f"<{rows * columns}f", data[10 + size:])
    return [values[i * columns:(i + 1) * columns] for i in range(rows)]


def combined(assay, work, sweep, ensemble):
    """The predictions of the ensemble, from those that its members recorded."""
    combine, total = ensemble["combine"], None
    of_logs = combine.get("inputs") == "log"
    for m in ensemble["members"]:
        path = os.path.join(work, f"{m.get('sweep', sweep)}-{m['number']}.npy")
        if not os.path.exists(path):
            assay.cli("artifacts", "get", f"{m.get('sweep', sweep)}/{m['number']}", "predictions.npy", "--output", path)
        rows = read_npy(path)
        total = total or [[0.0] * len(r) for r in rows]
        for sums, r in zip(total, rows):
            for c, p in enumerate(r):
                sums[c] += m["weight"] * (math.log(min(max(p, 1e-7), 1)) if of_logs else p)
    for sums in total if combine["kind"] == "linear" else []:
        for c, bias in enumerate(combine["biases"]):
            sums[c] += bias
        if of_logs:
            exps = [math.exp(v - max(sums)) for v in sums]
            sums[:] = [v / sum(exps) for v in exps]
    return total


def predicted(assay, work, model, data, **kw):
    """What `assay predict` gives for the held-out rows: [rows, columns]."""
    path = os.path.join(work, "p.npy")
    assay.cli("predict", model, "--data", data, "--output", path, **kw)
    return read_npy(path)[::3]


def close(found, expected, tolerance=1e-6):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        for x, y in zip(a, b):
            assert abs(x - y) <= tolerance * max(1, abs(y)), (a, b)


def error_of(predictions, labels):
    wrong = sum(CLASSES[max(range(3), key=lambda c: p[c])] != y for p, y in zip(predictions, labels))
    return wrong / len(labels)


def check_classes(assay, work, data):
    """The sweep's own ensemble, from the registry and from its file."""
    e = run(assay, "stack", "people", "val_error", {"method": "stacking"})
    assert e["method"] == "stacking" and e["combine"]["kind"] == "linear" and len(e["members"]) == 5, e
    added = json.loads(assay.cli("models", "add", "stack", "stacked", "--use", "ensemble", "--json").stdout)
    assert added["kind"] == "ensemble" and added["metrics"] == {"error": e["value"]}, added
    assert [m["weight"] for m in added["members"]] == [m["weight"] for m in e["members"]], added["members"]
    made = added["lineage"]["ensemble"]
    assert (made["method"], made["combine"]) == ("stacking", e["combine"]) and "number" not in made, made
    shown = assay.cli("models", "show", "stacked@1").stdout
    assert "stacking" in shown and "linear, of logarithms of probabilities, biases" in shown, shown
    found = predicted(assay, work, "stacked", data)
    close(found, combined(assay, work, "stack", e))
    error = error_of(found, held_out(data, "label"))
    assert abs(error - e["value_select"]) < 1e-12, (error, e)
    path = os.path.join(work, "stacked.safetensors")
    assay.cli("models", "get", "stacked", path)
    assert predicted(assay, work, path, data) == found
    return e, found, path


def check_asked(assay, work, data, own):
    """Every method, asked for after the end; the model predicts what the ensemble measured."""
    run(assay, "more", "people", "val_error", {"method": "greedy"}, trials=3, epochs=3)
    labels = held_out(data, "label")
    for options in (["--method", "greedy"], ["--method", "average", "--size", "3"], ["--method", "bucketing"],
                    ["--method", "stacking", "--non-negative"], ["--method", "stacking", "more"]):
        sweeps = ["stack"] + [o for o in options if o == "more"]
        a = json.loads(assay.cli("ensemble", *sweeps, *[o for o in options if o != "more"], "--json").stdout)
        e, n = a["ensemble"], a["number"]
        v = json.loads(assay.cli("models", "add", "stack", "asked", "--ensemble", str(n), "--json").stdout)
        assert v["lineage"]["ensemble"]["number"] == n and v["metrics"] == {"error": e["value"]}, v
        assert [(m.get("sweep", "stack"), m["trial"], m["weight"]) for m in v["members"]] == [
            (m.get("sweep", "stack"), m["number"], m["weight"]) for m in e["members"]], (v, e)
        found = predicted(assay, work, f"asked@{v['version']}", data)
        close(found, combined(assay, work, "stack", e))
        assert abs(error_of(found, labels) - e["value_select"]) < 1e-12, (options, e)
    assert [s["sweep_id"] for s in v["lineage"]["sweeps"]] == ["more"], v["lineage"]
    assert all(t in range(5) for t in v["trials"]) and len(v["trials"]) < len(v["members"]), v
    shown = assay.cli("models", "show", f"asked@{v['version']}").stdout
    assert f"stacking, number {n}" in shown and "trial more/" in shown, shown
    again = assay.cli("models", "add", "stack", "asked", "--ensemble", str(n))
    assert "has this content already" in again.stderr, again.stderr
    for body, status, words in (({"ensemble": 99}, 404, "no ensemble 99"), ({"ensemble": 0}, 400, "/ensemble"),
                                ({"ensemble": n, "trial": 1}, 400, "/ensemble"),
                                ({"ensemble": n, "use": "ensemble"}, 400, "/ensemble")):
        try:
            assay.call("POST", "/v1/models/asked/versions", {"sweep": "stack", **body})
        except Problem as p:
            assert p.status == status and words in p.body["detail"], (body, p.body)
            continue
        raise AssertionError(body)


def check_numbers(assay, work, path):
    """Ridge regression; the figure is RMSE of the outputs."""
    e = run(assay, "sizes", "sizes", "val_rmse", {"method": "stacking"})
    assert e["combine"]["inputs"] == "outputs" and e["metric"] == "rmse", e
    assay.cli("models", "add", "sizes", "sizes", "--use", "ensemble")
    found = predicted(assay, work, "sizes", path)
    close(found, combined(assay, work, "sizes", e))
    truth = [float(v) for v in held_out(path, "size")]
    rmse = math.sqrt(sum((p[0] - y) ** 2 for p, y in zip(found, truth)) / len(truth))
    assert abs(rmse - e["value_select"]) < 1e-5 * rmse, (rmse, e)


def check_bags(assay, work, data):
    """Bagging is a sweep whose ensemble is the mean of all."""
    assay.cli("ensemble", "stack", "--method", "bagging", "--size", "3")
    e = assay.call("GET", "/v1/sweeps/stack-bagging/ensemble")
    assay.cli("models", "add", "stack-bagging", "bags", "--use", "ensemble")
    found = predicted(assay, work, "bags", data)
    close(found, combined(assay, work, "stack-bagging", e))
    assert abs(error_of(found, held_out(data, "label")) - e["value"]) < 1e-12, e


def check_served(path, data, found):
    with open(data, encoding="utf-8") as f:
        rows = [r for r in csv.DictReader(f) if r["part"] == "validation"][:9]
    inputs = [{"name": n, "shape": [9, 1], "datatype": "BYTES" if n in ("c", "part") else "FP32",
               "data": [r[n] if n in ("c", "part") else float(r[n]) for r in rows]} for n in ("a", "b", "c", "size")]
    with serving(f"stacked={path}") as server:
        status, answer = server.ask("POST", "/v2/models/stacked/infer", {"inputs": inputs})
        assert status == 200, answer
        got, = [o["data"] for o in answer["outputs"] if o["name"] == "probabilities"]
        close([got[i * 3:i * 3 + 3] for i in range(9)], found[:9])


def check_others(assay, work):
    """A program's trials have predictions.npy, and no model."""
    script = os.path.join(work, "p.py")
    with open(script, "w", encoding="utf-8") as f:
        f.write("import os, struct, sys\n"
                "x = float(sys.argv[1]); d = os.environ['ASSAY_ARTIFACTS']\n"
                "def npy(name, kind, shape, data):\n"
                "    h = repr({'descr': kind, 'fortran_order': False, 'shape': shape}).ljust(117) + '\\n'\n"
                "    open(os.path.join(d, name), 'wb').write(b'\\x93NUMPY\\x01\\x00' + struct.pack('<H', len(h)) + h.encode() + data)\n"
                "y = [i % 2 for i in range(60)]\n"
                "p = [v for i in range(60) for v in ((0.6, 0.4) if y[i] == 0 or i / 60 < x else (0.4, 0.6))]\n"
                "npy('predictions.npy', '<f4', (60, 2), struct.pack('<120f', *p))\n"
                "npy('targets.npy', '<i8', (60,), struct.pack('<60q', *y))\n"
                "open(os.environ['ASSAY_REPORT'], 'a').write('{\"error\": %g}\\n' % (x / 2))\n")
    assay.call("POST", "/v1/sweeps", {
        "name": "other", "metric": {"name": "error", "goal": "minimize"},
        "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "limits": {"max_trials": 3},
        "ensemble": {"method": "average", "size": 3}, "trial": {"command": ["python3", script, "${x}"]}})
    assay.wait_ended("other")
    assert assay.call("GET", "/v1/sweeps/other/ensemble")["state"] == "ready"
    wrong = assay.cli("models", "add", "other", "other", "--use", "ensemble", check=False)
    assert wrong.returncode != 0 and "trial other/" in wrong.stderr and "stored no model" in wrong.stderr, wrong


def main():
    with Assay(runners=2) as assay, tempfile.TemporaryDirectory(prefix="assay-stack-", dir="/var/tmp") as work:
        data = os.path.join(work, "people.csv")
        table(data)
        assay.cli("data", "add", "people", data, "--target", "label")
        assay.cli("data", "add", "sizes", data, "--target", "size")
        e, found, path = check_classes(assay, work, data)
        check_served(path, data, found)
        check_asked(assay, work, data, e)
        check_numbers(assay, work, data)
        check_bags(assay, work, data)
        check_others(assay, work)
    print("stacked models: ok")


if __name__ == "__main__":
    main()
