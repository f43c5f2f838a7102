#!/usr/bin/env python3
"""Bad input gets a clear error that names the field, and changes nothing: sweep documents, data sets, bodies,
commands that do not exist, trials that report nonsense."""
import copy
import hashlib
import os
import sys
import tempfile

from harness import Assay, Problem

GOOD = {
    "name": "good",
    "metric": {"name": "loss", "goal": "minimize"},
    "parameters": {
        "x": {"type": "float", "min": 0.1, "max": 1, "scale": "log"},
        "kind": {"type": "categorical", "values": ["a", "b"]},
        "y": {"type": "int", "min": 1, "max": 3, "when": {"kind": "a"}},
    },
    "search": {"method": "random", "seed": 1},
    "limits": {"max_trials": 2},
    "trial": {"command": ["sh", "-c", "echo '{\"loss\": 1}' >> $ASSAY_REPORT"]},
}


def change(path, value):
    doc = copy.deepcopy(GOOD)
    at = doc
    for key in path[:-1]:
        at = at.setdefault(key, {})
    at[path[-1]] = value
    return doc


def grid(parameters):
    doc = copy.deepcopy(GOOD)
    doc["search"], doc["parameters"] = {"method": "grid"}, parameters
    del doc["limits"]
    return doc


# (document, pointer that the problem names, words of the message)
BAD = [
    (change(["max_trails"], 3), "/max_trails", ""),
    (change(["limits", "max_trails"], 3), "/limits/max_trails", "max_trials"),
    (change(["parameters", "x", "min"], 2), "/parameters/x", ""),
    (change(["parameters", "x", "min"], 0), "/parameters/x", "log"),
    (change(["parameters", "y", "when"], {"nothing": "a"}), "/parameters/y/when", "nothing"),
    (change(["parameters", "y", "when"], {"kind": "c"}), "/parameters/y/when", ""),
    (change(["parameters", "kind", "when"], {"y": 1}), "/parameters", ""),
    (change(["parameters", "kind", "values"], []), "/parameters/kind/values", ""),
    (change(["parameters", "x", "type"], "flaot"), "/parameters/x/type", "float"),
    (change(["parameters", "x", "max"], "one"), "/parameters/x/max", ""),
    (change(["metric", "goal"], "small"), "/metric/goal", "minimize"),
    (change(["search", "method"], "anneal"), "/search/method", "gp"),
    (change(["early_stopping"], {"method": "pbt", "max_steps": 9}), "/early_stopping/period", "missing"),
    (change(["metrics"], []), "/metrics", ""),
    (change(["constraints"], [{"metric": "ms"}]), "/constraints/0", "max"),
    (change(["parameter_constraints"], ["x < 1", "z < 1"]), "/parameter_constraints/1", "column 1"),
    (change(["parameter_constraints"], ["x < 0"]), "/parameter_constraints/0", "allowed"),
    (change(["forbidden"], [{"kind": "c"}]), "/forbidden/0/kind", ""),
    (change(["resources"], {"ranks": 0}), "/resources/ranks", ""),
    (change(["resources"], {"ranks": 4, "min_ranks": 5}), "/resources/min_ranks", "at most"),
    (change(["trial", "command"], ["run", "${z}"]), "/trial/command/1", "z"),
    (change(["trial", "command"], []), "/trial/command", ""),
    (change(["limits", "max_trials"], 0), "/limits/max_trials", ""),
    (change(["limits", "trial_timeout"], "soon"), "/limits/trial_timeout", ""),
    (change(["name"], "Not A Slug"), "/name", ""),
    (grid({"x": {"type": "float", "min": 0, "max": 1}}), "/parameters/x", "step"),
    (grid({f"p{i}": {"type": "int", "min": 1, "max": 1000} for i in range(4)}), "", "1000"),
    (grid({}), "/parameters", ""),
    ({**change(["metric", "name"], "val_error"), "trial": {"train": {"dataset": "none-such", "epochs": 1}}},
     "/trial/train/dataset", "none-such"),
    ({**GOOD, "trial": {"train": {"dataset": "none-such", "epochs": 1}}}, "/metric/name", "val_error"),
    ({**GOOD, "trial": {"train": {"dataset": "d", "epochs": 1, "modle": {}}}}, "/trial/train/modle", "model"),
    ({**GOOD, "trial": {}}, "/trial", ""),
]


def refused(assay, method, path, body=None, status=(400,), **kw):
    try:
        answer = assay.call(method, path, body, **kw)
    except Problem as e:
        assert e.status in status, (e.status, e.body, path, body)
        assert isinstance(e.body, dict) and e.body["status"] == e.status and e.body["detail"], e.body
        return e.body
    raise AssertionError(f"{method} {path} accepted {body}: {answer}")


def check_documents(assay):
    for doc, pointer, words in BAD:
        problem = refused(assay, "POST", "/v1/sweeps", doc, status=(400, 422))
        pointers = [e["pointer"] for e in problem.get("errors", [])]
        assert any(p.startswith(pointer) for p in pointers) or not pointer, (pointer, problem)
        assert words in str(problem), (words, problem)
    assert assay.call("GET", "/v1/sweeps")["items"] == [], "a refused document left a sweep"


FAULTY = """name: faulty
metric: {name: loss, goal: smallest}
parameters:
  x: {type: float, min: 1, max: 0.1}
  y:
    type: int
    min: one
    max: 9
limits:
  max_trails: 3
  max_trials: 0
trial:
  command: [echo, "${z}"]
"""
# (line, pointer) of every fault
FAULTS = [(2, "/metric/goal"), (4, "/parameters/x/min"), (7, "/parameters/y/min"), (11, "/limits/max_trials"),
          (10, "/limits/max_trails"), (13, "/trial/command/1")]


def check_all_faults(assay):
    """A document with several faults: the server names each, and assay run prints each with its line."""
    doc = {
        **GOOD,
        "metric": {"name": "loss", "goal": "smallest"},
        "parameters": {"x": {"type": "float", "min": 1, "max": 0.1}, "y": {"type": "int", "min": "one", "max": 9}},
        "limits": {"max_trails": 3, "max_trials": 0},
        "trial": {"command": ["echo", "${z}"]},
    }
    problem = refused(assay, "POST", "/v1/sweeps", doc)
    assert [e["pointer"] for e in problem["errors"]] == [p for _, p in FAULTS], problem
    assert problem["detail"] == problem["errors"][0]["detail"], problem
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "faulty.yaml")
        with open(path, "w") as f:
            f.write(FAULTY)
        r = assay.cli("run", path, check=False)
    assert r.returncode != 0 and not r.stdout, (r.stdout, r.stderr)
    lines = r.stderr.splitlines()
    assert len(lines) == len(FAULTS), r.stderr
    for line, (number, pointer) in zip(lines, FAULTS):
        assert line.startswith(f"assay run: {path}:{number}:") and pointer in line, (line, number, pointer)


def check_bodies(assay):
    json_type = {"Content-Type": "application/json"}
    for raw in (b"{", b"\xff\xfe", b"[" * 5000, b'{"name": "a", "name": "b"}', b'{"name": "\\u0000"}', b"", b"[]"):
        refused(assay, "POST", "/v1/sweeps", raw=raw, headers=json_type, status=(400, 413))
    refused(assay, "POST", "/v1/sweeps", raw=b" " * (8 << 20), headers=json_type, status=(413,))
    refused(assay, "POST", "/v1/sweeps", raw=b"{}", headers={"Content-Type": "text/plain"}, status=(415,))
    refused(assay, "GET", "/v1/sweeps/none-such", status=(404,))
    refused(assay, "GET", "/v1/sweeps", token="assay_admin_x_y", status=(401,))


def check_data(assay):
    tables = {
        "no target": (b"a,b\n1,2\n3,4\n", "class", ["class"]),
        "text": (b"a,b,class\n1,2,x\n3,oops,y\n", "class", ["b", "3", "oops"]),
        "infinite": (b"a,b,class\n1,inf,x\n3,4,y\n", "class", ["b", "2"]),
        "empty target": (b"a,b,class\n1,2,\n3,4,y\n", "class", ["class", "2"]),
        "ragged": (b"a,b,class\n1,2,x\n3,4\n", "class", ["3"]),
        "no rows": (b"a,b,class\n", "class", []),
        "nothing": (b"", "class", []),
    }
    for name, (content, target, words) in tables.items():
        digest = hashlib.sha256(content).hexdigest()
        assay.call("PUT", f"/v1/blobs/{digest}", raw=content)
        problem = refused(assay, "POST", "/v1/datasets",
                          {"name": "bad", "format": "csv", "files": {"table": digest}, "target": target})
        for word in words:
            assert word in problem["detail"], (name, word, problem)
    refused(assay, "PUT", "/v1/blobs/" + "0" * 64, raw=b"other content")
    refused(assay, "POST", "/v1/datasets", {"name": "bad", "format": "csv", "files": {"table": "1" * 64}, "target": "x"},
            status=(400, 422))
    assert assay.call("GET", "/v1/datasets")["items"] == []


def check_trials(assay):
    """Trials that go wrong fail with their reason; the sweep still ends."""
    cases = {
        "missing": (["none-such-program-x"], "none-such-program-x"),
        "silent": (["true"], "loss"),
        "nan": (["sh", "-c", "echo '{\"loss\": NaN}' >> $ASSAY_REPORT; echo '{\"loss\": \"NaN\"}' >> $ASSAY_REPORT"], "NaN"),
        "exit": (["sh", "-c", "echo going wrong here; exit 3"], "3"),
    }
    for name, (command, words) in cases.items():
        sweep = assay.call("POST", "/v1/sweeps", {**GOOD, "name": name, "trial": {"command": command}})["id"]
        assay.wait_ended(sweep)
        s, trials = assay.check_exact(sweep, 2)
        assert s["counts"]["failed"] == 2, s["counts"]
        assert words in trials[0]["reason"], (name, trials[0]["reason"])
    assert "going wrong here" in assay.cli("logs", "exit/0").stdout
    limited = {**GOOD, "name": "limited", "limits": {"max_trials": 50, "max_failed_trials": 3},
               "trial": {"command": ["false"]}}
    sweep = assay.call("POST", "/v1/sweeps", limited)["id"]
    s = assay.wait_ended(sweep)
    assert s["state"] == "failed" and s["reason"] and 4 <= s["counts"]["failed"] < 10, s


def main():
    with Assay() as assay:
        check_documents(assay)
        check_all_faults(assay)
        check_bodies(assay)
        check_data(assay)
        check_trials(assay)
        gone = assay.cli("sweeps", "--server", "http://127.0.0.1:9", check=False)
        assert gone.returncode == 7 and gone.stderr.strip(), gone
    print(f"{len(BAD)} documents refused")


sys.exit(main())
