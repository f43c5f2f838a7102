#!/usr/bin/env python3
"""A fleet on a real Slurm of one node (slurm_cluster.py): an array of runners, a gang across two of them, a job whose time
ends, scaling from zero and back, and what goes wrong."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness import ASSAY, BUILD, PATIENCE_S, Assay, skip
from slurm_cluster import Slurm, missing

RUNNER = os.path.join(BUILD, "trial-runner", "agent", "assay-runner")
REPORT = 'echo \'{"loss": 1}\' >> "$ASSAY_REPORT"'
# It goes on from what the attempt before it left; the first one waits for the end of its job.
LONG = ('[ -f "$ASSAY_CHECKPOINTS/c" ] && { ' + REPORT + '; exit 0; }; trap \'echo 1 > "$ASSAY_CHECKPOINTS/c"; exit 0\' TERM; '
        'while :; do sleep 0.1; done')


def document(name, script, trials=1, **more):
    return {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "ensemble": False,
            "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "search": {"method": "random", "seed": 1},
            "limits": {"max_trials": trials, "max_restarts": 0, "grace": "30s", **more.pop("limits", {})},
            "trial": {"command": ["sh", "-c", script]}, **more}


class Lab:
    """`assay up` without runners beside the Slurm; commands of the CLI see both."""

    def __init__(self, assay, slurm):
        self.assay, self.slurm = assay, slurm
        self.env = {**slurm.env, **assay.env, "PATH": slurm.env["PATH"], "XDG_STATE_HOME": os.path.join(assay.data, "state")}

    def cli(self, *args, code=0):
        done = subprocess.run([ASSAY, *args], env=self.env, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return done

    def launch(self, name, *args, code=0):
        return self.cli("launch", "slurm", "--name", name, "--program", RUNNER, "--cpus", "1", "--memory", "200MiB",
                        "--work", os.path.join(self.assay.data, "work"), *args, code=code)

    def live(self, fleet):
        return [r for r in self.assay.call("GET", "/v1/runners")["items"] if r["state"] == "live" and r["fleet"] == fleet]

    def create(self, *args, **more):
        return self.assay.call("POST", "/v1/sweeps", document(*args, **more))["id"]

    def jobs_end(self):
        self.assay.wait(lambda: not self.slurm.jobs(), "the end of all jobs")

    def attempts(self, sweep, number=0):
        return self.assay.call("GET", f"/v1/sweeps/{sweep}/trials/{number}")["attempts"]


def an_array_of_two(lab):
    script = lab.launch("lab", "--runners", "2", "--time", "10m", "--print").stdout
    assert "#SBATCH --array=0-1\n" in script and lab.assay.token not in script, script
    assert not lab.slurm.jobs()
    lab.launch("lab", "--runners", "2", "--time", "10m")
    runners = lab.assay.wait(lambda: len(lab.live("lab")) == 2 and lab.live("lab"), "two runners")
    jobs = sorted(r["job"] for r in runners)
    assert all(re.fullmatch(r"slurm/\d+_[01]", j) for j in jobs) and jobs[0] != jobs[1], jobs
    assert all(r["cpus"] == 1 and r["memory_bytes"] == 200 << 20 for r in runners), runners
    sweep = lab.create("many", f"sleep 0.2; {REPORT}", trials=6)
    lab.assay.wait_ended(sweep)
    ran = {lab.attempts(sweep, n)[-1]["runner"] for n in range(6)}
    assert len(ran) == 2, ran
    table = lab.cli("launch", "slurm", "--name", "lab", "--status").stdout
    assert table.count("running\t1\t0") == 2, table
    assert "slurm/" in lab.cli("runners").stdout
    lock = os.path.join(lab.env["XDG_STATE_HOME"], "assay/fleets/lab/token")
    assert os.stat(lock).st_mode & 0o777 == 0o600
    for pid in filter(str.isdigit, os.listdir("/proc")):  # no secret in any command line
        with contextlib.suppress(OSError):
            assert open(lock).read().strip().encode() not in open(f"/proc/{pid}/cmdline", "rb").read()
    print("an array of two runners", flush=True)


def a_gang_across_two(lab):
    script = f'[ "$RANK" != 0 ] || {REPORT}'
    sweep = lab.create("gang", script, resources={"ranks": 2})
    lab.assay.wait_ended(sweep)
    t = lab.assay.call("GET", f"/v1/sweeps/{sweep}/trials/0")
    assert t["state"] == "completed", t
    gang = lab.assay.call("GET", f"/v1/sweeps/{sweep}/trials/0/attempts/1/gang")
    assert len({s["runner"] for s in gang["seats"]}) == 2, gang
    print("a gang of two ranks across them", flush=True)


def scale_and_stop(lab):
    lab.cli("launch", "slurm", "--name", "lab", "--scale", "3")
    lab.assay.wait(lambda: len(lab.live("lab")) == 3, "a third runner")
    lab.cli("launch", "slurm", "--name", "lab", "--scale", "1")
    lab.assay.wait(lambda: len(lab.live("lab")) == 1, "one runner")
    lab.cli("launch", "slurm", "--name", "lab", "--stop")
    lab.jobs_end()
    assert not lab.live("lab")
    print("scaled and stopped by hand", flush=True)


def ranks_of_one_job(lab):
    """They are steps of one job, so scancel reaches them through srun and by themselves: one signal, not a second one."""
    sweep = lab.create("pair", LONG + "; " + REPORT, resources={"ranks": 2})
    lab.launch("gang", "--runners", "2", "--ranks", "2", "--time", "10m")
    runners = lab.assay.wait(lambda: len(lab.live("gang")) == 2 and lab.live("gang"), "the ranks of a job")
    assert len({r["job"] for r in runners}) == 1, runners
    lab.assay.wait(lambda: lab.assay.sweep(sweep)["counts"]["running"] == 1, "the gang")
    lab.cli("launch", "slurm", "--name", "gang", "--stop")
    lab.jobs_end()
    lab.assay.call("PATCH", f"/v1/sweeps/{sweep}", {"state": "cancelled"})
    assert lab.assay.call("GET", f"/v1/sweeps/{sweep}/trials/0")["restarts"] == 0
    print("two ranks of one job", flush=True)


def the_time_ends(lab):
    """A job of a minute. Its trial goes on from its checkpoint in another job, with no restart to spare."""
    sweep = lab.create("long", LONG)
    lab.launch("short", "--time", "1m")
    lab.assay.wait(lambda: lab.attempts(sweep) and lab.attempts(sweep)[0]["ended_at"], "the end of the first attempt")
    first = lab.attempts(sweep)[0]
    assert first["outcome"] == "released", first
    lab.jobs_end()
    lab.launch("rest", "--time", "10m")
    lab.assay.wait_ended(sweep)
    t = lab.assay.call("GET", f"/v1/sweeps/{sweep}/trials/0")
    assert t["state"] == "completed" and t["restarts"] == 0 and t["attempt"] == 2, t
    lab.cli("launch", "slurm", "--name", "rest", "--stop")
    lab.jobs_end()
    print("a trial whose job ended went on in another one", flush=True)


@contextlib.contextmanager
def autoscaled(lab, name, *args):
    log = os.path.join(lab.assay.data, f"{name}.autoscale")
    with open(log, "wb") as out:
        p = subprocess.Popen([ASSAY, "autoscale", name, "--cool-down", "1s", "--every", "500ms", "--idle", "2s", *args], env=lab.env,
                             stdout=out, stderr=out)
    try:
        yield lambda: open(log).read()
    except BaseException:
        print(open(log).read(), file=sys.stderr)
        raise
    finally:
        p.send_signal(signal.SIGINT)
        assert p.wait(PATIENCE_S) in (0, 2), open(log).read()


def from_zero_and_back(lab):
    lab.launch("auto", "--runners", "0", "--time", "10m")
    demand = lab.assay.call("GET", "/v1/demand")
    assert demand["slots"] == 0 and demand["runners"] == 0, demand
    sweep = lab.create("auto", f"sleep 1; {REPORT}", trials=4, limits={"max_concurrent_trials": 2})
    assert lab.assay.call("GET", "/v1/demand")["slots"] == 2
    dry = lab.cli("autoscale", "auto", "--dry-run", "--once", "--max", "3").stdout
    assert "(dry run)" in dry and "start 2" in dry and not lab.slurm.jobs(), dry
    with autoscaled(lab, "auto", "--max", "3") as log:
        lab.assay.wait(lambda: len(lab.live("auto")) == 2, "two runners")
        other = lab.cli("autoscale", "auto", "--once", code=5)
        assert "another assay autoscale" in other.stderr, other.stderr
        lab.assay.wait_ended(sweep)
        lab.jobs_end()
        assert "start 2" in log() and "nothing waits: end" in log(), log()
        # a runner that is free and has not claimed yet may look like a slot that lacks: what never happens is a start for what is on its way
        starts = [line for line in log().splitlines() if "start " in line]
        assert all("0 of them without a runner yet" in line for line in starts) and len(starts) <= 2, log()
    print("from zero and back", flush=True)


def the_scheduler_is_away(lab):
    lab.launch("away", "--runners", "0", "--time", "10m")
    controller = next(p for p in lab.slurm.processes if p.args[0] == "slurmctld")
    with autoscaled(lab, "away", "--max", "1") as log:
        lab.assay.wait(lambda: "nothing waits" in log(), "a first look")
        controller.send_signal(signal.SIGTERM)
        controller.wait(PATIENCE_S)
        sweep = lab.create("away", REPORT)
        lab.assay.wait(lambda: "squeue: " in log() or "sbatch: " in log(), "a word that the scheduler is away")
        lab.slurm.start("slurmctld", "-D")
        lab.assay.wait_ended(sweep)
        lab.jobs_end()
    print("the scheduler was away", flush=True)


def jobs_that_die(lab):
    """The program ends at once. A few jobs are tried, with longer and longer pauses, and said so."""
    lab.cli("launch", "slurm", "--name", "dies", "--program", "/bin/false", "--runners", "0")
    sweep = lab.create("dies", REPORT)
    with autoscaled(lab, "dies", "--max", "1") as log:
        lab.assay.wait(lambda: log().count("start 1") >= 2 and "backing off" in log(), "a second try")
        assert "ended before their runners had registered" in log(), log()
        began, before = time.monotonic(), log().count("start 1")
        time.sleep(3)  # bounds a rate from above: with a cool-down of 1 s there were three more without the pauses
        assert log().count("start 1") - before <= (time.monotonic() - began) / 2, log()
    lab.assay.call("PATCH", f"/v1/sweeps/{sweep}", {"state": "cancelled"})
    lab.jobs_end()
    print("jobs that die at their start", flush=True)


def what_is_refused(lab):
    wrong = lab.launch("wrong", "--partition", "nowhere", code=5)
    assert "sbatch" in wrong.stderr and "partition" in wrong.stderr, wrong.stderr
    for args, part in ((("--partition", "a b"), "--partition"), (("--partition", "x\n#SBATCH --uid=0"), "--partition"),
                       (("--account", "-x"), "--account"), (("--runners", "-1"), "runners"), (("--memory", "much"), "--memory"),
                       (("--logs", "/tmp/a b"), "--logs"), (("--runner-server", "ftp://x"), "--runner-server")):
        assert part in lab.launch("wrong", *args, code=64).stderr
    assert "--name" in lab.cli("launch", "slurm", "--name", "../up", "--stop", code=64).stderr
    assert "no fleet" in lab.cli("launch", "slurm", "--name", "unknown", "--stop", code=3).stderr
    open_token = os.path.join(lab.assay.data, "open.token")
    shutil.copy(lab.assay.env["ASSAY_TOKEN_FILE"], open_token)
    os.chmod(open_token, 0o644)
    assert "chmod 600" in lab.launch("wrong", "--runner-token", open_token, code=4).stderr
    lab.env, kept = {**lab.env, "PATH": "/nowhere"}, lab.env
    assert "not installed" in lab.launch("wrong", code=3).stderr
    lab.env = kept
    assert not lab.slurm.jobs()
    print("what is refused", flush=True)


def main():
    why = missing()
    if why:
        skip(f"Slurm: {why}")
    folder = tempfile.mkdtemp(prefix="assay-slurm-", dir="/var/tmp")
    try:
        with Assay(runners=0) as assay, Slurm(os.path.join(folder, "slurm")) as slurm:
            lab = Lab(assay, slurm)
            for part in (what_is_refused, an_array_of_two, a_gang_across_two, scale_and_stop, ranks_of_one_job, from_zero_and_back,
                         jobs_that_die, the_scheduler_is_away, the_time_ends):
                part(lab)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
