#!/usr/bin/env python3
"""Groups with the real programs: trials of one shape in one process, one slot; one of them diverges and the others
do not notice; the trainer is killed and every trial is completed once all the same; and all numbers and files are
those of the same trials alone."""
import contextlib
import json
import os
import signal

from harness import Assay

MEMBERS = 5
TRIALS = 20
DIVERGES = 1e6
KILLED = ([0.01, 0.03, 0.1], ["sgd", "adamw"], TRIALS)
DIVERGING = ([0.03, DIVERGES], ["sgd"], 8)


def document(name, group, rates, optimizers, trials):
    return {
        "name": name,
        "metric": {"name": "val_error", "goal": "minimize"},
        "parameters": {
            "lr": {"type": "categorical", "values": rates},
            "optimizer": {"type": "categorical", "values": optimizers},
            "batch": {"type": "categorical", "values": [32, 64]},
            "width": {"type": "int", "min": 24, "max": 32},
        },
        "search": {"method": "random", "seed": 11},
        "limits": {"max_trials": trials, "max_restarts": 3},
        "resources": {"group": group},
        "ensemble": False,
        "trial": {"train": {
            "dataset": "digits", "model": {"kind": "mlp", "layers": ["${width}", 16], "dropout": 0.1},
            "optimizer": {"kind": "${optimizer}", "lr": "${lr}"},
            "epochs": 80, "batch_size": "${batch}", "micro_batch": 32, "validation": {"fraction": 0.3}}},
    }


def results(assay, sweep):
    """What must be equal, bit for bit, by the trial's number."""
    found = {}
    for t in assay.trials(sweep):
        files = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}/artifacts")["items"]
        digests = {f["path"]: f["sha256"] for f in files}
        assert t["state"] != "completed" or {"predictions.npy", "model.safetensors"} <= set(digests), digests
        found[t["number"]] = (t["state"], t["params"], t["metrics"], digests)
    return found


def create(assay, name, group, *search):
    return assay.call("POST", "/v1/sweeps", document(name, group, *search))["id"]


def kill_the_trainer(assay, sweep):
    """Once its first group trains. It stands still meanwhile, so that it does not end under our eyes. Returns the
    members that it had; what they had said before the signal still arrives, in the worst case their ends."""
    def is_training():
        return sum(t["state"] == "running" and (t["step"] or 0) >= 5 for t in assay.trials(sweep)) >= 2

    def send(signal_number):
        found = assay.processes("assay-train")
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal_number)
        return found

    def training():
        if not is_training():
            return None
        stopped = send(signal.SIGSTOP)
        if stopped and is_training():
            return stopped
        send(signal.SIGCONT)
        return None

    processes = assay.wait(training, "a group that trains")
    members = [t for t in assay.trials(sweep) if t["state"] == "running"]
    groups = {t["group"] for t in members}
    assert len(processes) == 1 and len(groups) == 1 and None not in groups, (processes, members)
    assert len({t["shape"] for t in members}) == 1 and len(members) <= MEMBERS, members
    runner = assay.call("GET", "/v1/runners")["items"][0]
    assert runner["used_slots"] == 1, runner
    os.kill(processes[0], signal.SIGKILL)
    return members


def kill_and_go_on(assay):
    for _ in range(5):
        sweep = create(assay, "killed", MEMBERS, *KILLED)
        members = kill_the_trainer(assay, sweep)
        assay.wait_ended(sweep)
        s, trials = assay.check_exact(sweep, TRIALS)
        assert s["counts"]["completed"] == TRIALS, s
        if any(t["restarts"] for t in trials):
            break
    for t in members:
        attempts = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}")["attempts"]
        assert attempts[0]["group"] == t["group"], attempts
        # one that ended between the look and the signal needs no other attempt; the others run alone
        assert [a["group"] for a in attempts[1:]] == [None] * trials[t["number"]]["restarts"], attempts
    assert 1 <= sum(t["restarts"] for t in trials) <= len(members), trials
    assert sum(t["group"] is not None for t in trials) >= TRIALS - len(members), trials
    shown = assay.cli("trials", sweep).stdout
    assert trials[-1]["group"] in shown, shown
    return sweep


def diverge(assay):
    sweep = create(assay, "diverging", MEMBERS, *DIVERGING)
    assay.wait_ended(sweep)
    s, trials = assay.check_exact(sweep, 8)
    bad = [t for t in trials if t["params"]["lr"] == DIVERGES]
    assert 0 < len(bad) < 8 and s["counts"]["completed"] == 8 - len(bad), s
    assert all(t["state"] == "failed" and "not finite" in t["reason"] for t in bad), bad
    assert all(t["group"] and t["restarts"] == 0 for t in trials), trials
    assert {t["group"] for t in bad} & {t["group"] for t in trials if t["state"] == "completed"}, trials
    return sweep


def check_logs(assay, sweep):
    """The log of a trial holds its own lines; those of the whole process are marked."""
    for t in assay.trials(sweep):
        lines = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}/log")["text"].splitlines()
        own = [line for line in lines if not line.startswith("[group] ")]
        reports = [json.loads(line) for line in own if line.startswith("{")]
        assert all(f"{sweep}/" not in line for line in own), lines
        if t["state"] == "completed":
            assert [r["val_error"] for r in reports] == [t["value"]], (t, lines)
        else:
            assert any("not finite" in line for line in own), (t, lines)


def main():
    with Assay(runners=1, slots=1) as assay:
        assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")
        for sweep, search in ((kill_and_go_on(assay), KILLED), (diverge(assay), DIVERGING)):
            alone = create(assay, f"{sweep}-alone", 1, *search)
            assay.wait_ended(alone)
            assert all(t["group"] is None for t in assay.trials(alone))
            grouped, single = results(assay, sweep), results(assay, alone)
            for number, expected in single.items():
                assert grouped[number] == expected, (sweep, number, grouped[number], expected)
            check_logs(assay, sweep)
            print(f"{sweep}: {len(single)} trials, equal to those alone", flush=True)


main()
