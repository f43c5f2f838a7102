"""What clients and trials write down themselves, so that nobody has to believe the service: lines of JSON, each one
write with O_APPEND, on disk (fsync) before its writer goes on. Times are milliseconds of CLOCK_MONOTONIC.

  {"event": "begin" | "step" | "end", "trial": "SWEEP/N", "attempt", "rank", "pid"}    a trial's process (trial.c)
  {"event": "got",    "trial", "attempt", "client"}                a client or a no-op runner was handed it
  {"event": "tells",  "trial", "attempt", "outcome", "value"}      it is about to report this end
  {"event": "acked",  "trial", "attempt", "outcome", "value", "state"}   and was answered with 2xx
  {"event": "refused", "trial", "attempt", "outcome", "status"}    or with 4xx
  {"event": "points", "trial", "attempt", "items": [[step, value], …]}   measurements that were acknowledged
  {"event": "made",   "sweep", "kind"}                             a sweep whose creation was acknowledged"""
import json
import os
import threading
import time


def now_ms():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000000


class Writer:
    """One file; several threads. The fsync of one serves all lines before it."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.mutex = threading.Lock()

    def add(self, event, **more):
        line = json.dumps({"t": now_ms(), "event": event, **more}) + "\n"
        with self.mutex:
            os.write(self.fd, line.encode())
            os.fsync(self.fd)


def has_end(lines, attempts, since_ms):
    """Was one of these attempts (trial, number) reported since then, and acknowledged as completed?"""
    wanted = {(trial, int(number)) for trial, number in attempts}
    told = {(x["trial"], x["attempt"]) for x in lines if x["event"] == "tells" and x["t"] > since_ms} & wanted
    return any(x["event"] == "acked" and x["outcome"] == "completed" and (x["trial"], x["attempt"]) in told for x in lines)


def read(folder):
    """All whole lines of all files of the folder, in the order of time."""
    lines = []
    for name in os.listdir(folder):
        with open(os.path.join(folder, name)) as f:
            lines += [json.loads(line) for line in f if line.endswith("\n")]
    return sorted(lines, key=lambda line: line["t"])
