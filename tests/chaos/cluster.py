"""A private PostgreSQL whose machine can lose its power: the postmaster is our child, the library shim.c is preloaded,
and power_cut() kills every process and takes back what pg_wal had not synced. README.md says why that is a power cut."""
import glob
import os
import pwd
import shutil
import signal
import struct
import subprocess
import time

HEAD, RECORD, SECTOR = struct.Struct("=qq"), struct.Struct("=qq"), 512
SETTINGS = ["listen_addresses=", "max_connections=120", "shared_buffers=64MB", "wal_level=minimal", "max_wal_senders=0",
            "min_wal_size=8MB", "max_wal_size=64MB", "checkpoint_timeout=30s", "jit=off", "autovacuum_naptime=15s",
            "log_line_prefix=%m [%p] "]
# Faults that the check must find (--plant): settings of PostgreSQL under which it loses what it acknowledged.
PLANTED = {
    # a commit does not wait, and nobody else writes soon: a crash loses it
    "synchronous_commit": ["synchronous_commit=off", "wal_writer_delay=10s", "wal_writer_flush_after=1GB"],
    # a commit writes and does not sync: only a power cut loses it, and only because shim.c takes the writes back
    "fsync": ["fsync=off", "bgwriter_lru_maxpages=0", "checkpoint_timeout=1d", "max_wal_size=4GB"],
}


class Control:
    """The control file of shim.c."""

    def __init__(self, path):
        self.path, self.offset_ns, self.is_full = path, 0, 0
        with open(path, "wb") as f:
            f.write(struct.pack("=qq", 0, 0))

    def set(self, offset_ns=None, is_full=None):
        self.offset_ns = self.offset_ns if offset_ns is None else offset_ns
        self.is_full = self.is_full if is_full is None else is_full
        with open(self.path, "r+b") as f:  # in place: it is mapped
            f.write(struct.pack("=qq", self.offset_ns, int(self.is_full)))


def shim_env(library, control, undo, sync_root, full_root):
    return {"LD_PRELOAD": library, "CHAOS_CONTROL": control.path, "CHAOS_UNDO": undo, "CHAOS_SYNC_ROOT": sync_root,
            "CHAOS_FULL_ROOT": full_root}


def take_back(root, undo, rng, may_tear):
    """Make the files below root what their last fsync kept; nobody may have them open. may_tear: single sectors of
    what was not synced are kept, by chance, as disks do. Returns how many bytes were taken back."""
    taken = 0
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            log = os.path.join(undo, str(os.lstat(path).st_ino))
            if os.path.islink(path) or not os.path.exists(log) or os.path.getsize(log) < HEAD.size:
                continue
            with open(log, "rb") as f:
                text = f.read()
            taken += take_back_file(path, text, rng if may_tear else None)
    for log in os.listdir(undo):
        os.unlink(os.path.join(undo, log))
    return taken


def take_back_file(path, log, rng):
    first, size = HEAD.unpack_from(log)
    records, at = [], first
    while at + RECORD.size <= len(log):
        offset, length = RECORD.unpack_from(log, at)
        at += RECORD.size
        if at + length > len(log):  # killed between log and write: the write did not happen
            break
        records.append((offset, log[at:at + length]))
        at += length
    with open(path, "r+b") as f:
        written = f.read()
        kept = bytearray(written)
        for offset, old in reversed(records):
            kept[offset:offset + len(old)] = old
        taken = len(written) - size if len(written) > size else 0
        kept = kept[:size]
        for at in range(0, size, SECTOR):
            if kept[at:at + SECTOR] != written[at:at + SECTOR]:
                if rng and rng.random() < 0.5:
                    kept[at:at + SECTOR] = written[at:at + SECTOR]
                else:
                    taken += SECTOR
        f.seek(0)
        f.write(kept)
        f.truncate(size)
    return taken


class Cluster:
    def __init__(self, folder, library, planted):
        self.folder, self.data = folder, os.path.join(folder, "data")
        self.socket, self.undo = os.path.join(folder, "socket"), os.path.join(folder, "undo")
        self.bin = os.path.dirname(sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))[-1])
        self.on_start, self.planted = [], PLANTED.get(planted, [])
        user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        self.drop = ["setpriv", "--pdeathsig", "QUIT"]
        self.drop += ["--reuid", "postgres", "--regid", "postgres", "--clear-groups"] if user else []
        for path in (folder, self.socket, self.undo):
            os.makedirs(path, exist_ok=True)
            os.chmod(path, 0o755)
            if user:
                os.chown(path, user.pw_uid, user.pw_gid)
        self.control = Control(os.path.join(folder, "control"))
        os.chmod(self.control.path, 0o644)
        self.env = {**os.environ, **shim_env(library, self.control, self.undo, os.path.join(self.data, "pg_wal"), self.data)}
        self.log = open(os.path.join(folder, "postgres.log"), "ab")
        self.postmaster = None

    def make(self):
        subprocess.run([*self.drop, os.path.join(self.bin, "initdb"), "-D", self.data, "-U", "assay", "-A", "trust",
                        "-E", "UTF8", "--locale=C.UTF-8", "--wal-segsize=1", "--no-instructions"], check=True,
                       stdout=self.log, stderr=self.log, cwd="/")
        with open(os.path.join(self.data, "postgresql.conf"), "a") as f:
            f.writelines(s.replace("=", " = '", 1) + "'\n" for s in SETTINGS)
        self.start()
        while not self.is_ready():
            if self.postmaster.poll() is not None:
                raise RuntimeError("PostgreSQL does not start: " + self.log.name)
            time.sleep(0.05)
        if self.env["LD_PRELOAD"] not in open(f"/proc/{self.postmaster.pid}/maps").read():
            raise RuntimeError(f"PostgreSQL runs without {self.env['LD_PRELOAD']}, see {self.log.name}")
        self.sql("create database assay", database="postgres")

    def begin_planted(self):
        """What was done until now stays; what comes is in danger, until the first power cut: PostgreSQL cannot start
        again on a second one without fsync."""
        self.sql("checkpoint")
        for setting in self.planted:
            name, value = setting.split("=")
            self.sql(f"alter system set {name} = '{value}'")
        self.sql("select pg_reload_conf()")

    def start(self):
        """Does not wait. Called by the main thread alone: the cluster ends with the thread that started it."""
        self.postmaster = subprocess.Popen(
            [*self.drop, os.path.join(self.bin, "postgres"), "-D", self.data, "-k", self.socket, *self.on_start],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=self.env, cwd="/")

    def is_ready(self):
        """Takes connections; before "create database", too."""
        return self.psql("select 1", database="postgres").returncode == 0

    def psql(self, text, database="assay", timeout=60):
        # not the `psql` of Debian, which is a program of Perl that looks for this one
        return subprocess.run([os.path.join(self.bin, "psql"), "-h", self.socket, "-U", "assay", "-d", database, "-XqAt", "-v", "ON_ERROR_STOP=1",
                               "-c", text], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout)

    def sql(self, text, database="assay", timeout=60):
        """The lines of the answer, each split at |. Raises RuntimeError."""
        done = self.psql(text, database, timeout)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return [line.split("|") for line in done.stdout.splitlines()]

    def idle_transaction(self, text):
        """A client that begins a transaction with this statement and then does nothing."""
        client = subprocess.Popen([os.path.join(self.bin, "psql"), "-h", self.socket, "-U", "assay", "-d", "assay", "-Xq"], stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        client.stdin.write(f"begin isolation level repeatable read; {text};\n")
        client.stdin.flush()
        return client

    def stop(self, how=signal.SIGQUIT):
        """SIGQUIT is what `pg_ctl -m immediate stop` sends, SIGINT is fast."""
        if self.postmaster.poll() is None:
            self.postmaster.send_signal(how)
            self.postmaster.wait()

    def processes(self):
        """The postmaster and its children. Empty when it does not run."""
        pid, found = self.postmaster.pid, []
        if self.postmaster.poll() is not None:
            return found
        for path in glob.glob(f"/proc/{pid}/task/*/children"):
            found += map(int, open(path).read().split())
        return [pid, *found]

    def n_syncs(self):
        """Of files in pg_wal, that have begun since the last power cut."""
        path = os.path.join(self.undo, "syncs")
        return os.path.getsize(path) if os.path.exists(path) else 0

    def power_cut(self, rng, may_tear, n_syncs=None):
        """The machine stops at once. Returns how many bytes of pg_wal were lost. n_syncs: none of them began meanwhile;
        otherwise the machine goes on, and None is returned."""
        stopped = set()
        while new := set(self.processes()) - stopped:  # none writes while another is killed
            for pid in new:
                signal_pid(pid, signal.SIGSTOP)
            stopped |= new
        if n_syncs is not None and n_syncs != self.n_syncs():
            for pid in stopped:
                signal_pid(pid, signal.SIGCONT)
            return None
        for pid in stopped:
            signal_pid(pid, signal.SIGKILL)
        self.postmaster.wait()
        if "fsync=off" in self.planted:
            self.on_start = ["-c", "fsync=on"]
        for pid in stopped:
            while os.path.exists(f"/proc/{pid}") and not is_zombie(pid):
                time.sleep(0.005)
        return take_back(os.path.join(self.data, "pg_wal"), self.undo, rng, may_tear)

    def remove(self):
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def signal_pid(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def is_zombie(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True
