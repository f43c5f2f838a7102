#!/usr/bin/env python3
"""Early stopping of trials over several ranks, with the real programs. A gang that pauses gives all its seats back, and
gathers anew when it is promoted. A gang whose leader is lost at a rung, before the decision or after it, ends with the
results, decisions and promotions in the order that the sweep without a fault has (rung_sweep.py). Elastic ranks stop in
one step; with an asynchronous server and with gossip they stop at the next phase."""
import contextlib
import os
import signal
import sys
import time

from harness import LONG_LEASE, Assay
from rung_sweep import ARGS, await_decision, await_reported, check_same, go, order, run, trial_of

RATES = [0.02, 0.5, 0.05, 0.001, 0.1]


def gang_of(assay, sweep, trial, attempt=None):
    return assay.call("GET", f"/v1/sweeps/{sweep}/trials/{trial['number']}/attempts/{attempt or trial['attempt']}/gang")


def pid_of_runner(assay, name):
    for pid in assay.processes("assay-runner"):
        if name in open(f"/proc/{pid}/cmdline").read().split("\0"):
            return pid
    raise AssertionError(name)


def kill_runner_of(assay, seat):
    """With its process, which it takes with it or which the next runner ends."""
    os.kill(pid_of_runner(assay, seat["runner"]), signal.SIGKILL)


class Lost:
    """The runner of a rank of the trial `x` is killed when the value at `step` is reported, or decided about."""

    def __init__(self, x, step, rank, is_before):
        self.x, self.step, self.rank, self.is_before = x, step, rank, is_before

    def strike(self, assay, sweep, folder):
        trial = trial_of(assay, sweep, self.x)
        seat = next(s for s in gang_of(assay, sweep, trial)["seats"] if s["rank"] == self.rank)
        if self.is_before:
            server = assay.processes("assayd")[0]
            os.kill(server, signal.SIGSTOP)  # it hears the report, and decides nothing
            try:
                go(self, folder)
                await_reported(self, folder)
                kill_runner_of(assay, seat)
            finally:
                os.kill(server, signal.SIGCONT)
        else:
            go(self, folder)
            await_decision(assay, sweep, self.x, self.step)
            kill_runner_of(assay, seat)


def check_attempts(assay, trials):
    """Every attempt had a gang of two, on two runners, whose seats are free again; an attempt that was resumed has another
    gang than that before."""
    resumed = 0
    for t in trials:
        detail = assay.call("GET", f"/v1/sweeps/{t['sweep']}/trials/{t['number']}")
        for a in detail["attempts"]:
            g = gang_of(assay, t["sweep"], t, a["attempt"])
            assert g["state"] == "over" and len(g["seats"]) >= 2, g
        resumed += len(detail["attempts"]) > 1 and detail["attempts"][0]["outcome"] == "paused"
    assert resumed, "no gang was resumed"
    assert all(r["used_slots"] == 0 for r in assay.call("GET", "/v1/runners")["items"])


def check_programs(assay):
    """Commands: the first rank reports, and the others are told, too. One process for each rank."""
    whole = run(assay, "programs", ranks=2)
    expected = order(whole)
    print(*expected, sep="\n", flush=True)
    check_attempts(assay, whole)
    faults = [Lost(0.7, 1, 0, True), Lost(0.1, 3, 0, False), Lost(0.6, 1, 1, False)]
    trials = run(assay, "lost", faults, ranks=2)
    check_same("lost", trials, expected)
    for fault in faults:
        struck = next(t for t in trials if t["params"]["x"] == fault.x)
        attempts = assay.call("GET", f"/v1/sweeps/{struck['sweep']}/trials/{struck['number']}")["attempts"]
        assert struck["restarts"] <= int(fault.is_before), (struck, attempts)
        assert fault.rank > 0 or "lost" in [a["outcome"] for a in attempts], attempts


def trained(name, distributed=None, epochs=27, rates=RATES):
    train = {"dataset": "digits", "model": {"kind": "mlp", "layers": [64, 32]}, "optimizer": {"kind": "sgd", "lr": "${x}"},
             "epochs": epochs, "batch_size": 128, "micro_batch": 8, "validation": {"fraction": 0.3}}
    return {"name": name, "metric": {"name": "val_loss", "goal": "minimize"}, "ensemble": False,
            "parameters": {"x": {"type": "categorical", "values": rates}}, "search": {"method": "grid", "seed": 7},
            "limits": {"max_concurrent_trials": 1, "max_restarts": 5}, "resources": {"ranks": 2},
            "trial": {"train": {**train, **({"distributed": distributed} if distributed else {})}},
            "early_stopping": {"method": "asha", "min_steps": epochs // 9, "max_steps": epochs, "eta": 3, "mode": "pause"}}


def start(assay, doc):
    return assay.call("POST", "/v1/sweeps", doc)["id"]


def await_end(assay, sweep):
    s = assay.wait_ended(sweep)
    trials = assay.trials(sweep)
    assert s["state"] == "completed" and s["counts"]["completed"] >= 1 and s["counts"]["pruned"] >= 1, s["counts"]
    for t in trials:
        detail = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}")
        assert {a["outcome"] for a in detail["attempts"]} <= {"paused", "completed"}, detail["attempts"]
        assert t["restarts"] == 0, t
    return trials


def kill_leaders(assay, sweep):
    """The leader's runner of the running trial, once for each of two trials, when it has reached its first rung. Whether
    the gang still runs, ends, or has ended then, is chance."""
    killed = set()
    while len(killed) < 2 and assay.sweep(sweep)["state"] == "running":
        with contextlib.suppress(Exception):
            for t in assay.trials(sweep):
                if t["number"] in killed or not t["rungs"] or t["state"] != "running":
                    continue
                seats = gang_of(assay, sweep, t)["seats"]
                kill_runner_of(assay, next(s for s in seats if s["rank"] == 0))
                killed.add(t["number"])
        time.sleep(0.002)
    return killed


def decided(trials):
    """The order without the values that pruned trials had at the end: how far they had gone on is chance."""
    return [row[:2] if row[1] == "pruned" else row for row in order(trials)]


def check_elastic(assay):
    """Returns the order that a sweep without a fault has."""
    whole = await_end(assay, start(assay, trained("elastic")))
    check_attempts(assay, whole)
    return decided(whole)


def check_elastic_lost(assay, whole):
    sweep = start(assay, trained("elastic-lost"))
    killed = kill_leaders(assay, sweep)
    s = assay.wait_ended(sweep)
    trials = assay.trials(sweep)
    print(f"elastic: killed the leaders of {sorted(killed)}", flush=True)
    assert s["state"] == "completed", s
    assert decided(trials) == whole, (decided(trials), whole)


def check_phases(assay):
    """Without a common step a gang pauses at its next phase, with a whole state, from which it goes on."""
    for name, distributed in {"async": {"server": {"mode": "async"}}, "gossip": {"gossip": {"peers": 1}},
                              "groups": {"groups": 2}}.items():
        trials = await_end(assay, start(assay, trained(name, distributed, 9, RATES[:4])))
        assert any(t["attempt"] > 1 for t in trials), trials
        for t in trials:
            rungs = t["rungs"] or []
            assert [r["step"] for r in rungs] == [1, 3, 9][:len(rungs)], t
        print(f"{name}: {sum(t['attempt'] > 1 for t in trials)} gangs went on", flush=True)


@contextlib.contextmanager
def installation(args):
    with Assay(runners=3, slots=1, args=args) as assay:
        assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")
        yield assay


def main():
    chosen = sys.argv[1:] or ["programs", "elastic", "phases"]
    with installation(LONG_LEASE) as assay:  # nobody is lost here because a machine is slow
        whole = check_elastic(assay) if "elastic" in chosen else None
        if "phases" in chosen:
            check_phases(assay)
    with installation(ARGS) as assay:
        if "programs" in chosen:
            check_programs(assay)
        if "elastic" in chosen:
            check_elastic_lost(assay, whole)


main()
