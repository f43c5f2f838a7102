#!/usr/bin/python3
"""What a limit of bytes costs an ensemble: members that fit together (max_bytes, decision 4031) against ensembles of fewer members.

    bench/models/ensemble_size.py BUILD CLONES WORK [--trials 12] [--sets …]

CLONES: as of defaults.py. On each table one search of `assay fit`, whose forests may be large. Then for limits of a twentieth, a
tenth, a quarter and a half of the best ensemble's bytes the best cross-fitted figure among what fits: of the ensembles that
`assay fit` asked for before (greedy 16, 6 and 2, stacking 16 and 4, the best trial), and with those that are made within the limit
(greedy and stacking of 16). The same trials, so the same rows. Prints JSON lines and a mean of the loss that is left."""
import math
import os

import defaults
import driver

SETS = "credit-a,pima,attrition,vowel,bank8fm,saratoga"
BEFORE = (("greedy", 16), ("stacking", 16), ("greedy", 6), ("stacking", 4), ("greedy", 2))
PARTS = (0.05, 0.1, 0.25, 0.5)


def ask(assay, sweep, **body):
    number = assay.call("POST", f"/v1/sweeps/{sweep}/ensembles", body)["number"]

    def made():
        e = assay.call("GET", f"/v1/sweeps/{sweep}/ensembles/{number}")["ensemble"]
        return e["state"] != "pending" and e
    return assay.wait(made, f"ensemble {number} of {sweep}")


def bytes_of(assay, sweep, number, known={}):
    if (sweep, number) not in known:
        files = assay.call("GET", f"/v1/sweeps/{sweep}/trials/{number}/artifacts")["items"]
        known[sweep, number] = sum(f["size"] for f in files if f["path"] == "model.safetensors")
    return known[sweep, number]


def offers(assay, sweep, ensemble):
    """(bytes, loss) of an ensemble and of its best trial."""
    if ensemble["state"] != "ready":
        return []
    worth = (lambda v: 1 - v) if ensemble["goal"] == "maximize" else (lambda v: v)
    single = ensemble["best_single"]
    return [(sum(bytes_of(assay, sweep, m["number"]) for m in ensemble["members"]), worth(ensemble["value"])),
            (bytes_of(assay, sweep, single["number"]), worth(single["value"]))]


def run_set(assay, a, name):
    sweep = defaults.search(assay, a, name, a.trials)
    before = [o for method, size in BEFORE for o in offers(assay, sweep, ask(assay, sweep, method=method, size=size))]
    whole = min(before, key=lambda o: o[1])
    found = {}
    for part in PARTS:
        limit = max(1, int(whole[0] * part))
        now = [o for method in ("greedy", "stacking") for o in offers(assay, sweep, ask(assay, sweep, method=method, size=16, max_bytes=limit))]
        fits = [[loss for size, loss in offered if size <= limit] for offered in (before, before + now)]
        found[part] = [min(f) / whole[1] if f else None for f in fits]
        driver.say(table=name, bytes=limit, part=part, before=found[part][0], now=found[part][1])
    return found


def main():
    p = defaults.parser(__doc__)
    p.add_argument("--trials", type=int, default=12)
    p.add_argument("--sets", default=SETS)
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    driver.say(revision=driver.revision(), options=vars(a))
    with driver.installation(a.build) as assay:
        found = [run_set(assay, a, name) for name in a.sets.split(",")]
    for part in PARTS:
        both = [f[part] for f in found if f[part][0] and f[part][1]]
        driver.say(part=part, tables=len(both), nothing_before=sum(not f[part][0] and bool(f[part][1]) for f in found),
                   nothing=sum(not f[part][1] for f in found), better=sum(n < b for b, n in both), **{
                       when: round(math.exp(sum(math.log(x[i]) for x in both) / max(1, len(both))), 4) for i, when in enumerate(("before", "now"))})


if __name__ == "__main__":
    main()
