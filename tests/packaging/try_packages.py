#!/usr/bin/env python3
"""try_packages.py DIR [PREVIOUS]: try the packages in DIR as on a machine: a fresh Debian with its own systemd (systemd-nspawn,
without a network), where they are installed, started as units, upgraded from PREVIOUS while a sweep runs, removed and purged.

Before the upgrade it makes a data set, a sweep of the trainer and a model that is kept; after it, all of them are as they
were, and the data set trains again. Without PREVIOUS the same packages with a lower version are the earlier ones: it shows what an
upgrade does to what runs, and not that another version's database is carried over. Needs root, mmdebstrap and systemd-container; some minutes.

ASSAY_TRY_BASE: a tar of the fresh Debian, which is made there the first time."""
import contextlib
import csv
import glob
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 600
PACKAGES = ["assay-server", "assay-runner", "assay-cli"]
PLUGIN = "assay-cuda"  # where it was made
UNITS = ["assayd", "assay-runner", "assay-serve"]
SWEEP = """name: NAME
metric: {name: loss, goal: minimize}
parameters: {x: {type: float, min: 0, max: 1}}
search: {method: random, seed: 1}
limits: {max_trials: TRIALS}
ensemble: false
trial: {command: [sh, -c, 'sleep 2; echo "{\\"loss\\": ${x}}" >> "$ASSAY_REPORT"']}
"""
TRAINED = """name: NAME
metric: {name: val_error, goal: minimize}
parameters: {lr: {type: float, min: 1e-3, max: 0.1, scale: log}}
search: {method: random, seed: 1}
limits: {max_trials: 5}
ensemble: {method: greedy, size: 3}
trial: {train: {dataset: digits, model: {kind: mlp, layers: [16]}, optimizer: {kind: adamw, lr: "${lr}"}, epochs: 3, validation: {fraction: 0.3}}}
"""
DIGITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "digits.csv")


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"}, **more)
    assert done.returncode == 0, (command, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


def await_true(condition, what):
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.3)
    raise AssertionError(f"waited {PATIENCE_S} s for {what}")


class Machine:
    """A Debian with systemd as its first process, in namespaces of its own."""

    def __init__(self, folder, needs):
        self.tree, base = os.path.join(folder, "tree"), os.environ.get("ASSAY_TRY_BASE", os.path.join(folder, "base.tar"))
        if not os.path.exists(base):
            say("a fresh Debian with " + ", ".join(needs))
            run("mmdebstrap", "--variant=minbase", "--dpkgopt=force-unsafe-io", "--include=" + ",".join(["systemd", "systemd-sysv", "ca-certificates", "procps", *needs]),
                "bookworm", base)
        os.mkdir(self.tree)
        run("tar", "-x", "-C", self.tree, "-f", base)
        self.log = open(os.path.join(folder, "console"), "wb")

    def __enter__(self):
        self.nspawn = subprocess.Popen(["systemd-nspawn", "--quiet", "--directory", self.tree, "--register=no", "--keep-unit", "--private-network",
                                        "--hostname=assay-try", "--boot", "--console=pipe"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                       env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"})
        self.init = await_true(self.first_process, "the first process")
        await_true(lambda: self.shell("systemctl is-system-running", check=False).strip() in ("running", "degraded"), "systemd")
        return self

    def first_process(self):
        assert self.nspawn.poll() is None, f"systemd-nspawn ended; {self.log.name}"
        with contextlib.suppress(OSError):
            for pid in open(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children").read().split():
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "systemd":
                    return pid

    def __exit__(self, kind, value, trace):
        if kind is not None:
            for unit in UNITS:
                print(self.shell(f"journalctl --no-pager -n 25 -u {unit}", check=False), file=sys.stderr)
        self.nspawn.kill()
        self.nspawn.wait()

    def shell(self, script, check=True):
        """Run as root in it."""
        done = subprocess.run(["nsenter", "--target", self.init, "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "sh", "-ec", "cd /\n" + script],
                              cwd="/", capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root",
                                   "ASSAY_SERVER": "http://127.0.0.1:7117", "ASSAY_TOKEN_FILE": "/var/lib/assay/admin.token"})
        assert not check or done.returncode == 0, (script, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout

    def pid(self, unit):
        return int(self.shell(f"systemctl show -p MainPID --value {unit}"))

    def await_active(self, unit):
        await_true(lambda: self.shell(f"systemctl is-active {unit}", check=False).strip() == "active", f"{unit} to be active")

    def files(self):
        found = set()
        for place, folders, names in os.walk(self.tree):
            inside = "/" + os.path.relpath(place, self.tree)
            if inside in ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/log", "/var/lib/postgresql", "/var/lib/dpkg", "/var/lib/systemd", "/var/tmp", "/var/cache"):
                folders.clear()
                continue
            found |= {os.path.join(inside, name) for name in folders + names}
        return found

    def install(self, debs):
        for deb in debs:
            shutil.copy(deb, os.path.join(self.tree, "root"))
        self.shell("dpkg -i " + " ".join("/root/" + os.path.basename(d) for d in debs))
        for deb in debs:
            os.unlink(os.path.join(self.tree, "root", os.path.basename(deb)))


def debs_in(folder):
    found = [d for name in PACKAGES for d in glob.glob(os.path.join(folder, name + "_*.deb"))]
    assert len(found) == len(PACKAGES), f"{folder} has not one each of {PACKAGES}"
    return found + glob.glob(os.path.join(folder, PLUGIN + "_*.deb"))


def needs_of(debs):
    """The other packages that they depend on."""
    found = set()
    for deb in debs:
        for word in run("dpkg-deb", "--field", deb, "Depends").split(","):
            name = word.split("|")[0].split("(")[0].strip()
            if name and not name.startswith("assay-"):
                found.add(name)
    return sorted(found)


def as_earlier(debs, folder):
    """The same packages with a lower version."""
    os.makedirs(folder)
    for deb in debs:
        tree = os.path.join(folder, "tree")
        run("dpkg-deb", "--raw-extract", deb, tree)
        control = os.path.join(tree, "DEBIAN", "control")
        text = re.sub(r"^Version: .*$", "Version: 0.0.1", open(control).read(), flags=re.M)
        open(control, "w").write(text)
        run("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, folder)
        shutil.rmtree(tree)
    return debs_in(folder)


def the_plugin(m, debs):
    """assay-cuda is one library and its papers, and depends on nothing of NVIDIA's. The trainer finds it, and says what else it needs."""
    deb = next((d for d in debs if os.path.basename(d).startswith(PLUGIN + "_")), None)
    if not deb:
        say(f"no {PLUGIN} among the packages: it is made where nvcc is")
        return
    listed = run("dpkg-deb", "--contents", deb).splitlines()
    files = {line.split()[5].lstrip(".") for line in listed if not line.startswith("d")}
    plugins = [f for f in files if not f.startswith(f"/usr/share/doc/{PLUGIN}/")]
    assert len(plugins) == 1 and re.fullmatch(r"/usr/lib/[^/]+/assay/libassay-cuda\.so", plugins[0]), files
    depends, recommends = (run("dpkg-deb", "--field", deb, name).strip() for name in ("Depends", "Recommends"))
    assert re.match("libc6 ", depends) and not re.search("cublas|cudart|nvidia", depends), depends
    assert re.fullmatch(r"libcublas-\d+-\d+", recommends), recommends
    needed = re.findall(r"^\s*(\S+) => not found", m.shell(f"ldd {plugins[0]}"), re.M)
    assert needed and all(re.fullmatch(r"libcublas(Lt)?\.so\.\d+", n) for n in needed), needed
    answer = m.shell("assay-train --list-devices 2>&1", check=False)
    assert "no driver: there is no /dev/nvidiactl" in answer, answer
    asked = f"ASSAY_PLUGIN_DIR={os.path.dirname(plugins[0])} assay-train --list-devices 2>&1"
    answer = m.shell(asked, check=False)
    assert "does not load: libcublas" in answer, answer
    say(f"{PLUGIN}: {plugins[0]}, without NVIDIA's {', '.join(needed)}: {' '.join(answer.split())[:160]}")


def start(m):
    """As docs/install.md says."""
    m.shell("cd /; su postgres -c 'createuser assay'; su postgres -c 'createdb --owner assay assay'")
    for unit in UNITS:
        assert m.shell(f"systemctl is-active {unit}", check=False).strip() == "inactive", unit
    m.shell("systemctl start assayd")
    m.shell("systemctl start assay-runner")
    assert m.shell("systemctl is-active assay-runner", check=False).strip() == "inactive", "the runner starts without a token"
    m.shell("install -m 600 /var/lib/assay/runner.token /etc/assay/runner.token; systemctl start assay-runner")
    for unit in ("assayd", "assay-runner"):
        m.await_active(unit)
    for unit in UNITS:
        user = {"assayd": "assay"}.get(unit, unit)
        assert m.shell(f"systemctl show -p User --value {unit}").strip() == user
        score = float(re.search(r"level for .*: ([0-9.]+)", m.shell(f"systemd-analyze security --no-pager {unit}.service")).group(1))
        assert score <= 3.0, (unit, score)
        say(f"{unit}: user {user}, exposure {score}")
    assert "web=/usr/share/assay/web" in m.shell("journalctl --no-pager -u assayd"), "no dashboard"
    assert m.shell("stat -c %a:%U /etc/assay/assayd.env /etc/assay/runner.token").split() == ["600:root"] * 2
    await_true(lambda: "live" in m.shell("assay runners"), "the runner to register")


def make_sweep(m, name, text, more=""):
    path = os.path.join(m.tree, "root", name + ".yaml")
    with open(path, "w") as f:
        f.write(text.replace("NAME", name))
    m.shell(f"assay run /root/{name}.yaml {more}")
    os.unlink(path)


def make_commands(m, name, trials):
    make_sweep(m, name, SWEEP.replace("TRIALS", str(trials)))


def completed(m, name):
    rows = m.shell(f"assay export {name} --csv", check=False).splitlines()
    return len([r for r in rows[1:] if "completed" in r])


def a_sweep_runs(m):
    make_commands(m, "first", 3)
    await_true(lambda: completed(m, "first") == 3, "the first sweep")
    text = m.shell("assay trial first/0")
    for wall in ("no new privileges", "no capabilities", "private tmp", "cgroup"):
        assert wall in text, text
    say("a sweep ran; walls of its trials: " + re.search(r"walls\s+(.*)", text).group(1))


def a_model_is_kept(m):
    """A data set, a sweep of the trainer over it, and the ensemble that it recommends."""
    shutil.copy(DIGITS, os.path.join(m.tree, "root"))
    m.shell("assay data add digits /root/digits.csv --target class")
    make_sweep(m, "trained", TRAINED, "--watch")
    m.shell("assay models add trained digits")


def what_is_kept(m):
    """All that the server knows of them, as the commands say it. The model is fetched, and predicts."""
    m.shell("rm -f /root/digits.safetensors; assay models get digits /root/digits.safetensors")
    known = {what: json.loads(m.shell(f"assay {what} --json")) for what in ("data show digits", "models show digits", "best trained")}
    for name in ("first", "trained"):
        known["trials of " + name] = list(csv.DictReader(io.StringIO(m.shell(f"assay export {name} --csv"))))
    known["model"] = m.shell("sha256sum /root/digits.safetensors")
    known["predictions"] = [[float(x) for x in row] for row in list(csv.reader(io.StringIO(m.shell(
        "assay predict /root/digits.safetensors --data /root/digits.csv --proba"))))[1:]]
    assert len(known["trials of trained"]) == 5 and len(known["predictions"]) == len(open(DIGITS).readlines()) - 1, known
    return known


def differences(before, after, at=""):
    """Where what was known is another thing now. A later version may know more; numbers may differ in the last bits of float32."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [d for k in before for d in (differences(before[k], after[k], f"{at}/{k}") if k in after else [f"{at}/{k} is gone"])]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [d for i, (b, a) in enumerate(zip(before, after)) for d in differences(b, a, f"{at}/{i}")]
    if isinstance(before, float) and isinstance(after, float) and math.isclose(before, after, rel_tol=1e-5, abs_tol=1e-6):
        return []
    return [] if before == after else [f"{at}: {before}, now {after}"]


def the_watchdog_bites(m):
    """What stands still is ended and started again. Both programs send it before that, so they live longer than its time."""
    for unit in ("assayd", "assay-runner"):
        folder = os.path.join(m.tree, f"etc/systemd/system/{unit}.service.d")
        os.makedirs(folder)
        open(os.path.join(folder, "try.conf"), "w").write("[Service]\nWatchdogSec=8s\n")
        m.shell(f"systemctl daemon-reload; systemctl restart {unit}")
        m.await_active(unit)
        before = m.pid(unit)
        time.sleep(20)
        assert m.pid(unit) == before, f"{unit} was ended although it was well"
        m.shell(f"kill -STOP {before}")
        await_true(lambda: m.pid(unit) not in (0, before), f"the watchdog of {unit}")
        m.await_active(unit)
        shutil.rmtree(folder)
    m.shell("systemctl daemon-reload; systemctl restart assayd assay-runner")
    say("watchdogs end what stands still")


def upgrade(m, debs):
    before = {unit: m.pid(unit) for unit in ("assayd", "assay-runner")}
    m.shell("echo '# a line of the administrator' >> /etc/assay/assay-runner.env")
    kept = what_is_kept(m)
    make_commands(m, "second", 30)
    await_true(lambda: completed(m, "second") >= 2, "trials before the upgrade")
    m.install(debs)
    after = completed(m, "second")
    m.await_active("assayd")
    found = differences(kept, what_is_kept(m))
    assert not found, found[:20]
    say(f"a data set, {len(kept['trials of trained'])} trained trials and a kept model with {len(kept['predictions'])} predictions are as they were")
    await_true(lambda: completed(m, "second") == 30, "the sweep to end after the upgrade")
    for unit, pid in before.items():
        m.await_active(unit)
        assert m.pid(unit) != pid, f"{unit} still runs the earlier version"
    assert "# a line of the administrator" in m.shell("cat /etc/assay/assay-runner.env")
    assert not m.shell("systemctl list-units --failed --no-legend 'assay*'").strip()
    # each trial once, and none lost an attempt as a failure: what ran was handed back
    for n in range(30):
        assert "failed" not in m.shell(f"assay trial second/{n}"), n
    make_sweep(m, "again", TRAINED, "--watch")
    assert completed(m, "again") == 5, "the data set does not train any more"
    say(f"upgraded; {after} of 30 trials had completed when it was done, and all 30 did")


def remove(m, fresh):
    every = f"assay-server assay-runner assay-cli $(dpkg-query --show -f '${{Package}} ' '{PLUGIN}' 2>/dev/null || true)"
    m.shell(f"dpkg --remove {every}")
    assert not m.shell("pgrep -l '^assay' || true").strip()
    assert {"assayd.env", "assay-runner.env", "assay-serve.env", "runner.token"} == set(os.listdir(os.path.join(m.tree, "etc/assay")))
    text = m.shell(f"dpkg --purge {every} 2>&1")
    assert "kept: the database" in text and "kept: /var/lib/assay-runner" in text and "kept: /etc/assay/runner.token" in text, text
    m.shell("rm /etc/assay/runner.token")
    left = {f for f in m.files() - fresh if "assay" in f and not f.startswith("/var/lib/assay-runner/")}
    assert left <= {"/var/lib/assay-runner", "/etc/assay"}, f"left behind: {sorted(left)}"
    assert "assay\n" in m.shell("su postgres -c \"psql -Atc 'select datname from pg_database'\"")
    assert not re.search("^assay(-serve)?:", m.shell("cat /etc/passwd"), re.M)
    say("removed; left: the database, and /var/lib/assay-runner")


def main(folder_of_debs, previous=None):
    for program in ("mmdebstrap", "systemd-nspawn", "dpkg-deb"):
        if not shutil.which(program):
            sys.exit(f"{program} is not installed")
    debs = debs_in(folder_of_debs)
    folder = tempfile.mkdtemp(prefix="assay-try-", dir="/var/tmp")
    os.chmod(folder, 0o755)
    try:
        earlier = debs_in(previous) if previous else as_earlier(debs, os.path.join(folder, "earlier"))
        with Machine(folder, ["postgresql", *needs_of(debs + earlier)]) as m:
            fresh = m.files()
            m.install(earlier)
            say("installed: " + ", ".join(os.path.basename(d) for d in earlier))
            start(m)
            a_sweep_runs(m)
            a_model_is_kept(m)
            the_watchdog_bites(m)
            upgrade(m, debs)
            the_plugin(m, debs)
            remove(m, fresh)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say("the packages work")


if __name__ == "__main__":
    main(*sys.argv[1:])
