#!/usr/bin/env python3
"""The number of ranks as a parameter of the search: each trial runs with its own, of the built-in trainer and of a
program, and the time of a step is a cost beside the metric."""
import csv
import io
import os
import sys

from harness import SOURCE, Assay, Problem

PROGRAM = ("import json, os\n"
           "if os.environ['RANK'] == '0':\n"
           "    open(os.environ['ASSAY_REPORT'], 'a').write(json.dumps({'loss': int(os.environ['WORLD_SIZE'])}))\n")


def training(name, **more):
    return {"name": name, "metrics": [{"name": "val_error", "goal": "minimize"},
                                      {"name": "step_seconds", "goal": "minimize"}],
            "constraints": [{"metric": "step_seconds", "max": 1000}],
            "parameters": {"lr": {"type": "categorical", "values": [0.05]}},
            "search": {"method": "grid"}, "resources": {"ranks": {"min": 1, "max": 3}}, "ensemble": False,
            "trial": {"train": {"dataset": "digits", "model": {"kind": "mlp", "layers": [16]},
                                "optimizer": {"kind": "sgd", "lr": "${lr}"}, "epochs": 2, "batch_size": 128,
                                "micro_batch": 32}}, **more}


def check_ranks(assay, sweep, name):
    """Each trial had as many seats as its parameter says."""
    found = []
    for t in assay.trials(sweep):
        assert t["state"] == "completed" and t["restarts"] == 0, t
        gang = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}/attempts/1/gang")
        n = t["params"][name]
        assert gang["ranks"] == n == len(gang["seats"]), (t["params"], gang)
        found.append(n)
    return sorted(found)


def train(assay):
    sweep = assay.call("POST", "/v1/sweeps", training("train"))["id"]
    assay.wait_ended(sweep)
    assert check_ranks(assay, sweep, "ranks") == [1, 2, 3], assay.trials(sweep)
    for t in assay.trials(sweep):
        assert 0 < t["metrics"]["step_seconds"] < 1000 and t["feasible"], t
    rows = list(csv.DictReader(io.StringIO(assay.cli("export", sweep, "--csv").stdout)))
    column = next(c for c in rows[0] if c.endswith("ranks"))
    assert sorted(r[column] for r in rows) == ["1", "2", "3"], rows[0]
    front = assay.call("GET", f"/v1/sweeps/{sweep}/pareto")["items"]
    assert front and all("step_seconds" in p["metrics"] for p in front), front
    document = assay.call("GET", f"/v1/sweeps/{sweep}")["document"]
    assert document["parameters"]["ranks"]["type"] == "int" and document["resources"]["ranks"] == "${ranks}", document
    print(f"train: {[round(t['metrics']['step_seconds'], 6) for t in assay.trials(sweep)]} s a step", flush=True)


def program(assay):
    sweep = assay.call("POST", "/v1/sweeps", {
        "name": "program", "metric": {"name": "loss", "goal": "minimize"},
        "parameters": {"n": {"type": "ordinal", "values": [1, 2, 4]}}, "search": {"method": "grid"},
        "resources": {"ranks": "${n}"}, "ensemble": False,
        "trial": {"command": [sys.executable, "-c", PROGRAM], "directory": SOURCE}})["id"]
    assay.wait_ended(sweep)
    assert check_ranks(assay, sweep, "n") == [1, 2, 4]
    assert all(t["value"] == t["params"]["n"] for t in assay.trials(sweep)), assay.trials(sweep)


def refused(assay):
    for document, pointer in ((training("r", resources={"ranks": {"min": 1, "max": 5}}), "/resources/ranks"),
                              (training("r", resources={"ranks": {"min": 2, "max": 3}, "min_ranks": 3}),
                               "/resources/min_ranks")):
        try:
            assay.call("POST", "/v1/sweeps", document)
        except Problem as e:
            assert e.status == 400 and e.body["errors"][0]["pointer"] == pointer, e.body
        else:
            raise AssertionError(f"{document['resources']} was accepted")


def main():
    with Assay(runners=2, slots=2) as assay:
        assay.cli("data", "add", "digits", os.path.join(SOURCE, "examples", "digits.csv"), "--target", "class")
        refused(assay)
        train(assay)
        program(assay)


main()
