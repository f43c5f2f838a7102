#!/usr/bin/env python3
"""A fleet on hosts that one can sign in to: two names of this machine, by an sshd of the test on a port of its own."""
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time

from harness import ASSAY, BUILD, PATIENCE_S, Assay, skip

RUNNER = os.path.join(BUILD, "trial-runner", "agent", "assay-runner")
HOSTS = ("pc-1", "pc-2")


class Sshd:
    """`with Sshd(folder) as sshd:`; sshd.path has an `ssh` that reaches it under any name."""

    def __init__(self, folder):
        self.folder = folder

    def file(self, name, text, mode=0o600):
        path = os.path.join(self.folder, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as f:
            f.write(text)
        return path

    def __enter__(self):
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # sshd's own, where no service has made it
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(self.folder, key)], check=True)
        shutil.copy(os.path.join(self.folder, "user.pub"), os.path.join(self.folder, "authorized"))
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        config = self.file("sshd_config", f"""ListenAddress 127.0.0.1:{port}
HostKey {self.folder}/host
AuthorizedKeysFile {self.folder}/authorized
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
""")
        self.file("ssh_config", f"""Host *
HostName 127.0.0.1
Port {port}
IdentityFile {self.folder}/user
IdentitiesOnly yes
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
""")
        self.path = os.path.join(self.folder, "bin")
        os.mkdir(self.path)
        self.file("bin/ssh", f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self.folder}/ssh_config "$@"\n', 0o755)
        self.log = open(os.path.join(self.folder, "sshd.log"), "ab")
        self.process = subprocess.Popen([shutil.which("sshd", path="/usr/sbin:/usr/bin"), "-D", "-e", "-f", config], stdout=self.log, stderr=self.log)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
                return self
            time.sleep(0.05)
        raise AssertionError("sshd does not answer: " + open(self.log.name).read())

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.log.close()


class Hosts:
    def __init__(self, assay, sshd, folder):
        self.assay, self.work = assay, os.path.join(folder, "it's work")
        self.env = {**assay.env, "PATH": sshd.path + ":" + os.environ["PATH"], "XDG_STATE_HOME": os.path.join(folder, "state")}

    def cli(self, *args, code=0):
        done = subprocess.run([ASSAY, *args], env=self.env, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return done

    def live(self):
        return [r for r in self.assay.call("GET", "/v1/runners")["items"] if r["state"] == "live" and r["fleet"] == "pcs"]


def one_host(h):
    """Both names are this machine: the second finds the runner of the first, for a machine has one of a fleet."""
    script = h.cli("launch", "ssh", HOSTS[0], "--name", "pcs", "--program", RUNNER, "--work", h.work, "--print").stdout
    assert h.assay.token not in script and "END_OF_TOKEN" not in script
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    h.cli("launch", "ssh", HOSTS[0], "--name", "pcs", "--program", RUNNER, "--work", h.work)
    runner = h.assay.wait(lambda: h.live() and h.live()[0], "a runner")
    assert runner["job"] == f"ssh/{HOSTS[0]}", runner
    token = os.path.join(h.work, "pcs", "token")
    assert os.stat(token).st_mode & 0o777 == 0o600 and os.stat(os.path.dirname(token)).st_mode & 0o777 == 0o700
    assert "more than there are hosts" in h.cli("launch", "ssh", HOSTS[1], "--name", "pcs", "--program", RUNNER, "--work", h.work, code=5).stderr
    assert len(h.live()) == 1
    sweep = h.assay.call("POST", "/v1/sweeps", {
        "name": "s", "metric": {"name": "loss", "goal": "minimize"}, "parameters": {"x": {"type": "float", "min": 0, "max": 1}},
        "search": {"method": "random"}, "limits": {"max_trials": 2}, "ensemble": False,
        "trial": {"command": ["sh", "-c", 'echo \'{"loss": 1}\' >> "$ASSAY_REPORT"']}})["id"]
    h.assay.wait_ended(sweep)
    h.cli("launch", "ssh", HOSTS[0], "--name", "pcs", "--program", RUNNER, "--work", h.work, "--runners", "0")
    table = h.cli("launch", "ssh", "--name", "pcs", "--status").stdout
    assert f"{HOSTS[0]}\trunning\t1\t0" in table, table
    print("a runner of a host", flush=True)


def stop(h):
    h.cli("launch", "ssh", "--name", "pcs", "--stop")
    h.assay.wait(lambda: not h.live(), "the end of the runner")
    print("stopped", flush=True)


def what_is_refused(h):
    assert "is no host" in h.cli("launch", "ssh", "--name", "pcs", "--", "-oProxyCommand=reboot", code=64).stderr
    assert "HOST" in h.cli("launch", "ssh", "--name", "none", code=64).stderr
    print("what is refused", flush=True)


def main():
    if not shutil.which("sshd", path="/usr/sbin:/usr/bin") or not shutil.which("ssh"):
        skip("not installed: sshd (Debian: openssh-server openssh-client)")
    if os.geteuid() != 0:
        skip("sshd of a test runs as root alone")
    folder = tempfile.mkdtemp(prefix="assay-ssh-", dir="/var/tmp")
    try:
        with Assay(runners=0) as assay, Sshd(folder) as sshd:
            h = Hosts(assay, sshd, folder)
            try:
                for part in (what_is_refused, one_host, stop):
                    part(h)
            finally:
                subprocess.run([ASSAY, "launch", "ssh", "--name", "pcs", "--stop"], env=h.env, capture_output=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
