#!/usr/bin/env python3
"""Runs a test for `./dev cost`, and adds a line to ASSAY_COST: processor seconds of the test and of all that it starts, PostgreSQL
and runners that outlive their parents too (this process adopts them), how many of them are the system's, seconds by the
clock, page faults in thousands, the test."""
import contextlib
import ctypes
import os
import resource
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
ORPHANS_S = 3


def main():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    begin, child = time.monotonic(), os.spawnvp(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(child, number))
    ended = code = None
    while ended is None or time.monotonic() < ended + ORPHANS_S:
        try:
            pid, status = os.waitpid(-1, 0 if ended is None else os.WNOHANG)
        except ChildProcessError:
            break
        if pid == child:
            ended, code = time.monotonic(), os.waitstatus_to_exitcode(status)
        elif pid == 0:
            time.sleep(0.02)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [os.path.basename(w) for w in sys.argv[1:] if not w.startswith("-")]
    name = " ".join(w for w in words if w not in ("python3", "node"))
    with open(os.environ["ASSAY_COST"], "a", encoding="utf-8") as f:
        f.write(f"{used.ru_utime + used.ru_stime:8.2f} {used.ru_stime:8.2f} {ended - begin:8.1f} {used.ru_minflt // 1000:6}  {name}\n")
    if code < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
