#!/usr/bin/python3
"""What early stopping returns where noise is as large as the differences (the problems flat_N of mf.py), without the luck
of the draw.

    stopping_noise.py [--build DIR] [--mf DIR] [--problems flat_2,...] [--workers 8] [--seeds 12] [--budget 50]

The trial with the lowest of some fifty noisy values is drawn by noise, so that a median of ten runs has a standard error
of a fifth. Here the noise of the trials that ran in full is drawn 400 times again after each run, and the regret of the
lowest value is averaged. Printed in thousandths, with the standard error over the seeds, beside random full trainings."""
import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DRAWS = 400


def expected_regret(mf, problem, optimiser, workers, budget, seed, best, rng):
    """Run once; the mean regret of the lowest value, and of all trials in full."""
    params, full, ask = {}, set(), optimiser.ask

    def remembering():
        a = ask()
        if "id" in a:
            params.setdefault(str(a["id"]), a["params"])
        return a

    def watch(_clock, trial, epoch, _value, _action):
        if epoch >= mf.MAXE:
            full.add(trial)

    optimiser.ask = remembering
    mf.simulate(problem, optimiser, workers, budget, seed, best, log=watch)
    regrets = problem.finals([params[i] for i in sorted(full, key=int)]) - best
    values = regrets + problem.noise * rng.normal(size=(DRAWS, len(regrets)))
    return regrets[values.argmin(axis=1)].mean(), regrets.mean()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--mf", default=os.path.join(os.path.dirname(os.path.dirname(HERE)), "shared", "bench", "mf"))
    ap.add_argument("--build", default=os.path.join(os.path.dirname(HERE), "build"))
    ap.add_argument("--problems", default="flat_1,flat_2,flat_6,flat_7,flat_8,flat_9")
    ap.add_argument("--workers", type=int, default=8)
    ap.add_argument("--seeds", type=int, default=12)
    ap.add_argument("--budget", type=int, default=50)
    args = ap.parse_args()
    if not os.path.exists(os.path.join(args.mf, "mf.py")):
        sys.exit(f"no mf.py in {args.mf}: name its folder with --mf")
    sys.path.insert(0, args.mf)
    import mf
    import numpy as np
    early = [f"{args.build}/bench/stopping", "--early", '{"method": "asha"}']
    optimisers = {"random": lambda: mf.make("random", {}), "gp with asha": lambda: mf.Pipe(early)}
    for name in args.problems.split(","):
        problem, means = mf.problem(name), {}
        best = (mf.refs().get(name) or mf.ref(problem))["best"]
        for what, make in optimisers.items():
            rng = np.random.default_rng(1)
            rows = 1e3 * np.array([expected_regret(mf, problem, make(), args.workers, args.budget, s, best, rng) for s in range(args.seeds)])
            means[what] = rows[:, 0].mean()
            print(f"{name} {what:<13} {means[what]:.2f} ({rows[:, 0].std() / args.seeds ** 0.5:.2f}), all trials in full {rows[:, 1].mean():.2f}", flush=True)
        print(f"{name} {means['gp with asha'] / means['random']:.2f} times random's", flush=True)


if __name__ == "__main__":
    main()
