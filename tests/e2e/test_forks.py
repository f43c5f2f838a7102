#!/usr/bin/env python3
"""Population based training with the real programs: two runners, the built-in trainer and a command. A trial that is among
the last of its rung is replaced by a fork of one of the best, which goes on from that one's checkpoint with other
parameters; the tree is shown, every fork can be made again from what is stored, and faults change no decision."""
import glob
import json
import os
import re
import signal
import sys
import tempfile
import time

from harness import Assay
from rung_sweep import say

# Reports ten steps; the loss falls with the rate that a trial has at each of them, and the slower it falls, the later are
# the reports. It goes on after the step in its checkpoint, and says so.
PROGRAM = """
at=0 loss=100 pause=$(echo "$ASSAY_PARAM_rate" | awk '{print 0.1 + (9 - $1) / 30}')
[ -s "$ASSAY_CHECKPOINTS/state" ] && read at loss < "$ASSAY_CHECKPOINTS/state" && echo "goes on after $at"
while [ "$at" -lt 10 ]; do
    at=$((at + 1))
    loss=$(echo "$loss $ASSAY_PARAM_rate" | awk '{printf "%.9f", $1 - $2}')
    echo "$at $loss" > "$ASSAY_CHECKPOINTS/state.new" && mv "$ASSAY_CHECKPOINTS/state.new" "$ASSAY_CHECKPOINTS/state"
    echo "{\\"step\\": $at, \\"loss\\": $loss}" >> "$ASSAY_REPORT"
    sleep "$pause"
done
"""
# A program that is told to end waits for the test first, so that the fork that takes its place stays queued.
HOLD = """
trap 'touch "$FOLDER/told"; while [ ! -e "$FOLDER/go" ]; do sleep 0.05; done; exit 0' TERM
"""


def command(name, trials=30, population=6, **more):
    return {
        "name": name, "metric": {"name": "loss", "goal": "minimize"},
        "parameters": {"rate": {"type": "float", "min": 0.1, "max": 9}},
        "search": {"method": "random", "seed": 4}, "limits": {"max_trials": trials}, "ensemble": False,
        "trial": {"command": ["sh", "-c", PROGRAM], "checkpoints": True},
        "early_stopping": {"method": "pbt", "population": population, "period": 2, "max_steps": 10, "quantile": 0.34, **more}}


def trained(name):
    return {
        "name": name, "metric": {"name": "val_loss", "goal": "minimize"},
        "parameters": {"lr": {"type": "float", "min": 0.0003, "max": 0.3, "scale": "log"},
                       "width": {"type": "categorical", "values": [16, 24]}},
        "search": {"method": "random", "seed": 11}, "limits": {"max_trials": 40}, "ensemble": False,
        "trial": {"train": {
            "dataset": "digits", "model": {"kind": "mlp", "layers": ["${width}"]},
            "optimizer": {"kind": "sgd", "lr": "${lr}", "momentum": 0.9}, "epochs": 12, "batch_size": 64,
            "validation": {"fraction": 0.3}}},
        "early_stopping": {"method": "pbt", "population": 10, "period": 3, "quantile": 0.5, "resample": 0, "explore": ["lr"]}}


def measured(assay, name, number, metric):
    """{step: value} of a trial."""
    series = assay.call("GET", f"/v1/sweeps/{name}/trials/{number}/measurements?metric={metric}")["series"][metric]
    return dict(zip(series["steps"], series["values"]))


def check_forks(assay, name, population, period, last, explored):
    """What holds for every sweep with forks."""
    sweep = assay.wait_ended(name)
    rows = assay.trials(name)
    assert sweep["state"] == "completed", sweep
    forks = [t for t in rows if t["origin"] == "forked"]
    assert len(rows) - len(forks) == population, sweep["counts"]
    assert forks and sweep["counts"]["total"] == sweep["planned_trials"] == len(rows), sweep
    at = {}
    for t in rows:
        for r in t["rungs"] or []:
            assert r["step"] % period == 0 and r["step"] > (t["fork_step"] or 0), t
            at[r["step"]] = at.get(r["step"], 0) + 1
    assert set(at.values()) == {population} and max(at) == last, at
    replaced = {t["suggestion"]["replaces"]: t for t in forks}
    assert len(replaced) == len(forks) == sweep["counts"]["pruned"], rows
    for t in forks:
        parent, gone = rows[t["parent"]], rows[t["suggestion"]["replaces"]]
        assert t["number"] > parent["number"] and t["suggestion"] == {
            "method": "pbt", "parent": t["parent"], "replaces": gone["number"], "step": t["fork_step"]}, t
        decision = gone["rungs"][-1]
        assert gone["state"] == "pruned" and decision["decision"] == "prune" and decision["step"] == t["fork_step"], gone
        assert f"trial {t['number']} goes on from trial {t['parent']} in its place" in gone["reason"], gone["reason"]
        theirs = next(r for r in parent["rungs"] if r["step"] == t["fork_step"])
        assert theirs["seq"] < decision["seq"] and theirs["value"] < decision["value"], (theirs, decision)
        assert t["seed"] == parent["seed"], (t, parent)
        for p, v in t["params"].items():
            assert p in explored or v == parent["params"][p], (t, parent)
    return sweep, rows, forks


def check_steps(assay, name, rows, forks, metric, exact):
    """A fork measures nothing up to the step that it begins after, and everything from there on. exact: of a program that
    leaves a folder for each step; another one may be ahead when the runner takes its files (docs/trials.md)."""
    for t in forks:
        steps = measured(assay, name, t["number"], metric)
        first = t["fork_step"] + 1
        assert min(steps) == first or (min(steps) > first and not exact), (t["number"], t["fork_step"], steps)
        assert list(steps) == list(range(min(steps), max(steps) + 1)), (t["number"], t["fork_step"], steps)
    spent = sum(max(measured(assay, name, t["number"], metric)) - (t["fork_step"] or 0) for t in rows)
    report = assay.call("GET", f"/v1/sweeps/{name}")["early_stopping"]
    assert report["steps_spent"] <= spent and report["steps_saved"] == 0, (report, spent)


def check_replay(assay, name, forks):
    said = assay.cli("replay", name).stdout
    assert "decisions of early stopping are the same" in said and "differ" not in said, said
    assert f"; {len(forks)} trial{' was' if len(forks) == 1 else 's were'} forked" in said, said
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "forks.json")
        assay.cli("export", name, "--json", "--output", path)
        tree = json.load(open(path))
        parents = {t["parent"] for t in forks}
        fork = tree["items"][next(t["number"] for t in forks if t["number"] not in parents)]
        parameter = next(p for p, v in fork["params"].items() if isinstance(v, float))
        fork["params"][parameter] *= 0.9999
        json.dump(tree, open(path, "w"))
        done = assay.cli("replay", "--file", path, "--json", check=False)
        said = json.loads(done.stdout)
        decisions = [d for d in said["differences"] if d["event"] == "decision"]  # bounds follow from parameters too
        assert done.returncode == 1 and len(decisions) == 1, said
        assert "has other parameters" in decisions[0]["reason"], said


def check_shown(assay, name, rows, forks):
    """The tree in the terminal, and both ends of a fork."""
    said = assay.cli("show", name).stdout
    for t in forks[:3]:
        assert f"{t['number']} from step {t['fork_step']}" in said, said
    one = assay.cli("trial", f"{name}/{forks[0]['number']}").stdout
    assert f"goes on from trial {forks[0]['parent']} at step {forks[0]['fork_step']}" in one, one
    parent = assay.cli("trial", f"{name}/{forks[0]['parent']}").stdout
    assert "forks" in parent and f"{forks[0]['number']} from step {forks[0]['fork_step']}" in parent, parent


def test_trainer(assay):
    """The learning rate changes, the width does not; the first step of a fork is trained from its parent's weights."""
    assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")
    name = assay.call("POST", "/v1/sweeps", trained("trained"))["id"]
    _, rows, forks = check_forks(assay, name, 10, 3, 12, {"lr"})
    check_steps(assay, name, rows, forks, "val_loss", exact=True)
    for t in forks:
        first = rows[t["number"]]
        while first["parent"] is not None:
            first = rows[first["parent"]]
        own, fresh = measured(assay, name, t["number"], "val_loss"), measured(assay, name, first["number"], "val_loss")
        assert own[t["fork_step"] + 1] < fresh[1], (t, own, fresh)
        text = assay.call("GET", f"/v1/sweeps/{name}/trials/{t['number']}/log")["text"]
        assert f"resumed at epoch {t['fork_step']}" in text, text
    check_replay(assay, name, forks)
    check_shown(assay, name, rows, forks)


def test_command(assay):
    """A program goes on from its parent's checkpoint with the parameters of its own. The parent may have been ahead of
    its report when the runner took its files."""
    name = assay.call("POST", "/v1/sweeps", command("commands"))["id"]
    _, rows, forks = check_forks(assay, name, 6, 2, 10, {"rate"})
    check_steps(assay, name, rows, forks, "loss", exact=False)
    for t in forks:
        text = assay.call("GET", f"/v1/sweeps/{name}/trials/{t['number']}/log")["text"]
        at = int(re.search(r"goes on after (\d+)", text)[1])
        assert at >= t["fork_step"], (t, text)
        own, theirs = measured(assay, name, t["number"], "loss"), measured(assay, name, t["parent"], "loss")
        want = theirs.get(at, None)
        if want is not None:
            assert abs(own[at + 1] - (want - t["params"]["rate"])) < 1e-6, (t, own, theirs)
    check_replay(assay, name, forks)


def test_limits(assay):
    """Forks count as trials: where max_trials leaves none, a trial goes on in its place."""
    name = assay.call("POST", "/v1/sweeps", command("few", trials=7, quantile=0.5))["id"]
    sweep, rows, forks = check_forks(assay, name, 6, 2, 10, {"rate"})
    assert len(rows) == 7 and len(forks) == 1, sweep["counts"]
    full = [r for t in rows for r in t["rungs"] if "max_trials leaves none" in r["reason"]]
    assert full and all(r["decision"] == "go_on" for r in full), rows
    check_replay(assay, name, forks)


def test_killed_runner(assay):
    """A runner that is killed loses no fork and changes no decision."""
    name = assay.call("POST", "/v1/sweeps", command("killed"))["id"]
    assay.wait(lambda: any(t["origin"] == "forked" for t in assay.trials(name)), "a fork")
    os.kill(assay.processes("assay-runner")[0], signal.SIGKILL)
    _, rows, forks = check_forks(assay, name, 6, 2, 10, {"rate"})
    check_replay(assay, name, forks)


def lose(assay, fork):
    """What every trial left at the step of the fork is gone, at the server and where runners keep it."""
    store = assay.own_env["ASSAY_BLOB_STORE"]
    lost = [path for path in glob.glob(os.path.join(store, "??", "*"))
            if open(path, "rb").read().startswith(b"%d " % fork["fork_step"])]
    assert lost, store
    names = {os.path.basename(path) for path in lost}
    for folder, _, files in os.walk(assay.data):
        lost += [os.path.join(folder, f) for f in files if f in names]
    for path in lost:
        os.unlink(path)


def test_lost_checkpoint(assay):
    """A fork whose checkpoint is lost begins from nothing, with its own parameters, and says so. It stays a fork, changes
    no decision, and has no result at the rungs that its parent stands for."""
    folder = os.path.join(assay.data, "lost")
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    doc = command("lost", trials=12)
    doc["limits"].update(max_concurrent_trials=1, grace="10m")  # the fork waits for the slot of what it replaces
    doc["trial"].update(command=["sh", "-c", HOLD + PROGRAM], env={"FOLDER": folder})
    name = assay.call("POST", "/v1/sweeps", doc)["id"]
    assay.wait(lambda: os.path.exists(os.path.join(folder, "told")), "a trial to be replaced")
    fork = next(t for t in assay.trials(name) if t["origin"] == "forked")
    assert fork["state"] == "queued", fork
    lose(assay, fork)
    say(folder, "go")
    _, rows, forks = check_forks(assay, name, 6, 2, 10, {"rate"})
    path = f"/v1/sweeps/{name}/trials/{fork['number']}"
    text = assay.call("GET", f"{path}/log")["text"]
    assert "the trial begins again, because its checkpoint is lost" in text and "goes on after" not in text, text
    steps, rate = measured(assay, name, fork["number"], "loss"), rows[fork["number"]]["params"]["rate"]
    assert min(steps) == 1 and abs(steps[1] - (100 - rate)) < 1e-6, (steps, rate)
    assert rows[fork["number"]]["restarts"] == 0, rows[fork["number"]]
    check_replay(assay, name, forks)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as contents, Assay(runners=2, slots=3, env={"ASSAY_BLOB_STORE": contents}) as assay:
        for test in [v for k, v in list(globals().items()) if k.startswith("test_") and sys.argv[1:] in ([], [k])]:
            began = time.monotonic()
            test(assay)
            print(f"{test.__name__}: {time.monotonic() - began:.1f} s")
