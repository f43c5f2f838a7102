#!/usr/bin/env python3
"""Trials that are claimed while the one before them runs, with real servers and runners: each runs once, starts when its
slot is free, and goes back when its runner dies, leaves, or has no slot in time; a pause holds; a method that learns never
gives ahead. How long trials take decides about nothing here: those that are to be short are so up to ten minutes."""
import datetime
import glob
import os
import signal
import statistics

from harness import Assay

SHORT = 8  # the first trials of a sweep; later ones wait for its gate
SCRIPT = """n=$(basename "$ASSAY_TRIAL"); begin=$EPOCHREALTIME; echo "$n $ASSAY_ATTEMPT" >> {folder}/began
if [ "$n" -ge {first_long} ]; then while ! [ -e {folder}/gate ]; do sleep 0.02; done; else sleep {seconds}; fi
echo '{{"loss": 1}}' >> "$ASSAY_REPORT"; echo "$n $begin $EPOCHREALTIME" >> {folder}/ended"""


class Sweep:
    """A sweep, and what its programs wrote down."""

    def __init__(self, assay, name, trials, first_long=SHORT, seconds=0, method="random"):
        self.assay, self.trials = assay, trials
        self.folder = os.path.join(assay.data, name)
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o777)
        script = SCRIPT.format(folder=self.folder, first_long=first_long, seconds=seconds)
        doc = {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "ensemble": False,
               "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "search": {"method": method, "seed": 1},
               "limits": {"max_trials": trials}, "trial": {"command": ["bash", "-c", script]}}
        self.id = assay.call("POST", "/v1/sweeps", doc)["id"]

    def lines(self, file):
        try:
            with open(os.path.join(self.folder, file), encoding="ascii") as f:
                return [line.split() for line in f.read().splitlines()]
        except FileNotFoundError:
            return []

    def open_gate(self):
        open(os.path.join(self.folder, "gate"), "w").close()

    def counts(self):
        return self.assay.sweep(self.id)["counts"]

    def attempts(self):
        return [dict(a, number=n) for n in range(self.counts()["total"])
                for a in self.assay.call("GET", f"/v1/sweeps/{self.id}/trials/{n}")["attempts"]]

    def await_waiting(self):
        """Both runners have a trial that waits for the gate, and one of them, whose name is returned, has another one
        that waits for its slot: which had half of the short ones."""
        def look():
            held = [t["runner"] for t in self.assay.trials(self.id) if t["state"] == "running"]
            blocked = len(self.lines("began")) - len(self.lines("ended"))
            return next((r for r in held if blocked == 2 and held.count(r) == 2), None)
        return self.assay.wait(look, "a trial that was claimed ahead")

    def check(self):
        """All have completed, each once."""
        self.assay.wait_ended(self.id)
        self.assay.check_exact(self.id, self.trials)
        assert self.counts()["completed"] == self.trials, self.counts()


def claimed_ahead(assay, sweep):
    """How many trials of the sweep the runners have claimed ahead, by their logs."""
    return sum(f" trial={sweep.id}/" in line and " ahead=yes" in line
               for log in glob.glob(os.path.join(assay.data, "logs", "*.log")) for line in open(log, errors="replace"))


def pid_of(assay, runner):
    return next(pid for pid in assay.processes("assay-runner")
                if runner in open(f"/proc/{pid}/cmdline").read().split("\0"))


def unix(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def short_trials(assay):
    """Each runs once. It starts when the one before it on its runner has ended, not when it was claimed: of the time in
    which that one ran, more than half had passed, of most."""
    sweep = Sweep(assay, "short", 60, first_long=1000, seconds=0.1)
    sweep.check()
    assert claimed_ahead(assay, sweep) > 10, claimed_ahead(assay, sweep)
    assert sorted(int(n) for n, _ in sweep.lines("began")) == list(range(60))
    ran = {int(n): (float(begin), float(end)) for n, begin, end in sweep.lines("ended")}
    passed = []
    for runner in {a["runner"] for a in sweep.attempts()}:
        own = sorted((a for a in sweep.attempts() if a["runner"] == runner), key=lambda a: ran[a["number"]])
        for before, after in zip(own, own[1:]):
            begin, end = ran[before["number"]]
            passed.append((unix(after["started_at"]) - begin) / (end - begin))
    assert statistics.median(passed) > 0.5, sorted(passed)


def a_pause(assay):
    """What runs and waits ends; nothing else begins before the sweep is resumed."""
    sweep = Sweep(assay, "paused", 40)
    sweep.await_waiting()
    assay.call("PATCH", f"/v1/sweeps/{sweep.id}", {"state": "paused"})
    total = sweep.counts()["total"]
    sweep.open_gate()
    assay.wait(lambda: sweep.counts()["running"] == 0, "the trials that were claimed to end")
    assert sweep.counts()["total"] == total
    assay.call("PATCH", f"/v1/sweeps/{sweep.id}", {"state": "running"})
    sweep.check()


def a_cancelled_sweep(assay):
    """A directive reaches those that wait: they never begin."""
    sweep = Sweep(assay, "cancelled", 40)
    sweep.await_waiting()
    began = sweep.lines("began")
    assay.call("PATCH", f"/v1/sweeps/{sweep.id}", {"state": "cancelled"})
    assay.wait(lambda: all(r["running"] == 0 for r in assay.call("GET", "/v1/runners")["items"]), "runners without trials")
    other = Sweep(assay, "next", 4)
    other.check()
    assert sweep.lines("began") == began


def a_killed_runner(assay):
    """What waited at it runs elsewhere, or there again."""
    sweep = Sweep(assay, "killed", 40)
    os.kill(pid_of(assay, sweep.await_waiting()), signal.SIGKILL)
    assay.wait(lambda: sum(a["outcome"] == "lost" for a in sweep.attempts()) == 2, "two lost attempts")
    sweep.open_gate()
    sweep.check()
    lost = [a for a in sweep.attempts() if a["outcome"] == "lost"]
    assert sum([str(a["number"]), str(a["attempt"])] in sweep.lines("began") for a in lost) == 1, lost


def a_runner_that_leaves(assay):
    """It hands back what waits, which never began, with what runs."""
    sweep = Sweep(assay, "left", 40)
    os.kill(pid_of(assay, sweep.await_waiting()), signal.SIGTERM)
    assay.wait(lambda: sum(a["outcome"] == "released" for a in sweep.attempts()) == 2, "two released attempts")
    sweep.open_gate()
    sweep.check()
    back = [a for a in sweep.attempts() if a["outcome"] == "released"]
    assert sum([str(a["number"]), str(a["attempt"])] in sweep.lines("began") for a in back) == 1, back


def a_method_that_learns(assay):
    sweep = Sweep(assay, "learner", 20, first_long=1000, method="tpe")
    sweep.check()
    assert claimed_ahead(assay, sweep) == 0


def long_trials():
    """The trials of a sweep become long: those that wait go back and begin elsewhere, or later."""
    with Assay(runners=2, env={"ASSAY_RUNNER_AHEAD": "2s"}) as assay:
        sweep = Sweep(assay, "long", 40, seconds=0.05)
        assay.wait(lambda: any(a["outcome"] == "released" for a in sweep.attempts()), "a trial that goes back")
        assay.wait(lambda: sweep.counts()["running"] == 2, "nothing that waits")
        sweep.open_gate()
        sweep.check()
        back = [a for a in sweep.attempts() if a["outcome"] == "released"]
        assert all(a["reason"] == "no slot came free for it in time" and a["ran_ms"] == 0 for a in back), back
        assert not any([str(a["number"]), str(a["attempt"])] in sweep.lines("began") for a in back), back
        assert len(sweep.lines("began")) == 40


def main():
    with Assay(runners=2, env={"ASSAY_RUNNER_AHEAD": "10m"}) as assay:
        short_trials(assay)
        a_method_that_learns(assay)
        a_pause(assay)
        a_cancelled_sweep(assay)
        a_killed_runner(assay)
        a_runner_that_leaves(assay)
    long_trials()


main()
