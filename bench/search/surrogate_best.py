#!/usr/bin/env python3
"""The lowest value that a long search finds on a surrogate: the `optimum` of a row of surrogate.c.

    /usr/bin/python3 bench/search/surrogate_best.py SURROGATE.PY SCENARIO TARGET INSTANCE…

20,000 random configurations, then, from the best 40 of each value of a parameter that opens others, 300 rounds of 200
moves of the 40 best ones (one to three parameters each). Prints
for each instance the best value, the median of the random ones, and the share of them within 1 % of the best (of the
distance from the median): where that share is not tiny, the problem tells no two methods apart.
"""
import importlib.util
import sys

import numpy as np


def load(path):
    spec = importlib.util.spec_from_file_location("surrogate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Points:
    """Configurations as rows of the unit cube."""

    def __init__(self, surrogate):
        self.s = surrogate

    def config(self, u):
        p = {}
        for h, v in zip(self.s.space, u):
            if h["type"] == "categorical":
                p[h["name"]] = h["choices"][min(int(v * len(h["choices"])), len(h["choices"]) - 1)]
                continue
            low, high = (np.log(h["min"]), np.log(h["max"])) if h["log"] else (h["min"], h["max"])
            x = low + v * (high - low)
            x = float(np.exp(x)) if h["log"] else float(x)
            x = min(max(x, h["min"]), h["max"])
            p[h["name"]] = int(round(x)) if h["type"] == "int" else x
        return self.s.active(p)

    def values(self, rows, scale):
        s, xc, xf = self.s, [], []
        for u in rows:
            p = {**s.s["fidelity"], **self.config(u), s.s["instance"]: s.inst}
            xc.append([s.enc[n].get(p.get(n, "#na#"), 0) for n in s.s["cat"]])
            xf.append([float(p.get(n, 0)) for n in s.s["cont"]])
        with np.errstate(all="ignore"):
            y = s.model.run({s.model.inputs[0]: np.array(xc, np.int32), s.model.inputs[1]: np.array(xf, np.float32)})
        return 1 - y[:, s.k].astype(float) / scale


def islands(points, u):
    """The rows of each value of the parameter that opens others; all of them where none does."""
    parents = {c["parent"] for c in points.s.conditions}
    islands = [np.arange(len(u))]
    for j, h in enumerate(points.s.space):
        if h["name"] in parents and h["type"] == "categorical":
            n = len(h["choices"])
            value = np.minimum((u[:, j] * n).astype(int), n - 1)
            islands = [i[value[i] == v] for i in islands for v in range(n)]
    return islands


def climb(points, scale, rng, u, v):
    d = len(points.s.space)
    for _ in range(300):
        order = np.argsort(v)[:40]
        u, v = u[order], v[order]
        moved = u[rng.integers(0, len(u), 200)].copy()
        for row in moved:
            for j in rng.choice(d, rng.integers(1, 4), replace=False):
                step = rng.choice([0.3, 0.03, 0.003])
                row[j] = rng.random() if rng.random() < 0.2 else np.clip(row[j] + step * rng.normal(), 0, 1 - 1e-12)
        u = np.concatenate([u, moved])
        v = np.concatenate([v, points.values(moved, scale)])
    return u[int(np.argmin(v))], float(v.min())


def search(points, scale, rng):
    u = rng.random((20000, len(points.s.space)))
    v = np.concatenate([points.values(u[i:i + 2000], scale) for i in range(0, len(u), 2000)])
    median = float(np.median(v))
    ends = [climb(points, scale, rng, u[i], v[i]) for i in islands(points, u)]
    place, best = min(ends, key=lambda end: end[1])
    return best, median, float(np.mean(v < best + 0.01 * (median - best))), points.config(place)


def main():
    path, scenario, target, *instances = sys.argv[1:]
    module = load(path)
    for instance in instances:
        points = Points(module.Surrogate(scenario, instance, target))
        scale = 1.0 if scenario.startswith("rbv2") else 100.0
        best, median, share, config = search(points, scale, np.random.default_rng(1))
        print(f"{scenario} {instance}: best {best:.9g}, median {median:.4g}, close {share:.4%}, at {config}", flush=True)


if __name__ == "__main__":
    main()
