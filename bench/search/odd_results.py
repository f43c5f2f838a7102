#!/usr/bin/env python3
"""What misleads a search, on small functions of this file: wrong values, noise that differs by place, small feasible
regions. It drives the search itself (bench/search/asker.c), without a server.

    odd_results.py BUILD wrong|noise|failures [--methods gp,tpe,random] [--seeds 8] [--first-seed 1] [--only TEXT]

Figures are mean log10 regret, in units of the median regret of random points, with a floor of 1e-4, and the standard
error. `wrong`: of the best honest result, 40 trials. `noise`: of the trial that the sweep shows as its best, without its
noise, 80 trials; then how often the interval of the mean holds the value. `failures`: sweeps that found a feasible
trial within 100, and the share of the trials after it that are feasible."""
import argparse
import hashlib
import json
import math
import os
import random
import statistics

from peer_protocol import Asked

FLOOR, DRAWS = 1e-4, 2000


def keyed(*key):
    return random.Random(hashlib.md5(repr(key).encode()).hexdigest())


def unit():
    return {"type": "float", "min": 0, "max": 1}


def units(n):
    return {f"x{i}": unit() for i in range(n)}


def category(*values):
    return {"type": "categorical", "values": list(values)}


def integer(low, high):
    return {"type": "int", "min": low, "max": high}


def place(name, n, low=0.15, high=0.85):
    r = keyed("place", name)
    return [r.uniform(low, high) for _ in range(n)]


def away(p, at):
    """Squared distance."""
    return sum((p[f"x{i}"] - v) ** 2 for i, v in enumerate(at))


class Problem:
    """value(params) is the truth, NaN where a trial fails; told(value, params, draw, number) what the search hears, None:
    it fails. bound(params) <= limit is an outcome constraint."""

    def __init__(self, name, space, value, told=None, best=0.0, bound=None, limit=0.0):
        self.name, self.space, self.value, self.told, self.best, self.bound, self.limit = name, space, value, told, best, bound, limit
        r = keyed(name, "scale")
        values = sorted(v for v in (value(self.draw(r)) for _ in range(DRAWS)) if v == v)
        self.scale = values[len(values) // 2] - best

    def draw(self, r):
        return {n: r.uniform(s["min"], s["max"]) if s["type"] == "float" else r.randint(s["min"], s["max"]) if s["type"] == "int"
                else r.choice(s["values"]) for n, s in self.space.items()}

    def regret(self, value):
        return math.log10(max(FLOOR, (value - self.best) / self.scale))


class Search(Asked):
    def __init__(self, build):
        super().__init__([os.path.join(build, "bench", "search-ask")])

    def sweep(self, problem, method, seed, trials):
        """[(params, truth, told, reason)], and the incumbent at the end."""
        bounds = {"outcomes": [["-inf", problem.limit]]} if problem.bound else {}
        self.call("begin", method=method, parameters=problem.space, seed=seed, **bounds)
        draw, done = keyed(problem.name, seed), []
        while len(done) < trials:
            asked = self.call("ask")
            if "exhausted" in asked:
                break
            params, number = asked["params"], asked["number"]
            truth = problem.value(params)
            told = problem.told(truth, params, draw, number) if problem.told else truth
            result = {} if told is None else {"value": repr(float(told))}
            if problem.bound:
                result["outcomes"] = [repr(float(problem.bound(params)))]
            self.call("tell", number=number, **result)
            done.append((params, truth, told, asked["reason"]))
        best = self.call("best")
        self.call("end")
        return done, best


# ---- wrong values ----

def branin(p):
    x, y = 15 * p["x0"] - 5, 15 * p["x1"]
    a = y - 5.1 / (4 * math.pi ** 2) * x * x + 5 / math.pi * x - 6
    return a * a + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10 - 0.397887357729739


def mixed(p):
    k = "abcd".index(p["k"])
    return (0.4, 0.1, 0.3, 0)[k] + (p["x0"] - 0.2 - 0.2 * k) ** 2 + 0.5 * abs(p["x1"] - 0.7)


FUNCTIONS = {"sphere": (units(4), lambda p: away(p, [0.3] * 4)), "branin": (units(2), branin),
             "mixed": ({"k": category("a", "b", "c", "d"), **units(2)}, mixed)}


def at(number, wrong):
    return lambda v, p, r, t: wrong if t == number else v


def every(period, phase, wrong):
    return lambda v, p, r, t: wrong if t % period == phase else v


def anywhere(share, *wrong):
    return lambda v, p, r, t: r.choice(wrong) if r.random() < share else v


WRONG = {
    "none": None, "first -1e8": at(0, -1e8), "third -20": at(2, -20), "third -1000": at(2, -1e3), "third -1e8": at(2, -1e8),
    "third 1e8": at(2, 1e8), "third -1e300": at(2, -1e300), "twentieth -1e8": at(20, -1e8),
    "five -1e5": lambda v, p, r, t: -1e5 if t in (3, 9, 15, 21, 27) else v,
    "every fifth 100": every(5, 2, 100), "every fifth 1e8": every(5, 2, 1e8), "every third 1e300": every(3, 1, 1e300),
    "every second 1e6": every(2, 1, 1e6), "every third -1e5": every(3, 1, -1e5), "5% -1e5": anywhere(0.05, -1e5),
    "15% 1e4, either": anywhere(0.15, 1e4, -1e4), "30% 1e6": anywhere(0.3, 1e6), "30% -1e6": anywhere(0.3, -1e6),
    "x0 > 0.6: 1e8": lambda v, p, r, t: 1e8 if p["x0"] > 0.6 else v,
}


def wrong_values():
    for name, told in WRONG.items():
        for function, (space, value) in FUNCTIONS.items():
            yield Problem(f"{name}, {function}", space, value, told)


def judge_wrong(search, problem, method, seeds):
    ends = []
    for seed in seeds:
        done, _ = search.sweep(problem, method, seed, 40)
        ends.append(problem.regret(min(v for _, v, told, _ in done if told == v)))
    return of(ends)


# ---- noise by place ----

def student(r, freedom):
    return r.gauss(0, 1) / math.sqrt(r.gammavariate(freedom / 2, 2) / freedom)


def accuracy(rows, at_best):
    def told(v, p, r, t):
        right = 0.9 - 0.4 * (1 - math.exp(-2 * away(p, at_best)))
        return -sum(r.random() < right for _ in range(rows)) / rows
    return told


def noises():
    three, four, good, decoy = place("three", 3), place("four", 4), place("good", 4, 0.1, 0.4), place("decoy", 4, 0.6, 0.9)

    def bowl(p):
        return away(p, three)

    def two(p):
        return min(1.1 * away(p, good), 0.1 + 0.7 * away(p, decoy))

    def near(p, centre, most):
        return 0.01 + most * math.exp(-away(p, centre) / 0.1)
    yield Problem("multiplied", units(3), lambda p: 0.05 + bowl(p), lambda v, p, r, t: v * (1 + 0.5 * r.gauss(0, 1)), 0.05)
    yield Problem("student 2", units(3), bowl, lambda v, p, r, t: v + 0.1 * student(r, 2))
    yield Problem("cauchy", units(3), bowl, lambda v, p, r, t: v + 0.05 * student(r, 1))
    yield Problem("laplace", units(3), bowl, lambda v, p, r, t: v + 0.15 * (r.expovariate(1) - r.expovariate(1)))
    yield Problem("above a threshold", units(3), bowl, lambda v, p, r, t: v + (0.3 * r.gauss(0, 1) if p["x0"] > three[0] + 0.15 else 0))
    yield Problem("near the best", units(3), bowl, lambda v, p, r, t: v + (0.2 * r.gauss(0, 1) if bowl(p) < 0.1 else 0))
    for rows in (50, 300):
        yield Problem(f"accuracy of {rows} rows", units(4), lambda p: 0.4 * (1 - math.exp(-2 * away(p, four))) - 0.9,
                      accuracy(rows, four), -0.9)
    yield Problem("at a decoy", units(4), two, lambda v, p, r, t: v + near(p, decoy, 0.5) * r.gauss(0, 1))
    yield Problem("at the best of two", units(4), two, lambda v, p, r, t: v + near(p, good, 0.2) * r.gauss(0, 1))
    yield Problem("under one value", {"k": category("a", "b", "c"), **units(3)}, lambda p: {"a": 0, "b": 0.08, "c": 0.2}[p["k"]] + bowl(p),
                  lambda v, p, r, t: v + (0.3 if p["k"] == "b" else 0.01) * r.gauss(0, 1))


def judge_noise(search, problem, method, seeds):
    ends, held, known = [], 0, 0
    for seed in seeds:
        done, best = search.sweep(problem, method, seed, 80)
        truth = done[best["number"]][1]
        ends.append(problem.regret(truth))
        if best["by_model"]:
            known += 1
            held += abs(best["mean"] - truth) <= 1.96 * best["deviation"]
    return of(ends) + (f" {held}/{known}" if known else "")


# ---- small feasible regions ----

def failing(name, space, outside, value, kind="nan"):
    def truth(p):
        return value(p) if outside(p) <= 0 else math.nan
    if kind == "outcome":
        return Problem(name, space, truth, lambda v, p, r, t: value(p), bound=outside)
    lost = 0.2 if kind == "chance" else 0
    return Problem(name, space, truth, lambda v, p, r, t: None if v != v or r.random() < lost else v)


def regions():
    ball = place("ball", 4, 0.3, 0.7)
    first, second = place("first", 3), place("second", 3)

    def beyond(p, centre, half):
        return max(abs(p[f"x{i}"] - v) for i, v in enumerate(centre)) - half

    def bowl(centre):
        return lambda p: away(p, centre)
    yield failing("box of 2%", units(3), lambda p: beyond(p, first, 0.136), bowl([v + 0.07 for v in first]))
    for kind in ("nan", "chance", "outcome"):
        yield failing(f"ball of 3%, {kind}", units(4), lambda p: math.sqrt(away(p, ball)) - 0.28, bowl([v + 0.1 for v in ball]), kind)
    yield failing("diagonal of 2%", units(2), lambda p: abs(p["x0"] - p["x1"]) - 0.01, bowl([0.8, 0.8]))
    yield failing("two islands", units(3), lambda p: min(beyond(p, first, 0.1), beyond(p, second, 0.12)), bowl(first))
    yield failing("under one value", {"k": category(*"abcde"), **units(3)}, lambda p: beyond(p, [0.3, 0.6, 0.5], 0.2) if p["k"] == "d" else 1,
                  bowl([0.25, 0.7, 0.6]))
    yield failing("whole numbers", {"n": integer(1, 64), "m": integer(0, 40), "x0": unit()},
                  lambda p: max(abs(p["n"] - 40) - 3, abs(p["m"] - 9) - 2), lambda p: ((p["n"] - 42) / 64) ** 2 + (p["x0"] - 0.2) ** 2)
    yield failing("corner of 10", units(10), lambda p: max(p.values()) - 0.68, bowl([0.1, 0.2, 0.05, 0.3, 0.5, 0.6, 0.1, 0.1, 0.2, 0.3]))
    yield failing("sum of 8", units(8), lambda p: sum(p.values()) - 2.35, bowl([0.1] * 4 + [0.3] * 4))


def judge_failures(search, problem, method, seeds):
    ends, after, found = [], [], 0
    for seed in seeds:
        done, _ = search.sweep(problem, method, seed, 100)
        good = [v == v and told is not None for _, v, told, _ in done]
        if any(good):
            found += 1
            rest = good[good.index(True) + 1:]
            after += [sum(rest) / len(rest)] if rest else []
            ends.append(problem.regret(min(v for ok, (_, v, _, _) in zip(good, done) if ok)))
    share = f"{statistics.mean(after):.2f}" if after else "-"
    return f"{found}/{len(seeds)} {share} {of(ends)}"


def of(values):
    if not values:
        return "-"
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0
    return f"{statistics.mean(values):.2f} ({error:.2f})"


KINDS = {"wrong": (wrong_values, judge_wrong), "noise": (noises, judge_noise), "failures": (regions, judge_failures)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--methods", default="gp,tpe,random")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    problems, judge = KINDS[given.kind]
    methods, seeds = given.methods.split(","), range(given.first_seed, given.first_seed + given.seeds)
    print("| problem | " + " | ".join(methods) + " |\n| --- |" + " ---: |" * len(methods))
    with Search(given.build) as search:
        for problem in problems():
            if given.only in problem.name:
                print(f"| {problem.name} | " + " | ".join(judge(search, problem, m, seeds) for m in methods) + " |", flush=True)


if __name__ == "__main__":
    main()
