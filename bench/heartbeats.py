#!/usr/bin/env python3
"""Heartbeats of a runner while the server is attacked: p50, p99 and the longest, on a connection that is kept and on
new ones, for each attack, beside an idle server. The floor is GET /healthz on a kept connection, at the same time: it
needs an I/O thread only. All from one address, the programs as they are, a private PostgreSQL.

    bench/heartbeats.py [--build DIR] [--seconds N] [ATTACK…]     --help lists the attacks

One line of JSON per attack, in milliseconds. `rss_mb` is what assayd has in memory during the attack and when it has
been over for a few seconds. The goal is a p99 of 250 ms at most. As root the clients that measure take the processor
before the others, so that they measure the server."""
import argparse
import asyncio
import contextlib
import http.client
import json
import multiprocessing
import os
import random
import socket
import string
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SWEEPS, DOCUMENT_BYTES, TRIALS = 24, 400_000, 2000
AFTER_S = 4


# ---- attacks: each a coroutine that runs until it is killed ----

class Target:
    """What attackers know: the address of the server and a token."""

    def __init__(self, port, token):
        self.port, self.token = port, token

    def head(self, method, path, token=None, **headers):
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token or self.token}"]
        return ("\r\n".join(lines + [f"{k.replace('_', '-')}: {v}" for k, v in headers.items()]) + "\r\n\r\n").encode()


async def read_answer(reader):
    """Read one answer to its end; its head."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            await reader.readexactly(int(line.split(b":")[1]))
    return head


async def repeat(target, make_request, pause_s=0.0):
    """One client: requests one after the other, on a connection that is opened again when it ends."""
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            reader, writer = await asyncio.open_connection("127.0.0.1", target.port, limit=1 << 26)
            try:
                while True:
                    writer.write(make_request())
                    await writer.drain()
                    await read_answer(reader)
                    await asyncio.sleep(pause_s)
            finally:
                writer.close()
        await asyncio.sleep(0.01)


async def lists(target):
    """24 readers of lists of large documents and of trials."""
    paths = ["/v1/sweeps?include=document&page_size=100", "/v1/sweeps/many/trials?page_size=1000", "/v1/sweeps?page_size=100"]
    await asyncio.gather(*(repeat(target, lambda p=paths[i % 3]: target.head("GET", p)) for i in range(24)))


async def silent(target):
    """6,000 connections that send nothing, opened again as soon as they are closed."""
    async def one():
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
                try:
                    await reader.read(1)
                finally:
                    writer.close()
            await asyncio.sleep(0.5)
    await asyncio.gather(*(one() for _ in range(6000)))


async def uploads(target):
    """256 uploads that send 2 kB in a second each."""
    async def one():
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", target.port)
                try:
                    digest = "".join(random.choices("0123456789abcdef", k=64))
                    writer.write(target.head("PUT", f"/v1/blobs/{digest}", Content_Length=100_000_000))
                    while True:
                        writer.write(os.urandom(2000))
                        await writer.drain()
                        await asyncio.sleep(1)
                finally:
                    writer.close()
            await asyncio.sleep(0.1)
    await asyncio.gather(*(one() for _ in range(256)))


async def tokens(target):
    """64 clients that guess tokens."""
    letters = string.ascii_letters + string.digits

    def guess():
        return target.head("GET", "/v1/sweeps", token="assay_admin_" + "".join(random.choices("0123456789abcdefghij", k=12)) +
                           "_" + "".join(random.choices(letters, k=43)))
    await asyncio.gather(*(repeat(target, guess) for _ in range(64)))


async def streams(target):
    """500 event streams, and 4 clients that cause events."""
    async def one():
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
                try:
                    writer.write(target.head("GET", "/v1/events"))
                    while await reader.read(65536):
                        pass
                finally:
                    writer.close()
            await asyncio.sleep(0.5)

    def change():
        body = json.dumps({"limits": {"max_trials": random.randint(10_000, 20_000)}}).encode()
        return target.head("PATCH", "/v1/sweeps/many", Content_Type="application/merge-patch+json",
                           Content_Length=len(body)) + body
    await asyncio.gather(*(one() for _ in range(500)), *(repeat(target, change) for _ in range(4)))


async def bodies(target):
    """16 clients that send documents of 1 MB with many values, which are refused."""
    body = json.dumps({"name": "x", "parameters": [[i] * 3 for i in range(30_000)], "other": "x" * 500_000}).encode()
    request = target.head("POST", "/v1/sweeps", Content_Type="application/json", Content_Length=len(body)) + body
    await asyncio.gather(*(repeat(target, lambda: request) for _ in range(16)))


async def queries(target):
    """16 clients whose requests compute: importance, fronts, sorted lists, metrics."""
    paths = ["/v1/sweeps/many/importance", "/v1/sweeps/many/pareto", "/metrics",
             "/v1/sweeps/many/trials?sort=value&order=desc&page_size=1000"]
    await asyncio.gather(*(repeat(target, lambda p=paths[i % 4]: target.head("GET", p)) for i in range(16)))


async def ready(target):
    """64 clients without a token that ask /readyz."""
    await asyncio.gather(*(repeat(target, lambda: target.head("GET", "/readyz")) for _ in range(64)))


async def idle(target):
    """Nothing."""
    await asyncio.sleep(3600)


ATTACKS = [idle, lists, silent, uploads, tokens, streams, bodies, queries, ready]


def attack(run, port, token):
    import resource
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(run(Target(port, token)))


# ---- measuring ----

class Probe(threading.Thread):
    """Sends a request every 50 ms, and notes how long each took. `fresh`: on new connections."""

    def __init__(self, port, method, path, body, headers, fresh=False):
        super().__init__(daemon=True)
        self.port, self.request, self.fresh = port, (method, path, body, headers), fresh
        self.times, self.failures, self.is_over = [], 0, threading.Event()

    def connect(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def run(self):
        method, path, body, headers = self.request
        connection = None
        while not self.is_over.is_set():
            begin = time.perf_counter()
            try:
                connection = connection or self.connect()
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                answer.read()
                self.failures += answer.status != 200
            except (OSError, http.client.HTTPException):
                self.failures += 1
                connection = None
            self.times.append((time.perf_counter() - begin) * 1e3)
            if self.fresh and connection:
                connection.close()
                connection = None
            self.is_over.wait(0.05)

    def figures(self):
        t = sorted(self.times)
        return {"n": len(t), "p50": round(t[len(t) // 2], 2), "p99": round(t[min(len(t) - 1, len(t) * 99 // 100)], 2),
                "max": round(t[-1], 2), "failures": self.failures}


def resident_mb(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS:"):
            return round(int(line.split()[1]) / 1024, 1)


def prepare(assay):
    """Sweeps with large documents, and one with many trials."""
    padding = {"type": "categorical", "values": ["x" * 1000 + str(i) for i in range(DOCUMENT_BYTES // 1000)]}

    def document(name, parameters):
        return {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "parameters": parameters,
                "search": {"method": "random"}, "limits": {"max_trials": 10_000}, "ensemble": False}
    for i in range(SWEEPS):
        assay.call("POST", "/v1/sweeps?paused=true", document(f"large-{i}", {"x": padding}))
    floats = {f"p{i}": {"type": "float", "min": 0, "max": 1} for i in range(8)}
    assay.call("POST", "/v1/sweeps?paused=true", document("many", floats))
    for _ in range(TRIALS):
        x = {name: random.random() for name in floats}
        assay.call("POST", "/v1/sweeps/many/trials", {"params": x, "metrics": {"loss": sum(x.values())}})


def measure(assay, run, seconds):
    port, (pid,) = int(assay.url.rsplit(":", 1)[1]), assay.processes("assayd")
    runner = assay.call("POST", "/v1/runners", {"name": "beating", "slots": 1})
    headers = {"Authorization": f"Bearer {assay.token}", "Content-Type": "application/json",
               "Assay-Runner-Secret": "0123456789abcdefghijklmnopqrstuvwxyzABCDEF"}
    beat = ("POST", "/v1/runners/beating/heartbeat", json.dumps({"epoch": runner["epoch"], "attempts": []}), headers)
    attacker = multiprocessing.Process(target=attack, args=(run, port, assay.token), daemon=True)
    attacker.start()
    time.sleep(2)  # until it is under way
    probes = {"kept": Probe(port, *beat), "new": Probe(port, *beat, fresh=True), "floor": Probe(port, "GET", "/healthz", None, {})}
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    for probe in probes.values():
        probe.start()
    time.sleep(seconds)
    during = resident_mb(pid)
    for probe in probes.values():
        probe.is_over.set()
    for probe in probes.values():
        probe.join()
    attacker.kill()
    attacker.join()
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    time.sleep(AFTER_S)
    print(json.dumps({"attack": run.__name__, **{name: p.figures() for name, p in probes.items()},
                      "rss_mb": [during, resident_mb(pid)], "load": round(os.getloadavg()[0], 1)}), flush=True)


def main():
    named = "\n".join(f"  {a.__name__:9} {a.__doc__}" for a in ATTACKS)
    options = argparse.ArgumentParser(description=__doc__, epilog=f"attacks:\n{named}",
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", default=os.path.join(ROOT, "build"))
    options.add_argument("--seconds", type=float, default=15)
    options.add_argument("attacks", nargs="*", metavar="ATTACK", choices=[[], *(a.__name__ for a in ATTACKS)])
    o = options.parse_args()
    os.environ["ASSAY_SOURCE_ROOT"] = ROOT
    os.environ["ASSAY_BUILD_ROOT"] = os.path.abspath(o.build)
    sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
    from harness import LONG_LEASE, Assay
    with Assay(runners=0, args=LONG_LEASE) as assay:
        prepare(assay)
        for run in ATTACKS:
            if not o.attacks or run.__name__ in o.attacks:
                measure(assay, run, o.seconds)


main()
