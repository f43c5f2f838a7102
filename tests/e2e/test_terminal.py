#!/usr/bin/env python3
"""The command line as people use it, against real programs: paths that are no files, artifacts, the question before
a delete, profiles, completion in real shells, errors as JSON, and memory that does not grow with a sweep."""
import contextlib
import hashlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness import ASSAY, BUILD, PATIENCE_S, SOURCE, Assay, database_url

CSV = b"a,b,class\n1,2,x\n3,4,y\n5,6,x\n7,8,y\n"


def expect(done, code, words=""):
    assert done.returncode == code, (done.args, done.returncode, done.stdout, done.stderr)
    assert words in done.stderr, (words, done.stderr)
    return done


def start(assay, *args, **kw):
    return subprocess.Popen([ASSAY, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=assay.env, **kw)


def on_terminal(assay, *args, answer=None, env=None, cwd=None):
    """Run on a pseudo-terminal; `answer` is typed when the question is there. Returns the exit code and all text."""
    master, slave = pty.openpty()
    process = subprocess.Popen([ASSAY, *args], stdin=slave, stdout=slave, stderr=slave, env=env or assay.env, cwd=cwd)
    os.close(slave)
    text, deadline = b"", time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        is_over = process.poll() is not None  # before the look: what it wrote last is there then
        ready, _, _ = select.select([master], [], [], 0.2)
        if not ready:
            if is_over:
                break
            continue
        try:
            chunk = os.read(master, 65536)
        except OSError:
            break
        if not chunk:
            break
        text += chunk
        if answer is not None and b"[y/N]" in text:
            os.write(master, answer)
            answer = None
    code = process.wait(PATIENCE_S)
    os.close(master)
    return code, text.decode(errors="replace").replace("\r", "")


# Paths.

def check_paths(assay, folder):
    """What has no end is refused at once, by every verb that reads a path."""
    fifo, link = os.path.join(folder, "fifo"), os.path.join(folder, "link")
    os.mkfifo(fifo)
    os.symlink("/dev/zero", link)
    add = ["data", "add", "bad", "--format", "csv", "--target", "class"]
    for path, kind in ((fifo, "a pipe"), ("/dev/zero", "a character device"), (link, "a character device")):
        expect(assay.cli(*add, path, check=False), 1, kind)
    expect(assay.cli(*add, folder, check=False), 64, "is a folder, expected a CSV file")
    expect(assay.cli("data", "add", "bad", "-", "--targets", "-", "--format", "npy", check=False), 64, "only one")
    for args in (["run", "/dev/zero"], ["replay", "--file", "/dev/zero"], ["sweeps", "--token-file", "/dev/zero"]):
        expect(assay.cli(*args, check=False), 1, "a character device")


def check_stdin(assay):
    """Standard input is read to its end, with progress; the first Ctrl-C ends it."""
    done = subprocess.run([ASSAY, "data", "add", "piped", "-", "--target", "class"], input=CSV, env=assay.env,
                          capture_output=True)
    assert done.returncode == 0, done
    assert assay.call("GET", "/v1/datasets/piped")["rows"] == 4
    with open("/dev/zero", "rb") as zero:
        endless = start(assay, "data", "add", "zero", "-", "--format", "csv", "--target", "class", stdin=zero)
        line = endless.stderr.readline()
        assert line.startswith(b"standard input: reading, "), line
        interrupted(endless)
    waiting = start(assay, "data", "add", "silent", "-", "--target", "class", stdin=subprocess.PIPE)
    waiting.stdin.write(CSV)
    waiting.stdin.flush()
    assay.wait(lambda: reads_stdin(waiting.pid), "assay to read")
    interrupted(waiting)
    for verb in (["run", "-"], ["replay", "--file", "-"]):
        reading = start(assay, *verb, stdin=subprocess.PIPE)
        assay.wait(lambda: reads_stdin(reading.pid), "assay to read")
        interrupted(reading)
    assert [d["name"] for d in assay.call("GET", "/v1/datasets")["items"]] == ["piped"]


def reads_stdin(pid):
    """Whether the process waits in read(0, …)."""
    with open(f"/proc/{pid}/syscall") as f:
        return f.read().split()[:2] == ["0", "0x0"]


def interrupted(process):
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2, process.returncode


def check_words(assay):
    """Durations and numbers are decimal."""
    for text in ("0x10s", "1e5s", " 5s", "nan", "inf", "5 s"):
        expect(assay.cli("watch", "none", "--timeout", text, check=False), 64, "duration")


# Artifacts.

STORES = {
    "name": "stores", "metric": {"name": "loss", "goal": "minimize"}, "limits": {"max_trials": 1},
    "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "search": {"method": "random"},
    "trial": {"command": ["sh", "-c", "cd $ASSAY_ARTIFACTS && mkdir -p plots/deep && echo model > model.bin && "
                          "echo one > plots/one && echo two > plots/deep/two && head -c 20000000 /dev/zero > big && "
                          "echo '{\"loss\": 1}' >> $ASSAY_REPORT"]},
}


def check_artifacts(assay, folder):
    assay.call("POST", "/v1/sweeps", STORES)
    assay.wait_ended("stores")
    rows = [line.split("\t") for line in assay.cli("artifacts", "list", "stores/0").stdout.strip().split("\n")]
    assert rows[0] == ["path", "size", "sha256"], rows
    assert sorted(r[0] for r in rows[1:]) == ["big", "model.bin", "plots/deep/two", "plots/one"], rows
    assert dict((r[0], r[2]) for r in rows[1:])["plots/one"] == hashlib.sha256(b"one\n").hexdigest(), rows
    here = os.path.join(folder, "here")
    os.mkdir(here)

    def get(*args, code=0, words=""):
        return expect(assay.cli("artifacts", "get", "stores/0", *args, cwd=here, check=False), code, words)

    def read(name):
        with open(os.path.join(here, name)) as f:
            return f.read()
    get()
    assert sorted(os.listdir(here)) == ["stores-0"] and read("stores-0/plots/deep/two") == "two\n"
    assert os.path.getsize(os.path.join(here, "stores-0", "big")) == 20000000
    get("plots/one")
    get("plots", "--output", "two")
    get("model.bin", "--output", "two")
    assert read("one") == "one\n" and read("two/plots/one") == "one\n" and read("two/model.bin") == "model\n"
    assert get("plots/one", "--output", "-").stdout == "one\n"
    items = json.loads(get("plots/one", "--json", "--output", "named").stdout)["items"]
    assert items[0]["file"] == "named" and items[0]["path"] == "plots/one", items
    get("--output", "-", code=64, words="one file")
    get("none", code=3, words="none")
    os.symlink("named", os.path.join(here, "link"))
    get("model.bin", "--output", "link")
    assert os.path.islink(os.path.join(here, "link")) and read("named") == "model\n"
    os.mkdir(os.path.join(here, "stores-0", "x"))
    os.rename(os.path.join(here, "stores-0", "x"), os.path.join(here, "blocked"))
    os.mkdir(os.path.join(here, "blocked", "model.bin"))
    get("--output", "blocked", code=1, words="a folder")
    expect(assay.cli("artifacts", "get", "stores/9", check=False), 3)
    check_cut(assay, here)


def check_cut(assay, here):
    """A download that is cut leaves the file that was there, and nothing else."""
    with open(os.path.join(here, "old"), "w") as f:
        f.write("old")
    before = sorted(os.listdir(here))
    server = assay.processes("assayd")[0]
    fetch = start(assay, "artifacts", "get", "stores/0", "big", "--output", "old", cwd=here)
    while fetch.poll() is None and not any(".tmp-" in name for name in os.listdir(here)):
        time.sleep(0.001)
    os.kill(server, signal.SIGSTOP)  # the transfer stands still, unless it is done already
    fetch.send_signal(signal.SIGINT)
    fetch.communicate(timeout=PATIENCE_S)
    os.kill(server, signal.SIGCONT)
    assert fetch.returncode in (0, 2) and sorted(os.listdir(here)) == before, (fetch.returncode, os.listdir(here))
    assert os.path.getsize(os.path.join(here, "old")) == (3 if fetch.returncode == 2 else 20000000)


# Deletes.

def check_deletes(assay):
    """On a terminal a delete counts what will be lost, and only a yes goes on."""
    for answer in (b"n\n", b"\n", b"yep\n", b"\x04"):
        code, text = on_terminal(assay, "delete", "stores", answer=answer)
        assert code == 2 and "1 trial (1 completed) will be lost" in text, (answer, code, text)
    assert assay.sweep("stores")["state"] == "completed"
    assert on_terminal(assay, "delete", "none")[0] == 3
    code, text = on_terminal(assay, "data", "delete", "piped", answer=b"no\n")
    assert code == 2 and "4 rows" in text, (code, text)
    code, text = on_terminal(assay, "data", "delete", "piped", answer=b" YES \n")
    assert code == 0 and "piped is deleted" in text, (code, text)
    assay.cli("token", "create", "viewer", "--name", "short")
    token = next(t["id"] for t in json.loads(assay.cli("token", "list", "--json").stdout)["items"] if t["name"] == "short")
    code, text = on_terminal(assay, "token", "revoke", token, answer=b"n\n")
    assert code == 2 and "viewer token" in text and "(short)" in text, (code, text)
    code, text = on_terminal(assay, "token", "revoke", token, "--yes")
    assert code == 0 and "[y/N]" not in text, (code, text)
    code, text = on_terminal(assay, "delete", "stores", "--yes")
    assert code == 0 and "[y/N]" not in text, (code, text)
    assay.call("POST", "/v1/sweeps", STORES)
    assay.wait_ended("stores")
    assay.cli("delete", "stores")  # without a terminal: no question
    assay.call("POST", "/v1/sweeps", STORES)
    assay.wait_ended("stores")


# Which server.

def check_profiles(assay, folder):
    home = os.path.join(folder, "home")
    os.makedirs(os.path.join(home, "assay"))
    config = os.path.join(home, "assay", "config")
    with open(os.path.join(home, "assay", "lab.token"), "w") as f:
        f.write(assay.token + "\n")
    with open(config, "w") as f:
        f.write(f"profiles:\n  lab: {{url: '{assay.url}/', token_file: lab.token}}\n"
                "  away: {url: 'http://127.0.0.1:9'}\n")
    env = {n: v for n, v in assay.env.items() if not n.startswith(("ASSAY_", "XDG_"))}
    env.update(XDG_CONFIG_HOME=home, XDG_STATE_HOME=home, HOME=home)

    def run(*args, **more):
        return subprocess.run([ASSAY, *args], env={**env, **more}, capture_output=True, text=True)
    expect(run("sweeps"), 7, "--profile (lab, away)")
    expect(run("sweeps", "--profile", "lab"), 0)
    expect(run("sweeps", ASSAY_PROFILE="lab"), 0)
    expect(run("sweeps", ASSAY_PROFILE="lab", ASSAY_TOKEN="assay_of_another_server"), 0)
    expect(run("sweeps", ASSAY_PROFILE="lab", ASSAY_SERVER="http://127.0.0.1:9"), 7, "127.0.0.1:9")
    expect(run("sweeps", "--profile", "away"), 7, "127.0.0.1:9")
    expect(run("sweeps", "--profile", "lib"), 3, "lab, away")
    expect(run("sweeps", "--profile", "lab", "--server", "http://h"), 64, "choose one")
    with open(config, "a") as f:
        f.write("  bad: {url: http://h, tokn: t}\n")
    expect(run("sweeps", "--profile", "lab"), 1, "config:4:")
    check_several(env, home, folder)


def check_several(env, home, folder):
    """When several `assay up` run, ASSAY_DATA chooses; without it the newest is used, and a word says which."""
    notes = os.path.join(home, "assay", "up")
    os.makedirs(notes)
    sleepers = [subprocess.Popen(["sleep", "600"]) for _ in range(2)]
    for since, sleeper in enumerate(sleepers):
        with open(f"/proc/{sleeper.pid}/stat") as f:
            ticks = int(f.read().rsplit(")", 1)[1].split()[19])
        with open(os.path.join(notes, f"{sleeper.pid}.json"), "w") as f:
            data = os.path.join(os.path.realpath(home), f"data{since}")
            os.makedirs(data)
            json.dump({"url": f"http://127.0.0.1:{9 + since}", "token_file": os.path.join(folder, "none"), "data": data,
                       "pid": sleeper.pid, "start": ticks, "since": since + 1}, f)
    token = ["--token", "assay_x"]
    two = subprocess.run([ASSAY, "sweeps", *token], env=env, capture_output=True, text=True)
    expect(two, 7, "2 `assay up` run; this is the newest, http://127.0.0.1:10 ")
    for since in range(2):
        chosen = subprocess.run([ASSAY, "sweeps", *token], env={**env, "ASSAY_DATA": os.path.join(home, f"data{since}")},
                                capture_output=True, text=True)
        expect(chosen, 7, f"127.0.0.1:{9 + since}")
        assert "newest" not in chosen.stderr, chosen
    none = subprocess.run([ASSAY, "sweeps", *token], env={**env, "ASSAY_DATA": home}, capture_output=True, text=True)
    expect(none, 7, f"no `assay up` runs on the data folder {home} (ASSAY_DATA)")
    quiet = subprocess.run([ASSAY, "sweeps", *token, "--json"], env=env, capture_output=True, text=True)
    assert quiet.returncode == 7 and json.loads(quiet.stderr)["exit_code"] == 7, quiet
    sleepers[1].kill()
    sleepers[1].wait()
    one = subprocess.run([ASSAY, "sweeps", *token], env=env, capture_output=True, text=True)
    assert one.returncode == 7 and "127.0.0.1:9" in one.stderr and "newest" not in one.stderr, one
    sleepers[0].kill()
    sleepers[0].wait()


def check_open(assay, folder):
    """The address, and a browser where there is a display."""
    bin_folder, opened = os.path.join(folder, "bin"), os.path.join(folder, "opened")
    os.mkdir(bin_folder)
    with open(os.path.join(bin_folder, "xdg-open"), "w") as f:
        f.write(f"#!/bin/sh\necho \"$1\" > {opened}.tmp; mv {opened}.tmp {opened}\n")
    os.chmod(os.path.join(bin_folder, "xdg-open"), 0o755)
    env = dict(assay.env, PATH=bin_folder + ":" + os.environ["PATH"])
    env.pop("DISPLAY", None)
    env.pop("WAYLAND_DISPLAY", None)

    def run(*args, **more):
        return subprocess.run([ASSAY, "open", *args], env={**env, **more}, capture_output=True, text=True)
    assert expect(run(), 0).stdout == f"{assay.url}/\n"
    assert expect(run("stores", "--no-browser", DISPLAY=":0"), 0).stdout == f"{assay.url}/#/sweeps/stores\n"
    assert json.loads(run("stores/0", "--json").stdout) == {"url": f"{assay.url}/#/sweeps/stores/trials/0"}
    assert not os.path.exists(opened)
    expect(run("stores", DISPLAY=":0"), 0)
    assay.wait(lambda: os.path.exists(opened), "the browser")
    assert open(opened).read() == f"{assay.url}/#/sweeps/stores\n"
    expect(run("none"), 3)
    expect(run("--server", "http://127.0.0.1:9"), 7)
    expect(run(DISPLAY=":0", PATH="/nowhere"), 0, "No browser")


# Errors as JSON.

def check_json_errors(assay):
    """One line on stderr, nothing on stdout, the same exit codes."""
    cases = {
        ("show", "none"): (3, "not_found"), ("show",): (64, "usage"), ("show", "--jsn", "a"): (64, "usage"),
        ("pause", "stores"): (5, "conflict"), ("sweeps", "--token", "assay_x"): (4, "denied"),
        ("sweeps", "--server", "http://127.0.0.1:9"): (7, "unavailable"), ("sweps",): (64, "usage"),
        ("run", "/nowhere.yaml"): (3, "not_found"), ("trials", "stores", "--limit", "-1"): (64, "usage"),
        ("artifacts", "get", "stores/0", "none"): (3, "not_found"),
    }
    for args, (code, title) in cases.items():
        plain, done = assay.cli(*args, check=False), assay.cli(*args, "--json", check=False)
        assert plain.returncode == done.returncode == code and done.stdout == "", (args, plain, done)
        problem = json.loads(done.stderr)
        assert problem["exit_code"] == code and problem["title"].startswith(title), (args, problem)
        detail, said = (re.sub(r"after \d+ ms", "", text) for text in (problem["detail"], plain.stderr))
        assert detail and detail in said, (args, problem, plain.stderr)
    assert json.loads(assay.cli("show", "none", "--json", check=False).stderr)["code"] == "not_found"


# Completion.

def typed(shell, setup, env, text, want):
    """Type into an interactive shell on a pseudo-terminal, and wait for what TAB makes of it. Where a slow server lets the
    completion give up, the line is typed again."""
    master, slave = pty.openpty()
    process = subprocess.Popen(shell, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True)
    os.close(slave)
    seen, deadline, again = b"", time.monotonic() + PATIENCE_S, None
    os.write(master, setup.encode() + b"\necho re''ady\n")
    try:
        while time.monotonic() < deadline:
            if select.select([master], [], [], 0.2)[0]:
                seen += os.read(master, 65536)
            if b"ready\r\n" in seen and (again is None or time.monotonic() > again):
                os.write(master, (b"" if again is None else b"\x15") + text.encode())  # ^U: an empty line
                again = time.monotonic() + 10
            if again is not None and want.encode() in re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\x08", b"", seen.split(b"ready\r\n", 1)[1]):
                return
    finally:
        process.kill()
        process.wait()
        os.close(master)
    raise AssertionError((shell, text, want, seen))


def check_completion(assay, folder):
    def words(*args, env=None):
        done = subprocess.run([ASSAY, "completion", "words", "--", *args], env=env or assay.env, capture_output=True,
                              text=True)
        assert done.returncode == 0 and done.stderr == "", done
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    def of_server(want, *args, env=None):
        """A completion that asks the server gives up after two seconds: then it has no words."""
        assay.wait(lambda: words(*args, env=env) == want, f"the words of {args}")
    assert words("tri") == ["trials", "trial"] and "artifacts" in words("")
    assert words("trials", "--so") == ["--sort"] and "--profile" in words("trials", "--")
    assert words("trials", "--sort", "d") == ["duration"] == [w.split("=")[1] for w in words("trials", "--sort=d")]
    assert words("trials", "--state", "c") == ["completed", "cancelled"]
    of_server(["stores"], "show", "st")
    of_server(["stores"], "trials", "--state", "completed", "st")
    of_server(["stores/"], "trial", "st")
    of_server(["stores/0"], "trial", "stores/")
    of_server(["stores/0"], "artifacts", "get", "stores/0")
    assert words("show", "x") == [] and words("artifacts", "") == ["list", "get"]
    assert words("show", "--server", "http://127.0.0.1:9", "st") == []
    away = {n: v for n, v in assay.env.items() if not n.startswith("ASSAY_")}
    away["XDG_STATE_HOME"] = folder
    assert words("show", "st", env=away) == [] and words("sho", env=away) == ["show"]
    check_choices(words)
    token = assay.env["ASSAY_TOKEN_FILE"]
    of_server(["stores"], "show", "--server", assay.url, "--token-file", token, "st", env=away)
    scripts = {shell: os.path.join(BUILD, "cli", "completion", name)
               for shell, name in {"bash": "assay", "zsh": "_assay", "fish": "assay.fish"}.items()}
    for shell, path in scripts.items():
        assert open(path).read() == assay.cli("completion", shell).stdout, shell
    env = dict(assay.env, PATH=os.path.dirname(ASSAY) + ":" + os.environ["PATH"], TERM="xterm", HOME=folder,
               ZDOTDIR=folder, PS1="$ ")
    in_bash(env, scripts["bash"])
    if shutil.which("zsh"):
        zsh = ["zsh", "-f", "-i"], f"autoload -Uz compinit; compinit -u; source {scripts['zsh']}"
        typed(*zsh, env, "assay artif\t", "assay artifacts ")
        typed(*zsh, env, "assay trials --sort dur\t", "--sort duration ")
        typed(*zsh, env, "assay show sto\t", "assay show stores ")
    if shutil.which("fish"):
        for line, want in (("assay sho", ["show"]), ("assay trials --sort ", ["duration", "finished_at"]),
                           ("assay show sto", ["stores"]), ("assay trial stores/", ["stores/0"])):
            def found(line=line):
                done = subprocess.run(["fish", "-c", f"source {scripts['fish']}; complete -C '{line}'"], env=env,
                                      capture_output=True, text=True, check=True)
                return [w.split("\t")[0] for w in done.stdout.splitlines()]
            assay.wait(lambda want=want: set(want) <= set(found()), f"the words of fish for {line!r}")


def check_choices(words):
    """The values that options allow are those of the API."""
    with open(os.path.join(SOURCE, "api", "openapi.yaml")) as f:
        text = f.read()
    for schema, args in (("SweepState: {", ("sweeps", "--state")), ("TrialState: {", ("trials", "--state")),
                         ("Order; trials without the value come last", ("trials", "--sort"))):
        enum = re.search(schema + r"[^\[]*?enum: \[([^]]*)\]", text)[1]
        assert sorted(words(*args, "")) == sorted(enum.split(", ")), (args, enum)


def in_bash(env, script):
    bash = ["bash", "--norc", "--noprofile", "-i"], f"source {script}"
    typed(*bash, env, "assay artif\t", "assay artifacts ")
    typed(*bash, env, "assay show sto\t", "assay show stores ")
    typed(*bash, env, "assay trials --sort=dur\t", "--sort=duration ")
    typed(*bash, env, "assay trial sto\t0\t", "assay trial stores/0 ")
    typed(*bash, env, "assay show --server " + env["ASSAY_SERVER"] + " sto\t", " stores ")
    typed(*bash, env, f"assay run {os.path.dirname(script)}/assay.f\t", "assay.fish ")


# Memory.

ROWS = """
set session_replication_role = replica; -- without the trigger that counts, which would take minutes
do $$ declare names text; begin
    select string_agg(quote_ident(column_name), ', ') into names from information_schema.columns
        where table_schema = current_schema() and table_name = 'trial' and is_generated = 'NEVER';
    execute format('insert into trial (%%s) select %%s from trial t, generate_series(1, %d) g '
        'where t.number = 0 and t.sweep_key = (select key from sweep where id = %%L)', names,
        (select string_agg(case n when 'number' then 'g' when 'finish_seq' then 'g + 1000'
            when 'suggestion_index' then 'g' else 't.' || n end, ', ') from unnest(string_to_array(names, ', ')) n), '%s');
end $$;
analyze trial
"""


def peak_kb(pid):
    with contextlib.suppress(OSError, IndexError):
        with open(f"/proc/{pid}/status") as f:
            return int(re.search(r"VmHWM:\s+(\d+) kB", f.read() + "VmHWM: 0 kB")[1])
    return 0


def run_measured(assay, args, tty):
    """Run to the end, reading all output. Returns the lines of the output and the peak of resident memory in kB."""
    master, slave = pty.openpty() if tty else os.pipe()
    process = subprocess.Popen([ASSAY, *args], stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE,
                               env=assay.env)
    os.close(slave)
    lines, peak = 0, 0
    while True:
        peak = max(peak, peak_kb(process.pid))
        if not select.select([master], [], [], 0.01)[0]:
            continue
        try:
            chunk = os.read(master, 65536)
        except OSError:
            break
        if not chunk:
            break
        lines += chunk.count(b"\n")
    os.close(master)
    errors = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 0, (args, errors)
    return lines, peak


def check_memory(assay, folder):
    """The memory of `trials` and `export` does not grow with the number of trials, by 160 bytes each."""
    few, many, more_kb = 1000, 20000, 3072
    database = database_url(assay)
    for name, n in (("few", few), ("many", many)):
        assay.call("POST", "/v1/sweeps", {**STORES, "name": name})
        assay.wait_ended(name)
        subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", database], input=ROWS % (n - 1, name), text=True,
                       check=True, env={**os.environ, "PGOPTIONS": ""})
    file = os.path.join(folder, "export")
    for args, tty in ((["trials"], False), (["trials"], True), (["export", "--json"], False),
                      (["export", "--csv", "--output", file], False)):
        start_s = time.monotonic()
        lines_few, peak_few = run_measured(assay, [args[0], "few", *args[1:]], tty)
        lines_many, peak_many = run_measured(assay, [args[0], "many", *args[1:]], tty)
        for _ in range(8):  # the peak of so short a run is easily missed
            if peak_many < peak_few + more_kb:
                break
            peak_few = max(peak_few, run_measured(assay, [args[0], "few", *args[1:]], tty)[1])
        print(f"{' '.join(args)}{' (terminal)' if tty else ''}: {peak_few} kB for {few} trials, {peak_many} kB for "
              f"{many}, {time.monotonic() - start_s:.1f} s", flush=True)
        assert peak_few > 1000 and peak_many < peak_few + more_kb, (args, peak_few, peak_many)
        if file in args:
            with open(file) as f:
                assert sum(1 for _ in f) == many + 1
        elif "--json" not in args:
            assert (lines_few, lines_many) == (few + 1, many + 1), (args, lines_few, lines_many)
    items = json.loads(assay.cli("trials", "few", "--json").stdout)["items"]
    assert sorted(t["number"] for t in items) == list(range(few))


def main():
    with Assay() as assay, tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        check_paths(assay, folder)
        check_stdin(assay)
        check_words(assay)
        check_artifacts(assay, folder)
        check_deletes(assay)
        check_profiles(assay, folder)
        check_open(assay, folder)
        check_json_errors(assay)
        check_completion(assay, folder)
        if shutil.which("psql"):
            check_memory(assay, folder)


main()
