#!/usr/bin/env python3
"""What people know already, over HTTP: priors of parameters, and a sweep that begins where an earlier one ended. The
document holds what was taken, so replays do not need the earlier sweep; wrong ones are refused with their place."""
import json
import os
import sys
import tempfile

from harness import Assay, Problem

LOSS = "awk -v x=${x} 'BEGIN { printf \"{\\\"loss\\\": %.6f}\\n\", (x - 0.3) ^ 2 }' >> \"$ASSAY_REPORT\""


def document(name, search, x=None, trials=12, **more):
    return {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "search": search,
            "parameters": {"x": {"type": "float", "min": 0, "max": 1, **(x or {})}, **more},
            "limits": {"max_trials": trials, "max_concurrent_trials": 2}, "trial": {"command": ["sh", "-c", LOSS]}}


def run(assay, *args, **kw):
    doc = document(*args, **kw)
    assay.call("POST", "/v1/sweeps", doc)
    sweep = assay.wait_ended(doc["name"])
    assert sweep["state"] == "completed", sweep
    return sorted(assay.trials(doc["name"]), key=lambda t: t["number"])


def refused(assay, pointer, part, *args, **kw):
    try:
        assay.call("POST", "/v1/sweeps", document("bad", *args, **kw))
    except Problem as e:
        assert e.status == 400 and e.body["errors"][0]["pointer"] == pointer and part in str(e.body), e.body
        return
    raise AssertionError((args, kw))


def earlier(assay, folder):
    """A further parameter, another range: the second sweep begins with the best trial of the first."""
    first = run(assay, "first", {"method": "random", "seed": 4})
    best = min(first, key=lambda t: t["value"])
    second = run(assay, "second", {"method": "gp", "seed": 5, "prior": ["first"]}, x={"max": 2},
                 y={"type": "bool"})
    assert any(abs(t["params"]["x"] - best["params"]["x"]) < 1e-9 for t in second[:3]), (best, second[:3])
    assert min(t["value"] for t in second) <= best["value"], (best, second)
    kept = assay.sweep("second")["document"]["search"]["prior"]
    assert kept[0]["sweep"] == "first" and len(kept[0]["trials"]) == 12, kept
    path = os.path.join(folder, "second.json")
    assay.cli("replay", "second")
    assay.cli("delete", "first", "--yes")
    assay.cli("replay", "second")
    with open(path, "w", encoding="utf-8") as f:
        f.write(assay.cli("export", "second", "--json").stdout)
    assay.cli("replay", "--file", path)
    refused(assay, "/search/prior/0", "first", {"method": "gp", "prior": ["first"]})
    refused(assay, "/search/prior", "random", {"method": "random", "prior": ["second"]})


def parameters(assay):
    """The first trial is where the prior is; replays are the same bits; a grid has no use for it."""
    prior = {"prior": {"mean": 0.3, "deviation": 0.05}}
    for method in ("gp", "tpe", "forest", "cmaes", "evolution", "coordinate", "mcmc"):
        trials = run(assay, f"knows-{method}", {"method": method, "seed": 2}, x=prior)
        assert abs(trials[0]["params"]["x"] - 0.3) < 1e-9, (method, trials[0])
        assay.cli("replay", f"knows-{method}")
    why = assay.call("GET", "/v1/sweeps/knows-gp/trials/11")["suggestion"]
    assert why["method"] == "gp" and 0 <= why.get("prior", 0) <= 1, why
    refused(assay, "/parameters/x/prior", "grid", {"method": "grid"}, x={**prior, "points": 5})
    refused(assay, "/parameters/x/prior/deviation", "found -1", {"method": "gp"}, x={"prior": {"mean": 0, "deviation": -1}})


def main():
    with Assay(runners=1) as assay, tempfile.TemporaryDirectory(prefix="assay-priors-", dir="/var/tmp") as folder:
        earlier(assay, folder)
        parameters(assay)
    print("priors: ok")


if __name__ == "__main__":
    sys.exit(main())
