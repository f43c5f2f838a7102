#!/usr/bin/env python3
"""Programs that people already have: each trial gets exactly the flags and files that its parameters mean."""
import json
import os
import sys

from harness import Assay, Problem, run_cases

# Refuses an empty value, as most programs do, and reports what it was given.
PROGRAM = """
import json, os, sys
args = sys.argv[1:]
if any(a.endswith("=") or a == "" for a in args):
    sys.exit("an argument without a value: %r" % args)
given = {"args": args, "config": open(args[args.index("--config") + 1]).read() if "--config" in args else None,
         "env": os.environ.get("CONFIG"), "left": sorted(os.listdir("."))}
json.dump(given, open(os.path.join(os.environ["ASSAY_ARTIFACTS"], "given.json"), "w"))
open(os.environ["ASSAY_REPORT"], "w").write('{"loss": 1}\\n')
"""

# Knows nothing of Assay: it writes into the folder that --out names, and fails if another run has written there.
FOREIGN = """
import os, sys, time
out = sys.argv[sys.argv.index("--out") + 1]
os.makedirs(out, exist_ok=True)
with open(os.path.join(out, "metrics.csv"), "x") as f:
    print("step,loss", *("%d,%s" % (step, sys.argv[1]) for step in range(3)), sep="\\n", file=f)
with open(os.path.join(out, "model.txt"), "x") as f:
    f.write(sys.argv[1])
"""

PARAMETERS = {
    "optimizer": {"type": "categorical", "values": ["sgd", "adam"]},
    "momentum": {"type": "categorical", "values": [0, 0.9], "when": {"optimizer": "sgd"}},
    "nesterov": {"type": "bool", "when": {"optimizer": "sgd"}},
}


def document(folder, command, **trial):
    return {"name": "flags", "metric": {"name": "loss", "goal": "minimize"}, "parameters": PARAMETERS,
            "search": {"method": "grid"},
            "trial": {"command": [sys.executable, os.path.join(folder, "program.py"), *command], "directory": folder, **trial}}


def given_by(assay, doc):
    sweep = assay.call("POST", "/v1/sweeps", doc)["id"]
    assay.wait_ended(sweep)
    out = []
    for trial in assay.trials(sweep):
        assert trial["state"] == "completed", trial
        files = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{trial['number']}/artifacts")["items"]
        digest = [f["sha256"] for f in files if f["path"] == "given.json"][0]
        out.append((trial["params"], json.loads(assay.call("GET", f"/v1/blobs/{digest}"))))
    assert len(out) == 5, [p for p, _ in out]
    return out


def flags(assay, folder):
    doc = document(folder, ["--optimizer=${optimizer}", ["--momentum", "${momentum}"], "${nesterov?--nesterov}"])
    for params, given in given_by(assay, doc):
        want = ["--optimizer=" + params["optimizer"]]
        if params["optimizer"] == "sgd":
            want += ["--momentum", "0.9" if params["momentum"] else "0"] + (["--nesterov"] if params["nesterov"] else [])
        assert given["args"] == want, (params, given)


def all_parameters(assay, folder):
    text = lambda v: {True: "true", False: "false"}.get(v, v) if isinstance(v, bool) else str(v)
    for style, form in (("${args}", "--{}={}"), ("${args:hydra}", "{}={}"), ("${args:short}", "--{} {}")):
        for params, given in given_by(assay, document(folder, [style])):
            want = [form.format(k, text(params[k])) for k in PARAMETERS if k in params]
            assert given["args"] == " ".join(want).split(), (style, params, given)


def files(assay, folder):
    doc = document(folder, ["--config", "${file:conf/run.yaml}"], env={"CONFIG": "${file:conf/run.yaml}"},
                   files={"conf/run.yaml": "optimizer: ${optimizer}\nmomentum: ${momentum:-none}\ncost: $${x}\n"})
    for params, given in given_by(assay, doc):
        momentum = {None: "none", 0: "0", 0.9: "0.9"}[params.get("momentum")]
        assert given["config"] == f"optimizer: {params['optimizer']}\nmomentum: {momentum}\ncost: ${{x}}\n", given
        assert given["env"] == given["args"][1] and given["env"].endswith("conf/run.yaml"), given
        assert given["left"] == ["program.py"], given  # nothing is written where the program runs


def own_folder(assay, folder):
    """${trial_dir} is another folder for each trial: reports are read there, and its files are kept."""
    with open(os.path.join(folder, "foreign.py"), "w") as f:
        f.write(FOREIGN)
    doc = {"name": "own-folder", "metric": {"name": "loss", "goal": "minimize"}, "search": {"method": "grid"},
           "parameters": {"x": {"type": "int", "min": 1, "max": 4}},
           "trial": {"command": [sys.executable, "foreign.py", "${x}", "--out", "${trial_dir}/run"], "directory": folder,
                     "report": {"csv": "${trial_dir}/run/metrics.csv"}}}
    sweep = assay.call("POST", "/v1/sweeps", doc)["id"]
    assay.wait_ended(sweep)
    for trial in assay.trials(sweep):
        assert trial["state"] == "completed" and trial["value"] == trial["params"]["x"], trial
        files = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{trial['number']}/artifacts")["items"]
        assert sorted(f["path"] for f in files) == ["run/metrics.csv", "run/model.txt"], files
        digest, = (f["sha256"] for f in files if f["path"] == "run/model.txt")
        assert assay.call("GET", f"/v1/blobs/{digest}") == str(trial["params"]["x"]).encode()
    os.unlink(os.path.join(folder, "foreign.py"))
    doc["trial"]["report"] = {"csv": "/etc/${x}"}  # no folder of the trial's
    try:
        assay.call("POST", "/v1/sweeps", doc)
    except Problem as e:
        assert e.status == 400, e
    else:
        raise AssertionError("a report outside of the folders")


def refused(assay, folder):
    for command, part in ((["--momentum=${momentum}"], "'momentum' has a `when`"), (["${optimizer?--x}"], "is not of type bool"),
                          (["a ${args}"], "an element of its own"), (["${file:x}"], "trial.files has no 'x'")):
        try:
            assay.call("POST", "/v1/sweeps", document(folder, command))
        except Problem as e:
            assert e.status == 400 and part in e.body["detail"], e
            assert e.body["errors"][0]["pointer"] == "/trial/command/2", e.body
        else:
            raise AssertionError(command)


def main():
    with Assay(runners=2) as assay:
        folder = assay.program(PROGRAM)
        run_cases((flags, all_parameters, files, own_folder, refused), assay, folder)


if __name__ == "__main__":
    main()
