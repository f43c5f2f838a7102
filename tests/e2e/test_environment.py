#!/usr/bin/env python3
"""A program finds the Python and the variables that it had in the user's shell: by `assay run` on the same machine, by
trial.venv and trial.env_file on any; and a trial that cannot have them fails with the name of the field."""
import json
import os
import subprocess
import sys

from harness import Assay, Problem, run_cases

# Reports which interpreter it is, and what it sees of the environment.
PROGRAM = """
import json, os, sys
names = ["PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "TOKEN", "GREETING", "LEVEL", "SECRET"]
given = {"prefix": sys.prefix, **{n: os.environ.get(n) for n in names}}
json.dump(given, open(os.path.join(os.environ["ASSAY_ARTIFACTS"], "given.json"), "w"))
open(os.environ["ASSAY_REPORT"], "a").write('{"loss": 1}\\n')
"""
DOCUMENT = {"name": "surroundings", "metric": {"name": "loss", "goal": "minimize"},
            "parameters": {"x": {"type": "int", "min": 1, "max": 2}}, "limits": {"max_trials": 1, "max_restarts": 0}}
ENV_FILE = "# of this machine\nexport TOKEN='s3cret #1'\nGREETING=\"two\\nlines\"\nLEVEL = file # not from the document\n"


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def kept(assay, sweep, path):
    """A file of the sweep's only trial, which has completed."""
    state = assay.wait_ended(sweep)
    trial, = assay.trials(sweep)
    assert trial["state"] == "completed", (state, trial, assay.cli("logs", f"{sweep}/0", check=False).stdout)
    files = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0/artifacts")["items"]
    digest, = [f["sha256"] for f in files if f["path"] == path]
    return assay.call("GET", f"/v1/blobs/{digest}")


def given(assay, sweep):
    return json.loads(kept(assay, sweep, "given.json"))


def reason(assay, sweep):
    assay.wait_ended(sweep)
    trial, = assay.trials(sweep)
    assert trial["state"] == "failed", trial
    return assay.call("GET", f"/v1/sweeps/{sweep}/trials/0")["attempts"][-1]["reason"]


def run(assay, folder, shell, *args, **trial):
    """`assay run` in a folder with an environment; the sweep's id and what it said."""
    path = os.path.join(folder, "sweep.json")
    write(path, json.dumps({**DOCUMENT, "trial": {"command": ["python", "program.py"], **trial}}))
    own, assay.env = assay.env, {**assay.env, **shell}
    try:
        done = assay.cli("run", path, *args, cwd=folder)
    finally:
        assay.env = own
    return done.stdout.strip(), done.stderr


def of_the_shell(assay, folder, venv):
    active = {"PATH": f"{venv}/bin:/usr/bin:/bin", "VIRTUAL_ENV": venv, "SECRET": "never sent"}
    sweep, said = run(assay, folder, active)
    assert venv in said, said
    seen = given(assay, sweep)
    assert seen["prefix"] == venv and seen["VIRTUAL_ENV"] == venv and seen["PATH"] == active["PATH"], seen
    assert seen["SECRET"] is None, seen
    document = assay.sweep(sweep)["document"]
    assert set(document["trial"]["environment"]["variables"]) <= {"PATH", "VIRTUAL_ENV", "CONDA_PREFIX"}, document
    assert venv in assay.cli("show", sweep).stdout
    assert "never sent" not in json.dumps(document)


def of_the_runner(assay, folder, venv):
    """--no-env, and a document that comes from another machine."""
    active = {"PATH": f"{venv}/bin:/usr/bin:/bin", "VIRTUAL_ENV": venv}
    sweep, said = run(assay, folder, active, "--no-env", command=[sys.executable, "program.py"])
    assert venv not in said and "environment" not in assay.sweep(sweep)["document"]["trial"], said
    assert given(assay, sweep)["prefix"] != venv
    other = {"host": "0" * 32, "variables": {"PATH": "/nowhere", "VIRTUAL_ENV": venv}}
    sweep, _ = run(assay, folder, active, command=[sys.executable, "program.py"], environment=other)
    seen = given(assay, sweep)
    assert seen["prefix"] != venv and seen["PATH"] != "/nowhere" and seen["VIRTUAL_ENV"] != venv, seen
    assert "comes from another machine" in assay.cli("logs", f"{sweep}/0").stdout


def of_fields(assay, folder, venv):
    write(os.path.join(folder, ".env"), ENV_FILE)
    sweep, _ = run(assay, folder, {}, "--no-env", venv=venv, env_file=".env", env={"LEVEL": "document ${x}"})
    seen = given(assay, sweep)
    assert seen["prefix"] == venv and seen["VIRTUAL_ENV"] == venv and seen["PATH"].startswith(f"{venv}/bin:"), seen
    assert seen["TOKEN"] == "s3cret #1" and seen["GREETING"] == "two\nlines", seen
    assert seen["LEVEL"].startswith("document "), seen
    assert "s3cret" not in json.dumps(assay.sweep(sweep))
    relative, _ = run(assay, folder, {}, "--no-env", venv="own-venv")
    assert given(assay, relative)["prefix"] == os.path.join(folder, "own-venv")


def failures(assay, folder, venv):
    write(os.path.join(folder, "bad.env"), "A=1\n\nTOKEN: s3cret\n")
    write(os.path.join(folder, "ours.env"), "ASSAY_TOKEN=s3cret\n")
    for trial, parts in (({"venv": "/nowhere"}, ["trial.venv", "/nowhere/bin/python"]),
                         ({"env_file": "missing.env"}, ["trial.env_file", "missing.env"]),
                         ({"env_file": "."}, ["trial.env_file"]),
                         ({"env_file": "bad.env"}, ["trial.env_file", "bad.env", "line 3"]),
                         ({"env_file": "ours.env"}, ["trial.env_file", "line 1", "ASSAY_"])):
        sweep, _ = run(assay, folder, {}, "--no-env", **trial)
        why = reason(assay, sweep)
        assert all(p in why for p in parts) and "s3cret" not in why, (trial, why)
    for trial, pointer in (({"environment": {"host": "0" * 32, "variables": {"AWS_KEY": "x"}}},
                            "/trial/environment/variables/AWS_KEY"),
                           ({"environment": {"host": "here", "variables": {}}}, "/trial/environment/host"),
                           ({"venv": ""}, "/trial/venv"), ({"env_file": "${y}"}, "/trial/env_file"),
                           ({"modules": ["a; rm -rf /"]}, "/trial/modules/0"), ({"modules": []}, "/trial/modules"),
                           ({"container": "--privileged"}, "/trial/container"), ({"container": 7}, "/trial/container"),
                           ({"container": {"image": "i", "engine": "docker"}}, "/trial/container/engine"),
                           ({"container": {"image": "i", "options": ["x"]}}, "/trial/container/options/0"),
                           ({"container": "i", "venv": "/v"}, "/trial/venv")):
        try:
            assay.call("POST", "/v1/sweeps", {**DOCUMENT, "trial": {"command": ["true"], **trial}})
        except Problem as e:
            assert e.status == 400 and e.body["errors"][0]["pointer"] == pointer, (trial, e.body)
        else:
            raise AssertionError(trial)


def main():
    with Assay(runners=1) as assay:
        folder = assay.program(PROGRAM)
        venv = os.path.join(folder, "own-venv")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        run_cases((of_the_shell, of_the_runner, of_fields, failures), assay, folder, venv)


if __name__ == "__main__":
    main()
