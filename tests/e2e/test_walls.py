#!/usr/bin/env python3
"""What stands around a trial: the token of its attempt is all that its program can show to the API. Real processes of
a runner, alone and as ranks of a gang."""
import json
import os
import tempfile

from harness import Assay, Problem

# Asks the API with what it finds in its environment, and keeps the answers.
ASKS = """
import json, os, urllib.error, urllib.request
server, token = os.environ["ASSAY_SERVER"], os.environ["ASSAY_TOKEN"]
sweep, trial, attempt = os.environ["ASSAY_SWEEP"], os.environ["ASSAY_TRIAL"].split("/")[1], os.environ["ASSAY_ATTEMPT"]
own = f"/v1/sweeps/{sweep}/trials/{trial}"

def ask(path, body=None):
    request = urllib.request.Request(server + path, data=body and json.dumps(body).encode(), headers={
        "Authorization": "Bearer " + token, "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)

point = {"items": [{"step": 1, "metrics": {"loss": 0.5}}]}
open(os.environ["ASSAY_REPORT"], "a").write('{"step": 0, "loss": 1}\\n')
seen = {"token": token, "sweep": ask(f"/v1/sweeps/{sweep}"), "trial": ask(own), "list": ask("/v1/sweeps"),
        "report": ask(f"{own}/attempts/{attempt}/measurements", point), "points": ask(f"{own}/measurements"),
        "names": sorted(n for n in os.environ if n.startswith("ASSAY_"))}
json.dump(seen, open(os.path.join(os.environ["ASSAY_ARTIFACTS"], "seen.json"), "w"))
"""
DOCUMENT = {"metric": {"name": "loss", "goal": "minimize"}, "parameters": {"x": {"type": "int", "min": 1, "max": 9}},
            "limits": {"max_trials": 1, "max_restarts": 0}}


def artifact(assay, sweep, name):
    files = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0/artifacts")["items"]
    digest, = [f["sha256"] for f in files if f["path"] == name]
    return json.loads(assay.call("GET", f"/v1/blobs/{digest}"))


def run(assay, name, program, **more):
    document = {**DOCUMENT, "name": name, "trial": {"command": ["python3", program]}, **more}
    sweep = assay.call("POST", "/v1/sweeps", document)["id"]
    state = assay.wait_ended(sweep)
    trial, = assay.trials(sweep)
    assert trial["state"] == "completed", (state, trial, assay.cli("logs", f"{sweep}/0", check=False).stdout)
    return sweep, trial


def status_with(assay, token, path):
    try:
        assay.call("GET", path, token=token)
    except Problem as e:
        return e.status
    return 200


def token_of_an_attempt(assay, program):
    sweep, trial = run(assay, "token", program)
    seen = artifact(assay, sweep, "seen.json")
    assert seen["token"].startswith("assay_trial_"), seen
    assert seen["sweep"][0] == 200 and seen["sweep"][1]["id"] == sweep, seen["sweep"]
    assert seen["trial"][0] == 200 and seen["trial"][1]["state"] == "running", seen["trial"]
    assert seen["list"][0] == 403, seen["list"]
    assert seen["report"] == [200, {"recorded": 1, "directives": []}], seen["report"]
    assert seen["points"][0] == 200, seen["points"]
    assert trial["value"] == 0.5, trial  # the point that it sent itself is the latest
    assert "ASSAY_TOKEN_FILE" not in seen["names"], seen["names"]
    assert status_with(assay, seen["token"], f"/v1/sweeps/{sweep}") == 401  # the attempt has ended


def token_of_a_rank(assay, program):
    sweep, _ = run(assay, "ranks", program, resources={"ranks": 2})
    seen = artifact(assay, sweep, "seen.json")
    assert seen["sweep"][0] == 200 and seen["list"][0] == 403, seen
    assert seen["report"][0] == 422 and "rank 0" in seen["report"][1]["detail"], seen["report"]


def main():
    with tempfile.TemporaryDirectory(prefix="assay-walls-") as folder, Assay(runners=1, slots=2) as assay:
        program = os.path.join(folder, "asks.py")
        with open(program, "w") as f:
            f.write(ASKS)
        token_of_an_attempt(assay, program)
        token_of_a_rank(assay, program)
    print("ok")


if __name__ == "__main__":
    main()
