"""Programs that share a study, for the tests of them: a server, and each program a process of its own. begin() and end()
are setUpModule and tearDownModule of a test."""
import os
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

CLIENT = os.path.join(os.environ["ASSAY_BUILD_ROOT"], "clients", "python")
sys.path[:0] = [CLIENT, os.path.join(os.environ["ASSAY_SOURCE_ROOT"], "tests", "e2e")]
from harness import PATIENCE_S, Assay  # noqa: E402

STATE = tempfile.TemporaryDirectory(prefix="assay-py-", dir="/var/tmp")
os.environ.update(XDG_STATE_HOME=STATE.name, XDG_CONFIG_HOME=STATE.name)
for name in ("ASSAY_SERVER", "ASSAY_TOKEN", "ASSAY_TOKEN_FILE", "ASSAY_PROFILE"):
    os.environ.pop(name, None)
UP = Assay(runners=0, args=())


def begin():
    UP.__enter__()


def end():
    UP.__exit__(None, None, None)
    STATE.cleanup()


def program(text, *args):
    """A program of its own, which prints to a pipe; `wait_for(path)` waits in it until a file is there."""
    head = textwrap.dedent("""
        import assay, os, signal, sys, time
        def wait_for(*paths):
            deadline = time.monotonic() + %d
            while not all(map(os.path.exists, paths)) and time.monotonic() < deadline:
                time.sleep(0.01)
    """ % PATIENCE_S)
    return subprocess.Popen([sys.executable, "-W", "error", "-c", head + textwrap.dedent(text), *args], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, universal_newlines=True, env=dict(os.environ, PYTHONPATH=CLIENT))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="assay-py-", dir="/var/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def touch(self, name):
        with open(self.path(name), "w"):
            pass

    def ended(self, p, code=0):
        out, err = p.communicate(timeout=PATIENCE_S)
        self.assertEqual(p.returncode, code, (out, err))
        return out, err

    def ran(self, names):
        """How many trials ran in these sweeps, by state; none is known twice."""
        total = 0
        for sweep in names:
            s = UP.wait_ended(sweep)
            total += s["counts"]["total"] - s["known_trials"]
        return total

    def chain(self, sweep):
        """The sweep, and those that its study moved on to."""
        found = [sweep]
        while True:
            items = [s for s in UP.call("GET", f"/v1/sweeps?tag=grew-from={found[-1]}")["items"] if s["state"] != "cancelled"]
            if not items:
                return found
            found.append(items[0]["id"])
