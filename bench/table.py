#!/usr/bin/env python3
"""What a server needs to show all trials of a sweep at once (GET /v1/sweeps/{sweep}/table): bytes and milliseconds
for the first viewer, the second one, a viewer of another server, and what changed since; and the same for the curves
of all trials (GET …/points) and their attempts.

    bench/table.py [TRIALS [BUILD]]      TRIALS: 100000; BUILD: the build folder (build)

8 parameters (5 floats, 1 int, 2 categories) and 3 metrics, 20 points of one of them. The trials are written into the
database by SQL, as no runner could run them in this time. One line of JSON per case; lists of trials are the floor: what
the page did."""
import gzip
import json
import os
import sys
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ["ASSAY_SOURCE_ROOT"] = ROOT
os.environ["ASSAY_BUILD_ROOT"] = os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "build"))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from harness import Assay, database_url, second_server  # noqa: E402
from many_trials import FLOATS, document, fill  # noqa: E402

TRIALS = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
TRIALS = min(TRIALS, 999000)  # a sweep that is full ends

STEPS = 20  # at most 64, in a chunk


def get(assay, path, url=None, headers=None):
    request = urllib.request.Request((url or assay.url) + path, headers={
        "Authorization": "Bearer " + assay.token, "Accept-Encoding": "gzip", **(headers or {})})
    begin = time.perf_counter()
    with urllib.request.urlopen(request) as r:
        body = r.read()
        return body, r.headers, (time.perf_counter() - begin) * 1000


def tell(case, ms, size):
    print(json.dumps({"case": case, "trials": TRIALS, "ms": round(ms, 1), "bytes": size}), flush=True)


def version_of(body):
    plain = gzip.decompress(body)
    return json.loads(plain[16:16 + int.from_bytes(plain[8:12], "little")])["version"]


def main():
    with Assay(runners=0) as assay:
        assay.call("POST", "/v1/sweeps?paused=true", document("big", TRIALS + 1000))
        fill(database_url(assay), "big", TRIALS, STEPS)
        path = "/v1/sweeps/big/table"
        body, headers, ms = get(assay, path)
        tell("first viewer, all columns", ms, len(body))
        version = version_of(body)
        body, headers, ms = get(assay, path)
        tell("second viewer", ms, len(body))
        begin = time.perf_counter()
        request = urllib.request.Request(assay.url + path, headers={
            "Authorization": "Bearer " + assay.token, "Accept-Encoding": "gzip", "If-None-Match": headers["ETag"]})
        try:
            urllib.request.urlopen(request)
        except urllib.error.HTTPError as e:
            assert e.code == 304, e
        tell("who has it already", (time.perf_counter() - begin) * 1000, 0)
        for case, query in (("as planes of bytes", "?layout=planes"), ("single precision", "?precision=single"),
                            ("history: state, value, ended_at", "?columns=state,value,ended_at")):
            body, _, ms = get(assay, path + query)
            tell(case, ms, len(body))
        for i in range(3):
            known = {"params": {**{name: 0.5 for name in FLOATS}, "layers": 1, "kind": "sgd", "norm": "batch"},
                     "metrics": {"loss": i, "accuracy": 0.1, "seconds": 1}}
            assay.call("POST", "/v1/sweeps/big/trials", known)
            body, _, ms = get(assay, f"{path}?since={version}")
            tell("what changed since", ms, len(body))
        with second_server(assay) as url:
            body, _, ms = get(assay, path, url)
            tell("first viewer of another server", ms, len(body))
            body, _, ms = get(assay, f"{path}?since={version}", url)
            tell("what changed since, another server", ms, len(body))
        for sort in ("number", "value", "metric:accuracy", "param:lr", "param:kind", "duration", "created_at", "state"):
            lists = f"/v1/sweeps/big/trials?page_size=100&sort={sort}"
            body, _, ms = get(assay, lists)
            tell(f"100 trials by {sort}, first page of all", ms, len(body))
            times = []
            for i in range(10):
                known["metrics"]["loss"] = i
                assay.call("POST", "/v1/sweeps/big/trials", known)
                body, _, ms = get(assay, lists)
                times.append(ms)
                body, _, ms = get(assay, f"{lists}&cursor={json.loads(gzip.decompress(body))['next_cursor']}")
                times.append(ms)
            tell(f"100 trials by {sort}, median and most of 20 pages after one trial each", sorted(times)[10], len(body))
            tell("  most", max(times), len(body))
        for case, rest in (("curves, first viewer", "points"), ("curves, kept", "points"),
                           ("curves of 8 points, single precision", "points?max_points=8&precision=single"),
                           ("attempts, first viewer", "attempts"), ("attempts, kept", "attempts")):
            body, _, ms = get(assay, "/v1/sweeps/big/" + rest)
            tell(case, ms, len(body))
        body, _, ms = get(assay, "/v1/sweeps/big/trials?page_size=500")
        tell("a page of 500 trials as JSON", ms, len(body))


main()
