"""Compares what the service says at the end with what trials and clients wrote down (history.py), and the tables with
their invariants. Everything is a list of violations: texts that begin with the promise that is broken."""
import calendar
import collections
import os
import subprocess
import time

from fleet import HEARTBEAT_S, LEASE_S
from history import now_ms

ENDED = ("completed", "failed", "cancelled")
REAPER_S = 1
# What a busy machine may add to a time: it bounds no speed, and a trial that nobody ends runs on for longer.
SLACK_S = 30


def sample(cluster, seen):
    """One look at the tables while everything runs: what is above its limit, or counted wrong, goes into `seen`."""
    rows = cluster.sql(
        "select s.id, s.n_running - coalesce(s.max_concurrent, s.n_running), s.n_total - s.planned, s.n_running - "
        "(select count(*) from trial t where t.sweep_key = s.key and t.state = 'running') from sweep s where s.n_running > 0")
    for sweep, over, more, differs in rows:
        for what, value in (("max_concurrent_trials", over), ("max_trials", more)):
            if int(value) > 0:
                seen.add(f"limit: {sweep} was {value} above {what} while it ran")
        if int(differs) != 0:
            seen.add(f"counts: {sweep} counted {differs} more running trials than there were")


class Export:
    """All trials of all sweeps with their attempts, by the API."""

    def __init__(self, load, http):
        self.sweeps, self.trials, self.points = {}, {}, {}
        self.load, self.http = load, http
        for sweep, kind in load.sweeps:
            self.sweeps[sweep] = self.get(f"/v1/sweeps/{sweep}")
            if self.sweeps[sweep] is None:
                continue
            cursor = ""
            while cursor is not None:
                page = self.get(f"/v1/sweeps/{sweep}/trials?page_size=500{cursor and '&cursor=' + cursor}")
                for t in page["items"]:
                    self.trials[f"{sweep}/{t['number']}"] = {**self.get(f"/v1/sweeps/{sweep}/trials/{t['number']}"), "kind": kind}
                cursor = page["next_cursor"]

    def get(self, path):
        """The document; None: it does not exist."""
        while True:
            status, answer = self.load.insist(self.http, "GET", path)
            if status in (200, 404):
                return answer if status == 200 else None

    def measured(self, trial):
        sweep, number = trial.split("/")
        answer = self.get(f"/v1/sweeps/{sweep}/trials/{number}/measurements")
        series = (answer or {}).get("series", {}).get("loss", {"steps": [], "values": []})
        return dict(zip(series["steps"], series["values"]))


def check(export, lines):
    by = collections.defaultdict(list)
    for line in lines:
        by[line["event"]].append(line)
    found = []
    for part in (acknowledged, measurements, one_end, attempts_rise, limits, counts, ends, values, begun_once, unattended):
        found += part(export, by)
    return found


def acknowledged(export, by):
    found = [f"acknowledged: sweep {m['sweep']} was made, and is gone" for m in by["made"] if not export.sweeps.get(m["sweep"])]
    for a in by["acked"]:
        t = export.trials.get(a["trial"])
        attempt = t and next((x for x in t["attempts"] if x["attempt"] == a["attempt"]), None)
        if not attempt or attempt.get("outcome") is None:
            found.append(f"acknowledged: the end ({a['outcome']}) of attempt {a['attempt']} of {a['trial']} is gone")
        elif a["outcome"] == "completed" and not (t["state"] == attempt.get("outcome") == "completed" and t["value"] == a["value"]):
            found.append(f"acknowledged: {a['trial']} completed with {a['value']} in attempt {a['attempt']}, and is "
                         f"{t['state']} with {t['value']}; the attempt's end is {attempt['outcome']}")
        elif a["outcome"] == "failed" and t["state"] != "failed":
            found.append(f"acknowledged: {a['trial']} failed, and is {t['state']}")
    return found


def measurements(export, by):
    """A later attempt may have measured the same steps, with the same values."""
    wanted, found = collections.defaultdict(dict), []
    for p in by["points"]:
        wanted[p["trial"]].update(p["items"])
    for trial, points in wanted.items():
        got = export.measured(trial)
        missing = {s: v for s, v in points.items() if got.get(s) != v}
        if missing:
            found.append(f"acknowledged: measurements {missing} of {trial}, which has {got}")
    return found


def one_end(export, by):
    found, ended = [], collections.defaultdict(set)
    for a in by["acked"]:
        if a["outcome"] == "completed":
            ended[a["trial"]].add(a["attempt"])
    found += [f"one end: {t} was acknowledged as completed in attempts {sorted(n)}" for t, n in ended.items() if len(n) > 1]
    for name, t in export.trials.items():
        n = sum(a.get("outcome") == "completed" for a in t["attempts"])
        if n != (t["state"] == "completed"):
            found.append(f"one end: {name} is {t['state']} with {n} completed attempts")
        if ended[name] and ended[name] != {a["attempt"] for a in t["attempts"] if a.get("outcome") == "completed"}:
            found.append(f"one end: {name} was acknowledged in attempt {ended[name]}, and another one completed")
    return found


def attempts_rise(export, by):
    """In the server's order. A frozen runner may begin an attempt that is over: that is at-least-once, and unattended()
    says for how long it may run."""
    found = []
    for name, t in export.trials.items():
        numbers = sorted(a["attempt"] for a in t["attempts"])
        if numbers != list(range(1, t["attempt"] + 1)):
            found.append(f"attempts: those of {name} are {numbers}, and its latest is {t['attempt']}")
        begins = [a["started_at"] for a in sorted(t["attempts"], key=lambda a: a["attempt"])]
        if begins != sorted(begins):
            found.append(f"attempts: those of {name} began at {begins}")
    for trial, attempt in {(line["trial"], line["attempt"]) for line in by["begin"] + by["got"]}:
        if trial not in export.trials or attempt > export.trials[trial]["attempt"]:
            found.append(f"attempts: attempt {attempt} of {trial} was handed out, and the server does not know it")
    return found


def limits(export, by):
    found, per_sweep = [], collections.Counter(name.split("/")[0] for name in export.trials)
    for sweep, s in export.sweeps.items():
        most = s and s["planned_trials"]
        if s and per_sweep[sweep] > most:
            found.append(f"limit: {sweep} has {per_sweep[sweep]} trials, max_trials is {most}")
    for name, t in export.trials.items():
        s = export.sweeps[name.split("/")[0]]
        most = s["limits"]["max_restarts"] if "limits" in s else s["document"]["limits"]["max_restarts"]
        if t["restarts"] > most:
            found.append(f"limit: {name} used {t['restarts']} restarts, max_restarts is {most}")
    return found


def counts(export, by):
    found = []
    for sweep, s in export.sweeps.items():
        if not s:
            continue
        states = collections.Counter(t["state"] for name, t in export.trials.items() if name.split("/")[0] == sweep)
        said = {k: v for k, v in s["counts"].items() if k != "total" and v}
        if said != dict(states) or s["counts"]["total"] != sum(states.values()):
            found.append(f"counts: {sweep} says {s['counts']}, its trials are {dict(states)}")
    return found


def ends(export, by):
    found = [f"ends: {s} is {x['state']}" for s, x in export.sweeps.items() if x and x["state"] not in ENDED]
    found += [f"ends: {n} is {t['state']}" for n, t in export.trials.items() if t["state"] not in ENDED]
    for sweep, s in export.sweeps.items():
        made = sum(name.split("/")[0] == sweep for name in export.trials)
        if s and s["state"] == "completed" and made != s["planned_trials"]:
            found.append(f"ends: {sweep} has completed with {made} of {s['planned_trials']} trials")
    cells = collections.Counter((n.split("/")[0], tuple(sorted(t["params"].items()))) for n, t in export.trials.items() if t["kind"] == "grid")
    return found + [f"ends: a cell of {sweep} ran as {n} trials: {cell}" for (sweep, cell), n in cells.items() if n != 1]


def values(export, by):
    """What the server has is what the attempt that completed wrote down, or a client told."""
    said = {(line["trial"], line["attempt"]): line for line in by["end"] if line["rank"] == 0}
    told = {(line["trial"], line["attempt"]) for line in by["tells"] if line["outcome"] == "completed"}
    found = []
    for name, t in export.trials.items():
        if t["state"] != "completed" or "y" not in t["params"]:
            continue
        attempt = next((a["attempt"] for a in t["attempts"] if a.get("outcome") == "completed"), None)
        end = said.get((name, attempt))
        if (name, attempt) not in told and (not end or end["exit"] != 0):
            found.append(f"values: {name} completed in attempt {attempt}, whose process did not say so: {end}")
        expected = end["value"] if end and end["exit"] == 0 else t["params"]["x"] ** 2 + t["params"]["y"] ** 2
        if t["value"] != expected:
            found.append(f"values: {name} has {t['value']}, its attempt wrote {expected}")
    return found


def begun_once(export, by):
    n = collections.Counter((b["trial"], b["attempt"], b["rank"]) for b in by["begin"])
    return [f"attempts: attempt {a} of {t} (rank {r}) was begun by {k} processes" for (t, a, r), k in n.items() if k > 1]


def unattended(export, by):
    """No process of a trial runs on after its attempt has ended, for longer than its runner needs to hear of it: a lease
    and the reaper's period, and as long as chaos itself kept the runner or its servers away (at most 2 leases)."""
    offset_ms, found, last = time.time() * 1000 - now_ms(), [], {}
    for line in by["step"]:
        key = (line["trial"], line["attempt"])
        last[key] = max(line["t"], last.get(key, 0))
    for (name, number), t in last.items():
        for a in export.trials.get(name, {"attempts": []})["attempts"]:
            if a["attempt"] == number and a.get("ended_at"):
                over_s = (t + offset_ms - time_ms(a["ended_at"])) / 1000
                if over_s > 3 * LEASE_S + REAPER_S + HEARTBEAT_S + SLACK_S:
                    found.append(f"lease: attempt {number} of {name} ran for {over_s:.1f} s after its end")
    return found


def time_ms(text):
    """Of an RFC 3339 time in UTC with milliseconds."""
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) * 1000 + int(text[20:23])


def check_rows(build, cluster):
    done = subprocess.run([os.path.join(build, "tests", "chaos", "chaos_rows")], capture_output=True, text=True, env={
        **os.environ, "CK_FORK": "no", "CHAOS_DATABASE": f"host={cluster.socket} user=assay dbname=assay"})
    return [] if done.returncode == 0 else [f"rows: {line}" for line in (done.stdout + done.stderr).splitlines() if "broken" in line] or [
        f"rows: {done.stdout} {done.stderr}"]
