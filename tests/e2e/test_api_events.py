#!/usr/bin/env python3
"""Events under load with two servers over one database: whoever follows (and is cut off, and resumes elsewhere by
Last-Event-ID) sees every event once, in one order. 200 waiting claims keep nobody else waiting."""
import concurrent.futures
import http.client
import json
import random
import re
import statistics
import sys
import threading
import time
import urllib.parse

from harness import PATIENCE_S, Assay, second_server

WAITERS = 200
MUCH = 1 << 50  # bytes of memory
DOC = {"name": "busy", "metric": {"name": "loss", "goal": "minimize"},
       "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "search": {"method": "random", "seed": 1},
       "limits": {"max_trials": 60},
       "trial": {"command": ["sh", "-c", "for i in 1 2 3; do echo '{\"loss\": ${x}, \"step\": '$i'}' >> $ASSAY_REPORT; done"]}}


class Follower(threading.Thread):
    """Follows events from the first, now from this server, now from that, hanging up at random."""

    def __init__(self, assay, urls, seed=0, hang_up=False, path="/v1/events"):
        super().__init__(daemon=True)
        self.path = path
        self.assay, self.urls, self.rng, self.hang_up = assay, urls, random.Random(seed), hang_up
        self.events, self.last, self.comments, self.is_over, self.why = [], 0, 0, False, None

    def run(self):
        try:
            while not self.is_over:
                self.follow(self.rng.choice(self.urls))
        except BaseException as e:
            self.why = e
            raise

    def follow(self, url):
        c = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=PATIENCE_S)
        headers = {"Authorization": f"Bearer {self.assay.token}", "Last-Event-ID": str(self.last)}
        c.request("GET", self.path, headers=headers)
        r = c.getresponse()
        assert r.status == 200, r.status
        until = time.monotonic() + (self.rng.uniform(0.02, 0.8) if self.hang_up else 600)
        event_id = None
        while time.monotonic() < until and not self.is_over:
            line = r.readline()
            assert line or self.is_over, "the server ended the stream"
            if line.startswith(b"id: "):
                event_id = int(line[4:])
            elif line.startswith(b"data: "):
                self.events.append((event_id, json.loads(line[6:])))
                self.last = event_id
            self.comments += line.startswith(b":")
        c.close()


def events_are_whole(assay, urls):
    followers = [Follower(assay, urls, i, hang_up=i % 3 != 0) for i in range(9)]
    for f in followers:
        f.start()
    sweeps = [assay.call("POST", "/v1/sweeps", DOC)["id"] for _ in range(2)]
    for s in sweeps:
        assay.wait_ended(s)
    steady = followers[0]

    def is_all_seen(f):
        if f.why:
            raise AssertionError(f.why)
        ended = {e["sweep"] for _, e in f.events if e["type"] == "sweep.changed" and e["state"] == "completed"}
        return ended == set(sweeps)

    for f in followers:
        assay.wait(lambda f=f: is_all_seen(f), "all events to arrive")
    last_id = max(i for i, e in steady.events if e.get("sweep") in sweeps)
    for f in followers:
        assay.wait(lambda f=f: f.last >= last_id, "the last event")
    seen = [[x for x in f.events if x[1].get("sweep") in sweeps] for f in followers]
    for f, events in zip(followers, seen):
        ids = [i for i, _ in events]
        assert ids == sorted(set(ids)), "out of order, or twice"
        assert events == seen[0], f"{len(events)} events, another follower saw {len(seen[0])}: {set(map(str, seen[0])) ^ set(map(str, events))}"
    per_trial = {}
    for _, e in seen[0]:
        if e["type"] == "trial.changed":
            per_trial.setdefault((e["sweep"], e["number"]), []).append(e["state"])
    assert len(per_trial) == 120 and all(v == ["running", "completed"] for v in per_trial.values()), per_trial
    print(f"{len(seen[0])} events, each once and in order, for {len(followers)} followers on {len(urls)} servers")
    for f in followers:
        f.is_over = True


def latencies(assay, seconds):
    took, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        start = time.monotonic()
        assay.call("GET", "/v1/sweeps")
        took.append(time.monotonic() - start)
    return took


def waiting_now(assay):
    """How many requests of the first server wait for a trial of any sweep."""
    text = assay.call("GET", "/metrics").decode()
    return int(re.search(r'^assay_waiting_requests\{for="any_trial"\} (\d+)$', text, re.M).group(1))


def waiting_claims(assay):
    """200 claims that wait: other requests are answered, work still reaches the runners, and each of the 200 gets one
    of the 200 trials. A trial needs more memory than a machine has: the runners of `assay up` take none."""
    epochs = {f"w{i}": assay.call("POST", "/v1/runners", {"name": f"w{i}", "slots": 1, "memory_bytes": MUCH})["epoch"]
              for i in range(WAITERS)}
    quiet = latencies(assay, 1.5)
    blocker = assay.call("POST", "/v1/sweeps?paused=true", {**DOC, "name": "paused", "limits": {"max_trials": WAITERS},
                                                "resources": {"memory": MUCH}})["id"]

    def claim(name):
        body, until = {"epoch": epochs[name], "claim_id": "c", "wait_ms": 60000}, time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            trials = assay.call("POST", f"/v1/runners/{name}/claim", body)["trials"]
            if trials:
                return trials
        return []

    with concurrent.futures.ThreadPoolExecutor(WAITERS) as pool:
        claims, begin = [pool.submit(claim, name) for name in epochs], time.monotonic()

        def wait_now():
            """All of them; on a machine on which the first give up before the last have come, half of them."""
            return waiting_now(assay) >= (WAITERS if time.monotonic() - begin < 60 else WAITERS // 2)
        assay.wait(wait_now, "the claims to wait")
        busy = latencies(assay, 3)
        start = time.monotonic()
        assay.call("PATCH", f"/v1/sweeps/{blocker}", {"state": "running"})
        got = [c.result() for c in claims]
        took = time.monotonic() - start
    numbers = sorted(t["number"] for trials in got for t in trials)
    assert numbers == list(range(WAITERS)) and all(len(trials) == 1 for trials in got), numbers
    assert assay.sweep(blocker)["counts"]["running"] == WAITERS, assay.sweep(blocker)["counts"]
    print(f"GET /v1/sweeps: median {statistics.median(quiet) * 1e3:.1f} ms alone, {statistics.median(busy) * 1e3:.1f} ms "
          f"(worst {max(busy) * 1e3:.0f} ms) beside {WAITERS} waiting claims; all had work {took:.2f} s after it came")
    assert min(busy) < 60, "other requests wait until the claims are over"
    assay.call("PATCH", f"/v1/sweeps/{blocker}", {"state": "cancelled"})


def main():
    with Assay(runners=2, slots=2) as assay, second_server(assay) as other:
        still = assay.call("POST", "/v1/sweeps", {**DOC, "name": "still", "resources": {"gpus": 1}})["id"]
        quiet = Follower(assay, [other], path=f"/v1/sweeps/{still}/events")
        quiet.start()
        events_are_whole(assay, [assay.url, other])
        waiting_claims(assay)
        # a stream on which nothing happens carries a comment each 15 s
        assay.wait(lambda: quiet.comments or quiet.why, "a comment")
        assert not quiet.why, quiet.why
        quiet.is_over = True


if __name__ == "__main__":
    sys.exit(main())
