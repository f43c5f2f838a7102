#!/usr/bin/env python3
"""One trial over several ranks, with the real programs: any number of ranks, and any death, gives the same weights,
bit by bit. Ranks, a runner and assayd are killed with SIGKILL; ranks come back; a runner leaves.

That one rank has these bits too is shown in tests/trial-runner/train/test_ranks.c: a sweep with `ranks: 1` has no gang,
and adds the micro-batches of a batch one after another."""
import contextlib
import os
import re
import signal
import subprocess
import time

from harness import BUILD, PATIENCE_S, Assay

EPOCHS = 60
# For a trial in which something happens: the first length at whose end all of it has happened. Most of a length is run
# after that, three times, so that it pays to begin with a short one: 100 epochs were enough beside much other work.
LONG = (400, 1200, 3600, 10800, 32400, 97200)


class Over(Exception):
    """The trial was over before all had happened that was to happen."""


def document(name, ranks, epochs=EPOCHS, **more):
    return {
        "name": name, "metric": {"name": "val_error", "goal": "minimize"},
        "parameters": {"lr": {"type": "categorical", "values": [0.05]}},
        "search": {"method": "random", "seed": 11}, "limits": {"max_trials": 1, "max_restarts": 3},
        "resources": {"ranks": ranks, **more}, "ensemble": False,
        "trial": {"train": {
            "dataset": "digits", "model": {"kind": "mlp", "layers": [64, 32], "dropout": 0.1},
            "optimizer": {"kind": "adamw", "lr": "${lr}"}, "epochs": epochs, "batch_size": 128, "micro_batch": 8,
            "validation": {"fraction": 0.2}}}}


def start(assay, name, ranks, **more):
    return assay.call("POST", "/v1/sweeps", document(name, ranks, **more))["id"]


def result(assay, sweep):
    """The digests of its files and its measurements."""
    assay.wait_ended(sweep)
    s, (trial,) = assay.check_exact(sweep, 1)
    assert trial["state"] == "completed", trial
    files = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0/artifacts")["items"]
    digests = {f["path"]: f["sha256"] for f in files}
    assert {"model.safetensors", "predictions.npy"} <= set(digests), digests
    series, cursor = [], ""
    while cursor is not None:
        page = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0/measurements" + (f"?cursor={cursor}" if cursor else ""))
        series.append(page["series"])
        cursor = page["next_cursor"]
    return digests, series, trial["value"]


def gang(assay, sweep, attempt=1):
    return assay.call("GET", f"/v1/sweeps/{sweep}/trials/0/attempts/{attempt}/gang")


def gang_at_work(assay, sweep):
    g = gang(assay, sweep)
    if g["state"] == "over":
        raise Over(f"{sweep}, at step {g['step']} after {g['deaths']} deaths")
    return g


def trains(assay, sweep, ranks, step=0, deaths=0):
    """The gang, once so many ranks are in its world, all connected, at this step or later, after so many deaths."""
    g = gang_at_work(assay, sweep)
    members = [s for s in g["seats"] if s["rank"] is not None]
    ok = (g["state"] == "running" and len(members) == ranks and (g["step"] or 0) >= step and g["deaths"] >= deaths and
          all(s["joined_epoch"] == g["epoch"] for s in members))
    return g if ok else None


def await_training(assay, sweep, ranks, step=0, deaths=0):
    return assay.wait(lambda: trains(assay, sweep, ranks, step, deaths),
                      f"{sweep}: {ranks} ranks at step {step} after {deaths} deaths")


def kill_rank(assay):
    for pid in assay.processes("assay-train")[:1]:  # there is none once the trial is over, which the next wait notices
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def seconds_to_next_world(assay, sweep, g):
    """From now until the members of a later epoch are connected; printed, not checked."""
    begin = time.monotonic()
    assay.wait(lambda: (n := gang_at_work(assay, sweep))["epoch"] > g["epoch"] and
               any(s["joined_epoch"] == n["epoch"] for s in n["seats"]), "the next world")
    return time.monotonic() - begin


def same_bits(assay):
    first = result(assay, start(assay, "ranks-2", 2))
    for ranks in (1, 3, 4):
        sweep = start(assay, f"ranks-{ranks}", ranks)
        assert result(assay, sweep) == first, sweep
        g = gang(assay, sweep)
        assert g["ranks"] == ranks and g["deaths"] == 0 and g["state"] == "over", g
        assert len(g["seats"]) == ranks, g
        assert len({s["runner"] for s in g["seats"]}) == min(ranks, 2), g
        log = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0/log")["text"]
        in_all = re.search(rf"rank 0 of {ranks}: .*, (\d+) in all", log)
        leader = next(s for s in g["seats"] if s["seat"] == 0)
        assert in_all and leader["sent_bytes"] == int(in_all[1]), (leader, log)  # to the end, not the last heartbeat
        assert all(s["step"] == g["step"] for s in g["seats"]), g


def faults(assay, epochs):
    """Each kind of death once, in one trial; every time the others go on, and new ranks come."""
    sweep = start(assay, "killed", 3, epochs=epochs)
    g = await_training(assay, sweep, 3, step=5)
    kill_rank(assay)
    print(f"a rank: {seconds_to_next_world(assay, sweep, g):.3f} s to the next world")
    g = await_training(assay, sweep, 3, deaths=1)
    assert g["deaths"] == 1, g
    os.kill(assay.processes("assayd")[0], signal.SIGKILL)
    g = await_training(assay, sweep, 3, step=(g["step"] or 0) + 1)
    assert g["deaths"] == 1, g  # between two worlds nobody needs the server
    victim = next(s["runner"] for s in g["seats"] if s["rank"] == 0)  # the leader's
    os.kill(runner_pid(assay, victim), signal.SIGKILL)
    g = await_training(assay, sweep, 3, step=(g["step"] or 0) + 1, deaths=2)  # the server hears of the death later
    assert g["sent_bytes"] > 0, g
    return sweep


def runner_pid(assay, name):
    for pid in assay.processes("assay-runner"):
        if name in open(f"/proc/{pid}/cmdline").read().split("\0"):
            return pid
    raise AssertionError(name)


@contextlib.contextmanager
def another_runner(assay, name, slots):
    """Beyond those of `assay up`."""
    work = os.path.join(assay.data, name)
    with open(os.path.join(assay.data, "logs", f"{name}.log"), "ab") as log:
        runner = subprocess.Popen(
            [os.path.join(BUILD, "trial-runner", "agent", "assay-runner"), "--name", name, "--slots", str(slots), "--work",
             work, "--cache", os.path.join(assay.data, "cache-" + name), "--gpus", "none", "--log-level", "debug"],
            env=assay.env, stderr=log, stdout=log)
        try:
            yield runner
        finally:
            runner.terminate()
            runner.wait()


def leaving(assay, epochs):
    """A runner that leaves takes its ranks out of the gang: nobody dies, no step is lost, others take their places."""
    with another_runner(assay, "guest", 2) as guest:
        assay.wait(lambda: any(r["name"] == "guest" for r in assay.call("GET", "/v1/runners")["items"]), "the guest")
        sweep = start(assay, "leaving", 6, epochs=epochs)  # all six slots
        g = await_training(assay, sweep, 6, step=5)
        assert sum(s["runner"] == "guest" for s in g["seats"]) == 2, g
        guest.send_signal(signal.SIGTERM)
        assert guest.wait(PATIENCE_S) == 0
        g = await_training(assay, sweep, 4, step=g["step"])
        assert g["deaths"] == 0 and [s["state"] for s in g["seats"] if s["runner"] == "guest"] == ["left"] * 2, g
    return sweep


def in_time(assay, run):
    """The run in a trial that is long enough, on any machine: the sweep and its epochs."""
    early = []
    for epochs in LONG:
        try:
            return run(assay, epochs), epochs
        except Over as e:
            early.append(str(e))
            print(f"over too early: {e}", flush=True)
            for s in assay.call("GET", "/v1/sweeps")["items"]:  # before the next one begins
                assay.wait_ended(s["id"])
    raise AssertionError(early)


def main():
    with Assay(runners=2, slots=2) as assay:
        assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")
        same_bits(assay)
        undisturbed = {}
        for run in (faults, leaving):
            sweep, epochs = in_time(assay, run)
            got = result(assay, sweep)
            if epochs not in undisturbed:
                undisturbed[epochs] = result(assay, start(assay, f"long-{epochs}", 2, epochs=epochs))
            assert got == undisturbed[epochs], (sweep, got[0], undisturbed[epochs][0])
            attempts = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0")["attempts"]
            assert len(attempts) == 1, attempts  # the trial never started again


main()
