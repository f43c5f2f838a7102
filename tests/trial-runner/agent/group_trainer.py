#!/usr/bin/python3
"""Stands in for assay-train in the faults that the real one does not have: it speaks
trial-runner/protocol/control.h and does with each member what its train document says in "do"."""
import json
import os
import signal
import socket
import sys
import time

import gates

control = socket.socket(fileno=0)
job = json.load(open(sys.argv[1]))
members = {}
print(f"slots {job['slots']} gpus {os.environ['CUDA_VISIBLE_DEVICES']}", flush=True)
open(job["dataset"]["paths"]["table"]).read()


def say(**event):
    control.sendall((json.dumps(event) + "\n").encode())


def end(member, code, error=None):
    del members[member["id"]]
    say(event="ended", id=member["id"], exit=code, **({"error": error} if error else {}))


def begin(member):
    members[member["id"]] = member
    what = member["train"]["do"]
    say(event="started", id=member["id"], step=0)
    with open(member["report"], "a") as f:
        f.write(json.dumps({"step": 1, "loss": os.getpid()}) + "\n")
    with open(os.path.join(member["artifacts"], "seed"), "w") as f:
        f.write(member["seed"])
    say(event="log", id=member["id"], text=f"only {member['id']}")
    if what == "train":
        end(member, 0)
    elif what == "linger":
        while not os.path.exists(os.path.join(member["artifacts"], "go")):
            time.sleep(0.02)
        end(member, 0)
    elif what == "measure":
        end(member, 0)
        say(event="throughput", members=8, rows_per_second=1e6)
    elif what == "checkpoint":
        gates.checkpoint_after_a_line(member["checkpoints"], member["report"])
        end(member, 0)
    elif what == "fail":
        end(member, 1, "the loss is not finite")
    end_the_group()


def end_the_group():
    """A member that ends its group does it when another one has begun beside it: one that had not would be released, and
    not tried again. The runner adds members in the order in which they are prepared."""
    what = {m["train"]["do"] for m in members.values()} if len(members) > 1 else set()
    if "crash" in what:
        print("about to crash", end="", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    elif "garbage" in what:
        control.sendall(b"{\"event\": 3}\n")
    elif "leave" in what:
        sys.exit(0)


def obey(request):
    if request["op"] == "add":
        begin(request["member"])
    elif request["op"] == "close":
        global closed
        closed = True
    elif members[request["id"]]["train"]["do"] != "deaf":
        member = members[request["id"]]
        if request["op"] == "stop":
            with open(os.path.join(member["checkpoints"], "state"), "w") as f:
                f.write("saved")
        end(member, 75)


say(event="ready", bytes_per_member=1000, bytes_shared=10, flops_per_step=5, threads=1)
closed, pending = False, b""
while not (closed and not members):
    got = control.recv(65536)
    if not got:
        sys.exit(75)
    pending += got
    *lines, pending = pending.split(b"\n")
    for line in lines:
        obey(json.loads(line))
