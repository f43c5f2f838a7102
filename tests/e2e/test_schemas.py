#!/usr/bin/env python3
"""The schemas of api/openapi.yaml and the server agree on documents: every example of the API, of examples/ and of
the documentation fits the schema and is accepted; what the schema forbids the server refuses; and a list of wrong
documents is refused by both. No schema leaves open what it knows."""
import copy
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

from contract import Contract
from harness import BUILD, SOURCE, Assay, Problem

DOCUMENT = {"$ref": "#/components/schemas/SweepDocument"}
COMMAND = {
    "name": "command",
    "description": "of a program",
    "tags": ["a", "b"],
    "metrics": [{"name": "loss", "goal": "minimize"}, {"name": "speed", "goal": "maximize"}],
    "constraints": [{"metric": "memory", "max": 2000}, {"metric": "acc", "min": 0.5, "max": 1}],
    "parameters": {
        "f": {"type": "float", "min": 0.5, "max": 2.5, "step": 0.5},
        "g": {"type": "float", "min": 1e-4, "max": 1, "scale": "log", "points": 5},
        "i": {"type": "int", "min": 1, "max": 64, "scale": "log", "when": {"c": "a"}},
        "j": {"type": "int", "min": -4, "max": 4, "step": 2, "when": {"c": ["a", 2, [1, ["x", None]], None], "f": {"min": 1}}},
        "c": {"type": "categorical", "values": ["a", 2, True, 0.5, [1, ["x", None]], None]},
        "o": {"type": "ordinal", "values": ["s", "m", "l"]},
        "b": {"type": "bool", "when": {"o": {"min": "m", "max": "l"}}},
        "k": {"type": "constant", "value": 3},
    },
    "parameter_constraints": ["f * i <= 100"],
    "forbidden": [{"o": "l", "f": {"min": 2}}, {"c": [2, 0.5], "b": True}],
    "search": {"method": "random", "seed": 5},
    "limits": {"max_trials": 3, "max_concurrent_trials": 2, "max_failed_trials": 0, "max_restarts": 1,
               "trial_timeout": "5m", "wall_time": 3600, "grace": "1.5s"},
    "early_stopping": {"method": "asha", "metric": "loss", "min_steps": 3, "max_steps": 81, "eta": 3, "mode": "pause", "late": True, "strict": False},
    "trial": {"command": ["run", "--f=${f}", 3, 0.5], "checkpoints": True, "env": {"A": "${c}", "B": 1}, "directory": "/tmp",
              "venv": "/srv/venv", "env_file": ".env", "modules": ["gcc/12.2"],
              "environment": {"host": "00112233445566778899aabbccddeeff", "variables": {"PATH": "/bin"}}},
    "resources": {"gpus": 1, "ranks": 1, "group": 1},
    "ensemble": False,
}
TRAIN = {
    "name": "train",
    "metric": {"name": "val_error", "goal": "minimize"},
    "parameters": {
        "lr": {"type": "float", "min": 0.001, "max": 0.1, "scale": "log"},
        "opt": {"type": "categorical", "values": ["sgd", "adamw"]},
        "width": {"type": "int", "min": 8, "max": 64},
    },
    "search": {"method": "gp", "initial_trials": 3},
    "limits": {"max_trials": 2},
    "trial": {"train": {
        "dataset": "digits", "epochs": 2, "batch_size": 32, "micro_batch": 16, "report_every": 1, "standardize": True,
        "precision": "float32", "loss": "cross_entropy", "label_smoothing": 0.1, "class_weights": "balanced",
        "model": {"kind": "mlp", "layers": ["${width}", 32], "activation": "relu", "dropout": 0.1, "norm": "batch"},
        "optimizer": {"kind": "${opt}", "lr": "${lr}", "momentum": 0.9, "nesterov": True, "beta1": 0.9, "beta2": 0.99,
                      "eps": 1e-8, "weight_decay": 0.01, "clip_norm": 1, "ema": 0},
        "schedule": {"kind": "cosine", "warmup_epochs": 0.5, "pct_start": 0.3, "min_lr": 0, "step_epochs": 1, "gamma": 0.5},
        "validation": {"fraction": 0.25, "seed": 1},
        "metrics": ["val_auc", "val_f1"],
    }},
    "resources": {"group": 8},
    "ensemble": {"method": "greedy", "size": 4},
}
CNN = copy.deepcopy(TRAIN)
CNN["trial"]["train"]["model"] = {"kind": "cnn", "layers": [
    {"conv": 8, "kernel": 3, "stride": 1, "padding": "same", "norm": "batch", "activation": "relu"},
    {"conv": "${width}", "padding": 1}, {"conv": 0, "depthwise": True}, {"pool": "max", "size": 2, "stride": 2, "padding": 0},
    {"residual": [{"conv": 8}, {"dropout": True}]}, {"pool": "global"}, {"dense": 16, "activation": "none"}]}
TREES = copy.deepcopy(TRAIN)
TREES["trial"]["train"]["model"] = {
    "kind": "boosted_trees", "n_estimators": "${width}", "max_depth": 6, "max_leaves": 31, "max_bin": 64, "max_cat_to_onehot": 8,
    "early_stopping_rounds": 5, "learning_rate": "${lr}", "min_child_weight": 1, "gamma": 0.5, "max_delta_step": 0, "reg_lambda": 1,
    "reg_alpha": 0, "subsample": 0.8, "colsample_bytree": 1, "colsample_bylevel": 1, "colsample_bynode": 0.5,
    "tree_method": "hist", "grow_policy": "lossguide"}
del TREES["trial"]["train"]["epochs"]
# What both refuse: (document, path, value; a path that is new adds a field).
WRONG = [
    (COMMAND, "name", "Not A Slug"), (COMMAND, "tags", [""]), (COMMAND, "metrics/0/goal", "up"),
    (COMMAND, "metrics", [{"name": "a", "goal": "minimize"}]), (COMMAND, "metrics/0/weight", 1),
    (COMMAND, "constraints/0", {"metric": "memory"}), (COMMAND, "constraints/0", "f < 1"),
    (COMMAND, "parameters", {}), (COMMAND, "parameters/f/type", "double"), (COMMAND, "parameters/f/values", [1]),
    (COMMAND, "parameters/f/min", "0"), (COMMAND, "parameters/f/step", 0), (COMMAND, "parameters/f/scale", "log10"),
    (COMMAND, "parameters/i/min", 0.5), (COMMAND, "parameters/g/points", 1), (COMMAND, "trial/modules", []), (COMMAND, "trial/venv", 3), (COMMAND, "trial/environment/variables/AWS", "x"),
    (COMMAND, "parameters/c/values", []),
    (COMMAND, "parameters/c/values", [{"a": 1}]), (COMMAND, "parameters/o/values", [True]), (COMMAND, "parameters/k", {"type": "constant"}),
    (COMMAND, "parameters/1x", {"type": "bool"}), (COMMAND, "parameters/b/when", {}), (COMMAND, "parameters/b/when", {"o": {}}),
    (COMMAND, "parameters/b/when", {"o": {"from": 1}}), (COMMAND, "forbidden", [{}]), (COMMAND, "parameter_constraints", [1]),
    (COMMAND, "search/method", "anneal"), (COMMAND, "search/seed", -1), (COMMAND, "search/sed", 1),
    (COMMAND, "limits/max_trials", 0), (COMMAND, "limits/max_trails", 1), (COMMAND, "limits/wall_time", "soon"),
    (COMMAND, "limits/grace", 0), (COMMAND, "trial", {}), (COMMAND, "trial/train", {"dataset": "d", "epochs": 1}),
    (COMMAND, "trial/command", []), (COMMAND, "trial/command", "run"), (COMMAND, "trial/command", [None]),
    (COMMAND, "trial/env", {"A B": 1}), (COMMAND, "trial/env", {"A": []}), (COMMAND, "trial/shell", True),
    (COMMAND, "resources/gpus", -1), (COMMAND, "resources/ranks", 0), (COMMAND, "resources/cores", 1), (COMMAND, "resources/cpus", 0),
    (COMMAND, "ensemble", 12), (COMMAND, "ensemble", {"size": 0}),
    (COMMAND, "early_stopping", {"method": "pbt", "period": 5, "population": 1}), (COMMAND, "early_stopping/eta", 1), (COMMAND, "early_stopping/min_steps", 0),
    (COMMAND, "early_stopping/mode", "wait"), (COMMAND, "early_stopping/grace", 3), (COMMAND, "trial/checkpoints", "yes"),
    (TRAIN, "trial/train/epochs", 0), (TRAIN, "trial/train/epochs", "many"), (TRAIN, "trial/train/epoch", 1),
    (TRAIN, "trial/train/loss", "hinge"), (TRAIN, "trial/train/class_weights", [1]), (TRAIN, "trial/train/metrics", ["val_acc"]),
    (TRAIN, "trial/train/model/kind", "rnn"), (TRAIN, "trial/train/model/layers", [0]), (TRAIN, "trial/train/model/widht", 3),
    (TRAIN, "trial/train/optimizer/kind", "adamax"), (TRAIN, "trial/train/optimizer/lr", 0),
    (TRAIN, "trial/train/optimizer/momentum", 2), (TRAIN, "trial/train/schedule/kind", "linear"),
    (TRAIN, "trial/train/validation/fraction", 0), (TRAIN, "trial/train/augment", {"pad": -1}),
    (CNN, "trial/train/model/layers/0/kernel", 0), (CNN, "trial/train/model/layers/0/pool", "max"),
    (CNN, "trial/train/model/layers/0/padding", "full"), (CNN, "trial/train/model/layers/3", {"pool": "min"}),
    (CNN, "trial/train/model/layers/3", {}), (CNN, "trial/train/model/layers/4/residual", []),
    (CNN, "trial/train/model/preset", "alexnet"),
]
SPOILED = [None, True, -1, 0.5, "", "nonsense", [], {}, [[]], {"a": 1}]


def yaml_tree(text):
    """The tree of a YAML text, read by Assay's own reader; None if it is not YAML."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "in.yaml")
        open(path, "w").write(text)
        tool = os.path.join(BUILD, "api", "embed_openapi")
        done = subprocess.run([tool, path, path + ".c", path + ".json"], capture_output=True)
        return json.load(open(path + ".json")) if done.returncode == 0 else None


def documents():
    """(where, document) of every sweep document of examples/ and the documentation."""
    found = [(os.path.relpath(p, SOURCE), yaml_tree(open(p).read()))
             for p in sorted(glob.glob(SOURCE + "/examples/**/*.yaml", recursive=True))
             if "/coming-from/" not in p or p.endswith("/after.yaml")]  # the others are those of other tools
    for page in sorted([SOURCE + "/README.md"] + glob.glob(SOURCE + "/docs/*.md")):
        for i, text in enumerate(re.findall(r"^```yaml\n(.*?)^```", open(page).read(), re.M | re.S)):
            tree = yaml_tree(text)
            if isinstance(tree, dict) and "parameters" in tree and "name" in tree:
                found.append((f"{os.path.relpath(page, SOURCE)}, block {i + 1}", tree))
    return found


ANY_JSON = "/components/schemas/UserAttrs"  # values that people keep, whatever they are


def check_open_places(schema, at):
    """Every schema says what it is; every object has properties or a schema for all of them."""
    if at == ANY_JSON:
        return
    assert schema.keys() & {"type", "$ref", "oneOf", "allOf", "enum", "const"}, f"{at}: any value"
    assert schema.get("additionalProperties") is not True, f"{at}: any field"
    if "object" in [schema.get("type")] + (schema["type"] if isinstance(schema.get("type"), list) else []):
        assert schema.get("properties") or isinstance(schema.get("additionalProperties"), dict), f"{at}: any object"
    for key, inner in schema.get("properties", {}).items():
        check_open_places(inner, f"{at}/properties/{key}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            check_open_places(schema[key], f"{at}/{key}")
    for key in ("oneOf", "allOf"):
        for i, inner in enumerate(schema.get(key, [])):
            check_open_places(inner, f"{at}/{key}/{i}")


def check_examples(contract):
    """Every example of the API fits its own schema. Returns the number of them."""
    n = 0
    for op in contract.doc["paths"].values():
        for what in op.values():
            if not isinstance(what, dict):
                continue
            for part in [what.get("requestBody", {})] + list(what.get("responses", {}).values()):
                for media in contract.resolve(part).get("content", {}).values():
                    values = [e["value"] for e in media.get("examples", {}).values()]
                    for value in values + ([media["example"]] if "example" in media else []):
                        contract.validate(value, media["schema"], what["operationId"])
                        n += 1
    return n


def changed(doc, path, value):
    doc, keys = copy.deepcopy(doc), [int(k) if k.isdigit() else k for k in path.split("/")]
    at = doc
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    return doc


def create(assay, contract, doc):
    """Create it paused and delete it. The problem, or None; the document that comes back fits the schema, too."""
    try:
        sweep = assay.call("POST", "/v1/sweeps?paused=true", doc)
    except Problem as e:
        assert e.status == 400, (e.status, e.body, doc)
        return e.body
    contract.validate(sweep, {"$ref": "#/components/schemas/Sweep"}, sweep["id"])
    assay.call("PATCH", f"/v1/sweeps/{sweep['id']}", {"state": "cancelled"}, headers={"Content-Type": "application/merge-patch+json"})
    assay.call("DELETE", f"/v1/sweeps/{sweep['id']}")
    return None


def check_accepted(assay, contract):
    known = [("command", COMMAND), ("train", TRAIN), ("cnn", CNN)] + documents()
    assert len(known) > 8, [where for where, _ in known]
    for where, doc in known:
        contract.validate(doc, DOCUMENT, where)
        problem = create(assay, contract, doc)
        # documents of pages may name data that the page adds first; a cnn needs images
        told = [e["pointer"] for e in problem["errors"]] if problem else []
        assert not problem or told == ["/trial/train/dataset"] or (where == "cnn" and "image" in problem["detail"]), (where, problem)
    return known


def check_wrong(assay, contract):
    for base, path, value in WRONG:
        doc = changed(base, path, value)
        assert not contract.is_valid(doc, DOCUMENT), f"the schema takes {path} = {value!r}"
        assert create(assay, contract, doc), f"the server takes {path} = {value!r}"


def places(tree, at=""):
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield f"{at}{key}"
        yield from places(value, f"{at}{key}/")


def check_spoiled(assay, contract):
    """Each place of a document with values of other kinds: the server refuses what the schema forbids. (null in an
    optional field means that it is absent.) Returns how many the schema refused."""
    n = 0
    for base in (COMMAND, TRAIN):
        for path in places(base):
            for value in SPOILED:
                doc = changed(base, path, value)
                if value is not None and not contract.is_valid(doc, DOCUMENT):
                    assert create(assay, contract, doc), f"the server takes {path} = {value!r}, the schema does not"
                    n += 1
    return n


def main():
    with Assay(runners=0) as assay:
        contract = Contract(assay.url)
        for name, schema in contract.doc["components"]["schemas"].items():
            check_open_places(schema, f"/components/schemas/{name}")
        print(check_examples(contract), "examples of the API fit their schemas")
        assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")
        print(len(check_accepted(assay, contract)), "documents are accepted by the schema and the server")
        check_wrong(assay, contract)
        print(len(WRONG), "wrong documents are refused by both;", check_spoiled(assay, contract), "spoiled ones, too")


if __name__ == "__main__":
    sys.exit(main())
