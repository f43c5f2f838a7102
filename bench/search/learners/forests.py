"""Forests fitted to real runs, as learners.c reads them.

A problem is a space (parameters as a sweep document has them, with `when`) and parts; one choice, or several, chooses
the part. A part is fitted to runs of random configurations under its values. A parameter that is not active in a run
has no value there: the forest sees ABSENT, above every value, and learners.c goes right where there is none.

A file: "parameters", the space as a sweep document; "optimum" and "best", the lowest value that was found, and where;
"parts", each with "when", the values that choose it, "columns", the parameters that it reads, and "trees": numbers in
preorder, column and threshold of a split (left where the value is at most that; of a choice, its index), -1 and value
of a leaf. A value is the sum of the leaves.
"""
import json
import math
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ABSENT = 1e30
MAX_BYTES = 300_000


def real(low, high, scale="log", **when):
    return {"type": "float", "min": low, "max": high, "scale": scale, **given(when)}


def whole(low, high, scale="linear", **when):
    return {"type": "int", "min": low, "max": high, "scale": scale, **given(when)}


def choice(*values, **when):
    return {"type": "categorical", "values": list(values), **given(when)}


def given(when):
    return {"when": when} if when else {}


def holds(condition, value):
    if isinstance(condition, dict):
        return value is not None and condition.get("min", -math.inf) <= value <= condition.get("max", math.inf)
    return value in (condition if isinstance(condition, list) else [condition])


def is_active(p, c):
    return all(holds(want, c.get(parent)) for parent, want in p.get("when", {}).items())


def draw(rng, p):
    if p["type"] == "categorical":
        return p["values"][rng.integers(len(p["values"]))]
    low, high, u = p["min"], p["max"], rng.random()
    if p["type"] == "int":
        low, high = low - 0.5, high + 0.5
    v = low * (high / low) ** u if p["scale"] == "log" else low + u * (high - low)
    return int(min(max(round(v), p["min"]), p["max"])) if p["type"] == "int" else float(v)


def configuration(rng, space, chosen):
    """A random one; parents come before what depends on them."""
    c = {}
    for name, p in space.items():
        if is_active(p, c):
            c[name] = chosen[name] if name in chosen else draw(rng, p)
    return c


def columns_of(space, chosen):
    """What can be active under these values, without those that are fixed by them."""
    def can(name):
        return all(name_of not in chosen or holds(want, chosen[name_of])
                   for name_of, want in space[name].get("when", {}).items())
    return [name for name in space if name not in chosen and can(name)]


def number(space, c, name):
    if name not in c:
        return ABSENT
    return space[name]["values"].index(c[name]) if space[name]["type"] == "categorical" else c[name]


def forest(seed, leaves):
    """An average of trees, which never leaves the range of what was measured."""
    from sklearn.ensemble import RandomForestRegressor
    return RandomForestRegressor(24, max_leaf_nodes=leaves, min_samples_leaf=2, max_features=0.7, random_state=seed)


def preorder(tree, share):
    out = []

    def visit(i):
        if tree.children_left[i] < 0:
            out.extend([-1, float(f"{share * tree.value[i, 0, 0]:.5g}")])
            return
        out.extend([int(tree.feature[i]), float(f"{tree.threshold[i]:.6g}")])
        visit(tree.children_left[i])
        visit(tree.children_right[i])

    visit(0)
    return out


class Sum:
    """A part as it is stored: the same sums as learners.c computes."""

    def __init__(self, space, part):
        self.space, self.part = space, part
        self.names = part["columns"]
        self.cuts = [set() for _ in self.names]
        for tree in part["trees"]:
            for column, threshold in zip(tree[::2], tree[1::2]):
                if column >= 0:
                    self.cuts[column].add(threshold)

    def values(self, x):
        x = self.settled(x)
        out = np.zeros(len(x))
        for tree in self.part["trees"]:
            self.add(tree, 0, x, np.arange(len(x)), out)
        return out

    def settled(self, x):
        """The same rows, with what is not active ABSENT."""
        x = x.copy()
        for j, name in enumerate(self.names):
            for parent, want in self.space[name].get("when", {}).items():
                if parent not in self.part["when"]:
                    x[~self.met(x[:, self.names.index(parent)], self.space[parent], want), j] = ABSENT
        return x

    @staticmethod
    def met(column, p, want):
        if isinstance(want, dict):
            return (column >= want.get("min", -math.inf)) & (column <= want.get("max", ABSENT / 2))
        wanted = want if isinstance(want, list) else [want]
        return np.isin(column, [p["values"].index(v) for v in wanted] if "values" in p else wanted)

    def add(self, tree, at, x, rows, out):
        """The end of the subtree that begins at `at`."""
        if tree[at] < 0:
            out[rows] += tree[at + 1]
            return at + 2
        left = x[rows, tree[at]] <= tree[at + 1]
        at_right = self.add(tree, at + 2, x, rows[left], out)
        return self.add(tree, at_right, x, rows[~left], out)

    def choices(self, j):
        """A value of the column in every interval between two cuts."""
        p = self.space[self.names[j]]
        if p["type"] == "categorical":
            return np.arange(len(p["values"]))
        ends = [p["min"], *sorted(c for c in self.cuts[j] if p["min"] < c < p["max"]), p["max"]]
        places = (np.array(ends[:-1]) + np.array(ends[1:])) / 2
        return np.unique(np.round(np.append(places, ends[1:]))) if p["type"] == "int" else places

    def lowest(self, rng, descents, most):
        """Of 20,000 random points, and of the best after moves of one and then two columns until none is better; at
        most `most` moves of a column, or of two, are tried."""
        d = len(self.names)
        places = [self.choices(j) for j in range(d)]
        x = np.stack([rng.choice(places[j], 20000) for j in range(d)], axis=1).astype(float)
        values = self.values(x)
        return min((self.descend(u.copy(), places, rng, most) for u in x[np.argsort(values)[:descents]]),
                   key=lambda found: found[0])

    def descend(self, u, places, rng, most):
        value, d = self.values(u[None])[0], len(u)
        moves = [(j,) for j in range(d)] + [(i, j) for i in range(d) for j in range(i)]
        again = True
        while again:
            again = False
            for move in moves:
                grid = np.stack(np.meshgrid(*[places[j] for j in move]), axis=-1).reshape(-1, len(move))
                if len(grid) > most:
                    grid = rng.permutation(grid)[:most]
                x = np.repeat(u[None], len(grid), axis=0)
                x[:, move] = grid
                found = self.values(x)
                if found.min() < value - 1e-12:
                    value, u, again = found.min(), x[found.argmin()], True
        return float(value), self.settled(u[None])[0]


def value_of(p, v):
    return p["values"][int(v)] if p["type"] == "categorical" else int(v) if p["type"] == "int" else float(f"{v:.6g}")


def part_of(space, chosen, n, run, rng, seed, leaves=40, descents=8, most=300):
    """(lowest, where, part) of a forest fitted to n runs; run: (configuration, error) of each stage of one run."""
    from sklearn.model_selection import cross_val_predict
    names = columns_of(space, chosen)
    rows = [row for _ in range(n) for row in run(configuration(rng, space, chosen))]
    x = np.array([[number(space, c, name) for name in names] for c, _ in rows], float)
    y = np.array([v for _, v in rows])
    model = forest(seed, leaves).fit(x, y)
    part = {"when": chosen, "columns": names,
            "trees": [preorder(t.tree_, 1 / len(model.estimators_)) for t in model.estimators_]}
    part_sum = Sum(space, part)
    assert np.abs(part_sum.values(x) - model.predict(x)).max() < 2e-3
    held_out = cross_val_predict(forest(seed, leaves), x, y, cv=5)
    r2 = 1 - np.mean((held_out - y) ** 2) / y.var()
    low, u = part_sum.lowest(rng, descents, most)
    print(f"  {' '.join(map(str, chosen.values()))}: {len(y)} rows, lowest {y.min():.4f}, median {np.median(y):.4f}, "
          f"lowest sum {low:.4f}, R2 held out {r2:.2f}", file=sys.stderr, flush=True)
    best = {name: value_of(space[name], v) for name, v in zip(names, u) if v < ABSENT}
    return low, {**chosen, **best}, part


def write(name, about, space, made):
    """NAME.json beside this file; made: what part_of returned."""
    low, best, _ = min(made, key=lambda one: one[0])
    doc = {"about": about, "parameters": space, "optimum": math.floor(low * 1e9) / 1e9, "best": best,
           "parts": [part for _, _, part in made]}
    text = json.dumps(doc, separators=(",", ":")) + "\n"
    assert len(text) <= MAX_BYTES, f"{name}: {len(text)} bytes"
    with open(os.path.join(HERE, name + ".json"), "w") as out:
        out.write(text)
