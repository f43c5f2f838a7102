#!/usr/bin/env python3
"""The commands of docs/data.md run as they stand there, and what they register is described and can be trained on."""
import json
import os
import pathlib
import re
import subprocess
import tempfile

from harness import ASSAY, SOURCE, Assay


def run_docs(assay):
    text = (pathlib.Path(SOURCE) / "docs" / "data.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.S)
    assert len(blocks) == 6, len(blocks)
    env = {**assay.env, "PATH": os.path.dirname(ASSAY) + ":" + os.environ["PATH"]}
    with tempfile.TemporaryDirectory() as folder:
        for block in blocks:
            subprocess.run(["bash", "-euc", block], cwd=folder, env=env, check=True)


def check_described(assay):
    jobs = assay.call("GET", "/v1/datasets/jobs")
    assert [(c["name"], c["kind"], c["missing"]) for c in jobs["columns"]] == [
        ("age", "numeric", 1), ("job", "categorical", 0), ("city", "categorical", 2)], jobs
    assert jobs["columns"][1]["values"] == ["clerk", "cook"] and jobs["columns"][1]["other"] == 1, jobs
    assert assay.call("GET", "/v1/datasets/marks")["image"] == {"height": 2, "width": 2, "channels": 1}
    shop = assay.call("GET", "/v1/datasets/shop")
    assert [(c["name"], c["kind"], c["missing"]) for c in shop["columns"]] == [
        ("when", "date", 0), ("note", "text", 1), ("amount", "numeric", 0)], shop
    assert shop["columns"][0]["cycles"] == ["week", "month", "hour"] and shop["columns"][1]["buckets"] == 64, shop
    assert shop["features"] == 7 + 64 + 1, shop
    assert shop["options"] == {"separator": ";", "decimal": ",", "comment": "#", "drop": ["receipt"], "buckets": 64}, shop
    people = assay.call("GET", "/v1/datasets/people")
    assert (people["task"], people["features"], people.get("target")) == ("clustering", 3, None), people
    pets = assay.call("GET", "/v1/datasets/pets")
    assert pets["image"] == {"height": 8, "width": 8, "channels": 3} and pets["classes"] == ["cat", "dog"], pets
    numbers = assay.call("GET", "/v1/datasets/numbers")
    assert (numbers["task"], numbers["outputs"]) == ("language_modeling", 256), numbers
    assert all("columns" not in d for d in assay.call("GET", "/v1/datasets")["items"])


def check_trains(assay):
    for name in ("jobs", "marks", "shop", "pets"):
        made = assay.call("POST", "/v1/sweeps", {
            "name": name, "metric": {"name": "val_loss", "goal": "minimize"},
            "parameters": {"lr": {"type": "float", "min": 0.001, "max": 0.1}}, "limits": {"max_trials": 2},
            "trial": {"train": {"dataset": name, "optimizer": {"kind": "sgd", "lr": "${lr}"}, "epochs": 2, "batch_size": 2}}})
        sweep = assay.wait_ended(made["id"])
        logs = [assay.cli("logs", f"{made['id']}/{n}", check=False).stdout for n in range(2)]
        assert sweep["counts"]["completed"] == 2, (sweep["counts"], logs)
        files = assay.call("GET", f"/v1/sweeps/{made['id']}/trials/0/artifacts")["items"]
        blob = next(f["sha256"] for f in files if f["path"] == "preprocessing.json")
        made_of = json.loads(assay.call("GET", f"/v1/blobs/{blob}"))
        assert made_of["input"] == ("image" if name in ("marks", "pets") else "table"), made_of


def main():
    with Assay(runners=1) as assay:
        run_docs(assay)
        check_described(assay)
        check_trains(assay)


main()
