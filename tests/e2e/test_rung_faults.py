#!/usr/bin/env python3
"""Faults at a rung of early stopping, with the real programs: kill -9 of the runner, the server and PostgreSQL, before
the decision is committed and after it, a runner frozen past its lease, a trial that does not obey, and a checkpoint cut
short. Each sweep ends with the results, decisions and promotions in the order that the
sweep without a fault has.

One trial runs at a time, and a trial that has reached a rung waits until this test has read the decision, so that the
order does not depend on speed."""
import contextlib
import glob
import json
import os
import signal
import sys
import time

from harness import ENDED, PATIENCE_S, Assay, second_server

ARGS = ["--lease", "5s", "--heartbeat", "1s"]
VALUES = [0.5, 0.7, 0.1, 0.6, 0.2, 0.9]
PROGRAM = r'''
import json, os, signal, sys, time
folder, x, hold = sys.argv[1], sys.argv[2], os.environ["HOLD"]
state = os.path.join(os.environ["ASSAY_CHECKPOINTS"], "state")
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])


def wait(file):
    while not os.path.exists(os.path.join(folder, file)):
        time.sleep(0.02)


def touch(file):
    open(os.path.join(folder, file), "w").close()


step = 0
if os.path.exists(state):
    text = open(state).read().split()
    if len(text) == 2:  # else it was cut short, and the trial begins again
        step = int(text[0])
print("begins after", step, flush=True)
while step < 9:
    step += 1
    if hold == f"{x} {step}":
        touch("holds")
        wait("go")
    with open(os.environ["ASSAY_REPORT"], "a") as f:
        f.write(json.dumps({"step": step, "loss": float(x) + 1 / step}) + "\n")
    if hold == f"{x} {step}":
        touch("reported")
    if step in (1, 3):
        wait(f"{x}-{step}")
        if open(os.path.join(folder, f"{x}-{step}")).read() == "pause" and not os.path.exists(
                os.path.join(folder, f"{x}-{step}-promoted")):
            if "DEAF" in os.environ:
                time.sleep(600)
            signal.sigwait([signal.SIGTERM])
            with open(state + ".new", "w") as f:
                f.write(str(step) if "CUT" in os.environ else f"{step} whole")
            os.rename(state + ".new", state)
            sys.exit(0)
'''


def document(name, folder, hold="", env=None):
    return {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "ensemble": False,
            "parameters": {"x": {"type": "categorical", "values": VALUES}}, "search": {"method": "grid"},
            "limits": {"grace": "1s" if env else "1m", "max_concurrent_trials": 1, "max_restarts": 5},
            "trial": {"command": [sys.executable, "-c", PROGRAM, folder, "${x}"], "checkpoints": True,
                      "env": {"HOLD": hold, **(env or {})}},
            "early_stopping": {"method": "asha", "min_steps": 1, "max_steps": 9, "eta": 3, "mode": "pause"}}


def order(trials):
    """The results and promotions in the order of the sweep, and how every trial ended. When a trial that cannot be
    promoted any more ends as pruned is the reaper's time, so that its place is left out."""
    found, ends = [], []
    for t in trials:
        x = t["params"]["x"]
        for r in t["rungs"] or []:
            found.append((r["seq"], "result", x, r["step"], r["value"], r["rank"], r["of"], r["decision"]))
            if r["promoted_seq"]:
                found.append((r["promoted_seq"], "promoted", x, r["step"]))
        if t["finish_seq"]:
            ends.append((x, t["state"], t["value"]))
    places = [place for place, *_ in found] + [t["finish_seq"] for t in trials]
    assert sorted(places) == list(range(1, len(places) + 1)), places
    return [what for _, *what in sorted(found)] + sorted(ends)


def say(folder, file, text=""):
    """A file that appears with all of its text."""
    path = os.path.join(folder, file)
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(path + ".new", path)


def answer(assay, sweep, folder):
    """Every trial at a rung learns what was decided. True when the sweep has ended."""
    for t in assay.trials(sweep):
        for r in t["rungs"] or []:
            file = f"{t['params']['x']}-{r['step']}"
            if r["promoted_seq"] and not os.path.exists(os.path.join(folder, file + "-promoted")):
                say(folder, file + "-promoted")
            if not os.path.exists(os.path.join(folder, file)):
                say(folder, file, r["decision"])
    return assay.sweep(sweep)["state"] in ENDED


class Fault:
    """What happens to the trial `x` at `step`, when its value is reported or when the decision about it is stored."""

    def __init__(self, x, step, program, is_before, how=None):
        self.x, self.step, self.program, self.is_before, self.how = x, step, program, is_before, how or kill
        self.ends_attempt = program == "assay-runner"

    def strike(self, assay, sweep, folder):
        def there(file):
            return os.path.exists(os.path.join(folder, file))
        assay.wait(lambda: there("holds") or answer(assay, sweep, folder), "the trial at its rung")
        assert there("holds"), "the sweep ended before"
        runner = runner_of(assay, sweep)
        if self.is_before:
            server = assay.processes("assayd")[0]
            os.kill(server, signal.SIGSTOP)  # it hears the report, and decides nothing
            try:
                say(folder, "go")
                wait_file(os.path.join(folder, "reported"))
                self.how(assay, self.program, runner)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(server, signal.SIGCONT)
        else:
            say(folder, "go")
            assay.wait(lambda: [r for t in assay.trials(sweep) if t["params"]["x"] == self.x
                                for r in t["rungs"] or [] if r["step"] == self.step], "the decision")
            self.how(assay, self.program, runner)


def wait_file(path):
    deadline = time.monotonic() + PATIENCE_S
    while not os.path.exists(path):
        assert time.monotonic() < deadline, path
        time.sleep(0.02)


def runner_of(assay, sweep):
    """Pid of the runner of what runs."""
    name = next(t["runner"] for t in assay.trials(sweep) if t["state"] == "running")
    for pid in assay.processes("assay-runner"):
        if name in open(f"/proc/{pid}/cmdline").read().split("\0"):
            return pid
    raise AssertionError(name)


def kill(assay, program, runner):
    pid = {"assay-runner": lambda: runner, "assayd": lambda: assay.processes("assayd")[0],
           "postgres": lambda: assay.wait(assay.postmaster, "PostgreSQL")}[program]()
    os.kill(pid, signal.SIGKILL)


def freeze(assay, _, runner):
    """SIGSTOP until the lease is over."""
    name = next(a for a, b in zip(open(f"/proc/{runner}/cmdline").read().split("\0")[1:],
                                  open(f"/proc/{runner}/cmdline").read().split("\0")) if b == "--name")
    os.kill(runner, signal.SIGSTOP)
    try:
        assay.wait(lambda: any(r["name"] == name and r["state"] == "lost"
                               for r in assay.call("GET", "/v1/runners")["items"]), "the frozen runner to be lost")
    finally:
        os.kill(runner, signal.SIGCONT)


def check_struck(assay, trials, fault, env):
    """Did the fault leave its trace? An attempt that is lost after its decision uses up no restart. A runner that is
    killed may have sent its report to the frozen server, which decides from it later, or not: then the next attempt
    reaches the rung."""
    for t in trials:
        if env or fault and fault.ends_attempt and t["params"]["x"] == fault.x:
            path = f"/v1/sweeps/{t['sweep']}/trials/{t['number']}"
            first = assay.wait(lambda: assay.call("GET", path), "the server")["attempts"][0]
            if fault:
                assert first["outcome"] == "lost" and t["restarts"] <= int(fault.is_before), (first, t)
            else:
                assert first["outcome"] == "paused" and (first["exit_code"] == -9) == ("DEAF" in env), (first, t)


def create(assay, doc):
    """Again where the server restarts; the key makes it one sweep."""
    return assay.call("POST", "/v1/sweeps", doc, headers={"Idempotency-Key": doc["name"]})


def run(assay, name, fault=None, env=None):
    began = time.monotonic()
    folder = os.path.join(assay.data, name)
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    doc = document(name, folder, f"{fault.x} {fault.step}" if fault else "", env)
    sweep = assay.wait(lambda: create(assay, doc), "the server")["id"]
    if fault:
        fault.strike(assay, sweep, folder)
    assay.wait(lambda: answer(assay, sweep, folder), f"{name} to end")
    s, trials = assay.wait(lambda: (assay.sweep(sweep), assay.trials(sweep)), "the server")
    assert s["state"] == "completed" and s["counts"]["completed"] + s["counts"]["pruned"] == len(VALUES), s
    check_struck(assay, trials, fault, env)
    print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
    return order(trials)


def main():
    with Assay(runners=2, slots=1, args=ARGS) as assay:
        expected = run(assay, "whole")
        print(*expected, sep="\n", flush=True)
        assert {r[-1] for r in expected if r[0] == "result"} == {"go_on", "pause"}, expected
        assert "promoted" in {r[0] for r in expected}, expected
        cases = {f"{program}-{'before' if is_before else 'after'}-{step}": (Fault(x, step, program, is_before), None)
                 for program in ("assay-runner", "assayd", "postgres") for is_before in (True, False)
                 for x, step in ((0.7, 1), (0.1, 3))}
        cases["frozen"] = (Fault(0.7, 1, "assay-runner", False, freeze), None)
        cases["deaf"] = (None, {"DEAF": "1"})
        cases["cut"] = (None, {"CUT": "1"})
        for name, (fault, env) in cases.items():
            if sys.argv[1:] in ([], [name]):
                found = run(assay, name, fault, env)
                assert found == expected, "\n".join([name, *map(str, found)])
        if sys.argv[1:] in ([], ["two"]):
            with second_server(assay, *ARGS):
                found = run(assay, "two", Fault(0.7, 1, "assayd", True))
                assert found == expected, "\n".join(["two", *map(str, found)])


main()
