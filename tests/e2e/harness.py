"""Starts the whole of Assay (`assay up`: a private PostgreSQL, assayd, runners) in a temporary folder,
and gives tests a client, the pids of the processes, and waits that end when the state is reached.

Standard library only. A test that cannot run here exits 77 and says why."""
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

SOURCE = os.environ["ASSAY_SOURCE_ROOT"]
BUILD = os.environ["ASSAY_BUILD_ROOT"]
ASSAY = os.path.join(BUILD, "cli", "assay")
PROGRAMS = [ASSAY, *(os.path.join(BUILD, *path) for path in (("api", "server", "assayd"),
                                                            ("trial-runner", "agent", "assay-runner"),
                                                            ("trial-runner", "train", "assay-train")))]
ENDED = ("completed", "failed", "cancelled")
# How long to wait for what must come: no bound on speed, it only ends a hang.
PATIENCE_S = 240
LONGEST_PAUSE_S = 0.2  # between two looks at what is awaited
LONGEST_PAUSE_OF_AN_END_S = 1  # at what stays as it is when it has come
# For runners and clients whose loss is not what a test is about: nobody is lost because a machine is slow.
LONG_LEASE = ["--lease", "10m", "--heartbeat", "3s"]
# PostgreSQL touches the heads of all its buffers when it starts and ends: of 512 MB they are 12,000 pages.
SMALL_DATABASE = ["--database-memory", "32"]
# What the runners show that tests play themselves.
SECRET = {"Assay-Runner-Secret": "0123456789abcdefghijklmnopqrstuvwxyzABCDEF"}


# A migrated cluster of PostgreSQL that the build has made (tests/support/make_cluster.c).
CLUSTER = os.path.join(BUILD, "tests", "scheduler", "cluster.tar")


def folder_place():
    """Where tests keep what they write: in memory where there is room, because a cluster is a thousand files, which
    take ten times as long on a disk. Trials start programs there."""
    with contextlib.suppress(OSError):
        fs = os.statvfs("/dev/shm")
        if fs.f_bavail * fs.f_frsize >= 4 << 30 and not fs.f_flag & os.ST_NOEXEC:
            return "/dev/shm"
    return "/var/tmp"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run_cases(cases, *args):
    """One after another, and says which is done."""
    for case in cases:
        case(*args)
        print(f"{case.__name__}: ok")


class Hang(AssertionError):
    """What must come did not, for PATIENCE_S."""


class Problem(Exception):
    """An HTTP answer that is not 2xx: .status and the problem document in .body."""

    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body


class Assay:
    """One running installation. Use as a context manager."""

    def __init__(self, runners=2, slots=1, args=LONG_LEASE, env=None, installed=None, bare=False):
        """env: variables of `assay up` and of cli() beyond the test's own. installed: a folder with the programs,
        where `assay up` is started, too; else those of the build, in the source tree. bare: in an empty folder, where
        `assay up` makes its cluster; else it finds one, which saves a second and a half of processor time."""
        if not glob.glob("/usr/lib/postgresql/*/bin/initdb") and not shutil.which("initdb"):
            skip("PostgreSQL's server programs are not installed")
        self.data = tempfile.mkdtemp(prefix="assay-e2e-", dir=folder_place())
        os.chmod(self.data, 0o755)  # the cluster may run as another user
        self.own_env = {**os.environ, **(env or {})}
        own_database = "--database" in args or "ASSAY_DATABASE" in self.own_env
        self.args = ["--runners", str(runners), "--slots", str(slots), *([] if own_database else SMALL_DATABASE), *args]
        self.up = None
        self.bare = bare
        self.assay = os.path.join(installed, "assay") if installed else ASSAY
        self.cwd = installed or SOURCE

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__(*sys.exc_info())  # which `with` does not call for what fails here
            raise
        return self

    def __exit__(self, kind, value, trace):
        self.stop()
        if kind is not None:
            for log in sorted(glob.glob(os.path.join(self.data, "logs", "*.log"))) + [self.log_path]:
                with contextlib.suppress(OSError):
                    print(f"--- {log}\n" + "".join(open(log, errors="replace").readlines()[-25:]), file=sys.stderr)
        shutil.rmtree(self.data, ignore_errors=True)

    @property
    def log_path(self):
        return os.path.join(self.data, "up.log")

    def give_cluster(self):
        """A copy of the build's cluster, where `assay up` keeps its own."""
        folder = os.path.join(self.data, "postgres")
        if self.bare or os.path.exists(folder) or not os.path.exists(CLUSTER) or os.path.getsize(CLUSTER) == 0:
            return
        os.mkdir(folder, 0o700)
        user = {}
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
            user = {"user": "postgres", "group": "postgres", "extra_groups": []}
        with open(CLUSTER, "rb") as file:  # which that user may not be able to open
            subprocess.run(["tar", "-x", "-C", folder, "--transform", "s/^data/cluster/", "-f", "-"], stdin=file,
                           check=True, cwd="/", **user)

    def start(self):
        self.give_cluster()
        ready = os.path.join(self.data, "ready.json")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(ready)
        with open(self.log_path, "ab") as log:
            self.up = subprocess.Popen([self.assay, "up", "--data", self.data, "--port", "0", "--ready-file",
                                        ready, *self.args], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       cwd=self.cwd, env=self.own_env)
        self.wait(lambda: os.path.exists(ready), "assay up to be ready")
        info = json.load(open(ready))
        self.url = info["url"].rstrip("/")
        self.token = open(info["admin_token_file"]).read().strip()
        self.env = dict(self.own_env, ASSAY_SERVER=self.url, ASSAY_TOKEN_FILE=info["admin_token_file"])

    def stop(self):
        if self.up and self.up.poll() is None:
            self.up.send_signal(signal.SIGTERM)
            try:
                self.up.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.up.kill()
                self.up.wait()

    def wait(self, condition, what, every=0.05, longest=LONGEST_PAUSE_S):
        """Poll until condition() is true; its value is returned. The pause is so many seconds, and an eighth of the time
        that went by where that is longer, `longest` at most: a look costs the server, PostgreSQL and this process 2 ms of
        processor time and more, and many that wait would keep a processor busy."""
        began = time.monotonic()
        while (waited := time.monotonic() - began) < PATIENCE_S:
            with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError, Problem):
                value = condition()
                if value:
                    return value
            if self.up.poll() is not None:
                raise AssertionError(f"assay up ended with {self.up.returncode} while waiting for {what}")
            time.sleep(max(every, min(waited / 8, longest)))
        raise Hang(f"waited {PATIENCE_S} s for {what}")

    def call(self, method, path, body=None, token=None, raw=None, headers=None):
        """One request; JSON in and out. Raises Problem for other than 2xx."""
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        if raw is not None:
            kind = "application/octet-stream"
        all_headers = {"Authorization": f"Bearer {token or self.token}", **SECRET}
        if data is not None:
            all_headers["Content-Type"] = kind
        all_headers.update(headers or {})
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=all_headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                text = answer.read()
                is_json = answer.headers.get_content_type() == "application/json"
                return json.loads(text) if text and is_json else text
        except urllib.error.HTTPError as e:
            text = e.read()
            try:
                document = json.loads(text)
            except ValueError:
                document = text
            raise Problem(e.code, document) from None

    def cli(self, *args, check=True, **kw):
        """Run the CLI; returns CompletedProcess with text output. It may follow a whole sweep: twice the patience."""
        done = subprocess.run([self.assay, *args], capture_output=True, text=True, env=self.env,
                              timeout=2 * PATIENCE_S, cwd=kw.pop("cwd", self.cwd), **kw)
        if check and done.returncode != 0:
            raise AssertionError(f"assay {' '.join(args)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def processes(self, program):
        """Pids of our children whose program is `program` (assayd, assay-runner, postgres, …). A child that a process
        has just started, and that does not run its own program yet, is not one of them."""
        found = {}
        for path in glob.glob("/proc/[0-9]*/stat"):
            with contextlib.suppress(OSError):
                text = open(path).read()
                pid, rest = int(text.split(" ", 1)[0]), text.rsplit(")", 1)[1].split()
                name = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
                if rest[0] != "Z" and name == program and self._is_ours(pid):
                    found[pid] = int(rest[1])
        return sorted(pid for pid, parent in found.items() if parent not in found or program == "postgres")

    def postmaster(self):
        """The postgres process whose parent is none; None where there is none at the moment."""
        pids = self.processes("postgres")
        for pid in pids:
            with contextlib.suppress(FileNotFoundError):  # a backend that has just ended
                parent = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
                if parent not in pids:
                    return pid
        return None

    def _is_ours(self, pid):
        while pid > 1:
            if pid == self.up.pid:
                return True
            with open(f"/proc/{pid}/stat") as f:
                pid = int(f.read().rsplit(")", 1)[1].split()[1])
        return False

    def program(self, text):
        """A new folder below the data, with this text as program.py."""
        folder = os.path.join(self.data, "programs")
        os.mkdir(folder)
        with open(os.path.join(folder, "program.py"), "w") as f:
            f.write(text)
        return folder

    def sweep(self, sweep):
        return self.call("GET", f"/v1/sweeps/{sweep}")

    def trials(self, sweep):
        items, cursor = [], None
        while True:
            query = "?page_size=500" + (f"&cursor={urllib.parse.quote(cursor)}" if cursor else "")
            page = self.call("GET", f"/v1/sweeps/{sweep}/trials{query}")
            items += page["items"]
            cursor = page["next_cursor"]
            if not cursor:
                return items

    def wait_ended(self, sweep):
        """However long its trials take: only a sweep in which nothing happens for PATIENCE_S hangs."""
        while True:
            before = self.wait(lambda: self.progress(sweep), "the server")
            try:
                return self.wait(lambda: (s := self.sweep(sweep))["state"] in ENDED and s, f"{sweep} to end", every=0.1,
                                 longest=LONGEST_PAUSE_OF_AN_END_S)
            except Hang:
                if self.wait(lambda: self.progress(sweep), "the server") == before:
                    raise

    def progress(self, sweep):
        """What changes while trials run."""
        return self.sweep(sweep)["state"], [(t["state"], t["attempt"], t["step"]) for t in self.trials(sweep)]

    def check_exact(self, sweep, planned):
        """The promise: exactly `planned` trials, each number once, each ended once, sums that agree."""
        s, trials = self.sweep(sweep), self.trials(sweep)
        assert [t["number"] for t in trials] == list(range(planned)), [t["number"] for t in trials]
        assert all(t["state"] in ("completed", "failed", "cancelled") for t in trials), s["counts"]
        counts = s["counts"]
        assert counts["total"] == planned == sum(v for k, v in counts.items() if k != "total"), counts
        for t in trials:
            detail = self.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}")
            final = [a for a in detail["attempts"] if a.get("outcome") == "completed"]
            assert len(final) == (1 if t["state"] == "completed" else 0), detail
            numbers = [a["attempt"] for a in detail["attempts"]]
            assert sorted(numbers) == list(range(1, len(numbers) + 1)), detail
        return s, trials


def database_url(assay):
    """Where assayd keeps its state: the private cluster's URL, as cli/up/cluster.c makes it. The environment of
    assayd does not show it (base/private_env.h)."""
    pid = assay.wait(assay.postmaster, "PostgreSQL")
    arguments = open(f"/proc/{pid}/cmdline").read().split("\0")
    folder = next(a.split("=", 1)[1] for a in arguments if a.startswith("unix_socket_directories="))
    return "postgresql:///assay?user=assay&host=" + urllib.parse.quote(folder, safe="-_.~")


@contextlib.contextmanager
def second_server(assay, *args, database=None):
    """Another assayd over the same cluster, or over this database; its URL."""
    address = os.path.join(assay.data, "second.url")
    with open(os.path.join(assay.data, "logs", "second.log"), "ab") as log:
        server = subprocess.Popen([os.path.join(BUILD, "api", "server", "assayd"), "--listen", "127.0.0.1:0",
                                   "--address-file", address, *args],
                                  env={**assay.own_env, "ASSAY_DATABASE": database or database_url(assay)}, stderr=log, stdout=log)
        try:
            assay.wait(lambda: os.path.exists(address), "the second assayd")
            yield open(address).read().strip().rstrip("/")
        finally:
            server.terminate()
            server.wait(PATIENCE_S)
