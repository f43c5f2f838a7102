#!/usr/bin/env python3
"""Outages and the time limit of trials: a process that ended within trial_timeout is no timeout, however long assayd or
PostgreSQL was frozen or restarted before its result could arrive; a process that runs on is one. Where a second assayd
declares the runner of the frozen one lost, the result still counts, unless another attempt has begun."""
import contextlib
import os
import signal
import sys
import time

from harness import Assay, second_server

ARGS = ["--lease", "5s", "--heartbeat", "1s"]
LEASE_S, TIMEOUT_S, GRACE_S, TRIALS = 5, 8, 1, 3
# After so long, the backstop of the server is over for a trial that began before the freeze.
FREEZE_S = TIMEOUT_S + GRACE_S + LEASE_S + 2


def document(name, script, restarts=0):
    return {
        "name": name,
        "metric": {"name": "loss", "goal": "minimize"},
        "parameters": {"x": {"type": "float", "min": -1, "max": 1}},
        "search": {"method": "random", "seed": 3},
        "limits": {"max_trials": TRIALS, "max_restarts": restarts, "trial_timeout": TIMEOUT_S, "grace": GRACE_S},
        "ensemble": False,
        "trial": {"command": ["sh", "-c", script]},
    }


SHORT = 'sleep 2; echo "{\\"loss\\": 1}" >> "$ASSAY_REPORT"'


def freeze(program):
    """SIGSTOP all its processes, again until no new one has come meanwhile."""
    def fault(assay):
        stopped = set()
        while new := set(assay.processes(program)) - stopped:
            for pid in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            stopped |= new
        time.sleep(FREEZE_S)  # that is the fault
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    return fault


def restart_assayd(assay):
    """`assay up` starts another one."""
    os.kill(assay.processes("assayd")[0], signal.SIGKILL)


def run(assay, name, fault, restarts=0):
    """Every trial completes. Without restarts that is in its first attempt. With them the attempt may
    have been lost, because another server saw the runner's lease end; then its late result counts,
    unless the next attempt has begun before it came."""
    sweep = assay.call("POST", "/v1/sweeps", document(name, SHORT, restarts))["id"]
    assay.wait(lambda: (c := assay.sweep(sweep)["counts"])["running"] + c["completed"] == TRIALS, f"{name}: its trials to run")
    fault(assay)
    s = assay.wait_ended(sweep)
    trials = assay.trials(sweep)
    assert s["counts"]["completed"] == TRIALS, (s["counts"], [t["reason"] for t in trials])
    for t in trials:
        attempts = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}")["attempts"]
        last = attempts[-1]
        assert len(attempts) <= 1 + restarts, attempts
        assert last["outcome"] == "completed" and 2000 <= last["ran_ms"] and t["restarts"] <= restarts, last
    print(f"{name}: {TRIALS} of {TRIALS}, ran {last['ran_ms']} ms", flush=True)


def run_too_long(assay):
    """The runner ends a process that runs on."""
    sweep = assay.call("POST", "/v1/sweeps", document("too-long", "exec sleep 600"))["id"]
    s = assay.wait_ended(sweep)
    assert s["counts"]["failed"] == TRIALS, s["counts"]
    for t in assay.trials(sweep):
        last = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}")["attempts"][-1]
        assert last["outcome"] == "timeout" and last["ran_ms"] >= TIMEOUT_S * 1000, last
        assert "trial_timeout" in t["reason"], t


def main():
    with Assay(runners=1, slots=TRIALS, args=ARGS) as assay:
        for name, fault in [("freeze-assayd", freeze("assayd")), ("freeze-postgres", freeze("postgres")),
                            ("restart-assayd", restart_assayd)]:
            if len(sys.argv) < 2 or name in sys.argv[1:]:
                run(assay, name, fault)
        with second_server(assay, *ARGS):
            run(assay, "freeze-one-of-two", freeze("assayd"), restarts=1)
        run_too_long(assay)


main()
