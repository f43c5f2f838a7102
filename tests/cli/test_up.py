#!/usr/bin/env python3
"""`assay up` and every verb, with real programs. `assay up`: a second one on the same folder, kill -9 of any
process, a taken port, a missing database, stopping. The verbs with a real server: tables, tabs, JSON, exit
codes, the live display on a pseudo-terminal, a watch that survives a restart of the server."""
import csv
import io
import json
import os
import pty
import pwd
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["ASSAY_SOURCE_ROOT"], "tests", "e2e"))
from harness import ASSAY, PATIENCE_S, PROGRAMS, Assay, skip  # noqa: E402

SWEEP = """
name: cli-test
metric: {name: loss, goal: minimize}
parameters:
  x: {type: float, min: -1, max: 1}
  kind: {type: categorical, values: ["=formula", b]}
search: {method: random, seed: 5}
limits: {max_trials: 12, max_concurrent_trials: 2}
trial:
  command: [sh, -c, "printf 'hello \\\\033[31mred\\\\n'; until [ -e GO ]; do sleep 0.02; done; sleep 0.3; echo '{\\"loss\\": ${x}}' >> $ASSAY_REPORT"]
"""
# All but the first wait for a file.
SLOW = SWEEP.replace("name: cli-test", "name: slow").replace("trials: 12", "trials: 8").replace(
    "until [ -e GO ]", "until [ -e GO ] || [ $ASSAY_TRIAL = slow/0 ]")


def expect(done, code):
    assert done.returncode == code, (done.args, done.returncode, done.stdout, done.stderr)
    return done


def run_up(*args, env=None, cwd=None):
    return subprocess.run([ASSAY, "up", *args], capture_output=True, text=True, timeout=PATIENCE_S,
                          stdin=subprocess.DEVNULL, env=env, cwd=cwd)


def check_refusals(assay):
    """Command lines that fail before anything starts."""
    second = expect(run_up("--data", assay.data), 5)
    assert str(assay.up.pid) in second.stderr and assay.url in second.stderr, second.stderr
    with tempfile.TemporaryDirectory(dir="/var/tmp") as other, socket.socket() as taken:
        os.chmod(other, 0o755)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        busy = expect(run_up("--data", other, "--port", port), 5)
        assert port in busy.stderr, busy.stderr
    expect(run_up("--runners", "-1"), 64)
    expect(run_up("surprise"), 64)


def check_no_database():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as other:
        done = run_up("--data", other, "--port", "0", "--database", "postgresql://nobody@127.0.0.1:9/none")
        assert done.returncode == 7 and "database" in done.stderr, (done.returncode, done.stderr)


def check_usage(assay):
    wrong = expect(assay.cli("sweps", check=False), 64)
    assert "sweeps" in wrong.stderr, wrong.stderr
    expect(assay.cli("show", check=False), 64)
    expect(assay.cli("show", "a", "b", check=False), 64)
    expect(assay.cli("show", "--jsn", "a", check=False), 64)
    expect(assay.cli("show", "none-such", check=False), 3)
    expect(assay.cli("trial", "none-such/0", check=False), 3)
    expect(assay.cli("run", "/nowhere.yaml", check=False), 3)
    expect(assay.cli("sweeps", "--server", "http://127.0.0.1:9", check=False), 7)
    expect(assay.cli("sweeps", "--token", "assay_nonsense", check=False), 4)
    for verb in re.findall(r"^  ([a-z]+) ", assay.cli("help").stdout, re.M):
        if verb in ("ASSAY", "NO"):
            continue
        assert f"assay {verb}" in assay.cli("help", verb).stdout, verb


def check_bad_document(assay, folder):
    path = os.path.join(folder, "bad.yaml")
    with open(path, "w") as f:
        f.write(SWEEP.replace("max_trials: 12", "\n  max_trails: 12") .replace("limits: {", "limits: {"))
    done = expect(assay.cli("run", path, check=False), 1)
    line = 1 + next(i for i, text in enumerate(open(path)) if "max_trails" in text)
    assert f"bad.yaml:{line}:" in done.stderr and "/limits/max_trails" in done.stderr, done.stderr
    assert assay.call("GET", "/v1/sweeps")["items"] == []


def read_terminal(fd, process, on_text):
    """Read the terminal of the process until it ends; call on_text(all text so far) after each piece."""
    text, deadline = b"", time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        is_over = process.poll() is not None  # before the look: what it wrote last is there then
        ready, _, _ = select.select([fd], [], [], 0.2)
        if ready:
            try:
                chunk = os.read(fd, 65536)
            except OSError:
                break
            if not chunk:
                break
            text += chunk
            on_text(text.decode(errors="replace"))
        elif is_over:
            break
    return text.decode(errors="replace")


def check_terminal(assay, path, go):
    """The live display is redrawn in place and ends with the summary. The trials wait until it has been redrawn."""
    redrawn = "\x1b[4A\r\x1b[J"
    master, slave = pty.openpty()
    env = dict(assay.env, COLUMNS="100", TERM="xterm", LC_ALL="C.UTF-8")
    env.pop("NO_COLOR", None)
    process = subprocess.Popen([ASSAY, "run", path, "--watch"], stdin=slave, stdout=slave, stderr=slave, env=env,
                               cwd=os.environ["ASSAY_SOURCE_ROOT"])
    os.close(slave)
    text = read_terminal(master, process, lambda so_far: redrawn in so_far and "running" in so_far and open(go, "w").close())
    assert process.wait(PATIENCE_S) == 0, text
    os.close(master)
    for part in ("\x1b[", "█", "░", "queued", "running", "completed 12", "best loss", "trials/s", "RANK", "TRIAL",
                 f"{assay.url}/#/sweeps/cli-test"):
        assert part in text, (part, text)
    assert redrawn in text, "the display is redrawn"
    plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).replace("\r", "")
    assert all(len(line) <= 100 for line in plain.split("\n")), [l for l in plain.split("\n") if len(l) > 100]


def check_verbs(assay):
    rows = assay.cli("trials", "cli-test").stdout.split("\n")
    assert rows[0].split("\t")[:4] == ["trial", "state", "loss", "step"] and len(rows) == 14, rows
    best = json.loads(assay.cli("best", "cli-test", "--top", "2", "--json").stdout)["items"]
    assert len(best) == 2 and best[0]["value"] <= best[1]["value"], best
    top = f"cli-test/{best[0]['number']}"
    assert "\t" in assay.cli("trial", top).stdout
    compared = assay.cli("compare", top, f"cli-test/{best[1]['number']}").stdout
    assert re.search(r"^\*\tparam.x\t", compared, re.M), compared
    table = list(csv.DictReader(io.StringIO(assay.cli("export", "cli-test", "--csv").stdout)))
    assert [int(r["number"]) for r in table] == list(range(12)), table
    assert {r["param.kind"] for r in table} <= {"'=formula", "b"} and float(table[0]["param.x"]) == float(table[0]["value"])
    tree = json.loads(assay.cli("export", "cli-test", "--json").stdout)
    assert len(tree["items"]) == 12 and tree["sweep"]["id"] == "cli-test"
    expect(assay.cli("export", "cli-test", check=False), 64)
    expect(assay.cli("trials", "cli-test", "--limit", "-1", check=False), 64)
    shown = assay.cli("logs", top).stdout
    assert "hello \\x1b[31mred" in shown and "\x1b" not in shown, shown
    assert "\x1b[31m" in assay.cli("logs", top, "--raw").stdout
    assert assay.cli("logs", top, "--follow").stdout == shown
    assert len(assay.cli("runners").stdout.strip().split("\n")) == 3
    expect(assay.cli("pause", "cli-test", check=False), 5)
    assert "none" in expect(assay.cli("ensemble", "cli-test", "--json", check=False), 3).stdout
    lines = assay.cli("watch", "cli-test", "--json").stdout.strip().split("\n")
    assert json.loads(lines[0])["state"] == "completed" and len(json.loads(lines[-1])["best"]) == 5, lines


def check_folder(assay, folder):
    """A command runs in the folder where `assay run` was typed, not in that of `assay up`."""
    with open(os.path.join(folder, "here.sh"), "w") as f:
        f.write("pwd; echo '{\"loss\": 1}' >> $ASSAY_REPORT\n")
    with open(os.path.join(folder, "here.yaml"), "w") as f:
        f.write(SWEEP.split("trial:")[0].replace("cli-test", "here") + "trial: {command: [sh, here.sh]}\n")
    assay.cli("run", "here.yaml", "--watch", "--set", "limits.max_trials=2", cwd=folder)
    assert assay.cli("logs", "here/1").stdout.strip() == os.path.realpath(folder)
    away = assay.cli("run", "here.yaml", "--watch", "--set", "limits.max_trials=2", "--set", "trial.directory=/",
                     cwd=folder, check=False)
    assert away.returncode == 1 and "A failed trial     here-2/0: exit " in away.stdout, away


def check_tokens(assay, folder):
    path = os.path.join(folder, "viewer.token")
    assay.cli("token", "create", "viewer", "--name", "test", "--output", path)
    assert os.stat(path).st_mode & 0o777 == 0o600
    env = {k: v for k, v in assay.env.items() if k != "ASSAY_TOKEN_FILE"}
    as_viewer = subprocess.run([ASSAY, "delete", "cli-test", "--token-file", path], env=env, capture_output=True)
    assert as_viewer.returncode == 4, as_viewer
    listed = json.loads(assay.cli("token", "list", "--json").stdout)["items"]
    mine = [t for t in listed if t.get("name") == "test"]
    assert len(mine) == 1 and "token" not in mine[0]
    assay.cli("token", "revoke", mine[0]["id"])
    gone = subprocess.run([ASSAY, "sweeps", "--token-file", path], env=env, capture_output=True)
    assert gone.returncode == 4, gone


def check_states(assay, path):
    sweep = assay.cli("run", path, "--name", "paused", "--set", "limits.max_trials=6", "--set",
                      "trial.command=[sleep, 600]").stdout.strip()
    assert sweep == "paused"
    assay.cli("pause", sweep)
    assert assay.sweep(sweep)["state"] == "paused" and assay.sweep(sweep)["planned_trials"] == 6
    late = expect(assay.cli("watch", sweep, "--timeout", "1s", check=False), 6)
    assert "time" in late.stderr
    expect(assay.cli("delete", sweep, check=False), 5)
    assay.cli("resume", sweep)
    assay.cli("cancel", sweep)
    assay.wait_ended(sweep)
    expect(assay.cli("watch", sweep, check=False), 2)
    assay.cli("delete", sweep)
    expect(assay.cli("show", sweep, check=False), 3)


def check_restart(assay, folder):
    """A watch goes on while the server is killed and restarted at the same address; Ctrl-C leaves the sweep running."""
    path, go = os.path.join(folder, "slow.yaml"), os.path.join(folder, "go-on")
    with open(path, "w") as f:
        f.write(SLOW.replace("GO", go))
    watch = subprocess.Popen([ASSAY, "run", path, "--watch"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=assay.env)
    assay.wait(lambda: assay.sweep("slow")["counts"]["completed"] >= 1, "the first trial")
    second = subprocess.Popen([ASSAY, "watch", "slow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=assay.env)
    assert second.stderr.readline().startswith("slow running")
    second.send_signal(signal.SIGINT)
    _, talk = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 2 and "goes on" in talk, (second.returncode, talk)
    os.kill(assay.processes("assayd")[0], signal.SIGKILL)
    open(go, "w").close()
    out, talk = watch.communicate(timeout=PATIENCE_S)
    assert watch.returncode == 0, (watch.returncode, out, talk)
    assert "slow completed: 8 trials completed" in out and "\x1b" not in out + talk, (out, talk)
    assay.check_exact("slow", 8)


def check_kill(assay):
    """kill -9 of `assay up`: its children end; the next `assay up` on the folder continues with the same data."""
    children = [p for name in ("assayd", "assay-runner", "postgres") for p in assay.processes(name)]
    assay.up.kill()
    assay.up.wait()
    assay.start()
    assert assay.sweep("slow")["state"] == "completed"
    for pid in children:
        assert not os.path.exists(f"/proc/{pid}") or pid not in assay.processes("postgres"), pid
    killed = assay.postmaster()
    os.kill(killed, signal.SIGKILL)  # until its children notice it, they may still answer
    assay.wait(lambda: assay.postmaster() not in (None, killed), "another postmaster")
    assay.wait(lambda: assay.cli("sweeps", check=False).returncode == 0, "the database to come back")


def check_stop(assay):
    pids = [p for name in ("assayd", "assay-runner", "postgres") for p in assay.processes(name)]
    assert len(pids) > 3
    assay.up.send_signal(signal.SIGTERM)
    assert assay.up.wait(PATIENCE_S) == 0
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    assert not os.path.exists(os.path.join(assay.data, "ready.json"))
    gone = subprocess.run([ASSAY, "sweeps"], capture_output=True, text=True,
                          env=dict(os.environ, XDG_STATE_HOME=assay.data))
    assert gone.returncode == 7 and "assay up" in gone.stderr, gone


WHO = """
name: who
metric: {name: uid, goal: minimize}
parameters: {x: {type: float, min: 0, max: 1}}
search: {method: random}
limits: {max_trials: 1}
trial: {command: [sh, -c, 'id -Gn; echo "home=$HOME x=$ASSAY_PARAM_x"; cat "$DATA/runner.token" "$DATA/admin.token"; env; tr "\\0" "\\n" < /proc/$PPID/environ; echo "{\\"uid\\": $(id -u)}" >> $ASSAY_REPORT'], env: {DATA: FOLDER}}
"""


SECRETS = {"AWS_ACCESS_KEY_ID": "a-secret-key-of-s3", "AWS_SECRET_ACCESS_KEY": "a-secret-of-s3",
           "AWS_SESSION_TOKEN": "a-secret-session-of-s3", "PGPASSWORD": "a-secret-of-postgres",
           "ASSAY_TOKEN": "a-secret-of-a-client", "OF_THE_USER": "for my trials"}


def check_secrets(assay, log):
    """The trial has printed its environment and that of its runner: without what is the service's. Root, who may
    look at every process, finds no secret where /proc shows the environment of programs."""
    assert log.count("OF_THE_USER=for my trials") == 2, log
    own = log.count("ASSAY_TOKEN=assay_trial_")  # the token of its attempt
    assert own == 1 and "a-secret" not in log and log.count("assay_") == own, log
    programs = [assay.up.pid, *(p for name in ("assayd", "assay-runner", "postgres") for p in assay.processes(name))]
    assert len(programs) > 3
    for pid in programs:
        with open(f"/proc/{pid}/environ", "rb") as f:
            text = f.read()
        assert b"a-secret" not in text and b"assay_" not in text, (pid, text)


def check_trial_user(folder, args, env, uid, said):
    """The user of the trials of an `assay up` that root started; they do not reach its tokens."""
    with Assay(runners=1, args=args, env={**env, **SECRETS}, installed=folder, bare=True) as assay:
        with open(assay.log_path) as log:
            assert said in log.read(), said
        del assay.env["ASSAY_TOKEN"]  # of another server
        path = os.path.join(assay.data, "who.yaml")
        with open(path, "w") as f:
            f.write(WHO.replace("FOLDER", assay.data))
        assay.cli("run", path)
        assay.wait_ended("who")
        trial = assay.call("GET", "/v1/sweeps/who/trials/0")
        log = assay.call("GET", "/v1/sweeps/who/trials/0/log")["text"]
        assert trial["value"] == uid, (trial, log)
        assert f"x={trial['params']['x']}" in log or "e-" in str(trial["params"]["x"]), log
        if uid:
            assert "Permission denied" in log, log
            home = os.path.join(assay.data, f"user-{uid}")
            assert os.stat(home).st_uid == uid and os.stat(home).st_mode & 0o777 == 0o700
            assert "root" not in log.splitlines()[0].split(), log
            check_secrets(assay, log)
        name = assay.call("GET", "/v1/runners")["items"][0]["name"]
        expect(assay.cli("runners", "remove", "none-such", check=False), 3)
        expect(assay.cli("runners", "remov", name, check=False), 64)
        assay.cli("runners", "remove", name)


def check_trial_users():
    """The source tree and the build may lie where the other user cannot enter, as in root's home. So the programs
    are copied to a place where all may, as an installation does."""
    if os.geteuid() != 0:
        return
    nobody = pwd.getpwnam("nobody").pw_uid
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        for program in PROGRAMS:
            shutil.copy(program, folder)
        check_trial_user(folder, ["--trial-user", "nobody"], {}, nobody, "run as nobody")
        check_trial_user(folder, [], {"SUDO_UID": str(nobody)}, nobody, "run as nobody")
        check_trial_user(folder, [], {"SUDO_UID": "0"}, 0, "Trials run as root")
        os.chmod(folder, 0o700)
        with tempfile.TemporaryDirectory(dir="/var/tmp") as data:
            os.chmod(data, 0o755)
            denied = expect(run_up("--data", data, "--trial-user", "nobody", cwd=folder), 4)
            assert f"nobody cannot enter the current folder {folder}" in denied.stderr, denied.stderr
    with tempfile.TemporaryDirectory(dir="/var/tmp") as hidden:  # 0700: nobody cannot enter it
        denied = expect(run_up("--data", os.path.join(hidden, "data"), "--trial-user", "nobody"), 4)
        assert "nobody cannot enter the data folder" in denied.stderr, denied.stderr
        expect(run_up("--data", hidden, "--trial-user", "no-such-user"), 3)


def main():
    if not os.path.exists(ASSAY):
        skip(f"{ASSAY} is not built")
    with Assay(runners=2) as assay, tempfile.TemporaryDirectory() as folder:
        path, go = os.path.join(folder, "sweep.yaml"), os.path.join(folder, "go")
        with open(path, "w") as f:
            f.write(SWEEP.replace("GO", go))
        assert os.stat(os.path.join(assay.data, "admin.token")).st_mode & 0o777 == 0o600
        with open(f"/proc/{assay.postmaster()}/cmdline") as f:  # --database-memory of the harness
            assert "shared_buffers=32MB" in f.read().split("\0"), "postgres has other buffers"
        check_refusals(assay)
        check_usage(assay)
        check_bad_document(assay, folder)
        check_terminal(assay, path, go)
        check_verbs(assay)
        check_folder(assay, folder)
        check_tokens(assay, folder)
        check_states(assay, path)
        check_restart(assay, folder)
        check_kill(assay)
        check_stop(assay)
    check_no_database()
    check_trial_users()


main()
