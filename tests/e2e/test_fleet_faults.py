#!/usr/bin/env python3
"""A fleet whose token is revoked, whose nodes vanish, whose clocks are minutes apart, and whose autoscaler loses its
server and its token: clear errors, each trial completes once, and no jobs are started in vain.

The cluster is the stand-in of kubernetes_api.py. Nodes are runners with a work folder each."""
import contextlib
import glob
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import urlsplit

from harness import ASSAY, BUILD, PATIENCE_S, SOURCE, Assay
from kubernetes_api import Cluster
from test_fleet_kubernetes import RUNNER, Company

sys.path.insert(0, os.path.join(SOURCE, "tests", "chaos"))
from cluster import Control, shim_env  # noqa: E402

LEASE_S = 5
MINUTES_NS = 60 * 10**9
# First attempts stay until they are killed; the others say their number, and complete.
SCRIPT = """[ "$ASSAY_ATTEMPT" -gt 1 ] || exec sleep 600
echo '{"loss": '$ASSAY_ATTEMPT'}' >> "$ASSAY_REPORT"
"""


def document(name, trials, script=SCRIPT):
    return {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "ensemble": False,
            "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "search": {"method": "random", "seed": 1},
            "limits": {"max_trials": trials, "max_restarts": 5, "grace": "1s"}, "trial": {"command": ["sh", "-c", script]}}


class Node:
    """A runner with its token, its folder, and a wall clock that is `minutes` away from the server's."""

    def __init__(self, assay, folder, name, slots=2, minutes=0):
        self.assay, self.name, self.folder = assay, name, os.path.join(folder, name)
        os.makedirs(self.folder)
        made = assay.call("POST", "/v1/tokens", {"role": "runner", "name": name})
        self.token_id = made["id"]
        token = os.path.join(self.folder, "token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(made["token"])
        env = {**os.environ, **clock_env(self.folder, minutes), "ASSAY_SERVER": assay.url, "ASSAY_TOKEN_FILE": token}
        self.log = os.path.join(self.folder, "log")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([RUNNER, "--name", name, "--work", os.path.join(self.folder, "work"), "--slots", str(slots),
                                             "--gpus", "none"], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def tree(self):
        """It and all its descendants."""
        parents = {}
        for path in glob.glob("/proc/[0-9]*/stat"):
            with contextlib.suppress(OSError):
                text = open(path).read()
                parents[int(text.split(" ", 1)[0])] = int(text.rsplit(")", 1)[1].split()[1])
        found, more = set(), {self.process.pid}
        while more:
            found |= more
            more = {pid for pid, parent in parents.items() if parent in found} - found
        return found

    def vanish(self):
        """As a node that loses its power: every process at once, and its disk."""
        for pid in self.tree():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder)

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(PATIENCE_S)


def clock_env(folder, minutes):
    control = Control(os.path.join(folder, "control"))
    control.set(offset_ns=minutes * MINUTES_NS)
    return shim_env(os.path.join(BUILD, "tests", "chaos", "chaos.so"), control, folder, "/nowhere", "/nowhere") if minutes else {}


def trials_of(assay, sweep):
    listed = assay.call("GET", f"/v1/sweeps/{sweep}/trials?page_size=100")["items"]
    return [assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}") for t in listed]


def running_on(assay, sweep, names):
    return sorted(t["runner"] for t in trials_of(assay, sweep) if t["state"] == "running") == sorted(names)


def nodes_that_are_lost(assay, folder):
    """Two trials on a node whose token is revoked, two on one that vanishes. Others take all four, after the lease, on a
    machine whose clock is seven minutes behind; the first two were on one that is seven minutes ahead."""
    sweep = assay.call("POST", "/v1/sweeps", document("lost", 4))["id"]
    revoked = Node(assay, folder, "revoked", minutes=7)
    assay.wait(lambda: running_on(assay, sweep, ["revoked"] * 2), "two trials")
    vanished = Node(assay, folder, "vanished")
    rest = None
    try:
        assay.wait(lambda: running_on(assay, sweep, ["revoked"] * 2 + ["vanished"] * 2), "four trials")
        began = {t["number"]: t["attempts"][0]["started_at"] for t in trials_of(assay, sweep)}
        assay.call("DELETE", f"/v1/tokens/{revoked.token_id}")
        vanished.vanish()
        rest = Node(assay, folder, "rest", slots=1, minutes=-7)
        assay.wait_ended(sweep)
        assert revoked.process.wait(PATIENCE_S) == 4, revoked.process.returncode
        log = open(revoked.log).read()
        assert "leaving" in log and 'error="the server refuses this runner\'s token: ' in log, log
        assert revoked.tree() == {revoked.process.pid}
        trials = trials_of(assay, sweep)
        for t in trials:
            outcomes = [a["outcome"] for a in t["attempts"]]
            assert t["state"] == "completed" and outcomes[0] == "lost" and outcomes.count("completed") == 1, t
            assert t["value"] == t["attempt"] == len(outcomes) and t["runner"] == "rest", t
            # Times are the server's, whatever the clock of the node says.
            assert began[t["number"]] < t["finished_at"] and t["attempts"][0]["started_at"] < t["attempts"][-1]["started_at"], t
        assert [t["number"] for t in trials] == [0, 1, 2, 3]
        states = {r["name"]: r["state"] for r in assay.call("GET", "/v1/runners")["items"]}
        assert states == {"revoked": "lost", "vanished": "lost", "rest": "live"}, states
    finally:
        for node in filter(None, (revoked, vanished, rest)):
            node.end()
    print("a revoked token, a node that vanished, and clocks fourteen minutes apart", flush=True)


class Way:
    """A way to the server that can be cut: a port that passes on what comes, while it is open."""

    def __init__(self, url):
        self.to = (urlsplit(url).hostname, urlsplit(url).port)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.url, self.is_open, self.thread = f"http://127.0.0.1:{self.port}", False, None

    def open(self):
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.is_open = True
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def cut(self):
        self.is_open = False
        self.thread.join()
        self.listener.close()

    def serve(self):
        ends = {}
        while self.is_open:
            for s in select.select([self.listener, *ends], [], [], 0.02)[0]:
                if s is self.listener:
                    near, far = s.accept()[0], socket.create_connection(self.to)
                    ends.update({near: far, far: near})
                    continue
                if s not in ends:  # its other end was closed in this round
                    continue
                text = s.recv(65536)
                if text:
                    ends[s].sendall(text)
                else:
                    for end in (s, ends[s]):
                        del ends[end]
                        end.close()
        for end in ends:
            end.close()


@contextlib.contextmanager
def autoscaled(c, url, *args):
    path = os.path.join(c.assay.data, "autoscale.log")
    with open(path, "wb") as out:
        p = subprocess.Popen([ASSAY, "autoscale", "ml", "--cool-down", "300ms", "--every", "500ms", "--idle", "1s", *args],
                             env={**c.env, "ASSAY_SERVER": url}, stdout=out, stderr=out)
    try:
        yield lambda: open(path).read()
    except BaseException:
        print(open(path).read(), file=sys.stderr)
        raise
    finally:
        p.send_signal(signal.SIGINT)
        assert p.wait(PATIENCE_S) in (0, 2), open(path).read()


def runs(c):
    return [p for pods in list(c.cluster.pods.values()) for p in pods if p.process.poll() is None]


def made_jobs(c):
    return sum(method == "POST" and "/jobs" in path for method, path in c.cluster.requests)


def the_server_is_away(c, folder):
    """At the start, and again while something waits. The clock of this machine is seven minutes ahead."""
    way = Way(c.assay.url)
    c.launch("--runners", "0")
    clock = os.path.join(folder, "autoscaler")
    os.mkdir(clock)
    c.env, kept = {**c.env, **clock_env(clock, 7)}, c.env
    with autoscaled(c, way.url, "--max", "2") as log:
        c.assay.wait(lambda: "cannot reach" in log() or "connect" in log(), "a word that the server is away")
        way.open()
        c.assay.wait(lambda: "nothing waits; 0 jobs" in log(), "a first look")
        way.cut()
        lines = log().count("\n")
        sweep = c.assay.call("POST", "/v1/sweeps", document("away", 2, 'echo \'{"loss": 1}\' >> "$ASSAY_REPORT"'))["id"]
        c.assay.wait(lambda: log().count("\n") > lines, "another word")
        assert made_jobs(c) == 0 and "start" not in log(), log()
        way.open()
        c.assay.wait_ended(sweep)
        c.assay.wait(lambda: not runs(c), "the end of all jobs")
        assert "start 2" in log() and log().count("start ") == 1 and made_jobs(c) == 2, log()
    way.cut()
    c.env = kept
    print("the server was away while autoscale ran", flush=True)


def jobs_that_die(c):
    """Their image has a program that fails. They are tried less and less often."""
    before = made_jobs(c)
    sweep = c.assay.call("POST", "/v1/sweeps", document("dies", 1))["id"]
    c.cluster.entrypoint = "/bin/false"
    with autoscaled(c, c.assay.url, "--max", "1") as log:
        c.assay.wait(lambda: made_jobs(c) - before >= 3, "a third try")
        began, tried = time.monotonic(), made_jobs(c)
        assert "1 ended before their runners had registered" in log() and "backing off" in log(), log()
        time.sleep(2)  # bounds the rate from above: the next pauses are 2.4 s and 4.8 s; without them there are two a second
        assert made_jobs(c) - tried <= 1 + (time.monotonic() - began) / 2.4, log()
    c.cluster.entrypoint = RUNNER
    c.assay.call("PATCH", f"/v1/sweeps/{sweep}", {"state": "cancelled"})
    print("jobs that die at their start", flush=True)


def the_token_is_revoked(c):
    """Autoscale starts no jobs with it, and says how to make another one; with that it goes on by itself."""
    before = made_jobs(c)
    [token] = [t["id"] for t in c.assay.call("GET", "/v1/tokens")["items"] if t["name"] == "fleet ml" and not t.get("revoked_at")]
    c.assay.call("DELETE", f"/v1/tokens/{token}")
    sweep = c.assay.call("POST", "/v1/sweeps", document("revoked", 1, 'echo \'{"loss": 1}\' >> "$ASSAY_REPORT"'))["id"]
    with autoscaled(c, c.assay.url, "--max", "1") as log:
        c.assay.wait(lambda: "refuses the token of the runners" in log(), "a word of the token")
        assert made_jobs(c) == before, log()
        said = c.launch("--runners", "0").stderr
        assert "The token of the runners is in" in said, said
        c.assay.wait_ended(sweep)
        assert made_jobs(c) == before + 1, log()
        c.assay.wait(lambda: not runs(c), "the end of the job")
    print("a token that was revoked while autoscale ran", flush=True)


def main():
    folder = tempfile.mkdtemp(prefix="assay-faults-", dir="/var/tmp")
    try:
        with Assay(runners=0, args=["--lease", f"{LEASE_S}s", "--heartbeat", "500ms"]) as assay:
            nodes_that_are_lost(assay, folder)
            with Cluster(os.path.join(folder, "pods"), RUNNER) as cluster:
                c = Company(assay, cluster, folder)
                the_server_is_away(c, folder)
                jobs_that_die(c)
                the_token_is_revoked(c)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
