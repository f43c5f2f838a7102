#!/usr/bin/env python3
"""Ask and tell as people do it: the examples in three languages, two loops side by side and one that is killed; `assay
ask`, `tell`, `report`, `trials add`, `best --pareto`, `importance`; and a replay of every sweep, to the bit."""
import contextlib
import csv
import io
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from harness import ASSAY, PATIENCE_S, SOURCE, Assay, Problem

EXAMPLES = os.path.join(SOURCE, "examples", "ask-tell")
PLANE = """
name: plane
metric: {name: loss, goal: minimize}
parameters:
  x: {type: float, min: -1, max: 1}
  kind: {type: categorical, values: [a, b]}
  depth: {type: int, min: 1, max: 9, when: {kind: a}}
search: {method: gp, seed: 5}
limits: {max_trials: %d, max_restarts: 3}
"""


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def create(assay, path, *args):
    return assay.cli("run", path, *args).stdout.strip()


def replay(assay, sweep, suggested):
    """Every suggestion again, from the server and from an export without a server."""
    said = assay.cli("replay", sweep).stdout
    assert said.startswith(f"{suggested} of {suggested} suggestions are the same"), said
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        path = os.path.join(folder, "export.json")
        assay.cli("export", sweep, "--json", "--output", path)
        # OPENBLAS_CORETYPE chooses kernels, and so the last bits.
        alone = {n: v for n, v in os.environ.items() if n == "PATH" or n.startswith("OPENBLAS_")} | {"HOME": folder}
        done = subprocess.run([ASSAY, "replay", "--file", path, "--json"], env=alone, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        answer = json.loads(done.stdout)
        assert answer["same"] == answer["suggested"] == suggested and not answer["differences"], answer
        tree = json.load(open(path))
        changed = next(t for t in tree["items"] if t["origin"] == "suggested")
        name = next(n for n, v in changed["params"].items() if isinstance(v, float))
        changed["params"][name] = math.nextafter(changed["params"][name], 0.7)
        json.dump(tree, open(path, "w"))
        done = subprocess.run([ASSAY, "replay", "--file", path], env=alone, capture_output=True, text=True)
        assert done.returncode == 1 and f"trial {changed['number']}" in done.stderr, (done.stdout, done.stderr)
        assert ("exact for one build" in done.stderr) == (tree["sweep"]["method"] == "gp"), done.stderr


def loop(assay, program, sweep, name):
    return subprocess.Popen([*program, sweep, name], env=dict(assay.env, PATH=os.path.dirname(ASSAY) + ":" + os.environ["PATH"]),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process, name):
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, (name, process.returncode, out)


def check_examples(assay):
    python = [sys.executable, os.path.join(EXAMPLES, "loop.py")]
    programs = {"py": python, "sh": ["sh", os.path.join(EXAMPLES, "loop.sh")]}
    if shutil.which("node"):
        programs["mjs"] = ["node", os.path.join(EXAMPLES, "loop.mjs")]
    for name, program in programs.items():
        sweep = create(assay, os.path.join(EXAMPLES, "sweep.yaml"), "--name", f"loop-{name}")
        # Two side by side; the first is killed in the middle of things and started again under its name.
        first, second = loop(assay, program, sweep, "one"), loop(assay, program, sweep, "two")
        assay.wait(lambda: assay.sweep(sweep)["counts"]["completed"] >= 4, "four trials")
        first.kill()
        first.communicate()
        first = loop(assay, program, sweep, "one")
        finish(first, name)
        finish(second, name)
        assay.wait_ended(sweep)
        s, trials = assay.check_exact(sweep, 24)
        assert s["state"] == "completed" and s["best"]["value"] < 0.6, s
        assert {t["client"] for t in trials} <= {"one", "two"}, trials
        replay(assay, sweep, 24)
        print(f"{name}: best {s['best']['value']:.4f}", flush=True)


def check_broken_objectives(assay, folder):
    """An objective that gives no number, or throws, ends its trial and not the loop."""
    broken = {
        "py": ("return math.log10", 'return math.nan if kind == "plain" else 1 / 0 if width > 400 else math.log10'),
        "mjs": ("Math.log10(lr / 0.03)", '(kind === "plain" ? NaN : width > 400 ? nothing : 0) + Math.log10(lr / 0.03)'),
        "sh": ('printf "%.17g",', 'if (kind == "plain") exit 0; if (width > 400) exit 3; printf "%.17g",'),
    }
    programs = {"py": sys.executable, "sh": "sh", "mjs": shutil.which("node")}
    for name, (text, instead) in broken.items():
        if not programs[name]:
            continue
        source = open(os.path.join(EXAMPLES, f"loop.{name}")).read()
        assert source.count(text) == 1, (name, text)
        path = write(folder, f"broken.{name}", source.replace(text, instead))
        document = open(os.path.join(EXAMPLES, "sweep.yaml")).read().replace("method: gp", "method: random")
        sweep = create(assay, write(folder, "broken.yaml", document), "--name", f"broken-{name}")
        finish(loop(assay, [programs[name], path], sweep, "one"), name)
        assay.wait_ended(sweep)
        _, trials = assay.check_exact(sweep, 24)
        for t in trials:
            bad = t["params"]["kind"] == "plain" or t["params"]["width"] > 400
            assert t["state"] == ("failed" if bad else "completed") and t["restarts"] == 0, t
            assert not bad or t["reason"], t
        assert {t["state"] for t in trials} == {"failed", "completed"}, trials


def values(text):
    return dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)


def check_ask(assay, folder):
    sweep = create(assay, write(folder, "plane.yaml", PLANE % 7))
    number = values(assay.cli("ask", sweep).stdout)["trial"].split("/")[1]
    assert values(assay.cli("ask", sweep).stdout)["trial"] == f"{sweep}/{number}", "the same process gets its own back"
    both = json.loads(assay.cli("ask", sweep, "--count", "2", "--json").stdout)["items"]
    assert [t["number"] for t in both] == [int(number), int(number) + 1], both
    other = json.loads(assay.cli("ask", sweep, "--client", "other", "--json").stdout)["items"]
    assert len(other) == 1 and other[0]["number"] not in [t["number"] for t in both], other

    # A mistyped metric must not fail the trial; nor may somebody else's trial be told about without a name.
    done = assay.cli("tell", sweep, number, "los=0.2", check=False)
    assert done.returncode == 1 and "'loss'" in done.stderr and "los" in done.stderr, done
    done = assay.cli("tell", sweep, str(other[0]["number"]), "loss=1", check=False)
    assert done.returncode == 5 and "--client other" in done.stderr, done
    assert {t["state"] for t in assay.trials(sweep)} == {"running"}

    assay.cli("report", sweep, number, "--step", "1", "loss=0.9")
    assay.cli("report", f"{sweep}/{number}", "--step", "2", "loss=0.4", "lr=0.1")
    assay.cli("report", sweep, number, "--lease", "1h")
    assay.cli("tell", sweep, number)  # all was reported
    trial = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{number}")
    assert trial["state"] == "completed" and trial["value"] == 0.4 and trial["metrics"]["lr"] == 0.1, trial
    assert assay.cli("tell", sweep, number, check=False).returncode == 0, "the same again"

    second = str(both[1]["number"])
    assay.cli("tell", sweep, second, "--release")
    again = json.loads(assay.cli("ask", sweep, "--client", "third", "--json").stdout)["items"][0]
    assert (again["number"], again["attempt"]) == (int(second), 2), again
    assay.cli("tell", sweep, second, "loss=NaN", "--client", "third")
    assay.cli("tell", f"{sweep}/{other[0]['number']}", "--failed", "out of memory", "--client", "other")
    states = {t["number"]: (t["state"], t["reason"]) for t in assay.trials(sweep)}
    assert states[int(second)][0] == "failed" and states[other[0]["number"]] == ("failed", "out of memory"), states
    check_shell(assay, sweep)
    done = assay.cli("ask", sweep, "--json", check=False)
    assert done.returncode == 8 and json.loads(done.stdout)["done"] is True, done
    assert assay.cli("ask", sweep, check=False).returncode == 8
    assay.check_exact(sweep, 7)
    replay(assay, sweep, 7)
    check_words(assay, sweep)


def check_shell(assay, sweep):
    """The rest of the sweep in a loop of sh, by eval; a parameter that is not active must not be left over."""
    script = """
        while :; do
            lines=$(assay ask "$1" --shell); code=$?
            [ $code -eq 0 ] || exit $code
            eval "$lines"
            echo "$ASSAY_NUMBER $ASSAY_PARAM_kind ${ASSAY_PARAM_depth-none} $ASSAY_PARAMS"
            assay tell "$1" "$ASSAY_NUMBER" "loss=$(awk -v x="$ASSAY_PARAM_x" 'BEGIN { print x * x }')" || exit 1
        done"""
    env = dict(assay.env, PATH=os.path.dirname(ASSAY) + ":" + os.environ["PATH"], ASSAY_CLIENT="in-sh")
    done = subprocess.run(["sh", "-c", script, "sh", sweep], env=env, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 8, done
    lines = [line.split(" ", 3) for line in done.stdout.splitlines()]
    assert lines, done
    for number, kind, depth, params in lines:
        stored = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{number}")["params"]
        assert json.loads(params) == stored and stored["kind"] == kind, (params, stored)
        assert depth == str(stored.get("depth", "none")), (depth, stored)


def check_words(assay, sweep):
    for t in assay.trials(sweep):
        shown = values(assay.cli("trial", f"{sweep}/{t['number']}").stdout)
        assert len(shown["why"]) > 10 and shown["origin"] == "suggested", shown
        assert shown["param.x"] == repr(t["params"]["x"]) or float(shown["param.x"]) == t["params"]["x"], shown


def check_lease(assay, folder):
    """Who is silent loses the trial; who comes late is believed until somebody else has begun it."""
    sweep = create(assay, write(folder, "lease.yaml", PLANE % 2))

    def ask(name, *args):
        return json.loads(assay.cli("ask", sweep, "--client", name, "--json", *args, check=False).stdout)["items"]

    late = [ask("late", "--lease", "1s")[0]["number"]]
    assay.wait(lambda: assay.trials(sweep)[0]["state"] == "queued", "the lease to end")
    assay.cli("tell", sweep, str(late[0]), "loss=1", "--client", "late")
    assert assay.trials(sweep)[0]["state"] == "completed"
    late = ask("late", "--lease", "1s")[0]["number"]
    taken = assay.wait(lambda: ask("quick", "--wait", "1s"), "another client to get it")[0]
    assert (taken["number"], taken["attempt"]) == (late, 2), taken
    done = assay.cli("tell", sweep, str(late), "loss=1", "--client", "late", check=False)
    assert done.returncode == 5, done
    assay.cli("tell", sweep, str(late), "loss=3", "--client", "quick")
    assert assay.sweep(sweep)["best"]["value"] == 1
    replay(assay, sweep, 2)


def check_add(assay, folder):
    sweep = create(assay, write(folder, "added.yaml", PLANE % 6), "--paused")
    assert assay.sweep(sweep)["state"] == "paused"
    assert assay.cli("ask", sweep, "--wait", "0s", check=False).returncode == 6
    assay.cli("trials", "add", sweep, "--param", "x=0.5", "--param", "kind=b", "--metric", "loss=0.25")
    assay.cli("trials", "add", sweep, "--param", "x=-1", "--param", "kind=b", "--failed", "--reason", "diverged")
    rows = "".join(f"{x},a,{d},{x * x + d / 10}\n" for x, d in ((0.9, 3), (-0.4, 5), (0.1, 9)))
    good = write(folder, "good.csv", "x,kind,depth,loss\n" + rows + "0.2,b,,nan\n")
    for _ in range(2):  # the second time adds nothing
        assay.cli("trials", "add", sweep, "--file", good)
    assay.cli("trials", "add", sweep, "--param", "x=0.125", "--param", "kind=b")  # enqueued
    bad = write(folder, "bad.csv", "x,kind,depth,loss\n0.3,b,,1\n0.3,b,4,1\n")
    done = assay.cli("trials", "add", sweep, "--file", bad, check=False)
    assert done.returncode == 1 and "bad.csv:3: column 'depth'" in done.stderr, done.stderr
    done = assay.cli("trials", "add", sweep, "--param", "x=3", "--param", "kind=b", "--metric", "loss=1", check=False)
    assert done.returncode == 1 and "x" in done.stderr, done.stderr
    s, trials = assay.sweep(sweep), assay.trials(sweep)
    assert s["planned_trials"] == 12 and len(trials) == 7, (s["planned_trials"], trials)
    assert [t["origin"] for t in trials] == ["known"] * 6 + ["enqueued"], trials
    assert s["best"]["value"] == 0.25, s["best"]
    assay.cli("resume", sweep)
    first = json.loads(assay.cli("ask", sweep, "--json").stdout)["items"][0]
    assert first["params"] == {"x": 0.125, "kind": "b"} and first["number"] == 6, first
    while first:
        x = first["params"]["x"]
        assay.cli("tell", sweep, str(first["number"]), f"loss={x * x + 0.01}")
        items = json.loads(assay.cli("ask", sweep, "--json", check=False).stdout)["items"]
        first = items[0] if items else None
    s = assay.wait_ended(sweep)
    assert s["state"] == "completed" and s["counts"]["total"] == 12, s
    replay(assay, sweep, 5)
    # An export of one sweep is a file of known results for the next, as JSON and as CSV.
    for form in ("json", "csv"):
        path = os.path.join(folder, f"all.{form}")
        assay.cli("export", sweep, f"--{form}", "--output", path)
        other = create(assay, write(folder, "next.yaml", PLANE % 1), "--paused", "--name", f"next-{form}")
        assay.cli("trials", "add", other, "--file", path)
        counts = assay.sweep(other)["counts"]
        assert (counts["completed"], counts["failed"]) == (10, 2), counts
    grid = create(assay, write(folder, "grid.yaml", PLANE.replace("gp", "random") % 1), "--name", "no-space")
    assert assay.cli("trials", "add", grid, "--param", "x=0.5", check=False).returncode == 1


def check_crowd(assay, folder):
    """Eight clients at once: results out of order, failures, trials given back and cancelled, others enqueued and
    added in the middle, and a server that dies. Exactly as many trials as planned, and every suggestion again."""
    sweep = create(assay, write(folder, "crowd.yaml", PLANE % 60), "--name", "crowd")
    wrong = []

    def call(path, body):
        """Post until there is an answer; a conflict is None."""
        while True:
            try:
                return assay.call("POST", f"/v1/sweeps/{sweep}{path}", body)
            except Problem as e:
                if e.status == 409:
                    return None
                if e.status < 500 and e.status != 429:
                    raise
            except OSError:
                pass
            time.sleep(0.05)

    def work(name, draw):
        while not (answer := call("/suggestions", {"client": name, "count": draw.choice((1, 1, 3)), "wait_ms": 2000}))["done"]:
            items = answer["items"]
            draw.shuffle(items)
            for t in items:
                time.sleep(draw.random() * 0.02)
                x, kind = t["params"]["x"], draw.random()
                body = {"client": name, "metrics": {"loss": x * x + t["params"].get("depth", 2) / 10}}
                if kind < 0.05:
                    body = {"client": name, "metrics": {"loss": "NaN"}}
                elif kind < 0.1 and t["attempt"] == 1:
                    body = {"client": name, "outcome": "released"}
                if kind > 0.85:
                    assay_call_quietly(assay, f"/v1/sweeps/{sweep}/trials/{t['number']}/cancel")
                else:
                    call(f"/suggestions/{t['number']}/complete", body)

    def guarded(*args):
        try:
            work(*args)
        except BaseException as e:  # a thread's failure is the test's
            wrong.append(repr(e))

    threads = [threading.Thread(target=guarded, args=(f"c{i}", random.Random(i))) for i in range(8)]
    for t in threads:
        t.start()
    assay.wait(lambda: assay.sweep(sweep)["counts"]["total"] >= 20, "twenty trials")
    call("/trials", {"params": {"x": 0.25, "kind": "b"}})
    call("/trials", {"params": {"x": 0.75, "kind": "a", "depth": 2}, "metrics": {"loss": 0.7625}})
    os.kill(assay.processes("assayd")[0], signal.SIGKILL)
    for t in threads:
        t.join(PATIENCE_S)
    assert not wrong and not any(t.is_alive() for t in threads), wrong
    assay.wait_ended(sweep)
    trials = assay.trials(sweep)
    assert [t["number"] for t in trials] == list(range(61)), len(trials)
    seqs = sorted(t["finish_seq"] for t in trials)
    assert seqs == list(range(1, 62)), seqs
    replay(assay, sweep, sum(t["origin"] == "suggested" for t in trials))
    print("crowd:", {k: v for k, v in assay.sweep(sweep)["counts"].items() if v},
          "late by", max(t["number"] - t["seen"] for t in trials if t["seen"] is not None), flush=True)


def assay_call_quietly(assay, path):
    """A cancel that need not arrive."""
    with contextlib.suppress(Problem, OSError):
        assay.call("POST", path)


def dominates(a, b):
    return a[0] <= b[0] and a[1] >= b[1] and a != b


def check_front(assay, folder):
    sweep = create(assay, write(folder, "front.yaml", """
name: front
metrics: [{name: error, goal: minimize}, {name: speed, goal: maximize}]
constraints: [{metric: mb, max: 6}]
parameters:
  x: {type: float, min: 0, max: 1}
  y: {type: float, min: 0, max: 1}
search: {method: gp, seed: 2}
limits: {max_trials: 16}
"""))
    for _ in range(16):
        t = json.loads(assay.cli("ask", sweep, "--json").stdout)["items"][0]
        x, y = t["params"]["x"], t["params"]["y"]
        assay.cli("tell", sweep, str(t["number"]), f"error={x + 0.1 * y}", f"speed={x * (2 - y)}", f"mb={10 * y}")
    trials = assay.trials(sweep)
    assert all(t["feasible"] == (t["metrics"]["mb"] <= 6) for t in trials), trials
    points = {t["number"]: (t["metrics"]["error"], t["metrics"]["speed"]) for t in trials if t["feasible"]}
    want = sorted(n for n, p in points.items() if not any(dominates(q, p) for q in points.values()))
    front = json.loads(assay.cli("best", sweep, "--pareto", "--json").stdout)
    assert sorted(t["number"] for t in front["items"]) == want and front["hypervolume"] >= 0, (front, want)
    rows = list(csv.DictReader(io.StringIO(assay.cli("best", sweep, "--pareto").stdout), delimiter="\t"))
    assert [float(r["error"]) for r in rows] == sorted(points[n][0] for n in want), rows
    listed = assay.cli("trials", sweep).stdout
    assert "error\tspeed\tmb\tfeasible" in listed and ("\tno\t" in listed) == (len(points) < 16), listed
    assert "mb <= 6" in assay.cli("show", sweep).stdout
    replay(assay, sweep, 16)


def check_importance(assay, folder):
    """Only x matters: its index is far above that of y; with three trials there is a reason, not a figure."""
    sweep = create(assay, write(folder, "matters.yaml", """
name: matters
metric: {name: loss, goal: minimize}
parameters: {x: {type: float, min: -1, max: 1}, y: {type: float, min: -1, max: 1}}
search: {method: sobol, seed: 2}
limits: {max_trials: 40}
"""))
    for n in range(40):
        t = json.loads(assay.cli("ask", sweep, "--json").stdout)["items"][0]
        assay.cli("tell", sweep, str(t["number"]), f"loss={t['params']['x'] ** 2 + 0.02 * t['params']['y']}")
        if n == 1:
            done = assay.cli("importance", sweep)
            assert "No figures" in done.stderr, done
    answer = json.loads(assay.cli("importance", sweep, "--json").stdout)
    shares = {p["name"]: p for p in answer["parameters"]}
    assert answer["metric"] == "loss" and shares["x"]["total"] > 0.9 and shares["y"]["total"] < 0.2, answer
    assert shares["x"]["top"] > shares["y"]["top"] and not shares["x"]["conditional"], answer
    assert json.loads(assay.cli("importance", sweep, "--metric", "loss", "--json").stdout) == answer
    assert all(p["total_low"] <= p["total"] <= p["total_high"] for p in shares.values()), answer
    rows = list(csv.DictReader(io.StringIO(assay.cli("importance", sweep).stdout), delimiter="\t"))
    assert rows[0]["parameter"] == "x" and float(rows[0]["total"]) == shares["x"]["total"], rows


def main():
    # the lease of runners is its own here: nobody, clients either, is lost before one has passed
    with Assay(runners=0, args=()) as assay, tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for check in (check_ask, check_lease, check_add, check_crowd, check_front, check_importance,
                      check_broken_objectives):
            start = time.monotonic()
            check(assay, folder)
            print(f"{check.__name__}: {time.monotonic() - start:.1f} s", flush=True)
        check_examples(assay)


main()
