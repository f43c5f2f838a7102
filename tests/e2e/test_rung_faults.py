#!/usr/bin/env python3
"""Faults at a rung of early stopping, with the real programs: kill -9 of the runner, the server and PostgreSQL, before
the decision is committed and after it, a runner frozen past its lease, a trial that does not obey, and a checkpoint cut
short. Each sweep ends with the results, decisions and promotions in the order that the sweep without a fault has
(rung_sweep.py). What is lost on the way between programs is in test_rung_replies.py."""
import contextlib
import os
import signal
import sys

from harness import Assay, second_server
from rung_sweep import ARGS, await_decision, await_reported, check_same, go, order, run


class Fault:
    """What happens to the trial `x` at `step`, when its value is reported or when the decision about it is stored."""

    def __init__(self, x, step, program, is_before, how=None):
        self.x, self.step, self.program, self.is_before, self.how = x, step, program, is_before, how or kill
        self.ends_attempt = program == "assay-runner"

    def strike(self, assay, sweep, folder):
        runner = runner_of(assay, sweep)
        if self.is_before:
            server = assay.processes("assayd")[0]
            os.kill(server, signal.SIGSTOP)  # it hears the report, and decides nothing
            try:
                go(self, folder)
                await_reported(self, folder)
                self.how(assay, self.program, runner)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(server, signal.SIGCONT)
        else:
            go(self, folder)
            await_decision(assay, sweep, self.x, self.step)
            self.how(assay, self.program, runner)


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


def check_struck(assay, trials, faults, env):
    """Did the fault leave its trace? An attempt that is lost after its decision uses up no restart. A runner that is
    killed may have sent its report to the frozen server, which decides from it later, or not: then the next attempt
    reaches the rung."""
    for t in trials:
        fault = next((f for f in faults if f.ends_attempt and t["params"]["x"] == f.x), None)
        if env or fault:
            path = f"/v1/sweeps/{t['sweep']}/trials/{t['number']}"
            attempts = assay.wait(lambda: assay.call("GET", path), "the server")["attempts"]
            first = attempts[0]
            if fault:
                assert "lost" in [a["outcome"] for a in attempts] and t["restarts"] <= int(fault.is_before), (attempts, t)
            else:
                assert first["outcome"] == "paused" and (first["exit_code"] == -9) == ("DEAF" in env), (first, t)


def check(assay, name, expected, faults=(), env=None):
    trials = run(assay, name, faults, env)
    check_struck(assay, trials, faults, env)
    check_same(name, trials, expected)


def main():
    with Assay(runners=2, slots=1, args=ARGS) as assay:
        expected = order(run(assay, "whole"))
        print(*expected, sep="\n", flush=True)
        assert {r[-1] for r in expected if r[0] == "result"} == {"go_on", "pause"}, expected
        assert "promoted" in {r[0] for r in expected}, expected
        cases = {f"{program}-{'before' if is_before else 'after'}":
                 ([Fault(x, step, program, is_before) for x, step in ((0.7, 1), (0.1, 3))], None)
                 for program in ("assay-runner", "assayd", "postgres") for is_before in (True, False)}
        cases["assay-runner-after"][0].append(Fault(0.6, 1, "assay-runner", False, freeze))
        cases["deaf"] = ([], {"DEAF": "1"})
        cases["cut"] = ([], {"CUT": "1"})
        for name, (faults, env) in cases.items():
            if sys.argv[1:] in ([], [name]):
                check(assay, name, expected, faults, env)
        if sys.argv[1:] in ([], ["two"]):
            with second_server(assay, *ARGS):
                check(assay, "two", expected, [Fault(0.7, 1, "assayd", True)])


main()
