#!/usr/bin/env python3
"""Results that mislead a search, as a service gets them: wrong values, failures, noise, numbers that have no effect; one
and several trials at a time. Wrong values stop no sweep from learning, what was learned is shown and can be pasted, and
each sweep is replayed to the bit."""
import json
import math
import os
import random
import tempfile

from harness import Assay

SQUARE = {"x": {"type": "float", "min": 0, "max": 1}, "y": {"type": "float", "min": 0, "max": 1}}
KINDS = {"kind": {"type": "categorical", "values": ["a", "b", "c"]}, **SQUARE}
MACHINE = {"kernel": {"type": "categorical", "values": ["linear", "rbf", "poly"]}, "cost": {"type": "int", "min": -4, "max": 12},
           "gamma": {"type": "int", "min": -8, "max": 5}, "degree": {"type": "int", "min": 2, "max": 4}}
WRONG = 1e8


def bowl(p):
    return (p["x"] - 0.3) ** 2 + (p["y"] - 0.7) ** 2 + {"a": 0.2, "b": 0, "c": 0.1}.get(p.get("kind"), 0)


def machine(p):
    cost, gamma = p["cost"] - 6, p["gamma"] + 3
    if p["kernel"] == "linear":
        return 0.02 + 0.03 * max(0, abs(p["cost"] - 4) - 3) ** 2 / 16
    if p["kernel"] == "rbf":
        return 0.35 * (1 - math.exp(-(cost ** 2 + 2 * gamma ** 2) / 18))
    return 0.03 + 0.25 * (1 - math.exp(-((cost + 4) ** 2 + (gamma - 4) ** 2 + 4 * (p["degree"] - 3) ** 2) / 14))


def create(assay, name, parameters, method="gp", goal="minimize", trials=30, **metric):
    document = {"name": name, "metric": {"name": "loss", "goal": goal, **metric}, "parameters": parameters,
                "search": {"method": method, "seed": 7}, "limits": {"max_trials": trials}}
    return assay.call("POST", "/v1/sweeps", document)["id"]


def run(assay, name, value, at_once=1, **document):
    """Tell the values of `value(number, parameters)`; None: the trial fails. Returns the trials."""
    sweep, draw = create(assay, name, **document), random.Random(name)
    path = f"/v1/sweeps/{sweep}/suggestions"
    while True:
        answer = assay.call("POST", path, {"client": "me", "count": at_once, "wait_ms": 5000})  # with those that it holds
        if not answer["items"]:
            assert answer["done"], answer
            break
        t = draw.choice(answer["items"])
        told = value(t["number"], t["params"])
        body = {"client": "me", "attempt": t["attempt"]}
        body |= {"outcome": "failed"} if told is None else {"metrics": {"loss": told}}
        assay.call("POST", f"{path}/{t['number']}/complete", body)
    trials = assay.trials(sweep)
    suggested = sum(t["origin"] == "suggested" for t in trials)
    said = assay.cli("replay", sweep).stdout
    assert said.startswith(f"{suggested} of {suggested} suggestions are the same"), (name, said)
    return sweep, trials


def repeats(trials, number):
    return [t["number"] for t in trials if t["suggestion"].get("repeat") == number]


def check_wrong_values(assay):
    """One value that is better than all others by far, at any place of the sweep: measured once more, and refuted."""
    for name, at, sign, at_once, n in (("third", 2, 1, 1, 37), ("first-up", 0, -1, 1, 30), ("late", 20, 1, 4, 30)):
        goal = "minimize" if sign > 0 else "maximize"
        sweep, trials = run(assay, name, lambda n, p, at=at, sign=sign: sign * (-WRONG if n == at else bowl(p)), at_once,
                            parameters=KINDS, goal=goal, trials=n)
        assert len(repeats(trials, at)) == 1, (name, [t["suggestion"] for t in trials])
        told = next(t for t in trials if t["number"] == at)["value"]
        assert told == -sign * WRONG, (name, told)  # it stays as it was told
        honest = min(bowl(t["params"]) for t in trials)
        assert honest < 0.02, (name, honest)
        shown = assay.wait(lambda: ((s := assay.sweep(sweep))["regret"] or {}).get("completed") == n and s, "the best trial of all results")
        said, best = assay.cli("replay", sweep).stdout, shown["best"]
        kept = [x["completed"] for x in assay.call("GET", f"/v1/sweeps/{sweep}/regret/checks")["items"]]
        assert f"\n{len(kept)} of {len(kept)} bounds" in said, said
        listed = assay.call("GET", f"/v1/sweeps/{sweep}/best")
        assert listed["items"][0]["number"] == best["number"] != at and listed["expected"] == best["expected"], (name, listed, best)
        said = assay.cli("best", sweep).stderr
        assert f"trial {best['number']} is the best by what a model expects" in said, said
        assert abs(best["value"]) < 1 and best["told"]["number"] == at, (name, best)
        print(f"{name}: {honest:.5f} although trial {at} says {told:g}", flush=True)


def check_needle(assay):
    """A value that is as good when it is measured again is the best."""
    def value(n, p):
        return -WRONG - n if math.hypot(p["x"] - 0.3, p["y"] - 0.7) < 0.1 else bowl(p)
    sweep, trials = run(assay, "needle", value, parameters=SQUARE)
    best = assay.sweep(sweep)["best"]
    assert assay.call("GET", f"/v1/sweeps/{sweep}/best")["expected"] == best["expected"]
    assert best["value"] < -WRONG and math.hypot(best["params"]["x"] - 0.3, best["params"]["y"] - 0.7) < 0.1, best
    assert sum(t["value"] < -WRONG for t in trials) > 5, [t["value"] for t in trials]


def check_others(assay):
    noise, faults = random.Random(1), random.Random(2)
    cases = {
        "bad-anywhere": (lambda n, p: 1e5 if faults.random() < 0.2 else bowl(p), {"parameters": KINDS}),
        "bad-region": (lambda n, p: 1e5 if p["x"] > 0.6 else bowl(p), {"parameters": KINDS}),
        "absurd": (lambda n, p: 1e300 if n % 3 == 1 else bowl(p), {"parameters": KINDS, "method": "auto"}),
        "failing": (lambda n, p: bowl(p) if abs(p["x"] - 0.5) < 0.1 else None, {"parameters": KINDS}),
        "noisy": (lambda n, p: bowl(p) * (1 + 0.3 * noise.gauss(0, 1)), {"parameters": SQUARE}),
        "exact": (lambda n, p: -WRONG if n == 3 else bowl(p), {"parameters": SQUARE, "noise": "none"}),
        "coordinate": (lambda n, p: bowl(p), {"parameters": KINDS, "method": "coordinate"}),
        "mcmc": (lambda n, p: None if n % 5 == 3 else bowl(p), {"parameters": KINDS, "method": "mcmc"}),
        "tpe": (lambda n, p: -WRONG if n == 3 else bowl(p), {"parameters": KINDS, "method": "tpe"}),
    }
    for name, (value, document) in cases.items():
        for at_once in (1, 5):
            _, trials = run(assay, f"{name}-{at_once}", value, at_once, **document)
            assert name != "exact" or not any("repeat" in t["suggestion"] for t in trials), name


def check_learned(assay, folder):
    """`gamma` means nothing under `linear`: the sweep says so, and what it says can be pasted."""
    sweep, _ = run(assay, "machine", lambda n, p: machine(p), parameters=MACHINE, trials=60)
    learned = {entry["parameter"]: entry for entry in assay.sweep(sweep)["learned"]}
    assert any(e["where"] == {"kernel": "linear"} and e["trials"] >= 12 for e in learned["gamma"]["no_effect"]), learned
    assert learned["gamma"]["when"] == {"kernel": ["rbf", "poly"]}, learned
    shown = assay.cli("show", sweep).stdout
    assert "gamma has no effect where kernel is linear (" in shown, shown
    pasted = {n: dict(spec) for n, spec in MACHINE.items()}
    for line in shown.splitlines():
        if ", when: " in line:
            name = line.split(": {...")[0].split()[-1]
            pasted[name]["when"] = json.loads(line.split(", when: ")[1].rstrip()[:-1])
    assert pasted["gamma"]["when"] == learned["gamma"]["when"], shown
    path = os.path.join(folder, "pasted.json")
    with open(path, "w") as f:
        json.dump({"name": "pasted", "metric": {"name": "loss", "goal": "minimize"}, "parameters": pasted, "limits": {"max_trials": 9}}, f)
    again = assay.cli("run", path).stdout.strip()
    item, = assay.call("POST", f"/v1/sweeps/{again}/suggestions", {"client": "me", "count": 1})["items"]
    assert ("gamma" in item["params"]) == (item["params"]["kernel"] != "linear"), item
    assert "learned" not in assay.sweep(again)


def main():
    with Assay(runners=0) as assay, tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        check_learned(assay, folder)
        check_wrong_values(assay)
        check_needle(assay)
        check_others(assay)


if __name__ == "__main__":
    main()
