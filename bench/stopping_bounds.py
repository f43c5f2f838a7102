#!/usr/bin/python3
"""What bounds early stopping on the learning curves of networks: how soon a sweep is at what random search reaches with
50 full trainings, if parts of it knew what no trial says (bench/stopping.c, mf.py).

    stopping_bounds.py [--build DIR] [--mf DIR] [--problems NAME,...] [--seeds 5] [--ways NAME,...] [--each]

Printed for each way: 1/x of the epochs of random's 50 trainings, geometric mean over the problems of the median over the
seeds (not reached within 50 trainings counts as 100), and how many trials there were by then, median and mean. A way is

    RULE            of METHODS of stopping.py, or of mf.py: nothing is known beside the values
    told-K[-dN]     gp in full, with a design of N. At epoch K it learns the true last value, and each trial that would
                    not be the best ends. At least so many epochs are needed by any rule that decides at epoch K or later
    rule-K[-dN]     gp learns what trials report, with a design of 24 or N; at epoch K an oracle decides as above
    search[-dN]     the rule asha decides; the search learns the true last value of each trial that is stopped or waits
    random-K        random search, where an oracle decides as above at epoch K"""
import argparse
import json
import os
import re
import sys
from statistics import geometric_mean, mean, median

import stopping

HERE = os.path.dirname(os.path.abspath(__file__))
BUDGET = 50  # full trainings
NEVER = 100


class Watched:
    """An optimiser behind an oracle: at epoch `at` (None: nowhere) it ends each trial that would not be the best. The run
    ends where the best of the trials that ran to the end is as good as `target`."""

    def __init__(self, mf, problem, seed, inner, target, at=None, tells=None):
        self.mf, self.problem, self.seed, self.inner, self.target, self.at, self.tells = mf, problem, seed, inner, target, at, tells
        self.curves, self.best, self.top, self.top_value, self.epochs, self.hit = {}, float("inf"), 0, None, 0, None

    def init(self, *args):
        self.inner.init(*args)

    def ask(self):
        if self.hit:
            return {"done": True}
        a = self.inner.ask()
        i = str(a["id"])
        if i not in self.curves:
            p = self.problem
            self.curves[i] = p.lazy(a["params"]) if hasattr(p, "lazy") else self.mf.Whole(*p.curve(a["params"]))
        return a

    def last_value(self, i):
        """What the trial would report at the end."""
        noise = self.mf.np.random.default_rng([self.seed, 7, list(self.curves).index(i)]).normal(size=self.mf.MAXE + 1) * self.problem.noise
        return float(self.curves[i].final() + noise[self.mf.MAXE])

    def look(self, i, epoch, value):
        self.epochs += 1
        if epoch > self.top or (epoch == self.top and value < self.top_value):
            self.top, self.top_value = epoch, value
            if epoch == self.mf.MAXE and self.curves[i].final() <= self.target:
                self.hit = (self.epochs, len(self.curves))

    def report(self, i, epoch, value):
        self.look(i, epoch, value)
        if self.tells == "final":
            return self.inner._call({"op": "report", "id": i, "epoch": epoch, "value": value, "final": self.last_value(i)})["action"]
        if self.at is None:
            return self.inner.report(i, epoch, value)
        goes_on = epoch != self.at or self.last_value(i) < self.best
        if epoch == self.at:
            self.best = min(self.best, self.last_value(i))
        if self.tells == "decision":
            return self.inner._call({"op": "report", "id": i, "epoch": epoch, "value": value, "decision": "continue" if goes_on else "stop"})["action"]
        if goes_on and epoch < self.mf.MAXE:
            return "continue"
        return "stop" if self.inner.report(i, self.mf.MAXE, self.last_value(i)) and epoch < self.mf.MAXE else "continue"

    def end(self):
        try:
            self.inner.end()
        except AttributeError:  # those of peers.py have none
            pass


def watched(args, mf, way, problem, seed, target):
    helper = [os.path.join(args.build, "bench", "stopping")]
    m = re.fullmatch(r"(told|rule|random|search)(?:-(\d+))?(?:-d(\d+))?", way)
    if way in stopping.METHODS:
        return Watched(mf, problem, seed, mf.Pipe(stopping.command_words(args.build, way)), target)
    if not m or way == "random":
        return Watched(mf, problem, seed, mf.make(way, {}), target)
    kind, at = m[1], int(m[2]) if m[2] else None
    command = helper + (["--design", m[3]] if m[3] else []) + (["--search", "random"] if kind == "random" else [])
    if kind in ("rule", "search"):
        command += ["--early", json.dumps({"method": "asha"})]
    return Watched(mf, problem, seed, mf.Pipe(command), target, at, {"rule": "decision", "search": "final"}.get(kind))


def target_of(mf, problem, seeds):
    """The median over the seeds of what random search returns after 50 full trainings."""
    return median(mf.simulate(problem, mf.make("random", {}), 1, BUDGET, s, 0.0)["final"] for s in range(seeds))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--mf", default=os.path.join(os.path.dirname(os.path.dirname(HERE)), "shared", "bench", "mf"))
    ap.add_argument("--build", default=os.path.join(os.path.dirname(HERE), "build"))
    ap.add_argument("--problems", default=",".join(p for p in stopping.PARTS["report"] if p.startswith("lcbench")))
    ap.add_argument("--ways", default="random,assay-full,assay-asha,told-1,told-3,told-9,rule-3,rule-9,search")
    ap.add_argument("--seeds", type=int, default=5)
    ap.add_argument("--each", action="store_true")
    args = ap.parse_args()
    sys.path.insert(0, args.mf)
    import mf
    problems = {name: mf.problem(name) for name in args.problems.split(",")}
    targets = {name: target_of(mf, p, args.seeds) for name, p in problems.items()}
    for way in args.ways.split(","):
        epochs, trials = {}, {}
        for name, p in problems.items():
            hits = []
            for s in range(args.seeds):
                w = watched(args, mf, way, p, s, targets[name])
                mf.simulate(p, w, 1, BUDGET, s, 0.0)
                hits.append(w.hit or (NEVER * mf.MAXE, len(w.curves)))
            epochs[name], trials[name] = median(h[0] for h in hits), [h[1] for h in hits]
        share = {name: BUDGET * mf.MAXE / e for name, e in epochs.items()}
        n = [t for name in problems for t in trials[name]]
        at = re.search(r"(?:told|rule|random)-(\d+)", way)
        if at:  # if the last one alone had run to the end
            k = int(at[1])
            least = geometric_mean(BUDGET * mf.MAXE / (median(t) * k + mf.MAXE - k) for t in trials.values())
        print(f"{way:<14} 1/{geometric_mean(share.values()):.2f}  trials {median(n):g}, mean {mean(n):.1f}" + (f"  floor 1/{least:.1f}" if at else "") +
              ("  " + " ".join(f"{k}=1/{v:.1f}({median(trials[k]):g})" for k, v in share.items()) if args.each else ""), flush=True)


if __name__ == "__main__":
    main()
