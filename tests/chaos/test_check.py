#!/usr/bin/env python3
"""Each promise of check.py is found when it is broken, in a small history that is otherwise whole; the schedule of a
seed is always the same; what was not synced is taken back, and nothing else."""
import copy
import os
import random
import struct
import sys
import tempfile
import time

import check
import cluster
import faults


class Exported:
    """What check.Export has, of one sweep of two trials: 0 completed in its second attempt, 1 failed."""

    def __init__(self):
        at, later = (time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + s)) for s in (0, 1))
        params = [{"x": 0.5, "y": 0.25}, {"x": 0.1, "y": 0.2}]
        self.sweeps = {"s": {"state": "completed", "planned_trials": 2, "limits": {"max_restarts": 1},
                             "counts": {"queued": 0, "running": 0, "completed": 1, "failed": 1, "total": 2}}}
        self.trials = {
            "s/0": {"kind": "grid", "state": "completed", "attempt": 2, "restarts": 1, "params": params[0], "value": 0.3125,
                    "attempts": [{"attempt": 1, "outcome": "lost", "started_at": at, "ended_at": at},
                                 {"attempt": 2, "outcome": "completed", "started_at": later, "ended_at": later}]},
            "s/1": {"kind": "grid", "state": "failed", "attempt": 1, "restarts": 0, "params": params[1], "value": None,
                    "attempts": [{"attempt": 1, "outcome": "failed", "started_at": at, "ended_at": at}]}}
        self.points = {"s/0": {0: 1.5, 1: 0.3125}, "s/1": {}}

    def measured(self, trial):
        return self.points[trial]


def history():
    def line(event, **more):
        return {"t": 1, "event": event, "trial": "s/0", "attempt": 2, **more}
    return [{"t": 0, "event": "made", "sweep": "s", "kind": "grid"}, line("begin", attempt=1, rank=0, t=0), line("begin", rank=0),
            line("points", items=[[0, 1.5]]), line("step", step=0), line("end", rank=0, exit=0, value=0.3125),
            line("tells", outcome="completed", value=0.3125), line("acked", outcome="completed", value=0.3125),
            line("begin", trial="s/1", attempt=1, rank=0), line("acked", trial="s/1", attempt=1, outcome="failed", value=None)]


def gone(e, h):
    e.sweeps["s"] = None


def other_value(e, h):
    e.trials["s/0"]["value"] = 0.5


def no_end(e, h):
    e.trials["s/1"]["attempts"][0]["outcome"] = None


def no_point(e, h):
    del e.points["s/0"][0]


def two_ends(e, h):
    e.trials["s/0"]["attempts"][0]["outcome"] = "completed"


def two_acks(e, h):
    h.append({**h[7], "attempt": 1})


def a_gap(e, h):
    del e.trials["s/0"]["attempts"][0]


def backwards(e, h):
    e.trials["s/0"]["attempts"][0]["started_at"] = "2999-01-01T00:00:00.000Z"


def begun_twice(e, h):
    h.append({**h[2], "pid": 7})


def unknown_attempt(e, h):
    h.append({**h[2], "attempt": 3})


def too_many(e, h):
    e.sweeps["s"]["planned_trials"] = 1


def too_many_restarts(e, h):
    e.trials["s/0"]["restarts"] = 2


def wrong_count(e, h):
    e.sweeps["s"]["counts"]["completed"] = 2


def not_ended(e, h):
    e.sweeps["s"]["state"] = "running"


def cell_twice(e, h):
    e.trials["s/1"]["params"] = e.trials["s/0"]["params"]


def another_said_it(e, h):
    h[5]["attempt"] = h[6]["attempt"] = 1


def long_alone(e, h):
    h[4]["t"] = check.now_ms() + 10 ** 7


BROKEN = {
    gone: "acknowledged: sweep", other_value: "acknowledged: s/0 completed", no_end: "acknowledged: the end",
    no_point: "acknowledged: measurements", two_ends: "one end: s/0 is completed with 2", two_acks: "one end: s/0 was acknowledged",
    a_gap: "attempts: those of", backwards: "attempts: those of s/0 began at", begun_twice: "attempts: attempt 2 of s/0 (rank 0)",
    unknown_attempt: "attempts: attempt 3 of s/0 was handed out", too_many: "limit: s has 2", too_many_restarts: "limit: s/0 used 2",
    wrong_count: "counts: s says", not_ended: "ends: s is running", cell_twice: "ends: a cell", another_said_it: "values: s/0",
    long_alone: "lease: attempt 2"}


def check_promises():
    assert check.check(Exported(), history()) == [], check.check(Exported(), history())
    for harm, begin in BROKEN.items():
        e, h = Exported(), copy.deepcopy(history())
        harm(e, h)
        if harm is gone:
            e.trials = {}
        found = check.check(e, h)
        assert any(text.startswith(begin) for text in found), (harm.__name__, found)


def check_schedule():
    kinds = sorted(faults.KINDS)
    plan = faults.schedule(7, 60, kinds, 6, 2.5)
    assert plan == faults.schedule(7, 60, kinds, 6, 2.5) != faults.schedule(8, 60, kinds, 6, 2.5)
    assert {kind for _, kind, _ in faults.schedule(7, 120, kinds, 6, 2.5)} == set(kinds)


def check_take_back():
    """A file of 2 KiB whose second KiB was overwritten, and that grew, since its last sync."""
    with tempfile.TemporaryDirectory() as folder:
        root, undo = os.path.join(folder, "root"), os.path.join(folder, "undo")
        os.mkdir(root)
        os.mkdir(undo)
        path = os.path.join(root, "file")
        with open(path, "wb") as f:
            f.write(b"a" * 1024 + b"b" * 1024 + b"c" * 100)

        def log():
            with open(os.path.join(undo, str(os.stat(path).st_ino)), "wb") as f:
                f.write(struct.pack("=qq", 16, 2048) + struct.pack("=qq", 1024, 1024) + b"A" * 1024)
        log()
        assert cluster.take_back(root, undo, random.Random(1), False) == 1124
        assert open(path, "rb").read() == b"a" * 1024 + b"A" * 1024 and os.listdir(undo) == []


check_promises()
check_schedule()
check_take_back()
sys.exit(0)
