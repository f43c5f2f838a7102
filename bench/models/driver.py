"""An installation of Assay for the benchmarks of models: it registers tables, runs sweeps, keeps models, predicts.

Programs as they are: `assay up` with a private PostgreSQL and one runner with a slot for each core, so that a trial
has one thread and no trial waits for another's. Every prediction goes through `assay predict`."""
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENDED = ("completed", "failed", "cancelled")
POLL_S = 0.5


def installation(build, slots=2):
    """The harness of the end-to-end tests, on a build folder. SIGTERM ends it, too, before this program."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["ASSAY_SOURCE_ROOT"] = ROOT
    os.environ["ASSAY_BUILD_ROOT"] = os.path.abspath(build)
    sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
    from harness import Assay
    return Assay(runners=1, slots=slots)


def write_table(path, header, rows):
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(header)
        out.writerows(rows)


def _times(pid):
    """Seconds of processor time of a process and of its children that have ended."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def processor_seconds(root):
    """Of a process and all that it started, also of what has ended."""
    parents, own = {}, {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                parents[int(name)], own[int(name)] = _times(name)
            except OSError:
                continue

    def is_below(pid):
        while pid > 1 and pid != root:
            pid = parents.get(pid, 0)
        return pid == root
    return sum(s for pid, s in own.items() if is_below(pid))


class Models:
    """Sweeps and models on one installation."""

    def __init__(self, assay, folder):
        self.assay, self.folder = assay, folder

    def add_data(self, name, path, target, task):
        self.assay.cli("data", "add", name, path, "--target", target, "--task", task)

    def sweep(self, document, processor_limit=None):
        """Run a sweep to its end, or until it has taken so many seconds of processor time. Returns the sweep, its
        trials, and what it took: (wall, processor) seconds."""
        start, before = time.monotonic(), processor_seconds(self.assay.up.pid)
        sweep = self.assay.call("POST", "/v1/sweeps", document)["id"]
        while (s := self.assay.sweep(sweep))["state"] not in ENDED:
            if self.assay.up.poll() is not None:
                raise RuntimeError("assay up has ended")
            if processor_limit and processor_seconds(self.assay.up.pid) - before > processor_limit:
                self.assay.cli("set", sweep, "wall_time=1s")
            time.sleep(POLL_S)
        trials = self.assay.trials(sweep)
        if s["counts"]["completed"] == 0:
            raise RuntimeError(f"{document['name']}: no trial completed: {[t.get('reason') for t in trials][:3]}")
        took = time.monotonic() - start, processor_seconds(self.assay.up.pid) - before
        return s, trials, took

    def ensemble(self, sweep):
        """What the server made of the sweep's models: the API's object."""
        return self.assay.wait(lambda: (e := self.assay.call("GET", f"/v1/sweeps/{sweep}/ensemble"))["state"] != "pending" and e,
                               "the ensemble")

    def predict(self, reference, table, use=None):
        """Add a model of SWEEP or SWEEP/N to the registry, and predict the table's rows with it. Returns its columns
        (prediction, probability_CLASS…), each a list of texts."""
        name = re.sub(r"[^A-Za-z0-9.-]", "-", f"{reference}-{use or 'model'}")
        self.assay.cli("models", "add", *(("--use", use) if use else ()), reference, name)
        return self.rows_of(name, table)

    def fit(self, name, path, target, task, metric, limit, trials, *more):
        """`assay fit` on a table; more: options. Returns its report, and what it took: (wall, processor) seconds."""
        start, before = time.monotonic(), processor_seconds(self.assay.up.pid)
        done = self.assay.cli("fit", path, "--target", target, "--task", task, "--metric", metric, "--name", name,
                              "--time", limit, "--trials", str(trials), "--json", *more)
        took = time.monotonic() - start, processor_seconds(self.assay.up.pid) - before
        return json.loads(done.stdout.splitlines()[-1]), took

    def rows_of(self, name, table):
        """The columns that a registered model predicts for a table's rows."""
        out = os.path.join(self.folder, f"{name}.csv")
        self.assay.cli("predict", name, "--data", table, "--output", out, *(("--proba",) if self.is_classes(name) else ()))
        with open(out, newline="") as f:
            rows = list(csv.reader(f))
        return {c: [r[i] for r in rows[1:]] for i, c in enumerate(rows[0])}

    def is_classes(self, model):
        version = self.assay.call("GET", f"/v1/models/{model}/versions/1")
        return "classes" in version["outputs"]


def say(**values):
    """One line of JSON, and what the log has at once."""
    print(json.dumps(values), flush=True)


def run_nice():
    """Give way to everything else on the machine."""
    os.nice(19 - os.nice(0))


def revision():
    done = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
