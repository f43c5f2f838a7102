#!/usr/bin/env python3
"""What stands around a trial: the token of its attempt is all that its program can show to the API; it has no
privileges to gain, a folder of its own for temporary files, and nothing that it starts outlives it where the host allows
control groups. Real processes of a runner, alone and as ranks of a gang."""
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
# Leaves a process behind that nothing connects with the trial, and says what stands around itself.
LEAVES = """
import json, os, subprocess, tempfile
left = subprocess.run(["setsid", "-f", "env", "-i", "sh", "-c", 'echo $$ >"$0"; exec sleep 600',
                       os.path.join(os.environ["ASSAY_ARTIFACTS"], "left")])
while not os.path.exists(os.path.join(os.environ["ASSAY_ARTIFACTS"], "left")):
    pass
kept = tempfile.mkdtemp()
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
json.dump({"tmp": kept, "folder": os.environ["TMPDIR"], "mode": os.stat(os.environ["TMPDIR"]).st_mode & 0o7777,
           "new": status["NoNewPrivs"].strip(), "caps": status["CapEff"].strip()},
          open(os.path.join(os.environ["ASSAY_ARTIFACTS"], "seen.json"), "w"))
open(os.environ["ASSAY_REPORT"], "a").write('{"loss": 1}\\n')
"""
DOCUMENT = {"metric": {"name": "loss", "goal": "minimize"}, "parameters": {"x": {"type": "int", "min": 1, "max": 9}},
            "limits": {"max_trials": 1, "max_restarts": 0}}


def artifact(assay, sweep, name):
    files = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0/artifacts")["items"]
    digest, = [f["sha256"] for f in files if f["path"] == name]
    return json.loads(assay.call("GET", f"/v1/blobs/{digest}"))


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


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


def walls_of_a_trial(assay, program):
    sweep, _ = run(assay, "walls", program)
    seen, left = artifact(assay, sweep, "seen.json"), artifact(assay, sweep, "left")
    walls = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0")["attempts"][0]["walls"]
    runner, = assay.call("GET", "/v1/runners")["items"]
    assert runner["walls"] == walls and {"no_new_privileges", "private_tmp"} <= set(walls), (runner, walls)
    assert seen["new"] == "1" and int(seen["caps"], 16) == 0, seen
    assert seen["mode"] == 0o700 and seen["tmp"].startswith(seen["folder"] + "/"), seen
    assert not os.path.exists(seen["folder"]), seen  # it went with the attempt
    shown = assay.cli("trial", f"{sweep}/0").stdout
    assert "no new privileges" in shown, shown
    if "cgroup" in walls:
        assert not is_running(left), left
    else:
        os.kill(left, 9)
        print("this host allows no control group")


def walls_of_ranks(assay, program):
    sweep, _ = run(assay, "walled-ranks", program, resources={"ranks": 2})
    walls = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0")["attempts"][0]["walls"]
    assert "no_new_privileges" in walls, walls
    if "cgroup" not in walls:
        os.kill(artifact(assay, sweep, "left"), 9)


def main():
    for name in ("TMPDIR", "ASSAY_RUNNER_WORK"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory(prefix="assay-walls-") as folder, Assay(runners=1, slots=2) as assay:
        asks, leaves = os.path.join(folder, "asks.py"), os.path.join(folder, "leaves.py")
        for path, text in ((asks, ASKS), (leaves, LEAVES)):
            with open(path, "w") as f:
                f.write(text)
        token_of_an_attempt(assay, asks)
        token_of_a_rank(assay, asks)
        walls_of_a_trial(assay, leaves)
        walls_of_ranks(assay, leaves)
    print("ok")


if __name__ == "__main__":
    main()
