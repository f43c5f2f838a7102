#!/usr/bin/env python3
"""The API under many clients at once: one idempotency key is one sweep, one name is as many ids as requests, lists
lose and repeat nothing while rows come, values sort with ties, NaN and nulls; /metrics is Prometheus text; tokens
end when they are revoked or run out."""
import concurrent.futures
import hashlib
import math
import random
import re
import threading
import time
import urllib.request

from harness import PATIENCE_S, Assay, Problem

DOC = {"name": "many", "metric": {"name": "loss", "goal": "minimize"},
       "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "search": {"method": "random", "seed": 5},
       "limits": {"max_trials": 3}, "trial": {"command": ["none"]}, "resources": {"gpus": 1}}
PARALLEL = 20


def at_once(n, call):
    """call(i) from n threads that start together; their results in order, exceptions as values."""
    gate = threading.Barrier(n)

    def one(i):
        gate.wait()
        try:
            return call(i)
        except Problem as e:
            return e

    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        return list(pool.map(one, range(n)))


def idempotency(assay):
    """20 POSTs with one key make one sweep and say so; with other bodies they are refused."""
    post = lambda doc, key: assay.call("POST", "/v1/sweeps", doc, headers={"Idempotency-Key": key})
    before = len(everything(assay, "/v1/sweeps"))
    got = at_once(PARALLEL, lambda i: post(DOC, "one"))
    assert {g["id"] if isinstance(g, dict) else str(g) for g in got} == {got[0]["id"]}, got
    got = at_once(PARALLEL, lambda i: post({**DOC, "description": str(i)}, "two"))
    made = [g for g in got if isinstance(g, dict)]
    assert len(made) == 1 and all(g.status == 422 for g in got if isinstance(g, Problem)), got
    assert len(everything(assay, "/v1/sweeps")) == before + 2


def same_name(assay):
    got = at_once(PARALLEL, lambda i: assay.call("POST", "/v1/sweeps", {**DOC, "name": "twins"}))
    ids = {g["id"] if isinstance(g, dict) else str(g) for g in got}
    assert ids == {"twins"} | {f"twins-{i}" for i in range(2, PARALLEL + 1)}, ids


def everything(assay, path, size=500, between=lambda: None):
    items, cursor = [], None
    while True:
        page = assay.call("GET", f"{path}{'&' if '?' in path else '?'}page_size={size}" + (f"&cursor={cursor}" if cursor else ""))
        items += page["items"]
        cursor = page["next_cursor"]
        if not cursor:
            return items
        between()


def lists_while_rows_come(assay):
    """What was there when a listing began is listed exactly once, whatever comes meanwhile."""
    made, data = [], b"a,b\n1,2\n3,4\n5,6\n7,8\n"
    digest = hashlib.sha256(data).hexdigest()
    assay.call("PUT", f"/v1/blobs/{digest}", raw=data)

    def add():
        made.append(assay.call("POST", "/v1/sweeps", DOC)["id"])
        name = f"d{random.randrange(10 ** 9)}"
        assay.call("POST", "/v1/datasets", {"name": name, "format": "csv", "files": {"table": digest}, "target": "b"})
        assay.call("POST", "/v1/tokens", {"role": "viewer"})
        assay.call("POST", "/v1/runners", {"name": name, "slots": 1})

    for _ in range(6):
        add()
    for path, key in (("/v1/sweeps", "id"), ("/v1/datasets", "name"), ("/v1/tokens", "id"), ("/v1/runners", "name")):
        there = {x[key] for x in everything(assay, path)}
        seen = [x[key] for x in everything(assay, path, 3, between=add)]
        assert len(seen) == len(set(seen)), (path, seen)
        assert there <= set(seen), (path, there - set(seen))


def sorting(assay):
    """sort=value: ties by number, trials without a (comparable) value last, both ways, on pages of every size."""
    doc = {**DOC, "name": "sorted", "limits": {"max_trials": 24, "max_failed_trials": 24}}
    sweep = assay.call("POST", "/v1/sweeps", doc)["id"]
    epoch = assay.call("POST", "/v1/runners", {"name": "sorter", "slots": 64, "gpus": [str(i) for i in range(64)]})["epoch"]
    for other in everything(assay, "/v1/sweeps?state=running"):
        if other["id"] != sweep:
            assay.call("PATCH", f"/v1/sweeps/{other['id']}", {"state": "cancelled"})
    got = []
    while len(got) < 24:
        claim = {"epoch": epoch, "claim_id": f"c{len(got)}", "max_trials": 24 - len(got), "gpus": 64, "wait_ms": 60000}
        got += assay.call("POST", "/v1/runners/sorter/claim", claim)["trials"]
    values = [1.5, 1.5, -0.0, 0.0, "NaN", "Infinity", "-Infinity", None, 1e-300, -1e300, 1.5, "NaN", 0.1, 0.1 + 1e-17, None, 5e-324,
              1 / 3, 1 / 3 + 1e-16, 2, 2, 2, 7, "Infinity", -3]
    for t, v in zip(got, values):
        at = f"/v1/sweeps/{sweep}/trials/{t['number']}/attempts/1"
        if v is not None:
            assay.call("POST", f"{at}/measurements", {"items": [{"step": 0, "metrics": {"loss": v}}]})
        if t["number"] % 3:
            assay.call("POST", f"{at}/complete", {"outcome": "failed" if v is None else "completed"})
    by_number = {t["number"]: t for t in assay.trials(sweep)}

    def rank(number, sign):
        v = by_number[number]["value"]
        v = float(v) if v is not None else math.nan
        return (1, 0, number) if math.isnan(v) else (0, sign * v, number)

    for order, sign in (("asc", 1), ("desc", -1)):
        expected = sorted(by_number, key=lambda n: rank(n, sign))
        for size in (1, 2, 3, 7, 24, 100):
            seen = [t["number"] for t in everything(assay, f"/v1/sweeps/{sweep}/trials?sort=value&order={order}", size)]
            assert seen == expected, (order, size, seen, expected)
    for sort in ("number", "started_at", "finished_at", "duration"):
        for order in ("asc", "desc"):
            for size in (1, 5, 24):
                seen = [t["number"] for t in everything(assay, f"/v1/sweeps/{sweep}/trials?sort={sort}&order={order}", size)]
                assert sorted(seen) == sorted(by_number), (sort, order, size, seen)
    assay.call("PATCH", f"/v1/sweeps/{sweep}", {"state": "cancelled"})


SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? '
                    r'([+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)(?: -?\d+)?')


def parse_metrics(text):
    """{family: (type, [(name, labels, value)])}, or AssertionError: text format 0.0.4 with HELP and TYPE for all."""
    families, helped, current, seen = {}, set(), None, set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in helped, f"a second HELP of {name}"
            helped.add(name)
        elif line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert current not in families and kind in ("counter", "gauge", "histogram", "summary", "untyped"), line
            assert kind != "counter" or current.endswith("_total"), line
            families[current] = (kind, [])
        else:
            m = SAMPLE.fullmatch(line)
            assert m, f"not a sample: {line!r}"
            name, labels = m[1], m[2] or ""
            ends = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}.get(families[current][0], ("",))
            assert name in [current + e for e in ends] and current in helped, line
            assert (name, labels) not in seen, f"twice: {line}"
            seen.add((name, labels))
            families[current][1].append((name, labels, float(m[3])))
    for name, (kind, samples) in families.items():
        if kind == "histogram":
            check_histogram(name, samples)
        assert kind != "counter" or all(v >= 0 for _, _, v in samples), name
    return families


def check_histogram(name, samples):
    series = {}
    for n, labels, v in samples:
        bound = re.search(r'(^|,)le="([^"]*)"', labels)
        rest = re.sub(r'(^|,)le="[^"]*"', "", labels)
        entry = series.setdefault(rest, {"buckets": []})
        if bound:
            entry["buckets"].append((float(bound[2]), v))
        else:
            entry[n[len(name):]] = v
    for labels, entry in series.items():
        bounds, counts = zip(*entry["buckets"])
        assert list(bounds) == sorted(set(bounds)) and bounds[-1] == math.inf, (name, labels, bounds)
        assert list(counts) == sorted(counts) and counts[-1] == entry["_count"], (name, labels, counts)
        assert "_sum" in entry, (name, labels)


def metrics(assay):
    request = urllib.request.Request(assay.url + "/metrics", headers={"Authorization": f"Bearer {assay.token}"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        families = parse_metrics(answer.read().decode())
    states = {name: {re.fullmatch(r'state="(\w+)"', s[1])[1]: s[2] for s in families[name][1]}
              for name in ("assay_trials", "assay_sweeps", "assay_runners")}
    assert set(states["assay_trials"]) == {"queued", "running", "paused", "completed", "pruned", "failed", "cancelled"}
    assert set(states["assay_sweeps"]) == {"running", "paused", "finishing", "completed", "failed", "cancelled"}
    assert set(states["assay_runners"]) == {"live", "lost", "left"}
    assert families["assay_database_up"][1][0][2] == 1


def tokens(assay):
    """Revoked at once, over when the time is over."""
    def refused(token):
        try:
            assay.call("GET", "/v1/sweeps", token=token)
            return False
        except Problem as e:
            assert e.status == 401 and e.body["code"] == "unauthorized", e
            return True

    made = assay.call("POST", "/v1/tokens", {"role": "viewer"})
    assert not refused(made["token"])
    assay.call("DELETE", f"/v1/tokens/{made['id']}")
    assert refused(made["token"])
    short = assay.call("POST", "/v1/tokens", {"role": "viewer", "ttl": 1})
    over = time.monotonic() + 1
    while time.monotonic() < over:
        refused(short["token"])  # so that the server remembers it to the last
    assert refused(short["token"])


def main():
    with Assay(runners=1) as assay:
        for check in (metrics, idempotency, same_name, lists_while_rows_come, sorting, tokens, metrics):
            start = time.monotonic()
            check(assay)
            print(f"{check.__name__}: {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
