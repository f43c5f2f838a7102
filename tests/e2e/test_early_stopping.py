#!/usr/bin/env python3
"""Early stopping with the real programs: a command that goes on from its checkpoint, the built-in trainer, and a client
that asks and tells. Trials wait at rungs, are promoted and resumed, or end; a sweep ends with what waits; every decision
can be made again from what is stored."""
import json
import os
import sys
import tempfile
import time

from harness import Assay

RUNGS = [1, 3, 9]
# Reports nine steps, and goes on after the one in its checkpoint.
PROGRAM = """
at=0
[ -s "$ASSAY_CHECKPOINTS/at" ] && at=$(cat "$ASSAY_CHECKPOINTS/at")
[ "$at" -gt 0 ] && echo "goes on after $at"
while [ "$at" -lt 9 ]; do
    at=$((at + 1))
    echo "$at" > "$ASSAY_CHECKPOINTS/at.new" && mv "$ASSAY_CHECKPOINTS/at.new" "$ASSAY_CHECKPOINTS/at"
    echo "{\\"step\\": $at, \\"loss\\": $0}" >> "$ASSAY_REPORT"
    sleep 0.3
done
"""


def command(name, trials, mode):
    """A sweep whose trials begin with the best value: who reports first pauses, and is promoted when others were worse."""
    return {
        "name": name, "metric": {"name": "loss", "goal": "minimize"},
        "parameters": {"x": {"type": "float", "min": 0, "max": 1, "points": trials}}, "search": {"method": "grid"},
        "limits": {"max_trials": trials}, "ensemble": False,
        "trial": {"command": ["sh", "-c", PROGRAM, "${x}"], "checkpoints": mode == "pause"},
        "early_stopping": {"method": "asha", "min_steps": 1, "max_steps": 9, "eta": 3, "mode": mode}}


def trained(name, trials):
    return {
        "name": name, "metric": {"name": "val_error", "goal": "minimize"},
        "parameters": {"lr": {"type": "ordinal", "values": [0.5 / 3 ** k for k in range(trials)]}},
        "search": {"method": "grid"}, "limits": {"max_trials": trials}, "ensemble": False,
        "trial": {"train": {
            "dataset": "digits", "model": {"kind": "mlp", "layers": [16]},
            "optimizer": {"kind": "sgd", "lr": "${lr}"}, "epochs": 9, "batch_size": 64,
            "validation": {"fraction": 0.3}}},
        "early_stopping": {"method": "asha", "min_steps": 1, "max_steps": 9, "eta": 3}}


def results(trials):
    """All rung results of a sweep in their order."""
    return sorted((dict(r, number=t["number"]) for t in trials for r in t["rungs"] or []), key=lambda r: r["seq"])


def check_order(sweep, trials):
    """Ends, rung results and promotions have one order, without holes."""
    found = [r[k] for r in results(trials) for k in ("seq", "promoted_seq") if r[k]]
    found += [t["finish_seq"] for t in trials if t["finish_seq"]]
    assert sorted(found) == list(range(1, len(found) + 1)), found


def check_ranks(trials):
    """Each rank is that among the results of its rung that were stored before."""
    at = {}
    for r in results(trials):
        before = at.setdefault(r["rung"], [])
        assert r["of"] == len(before) + 1, r
        assert r["rank"] == 1 + sum(v < r["value"] for v in before), (r, before)
        before.append(r["value"])


def check_ended(assay, name, trials):
    s = assay.wait_ended(name)
    rows = assay.trials(name)
    assert s["state"] == "completed", s
    assert len(rows) == trials and all(t["state"] in ("completed", "pruned") for t in rows), s["counts"]
    assert s["counts"]["completed"] >= 1 and s["counts"]["pruned"] >= 1, s["counts"]
    check_order(s, rows)
    check_ranks(rows)
    for t in rows:
        assert t["restarts"] == 0, t
        rungs = t["rungs"] or []
        assert [r["rung"] for r in rungs] == list(range(len(rungs))), t
        assert all(r["step"] == RUNGS[r["rung"]] for r in rungs), t
        if t["state"] == "completed":
            assert len(rungs) == len(RUNGS) and rungs[-1]["decision"] == "go_on", t
        else:
            assert rungs[-1]["decision"] in ("pause", "prune") and t["reason"], t
    return s, rows


def test_command_pauses(assay):
    name = assay.call("POST", "/v1/sweeps", command("pauses", 7, "pause"))["id"]
    s, rows = check_ended(assay, name, 7)
    resumed = [t for t in rows if t["attempt"] > 1]
    assert resumed, "nobody was promoted after a pause"
    for t in resumed:
        detail = assay.call("GET", f"/v1/sweeps/{name}/trials/{t['number']}")
        outcomes = [a["outcome"] for a in detail["attempts"]]
        assert outcomes[:-1] == ["paused"] * (len(outcomes) - 1), detail["attempts"]
        text = assay.call("GET", f"/v1/sweeps/{name}/trials/{t['number']}/log")["text"]
        assert "goes on after" in text, text
    report = s["early_stopping"]
    assert [r["step"] for r in report["rungs"]] == RUNGS, report
    assert report["rungs"][0]["reached"] == 7, report
    assert sum(r["disobeyed"] for r in report["rungs"]) == 0 and report["rungs"][0]["obeyed"] >= 4, report
    assert report["steps_saved"] > 0 and report["steps_spent"] > 0 and report["warning"] is None, report


def test_command_stops(assay):
    name = assay.call("POST", "/v1/sweeps", command("stops", 6, "stop"))["id"]
    _, rows = check_ended(assay, name, 6)
    assert all(t["attempt"] == 1 for t in rows)


def test_trainer(assay):
    assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")
    name = assay.call("POST", "/v1/sweeps", trained("trained", 8))["id"]
    _, rows = check_ended(assay, name, 8)
    assert any(t["attempt"] > 1 and t["state"] == "completed" for t in rows), [t["attempt"] for t in rows]


def run_client(assay, name):
    while True:
        asked = assay.call("POST", f"/v1/sweeps/{name}/suggestions", {"client": "me", "wait_ms": 10000})
        if not asked["items"]:
            break
        trial = asked["items"][0]
        path, told = f"/v1/sweeps/{name}/suggestions/{trial['number']}", None
        for step in range(1, 10):
            said = assay.call("POST", f"{path}/measurements", {
                "client": "me", "items": [{"step": step, "metrics": {"loss": trial["params"]["x"]}}]})
            if said["directives"]:
                told = said["directives"][0]
                break
        if told:
            assert told["action"] == "prune" and told["number"] == trial["number"] and told["reason"], told
            row = assay.call("POST", f"{path}/complete", {"client": "me", "outcome": "pruned"})
            assert row["state"] == "pruned" and row["reason"] == told["reason"], row
        else:
            assay.call("POST", f"{path}/complete", {"client": "me"})


def test_client(assay):
    document = {k: v for k, v in command("asked", 6, "stop").items() if k != "trial"}
    name = assay.call("POST", "/v1/sweeps", document)["id"]
    run_client(assay, name)
    check_ended(assay, name, 6)


def report_as_client(assay, name, trial, step):
    """It is told to pause there, and does."""
    path = f"/v1/sweeps/{name}/suggestions/{trial['number']}"
    said = assay.call("POST", f"{path}/measurements", {
        "client": "me", "items": [{"step": step, "metrics": {"loss": trial["params"]["x"]}}]})
    assert [d["action"] for d in said["directives"]] == ["pause"], (trial, said)
    assay.call("POST", f"{path}/complete", {"client": "me", "outcome": "paused"})


def ask(assay, name, count=1):
    return assay.call("POST", f"/v1/sweeps/{name}/suggestions", {"client": "me", "count": count, "wait_ms": 0})["items"]


def fill_rungs(assay, name):
    """A sweep of a client whose trials wait at the first two rungs, and the best of them is queued for the last one."""
    document = {k: v for k, v in command(name, 9, "pause").items() if k != "trial"}
    assay.call("POST", "/v1/sweeps", document)
    first = ask(assay, name, 9)
    for trial in first:
        report_as_client(assay, name, trial, 1)
    promoted = ask(assay, name, 9)
    assert [t["number"] for t in promoted] == [0, 1, 2], promoted
    for trial in promoted:
        report_as_client(assay, name, trial, 3)
    check_on_rungs(assay, name, "queued", "paused")


def check_on_rungs(assay, name, best, others):
    rows = assay.trials(name)
    assert [t["state"] for t in rows] == [best] + 8 * [others], [t["state"] for t in rows]
    assert [len(t["rungs"]) for t in rows] == [2, 2, 2] + 6 * [1], rows
    check_order(assay.sweep(name), rows)
    said = json.loads(assay.cli("replay", name, "--json").stdout)
    assert said["decisions"] == said["decisions_same"] == 12 + 4, said
    return rows


def test_control(assay):
    """Paused, resumed, cancelled and out of steps with trials on all rungs."""
    fill_rungs(assay, "held")
    assay.call("PATCH", "/v1/sweeps/held", {"state": "paused"})
    assert ask(assay, "held") == []
    check_on_rungs(assay, "held", "queued", "paused")
    assay.call("PATCH", "/v1/sweeps/held", {"state": "running"})
    best = ask(assay, "held")[0]
    assert best["number"] == 0 and best["attempt"] == 3, best
    path = "/v1/sweeps/held/suggestions/0"
    assay.call("POST", f"{path}/measurements", {"client": "me", "items": [{"step": 9, "metrics": {"loss": 0}}]})
    assay.call("POST", f"{path}/complete", {"client": "me"})
    s, _ = check_ended(assay, "held", 9)
    assert s["early_stopping"]["steps_spent"] == 9 + 2 * 3 + 6, s["early_stopping"]
    fill_rungs(assay, "left")
    for state in ("paused", "cancelled"):
        assay.call("PATCH", "/v1/sweeps/left", {"state": state})
    assay.wait_ended("left")
    check_on_rungs(assay, "left", "cancelled", "cancelled")
    fill_rungs(assay, "spent")
    assay.call("PATCH", "/v1/sweeps/spent", {"limits": {"max_steps": 10}})
    s = assay.wait_ended("spent")
    rows = check_on_rungs(assay, "spent", "cancelled", "pruned")
    assert s["state"] == "failed" and all("max_steps are spent" in t["reason"] for t in rows), (s, rows)


def test_replay(assay):
    """The search learns from rung results, and the replay sees what each suggestion saw of them."""
    document = dict(command("learns", 14, "pause"), search={"method": "gp", "seed": 4})
    name = assay.call("POST", "/v1/sweeps", document)["id"]
    check_ended(assay, name, 14)
    said = assay.cli("replay", name).stdout
    assert said.startswith("14 of 14 suggestions are the same"), said
    rows = assay.trials(name)
    events = sum(1 + (r["promoted_seq"] is not None) for r in results(rows))
    assert f"\n{events} of {events} decisions of early stopping are the same" in said, (said, events)
    seen = [t["seen"] for t in rows]
    assert seen == sorted(seen) and seen[-1] > 14, seen


def replay_file(assay, path, tree):
    json.dump(tree, open(path, "w"))
    done = assay.cli("replay", "--file", path, "--json", check=False)
    return done.returncode, json.loads(done.stdout)


def check_replay(assay):
    """Eight slots report as they come; every decision and promotion is made again from the stored order alone, and one that
    was changed is found."""
    name = assay.call("POST", "/v1/sweeps", command("eight", 20, "pause"))["id"]
    _, rows = check_ended(assay, name, 20)
    assert sum(r["promoted_seq"] is not None for r in results(rows)) >= 2, rows
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "eight.json")
        assay.cli("export", name, "--json", "--output", path)
        tree = json.load(open(path))
        code, said = replay_file(assay, path, tree)
        assert code == 0 and said["decisions"] == said["decisions_same"] > 20 and not said["differences"], said
        first = min((r for t in tree["items"] for r in t["rungs"] if r["decision"] == "pause" and not r["promoted_seq"]),
                    key=lambda r: r["seq"])
        first["decision"] = "go_on"
        code, said = replay_file(assay, path, tree)
        assert code == 1 and said["differences"][0]["seq"] == first["seq"], said["differences"]
        assert "stored go_on, again pause" in said["differences"][0]["reason"], said["differences"]
        first["decision"] = "pause"
        promoted = next(r for t in tree["items"] for r in t["rungs"] if r["promoted_seq"])
        promoted["promoted_reason"] = "because"
        code, said = replay_file(assay, path, tree)
        found = [(d["event"], d["seq"]) for d in said["differences"]]
        assert code == 1 and found == [("promotion", promoted["promoted_seq"])], said["differences"]


def check_budget(assay):
    """Eight slots take the steps that all trials may have, and none more: a trial whose next rung is further than what is left
    ends at the one where it is. The trainer's trials are not told before they have taken more of their short steps."""
    budget = 61
    assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")
    documents = [command("spent-paused", 300, "pause"), command("spent-stopped", 300, "stop"), trained("spent-trained", 12)]
    for document in documents:
        document["limits"]["max_steps"] = budget
        name = assay.call("POST", "/v1/sweeps", document)["id"]
        s, rows = assay.wait_ended(name), assay.trials(name)
        cut = [t["reason"] for t in rows if t["state"] == "pruned" and t["rungs"][-1]["decision"] == "go_on"]
        assert all("max_steps leaves" in reason for reason in cut), cut
        spent = s["early_stopping"]["steps_spent"]
        assert spent == sum(t["step"] for t in rows if t["step"]), (spent, rows)
        assert s["reason"].startswith("max_steps are spent") or name == "spent-trained", s
        assert budget - RUNGS[-1] < spent <= budget or name == "spent-trained", (name, spent, rows)
        said = json.loads(assay.cli("replay", name, "--json").stdout)
        assert said["decisions"] == said["decisions_same"] > 10, said


def test_eight_slots(_):
    with Assay(runners=2, slots=4) as assay:
        check_replay(assay)
        check_budget(assay)


if __name__ == "__main__":
    with Assay(runners=2, slots=2) as assay:
        for test in [v for k, v in list(globals().items()) if k.startswith("test_") and sys.argv[1:] in ([], [k])]:
            began = time.monotonic()
            test(assay)
            print(f"{test.__name__}: {time.monotonic() - began:.1f} s")
