"""The programs under test, and the proxies between them: two assayd over one cluster, runners, the trials below them.

  PostgreSQL  <-  database proxy of each server  <-  assayd 0, 1  <-  HTTP proxy  <-  runners and clients

The HTTP proxy takes the servers in turn, so that every client sees both. A server has another port after each start,
which tick() tells the proxy. All processes are started by the main thread, with which they end."""
import contextlib
import glob
import os
import signal
import subprocess
import time

from cluster import Control, is_zombie, shim_env, signal_pid, take_back

LEASE_S, HEARTBEAT_S = 4, 1


class Proxy:
    def __init__(self, program, listen, marks, target, log):
        self.process = subprocess.Popen([program, listen, marks, target], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=log, text=True)
        self.address = self.process.stdout.readline().split()[-1]
        self.dropped = 0
        os.set_blocking(self.process.stdout.fileno(), False)

    def command(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def count_dropped(self):
        with contextlib.suppress(TypeError):  # nothing to read
            self.dropped += self.process.stdout.read().count("dropped")
        return self.dropped

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Member:
    """A process that chaos may end, and that is started again."""

    def __init__(self, name, argv, env, log_path, cwd):
        self.name, self.argv, self.env, self.log_path, self.cwd = name, argv, env, log_path, cwd
        self.process, self.is_wanted, self.ended_by_us = None, False, False

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.argv], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env=self.env, cwd=self.cwd)
        self.is_wanted, self.ended_by_us = True, False

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self, number=signal.SIGKILL):
        """Ends it, and keeps it ended until start()."""
        self.is_wanted = False
        if self.is_alive():
            self.ended_by_us = True
            self.process.send_signal(number)
            if number == signal.SIGKILL:
                self.process.wait()

    def children(self):
        found = []
        for path in glob.glob(f"/proc/{self.process.pid}/task/*/children"):
            with contextlib.suppress(OSError):
                found += map(int, open(path).read().split())
        return found


def writers_of(undo):
    """Processes whose writes are kept in this folder, to be taken back."""
    found = set()
    for path in glob.glob("/proc/[0-9]*/environ"):
        with contextlib.suppress(OSError), open(path, "rb") as f:
            if f"CHAOS_UNDO={undo}".encode() in f.read().split(b"\0"):
                found.add(int(path.split("/")[2]))
    return found


class Fleet:
    def __init__(self, folder, build, cluster, library, n_runners=3, slots=3):
        self.folder, self.build, self.cluster, self.library = folder, build, cluster, library
        self.deaths = []  # of processes that nobody killed
        self.log = open(os.path.join(folder, "proxies.log"), "ab")
        self.trial = os.path.join(build, "tests", "chaos", "chaos_trial")
        self.token_file = os.path.join(folder, "admin.token")
        program, home = os.path.join(build, "tests", "chaos", "chaos_proxy"), cluster.socket + "/.s.PGSQL.5432"
        self.database_proxies = []
        for i in range(2):
            place = os.path.join(folder, f"db{i}")
            os.mkdir(place)
            self.database_proxies.append(Proxy(program, f"unix:{place}/.s.PGSQL.5432", "; commit;|pg_logical_emit_message", "unix:" + home, self.log))
        self.http_proxy = Proxy(program, "tcp:0", "/complete|/batch", "tcp:1", self.log)
        self.port = int(self.http_proxy.address.split(":")[1])
        self.servers = [self.server(i) for i in range(2)]
        self.runners = [self.runner(i, slots) for i in range(n_runners)]
        self.routed = None

    def server(self, i):
        argv = [os.path.join(self.build, "api", "server", "assayd"), "--listen", "127.0.0.1:0", "--address-file",
                self.address_file(i), "--lease", f"{LEASE_S}s", "--heartbeat", f"{HEARTBEAT_S}s", "--database-wait", "1h",
                "--max-connections-per-address", "0", "--bad-tokens-per-minute", "0",
                "--admin-token-file", self.token_file]
        env = {**os.environ, "ASSAY_ALLOW_FSYNC_OFF": "1",  # a planted fault
               "ASSAY_DATABASE": f"postgresql:///assay?user=assay&host={os.path.join(self.folder, f'db{i}')}"}
        return Member(f"server {i}", argv, env, os.path.join(self.folder, f"server{i}.log"), self.folder)

    def runner(self, i, slots):
        work, undo = os.path.join(self.folder, f"work{i}"), os.path.join(self.folder, f"undo{i}")
        for path in (work, undo):
            os.makedirs(path, mode=0o700)
        control = Control(os.path.join(self.folder, f"control{i}"))
        argv = [os.path.join(self.build, "trial-runner", "agent", "assay-runner"), "--name", f"r{i}", "--slots", str(slots),
                "--work", work, "--cache", os.path.join(self.folder, f"cache{i}"), "--gpus", "none", "--cpus", "64",
                "--memory", "64GiB", "--no-affinity", "--group", "4"]
        env = {**os.environ, **shim_env(self.library, control, undo, os.path.join(work, "trials"), work),
               "ASSAY_SERVER": f"http://127.0.0.1:{self.port}", "ASSAY_TOKEN_FILE": self.token_file}
        member = Member(f"runner {i}", argv, env, os.path.join(self.folder, f"runner{i}.log"), self.folder)
        member.control, member.work, member.undo = control, work, undo
        return member

    def address_file(self, i):
        return os.path.join(self.folder, f"address{i}")

    def start(self, wait):
        """wait(condition, what). The first server alone: it makes the tables and the token."""
        for i, server in enumerate(self.servers):
            self.start_server(i)
            wait(lambda i=i: os.path.exists(self.address_file(i)), server.name)
        self.tick()
        self.token = open(self.token_file).read().strip()
        for runner in self.runners:
            runner.start()

    def start_server(self, i):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.address_file(i))
        self.servers[i].start()

    def tick(self):
        """Route to the servers that listen; note who ended by itself, and start it again."""
        ports = [open(self.address_file(i)).read().strip().rstrip("/").rsplit(":", 1)[1]
                 for i, s in enumerate(self.servers) if s.is_alive() and os.path.exists(self.address_file(i))]
        if ports != self.routed and ports:
            self.http_proxy.command("to " + " ".join("tcp:" + p for p in ports))
            self.routed = ports
        for i, member in enumerate(self.servers + self.runners):
            if member.is_wanted and not member.is_alive():
                self.deaths.append((time.monotonic(), f"{member.name} ended by itself with {member.process.returncode}, "
                                                      f"see {member.log_path}"))
                if i < len(self.servers):
                    self.start_server(i)
                else:
                    member.start()

    def trials(self):
        """Pids of the processes below the runners."""
        return [pid for r in self.runners if r.is_alive() for pid in r.children()]

    def power_cut_runner(self, i, rng):
        """The runner's machine: it, its trials, and what its journal had not synced."""
        runner = self.runners[i]
        pids = set(runner.children() if runner.is_alive() else [])
        for pid in pids:
            signal_pid(pid, signal.SIGSTOP)
        runner.kill()
        pids |= writers_of(runner.undo)  # one that began after the look at its children
        for pid in pids:
            signal_pid(pid, signal.SIGKILL)
        end = time.monotonic() + 60
        while not all(is_zombie(pid) for pid in pids) and time.monotonic() < end:
            time.sleep(0.01)
        return take_back(os.path.join(runner.work, "trials"), runner.undo, rng, False)

    def end(self):
        for member in self.runners + self.servers:
            member.kill()
        for proxy in [*self.database_proxies, self.http_proxy]:
            proxy.end()
        self.log.close()
