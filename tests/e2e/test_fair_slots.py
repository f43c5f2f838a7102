#!/usr/bin/env python3
"""Slots, cores and machines are shared as docs/sweep.md says (Turns, Room), by real runners: three sweeps on two
slots, priorities, cores of their own, a machine for one trial, and what is too large for every runner."""
import ctypes
import fcntl
import os
import socket
import struct
import subprocess

from harness import ASSAY, Assay, Problem

CORES = len(os.sched_getaffinity(0))
# When it ran by the machine's clock, on how many cores and which is the first, and how many threads it may use.
PROBE = """
import json, os, sys, time
began = time.monotonic()
cores = sorted(os.sched_getaffinity(0))
time.sleep(float(sys.argv[1]))
values = {"loss": 1, "began": began, "cores": len(cores), "core": cores[0], "threads": int(os.environ["OMP_NUM_THREADS"]),
          "mkl": int(os.environ["MKL_NUM_THREADS"]), "ended": time.monotonic()}
print(json.dumps(values), file=open(os.environ["ASSAY_REPORT"], "a"))
"""


def own_network():
    """Runners hold cores by names in the machine's network (trial-runner/process/cores.c), so that trials of other tests
    take cores away from those of this one. In a network of its own nobody else holds any. Where the kernel refuses one,
    this test must run alone."""
    new_user, new_net, set_flags, is_up = 0x10000000, 0x40000000, 0x8914, 1
    ids = {"uid_map": os.geteuid(), "gid_map": os.getegid()}
    is_root = os.geteuid() == 0
    if ctypes.CDLL(None).unshare(new_net if is_root else new_user | new_net) != 0:
        print("no network of its own")
        return
    if not is_root:
        for name, text in {"setgroups": "deny", **{name: f"{n} {n} 1" for name, n in ids.items()}}.items():
            with open(f"/proc/self/{name}", "w") as f:
                f.write(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, set_flags, struct.pack("16sh", b"lo", is_up))


def create(assay, name, trials, seconds=0.2, env=None, **more):
    trial = {"command": ["python3", "-c", PROBE, str(seconds)], "env": env or {}}
    doc = {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "ensemble": False, "trial": trial,
           "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "search": {"method": "random", "seed": 1},
           "limits": {"max_trials": trials}, **more}
    return assay.call("POST", "/v1/sweeps", doc)["id"]


def ran(assay, sweep, trials):
    """What the trials of a sweep report, when all have completed."""
    assert assay.wait_ended(sweep)["counts"]["completed"] == trials, assay.trials(sweep)
    return [t["metrics"] for t in assay.trials(sweep)]


def overlap(a, b):
    return a["began"] < b["ended"] and b["began"] < a["ended"]


def check_shares(assay):
    """Sweeps that have work all the time are never more than a few trials apart, and all go on. What the first ones
    ran before the last one was there does not count."""
    names = [create(assay, f"share-{i}", 4000, seconds=0.05) for i in range(3)]

    def begun():
        counts = {s["id"]: s["counts"]["total"] for s in assay.call("GET", "/v1/sweeps")["items"]}
        return [counts[n] for n in names]
    before = begun()
    for ends in (12, 30, 48):
        found = assay.wait(lambda: sum(n := [b - a for a, b in zip(before, begun())]) >= ends and n, f"{ends} trials")
        assert max(found) - min(found) <= 3, found
    for n in names:
        assay.cli("cancel", n)
        assay.wait_ended(n)


def check_priority(assay):
    """Once the higher priority is there, the lower one begins no trial before all of that have begun."""
    low = create(assay, "low", 4000, seconds=0.1, priority=-1)
    high = create(assay, "high", 8, seconds=0.1, priority=3)
    ran(assay, high, 8)
    first, *_, last = sorted(t["started_at"] for t in assay.trials(high))
    between = [t for t in assay.trials(low) if first < t["started_at"] < last]
    assert not between, (first, last, between)
    assay.cli("pause", low)
    assert "low has priority 9" in (lambda p: p.stdout + p.stderr)(assay.cli("priority", low, "9"))
    assert assay.sweep(low)["priority"] == 9 == assay.sweep(low)["document"]["priority"]
    changes = assay.call("GET", f"/v1/sweeps/{low}/changes")["items"]
    assert {"priority": {"from": -1, "to": 9}} in [c["changes"] for c in changes], changes
    for bad in ("101", "high"):
        assert subprocess.run([ASSAY, "priority", low, bad], env=assay.env, capture_output=True).returncode != 0
    assay.cli("resume", low)
    before = assay.sweep(low)["counts"]["completed"]
    assay.wait(lambda: assay.sweep(low)["counts"]["completed"] > before + 4, "low to go on")
    assay.cli("cancel", low)
    assay.wait_ended(low)


def check_cores(assay):
    """Two runners with two slots each, and one machine: no two trials on one core, and no more than there are."""
    one = create(assay, "one-core", 10, resources={"cpus": 1, "memory": "1MiB"})
    own = create(assay, "own-threads", 2, env={"OMP_NUM_THREADS": "7"}, resources={"cpus": 1})
    all_of_it = create(assay, "all-cores", 2, resources={"cpus": CORES})
    tight, env, wide = ran(assay, one, 10), ran(assay, own, 2), ran(assay, all_of_it, 2)
    for m in tight + env:
        assert m["cores"] == 1 and m["mkl"] == 1, m
    assert {m["threads"] for m in tight} == {1} and {m["threads"] for m in env} == {7}, (tight, env)
    assert {(m["cores"], m["threads"]) for m in wide} == {(CORES, CORES)}, wide
    every = tight + env + wide
    for i, a in enumerate(every):
        beside = [b for b in every[:i] + every[i + 1:] if overlap(a, b)]
        assert all(b["core"] != a["core"] for b in beside), (a, beside)
        assert not beside or a not in wide, (a, beside)
    plain, = ran(assay, create(assay, "plain", 1), 1)
    assert (plain["cores"], plain["threads"]) == (CORES, 1), plain


def check_exclusive(assay):
    plain = create(assay, "beside", 12, seconds=0.1)
    alone = create(assay, "alone", 3, seconds=0.1, resources={"exclusive": True})
    quiet, others = ran(assay, alone, 3), ran(assay, plain, 12)
    for i, a in enumerate(quiet):
        assert not [b for b in others + quiet[:i] + quiet[i + 1:] if overlap(a, b)], (a, others)


def check_too_large(assay):
    """The sweep waits, and says why; the others go on."""
    wide = create(assay, "too-wide", 1, resources={"cpus": 4096})
    note = f"no runner has 4096 cpus (largest: {CORES})"
    assert assay.sweep(wide)["note"] == note and note in assay.cli("show", wide).stdout
    ran(assay, create(assay, "small", 2), 2)
    assert assay.sweep(wide)["counts"]["total"] == 0
    rows = [r.split("\t") for r in assay.cli("runners").stdout.splitlines()]
    at = rows[0].index("free cpus")
    assert [r[at] for r in rows[1:]] == [f"{CORES}/{CORES}"] * 2, rows
    assay.cli("cancel", wide)
    for resources in ({"cpus": 0}, {"memory": "much"}, {"exclusive": True, "ranks": 2}):
        try:
            create(assay, "refused", 1, resources=resources)
            raise AssertionError(f"{resources} is not refused")
        except Problem as e:
            assert e.status == 400 and e.body["errors"][0]["pointer"].startswith("/resources/"), e


def main():
    own_network()
    with Assay(runners=1, slots=2) as assay:
        check_shares(assay)
        check_priority(assay)
    with Assay(runners=2, slots=2) as assay:
        for check in (check_too_large, check_cores, check_exclusive):
            check(assay)


main()
