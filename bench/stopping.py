#!/usr/bin/python3
"""The quality of early stopping: the regret that is left after a budget of epochs, on the benchmark mf.py (learning
curves of lcbench and five synthetic families), with the search and the rules of Assay (bench/stopping.c) beside the
benchmark's own reference methods.

    stopping.py [--build DIR] [--mf DIR] [--results FILE] [--part tune|report|all] [--workers 1,8] [--seeds 5]
                            [--methods NAME,...] [--jobs 1] [--problems NAME,...]

--build    the build folder (default: build of the checkout)
--mf       the folder of mf.py (default: ../shared/bench/mf beside the checkout)
--results  a file of results, which are kept and not run again (default: a temporary file)
--part     which problems: the rules' constants were chosen on `tune`; `report` is the other half
--methods  of METHODS below, or of mf.py

Regret left is the median over the seeds, as a share of that of random full trainings, and its geometric mean over the
problems. The last column counts the problems where it is more than 1.1 times random's. With several workers, also how
many of them train on average: the virtual speed."""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = {
    "tune": ["lcbench_126029", "lcbench_167104", "lcbench_167149", "lcbench_167181", "cross_1", "steps_1", "diverge_1", "slow_1", "flat_1"],
    "report": ["lcbench_167190", "lcbench_189354", "lcbench_189865", "lcbench_3945", "cross_2", "steps_2", "diverge_2", "slow_2", "flat_2"],
}
PARTS["all"] = PARTS["tune"] + PARTS["report"]
# The search, and the section early_stopping of the document (None: every trial in full).
METHODS = {
    "assay-full": ("gp", None),
    "assay-asha": ("gp", {"method": "asha"}),
    "assay-asha-3": ("gp", {"method": "asha", "min_steps": 3}),
    "assay-hyperband": ("gp", {"method": "hyperband"}),
    "assay-pasha": ("gp", {"method": "pasha"}),
    "assay-median": ("gp", {"method": "median"}),
    "assay-curve": ("gp", {"method": "curve"}),
    "assay-stop": ("gp", {"method": "asha", "mode": "stop"}),
    "random-asha": ("random", {"method": "asha"}),
    "random-asha-3": ("random", {"method": "asha", "min_steps": 3}),
    "random-stop": ("random", {"method": "asha", "mode": "stop"}),
}


def command_words(build, name):
    search, early = METHODS[name]
    command = [os.path.join(build, "bench", "stopping"), "--search", search]
    return command + (["--early", json.dumps(early)] if early is not None else [])


def run_cells(args, methods, problems, workers):
    """All (method, problem, seed), at most --jobs at a time; mf.py skips what the results file has."""
    chunks = [(m, p) for p in problems for m in methods]
    running = []
    for m, p in chunks:
        while len(running) >= args.jobs:
            if running.pop(0).wait() != 0:
                sys.exit("mf.py failed")
        command = [sys.executable, os.path.join(args.mf, "mf.py"), "run", "--opt", m, "--set", p, "--workers", str(workers),
                   "--budget", str(args.budget), "--seeds", str(args.seeds)]
        if m in METHODS:
            command += ["--cmd", f"{m}={shlex.join(command_words(args.build, m))}"]
        running.append(subprocess.Popen(command, env=dict(os.environ, MF_RESULTS=args.results)))
    for r in running:
        r.wait()


def figures(args, mf, methods, problems, workers):
    from statistics import geometric_mean, median
    have = mf.load(args.results)
    bad = sorted({f"{k[0]} on {k[2]}: {r['error']}" for k, r in have.items() if "error" in r and k[0] in methods and k[1] == workers and k[2] in problems})
    cap = lambda p, x: min(max(x, 0.0), 100.0 if p.startswith("lcb") else 1.0)

    def left(m, p, b):
        rows = [r for (o, w, q, s), r in have.items() if (o, w, q) == (m, workers, p) and s < args.seeds and "error" not in r]
        return median(cap(p, mf.regret_at(r["traj"], b * mf.MAXE)) for r in rows) if rows else float("nan")

    budgets = [b for b in (10, 20, 50) if b <= args.budget]
    base = {(p, b): left("random", p, b) for p in problems for b in budgets}
    print(f"\n{workers} workers, {len(problems)} problems ({args.part}), {args.seeds} seeds; regret left, random full trainings = 1")
    print(f"{'method':<18}" + "".join(f"{'at ' + str(b):>8}" for b in budgets) + f"{'lcbench':>9}{'others':>8}  worse than 1.1 at {budgets[-1]}")
    for m in methods:
        e = lambda p, b: 0.01 * base[p, b] + 1e-12  # one per cent of random's is equal to nothing left
        score = {(p, b): (left(m, p, b) + e(p, b)) / (base[p, b] + e(p, b)) for p in problems for b in budgets}
        mean = lambda b, ps: geometric_mean([score[p, b] for p in ps]) if ps else float("nan")
        top = budgets[-1]
        worse = [f"{p} x{score[p, top]:.1f}" for p in problems if score[p, top] > 1.1]
        print(f"{m:<18}" + "".join(f"{mean(b, problems):8.3f}" for b in budgets) +
              f"{mean(top, [p for p in problems if p.startswith('lcb')]):9.3f}{mean(top, [p for p in problems if not p.startswith('lcb')]):8.3f}  " +
              (", ".join(worse) or "none"))
        util = [r["util"] for (o, w, q, s), r in have.items() if (o, w) == (m, workers) and q in problems and s < args.seeds and "error" not in r]
        if workers > 1 and util:
            print(f"   virtual speed {workers * median(util):.2f} times one worker's (least {workers * min(util):.2f})")
        if args.each:
            print("   " + " ".join(f"{p}={score[p, top]:.2f}" for p in problems))
    for line in bad:
        print("failed: " + line)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--mf", default=os.path.join(os.path.dirname(os.path.dirname(HERE)), "shared", "bench", "mf"))
    ap.add_argument("--build", default=os.path.join(os.path.dirname(HERE), "build"))
    ap.add_argument("--results")
    ap.add_argument("--part", choices=list(PARTS), default="report")
    ap.add_argument("--problems")
    ap.add_argument("--workers", default="1,8")
    ap.add_argument("--seeds", type=int, default=5)
    ap.add_argument("--budget", type=int, default=50)
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--each", action="store_true", help="the share of every problem, too")
    ap.add_argument("--methods", default="random,hyperband,bohb,asha-r3,assay-full,assay-asha")
    args = ap.parse_args()
    if not os.path.exists(os.path.join(args.mf, "mf.py")):
        sys.exit(f"no mf.py in {args.mf}: name its folder with --mf")
    sys.path.insert(0, args.mf)
    import mf
    with tempfile.TemporaryDirectory() as folder:
        args.results = args.results or os.path.join(folder, "results.jsonl")
        problems = args.problems.split(",") if args.problems else PARTS[args.part]
        methods = args.methods.split(",")
        for workers in map(int, args.workers.split(",")):
            run_cells(args, ["random"] + [m for m in methods if m != "random"], problems, workers)
            figures(args, mf, methods, problems, workers)


if __name__ == "__main__":
    main()
