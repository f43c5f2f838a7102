#!/usr/bin/env python3
"""Early stopping of trials that share a process, with the real programs: members of a group reach a rung together; one is
paused or pruned and the others go on; those that are promoted together resume together, in a group. What completes has
the weights and the values of the same trial alone that never stopped, bit for bit."""
import json
import sys

from harness import Assay

MEMBERS, TRIALS, RUNGS = 4, 16, [3, 9, 27]


def document(name, group, mode=None):
    doc = {"name": name, "metric": {"name": "val_loss", "goal": "minimize"}, "ensemble": False,
           "parameters": {"lr": {"type": "float", "min": 0.001, "max": 1, "scale": "log"}},
           "search": {"method": "random", "seed": 23}, "limits": {"max_trials": TRIALS},
           "resources": {"group": group},
           "trial": {"train": {
               "dataset": "digits", "model": {"kind": "mlp", "layers": [24, 16], "dropout": 0.1},
               "optimizer": {"kind": "sgd", "lr": "${lr}"}, "epochs": 27, "batch_size": 64,
               "validation": {"fraction": 0.3}}}}
    if mode:
        doc["early_stopping"] = {"method": "asha", "min_steps": 3, "max_steps": 27, "eta": 3, "mode": mode}
    return doc


def end_of(assay, doc):
    sweep = assay.call("POST", "/v1/sweeps", doc)["id"]
    s = assay.wait_ended(sweep)
    assert s["state"] == "completed", s
    return sweep, assay.trials(sweep)


def result(assay, t):
    """What must be equal to the same trial alone."""
    path = f"/v1/sweeps/{t['sweep']}/trials/{t['number']}"
    digests = {f["path"]: f["sha256"] for f in assay.call("GET", path + "/artifacts")["items"]}
    return t["params"], t["value"], digests.get("model.safetensors")


def attempts_of(assay, trials):
    return [dict(a, number=t["number"]) for t in trials
            for a in assay.call("GET", f"/v1/sweeps/{t['sweep']}/trials/{t['number']}")["attempts"]]


def by_group(attempts):
    found = {}
    for a in attempts:
        if a["group"]:
            found.setdefault(a["group"], []).append(a)
    return found


def check_decisions(assay, sweep, trials):
    """One order without holes, ranks that follow it, and a replay that decides the same."""
    results = sorted((r["seq"], r["rung"], r["value"], r["rank"], r["of"], r["promoted_seq"]) for t in trials for r in t["rungs"])
    at = {}
    for _, rung, value, rank, of, _ in results:
        before = at.setdefault(rung, [])
        assert of == len(before) + 1 and rank == 1 + sum(v < value for v in before), (rung, value, rank, of, before)
        before.append(value)
    places = [r[0] for r in results] + [r[5] for r in results if r[5]] + [t["finish_seq"] for t in trials]
    assert sorted(places) == list(range(1, len(places) + 1)), places
    assert len(at[0]) == TRIALS and all(r["step"] == RUNGS[r["rung"]] for t in trials for r in t["rungs"]), at
    said = json.loads(assay.cli("replay", sweep, "--json").stdout)
    assert said["decisions"] == said["decisions_same"] > TRIALS, said


def check_mode(assay, mode, alone):
    """Whether two promoted members wait at the moment at which a group takes trials depends on who is faster: the sweep is
    repeated until they did."""
    for n in range(8):
        if check_sweep(assay, mode, alone, f"group-{mode}-{n}"):
            return
    raise AssertionError("no members of one group were resumed together")


def check_sweep(assay, mode, alone, name):
    """False: no members were resumed together, where they may be."""
    sweep, trials = end_of(assay, document(name, MEMBERS, mode))
    check_decisions(assay, sweep, trials)
    assert all(t["restarts"] == 0 and t["state"] in ("completed", "pruned") for t in trials), trials
    completed = [t for t in trials if t["state"] == "completed"]
    assert completed and len(completed) < TRIALS, len(completed)
    for t in completed:
        assert result(assay, t) == alone[t["number"]], (result(assay, t), alone[t["number"]])
    attempts = attempts_of(assay, trials)
    groups = by_group(attempts)
    behind = "paused" if mode == "pause" else "pruned"
    assert {a["outcome"] for a in attempts} == {behind, "completed"}, attempts
    assert max(len(members) for members in groups.values()) >= MEMBERS, groups  # more, where places are filled again
    # one left and another went on, in one process: further than the rung where the first was left behind
    reached = {(t["number"], r["rung"]) for t in trials for r in t["rungs"]}
    assert any(a["outcome"] == behind and (a["number"], 1) not in reached and
               any(b["attempt"] == 1 and (b["number"], 1) in reached for b in members)
               for members in groups.values() for a in members), groups
    print(f"{name}: {len(completed)} completed, {len(groups)} groups, {sum(a['attempt'] > 1 for a in attempts)} resumed", flush=True)
    return mode != "pause" or any(sum(a["attempt"] > 1 for a in members) > 1 for members in groups.values())


def main():
    with Assay(runners=1, slots=1) as assay:
        assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")
        _, trials = end_of(assay, document("alone", 1))
        alone = {t["number"]: result(assay, t) for t in trials}
        assert all(digest for _, _, digest in alone.values()), alone
        for mode in ("pause", "stop"):
            if sys.argv[1:] in ([], [mode]):
                check_mode(assay, mode, alone)


main()
