#!/usr/bin/env python3
"""Sweeps that go on, as people do it: limits raised and lowered while a sweep runs and after its end, trials tried
again, a replay over all of it, assayd killed meanwhile; known results in lists; tags."""
import json
import os
import signal
import tempfile
import time

from harness import Assay, Problem

PLANE = """
name: %s
tags: [%s]
metric: {name: loss, goal: minimize}
parameters:
  x: {type: float, min: -1, max: 1}
  y: {type: float, min: -1, max: 1}
search: {method: gp, seed: 5}
limits: {max_trials: %d, max_restarts: 3}
"""
COMMAND = """
name: %s
metric: {name: loss, goal: minimize}
parameters: {x: {type: float, min: 0, max: 1}}
search: {method: %s, seed: 3}
limits: {%s}
trial: {command: [sh, -c, '%s', "${x}"]}
"""


def create(assay, folder, text, *args):
    path = os.path.join(folder, "sweep.yaml")
    with open(path, "w") as f:
        f.write(text)
    return assay.cli("run", path, *args).stdout.strip()


def replay(assay, sweep, suggested):
    said = assay.cli("replay", sweep).stdout
    assert said.startswith(f"{suggested} of {suggested} suggestions are the same"), said


def ask(assay, sweep):
    """A trial, however long its suggestion takes; None when there are no more."""
    def answer():
        done = assay.cli("ask", sweep, "--client", "me", "--wait", "10s", "--json", check=False)
        said = json.loads(done.stdout) if done.stdout else None
        return said and (said["items"] or said["done"]) and said
    items = assay.wait(answer, f"{sweep} to answer an ask")["items"]
    return items[0] if items else None


def tell(assay, sweep, trial):
    p = trial["params"]
    assay.cli("tell", sweep, str(trial["number"]), "--client", "me", f"loss={p['x'] ** 2 + (p['y'] - 0.3) ** 2}")


def loop(assay, sweep, failing=()):
    """Runs all that there is; how many. The numbers in failing fail."""
    n = 0
    while trial := ask(assay, sweep):
        if trial["number"] in failing:
            assay.cli("tell", sweep, str(trial["number"]), "--client", "me", "--failed", "the disk was full")
        else:
            tell(assay, sweep, trial)
        n += 1
    return n


def check_search(assay, folder):
    """A search goes on from all that it knows, and every suggestion can be computed again."""
    sweep = create(assay, folder, PLANE % ("plane", "team=vision, quick", 14))
    assert loop(assay, sweep, failing=(3, 6, 9)) == 14
    assert assay.wait_ended(sweep)["state"] == "completed"
    said = assay.cli("set", sweep, "max_trials=18", "wall_time=1h").stderr
    assert f"{sweep} is running, with 18 planned trials" in said, said
    assert loop(assay, sweep) == 4
    assert assay.wait_ended(sweep)["counts"]["total"] == 18
    replay(assay, sweep, 18)
    # two of the failed ones again, while new ones are suggested that see them as running, then as what they became
    assay.cli("set", sweep, "limits.max_trials=24")
    assert loop_some(assay, sweep, 2) == 2
    said = assay.cli("retry", f"{sweep}/3", f"{sweep}/6").stderr
    assert f"{sweep}/3 is queued" in said and f"{sweep}/6 is queued" in said, said
    os.kill(assay.processes("assayd")[0], signal.SIGKILL)  # a server that has nothing cached suggests what follows
    assay.wait(lambda: assay.sweep(sweep), "the server")
    first = ask(assay, sweep)
    assert first["number"] == 3, first
    # the others of this client while 3 runs: asks by another client
    other = assay.call("POST", f"/v1/sweeps/{sweep}/suggestions", {"client": "you", "count": 3})["items"]
    assert [t["number"] for t in other] == [6, 20, 21], other
    tell(assay, sweep, first)
    assay.call("POST", f"/v1/sweeps/{sweep}/suggestions/6/complete",
               {"client": "you", "outcome": "failed", "reason": "again"})
    for t in other[1:]:
        assay.call("POST", f"/v1/sweeps/{sweep}/suggestions/{t['number']}/complete",
                   {"client": "you", "outcome": "completed", "metrics": {"loss": 0.5}})
    assert loop(assay, sweep) == 2
    s = assay.wait_ended(sweep)
    assert s["counts"]["total"] == 24 and s["counts"]["failed"] == 2, s["counts"]
    replay(assay, sweep, 24)
    trial = assay.call("GET", f"/v1/sweeps/{sweep}/trials/3")
    assert trial["state"] == "completed" and trial["attempt"] == 2, trial
    end = trial["retries"][0]
    assert end["state"] == "failed" and end["reason"] == "the disk was full", end
    assert end["finish_seq"] < end["retry_seq"] < trial["finish_seq"] and end["retried_by"], end
    seen = [t for t in assay.trials(sweep) if t["number"] in (20, 21)]
    assert all(end["retry_seq"] <= t["seen"] < trial["finish_seq"] for t in seen), seen
    # an export has all that a replay needs, and the replay notices when it is changed
    path = os.path.join(folder, "plane.json")
    assay.cli("export", sweep, "--json", "--output", path)
    tree = json.load(open(path))
    assert assay.cli("replay", "--file", path).returncode == 0
    next(t for t in tree["items"] if t["number"] == 3)["retries"] = None
    json.dump(tree, open(path, "w"))
    assert assay.cli("replay", "--file", path, check=False).returncode == 1
    # after the end: all failed ones, and the sweep ends again
    said = assay.cli("retry", sweep, "--failed").stderr
    assert "2 failed trials are queued again; the sweep is running" in said, said
    assert loop(assay, sweep) == 2
    assert assay.wait_ended(sweep)["counts"]["completed"] == 24
    replay(assay, sweep, 24)
    shown = assay.cli("show", sweep).stdout
    assert "max_trials 14 -> 18; wall_time none -> 3600 s; state completed -> running" in shown, shown
    assert "team=vision, quick" in shown, shown
    assert "the disk was full; tried again" in assay.cli("trial", f"{sweep}/3").stdout


def loop_some(assay, sweep, n):
    for i in range(n):
        tell(assay, sweep, ask(assay, sweep))
    return n


def check_lowering(assay, folder):
    """Running trials finish, no new one begins, and a wrong limit is named."""
    gate = os.path.join(folder, "gate")
    script = f"while [ ! -e {gate} ]; do sleep 0.1; done; echo \"{{\\\"loss\\\": $0}}\" >> $ASSAY_REPORT"
    sweep = create(assay, folder, COMMAND % ("low", "random", "max_trials: 50", script))
    assay.wait(lambda: assay.sweep(sweep)["counts"]["running"] == 2, "two trials to run")
    said = assay.cli("set", sweep, "max_trials=1").stderr
    assert "no more are made" in said and "run" in said, said
    open(gate, "w").close()
    s = assay.wait_ended(sweep)
    assert s["state"] == "completed" and s["counts"]["total"] == 2, s["counts"]
    assert s["counts"]["completed"] == s["counts"]["total"] == s["planned_trials"], s["counts"]
    for words, part in ((["max_trials=0"], "max_trials"), (["patience=3"], "is no limit"), (["max_trials"], "NAME=VALUE"),
                        (["wall_time=soon"], "wall_time"), (["max_trials=none"], "null")):
        done = assay.cli("set", sweep, *words, check=False)
        assert done.returncode != 0 and part in done.stderr, (words, done.stderr)
    grid = create(assay, folder, COMMAND.replace("float, min: 0, max: 1", "int, min: 1, max: 3") %
                  ("cells", "grid", "max_failed_trials: 5", "echo \"{\\\"loss\\\": $0}\" >> $ASSAY_REPORT"))
    assert assay.wait_ended(grid)["counts"]["completed"] == 3
    said = assay.cli("set", grid, "max_trials=9").stderr
    assert f"{grid} is completed" in said and "the grid has 3 cells" in said, said


def check_kills(assay, folder):
    """Limits go up and down while assayd is killed: exactly as many trials as the last limit says, each once."""
    sweep = create(assay, folder, COMMAND % ("shaken", "gp", "max_trials: 4", "echo \"{\\\"loss\\\": $0}\" >> $ASSAY_REPORT"))
    for round_ in range(6):
        limit = (30, 10, 36)[round_ % 3]
        if round_ % 2:
            os.kill(assay.processes("assayd")[0], signal.SIGKILL)
        assay.wait(lambda: assay.call("PATCH", f"/v1/sweeps/{sweep}", {"limits": {"max_trials": limit}}), "the limit")
        if not round_ % 2:
            os.kill(assay.processes("assayd")[0], signal.SIGKILL)
        assay.wait(lambda: assay.sweep(sweep), "the server")
    assay.wait(lambda: assay.call("PATCH", f"/v1/sweeps/{sweep}", {"limits": {"max_trials": 40}}), "the limit")
    assay.wait(lambda: assay.sweep(sweep)["counts"]["completed"] == 40, "40 trials")
    assay.wait_ended(sweep)
    assay.check_exact(sweep, 40)
    replay(assay, sweep, 40)
    changes = assay.call("GET", f"/v1/sweeps/{sweep}/changes")["items"]
    assert changes and all("max_trials" in c["changes"] or "state" in c["changes"] for c in changes), changes


def check_known(assay, folder):
    """A thousand known results in one request; a file again, and longer."""
    sweep = create(assay, folder, PLANE % ("known", "", 5), "--paused")
    rows = [{"params": {"x": i / 500 - 1, "y": 0.5}, "metrics": {"loss": i / 100}} for i in range(1000)]
    start = time.monotonic()
    answer = assay.call("POST", f"/v1/sweeps/{sweep}/trials", rows, headers={"Idempotency-Key": "k"})
    print(f"1,000 known results in one request: {time.monotonic() - start:.2f} s", flush=True)
    assert answer["numbers"] == list(range(1000)) and answer["added"] == 1000, answer
    assert assay.call("POST", f"/v1/sweeps/{sweep}/trials", rows, headers={"Idempotency-Key": "k"}) == answer
    s = assay.sweep(sweep)
    assert s["known_trials"] == 1000 and s["planned_trials"] == 1005 and s["best"]["number"] == 0, s
    for body, status, part in (([], 400, "expected 1 to 5000"), ([rows[0]] * 5001, 413, "5001 trials"),
                               (rows[:3] + [{"params": {"x": 9, "y": 0}}], 422, "/3/params/x")):
        try:
            assay.call("POST", f"/v1/sweeps/{sweep}/trials", body)
            raise AssertionError(f"{part} was accepted")
        except Problem as e:
            assert e.status in (status, 400) and part in json.dumps(e.body), (part, e.status, e.body)
    path = os.path.join(folder, "known.csv")
    lines = [f"{i / 2600},{i % 7 / 10},{i}" for i in range(2500)]
    for n, added in ((1500, 1500), (1500, 0), (2500, 1000)):
        with open(path, "w") as f:
            f.write("x,y,loss\n" + "\n".join(lines[:n]) + "\n")
        before = assay.sweep(sweep)["known_trials"]
        start = time.monotonic()
        said = assay.cli("trials", "add", sweep, "--file", path).stderr
        print(f"{n} rows of a file, {added} of them new: {time.monotonic() - start:.2f} s", flush=True)
        assert f"{n} trials from" in said and assay.sweep(sweep)["known_trials"] == before + added, said
    assay.cli("resume", sweep)
    assert loop(assay, sweep) == 5
    replay(assay, sweep, 5)


def check_tags(assay, folder):
    def listed(*args):
        return [s["id"] for s in json.loads(assay.cli("sweeps", *args, "--json").stdout)["items"]]
    create(assay, folder, PLANE % ("tagged", "team=audio", 3), "--paused")
    assert listed("--tag", "team=vision") == ["plane"] and listed("--tag", "team=audio") == ["tagged"]
    assert listed("--tag", "team") == [] and listed("--tag", "quick", "--state", "running") == []
    assert len(listed()) > 3
    rows = assay.cli("sweeps", "--tag", "quick").stdout.splitlines()
    assert rows[0].split("\t")[-1] == "tags" and rows[1].split("\t")[-1] == "team=vision, quick", rows
    assert assay.call("GET", "/v1/sweeps/tagged")["tags"] == ["team=audio"]


def main():
    with Assay(runners=2) as assay, tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for check in (check_search, check_lowering, check_known, check_tags, check_kills):
            start = time.monotonic()
            check(assay, folder)
            print(f"{check.__name__}: {time.monotonic() - start:.1f} s", flush=True)


main()
