#!/usr/bin/env python3
"""limits.stop_when: a sweep of real trials ends when little is left to gain, on one server or two, also when a server is
killed meanwhile; what it could still gain is shown, and computed again, with the limit and without."""
import json
import os
import signal
import tempfile
import time

from harness import Assay, second_server

SWEEP = """
name: %s
metric: {name: loss, goal: minimize}
parameters: {x: {type: float, min: 0, max: 1}, y: {type: float, min: 0, max: 1}}
search: {method: %s, seed: 3}
limits: {%s}
trial:
  command: [awk, -v, "x=${x}", -v, "y=${y}", 'BEGIN { print "{\\"loss\\": " ((x - 0.3)^2 + (y - 0.6)^2) "}" >> ENVIRON["ASSAY_REPORT"] }']
"""
LIMIT = 0.05
# On a busy machine dozens of trials of milliseconds end before the bound of one is there.
MAX_TRIALS = 500
# The same with noise that differs from trial to trial.
NOISY = SWEEP.replace("BEGIN {", 'BEGIN { n = ENVIRON["ASSAY_TRIAL"]; sub(".*/", "", n);').replace("(y - 0.6)^2", "(y - 0.6)^2 + 0.1 * sin(n * n)")


def create(assay, folder, *of, document=SWEEP):
    path = os.path.join(folder, "sweep.yaml")
    with open(path, "w") as f:
        f.write(document % of)
    return assay.cli("run", path).stdout.strip()


def checks(assay, sweep):
    return assay.call("GET", f"/v1/sweeps/{sweep}/regret/checks")["items"]


def scheduled(n):
    """The counts up to n."""
    counts, count = [], 4
    while count <= n:
        counts.append(count)
        count += max(1, count // 16)
    return counts


def wait_bounds(assay, sweep):
    """All bounds of a sweep that has ended, and one of all its trials: a server that was killed finds what is missing."""
    os.kill(assay.processes("assayd")[0], signal.SIGKILL)
    n = assay.wait(lambda: assay.sweep(sweep), "the server")["counts"]["completed"]
    wanted = sorted({*scheduled(n), n})
    items = assay.wait(lambda: (c := checks(assay, sweep)) and len(c) == len(wanted) and c, f"{len(wanted)} bounds", every=0.2)
    assert [c["completed"] for c in items] == wanted, items
    assert all(b["finish_seq"] > a["finish_seq"] for a, b in zip(items, items[1:])), items
    return items


def ending(items):
    """The count at which the rule ends the sweep: a bound between two counts says nothing."""
    items = [c for c in items if c["completed"] in scheduled(c["completed"])]
    within = [c["enough"] and c["relative"] is not None and c["relative"] <= LIMIT for c in items]
    return next(c["completed"] for i, c in enumerate(items) if c["completed"] >= 20 and i >= 2 and all(within[i - 2:i + 1]))


def check_end(assay, sweep):
    s = assay.wait_ended(sweep)
    assert s["state"] == "completed" and s["counts"]["completed"] < MAX_TRIALS, s
    print(f"{sweep}: {s['counts']['completed']} trials", flush=True)
    items = wait_bounds(assay, sweep)
    n = ending(items)
    assert f"was left to gain after {n} completed trials" in s["reason"], (s["reason"], n)
    assert s["reason"].endswith(f"(stop_when.relative is {LIMIT})"), s["reason"]
    assert s["counts"]["queued"] == s["counts"]["running"] == 0, s["counts"]
    for t in assay.trials(sweep):
        assert t["state"] in ("completed", "cancelled"), t
        assert t["state"] == "completed" or "left to gain" in t["reason"], t
    return s, items


def check_replay(assay, folder):
    """What ended the sweep is shown and computed again, from the server and from an export; a changed bound is found."""
    sweep = create(assay, folder, "bowl", "gp", f"max_trials: {MAX_TRIALS}, stop_when: {{relative: {LIMIT}}}")
    s, items = check_end(assay, sweep)
    shown = assay.cli("show", sweep).stdout
    assert f"reason\t{s['reason']}" in shown, shown
    line = next(x for x in shown.splitlines() if x.startswith("left to gain\t"))
    assert "at most " in line and f"by {items[-1]['completed']} completed trials" in line, line
    latest = assay.sweep(sweep)["regret"]
    assert latest == items[-1], (latest, items[-1])
    said = assay.cli("replay", sweep).stdout
    assert f"{len(items)} of {len(items)} bounds of what was left to gain are the same" in said, said
    path = os.path.join(folder, "bowl.json")
    assay.cli("export", sweep, "--json", "--output", path)
    tree = json.load(open(path))
    tree["sweep"]["regret_checks"][8]["bound"] *= 1 + 1e-15
    tree["sweep"]["regret_checks"][8]["bound"] += 5e-324
    del tree["sweep"]["regret_checks"][3]
    json.dump(tree, open(path, "w"))
    done = assay.cli("replay", "--file", path, check=False)
    assert done.returncode == 1, done
    assert f"{len(items) - 3} of {len(items) - 1} bounds" in done.stdout, (done.stdout, done.stderr)
    assert "bound after 8 completed trials: the one before is of 6" in done.stderr, done.stderr
    assert "bound after 12 completed trials: stored" in done.stderr, done.stderr
    # it runs on with another limit, and its bounds go on
    said = assay.cli("set", sweep, "stop_when=none", f"max_trials={s['counts']['total'] + 3}").stderr
    assert "is running" in said, said
    s = assay.wait_ended(sweep)
    assert s["reason"] == "every trial has ended", s["reason"]
    changed = assay.cli("show", sweep).stdout
    assert f"stop_when {100 * LIMIT:g}% after 20 trials -> none" in changed, changed
    done = assay.cli("set", sweep, "stop_when=soon", check=False)
    assert done.returncode == 64 and "a share such as 1%" in done.stderr, done
    assert "the sweep stays completed" in assay.cli("set", sweep, "stop_when=100%").stderr


def check_kills(assay, folder):
    """Two servers, of which one is killed in the middle: the sweep ends by the same rule on the same rows."""
    with second_server(assay):
        sweep = create(assay, folder, "killed", "gp", f"max_trials: {MAX_TRIALS}, stop_when: {{relative: {LIMIT}}}")
        assay.wait(lambda: len(checks(assay, sweep)) >= 5, "five bounds", every=0.2)
        os.kill(assay.processes("assayd")[0], signal.SIGKILL)
        assay.wait(lambda: assay.sweep(sweep)["counts"]["completed"] >= 15, "15 trials", every=0.2)
        os.kill(assay.processes("assayd")[0], signal.SIGKILL)
        check_end(assay, sweep)
    said = assay.cli("replay", sweep).stdout
    assert "bounds of what was left to gain are the same" in said, said


def check_without(assay, folder):
    """A random search without the limit has its bounds, and runs to its last trial."""
    sweep = create(assay, folder, "whole", "random", "max_trials: 24")
    s = assay.wait_ended(sweep)
    assert s["counts"]["completed"] == 24 and s["reason"] == "every trial has ended", s
    items = wait_bounds(assay, sweep)
    assert items[-1]["enough"] and items[-1]["bound"] > 0, items[-1]
    assert f"{len(items)} of {len(items)} bounds" in assay.cli("replay", sweep).stdout


def check_noise(assay, folder):
    """One configuration is measured twice. From then on the best trial is a model's, everywhere, and is computed again."""
    sweep = create(assay, folder, "noisy", "gp", "max_trials: 24", document=NOISY)
    assay.wait_ended(sweep)
    kept = wait_bounds(assay, sweep)[-1]["best"]
    assert [t["suggestion"]["acquisition"] for t in assay.trials(sweep) if "repeat" in t["suggestion"]] == ["repeat"]
    best, trials = assay.sweep(sweep)["best"], {t["number"]: t for t in assay.trials(sweep)}
    assert best["number"] == kept["number"] and best["value"] == trials[best["number"]]["value"], (best, kept)
    assert best["expected"]["low"] < best["expected"]["mean"] == kept["mean"] < best["expected"]["high"], (best, kept)
    assert best["told"]["value"] == min(t["value"] for t in trials.values()), best
    assert assay.call("GET", f"/v1/sweeps/{sweep}/best?top=1")["items"][0]["number"] == best["number"]
    assert "95% within" in assay.cli("show", sweep).stdout
    said = assay.cli("replay", sweep).stdout
    assert "bounds of what was left to gain are the same" in said, said
    path = os.path.join(folder, "noisy.json")
    assay.cli("export", sweep, "--json", "--output", path)
    tree = json.load(open(path))
    tree["sweep"]["regret_checks"][-1]["best"]["mean"] += 1e-9
    json.dump(tree, open(path, "w"))
    assert "as the best" in assay.cli("replay", "--file", path, check=False).stderr


def main():
    with Assay(runners=2) as assay, tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for check in (check_replay, check_kills, check_without, check_noise):
            start = time.monotonic()
            check(assay, folder)
            print(f"{check.__name__}: {time.monotonic() - start:.1f} s", flush=True)


main()
