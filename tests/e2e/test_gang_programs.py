#!/usr/bin/env python3
"""Programs of users as ranks of one trial: the examples (plain sockets, mpirun, PyTorch), and what happens when a rank
fails or is killed. Ranks are on two runners."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from harness import SOURCE, Assay

PROGRAM = """import json, os, signal, sys, time
rank, folder = int(os.environ["RANK"]), os.environ["ASSAY_CHECKPOINTS"]
before = os.path.exists(os.path.join(folder, "seen"))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
if rank == 0:
    open(os.path.join(folder, "seen"), "w").write("x")
if not before:
    if rank == int(sys.argv[1]):
        while not os.path.exists(sys.argv[2]):  # the gate
            time.sleep(0.05)
        print("the disk of rank", rank, "is gone")
        sys.exit(1)
    time.sleep(1000)
if rank == 0:
    open(os.environ["ASSAY_REPORT"], "a").write(json.dumps({"loss": int(os.environ["TORCHELASTIC_RESTART_COUNT"])}))
"""


def document(name, ranks, command, **trial):
    return {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "ensemble": False,
            "parameters": {"lr": {"type": "categorical", "values": [0.5]}}, "search": {"method": "random", "seed": 1},
            "limits": {"max_trials": 1, "max_restarts": 3, "grace": "5s"}, "resources": {"ranks": ranks},
            "trial": {"command": command, "directory": SOURCE, **trial}}


def create(assay, *args, **trial):
    return assay.call("POST", "/v1/sweeps", document(*args, **trial))["id"]


def only_trial(assay, sweep):
    assay.wait_ended(sweep)
    return assay.call("GET", f"/v1/sweeps/{sweep}/trials/0")


def example(assay, name, check):
    done = assay.cli("run", f"examples/{name}.yaml", "--watch")
    sweep = done.stdout.split()[0]
    assay.wait_ended(sweep)
    s = assay.sweep(sweep)
    assert s["counts"]["completed"] == s["counts"]["total"] > 0, (s["counts"], done.stdout)
    for t in assay.trials(sweep):
        check(assay, sweep, t)
    print(f"{name}: {s['counts']['completed']} trials", flush=True)


def check_sockets(assay, sweep, t):
    assert t["restarts"] == 0 and t["step"] == 40, t
    log = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}/log")["text"]
    assert "rank 0 of 3: y = " in log and "rank 1" not in log, log
    series = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}/measurements")["series"]["loss"]
    assert series["steps"] == list(range(1, 41)), series
    seats = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}/attempts/1/gang")["seats"]
    assert len(seats) == 3 and len({s["runner"] for s in seats}) == 2, seats


def check_mpi(assay, sweep, t):
    assert t["value"] == 2, t
    log = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{t['number']}/log")["text"]
    assert "process 0 of 2" in log and "process 1 of 2" in log, log


def check_torch(assay, sweep, t):
    assert t["metrics"]["ranks"] == 2 and t["step"] == 5, t


def python_with_torch():
    """In PATH, or Debian's own."""
    for python in ("python3", "/usr/bin/python3"):
        found = shutil.which(python)
        if found and subprocess.run([found, "-c", "import torch.distributed as d; assert d.is_available()"],
                                    stderr=subprocess.DEVNULL).returncode == 0:
            return found
    return None


def await_checkpoint(assay, sweep):
    """It is copied every two seconds."""
    files = f"/v1/sweeps/{sweep}/trials/0/artifacts?kind=checkpoint"
    assay.wait(lambda: any(f["path"] == "seen" for f in assay.call("GET", files)["items"]), "the checkpoint")


def fail(assay, rank):
    """A rank exits with 1: the attempt ends for all, names the rank, and is tried again from its checkpoint."""
    gate = os.path.join(assay.data, f"gate-{rank}")
    sweep = create(assay, f"fail-{rank}", 3, [sys.executable, "-c", PROGRAM, str(rank), gate])
    await_checkpoint(assay, sweep)
    open(gate, "w").close()
    trial = only_trial(assay, sweep)
    assert trial["state"] == "completed" and trial["restarts"] == 1 and trial["value"] == 1, trial
    first = next(a for a in trial["attempts"] if a["attempt"] == 1)
    assert first["outcome"] == "retry" and f"the disk of rank {rank} is gone" in first["reason"], first
    assert f"rank {rank}" in first["reason"] or rank == 0, first
    print(f"a rank that fails: {first['reason']}", flush=True)


def pids_of(mark):
    """Processes whose command line has it."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if mark in open(f"/proc/{name}/cmdline").read().split("\0"):
                    found.append(int(name))
            except OSError:
                pass
    return found


def killed(assay):
    mark = f"mark-{os.getpid()}"
    sweep = create(assay, "killed", 3, [sys.executable, "-c", PROGRAM, "7", mark])
    pids = assay.wait(lambda: len(p := pids_of(mark)) == 3 and p, "three processes")
    await_checkpoint(assay, sweep)
    begin = time.monotonic()
    os.kill(pids[-1], signal.SIGKILL)
    assay.wait(lambda: not set(pids) & set(pids_of(mark)), "the end of the others")
    print(f"a rank was killed: the others ended {time.monotonic() - begin:.3f} s later", flush=True)
    trial = only_trial(assay, sweep)
    assert trial["state"] == "completed" and trial["restarts"] == 1 and trial["value"] == 1, trial


def hostfile(assay):
    sweep = create(assay, "hostfile", 3, ["sh", "-c", "cat $ASSAY_HOSTFILE; env | sort; echo '{\"loss\": 1}' > "
                                          "$ASSAY_REPORT"], launch="first")
    trial = only_trial(assay, sweep)
    assert trial["state"] == "completed", trial
    log = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0/log")["text"]
    assert f"{os.uname().nodename} slots=3\n" in log, log
    for line in ("RANK=0", "WORLD_SIZE=3", "GROUP_WORLD_SIZE=2", f"TORCHELASTIC_RUN_ID={sweep}/0.1", "MASTER_ADDR=127.0.0.1"):
        assert f"\n{line}\n" in log, (line, log)


# A script as there are many: it goes on from the file that it finds where it runs, reads the project's data, and
# imports a module beside it. It waits until the other trial has written its file.
RESUMING = """import json, os, sys, time
import beside
rank, mine, gate = os.environ["RANK"], sys.argv[1], sys.argv[2]
found = open("snapshot.pt").read() if os.path.exists("snapshot.pt") else mine
assert open("data/table.csv").read() == "x" and beside.ONE == 1
assert os.path.isdir(os.path.join(os.environ["ASSAY_PROJECT"], "data"))
if rank == "0":
    open("snapshot.pt", "w").write(mine)
    open(os.path.join(gate, mine), "w").close()
    while len(os.listdir(gate)) < 2:
        time.sleep(0.02)
    if os.environ["ASSAY_ATTEMPT"] == "1":
        sys.exit(75)
    open(os.environ["ASSAY_REPORT"], "a").write(json.dumps({"loss": int(found == mine == open("snapshot.pt").read())}))
"""


def folders(assay):
    """Two trials of two ranks write one name where they run. Neither finds the other's file, and the next attempt finds
    its own."""
    project, gate = os.path.join(assay.data, "project"), os.path.join(assay.data, "both")
    os.makedirs(os.path.join(project, "data"))
    os.mkdir(gate)
    for path, text in (("train.py", RESUMING), ("beside.py", "ONE = 1\n"), ("data/table.csv", "x")):
        with open(os.path.join(project, path), "w") as f:
            f.write(text)
    doc = document("folders", 2, [sys.executable, "train.py", "${m}", gate])
    doc["trial"]["directory"] = project
    doc["parameters"] = {"m": {"type": "categorical", "values": ["a", "b"]}}
    doc["search"], doc["limits"]["max_trials"] = {"method": "grid"}, 2
    sweep = assay.call("POST", "/v1/sweeps", doc)["id"]
    assay.wait_ended(sweep)
    for t in assay.trials(sweep):
        assert t["state"] == "completed" and t["restarts"] == 1 and t["value"] == 1, t
        own = os.path.join(project, ".assay", sweep, str(t["number"]))
        assert open(os.path.join(own, "snapshot.pt")).read() == t["params"]["m"], own
    assert sorted(os.listdir(project)) == [".assay", "__pycache__", "beside.py", "data", "train.py"] or \
        sorted(os.listdir(project)) == [".assay", "beside.py", "data", "train.py"], os.listdir(project)


# What Horovod's processes do when they begin (horovod/common/gloo/http_store.cc, gloo_context.cc): in three scopes each puts
# its own address under its rank, waits for those of the others, and says that it is done. One waits before it asks.
MEETING = """import json, os, time, urllib.error, urllib.request
env = {n[8:]: v for n, v in os.environ.items() if n.startswith("HOROVOD_")}
assert env["CONTROLLER"] == env["CPU_OPERATIONS"] == "gloo"
def call(method, scope, key, body=None):
    url = "http://%s:%s/%s/%s" % (env["GLOO_RENDEZVOUS_ADDR"], env["GLOO_RENDEZVOUS_PORT"], scope, key)
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=body, method=method)) as answer:
            return answer.read()
    except urllib.error.HTTPError as e:
        assert e.code == 404 and method == "GET", (url, e.code)
        return None
met = 0
for scope, rank, size in (("global_", env["RANK"], env["SIZE"]), ("local_" + env["HOSTNAME"], env["LOCAL_RANK"], env["LOCAL_SIZE"]),
                          ("cross_" + env["LOCAL_RANK"], env["CROSS_RANK"], env["CROSS_SIZE"])):
    call("PUT", scope, rank, b"at\\0" + env["RANK"].encode() * 300)
    if env["RANK"] == "1":
        time.sleep(0.5)  # the others are done by then, and what they put is still there
    for other in range(int(size)):
        while True:
            value = call("GET", scope, other)
            if value is not None:
                break
            time.sleep(0.01)
        assert value[:3] == b"at\\0" and len(value) == 303, value
        met += scope != "global_" or value[3:4] == str(other).encode()
    call("DELETE", scope, rank)
for path in ("/", "/a", "/a/b/c"):
    try:
        urllib.request.urlopen("http://%s:%s%s" % (env["GLOO_RENDEZVOUS_ADDR"], env["GLOO_RENDEZVOUS_PORT"], path))
        raise SystemExit("answered " + path)
    except urllib.error.HTTPError as e:
        assert e.code == 400, e.code
call("PUT", "end", env["RANK"], b"")
if env["RANK"] == "0":  # the store is there while rank 0 runs, and it ends with the others
    while any(call("GET", "end", r) is None for r in range(int(env["SIZE"]))):
        time.sleep(0.01)
    open(os.environ["ASSAY_REPORT"], "a").write(json.dumps({"loss": met}))
"""


def rendezvous(assay):
    sweep = create(assay, "rendezvous", 3, [sys.executable, "-c", MEETING])
    trial = only_trial(assay, sweep)
    assert trial["state"] == "completed" and trial["restarts"] == 0, trial
    seats = assay.call("GET", f"/v1/sweeps/{sweep}/trials/0/attempts/1/gang")["seats"]
    local = sum(s["runner"] == seats[0]["runner"] for s in seats)
    assert trial["value"] == 3 + local + 2, (trial["value"], local)


def main():
    with Assay(runners=2, slots=2) as assay, contextlib.ExitStack() as after:
        if not os.path.exists(os.path.join(SOURCE, ".assay")):
            after.callback(shutil.rmtree, os.path.join(SOURCE, ".assay"), ignore_errors=True)
        folders(assay)
        rendezvous(assay)
        hostfile(assay)
        example(assay, "ranks", check_sockets)
        for rank in (0, 2):
            fail(assay, rank)
        killed(assay)
        if shutil.which("mpirun"):
            example(assay, "mpi", check_mpi)
        else:
            print("mpirun is not installed")
        python = python_with_torch()
        if python:
            text = open(os.path.join(SOURCE, "examples", "torch_ddp.yaml")).read()
            doc = assay.data + "/torch_ddp.yaml"
            with open(doc, "w") as f:
                f.write(text.replace("python3,", f"{python},"))
            done = assay.cli("run", doc)
            sweep = done.stdout.split()[0]
            assay.wait_ended(sweep)
            trials = assay.trials(sweep)
            assert len(trials) == 2 and all(t["state"] == "completed" for t in trials), trials
            for t in trials:
                check_torch(assay, sweep, t)
            print(f"torch: {json.dumps([t['value'] for t in trials])}", flush=True)
        else:
            print("torch cannot be imported")


main()
