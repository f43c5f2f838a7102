#!/usr/bin/env python3
"""Programs whose world begins again with who is left (resources.min_ranks below ranks): a process is killed, a runner
is killed, and neither uses a restart of the trial. The program is a ring of sockets that its ranks make by the
environment."""
import contextlib
import json
import os
import signal
import subprocess
import sys

from harness import BUILD, Assay

# Each rank connects to rank 0, which counts them, and says so. Rank 0 reports a step and keeps it as a checkpoint; all
# wait for the gate of their world: a file named after its attempt, or "end".
RING = """import json, os, socket, sys, time
rank, n, gate = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), sys.argv[1]
at = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
assert os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and 0 <= rank < n
kept = os.path.join(os.environ["ASSAY_CHECKPOINTS"], "step")
step = int(open(kept).read()) if os.path.exists(kept) else 0
if rank == 0:
    server = socket.create_server(at)
    peers = [server.accept()[0] for _ in range(n - 1)]
    assert sorted(int(p.recv(10)) for p in peers) == list(range(1, n))
    for p in peers:
        p.sendall(b"all")
    open(os.environ["ASSAY_REPORT"], "a").write(json.dumps({"step": step + 1, "loss": n, "world": n}) + "\\n")
    with open(kept + ".new", "w") as f:
        f.write(str(step + 1))
    os.rename(kept + ".new", kept)
else:
    end = time.monotonic() + 200
    while True:
        try:
            link = socket.create_connection(at)
            break
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.02)
    link.sendall(b"%d" % rank)
    assert link.recv(3) == b"all"
open(os.path.join(gate, "in-%s-%d" % (os.environ["ASSAY_ATTEMPT"], rank)), "w").write(str(os.getpid()))
while not os.path.exists(os.path.join(gate, "end")):
    time.sleep(0.02)
"""


@contextlib.contextmanager
def guest(assay, name):
    """A runner of one slot that nobody starts again."""
    work = os.path.join(assay.data, name)
    with open(os.path.join(assay.data, name + ".out"), "wb") as log:
        runner = subprocess.Popen(
            [os.path.join(BUILD, "trial-runner", "agent", "assay-runner"), "--name", name, "--slots", "1", "--work", work,
             "--cache", work + "-cache", "--gpus", "none"], env=assay.env, stdout=log, stderr=log)
        try:
            yield runner
        finally:
            runner.kill()
            runner.wait()


def world(assay, sweep, gate, attempt, n):
    """The pids of a world in which all have met, by rank."""
    def met():
        names = [os.path.join(gate, f"in-{attempt}-{r}") for r in range(n)]
        found = [open(p).read() for p in names if os.path.exists(p)]
        return len(found) == n and all(found) and [int(p) for p in found]
    pids = assay.wait(met, f"{n} ranks of attempt {attempt}")
    gang = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0/attempts/{attempt}/gang")
    assert gang["ranks"] == n and gang["min_ranks"] == 2 and not gang["elastic"], gang
    return pids, gang


def main():
    with Assay(runners=1, slots=2, args=["--lease", "4s", "--heartbeat", "1s"]) as assay, guest(assay, "guest") as runner:
        gate = os.path.join(assay.data, "gate")
        os.mkdir(gate)
        assay.wait(lambda: any(r["name"] == "guest" for r in assay.call("GET", "/v1/runners")["items"]), "the guest")
        sweep = assay.call("POST", "/v1/sweeps", {
            "name": "ring", "metric": {"name": "loss", "goal": "minimize"}, "ensemble": False,
            "parameters": {"x": {"type": "categorical", "values": [1]}}, "search": {"method": "grid"},
            "limits": {"max_restarts": 0, "grace": "5s"}, "resources": {"ranks": 3, "min_ranks": 2},
            "trial": {"command": [sys.executable, "-c", RING, gate], "directory": assay.data}})["id"]
        files = f"/v1/sweeps/{sweep}/trials/0/artifacts?kind=checkpoint"
        pids, _ = world(assay, sweep, gate, 1, 3)
        assay.wait(lambda: assay.call("GET", files)["items"], "the checkpoint")
        os.kill(pids[1], signal.SIGKILL)  # a process: its slot is free at once, and three begin again
        pids, gang = world(assay, sweep, gate, 2, 3)
        assert any(s["runner"] == "guest" for s in gang["seats"]), gang
        runner.kill()  # a runner with its process: two are left
        world(assay, sweep, gate, 3, 2)
        open(os.path.join(gate, "end"), "w").close()
        assay.wait_ended(sweep)
        trial = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0")
        assert trial["state"] == "completed" and trial["restarts"] == 0 and trial["attempt"] == 3, trial
        assert trial["value"] == 2, trial
        print(json.dumps([(a["attempt"], a["outcome"], a["reason"]) for a in trial["attempts"]]), flush=True)


main()
