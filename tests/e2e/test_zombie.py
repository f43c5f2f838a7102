#!/usr/bin/env python3
"""A zombie: a runner is frozen (SIGSTOP) until its lease is over and attempt 2 of its trial has completed elsewhere;
then it goes on (SIGCONT) with attempt 1, once while the process still runs, once with its result in hand. What it
sends changes nothing, its process is ended, and the runner is a runner again.

The value of a trial is the number of its attempt, so it shows which attempt contributed it."""
import json
import os
import signal
import sys

from harness import Assay

# Attempt 1 waits for the gate; any attempt reports its own number.
PROGRAM = """import json, os, sys, time
folder, attempt = sys.argv[1], os.environ["ASSAY_ATTEMPT"]
open(os.path.join(folder, f"began-{attempt}"), "w").write(str(os.getpid()))
while attempt == "1" and not os.path.exists(os.path.join(folder, "gate")):
    time.sleep(0.02)
open(os.environ["ASSAY_REPORT"], "a").write(json.dumps({"value": int(attempt)}) + "\\n")
open(os.path.join(folder, f"reported-{attempt}"), "w").close()
"""


def document(name, folder):
    return {"name": name, "metric": {"name": "value", "goal": "maximize"}, "ensemble": False,
            "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "search": {"method": "random", "seed": 1},
            "limits": {"max_trials": 1, "max_restarts": 3},
            "trial": {"command": [sys.executable, "-c", PROGRAM, folder]}}


def runner_of(assay, sweep):
    """Name and pid of the one that runs its trial."""
    name = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0")["runner"]
    for pid in assay.processes("assay-runner"):
        if name in open(f"/proc/{pid}/cmdline").read().split("\0"):
            return name, pid
    raise AssertionError(name)


def state_of(assay, name):
    return next(r["state"] for r in assay.call("GET", "/v1/runners")["items"] if r["name"] == name)


def run(assay, name, has_result):
    folder = os.path.join(assay.data, name)
    os.mkdir(folder)
    os.chmod(folder, 0o777)

    def is_there(file):
        return os.path.exists(os.path.join(folder, file))
    sweep = assay.call("POST", "/v1/sweeps", document(name, folder))["id"]
    assay.wait(lambda: is_there("began-1"), "attempt 1")
    zombie, pid = runner_of(assay, sweep)
    process = int(open(os.path.join(folder, "began-1")).read())
    os.kill(pid, signal.SIGSTOP)
    try:
        if has_result:
            open(os.path.join(folder, "gate"), "w").close()
            assay.wait(lambda: is_there("reported-1"), "the report of attempt 1")
        trial = assay.wait_ended(sweep) and assay.call("GET", f"/v1/sweeps/{sweep}/trials/0")
        assert trial["state"] == "completed" and trial["value"] == 2 and trial["runner"] != zombie, trial
        assert [a["outcome"] for a in sorted(trial["attempts"], key=lambda a: a["attempt"])] == ["lost", "completed"], trial
        assert state_of(assay, zombie) == "lost"
    finally:
        os.kill(pid, signal.SIGCONT)
    # It registers again, which it can only after it has heard that its attempt is not current; its process is gone.
    assay.wait(lambda: state_of(assay, zombie) == "live", "the zombie to be a runner again")
    assay.wait(lambda: not os.path.exists(f"/proc/{process}"), "the end of the process of attempt 1")
    work = os.path.join(assay.data, "runners", zombie, "trials")
    assert os.path.isdir(work), work
    assay.wait(lambda: not os.path.exists(os.path.join(work, sweep)), "its folder to be removed")
    after = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0")
    assert after == trial, (after, trial)
    series = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0/measurements")["series"]["value"]["values"]
    assert series == [2], series
    assert pid in assay.processes("assay-runner"), "the zombie ended"
    print(f"{name}: attempt 2 counts, attempt 1 was refused ({json.dumps(series)})", flush=True)


def main():
    with Assay(runners=2, slots=1, args=["--lease", "5s", "--heartbeat", "1s"]) as assay:
        run(assay, "still-running", False)
        run(assay, "with-result", True)


main()
