#!/usr/bin/env python3
"""Lists and null as values of a parameter, through every layer: document, search, runner, trainer, CLI, CSV, client."""
import csv
import importlib.util
import io
import json
import os
import sys

from harness import BUILD, SOURCE, Assay, Problem, run_cases

VALUES = [[8], [16, 8], None, "8", [["a", 0.5], []]]
PARAMETERS = {"layers": {"type": "categorical", "values": VALUES},
              "extra": {"type": "bool", "when": {"layers": [[16.0, 8], None]}},
              "none": {"type": "constant", "value": None}, "pair": {"type": "constant", "value": [0.9, 0.999]}}
CONSTANTS = {"none": None, "pair": [0.9, 0.999]}
PROGRAM = """
import json, os, sys
given = {"args": sys.argv[1:], "env": os.environ["ASSAY_PARAM_layers"], "none": os.environ["ASSAY_PARAM_none"], "own": os.environ["OWN"],
         "params": json.load(open(os.environ["ASSAY_PARAMS"])), "file": json.load(open(os.environ["FILE"]))}
json.dump(given, open(os.path.join(os.environ["ASSAY_ARTIFACTS"], "given.json"), "w"))
layers = given["params"]["layers"]
open(os.environ["ASSAY_REPORT"], "a").write('{"loss": %d}\\n' % (0 if layers == [16, 8] else len(str(layers))))
"""


def document(name, trial, method="grid", **more):
    return {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "parameters": PARAMETERS,
            "search": {"method": method, "seed": 3}, "trial": trial, **more}


def text(value):
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def runs(assay, folder):
    trial = {"command": [sys.executable, "program.py", ["--nested", "${layers}"], "${args}", "${layers:-none}",
                         ["--none", "${none}"], "${none}", "${none:-absent}"],
             "directory": folder, "env": {"OWN": "${layers}", "FILE": "${file:f.json}"},
             "files": {"f.json": '{"layers": ${layers}, "none": ${none}}'}}
    sweep = assay.call("POST", "/v1/sweeps", document("lists", trial))["id"]
    assay.wait_ended(sweep)
    trials = assay.trials(sweep)
    assert len(trials) == 7 and all(t["state"] == "completed" for t in trials), trials
    assert [t["params"]["layers"] for t in trials if "extra" not in t["params"]] == [[8], "8", [["a", 0.5], []]], trials
    for t in trials:
        files = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}/artifacts")["items"]
        given = json.loads(assay.call("GET", f"/v1/blobs/{[f['sha256'] for f in files if f['path'] == 'given.json'][0]}"))
        layers = t["params"]["layers"]
        want = [] if layers is None else ["--nested", text(layers), "--layers=" + text(layers)]
        want += ["--extra=" + text(t["params"]["extra"])] if "extra" in t["params"] else []
        want += ["--pair=[0.9,0.999]"]
        want += ["none" if layers is None else text(layers), "null", "absent"]
        assert {n: t["params"][n] for n in CONSTANTS} == CONSTANTS and given["none"] == "null", (t, given)
        assert given["file"]["none"] is None, given
        assert given["args"] == want, (given, want)
        assert given["file"]["layers"] == (8 if layers == "8" else layers), given  # a text has no quotes of its own
        assert given["env"] == given["own"] == text(layers) and given["params"] == t["params"], given
    return sweep


def shown(assay, folder, sweep):
    out = assay.cli("trials", sweep, "--wide").stdout
    assert all(text(v) in out for v in VALUES), out
    assert "[16,8]" in assay.cli("best", sweep).stdout
    none, = [t["number"] for t in assay.trials(sweep) if t["params"] == {"layers": None, "extra": False, **CONSTANTS}]
    assert "null" in assay.cli("trial", f"{sweep}/{none}").stdout
    table = assay.cli("export", sweep, "--csv").stdout
    cells = [row["param.layers"] for row in csv.DictReader(io.StringIO(table))]
    assert {c.lstrip("'") for c in cells} == {text(v) for v in VALUES}, cells
    assert {row["param.none"] for row in csv.DictReader(io.StringIO(table))} == {"null"}, table
    path = os.path.join(folder, "known.csv")
    with open(path, "w") as f:
        f.write(table)
    other = assay.call("POST", "/v1/sweeps?paused=true", document("again", {"command": ["false"]}, "random", limits={"max_trials": 1}))["id"]
    assay.cli("trials", "add", other, "--file", path)
    same = lambda s: sorted(json.dumps(t["params"], sort_keys=True) for t in assay.trials(s))
    assert same(other) == same(sweep), assay.trials(other)


def asked(assay):
    doc = document("asked", None, "gp", limits={"max_trials": 12}, forbidden=[{"layers": [[8], None], "extra": True},
                                                                             {"layers": "8"}])
    del doc["trial"]
    doc["parameters"] = dict(PARAMETERS)
    doc["parameters"]["x"] = {"type": "float", "min": 0, "max": 1}
    sweep = assay.call("POST", "/v1/sweeps", doc)["id"]
    for layers in ("[16, 8.0]", "null"):
        assay.cli("trials", "add", sweep, *sum((["--param", p] for p in (f"layers={layers}", "extra=false", "x=0.5", "none=null", "pair=[0.9,0.999]")), []),
                  "--metric", "loss=1")
    for n in range(8):
        item, = assay.wait(lambda: assay.call("POST", f"/v1/sweeps/{sweep}/suggestions", {"client": "c", "count": 1})["items"],
                           "a suggestion")
        params = item["params"]
        assert params["layers"] in VALUES and params["layers"] != "8", params
        assert not (params["layers"] is None and params["extra"]), params
        assay.call("POST", f"/v1/sweeps/{sweep}/suggestions/{item['number']}/complete",
                   {"client": "c", "metrics": {"loss": n}})
    assert assay.cli("replay", sweep).stdout.startswith("8 of 8 suggestions are the same")
    for params in ({"layers": [9]}, {"layers": [[8]]}, {"layers": "null"}):
        params = {"x": 0.5, **CONSTANTS, **params}
        try:
            assay.call("POST", f"/v1/sweeps/{sweep}/trials", {"params": params})
        except Problem as e:
            assert e.status == 400 and "/params/layers" in json.dumps(e.body), e
        else:
            raise AssertionError(params)


def trained(assay):
    assay.cli("data", "add", "digits", os.path.join(SOURCE, "examples", "digits.csv"), "--target", "class")
    doc = document("trained", {"train": {"dataset": "digits", "epochs": 1, "model": {"kind": "mlp", "layers": "${layers}"}}})
    doc["metric"] = {"name": "val_error", "goal": "minimize"}
    doc["parameters"] = {"layers": {"type": "categorical", "values": [[8], [16, 8], None]}}
    sweep = assay.call("POST", "/v1/sweeps", doc)["id"]
    assay.wait_ended(sweep)
    shapes = {text(t["params"]["layers"]): t["shape"] for t in assay.trials(sweep) if t["state"] == "completed"}
    assert len(shapes) == 3 and len(set(shapes.values())) == 3, assay.trials(sweep)
    doc["parameters"]["layers"]["values"].append(["a"])
    try:
        assay.call("POST", "/v1/sweeps", doc)
    except Problem as e:
        assert "layers" in json.dumps(e.body) and e.status == 400, e
    else:
        raise AssertionError("a layer of no width")


def of_the_client(assay):
    spec = importlib.util.spec_from_file_location("assay", os.path.join(BUILD, "clients", "python", "assay.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    os.environ.update(ASSAY_SERVER=assay.url, ASSAY_TOKEN=assay.token)
    seen = []

    def objective(trial):
        layers = trial.suggest_categorical("layers", [(64,), [128, 64], None, "64"])
        seen.append(layers)
        return 0.0 if layers is None else float(len(str(layers)))

    study = module.optimize(objective, n_trials=12, name="client", method="random")
    assert {repr(s) for s in seen} <= {"(64,)", "[128, 64]", "None", "'64'"} and len({repr(s) for s in seen}) > 1, seen
    values = assay.sweep(study.sweep)["document"]["parameters"]["layers"]["values"]
    assert values == [[64], [128, 64], None, "64"], values
    assert study.best_params["layers"] is None or None not in seen, study.best_params


def main():
    with Assay(runners=2) as assay:
        folder = assay.program(PROGRAM)
        sweep = runs(assay, folder)
        print("runs: ok")
        shown(assay, folder, sweep)
        print("shown: ok")
        run_cases((asked, trained, of_the_client), assay)


if __name__ == "__main__":
    main()
