#!/usr/bin/python3
"""Learns the configurations that `assay fit` begins with where its server has seen no similar table, on public tables
(default_tables.py), and measures what they gain.

    bench/models/defaults.py BUILD CLONES WORK gather   `assay fit` on each table to learn from
    bench/models/defaults.py BUILD CLONES WORK try      the same drawn configurations on each of them
    bench/models/defaults.py BUILD CLONES WORK judge    what rules would gain, each table left out (no server is needed)
    bench/models/defaults.py BUILD CLONES WORK write    cli/fit/fit_learned.c of what is in WORK
    bench/models/defaults.py BUILD CLONES WORK fit      `assay fit` with and without them on tables that were not learned from

CLONES has a clone of each repository (default_tables.py); WORK gets a file for each table, and a table that has one is not
run again. Every sweep of one table has the same folds, so that its figures can be compared. Prints JSON lines."""
import argparse
import json
import os
import subprocess

import default_rules as rules
import default_tables as tables
import driver

FOLDS, TRIALS = 3, 13  # of a table to learn from
SHIPPED = 9            # configurations
FINAL_TRIALS = 10      # of a fit to judge by
ACTIONS = ("gather", "try", "judge", "write", "fit")


def path_of(a, *parts):
    return os.path.join(a.work, "-".join(parts))


def load(a, part):
    """{table: what the stage left of it}"""
    found = {}
    for name in tables.LEARNED:
        if os.path.exists(p := path_of(a, part, name + ".json")):
            with open(p, encoding="utf-8") as f:
                found[name] = json.load(f)
    return found


def keep(a, part, name, value):
    with open(path_of(a, part, name + ".json"), "w", encoding="utf-8") as f:
        json.dump(value, f)


def results(assay, sweep, metric):
    return [{"number": t["number"], "params": t["params"], "value": t["metrics"][metric]}
            for t in assay.trials(sweep) if t["state"] == "completed" and metric in t["metrics"]]


def write_file(a, name):
    """The table as a file in WORK: (path, task)"""
    names, rows, task = tables.read(a.clones, name)
    file = path_of(a, name + ".csv")
    driver.write_table(file, names, rows)
    return file, task


def search(assay, a, name, trials):
    """`assay fit` on a table, until its search has ended: no model is needed. Returns the name of its sweep."""
    file, task = write_file(a, name)
    sweep = name + "-fit"
    args = ["fit", file, "--target", tables.TARGET, "--task", task, "--name", name, "--time", "10m", "--folds", str(FOLDS),
            "--trials", str(trials), "--no-warm"]
    with subprocess.Popen([assay.assay, *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=assay.env) as fit:
        assay.wait(lambda: assay.sweep(sweep), sweep)
        assay.wait_ended(sweep)
        fit.terminate()
    return sweep


def gather_one(assay, a, name):
    before = driver.processor_seconds(assay.up.pid)
    sweep = search(assay, a, name, TRIALS)
    document = assay.sweep(sweep)["document"]
    metric = document["metric"]
    found = {"tags": document["tags"], "metric": metric, "document": document, "trials": results(assay, sweep, metric["name"])}
    driver.say(table=name, trials=len(found["trials"]), processor=round(driver.processor_seconds(assay.up.pid) - before, 1))
    return found


def try_one(assay, a, name, learned):
    """The drawn configurations on this table, in the same folds as its first sweep."""
    doc = json.loads(json.dumps(learned[name]["document"]))
    doc["name"] = name + "-tried"
    wanted = [(i, rules.within(doc, params)) for i, params in enumerate(rules.drawn(doc["parameters"]))]
    wanted = [(i, params) for i, params in wanted if params]
    doc["limits"]["max_trials"] = len(wanted)
    add_data(assay, a, name)
    before = driver.processor_seconds(assay.up.pid)
    sweep = assay.call("POST", "/v1/sweeps?paused=true", doc)["id"]
    assay.call("POST", f"/v1/sweeps/{sweep}/trials", [{"params": p} for _, p in wanted])
    assay.call("PATCH", f"/v1/sweeps/{sweep}", {"state": "running"})
    assay.wait_ended(sweep)
    found = results(assay, sweep, doc["metric"]["name"])
    for t in found:
        t["drawn"] = wanted[t["number"]][0]
    driver.say(table=name, trials=len(found), processor=round(driver.processor_seconds(assay.up.pid) - before, 1))
    return {"trials": found}


def add_data(assay, a, name):
    """Register the table, unless it is there."""
    if not any(d["name"] == name for d in assay.call("GET", "/v1/datasets")["items"]):
        file, task = write_file(a, name)
        driver.Models(assay, a.work).add_data(name, file, tables.TARGET, task)


def fit_one(assay, a, name, seed):
    """`assay fit` with and without defaults, on two thirds of the rows: the loss on the others, and of each trial. The server has seen
    nothing: sweeps are deleted."""
    names, rows, task = tables.read(a.clones, name)
    rules.shuffle(rows, seed)
    third = len(rows) // 3
    train, test = path_of(a, f"{name}-{seed}-train.csv"), path_of(a, f"{name}-{seed}-test.csv")
    driver.write_table(train, names, rows[third:])
    driver.write_table(test, names, rows[:third])
    found = {}
    for way, more in (("without", ["--no-warm"]), ("with", [])):
        done = assay.cli("fit", train, "--target", tables.TARGET, "--task", task, "--name", f"{name}-{seed}-{way}", "--time", "7m",
                         "--folds", str(FOLDS), "--trials", str(a.trials), "--test", test, "--json", *more)
        report = json.loads(done.stdout.splitlines()[-1])
        sweep = assay.sweep(report["sweep"])["document"]
        trials = sorted(results(assay, report["sweep"], sweep["metric"]["name"]), key=lambda t: t["number"])
        found[way] = {"test": rules.loss(sweep, report["test"]["value"]), "trials": [rules.loss(sweep, t["value"]) for t in trials]}
        assay.call("DELETE", f"/v1/sweeps/{report['sweep']}")
    driver.say(table=name, seed=seed, **found)
    return found


def parser(description):
    """Of the arguments that all programs on cloned tables have."""
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("clones")
    p.add_argument("work")
    return p


def main():
    p = parser(__doc__)
    p.add_argument("action", choices=ACTIONS)
    p.add_argument("--only", help="names of tables, with commas")
    p.add_argument("--seeds", type=int, default=1, help="of `fit`: draws of the test rows")
    p.add_argument("--trials", type=int, default=FINAL_TRIALS, help="of `fit`")
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    if a.action in ("judge", "write"):
        learned = load(a, "gather")
        if a.action == "judge":
            rules.judge(learned, load(a, "try"))
        else:
            rules.write(learned, load(a, "try"), os.path.join(driver.ROOT, "cli", "fit", "fit_learned.c"), SHIPPED, tables.LEARNED)
        return
    driver.say(revision=driver.revision(), options=vars(a))
    with driver.installation(a.build) as assay:
        if a.action == "fit":
            for name in a.only.split(",") if a.only else tables.JUDGED:
                for seed in range(1, a.seeds + 1):
                    if not os.path.exists(path_of(a, "fit", f"{name}-{seed}.json")):
                        keep(a, "fit", f"{name}-{seed}", fit_one(assay, a, name, seed))
            rules.compare([json.load(open(path_of(a, f), encoding="utf-8")) for f in sorted(os.listdir(a.work)) if f.startswith("fit-")])
            return
        learned = load(a, "gather")
        for name in a.only.split(",") if a.only else tables.LEARNED:
            if os.path.exists(path_of(a, a.action, name + ".json")):
                continue
            keep(a, a.action, name, gather_one(assay, a, name) if a.action == "gather" else try_one(assay, a, name, learned))


if __name__ == "__main__":
    main()
