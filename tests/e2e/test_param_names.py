#!/usr/bin/env python3
"""Names of parameters as people write them in Optuna, Hydra and W&B (optimizer/lr, learning rate, layers[0], β), through
every layer: document, conditions, constraints, command, environment, search, replay, CLI, CSV, API, client."""
import csv
import importlib.util
import io
import json
import os
import sys
import urllib.parse

from harness import BUILD, Assay, Problem, run_cases

PARAMETERS = {"optimizer/lr": {"type": "float", "min": 0.001, "max": 1, "scale": "log"},
              "learning rate": {"type": "int", "min": 1, "max": 9},
              "layers[0]": {"type": "categorical", "values": [8, 16]},
              "drop (x)": {"type": "float", "min": 0, "max": 1, "when": {"layers[0]": 16}},
              "β": {"type": "bool"}, "optimizer": {"type": "int", "min": 1, "max": 4}, "lr": {"type": "int", "min": 1, "max": 4}}
RULES = ["optimizer/lr < 0.5 or β", "`learning rate` >= optimizer", "optimizer / lr <= 2", "`layers[0]` > 0 and `drop (x)` < 0.9"]
PROGRAM = """
import json, os, sys
params = json.load(open(os.environ["ASSAY_PARAMS"]))
given = {"args": sys.argv[1:], "params": params, "env": {k: v for k, v in os.environ.items() if k.startswith("ASSAY_PARAM_")}}
json.dump(given, open(os.path.join(os.environ["ASSAY_ARTIFACTS"], "given.json"), "w"))
open(os.environ["ASSAY_REPORT"], "a").write('{"val/loss": %r}\\n' % (params["optimizer/lr"] + params["learning rate"]))
"""


def document(name, **more):
    return {"name": name, "metric": {"name": "val/loss", "goal": "minimize"}, "parameters": PARAMETERS,
            "parameter_constraints": RULES, "forbidden": [{"layers[0]": 8, "learning rate": [8, 9]}],
            "search": {"method": "gp", "seed": 5}, "limits": {"max_trials": 10}, **more}


def refused(assay, doc, pointer, words):
    try:
        assay.call("POST", "/v1/sweeps", doc)
    except Problem as e:
        assert e.status == 400 and pointer in json.dumps(e.body, ensure_ascii=False) and words in json.dumps(e.body), e.body
    else:
        raise AssertionError(doc)


def runs(assay, folder):
    trial = {"command": [sys.executable, "program.py", "${args}", "--one=${optimizer/lr}", ["--drop", "${drop (x)}"], "${β?--beta}"],
             "directory": folder}
    sweep = assay.call("POST", "/v1/sweeps", document("spelled", trial=trial))["id"]
    assay.wait_ended(sweep)
    trials = assay.trials(sweep)
    assert len(trials) == 10 and all(t["state"] == "completed" for t in trials), trials
    for t in trials:
        p = t["params"]
        assert (p["optimizer/lr"] < 0.5 or p["β"]) and p["learning rate"] >= p["optimizer"] and p["optimizer"] / p["lr"] <= 2, p
        assert p.get("drop (x)", 0) < 0.9 and ("drop (x)" in p) == (p["layers[0]"] == 16), p
        files = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}/artifacts")["items"]
        given = json.loads(assay.call("GET", f"/v1/blobs/{[f['sha256'] for f in files if f['path'] == 'given.json'][0]}"))
        assert given["params"] == p, given
        assert f"--learning rate={p['learning rate']}" in given["args"] and f"--layers[0]={p['layers[0]']}" in given["args"], given
        assert ("--beta" in given["args"]) == p["β"] and ("--drop" in given["args"]) == ("drop (x)" in p), given
        assert given["env"]["ASSAY_PARAM_learning_rate"] == str(p["learning rate"]), given
        assert float(given["env"]["ASSAY_PARAM_optimizer_lr"]) == p["optimizer/lr"] and "ASSAY_PARAM_layers_0_" in given["env"], given
        assert len(given["env"]) == len(p) - 1, given  # β has no variable
    assert assay.cli("replay", sweep).stdout.startswith("10 of 10 suggestions are the same")
    return sweep


def shown(assay, folder, sweep):
    rows = assay.trials(sweep)
    for name in ("optimizer/lr", "learning rate", "layers[0]"):
        order = [t["params"][name] for t in assay.call("GET", f"/v1/sweeps/{sweep}/trials?sort={urllib.parse.quote('param:' + name)}")["items"]]
        assert order == sorted(t["params"][name] for t in rows), (name, order)
        assay.cli("trials", sweep, "--sort", name)
    assert "drop (x)" in assay.cli("trials", sweep, "--wide").stdout
    table = assay.cli("export", sweep, "--csv").stdout
    found = list(csv.DictReader(io.StringIO(table)))
    assert {f"param.{n}" for n in PARAMETERS} <= set(found[0]), found[0]
    path = os.path.join(folder, "known.csv")
    with open(path, "w") as f:
        f.write(table)
    other = assay.call("POST", "/v1/sweeps?paused=true", document("again", search={"method": "gp", "prior": [sweep]}))["id"]
    assay.cli("trials", "add", other, "--file", path)
    same = lambda s: sorted(json.dumps(t["params"], sort_keys=True) for t in assay.trials(s))
    assert same(other) == same(sweep), assay.trials(other)
    assay.cli("trials", "add", other, *sum((["--param", p] for p in ("optimizer/lr=0.25", "learning rate=7", "layers[0]=8", "β=true", "optimizer=2", "lr=2")), []),
              "--metric", "val/loss=1")
    wanted = "number,param:optimizer/lr,param:learning rate,param:β"
    raw = assay.call("GET", f"/v1/sweeps/{other}/table?columns={urllib.parse.quote(wanted)}")
    assert raw, "a table of these columns"


def told(assay):
    assay.call("POST", "/v1/sweeps", document("by-hand"))
    text = assay.cli("ask", "by-hand").stdout
    assert "param.learning rate\t" in text and "param.β\t" in text, text
    shell = assay.cli("ask", "by-hand", "--shell").stdout
    assert "ASSAY_PARAM_learning_rate=" in shell and "β" not in shell.replace('"β"', ""), shell


def wrong(assay):
    command = {"command": ["true"]}
    clash = {"a/b": {"type": "bool"}, "a b": {"type": "bool"}}
    refused(assay, {**document("clash", trial=command), "parameters": clash, "parameter_constraints": [], "forbidden": []},
            "/parameters/a b", "would both be the variable ASSAY_PARAM_a_b")
    bad = {"a=b": {"type": "bool"}}
    refused(assay, {**document("bad", trial=command), "parameters": bad, "parameter_constraints": [], "forbidden": []}, "/parameters/a=b",
            "single blanks inside")
    refused(assay, document("quoted", parameter_constraints=["learning rate > 3"]), "/parameter_constraints/0",
            "stands between backquotes: `learning rate`")


def of_the_client(assay):
    spec = importlib.util.spec_from_file_location("assay", os.path.join(BUILD, "clients", "python", "assay.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    os.environ.update(ASSAY_SERVER=assay.url, ASSAY_TOKEN=assay.token)

    def objective(trial):
        lr = trial.suggest_float("optimizer/lr", 1e-4, 1, log=True)
        kind = trial.suggest_categorical("kind of model", ["plain", "größe"])
        width = trial.suggest_int("layers[0].units", 1, 9) if kind == "plain" else 3
        return lr * width + trial.suggest_float("β", 0, 1)

    study = module.create_study(study_name="optuna-names")
    study.enqueue_trial({"optimizer/lr": 0.5, "kind of model": "plain", "layers[0].units": 2, "β": 0.5})
    study.optimize(objective, n_trials=12)
    assert set(study.best_params) >= {"optimizer/lr", "kind of model", "β"}, study.best_params
    assert study.trials[0].params == {"optimizer/lr": 0.5, "kind of model": "plain", "layers[0].units": 2, "β": 0.5}, study.trials[0].params
    assert {"optimizer/lr", "kind of model", "layers[0].units", "β"} <= set(study.rows()[0]), study.rows()[0]
    assert set(module.importance.get_param_importances(study)) == {"optimizer/lr", "kind of model", "layers[0].units", "β"}
    assert "of 1" in assay.cli("replay", study.sweep).stdout
    try:
        module.optimize(lambda t: t.suggest_float("lr=1", 0, 1), n_trials=1, name="refused")
    except module.SpaceError as e:
        assert "single blanks inside" in str(e), e
    else:
        raise AssertionError("a name with =")


def main():
    with Assay(runners=2) as assay:
        folder = assay.program(PROGRAM)
        sweep = runs(assay, folder)
        print("runs: ok")
        shown(assay, folder, sweep)
        print("shown: ok")
        run_cases((told, wrong, of_the_client), assay)


if __name__ == "__main__":
    main()
