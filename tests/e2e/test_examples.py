#!/usr/bin/env python3
"""The examples run to their ends: a trial in five lines of shell, one that only prints, one in plain Python, the built-in trainer
on the digits; the CLI's tables and exports agree with the API; `assay logs` shows the output.

The two sweeps of the trainer are cut to a third and a half of their trials, one after another: what a method suggests
depends on the order of results, and the values that are compared must not. --whole (./dev nightly) runs the files as
they are."""
import csv
import io
import json
import os
import sys

from harness import SOURCE, Assay, Problem

TRIALS = {} if "--whole" in sys.argv else {"digits": (64, 22), "automl": (32, 16)}  # in the file, here


def run_file(assay, name, least=1):
    path = f"examples/{name}.yaml"
    if name in TRIALS:
        whole, cut = TRIALS[name]
        text = open(os.path.join(SOURCE, path)).read()
        assert text.count(f"max_trials: {whole},") == 1, text
        path = os.path.join(assay.data, f"{name}.yaml")
        with open(path, "w") as file:
            file.write(text.replace(f"max_trials: {whole},", f"max_trials: {cut}, max_concurrent_trials: 1,"))
    done = assay.cli("run", path, "--watch")
    sweeps = assay.call("GET", "/v1/sweeps")["items"]
    s = next(s for s in sweeps if name.split(".")[0] in s["id"] or s["id"] in done.stdout + done.stderr)
    assert s["state"] == "completed", (s, done.stderr)
    assert s["counts"]["completed"] >= least, s["counts"]
    assay.check_exact(s["id"], s["planned_trials"])
    return s, done


def check_exports(assay, s):
    rows = list(csv.DictReader(io.StringIO(assay.cli("export", s["id"], "--csv").stdout)))
    assert len(rows) == s["counts"]["total"], len(rows)
    tree = json.loads(assay.cli("export", s["id"], "--json").stdout)
    items = tree if isinstance(tree, list) else tree.get("items") or tree.get("trials")
    assert len(items) == len(rows)
    suggested = s["counts"]["total"]
    assert assay.cli("replay", s["id"]).stdout.startswith(f"{suggested} of {suggested} suggestions are the same")
    for verb in (["sweeps"], ["show", s["id"]], ["trials", s["id"]], ["best", s["id"]], ["importance", s["id"]], ["runners"], ["data", "list"]):
        text = assay.cli(*verb).stdout
        assert text.strip() and "\x1b" not in text, verb
        json.loads(assay.cli(*verb, "--json").stdout)


def check_logs(assay, s):
    shown = assay.cli("logs", f"{s['id']}/0").stdout
    kept = assay.call("GET", f"/v1/sweeps/{s['id']}/trials/0/log")["text"]
    assert shown.strip() == kept.strip(), (shown, kept)


def check_ensemble(assay, s):
    e = assay.call("GET", f"/v1/sweeps/{s['id']}/ensemble")
    assert e["state"] == "ready", e
    assert abs(sum(m["weight"] for m in e["members"]) - 1) < 1e-9, e
    assert e["rows"] > 200 and e["metric"] == "error" and e["is_sweep_metric"], e
    assert 0 <= e["value"] <= e["best_single"]["value"] + 0.02, e
    assert "without a fold" in assay.cli("ensemble", s["id"]).stdout + assay.cli("ensemble", s["id"]).stderr, "says so"
    print("digits: best single", e["best_single"]["value"], "ensemble", e["value"])


def check_kinds(assay, s):
    """A sweep over kinds of models tries each of them, none fails, and trees leave their importance."""
    items = assay.call("GET", f"/v1/sweeps/{s['id']}/trials?page_size=100")["items"]
    assert all(t["state"] == "completed" for t in items), [(t["number"], t["state"], t.get("error")) for t in items]
    kinds = {t["params"]["kind"] for t in items}
    assert kinds == {"boosted_trees", "random_forest", "extra_trees", "mlp", "logistic"}, kinds
    trees = next(t for t in items if t["params"]["kind"] == "boosted_trees")
    files = assay.call("GET", f"/v1/sweeps/{s['id']}/trials/{trees['number']}/artifacts")["items"]
    assert {"importance.json", "predictions.npy", "model.safetensors"} <= {f["path"] for f in files}, files
    shown = json.loads(assay.cli("trial", f"{s['id']}/{trees['number']}", "--json").stdout)["importance"]
    assert abs(sum(c["share"] for c in shown) - 1) < 1e-6 and shown[0]["column"].startswith("pixel_"), shown
    lines = assay.cli("trial", f"{s['id']}/{trees['number']}").stdout.splitlines()
    rows = [line.split("\t") for line in lines if line.startswith("importance.")]
    assert [(name, float(v)) for name, v in rows] == [("importance." + c["column"], c["share"]) for c in shown], rows
    network = next(t for t in items if t["params"]["kind"] == "mlp")
    assert "importance" not in assay.cli("trial", f"{s['id']}/{network['number']}").stdout
    print("kinds: best", s["best"]["value"], flush=True)
    assert s["best"]["value"] < 0.14, s["best"]  # 0.110 to 0.125 with --whole, where the order of results depends on the runners
    assert assay.call("GET", f"/v1/sweeps/{s['id']}/ensemble")["state"] == "ready"


def main():
    with Assay(runners=2) as assay:
        for name in ("shell", "printed", "python"):
            s, _ = run_file(assay, name)
            check_exports(assay, s)
            check_logs(assay, s)
            print(f"{name}: {s['counts']['completed']} trials, best {s['best']['value']}", flush=True)
        printed = assay.call("GET", "/v1/sweeps/printed/trials?page_size=1")["items"][0]
        assert set(printed["metrics"]) == {"train/loss", "val/loss"}, printed
        assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")
        assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")  # again: the same content
        s, done = run_file(assay, "digits", least=20)
        assert s["planned_trials"] == (22 if TRIALS else 64)
        assert s["best"]["value"] < 0.05, s["best"]
        check_exports(assay, s)
        check_ensemble(assay, s)
        check_kinds(assay, *run_file(assay, "automl", least=16)[:1])
        try:
            assay.call("DELETE", "/v1/datasets/digits")
        except Problem as e:
            raise AssertionError("no unfinished sweep uses it") from e


main()
