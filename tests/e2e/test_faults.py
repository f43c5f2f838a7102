#!/usr/bin/env python3
"""kill -9 a trial, a runner, assayd and PostgreSQL in the middle of a sweep, and stop a runner and assayd for
longer than a lease: each time the sweep ends with exactly max_trials finished trials, none counted twice."""
import contextlib
import glob
import os
import signal
import sys
import time

from harness import ENDED, Assay

PLANNED = 14
LEASE_S = 5
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



def children_of(pid):
    """The processes that its threads started; those of threads that end meanwhile are left out."""
    found = []
    for task in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError):
            found += map(int, open(task).read().split())
    return found


def kill_trial(assay):
    """The trial's own process, found below a runner."""
    for runner in assay.processes("assay-runner"):
        for child in children_of(runner):
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(child, signal.SIGKILL)
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
    pid = assay.postmaster()
    if pid:
        os.kill(pid, signal.SIGKILL)
    return pid is not None


def stop_runner_past_its_lease(assay):
    """SIGSTOP: the process lives, its lease does not. It wakes up as a zombie and must be fenced."""
    pid = assay.processes("assay-runner")[0]
    command = open(f"/proc/{pid}/cmdline").read().split("\0")
    name = command[command.index("--name") + 1]
    os.kill(pid, signal.SIGSTOP)
    try:
        assay.wait(lambda: any(r["name"] == name and r["state"] == "lost" for r in assay.call("GET", "/v1/runners")["items"]),
                   "the stopped runner to be lost")
    finally:
        os.kill(pid, signal.SIGCONT)
    return True


def stop_assayd_past_a_lease(assay):
    """SIGSTOP: a server that could not hear its runners must not blame them for it."""
    pid = assay.processes("assayd")[0]
    os.kill(pid, signal.SIGSTOP)
    time.sleep(LEASE_S + 2)  # longer than the lease: that is the fault
    os.kill(pid, signal.SIGCONT)
    return True


def run_one(assay, name, fault):
    """The sweep during which the fault came. Returns its trials."""
    for _ in range(5):
        sweep = assay.call("POST", "/v1/sweeps", document(name))["id"]
        assay.wait(lambda: assay.sweep(sweep)["counts"]["completed"] >= 2, f"{name}: two trials")
        happened = assay.wait(lambda: fault(assay) and "yes" or assay.sweep(sweep)["state"] in ENDED and "no",
                              f"{name}: something to kill")
        if happened == "yes":
            break  # else the sweep was over before this process got to it
    assert happened == "yes", name
    assay.wait_ended(sweep)
    s, trials = assay.check_exact(sweep, PLANNED)
    assert s["state"] == "completed" and s["counts"]["completed"] == PLANNED, (s["state"], s["reason"], s["counts"])
    for t in trials:
        expected = t["params"]["x"] ** 2 + 7
        assert abs(t["value"] - expected) < 1e-9, (t["value"], expected)
    print(f"{name}: {PLANNED} of {PLANNED}, restarts used {sum(t['restarts'] for t in trials)}", flush=True)
    return trials


def run(assay, name, fault):
    if fault is not stop_assayd_past_a_lease:
        run_one(assay, name, fault)
        return
    # Nobody is blamed for it. A runner that gets no processor for a lease is lost too: that does not happen each time.
    found = []
    while not found or (any(t["restarts"] for t in found[-1]) and len(found) < 4):
        found.append(run_one(assay, name, fault))
    assert not any(t["restarts"] for t in found[-1]), found


def main():
    faults = [("kill-trial", kill_trial), ("kill-runner", kill_first("assay-runner")),
              ("kill-assayd", kill_first("assayd")), ("kill-postgres", kill_postgres),
              ("stop-runner", stop_runner_past_its_lease),
              ("stop-assayd", stop_assayd_past_a_lease)]
    with Assay(runners=2, slots=2, args=["--lease", f"{LEASE_S}s", "--heartbeat", "1s"]) as assay:
        for name, fault in faults:
            start = time.monotonic()
            run(assay, name, fault)
            print(f"  {time.monotonic() - start:.1f} s", flush=True)


main()
