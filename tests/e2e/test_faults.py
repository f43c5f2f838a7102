#!/usr/bin/env python3
"""kill -9 a trial, a runner, assayd and PostgreSQL in the middle of a sweep, and stop a runner and assayd for
longer than a lease: each time the sweep ends with exactly max_trials finished trials, none counted twice."""
import os
import signal
import sys
import time

from harness import Assay

PLANNED = 14
SLEEPER = """
import json, os, sys, time
for step in range(8):
    time.sleep(0.1)
    with open(os.environ["ASSAY_REPORT"], "a") as f:
        f.write(json.dumps({"step": step, "loss": float(sys.argv[1]) ** 2 + step}) + "\\n")
"""


def document(name):
    return {
        "name": name,
        "metric": {"name": "loss", "goal": "minimize"},
        "parameters": {"x": {"type": "float", "min": -1, "max": 1}},
        "search": {"method": "random", "seed": 3},
        "limits": {"max_trials": PLANNED, "max_restarts": 5},
        "trial": {"command": [sys.executable, "-c", SLEEPER, "${x}"]},
    }



def kill_trial(assay):
    """The trial's own process, found below a runner."""
    for runner in assay.processes("assay-runner"):
        found = [c for task in os.listdir(f"/proc/{runner}/task")
                 for c in map(int, open(f"/proc/{runner}/task/{task}/children").read().split())]
        if found:
            os.kill(found[0], signal.SIGKILL)
            return True
    return False


def kill_first(program):
    def kill(assay):
        pids = assay.processes(program)
        if pids:
            os.kill(pids[0], signal.SIGKILL)
        return bool(pids)
    return kill


def kill_postgres(assay):
    """The postmaster: the postgres process whose parent is not one."""
    pids = assay.processes("postgres")
    for pid in pids:
        parent = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
        if parent not in pids:
            os.kill(pid, signal.SIGKILL)
            return True
    return False


def stop_runner_past_its_lease(assay):
    """SIGSTOP: the process lives, its lease does not. It wakes up as a zombie and must be fenced."""
    pid = assay.processes("assay-runner")[0]
    before = assay.call("GET", "/v1/runners")["items"]
    live = sum(r["state"] == "live" for r in before)
    os.kill(pid, signal.SIGSTOP)
    try:
        assay.wait(lambda: sum(r["state"] == "live" for r in assay.call("GET", "/v1/runners")["items"]) < live,
                   60, "the stopped runner to be lost")
    finally:
        os.kill(pid, signal.SIGCONT)
    return True


def stop_assayd_past_a_lease(assay):
    """SIGSTOP: a server that could not hear its runners must not blame them for it."""
    pid = assay.processes("assayd")[0]
    os.kill(pid, signal.SIGSTOP)
    time.sleep(6)  # longer than the lease: that is the fault
    os.kill(pid, signal.SIGCONT)
    return True


def run_one(assay, name, fault):
    sweep = assay.call("POST", "/v1/sweeps", document(name))["id"]
    assay.wait(lambda: assay.sweep(sweep)["counts"]["completed"] >= 2, 60, f"{name}: two trials")
    assay.wait(lambda: fault(assay), 30, f"{name}: something to kill")
    assay.wait_ended(sweep, 180)
    s, trials = assay.check_exact(sweep, PLANNED)
    assert s["state"] == "completed" and s["counts"]["completed"] == PLANNED, (s["state"], s["reason"], s["counts"])
    for t in trials:
        expected = t["params"]["x"] ** 2 + 7
        assert abs(t["value"] - expected) < 1e-9, (t["value"], expected)
    assert fault is not stop_assayd_past_a_lease or not any(t["restarts"] for t in trials), trials
    print(f"{name}: {PLANNED} of {PLANNED}, restarts used {sum(t['restarts'] for t in trials)}", flush=True)


def main():
    faults = [("kill-trial", kill_trial), ("kill-runner", kill_first("assay-runner")),
              ("kill-assayd", kill_first("assayd")), ("kill-postgres", kill_postgres),
              ("stop-runner", stop_runner_past_its_lease),
              ("stop-assayd", stop_assayd_past_a_lease)]
    with Assay(runners=2, slots=2, args=["--lease", "4s", "--heartbeat", "1s"]) as assay:
        for name, fault in faults:
            start = time.monotonic()
            run_one(assay, name, fault)
            print(f"  {time.monotonic() - start:.1f} s", flush=True)


main()
