#!/usr/bin/env python3
"""Early stopping with the real programs: programs that are pruned, and paused and resumed; one that does not obey;
members of groups and gangs that end early, and those that go on with the bits that they have without it; a checkpoint
that is lost; and trials in a shell. What is decided is tested in tests/search and tests/scheduler: here, that it
happens."""
import glob
import json
import os
import sys
import tempfile
import urllib.request

from harness import PATIENCE_S, SOURCE, Assay

STEPS = 9
PROGRAM = r'''
import json, os, signal, sys
with open(os.environ["ASSAY_PARAMS"]) as f:
    x = json.load(f)["x"]
state = os.path.join(os.environ["ASSAY_CHECKPOINTS"], "state")
step = 0
if os.path.exists(state):
    with open(state) as f:
        step = int(f.read().split()[0])
print("begins after", step, flush=True)


def stop(*_):
    with open(state + ".tmp", "w") as f:
        f.write(f"{step} of {x}")
    os.rename(state + ".tmp", state)
    sys.exit(0)


signal.signal(signal.SIGTERM, signal.SIG_IGN if sys.argv[1] == "deaf" and x > 0.1 else stop)
while x > 0 and "GATE" in os.environ and not os.path.exists(os.environ["GATE"]):
    signal.sigtimedwait([signal.SIGUSR1], 0.05)
while step < 9:
    step += 1
    with open(os.environ["ASSAY_REPORT"], "a") as f:
        f.write(json.dumps({"step": step, "loss": x + 1 / step}) + "\n")
    if step in (1, 3):  # the server decides here; a trial that goes on gets no signal
        signal.sigtimedwait([signal.SIGUSR1], float(os.environ["WAIT"]))
'''
# How long a trial waits at a rung. A decision that comes later finds it at its end: then the sweep is run again.
WAITS = (1.5, 6, 24)


def document(name, mode, how="obeys", wait=WAITS[0], **more):
    path = os.path.join(more.pop("folder"), "trial.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    os.chmod(path, 0o644)
    return {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "ensemble": False,
            "parameters": {"x": {"type": "categorical", "values": [0.0, 0.2, 0.4, 0.6, 0.8]}},
            "search": {"method": "grid"}, "limits": {"grace": "30s", **more.pop("limits", {})},
            "trial": {"command": [sys.executable, "-S", "-E", path, how], "env": {"WAIT": str(wait)}, **({"checkpoints": True} if mode == "pause" else {})},
            "early_stopping": {"method": "asha", "min_steps": 1, "max_steps": STEPS, "eta": 3, "mode": mode}, **more}


def details(assay, sweep):
    return [assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}") for t in assay.trials(sweep)]


def log_of(assay, trial):
    return assay.call("GET", f"/v1/sweeps/{trial['sweep']}/trials/{trial['number']}/log")["text"]


def outcomes(trial):
    return [a["outcome"] for a in trial["attempts"]]


def in_time(assay, name, *of, came, **more):
    """The trials of the sweep, the first in which came(trials): all decisions came while the trials waited for them."""
    for wait in WAITS:
        sweep = f"{name}-{wait:g}".replace(".", "-")
        assay.call("POST", "/v1/sweeps", document(sweep, *of, wait=wait, folder=assay.data, **more))
        s = assay.wait_ended(sweep)
        found = details(assay, sweep)
        if came(found):
            return s, found
        print(f"{sweep}: too late", flush=True)
    raise AssertionError(found)


def pruned(assay):
    """The first trial has nobody to be compared with; those behind it end at the first rung. One runs at a time: of
    trials that run together a worse one may report first, and goes on."""
    def came(trials):
        return all(t["step"] < STEPS for t in trials if t["state"] == "pruned")
    s, found = in_time(assay, "pruned", "stop", came=came, limits={"max_concurrent_trials": 1})
    assert s["counts"]["pruned"] >= 3, s
    for t in found:
        assert t["restarts"] == 0 and len(t["attempts"]) == 1, t
        if t["state"] == "pruned":
            assert outcomes(t) == ["pruned"] and t["attempts"][0]["exit_code"] == 0, t
            assert f"early stopping ends the trial: {t['attempts'][0]['reason']}" in log_of(assay, t), t
            assert t["step"] < STEPS, t
        else:
            assert t["state"] == "completed" and t["step"] == STEPS, t


def does_not_obey(assay):
    def came(trials):
        return any(t["state"] == "pruned" and t["attempts"][0]["exit_code"] == -9 for t in trials)
    _, found = in_time(assay, "deaf", "stop", "deaf", came=came, limits={"grace": "200ms"})
    for t in (t for t in found if t["state"] == "pruned"):  # it went on to its end before, or was killed
        if t["attempts"][0]["exit_code"] == -9:
            assert "the trial did not obey: it went on for 0.2 s" in log_of(assay, t), log_of(assay, t)


def paused(assay):
    """Each trial that goes on does so from its checkpoint. At the end none waits."""
    def came(trials):
        return not any("begins after 0" in log_of(assay, t) for t in trials if len(t["attempts"]) > 1)
    s, found = in_time(assay, "paused", "pause", came=came)
    assert s["state"] == "completed" and s["counts"]["paused"] == 0 and s["counts"]["completed"] >= 1, s
    resumed = 0
    for t in found:
        assert t["restarts"] == 0, t
        assert set(outcomes(t)[:-1]) <= {"paused"}, t
        if t["state"] == "pruned":
            assert outcomes(t)[-1] == "paused" and t["reason"], t
        resumed += len(t["attempts"]) > 1
    assert resumed > 0


def reasons(assay, sweep):
    """Those of its events so far, up to the end of the sweep."""
    found = []
    request = urllib.request.Request(f"{assay.url}/v1/sweeps/{sweep}/events?after=0",
                                     headers={"Authorization": f"Bearer {assay.token}"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as stream:
        for line in stream:
            if line.startswith(b"data:"):
                event = json.loads(line[5:])
                found.append(event.get("reason") or "")
                if event["type"] == "sweep.changed" and event["state"] == "completed":
                    return found
    raise AssertionError(found)


def loses_checkpoint(assay):
    """While a trial waits, its checkpoint is lost: on the server, and what the runners keep. It begins again when it is
    promoted, and an event says so."""
    go = os.path.join(assay.data, "go")
    doc = document("loses", "pause", wait=8, folder=assay.data)
    doc["parameters"]["x"]["values"] = [0.0, 0.5, 0.75]
    doc["trial"]["env"]["GATE"] = go  # for all but the best
    assay.call("POST", "/v1/sweeps", doc)
    assay.wait(lambda: [t for t in assay.trials("loses") if t["state"] == "paused"], "a paused trial")
    gone = 0
    places = [assay.data, assay.env["ASSAY_BLOB_STORE"]]
    for path in (p for place in places for p in glob.glob(os.path.join(place, "**", "*"), recursive=True)):
        name = os.path.basename(path)
        if os.path.isfile(path) and len(name) == 64 and set(name) <= set("0123456789abcdef"):
            os.unlink(path)
            gone += 1
    assert gone > 0
    with open(go, "w", encoding="utf-8"):
        pass
    s = assay.wait_ended("loses")
    assert s["state"] == "completed" and s["counts"]["failed"] == 0, s
    best = next(t for t in details(assay, "loses") if t["params"]["x"] == 0)
    assert best["state"] == "completed" and best["restarts"] == 0 and len(best["attempts"]) > 1, best
    assert any("checkpoint state: " in why for why in reasons(assay, "loses")), reasons(assay, "loses")


def bits(assay, sweep):
    """The files and values of completed trials, by their numbers."""
    found = {}
    for t in assay.trials(sweep):
        if t["state"] == "completed":
            files = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}/artifacts")["items"]
            found[t["number"]] = (t["params"], t["metrics"], {f["path"]: f["sha256"] for f in files})
    return found


def training(name, stops, ranks=0):
    """The best rates first: who reports first pauses, and is promoted when the others were worse."""
    doc = {"name": name, "metric": {"name": "val_loss", "goal": "minimize"}, "ensemble": False,
           "parameters": {"lr": {"type": "categorical", "values": [3e-2, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]}},
           "search": {"method": "grid", "seed": 11},
           "trial": {"train": {"dataset": "digits", "model": {"kind": "mlp", "layers": [32]}, "epochs": 27,
                               "optimizer": {"kind": "adamw", "lr": "${lr}"}, "batch_size": 128, "micro_batch": 16,
                               "validation": {"fraction": 0.3}}}}
    if stops:
        doc["early_stopping"] = {"method": "asha", "min_steps": 1, "max_steps": 27, "eta": 3}
    doc["resources"] = {"ranks": ranks} if ranks else {"group": 4}
    return doc


def trained(assay, name, ranks=0):
    """The built-in trainer pauses. What completes has the bits that it has without early stopping."""
    assay.call("POST", "/v1/sweeps", training(name, True, ranks))
    s = assay.wait_ended(name)
    assert s["state"] == "completed" and s["counts"]["failed"] == s["counts"]["cancelled"] == 0, s
    assert s["counts"]["pruned"] > 0 and s["counts"]["completed"] > 0, s
    found = details(assay, name)
    assert any(len(t["attempts"]) > 1 for t in found), found
    assert all(t["restarts"] == 0 for t in found), found
    whole = f"{name}-whole"
    assay.call("POST", "/v1/sweeps", training(whole, False, ranks))
    assay.wait_ended(whole)
    mine, theirs = bits(assay, name), bits(assay, whole)
    assert mine and all(theirs[key] == value for key, value in mine.items()), (mine, theirs)
    return found


def in_a_shell(assay):
    """assay report says what to do, and assay tell that it was done."""
    doc = document("shell", "stop", folder=assay.data)
    del doc["trial"]
    assay.call("POST", "/v1/sweeps", doc)
    said = []
    for i in range(3):
        number = str(json.loads(assay.cli("ask", "shell", "--json", "--client", "me").stdout)["items"][0]["number"])
        word = assay.cli("report", "shell", number, "--step", "1", f"loss={i}", "--client", "me").stdout.strip()
        said.append(word)
        end = ["--pruned"] if word else [f"loss={i}"]
        assay.cli("tell", "shell", number, *end, "--client", "me")
    assert said == ["", "prune", "prune"], said
    assert [t["state"] for t in assay.trials("shell")][:3] == ["completed", "pruned", "pruned"]
    number = str(json.loads(assay.cli("ask", "shell", "--json", "--client", "me").stdout)["items"][0]["number"])
    refused = assay.cli("tell", "shell", number, "--paused", "--client", "me", check=False)
    assert refused.returncode != 0 and "paused" in refused.stderr, refused


def main():
    with tempfile.TemporaryDirectory(prefix="assay-e2e-", dir="/var/tmp") as store, \
            Assay(runners=2, slots=2, env={"ASSAY_BLOB_STORE": store}) as assay:
        for part in (pruned, does_not_obey, paused, loses_checkpoint, in_a_shell):
            part(assay)
            print(part.__name__, flush=True)
        assay.cli("data", "add", "digits", os.path.join(SOURCE, "examples", "digits.csv"), "--target", "class")
        groups = {t["group"] for t in trained(assay, "members")}
        assert groups != {None}, groups
        print("members", flush=True)
        trained(assay, "gang", 2)
        print("gang", flush=True)


main()
