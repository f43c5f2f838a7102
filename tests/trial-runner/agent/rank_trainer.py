#!/usr/bin/python3
"""Stands in for a rank of assay-train in what the real one does not do on demand: it speaks
trial-runner/protocol/ranks.h, and does what its train document says in "do". It reports who it is with
step 1, and each epoch that it joins with a step of 10 times the epoch."""
import json
import os
import signal
import socket
import sys

import gates

runner = socket.socket(fileno=0)
job = json.load(open(sys.argv[1]))
what = job["train"]["do"]
signal.signal(signal.SIGTERM, lambda *_: say(event="terminated"))


def say(**event):
    runner.sendall((json.dumps(event) + "\n").encode())


def report(**line):
    with open(os.environ["ASSAY_REPORT"], "a") as f:
        f.write(json.dumps(line) + "\n")


def checkpoint(text):
    path = os.path.join(os.environ["ASSAY_CHECKPOINTS"], "state")
    with open(path + ".tmp", "w") as f:
        f.write(text)
    os.rename(path + ".tmp", path)


report(step=1, loss=os.getpid())
say(event="listening", endpoint=f"{job['listen']}:{10000 + os.getpid() % 50000} pid={os.getpid()}")
for line in runner.makefile():
    order = json.loads(line)
    if order["op"] == "stop":
        checkpoint("stopped")
        sys.exit(75)
    epoch, rank = order["epoch"], order["rank"]
    say(event="joined", epoch=epoch, step=10 * epoch)
    say(event="progress", step=10 * epoch + 1, sent_bytes=100 * epoch)
    report(step=10 * epoch, loss=len(order["peers"]))
    if what == "accuse" and epoch == 2:  # rank 2 of another machine
        say(event="lost", epoch=epoch, rank=2)
    if what == "checkpoint" and rank == 0:
        gates.checkpoint_after_a_line(os.environ["ASSAY_CHECKPOINTS"], os.environ["ASSAY_REPORT"])
        sys.exit(0)
    if what == "garbage" and rank == 1:
        runner.sendall(b'{"event": "dancing"}\n')
    if what == "complete" and epoch == 1:
        sys.exit(0)
    if what == "fail" and rank == 1:
        print("the loss is not finite", flush=True)
        sys.exit(1)
