#!/usr/bin/env python3
"""What the dashboard costs for sweeps of many trials: assayd, PostgreSQL and Chromium on this machine.

    bench/dashboard.py [TRIALS ...] [--build BUILD] [--json]      TRIALS: 1000 10000 100000 1000000

The sweeps have 8 parameters and 3 metrics, and are written into the tables by SQL, as no runner could run them in this
time. bench/dashboard.mjs drives the page: the first useful view (the best value is shown), all trials in the page, bytes,
memory of the tab, sorting and filtering, the longest task of the main thread, and what 50 new trials a second cost in the
tab and, for each further viewer, in the server. The floor of loading is fetching and reading the same table in the same
browser, and nothing else. If Python has optuna and optuna-dashboard, the same browser shows them a study of as many
trials, up to 10,000 (its own limit for charts is below that); else a line says that they are not here."""
import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

from many_trials import FLOATS, document, fill

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEER_MOST = 10_000


def pid_of(parent, name):
    """The child of that process with this name."""
    for child in open(f"/proc/{parent}/task/{parent}/children").read().split():
        if open(f"/proc/{child}/comm").read().strip() == name:
            return child
    raise SystemExit(f"process {parent} has no child {name}")


def drive(env, *args):
    return subprocess.run(["node", os.path.join(ROOT, "bench", "dashboard.mjs"), *args], env={**os.environ, **env}).returncode


def peer_study(path, trials):
    """A study of optuna with as many trials, in SQLite."""
    import optuna
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
    import random
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {**{f: FloatDistribution(0, 1) for f in FLOATS}, "layers": IntDistribution(1, 8),
             "kind": CategoricalDistribution(["adam", "sgd", "lion"]), "norm": CategoricalDistribution(["batch", "layer"])}
    study = optuna.create_study(storage=f"sqlite:///{path}", study_name="made", direction="minimize")
    study.add_trials([optuna.trial.create_trial(value=random.random(), distributions=space, params={
        **{f: random.random() for f in FLOATS}, "layers": 1 + i % 8, "kind": "sgd", "norm": "batch"}) for i in range(trials)])


def peer(trials, args):
    """The page of a study in optuna-dashboard, in the same browser."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "study.db")
        peer_study(path, trials)
        server = subprocess.Popen([sys.executable, "-c", "from optuna_dashboard._cli import main; main()", f"sqlite:///{path}",
                                   "--port", "18321", "--host", "127.0.0.1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(200):
                try:
                    urllib.request.urlopen("http://127.0.0.1:18321/api/studies", timeout=5)
                    break
                except OSError:
                    time.sleep(0.1)
            return drive({"BENCH_PEER": "http://127.0.0.1:18321", "BENCH_TRIALS": str(trials)}, *args)
        finally:
            server.terminate()
            server.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trials", type=int, nargs="*", default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    os.environ["ASSAY_SOURCE_ROOT"] = ROOT
    os.environ["ASSAY_BUILD_ROOT"] = os.path.abspath(given.build)
    sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
    from harness import Assay, database_url  # noqa: E402
    args = ["--json"] if given.json else []
    failed = 0
    has_peer = all(importlib.util.find_spec(name) for name in ("optuna", "optuna_dashboard"))
    for trials in given.trials:
        with Assay(runners=0) as assay:
            sweep = f"made-{trials}"
            assay.call("POST", "/v1/sweeps?paused=true", document(sweep, trials + 5000))
            fill(database_url(assay), sweep, trials)
            failed |= drive({"BENCH_URL": assay.url, "BENCH_TOKEN": assay.token, "BENCH_SWEEP": sweep,
                             "BENCH_TRIALS": str(trials), "BENCH_SERVER": pid_of(assay.up.pid, "assayd")}, *args)
        if has_peer and trials <= PEER_MOST:
            failed |= peer(trials, args)
    if not has_peer:
        print("optuna-dashboard is not installed for this Python: it was not measured")
    sys.exit(failed)


if __name__ == "__main__":
    main()
