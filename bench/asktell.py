#!/usr/bin/env python3
"""What a trial costs that is a function in the same process: assay.optimize() against Optuna with its TPE, in memory and
on PostgreSQL. 200 trials of five numbers and a category, computed in microseconds; every program's own defaults but for
the sampler. All take turns against one private PostgreSQL.

    bench/asktell.py [BUILD]      BUILD: the build folder (build); needs Optuna and psycopg2 for the peers

One line of JSON per case: milliseconds of a trial, the median over `of` rounds. `times`: that of Optuna in memory."""
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ["ASSAY_SOURCE_ROOT"] = ROOT
os.environ["ASSAY_BUILD_ROOT"] = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build"))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
sys.path.insert(0, os.path.join(ROOT, "clients", "python"))
import assay  # noqa: E402
from harness import Assay, database_url  # noqa: E402

try:
    import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
except ImportError:
    optuna = None

TRIALS = 200
ROUNDS = 3


def objective(trial):
    x = [trial.suggest_float(f"x{i}", -5, 5) for i in range(5)]
    return sum(v * v for v in x) + (0 if trial.suggest_categorical("kind", ["a", "b", "c"]) == "b" else 3)


def ours(name, batch, method):
    assay.optimize(objective, n_trials=TRIALS, name=name, batch=batch, method=method, seed=7, show_progress_bar=False)


def theirs(storage, name):
    study = optuna.create_study(storage=storage, study_name=name, sampler=optuna.samplers.TPESampler(seed=7))
    study.optimize(objective, n_trials=TRIALS)


def sqlalchemy_url(url, database):
    """A database beside the server's, as SQLAlchemy writes it; over the cluster's socket."""
    parts = urllib.parse.urlsplit(url)
    query = dict(urllib.parse.parse_qsl(parts.query))
    host = query.get("host") or urllib.parse.unquote(parts.hostname or "")
    return f"postgresql+psycopg2://{parts.username or query['user']}@/{database}?" + urllib.parse.urlencode(
        {"host": host, **({"port": parts.port or query["port"]} if parts.port or "port" in query else {})})


def main():
    with Assay(runners=1) as server:
        os.environ["ASSAY_SERVER"], os.environ["ASSAY_TOKEN"] = server.url, server.token
        cases = {"assay, gp": lambda k: ours(f"gp{k}", 1, "gp"), "assay, gp, batch of 8": lambda k: ours(f"b{k}", 8, "gp"),
                 "assay, random": lambda k: ours(f"r{k}", 1, "random")}
        if optuna:
            url = database_url(server)
            subprocess.run(["psql", "-qX", "-d", url, "-c", "create database optuna"], check=True)
            cases["optuna, TPE, in memory"] = lambda k: theirs(None, f"m{k}")
            cases["optuna, TPE, PostgreSQL"] = lambda k: theirs(
                optuna.storages.RDBStorage(sqlalchemy_url(url, "optuna")), f"p{k}")
        found = {case: [] for case in cases}
        for k in range(ROUNDS):
            for case, run in cases.items():
                start = time.monotonic()
                run(k)
                found[case].append((time.monotonic() - start) * 1e3 / TRIALS)
    memory = statistics.median(found.get("optuna, TPE, in memory", [float("nan")]))
    for case, values in found.items():
        median = statistics.median(values)
        print(json.dumps({"case": f"{case}: a trial", "value": round(median, 2), "unit": "ms", "of": ROUNDS,
                          "min": round(min(values), 2), "max": round(max(values), 2), "times": round(median / memory, 2)}))


main()
