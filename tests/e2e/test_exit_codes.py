#!/usr/bin/env python3
"""Every verb of the command line against the exit codes of docs/cli.md: a wrong command line, a name that does not
exist, a token that is not enough, a state that does not allow it, nothing to show, and no server."""
import json
import os
import re
import subprocess
import sys
import tempfile

from harness import ASSAY, SOURCE, Assay

# What the page says of each code, by a phrase of its meaning.
PHRASES = {"ok": "done", "failed": "failed", "missing": "not found", "denied": "not allowed", "conflict": "conflict",
           "timeout": "ran out", "absent": "cannot be reached", "over": "the sweep has ended", "usage": "wrong command line"}

# Verb: (case, words, …) with the code that is expected. Words of a viewer's token: "denied".
# {done}: a completed sweep of commands, {open}: one for ask and tell with a trial that somebody holds, {idle}: one that
# is paused and has no trial, {over}: one for ask and tell whose trials are all told.
CASES = {
    "up": [("usage", "x"), ("usage", "--runners", "many"), ("usage", "--runners", "-1"), ("usage", "--lease", "soon"), ("usage", "--database-memory", "0.5"),
           ("usage", "--database-memory", "-1"), ("usage", "--database", "postgresql:///x", "--database-memory", "64")],
    "run": [("usage",), ("usage", "a", "b"), ("missing", "none.yaml"), ("denied", "good.yaml"), ("absent", "good.yaml"),
            ("failed", "bad.yaml"), ("usage", "good.yaml", "--set", "limits"), ("usage", "good.yaml", "--set", "a.=1"),
            ("usage", "good.yaml", "--set", "a=[1"), ("ok", "good.yaml", "--paused")],
    "watch": [("usage",), ("usage", "{done}/1"), ("missing", "none"), ("absent", "{done}"), ("ok", "{done}"),
              ("timeout", "{idle}", "--timeout", "100ms")],
    "open": [("usage", "a", "b"), ("usage", "{done}/x"), ("ok", "{done}", "--no-browser")],
    "sweeps": [("usage", "x"), ("usage", "--state", "odd"), ("usage", "--limit", "-1"), ("absent",), ("ok",),
               ("ok", "--tag", "nobody-has-it")],
    "show": [("usage",), ("usage", "{done}/1"), ("missing", "none"), ("absent", "{done}"), ("ok", "{done}"), ("ok", "{idle}")],
    "trials": [("usage",), ("usage", "{done}/1"), ("usage", "{done}", "--sort", "odd"), ("usage", "{done}", "--limit", "-2"),
               ("usage", "add", "{open}"), ("usage", "add", "{open}", "--param", "x"), ("usage", "add", "{open}", "--param", "x=[1"),
               ("usage", "add", "{open}", "--param", "x=1", "--metric", "f=much"),
               ("usage", "add", "{open}", "--param", "x=1", "--param", "x=2"), ("missing", "none"),
               ("missing", "add", "none", "--param", "x=1"), ("missing", "add", "{open}", "--file", "none.csv"),
               ("failed", "add", "{open}", "--param", "x=7"), ("denied", "add", "{open}", "--param", "x=1"),
               ("absent", "{done}"), ("ok", "{idle}"), ("ok", "{done}")],
    "trial": [("usage",), ("usage", "{done}"), ("usage", "{done}/x"), ("usage", "{done}/-1"), ("usage", "odd", "{done}/0"),
              ("missing", "none/0"), ("missing", "{done}/99"), ("absent", "{done}/0"), ("ok", "{done}/0"),
              ("ok", "show", "{done}/0")],
    "best": [("usage",), ("usage", "{done}/0"), ("missing", "none"), ("missing", "{idle}"), ("missing", "{idle}", "--json"),
             ("missing", "{idle}", "--pareto"), ("absent", "{done}"), ("ok", "{done}")],
    "importance": [("usage",), ("usage", "{done}/0"), ("missing", "none"), ("absent", "{done}"), ("ok", "{done}"), ("ok", "{idle}")],
    "compare": [("usage",), ("usage", "{done}/0"), ("usage", "{done}/0", "{done}"), ("missing", "{done}/0", "{done}/99"),
                ("absent", "{done}/0", "{done}/1"), ("ok", "{done}/0", "{done}/1")],
    "ask": [("usage",), ("usage", "{open}", "--count", "some"), ("usage", "{open}/1"), ("missing", "none"), ("denied", "{open}"),
            ("timeout", "{idle}", "--wait", "0s"), ("over", "{over}"), ("absent", "{open}")],
    "tell": [("usage",), ("usage", "{open}"), ("usage", "{open}", "zero", "f=1"),
             ("usage", "{open}", "0", "f=much"), ("usage", "{open}", "0", "--failed", "a", "--release"),
             ("missing", "none", "0", "f=1"), ("missing", "{open}", "99", "f=1"), ("failed", "{open}", "0", "g=1", "--client", "me"),
             ("conflict", "{open}", "0", "f=1"), ("denied", "{open}", "0", "f=1", "--client", "me"), ("absent", "{open}", "0", "f=1")],
    "report": [("usage",), ("usage", "{open}"), ("usage", "{open}", "0", "f=1"), ("usage", "{open}", "0", "--step", "x", "f=1"),
               ("missing", "{open}", "99", "--step", "1", "f=1"), ("conflict", "{open}", "0", "--step", "1", "f=1"),
               ("denied", "{open}", "0", "--step", "1", "f=1", "--client", "me"), ("absent", "{open}", "0", "--step", "1", "f=1"),
               ("ok", "{open}", "0", "--step", "1", "f=1", "--client", "me")],
    "logs": [("usage",), ("usage", "{done}"), ("usage", "{done}/x"), ("missing", "none/0"), ("missing", "{done}/99"),
             ("absent", "{done}/0"), ("ok", "{done}/0")],
    "artifacts": [("usage",), ("usage", "odd", "{done}/0"), ("usage", "list", "{done}"), ("usage", "get", "{done}"),
                  ("usage", "get", "{done}/0", "--output", "-"), ("missing", "list", "none/0"), ("missing", "get", "{done}/0", "none"),
                  ("absent", "list", "{done}/0"), ("ok", "list", "{done}/1"), ("ok", "list", "{done}/0")],
    "files": [("usage",), ("usage", "{done}"), ("usage", "{done}/0", "--output", "-"), ("missing", "none/0"),
              ("absent", "{done}/0"), ("ok", "{done}/0"), ("ok", "{done}/1")],
    "pause": [("usage",), ("usage", "{done}/0"), ("missing", "none"), ("denied", "{done}"), ("conflict", "{done}"), ("absent", "{done}")],
    "resume": [("usage",), ("usage", "{done}/0"), ("missing", "none"), ("denied", "{done}"), ("conflict", "{done}"), ("absent", "{done}")],
    "cancel": [("usage",), ("usage", "{done}/x"), ("missing", "none"), ("missing", "{done}/99"), ("denied", "{done}"),
               ("conflict", "{done}/0"), ("absent", "{done}")],
    "set": [("usage",), ("usage", "{done}"), ("usage", "{done}", "max_trials"), ("usage", "{done}", "max_trails=5"),
            ("usage", "{done}/0", "grace=1s"), ("missing", "none", "grace=1s"), ("failed", "{done}", "grace=soon"),
            ("denied", "{done}", "grace=1s"), ("absent", "{done}", "grace=1s"), ("ok", "{done}", "grace=1s")],
    "priority": [("usage",), ("usage", "{done}"), ("usage", "{done}", "high"), ("missing", "none", "1"), ("failed", "{done}", "101"),
                 ("denied", "{done}", "1"), ("absent", "{done}", "1"), ("ok", "{done}", "1")],
    "tag": [("usage",), ("usage", "{done}"), ("usage", "{done}/0", "a"), ("missing", "none", "a"), ("failed", "{done}", "a" * 129),
            ("denied", "{done}", "a"), ("absent", "{done}", "a"), ("ok", "{done}", "a", "b=c"), ("ok", "{done}", "a", "--remove")],
    "remark": [("usage",), ("usage", "{done}"), ("missing", "none", "a"), ("denied", "{done}", "a"), ("absent", "{done}", "a"),
               ("ok", "{done}", "a"), ("ok", "{done}", "")],
    "retry": [("usage",), ("usage", "{done}"), ("usage", "{done}/0", "--failed"), ("missing", "none", "--failed"), ("missing", "none/0"),
              ("denied", "{done}/0"), ("conflict", "{done}/0"), ("absent", "{done}/0"), ("ok", "{done}", "--failed")],
    "delete": [("usage",), ("usage", "{done}/0"), ("missing", "none"), ("denied", "{done}"), ("conflict", "{open}"), ("absent", "{done}")],
    "ensemble": [("usage",), ("usage", "{done}/0"), ("usage", "{done}", "--method", "odd"), ("usage", "{done}", "--list", "--size", "3"),
                 ("usage", "{done}", "--method", "bagging", "--size", "65"), ("missing", "none"), ("missing", "{done}"),
                 ("missing", "{done}", "--json"), ("missing", "{idle}"), ("absent", "{done}"), ("ok", "{done}", "--list"),
                 ("denied", "{done}", "--size", "3")],
    "export": [("usage",), ("usage", "{done}"), ("usage", "{done}/0", "--csv"), ("missing", "none", "--csv"), ("absent", "{done}", "--csv"),
               ("ok", "{done}", "--csv"), ("ok", "{idle}", "--csv")],
    "replay": [("usage",), ("usage", "{done}/0"), ("usage", "{done}", "--file", "x"), ("missing", "none"), ("missing", "--file", "none.json"),
               ("failed", "--file", "good.yaml"), ("absent", "{done}"), ("ok", "{done}"), ("ok", "{idle}")],
    "data": [("usage",), ("usage", "odd"), ("usage", "add", "d"), ("usage", "add", "d", "digits.csv"),
             ("usage", "add", "d", "good.yaml"), ("usage", "add", "d", "digits.csv", "--target", "class", "--size", "3x3"),
             ("usage", "show"), ("missing", "add", "d", "none.csv", "--target", "class"), ("missing", "show", "none"), ("missing", "preview", "none"), ("usage", "preview"),
             ("missing", "delete", "none"), ("denied", "add", "d", "digits.csv", "--target", "class"), ("absent", "list"), ("ok", "list")],
    "fit": [("usage",), ("usage", "digits.csv"), ("usage", "digits.csv", "--target", "class", "--time", "1s"),
            ("usage", "digits.csv", "--target", "class", "--size", "big"), ("missing", "none.csv", "--target", "class"),
            ("failed", "digits.csv", "--target", "class", "--metric", "rmse"), ("denied", "digits.csv", "--target", "class"),
            ("absent", "digits.csv", "--target", "class"), ("ok", "digits.csv", "--target", "class", "--print")],
    "predict": [("usage",), ("usage", "m"), ("usage", "a b", "--data", "digits.csv"), ("missing", "none", "--data", "digits.csv"),
                ("absent", "m", "--data", "digits.csv"), ("failed", "./good.yaml", "--data", "digits.csv")],
    "models": [("usage",), ("usage", "odd"), ("usage", "list", "x"), ("usage", "show", "a b"), ("usage", "add", "{done}/x", "m"),
               ("usage", "add", "{done}", "m@1"), ("usage", "alias", "m", "a", "first"), ("usage", "get", "m", "--from", "f"),
               ("missing", "show", "none"), ("missing", "add", "none", "m"), ("missing", "get", "none"), ("missing", "delete", "none"),
               ("denied", "add", "{done}", "m"), ("absent", "list"), ("ok", "list")],
    "serve": [("usage",), ("usage", "--dir", ".", "--max-bytes", "1"), ("usage", "--dir", ".", "--log-level", "loud"),
              ("usage", "--dir", ".", "--max-connections", "none")],
    "launch": [("usage",), ("usage", "odd"), ("usage", "slurm", "x"), ("usage", "slurm", "--name", "Lab"), ("usage", "ssh", "--name", "pcs"),
               ("usage", "kubernetes", "--name", "a"), ("usage", "slurm", "--name", "a", "--stop", "--status"),
               ("usage", "slurm", "--name", "a", "--memory", "much"), ("missing", "slurm", "--name", "none", "--status"),
               ("missing", "slurm", "--name", "b", "--runner-token", "none"),
               ("denied", "kubernetes", "--name", "c", "--image", "i"), ("absent", "kubernetes", "--name", "d", "--image", "i"),
               ("ok", "slurm", "--name", "e", "--print"), ("ok", "ssh", "pc", "--name", "f", "--print")],
    "autoscale": [("usage",), ("usage", "Lab"), ("usage", "lab", "--min", "5", "--max", "2"), ("usage", "lab", "--every", "0s"),
                  ("missing", "none")],
    "demand": [("usage", "x"), ("absent",), ("ok",)],
    "runners": [("usage", "odd"), ("usage", "remove"), ("missing", "remove", "none"), ("denied", "remove", "none"), ("absent",), ("ok",)],
    "token": [("usage",), ("usage", "odd"), ("usage", "create"), ("usage", "create", "king"), ("missing", "revoke", "none"),
              ("denied", "create", "viewer"), ("absent", "list"), ("ok", "list")],
    "completion": [("usage",), ("usage", "csh"), ("ok", "bash")],
    "version": [("usage", "x"), ("ok",)],
    "help": [("usage", "odd"), ("usage", "run", "watch"), ("ok",), ("ok", "run")],
}
# Verbs that need no server, or only to look something up.
# serve waits for a registry that is away, autoscale for a server; and it asks the cluster first.
ALONE = {"up", "open", "serve", "autoscale", "completion", "version", "help"}

GOOD = """name: {name}
metric: {{name: f, goal: minimize}}
parameters: {{x: {{type: int, min: 1, max: 3}}}}
{trial}"""
COMMAND = """search: {method: grid}
trial: {command: [sh, -c, 'echo "{\\"f\\": $0}" >> $ASSAY_REPORT; test $0 = 2 || echo $0 > $ASSAY_ARTIFACTS/x; echo $0', "${x}"]}
"""


def codes_of(page):
    """{case: code}, from the table of the page."""
    table = page[page.index("## Exit codes"):page.index("## Environment")]
    rows = dict((m[2], int(m[1])) for m in re.finditer(r"^\| (\d+) \| (.*) \|$", table, re.M))
    out = {}
    for case, phrase in PHRASES.items():
        found = [code for meaning, code in rows.items() if phrase in re.split("[:;]", meaning, maxsplit=1)[0]]
        if not found:  # of one verb alone
            found = [code for meaning, code in rows.items() if phrase in meaning]
        out[case], = found
    assert sorted(out.values()) == sorted(set(rows.values()) - {2}), (out, rows)  # 2, cancelled, needs a signal
    return out


def prepare(assay, folder):
    def write(name, text):
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)

    write("good.yaml", GOOD.format(name="good", trial=COMMAND))
    write("bad.yaml", GOOD.format(name="bad", trial="trial: {command: []}\n"))
    os.symlink(os.path.join(SOURCE, "examples", "digits.csv"), os.path.join(folder, "digits.csv"))
    names = {"done": "all-done", "idle": "idle", "open": "open-one", "over": "all-told"}
    for key, trial in (("done", COMMAND), ("idle", "limits: {max_trials: 3}\n"), ("open", "limits: {max_trials: 3}\n"),
                       ("over", "limits: {max_trials: 1}\n")):
        write(key + ".yaml", GOOD.format(name=names[key], trial=trial))
        assay.cli("run", key + ".yaml", *(["--paused"] if key == "idle" else []), cwd=folder)
    assay.cli("ask", names["open"], "--client", "me")
    assay.cli("ask", names["over"], "--client", "me")
    assay.cli("tell", names["over"], "0", "f=1", "--client", "me")
    assay.wait_ended(names["done"])
    assay.wait_ended(names["over"])
    return names


def main():
    with open(os.path.join(SOURCE, "docs", "cli.md")) as f:
        codes = codes_of(f.read())
    verbs = re.findall(r"^  ([a-z]+) ", subprocess.run([ASSAY, "help"], capture_output=True, text=True, check=True)
                       .stdout.split("\nEnvironment\n")[0], re.M)
    assert sorted(verbs) == sorted(CASES), set(verbs) ^ set(CASES)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as state, Assay(runners=1, env={"XDG_STATE_HOME": state}) as assay:
        folder = os.path.join(assay.data, "here")
        os.mkdir(folder)
        names = prepare(assay, folder)
        viewer = json.loads(assay.cli("token", "create", "viewer", "--json").stdout)["token"]
        absent = dict(assay.env, ASSAY_SERVER="http://127.0.0.1:1")
        envs = {"denied": {**{n: v for n, v in assay.env.items() if n != "ASSAY_TOKEN_FILE"}, "ASSAY_TOKEN": viewer}, "absent": absent}
        wrong = []

        def check(case, words, env=None, says=None):
            done = subprocess.run([ASSAY, *words], cwd=folder, env=env or envs.get(case, assay.env), stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=240)
            if done.returncode != codes[case] or (says and says not in done.stderr) or (codes[case] and not done.stderr):
                wrong.append(f"assay {' '.join(words)}: {done.returncode}, expected {codes[case]} ({case}): "
                             f"{done.stderr.strip()[:200]}")
            return done

        for verb, cases in CASES.items():
            check("usage", [verb, "--no-such-option"], says="unknown option")
            if verb != "serve":  # which may have any number of models
                check("usage", [verb, *["x"] * 40])
            check("ok", [verb, "--help"])
            if verb not in ALONE:
                assert any(c[0] == "absent" for c in cases), verb
            for case, *words in cases:
                check(case, [verb, *(w.format(**names) for w in words)])
        # options before the verb
        url, token = assay.url, assay.env["ASSAY_TOKEN_FILE"]
        bare = {n: v for n, v in assay.env.items() if not n.startswith("ASSAY_")}
        check("ok", ["--server", url, "--token-file", token, "sweeps"], env=bare)
        check("ok", [f"--server={url}", f"--token-file={token}", "--json", "show", names["done"]], env=bare)
        check("absent", ["--server", "http://127.0.0.1:1", "sweeps"])
        check("usage", ["--server"], says="needs a value")
        check("usage", ["--sever", url, "sweeps"], says="did you mean --server?")
        check("usage", ["--server", url])
        check("usage", [])
        # what was meant
        check("usage", ["bset", names["done"]], says="did you mean `assay best`?")
        check("usage", ["set", names["done"], "max_trails=5"], says="did you mean max_trials?")
        check("missing", ["show", "al-done"], says="'all-done'")
        check("missing", ["trial", "all-doen/1"], says="'all-done'")
        quiet = check("missing", ["show", "quite-another"])
        assert "meant" not in quiet.stderr, quiet.stderr
        problem = json.loads(check("usage", ["trial", names["done"], "--json"]).stderr)
        assert problem["exit_code"] == codes["usage"] and problem["verb"] == "trial", problem
        assert not wrong, "\n" + "\n".join(wrong)
        print(f"{sum(map(len, CASES.values()))} commands of {len(CASES)} verbs")


if __name__ == "__main__":
    sys.exit(main())
