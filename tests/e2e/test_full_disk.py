#!/usr/bin/env python3
"""The disk of the private PostgreSQL is full: /readyz, clients and `assay up` say so, where, and how much is needed,
while PostgreSQL runs and when it cannot start; with room again everything goes on by itself. Needs root, to mount a
small disk."""
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from harness import LONG_LEASE, Assay, Problem, second_server, skip

SIZE = "200m"


class OnSmallDisk(Assay):
    """Its data folder is a disk of its own; the output of `assay up` is elsewhere."""

    def __init__(self, log):
        super().__init__(runners=0, args=LONG_LEASE, bare=True)
        self.log, self.filler, self.is_full = log, os.path.join(self.data, "filler"), False
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0755", "none", self.data],
                                 capture_output=True)
        if mounted.returncode != 0:
            os.rmdir(self.data)
            skip(f"no tmpfs can be mounted: {mounted.stderr.decode().strip()}")

    @property
    def log_path(self):
        return self.log

    def __exit__(self, *what):
        self.stop()
        if what[0] is not None:
            print(open(self.log).read()[-5000:], file=sys.stderr)
        if self.is_full:
            self.make_room()
        subprocess.run(["umount", self.data], check=True)
        os.rmdir(self.data)

    def said(self, text):
        self.wait(lambda: text in open(self.log).read(), f"assay up to say '{text}'")

    def fill(self):
        """Take all the room there is, also what becomes free, until make_room()."""
        self.is_full, is_filled = True, threading.Event()

        def take():
            with open(self.filler, "wb", buffering=0) as f:
                while self.is_full:
                    try:
                        f.write(bytes(1 << 16))
                    except OSError:
                        is_filled.set()
                        time.sleep(0.0005)
        self.taker = threading.Thread(target=take, daemon=True)
        self.taker.start()
        is_filled.wait()

    def make_room(self):
        self.is_full = False
        self.taker.join()
        os.unlink(self.filler)


def readyz(url):
    """Status and body of /readyz for somebody without a token."""
    try:
        with urllib.request.urlopen(url + "/readyz", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def fails(assay, method, path, **what):
    try:
        assay.call(method, path, **what)
    except Problem as p:
        return p.status, str(p.body)
    return 0, ""


def check_alive(assay):
    """PostgreSQL runs, and its disk is full."""
    content = os.urandom(3 << 20)
    with second_server(assay) as other:  # which sees no disk: PostgreSQL has to say so
        assay.fill()
        for url in (assay.url, other):
            assay.wait(lambda: readyz(url)[0] == 503, "a server that is not ready")
            status, body = readyz(url)
            assert status == 503 and "the disk of the database is full" in body, body
            assert assay.data not in body, body  # where it is, is for those who have a token
        status, body = fails(assay, "PUT", "/v1/blobs/" + hashlib.sha256(content).hexdigest(), raw=content)
        assert status == 503 and assay.data in body and "at least 32 MiB are needed" in body, (status, body)


def check_dead(assay):
    """It cannot start. It may start all the same where what the dead one had is free for a moment: then it dies again."""
    def is_over():
        text = open(assay.log).read()
        if "postgres is not started again" not in text and (pid := assay.postmaster()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return "postgres is not started again" in text
    assay.wait(is_over, "assay up to give up")
    assay.said("postgres is not started again: the disk is full: " + assay.data)
    assay.said("at least 32 MiB are needed")
    status, body = fails(assay, "GET", "/v1/sweeps")
    assert status == 503 and "the disk of the database is full" in body and assay.data in body, (status, body)
    status, body = fails(assay, "GET", "/v1/sweeps", token="assay_admin_" + "0" * 12 + "_" + "0" * 43)
    assert status == 503 and "the disk of the database is full" in body and assay.data not in body, (status, body)
    done = assay.cli("sweeps", check=False)
    assert done.returncode != 0 and "the disk of the database is full: " + assay.data in done.stderr, done


def main():
    if os.getuid() != 0:
        skip("only root can mount a small disk")
    folder = tempfile.mkdtemp(prefix="assay-full-disk-", dir="/var/tmp")
    try:
        with OnSmallDisk(os.path.join(folder, "up.log")) as assay:
            check_alive(assay)
            check_dead(assay)
            assay.make_room()
            assay.said("postgres is started again")
            assay.wait(lambda: readyz(assay.url)[0] == 200, "a server that is ready")
            assert assay.call("GET", "/v1/sweeps")["items"] == []
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
