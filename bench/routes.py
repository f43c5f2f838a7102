#!/usr/bin/env python3
"""What every route that the page and the CLI use costs for one sweep of many trials with points: milliseconds of the first
answer and of the later ones (median of ROUNDS), bytes, and the memory of the server after it.

    bench/routes.py [TRIALS] [--points N] [--build BUILD]      TRIALS: 100000; N: of each trial (20)

One line of JSON for each route, after one with the bytes that a trial has in the largest tables, and in their indexes. The
trials are written by SQL (many_trials.py). An answer that is not 2xx is told with its status."""
import argparse
import json
import os
import re
import statistics
import sys
import time
import urllib.error
import urllib.request

from many_trials import document, fill, sizes

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROUNDS = 5
SWEEP = "made"


def routes(trials):
    """Name and path below the sweep, in the order in which they are asked."""
    last = trials - 1
    yield from {
        "the sweep": "",
        "best": "/best",
        "a trial": f"/trials/{trials // 2}",
        "points of a trial": f"/trials/{last}/measurements",
        "log of a trial": f"/trials/{last}/log",
        "files of a trial": f"/trials/{last}/artifacts",
        "500 trials": "/trials?page_size=500",
        "500 completed trials": "/trials?page_size=500&state=completed",
        "no failed trial": "/trials?page_size=500&state=failed",
        "events from the end": None,
        "table": "/table?layout=planes",
        "changes": "/changes",
        "regret checks": "/regret/checks",
        "ensembles": "/ensembles",
        "Pareto front": "/pareto",
        "attempts": "/attempts?layout=planes",
        "points of all trials": "/points?metric=loss&max_points=64&layout=planes",
        "importance": "/importance?metric=loss",
        "surface": "/surface?metric=loss",
    }.items()
    for sort in ("number", "value", "metric:accuracy", "param:lr", "param:kind", "duration", "created_at"):
        yield f"100 trials by {sort}", f"/trials?page_size=100&sort={sort}"


def get(url, token, path):
    """Status, bytes, ms; of a stream of events the time to its head."""
    request = urllib.request.Request(url + path, headers={"Authorization": "Bearer " + token, "Accept-Encoding": "gzip"})
    began = time.perf_counter()
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            body = answer.read(1) if path.endswith("/events") else answer.read()
            status = answer.status
    except urllib.error.HTTPError as e:
        body, status = e.read(), e.code
    return status, len(body), (time.perf_counter() - began) * 1000


def memory_mb(pid):
    text = open(f"/proc/{pid}/status").read()
    return {name: int(re.search(rf"^{name}:\s+(\d+)", text, re.M).group(1)) // 1024 for name in ("VmRSS", "VmHWM")}


def measure(url, token, sweep, trials, pid):
    for name, rest in routes(trials):
        path = f"/v1/sweeps/{sweep}{'/events' if rest is None else rest}"
        status, size, first = get(url, token, path)
        again = [get(url, token, path)[2] for _ in range(ROUNDS)] if 200 <= status < 300 else [first]
        memory = memory_mb(pid)
        print(json.dumps({"case": name, "trials": trials, "status": status, "first_ms": round(first, 1),
                          "ms": round(statistics.median(again), 1), "bytes": size, "server_mb": memory["VmRSS"],
                          "server_peak_mb": memory["VmHWM"]}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trials", type=int, nargs="?", default=100_000)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    given = parser.parse_args()
    os.environ["ASSAY_SOURCE_ROOT"] = ROOT
    os.environ["ASSAY_BUILD_ROOT"] = os.path.abspath(given.build)
    sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
    from harness import Assay, database_url  # noqa: E402
    with Assay(runners=0) as assay:
        assay.call("POST", "/v1/sweeps?paused=true", document(SWEEP, given.trials + 1000))
        fill(database_url(assay), SWEEP, given.trials, given.points)
        print(json.dumps({"case": "bytes of a trial", "trials": given.trials, "points": given.points, "tables": {
            name: [round(n / given.trials) for n in both] for name, both in sizes(database_url(assay)).items()}}), flush=True)
        measure(assay.url, assay.token, SWEEP, given.trials, assay.processes("assayd")[0])


if __name__ == "__main__":
    main()
