"""A Slurm of one node for tests: munged, slurmctld and slurmd on private ports and in a folder of their own.

Nothing of the system's Slurm is read or written: SLURM_CONF names the folder's configuration, and munge has a socket and a
key there. The node has more CPUs than the machine, so that several jobs run at once; jobs are not bound to any.
"""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "munged")
PATIENCE_S = 60


def missing():
    """Why there can be no Slurm here, or None."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    lacks = [p for p in PROGRAMS if not shutil.which(p, path=path)]
    if lacks:
        return f"not installed: {' '.join(lacks)} (Debian: slurm-wlm munge)"
    if os.geteuid() != 0:
        return "slurmd runs jobs as root alone"
    return None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Slurm:
    """`with Slurm(folder) as slurm:`; slurm.env is the environment of its clients."""

    def __init__(self, folder, cpus=8, memory_mib=4096):
        self.folder = pathlib.Path(folder)
        self.processes = []
        self.env = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"),
                    "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
        for name in list(self.env):
            if name.startswith(("SLURM_JOB", "SBATCH_")):
                del self.env[name]
        self.cpus, self.memory_mib = cpus, memory_mib

    def start(self, name, *args):
        log = open(self.folder / f"{name}.out", "ab")
        self.processes.append(subprocess.Popen([name, *args], env=self.env, stdout=log, stderr=log, cwd=self.folder))

    def __enter__(self):
        f = self.folder
        f.mkdir(mode=0o755, parents=True, exist_ok=True)
        f.chmod(0o755)  # munged wants a folder that others can enter
        for name in ("state", "spool", "run"):
            (f / name).mkdir()
        (f / "run").chmod(0o755)
        (f / "munge.key").write_bytes(os.urandom(128))
        (f / "munge.key").chmod(0o600)
        host = socket.gethostname().split(".")[0]
        (f / "slurm.conf").write_text(f"""ClusterName=assay-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={f}/run/munge.socket
CredType=cred/munge
CryptoType=crypto/munge
StateSaveLocation={f}/state
SlurmdSpoolDir={f}/spool
SlurmctldPidFile={f}/slurmctld.pid
SlurmdPidFile={f}/slurmd.pid
SlurmctldLogFile={f}/slurmctld.log
SlurmdLogFile={f}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0,bf_min_age_reserve=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
MinJobAge=10
InactiveLimit=0
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={self.cpus} RealMemory={self.memory_mib} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
""")
        self.start("munged", "--foreground", "--force", f"--key-file={f}/munge.key", f"--socket={f}/run/munge.socket",
                   f"--pid-file={f}/run/munged.pid", f"--log-file={f}/munged.log", f"--seed-file={f}/munge.seed",
                   "--num-threads=1")
        self.wait(lambda: (f / "run/munge.socket").exists(), "munged")
        self.start("slurmctld", "-D", "-i", "-c")
        self.start("slurmd", "-D", "-c", "-N", host)
        self.wait(lambda: "idle" in self.run("sinfo", "-h", "-o", "%T", check=False), "an idle node")
        return self

    def wait(self, is_so, what):
        end = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > end:
                logs = "\n".join((self.folder / n).read_text(errors="replace")[-2000:]
                                 for n in ("slurmctld.log", "slurmd.log", "munged.log") if (self.folder / n).exists())
                raise AssertionError(f"Slurm: waited too long for {what}\n{logs}")
            time.sleep(0.1)

    def run(self, *command, check=True):
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=60)
        if check and done.returncode:
            raise AssertionError(f"{command}: {done.stderr}")
        return done.stdout

    def jobs(self):
        """[(id, state)] of jobs that have not ended; tasks of an array as ID_TASK."""
        lines = self.run("squeue", "-h", "-r", "-o", "%i %T").split("\n")
        return [tuple(line.split()) for line in lines if line]

    def __exit__(self, *_):
        try:
            subprocess.run(["scancel", "-u", "root"], env=self.env, capture_output=True, timeout=20)
            end = time.monotonic() + 15
            while self.jobs() and time.monotonic() < end:
                time.sleep(0.1)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            pass
        for p in reversed(self.processes):
            p.send_signal(signal.SIGTERM)
        for p in reversed(self.processes):
            try:
                p.wait(20)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
