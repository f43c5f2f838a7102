#!/usr/bin/env python3
"""Hostile and unlucky clients on raw sockets: smuggling, slow heads, half-closed and vanishing connections, a thousand
idle ones, pipelines, huge heads, readers of events that do not read. Nothing leaks, and others are still served."""
import concurrent.futures
import contextlib
import json
import os
import re
import socket
import struct
import sys
import threading
import time
import urllib.parse

from harness import PATIENCE_S, SECRET, Assay

IDLE = 1000
VANISHING = 500
SLACK = 24  # descriptors that come as they are needed: assayd has up to 17 connections to its database


class Raw:
    """One connection. Use as a context manager."""

    def __init__(self, assay):
        where = urllib.parse.urlsplit(assay.url)
        self.host = where.netloc
        self.token = assay.token
        self.s = socket.create_connection((where.hostname, where.port), PATIENCE_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.close()

    def head(self, method="GET", target="/healthz", *lines):
        return "\r\n".join([f"{method} {target} HTTP/1.1", f"Host: {self.host}", f"Authorization: Bearer {self.token}",
                            *(f"{k}: {v}" for k, v in SECRET.items()),
                            *lines]).encode() + b"\r\n\r\n"

    def send(self, data):
        with contextlib.suppress(ConnectionError):  # it may answer and close before all is sent
            self.s.sendall(data)

    def rest(self):
        """All that comes until the server closes."""
        got = b""
        with contextlib.suppress(ConnectionError):
            while part := self.s.recv(65536):
                got += part
        return got

    def answer(self):
        """(status, body) of one answer with a Content-Length."""
        got = b""
        while b"\r\n\r\n" not in got:
            part = self.s.recv(1)
            assert part, f"closed after {got!r}"
            got += part
        length = int(re.search(rb"content-length: (\d+)", got.lower())[1])
        body = b""
        while len(body) < length:
            part = self.s.recv(length - len(body))
            assert part, "closed in a body"
            body += part
        return int(got.split()[1]), body

    def reset(self):
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.s.close()


def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Memory:
    """How much a process grew since now. Sanitizers keep what is freed: there it is not judged."""

    def __init__(self, pid):
        self.pid = pid
        self.before = self.kib()
        self.is_judged = not re.search(r"lib[at]san", open(f"/proc/{pid}/maps").read())

    def kib(self):
        return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{self.pid}/status").read())[1])

    def grown(self, what):
        """In KiB; 0 where it is not judged."""
        grown = self.kib() - self.before
        print(f"{what}: {grown:+} KiB")
        return grown if self.is_judged else 0


def smuggling(assay):
    """What two readers could take for different requests: one 400, then the end of the connection."""
    inner = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    chunks = b"0\r\n\r\n" + inner
    both = ["Transfer-Encoding: chunked", f"Content-Length: {len(chunks)}"]
    cases = [(both, chunks), (both[::-1], chunks), (["Content-Length: 0", f"Content-Length: {len(inner)}"], inner),
             (["Content-Length: 5", "Content-Length: 5"], b"hello"), (["Content-Length: 0, 5"], inner), (["Content-Length: +5"], b"hello"),
             (["Content-Length: 0x5"], b"hello"), (["Content-Length: -1"], inner), (["Content-Length: 99999999999999999999"], inner),
             (["Transfer-Encoding: xchunked"], chunks), (["Transfer-Encoding: gzip, chunked"], chunks),
             (["Transfer-Encoding: chunked, chunked"], chunks), (["Transfer-Encoding: identity", "Content-Length: 0"], inner),
             (["Transfer-Encoding : chunked"], chunks), (["Transfer-Encoding:\x0bchunked"], chunks), (["X: y", " folded: z"], inner),
             (["Host: second"], inner), (["Content-Length : 5"], b"hello"), (["A\x00B: c"], inner), (["Authorization: Bearer x"], inner)]
    for lines, body in cases:
        with Raw(assay) as r:
            r.send(r.head("POST", "/v1/sweeps", "Content-Type: application/json", *lines) + body)
            got = r.rest()
            answers = re.findall(rb"(?:^|\n)HTTP/1\.\d (\d{3}) ", got)
            # libmicrohttpd's own refusals have their head twice
            assert answers and set(answers) <= {b"400", b"413"} and len(answers) <= 2, (lines, got[:300])
            assert b"smuggled" not in got, (lines, got)
    for chunk in (b"zz\r\n", b"-1\r\n", b"FFFFFFFFFFFFFFFFF\r\nx", b"5 \x00\r\nhello\r\n0\r\n\r\n"):
        with Raw(assay) as r:
            r.send(r.head("POST", "/v1/sweeps", "Content-Type: application/json", "Transfer-Encoding: chunked") + chunk)
            r.s.shutdown(socket.SHUT_WR)
            got = r.rest()
            assert not got or re.match(rb"HTTP/1\.1 4", got), (chunk, got[:200])
    for line in (b"GET / HTTP/1.1\r\n\r\n", b"GET /healthz HTTP/2.0\r\nHost: localhost\r\n\r\n", b"GET /healthz\r\n\r\n", b"\x16\x03\x01\r\n\r\n",
                 b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 b"GET /\x00healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        with Raw(assay) as r:
            r.send(line)
            r.s.shutdown(socket.SHUT_WR)
            got = r.rest()
            assert not got or re.match(rb"HTTP/1\.[01] (4|505)", got), (line, got[:200])


def heads(assay):
    with Raw(assay) as r:
        r.send(r.head("GET", "/healthz", "X-Big: " + "x" * 70000))
        assert re.match(rb"HTTP/1\.1 (400|431)", r.rest())
    with Raw(assay) as r:
        r.send(r.head("GET", "/healthz", *[f"X-{i}: y" for i in range(200)]))
        assert re.match(rb"HTTP/1\.1 (400|431)", r.rest())
    with Raw(assay) as r:
        r.send(r.head("GET", "/" + "x" * 20000))
        assert re.match(rb"HTTP/1\.1 (400|413|414|431)", r.rest())


def pipelines(assay):
    n = 60
    with Raw(assay) as r:
        paths = ["/healthz", "/v1/sweeps", "/v1/nothing"]
        r.send(b"".join(r.head("GET", paths[i % 3]) for i in range(n)))
        statuses = [r.answer()[0] for _ in range(n)]
    assert statuses == [200, 200, 404] * (n // 3), statuses


def half_closed(assay):
    """Who has said all and still listens is answered or, where the database is asked meanwhile, cut; not left hanging."""
    for target, expected in (("/healthz", 200), ("/v1/sweeps", 200), ("/v1/sweeps/none", 404)) * 20:
        with Raw(assay) as r:  # whether the end comes together with the request is chance
            r.send(r.head("GET", target))
            r.s.shutdown(socket.SHUT_WR)
            got = r.rest()
            assert got.startswith(b"HTTP/1.1 %d" % expected) or (not got and target != "/healthz"), (target, got)


def slow(assay, why):
    """A head that never ends is cut, however busy its connection looks, and so is half a body. Appends to `why`."""
    try:
        with Raw(assay) as r:
            is_cut, until = False, time.monotonic() + PATIENCE_S
            r.s.sendall(b"GET /healthz HTTP/1.1\r\n")
            r.s.settimeout(0.5)
            while not is_cut and time.monotonic() < until:
                try:
                    r.s.sendall(b"x")
                    is_cut = not r.s.recv(1)
                except socket.timeout:
                    continue
                except ConnectionError:
                    is_cut = True
            assert is_cut, "a head of one byte each half second was not cut"
        with Raw(assay) as r:
            r.send(r.head("POST", "/v1/sweeps", "Content-Type: application/json", "Content-Length: 100") + b"{}")
            r.s.shutdown(socket.SHUT_WR)
            assert b" 201 " not in r.rest()
    except BaseException as e:  # handed over to the thread that waits
        why.append(e)


def idle_connections(assay, pid):
    before = fds(pid)  # a few that end are among them
    with contextlib.ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(Raw(assay))
        assay.wait(lambda: fds(pid) >= before + IDLE - SLACK, "the server to take them all")
        assert assay.call("GET", "/v1/sweeps") is not None
        pipelines(assay)
    assay.wait(lambda: fds(pid) <= before + SLACK, f"the descriptors to be given back ({before})")


def vanishing_claims(assay, pid):
    """Runners that are gone while they wait: the server notices at once and keeps nothing."""
    epoch = assay.call("POST", "/v1/runners", {"name": "ghost", "slots": 1})["epoch"]

    def round_of(n):
        open_now = []
        for i in range(n):
            body = json.dumps({"epoch": epoch, "claim_id": f"g{i}", "wait_ms": 60000}).encode()
            r = Raw(assay)
            r.send(r.head("POST", "/v1/runners/ghost/claim", "Content-Type: application/json", f"Content-Length: {len(body)}") + body)
            open_now.append(r)
            if len(open_now) == 50:
                for j, old in enumerate(open_now):
                    old.reset() if j % 2 else old.s.close()
                open_now = []
        for old in open_now:
            old.reset()

    before = fds(pid)
    for _ in range(2):
        round_of(VANISHING)
    given_back = lambda: fds(pid) <= before + SLACK
    assay.wait(given_back, "the descriptors of vanished claims to be given back")

    def grown():
        memory = Memory(pid)
        for _ in range(8):
            round_of(VANISHING)
        assay.wait(given_back, "the descriptors of vanished claims to be given back")
        return memory.grown(f"{8 * VANISHING} claims that vanished")

    # What leaks does so each time, 40 MiB and more; the allocator's own growth, as much, happens now and then.
    assert any(grown() < 24 * 1024 for _ in range(4)), "every 4,000 vanished claims took memory"


def slow_readers(assay, pid):
    """Readers of all events that read nothing cost a buffer each, however much happens."""
    doc = {"name": "noisy", "metric": {"name": "loss", "goal": "minimize"}, "parameters": {"x": {"type": "float", "min": 0, "max": 1}},
           "search": {"method": "random"}, "limits": {"max_trials": 1}, "trial": {"command": ["none"]}, "resources": {"gpus": 1}}
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(Raw(assay)) for _ in range(20)]
        for r in readers:
            r.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            r.send(r.head("GET", "/v1/events"))
            assert r.s.recv(12) == b"HTTP/1.1 200"

        def one(_):
            sweep = assay.call("POST", "/v1/sweeps", doc)["id"]
            for state in ("paused", "running") * 9 + ("cancelled",):
                assay.call("PATCH", f"/v1/sweeps/{sweep}", {"state": state})

        def make(n):
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                list(pool.map(one, range(n)))

        def grown():
            memory = Memory(pid)
            make(120)
            return memory.grown("20 readers that do not read 2,400 events")

        make(30)
        # What each event costs, it costs each time; see vanishing_claims().
        assert any(grown() < 8 * 1024 for _ in range(4)), "every 2,400 events took memory"
        reader = readers[0]  # and when it reads again, it gets all of them
        text, want = b"", assay.call("GET", "/v1/sweeps?page_size=1")["items"][0]["id"].encode()
        while want not in text:
            part = reader.s.recv(65536)
            assert part, "the stream ended"
            text += part
        ids = [int(i) for i in re.findall(rb"\nid: (\d+)\n", text)]
        assert ids == sorted(set(ids)) and len(ids) > 2400, len(ids)


def main():
    with Assay(runners=1) as assay:
        pid, = assay.processes("assayd")
        why, begun = [], time.monotonic()
        watcher = threading.Thread(target=slow, args=(assay, why))
        watcher.start()
        for check in (smuggling, heads, pipelines, half_closed):
            check(assay)
            print(f"{check.__name__}: ok at {time.monotonic() - begun:.1f} s", flush=True)
        for check in (idle_connections, vanishing_claims, slow_readers):
            check(assay, pid)
            print(f"{check.__name__}: ok at {time.monotonic() - begun:.1f} s", flush=True)
        watcher.join()
        print(f"slow: {why or 'ok'} at {time.monotonic() - begun:.1f} s")
        if why:
            raise why[0]
        assert assay.processes("assayd") == [pid], "the server was started again"


if __name__ == "__main__":
    sys.exit(main())
