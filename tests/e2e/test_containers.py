#!/usr/bin/env python3
"""trial.container with the podman of this machine: a program runs in an image that the test makes of busybox, with its
folders, variables, signals and exit codes, and no container outlives its attempt, whoever is killed."""
import json
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile

from harness import PATIENCE_S, Assay, skip
from test_environment import DOCUMENT, given, kept, reason, write

IMAGE = "localhost/assay-test:busybox"
# Settings with which podman also runs where a test is itself in a container.
SETTINGS = """
[containers]
netns = "host"
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
{runtime}
events_logger = "file"
"""
STORAGE = """
[storage]
driver = "vfs"
graphroot = "{folder}/graph"
runroot = "{folder}/run"
"""
PROGRAM = """
test ! -e /etc/hostname.host || exit 9
printf '{"PATH": "%s", "TOKEN": "%s", "GREETING": "%s", "LEVEL": "%s", "HOME_": "%s", "x": "%s", "dir": "%s", "id": "%s"}' \\
  "$PATH" "$TOKEN" "$GREETING" "$LEVEL" "$HOME" "$ASSAY_PARAM_x" "$PWD" "$(cat /etc/image)" > "$ASSAY_ARTIFACTS/given.json"
cat "$ASSAY_PARAMS" > from-container.json
echo '{"loss": 1}' >> "$ASSAY_REPORT"
"""


def podman(env, *args, check=True):
    return subprocess.run(["podman", *args], env={**os.environ, **env}, capture_output=True, text=True, check=check,
                          timeout=PATIENCE_S)


def make_image(folder, env):
    root, tar = os.path.join(folder, "root"), os.path.join(folder, "root.tar")
    os.makedirs(os.path.join(root, "bin"))
    os.makedirs(os.path.join(root, "etc"))
    write(os.path.join(root, "etc", "image"), "made by the test")
    shutil.copy(shutil.which("busybox"), os.path.join(root, "bin", "busybox"))
    for name in ("sh", "cat", "sleep", "kill", "test", "printf", "touch", "httpd", "wget", "mv"):
        os.symlink("busybox", os.path.join(root, "bin", name))
    with tarfile.open(tar, "w") as t:
        t.add(root, "/")
    podman(env, "import", tar, IMAGE)


def settings(folder):
    runtime = 'runtime = "runc"' if shutil.which("runc") else ""
    write(os.path.join(folder, "containers.conf"), SETTINGS.format(runtime=runtime))
    write(os.path.join(folder, "storage.conf"), STORAGE.format(folder=folder))
    return {"CONTAINERS_CONF": os.path.join(folder, "containers.conf"),
            "CONTAINERS_STORAGE_CONF": os.path.join(folder, "storage.conf")}


# The second of two ranks finds the first one where torchrun's variables say. They have one folder.
RANKS = """
if [ "$RANK" = 0 ]; then
  echo "rank 0 of $WORLD_SIZE in $(cat /etc/image)" > hello
  httpd -f -p "$MASTER_ADDR:$MASTER_PORT" -h . &
  until test -e got; do sleep 0.1; done
  kill $!
  cat got > "$ASSAY_ARTIFACTS/met"
  echo '{"loss": 1}' >> "$ASSAY_REPORT"
else
  until wget -q -O part "http://$MASTER_ADDR:$MASTER_PORT/hello"; do sleep 0.1; done
  mv part got
fi
"""


class Case:
    def __init__(self, assay, folder, env):
        self.assay, self.folder, self.env = assay, folder, env

    def sweep(self, script, limits=None, resources=None, **trial):
        document = {**DOCUMENT, **({"resources": resources} if resources else {}), "limits": {**DOCUMENT["limits"], **(limits or {})}, "trial": {
            "command": ["sh", "-c", script], "directory": self.folder, "container": IMAGE, **trial}}
        return self.assay.call("POST", "/v1/sweeps", document)["id"]

    def containers(self):
        return podman(self.env, "ps", "--all", "--quiet").stdout.split()

    def none_is_left(self):
        self.assay.wait(lambda: not self.containers(), "the containers to be removed")

    def folders_and_variables(self):
        write(os.path.join(self.folder, ".env"), "TOKEN='s3cret'\nGREETING=\"two words\"\n")
        write(os.path.join(self.folder, "program.sh"), PROGRAM)
        seen = given(self.assay, self.sweep("", command=["sh", "program.sh"], env_file=".env",
                                            env={"LEVEL": "${x}", "HOME": "/home/of/image"}))
        assert seen["id"] == "made by the test" and seen["dir"] == self.folder, seen
        assert seen["TOKEN"] == "s3cret" and seen["GREETING"] == "two words" and seen["HOME_"] == "/home/of/image", seen
        assert seen["LEVEL"] == seen["x"], seen
        assert "own-venv" not in seen["PATH"], seen
        assert "x" in json.load(open(os.path.join(self.folder, "from-container.json")))
        self.none_is_left()

    def exits(self):
        for script, outcome, code in (("exit 3", "failed", 3), ("exit 75", "retry", 75),
                                      ("sh -c 'kill -9 $$'; exit $?", "retry", -9)):  # as if somebody killed the program
            attempt = self.ended(self.sweep(script))["attempts"][-1]
            assert attempt["outcome"] == outcome and attempt["exit_code"] == code, (script, attempt)
        why = reason(self.assay, self.sweep("exit 0", container="localhost/no-such-image"))
        assert "no-such-image" in why or "125" in why, why
        self.none_is_left()

    def ended(self, sweep):
        self.assay.wait_ended(sweep)
        return self.assay.call("GET", f"/v1/sweeps/{sweep}/trials/0")

    def stops(self):
        """SIGTERM reaches the program; what does not listen is killed with its container."""
        for seconds in (3, 10, 30, 90):  # as long as this machine takes to begin the program
            trial = self.ended(self.sweep("trap 'touch got-term; exit 0' TERM; while :; do sleep 0.1; done",
                                          {"trial_timeout": f"{seconds}s", "grace": "200s"}))
            assert trial["attempts"][-1]["outcome"] == "timeout", trial
            if os.path.exists(os.path.join(self.folder, "got-term")):
                break  # else the signal came when the program was about to begin, and nobody passed it on
        assert os.path.exists(os.path.join(self.folder, "got-term")), os.listdir(self.folder)
        self.ended(self.sweep("trap '' TERM; while :; do sleep 0.1; done", {"trial_timeout": "3s", "grace": "1s"}))
        self.none_is_left()

    def ranks(self):
        """Each rank has a container; they reach each other, and go when one of them ends."""
        met = kept(self.assay, self.sweep(RANKS, resources={"ranks": 2}), "met")
        assert met == b"rank 0 of 2 in made by the test\n", met
        self.none_is_left()
        trial = self.ended(self.sweep('test "$RANK" = 0 && exit 3; while :; do sleep 0.1; done', {"grace": "1s"}, {"ranks": 2}))
        assert trial["attempts"][-1]["exit_code"] == 3, trial
        self.none_is_left()

    def runner_dies(self):
        sweep = self.sweep("touch running; while :; do sleep 0.1; done", {"grace": "1s"})
        self.assay.wait(lambda: os.path.exists(os.path.join(self.folder, "running")), "the program to run")
        assert len(self.containers()) == 1
        runner, = self.assay.processes("assay-runner")
        self.assay.up.send_signal(signal.SIGSTOP)  # no other runner starts, which would clean up
        os.kill(runner, signal.SIGKILL)
        self.none_is_left()
        self.assay.up.send_signal(signal.SIGCONT)
        self.assay.cli("cancel", sweep)
        self.assay.wait_ended(sweep)


def main():
    if not shutil.which("podman") or not shutil.which("busybox"):
        skip("podman or a static busybox is not installed")
    own = tempfile.mkdtemp(prefix="assay-podman-", dir="/var/tmp")
    try:
        env = settings(own)
        try:
            make_image(own, env)
        except subprocess.CalledProcessError as e:
            skip(f"podman cannot make an image here: {e.stderr}")
        probe = podman(env, "run", "--rm", IMAGE, "sh", "-c", "exit 0", check=False)
        if probe.returncode != 0:
            skip(f"podman cannot run a container here: {probe.stderr}")
        with Assay(runners=1, slots=2, env=env) as assay:
            folder = os.path.join(assay.data, "programs")
            os.mkdir(folder)
            case = Case(assay, folder, env)
            for part in (case.folders_and_variables, case.exits, case.stops, case.ranks, case.runner_dies):
                try:
                    part()
                finally:
                    assay.up.send_signal(signal.SIGCONT)
                print(f"{part.__name__}: ok", flush=True)
    finally:
        podman(settings(own), "rm", "--all", "--force", check=False)
        shutil.rmtree(own, ignore_errors=True)


if __name__ == "__main__":
    main()
