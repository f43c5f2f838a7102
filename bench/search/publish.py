#!/usr/bin/env python3
"""Write what traces say into docs/: the tables of search.md, search-regret.svg and search-rank.svg.

    build/bench/search-quality --methods random,sobol,gp,gp:8 --csv ours.csv
    build/bench/search-quality --methods optuna-gp,optuna-tpe --csv peers.csv
    bench/search/publish.py ours.csv peers.csv

Standard library alone. The colours are those of Okabe and Ito, which the colour-blind can tell apart; text and grid
follow the reader's light or dark mode. Needs the built search-quality, which makes the tables and knows the
problems' scales. Tables stand between the two marks in search.md; what was there is replaced.
"""
import argparse
import collections
import csv
import math
import os
import random
import statistics
import subprocess
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LOOK = {"gp": ("#d55e00", 2.0), "gp:8": ("#e69f00", 1.6), "optuna-gp": ("#0085cc", 1.6),
        "optuna-tpe": ("#009e73", 1.6), "sobol": ("#cc79a7", 1.2), "random": ("#8c8c8c", 1.2)}
NAMES = {"gp": "Assay gp", "gp:8": "Assay gp, 8 slots", "optuna-gp": "Optuna GPSampler", "optuna-tpe": "Optuna TPE",
         "sobol": "Sobol", "random": "random"}
STYLE = """<style>
text{font:10px system-ui,sans-serif;fill:#57606a}.t{font-weight:600;fill:#24292f;font-size:11px}.g{stroke:#d0d7de;stroke-width:.6}
.b{opacity:.18;stroke:none}.l{fill:none;stroke-linejoin:round}
@media(prefers-color-scheme:dark){text{fill:#9da7b1}.t{fill:#e6edf3}.g{stroke:#3d444d}.b{opacity:.28}}
</style>"""
FLOOR = 1e-7
MARKS = "<!-- tables: bench/search/publish.py -->", "<!-- end of tables -->"


def read(paths):
    """{problem: {method: [trace by seed]}}; of two traces of a sweep the longer one counts."""
    runs = {}
    for path in paths:
        for row in csv.reader(open(path)):
            if row[0].startswith("#") or row[0] == "problem":
                continue
            problem, method, slots, seed, trial, regret, _ = row
            key = problem, method if slots == "1" else f"{method}:{slots}", int(seed), path
            runs.setdefault(key, []).append(float(regret))
    best = {}
    for (problem, method, seed, _), trace in runs.items():
        if len(trace) > len(best.get((problem, method, seed), [])):
            best[problem, method, seed] = trace
    out = collections.defaultdict(lambda: collections.defaultdict(dict))
    for (problem, method, seed), trace in best.items():
        out[problem][method][seed] = trace
    return out


def quartiles(values):
    values = sorted(values)
    return [values[min(len(values) - 1, round(q * (len(values) - 1)))] for q in (0.25, 0.5, 0.75)]


class Panel:
    """A frame with a scale on each axis."""

    def __init__(self, x, y, w, h, trials, low, high, log):
        self.x, self.y, self.w, self.h, self.trials, self.low, self.high, self.log = x, y, w, h, trials, low, high, log

    def at(self, trial, value):
        if self.log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return (self.x + self.w * (trial - 1) / (self.trials - 1), self.y + self.h * (1 - min(max(share, 0), 1)))

    def path(self, points):
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in (self.at(t, v) for t, v in points))

    def curve(self, rows, colour, width):
        """rows: (trial, low, middle, high)."""
        band = [(t, low) for t, low, _, _ in rows] + [(t, high) for t, _, _, high in reversed(rows)]
        return (f'<polygon class="b" fill="{colour}" points="{self.path(band)}"/>'
                f'<polyline class="l" stroke="{colour}" stroke-width="{width}" '
                f'points="{self.path([(t, m) for t, _, m, _ in rows])}"/>')

    def frame(self, ticks, labels):
        out = []
        for value, label in zip(ticks, labels):
            _, y = self.at(1, value)
            out.append(f'<line class="g" x1="{self.x}" x2="{self.x + self.w}" y1="{y:.1f}" y2="{y:.1f}"/>'
                       f'<text x="{self.x - 4}" y="{y + 3:.1f}" text-anchor="end">{label}</text>')
        for trial in (1, 30, 60, 90, 120):
            if trial <= self.trials:
                x, _ = self.at(trial, self.high)
                out.append(f'<text x="{x:.1f}" y="{self.y + self.h + 12}" text-anchor="middle">{trial}</text>')
        return "".join(out)


def legend(methods, x, y):
    out = []
    for m in methods:
        colour, width = LOOK.get(m, ("#8c8c8c", 1.2))
        out.append(f'<line x1="{x}" x2="{x + 18}" y1="{y - 3}" y2="{y - 3}" stroke="{colour}" stroke-width="{width + 1}"/>'
                   f'<text x="{x + 23}" y="{y}">{NAMES.get(m, m)}</text>')
        x += 45 + 6 * len(NAMES.get(m, m))
    return "".join(out)


def save(path, width, height, parts):
    with open(path, "w") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                f'height="{height}">{STYLE}{"".join(parts)}</svg>\n')


def power(value):
    e = round(math.log10(value))
    return str(10 ** e) if 0 <= e <= 3 else f"1e{e}"


def draw_regret(traces, scales, methods, trials, path):
    columns, w, h = 5, 190, 120
    problems = [p for p in scales if p in traces]
    steps = sorted({1, 2, 3, 4, 6, 8, *range(10, trials + 1, 5), trials})
    parts = [f'<text class="t" x="10" y="16">Best regret so far, by trials: median and quartiles of the seeds</text>',
             legend(methods, 10, 36)]
    for i, problem in enumerate(problems):
        rows = {}
        for m in methods:
            runs = [t for t in traces[problem].get(m, {}).values() if len(t) >= trials]
            if runs:
                floor = FLOOR * scales[problem]
                rows[m] = [(t, *(min(max(v, floor), 1e3 * scales[problem]) for v in quartiles([r[t - 1] for r in runs])))
                           for t in steps]
        if not rows:
            continue
        low = min(r[1] for c in rows.values() for r in c)
        high = max(max(r[3] for r in c if math.isfinite(r[3])) for c in rows.values())
        low, high = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high) - 0.3)
        panel = Panel(40 + i % columns * (w + 48), 66 + i // columns * (h + 48), w, h, trials, low, max(high, 10 * low), True)
        decades = round(math.log10(panel.high / panel.low))
        ticks = [panel.low * 10 ** k for k in range(0, decades + 1, max(1, math.ceil(decades / 5)))]
        parts.append(f'<text class="t" x="{panel.x}" y="{panel.y - 6}">{problem}</text>'
                     + panel.frame(ticks, map(power, ticks))
                     + "".join(panel.curve(rows[m], *LOOK.get(m, ("#8c8c8c", 1.2))) for m in reversed(methods) if m in rows))
    height = 66 + math.ceil(len(problems) / columns) * (h + 48)
    save(path, columns * (w + 48) + 10, height, parts)


def ranks_at(traces, scales, methods, trial):
    """For each problem the mean rank of each method over the seeds that all have."""
    out = []
    for problem, by_method in traces.items():
        seeds = set.intersection(*({s for s, t in by_method.get(m, {}).items() if len(t) >= trial} for m in methods))
        cells = []
        for seed in seeds:
            v = [max(by_method[m][seed][trial - 1], FLOOR * scales[problem]) for m in methods]
            cells.append([sum(b < a for b in v) + (sum(b == a for b in v) + 1) / 2 for a in v])
        if cells:
            out.append([statistics.fmean(c) for c in zip(*cells)])
    return out


def draw_rank(traces, scales, methods, trials, path):
    rng = random.Random(1)
    rows = {m: [] for m in methods}
    for trial in [1, *range(5, trials + 1, 5)]:
        table = ranks_at(traces, scales, methods, trial)
        draws = [[statistics.fmean(c) for c in zip(*rng.choices(table, k=len(table)))] for _ in range(500)]
        for i, m in enumerate(methods):
            spread = sorted(d[i] for d in draws)
            rows[m].append((trial, spread[12], statistics.fmean(r[i] for r in table), spread[487]))
    panel = Panel(50, 60, 620, 300, trials, len(methods), 1, False)
    ticks = list(range(1, len(methods) + 1))
    save(path, 700, 400, [
        f'<text class="t" x="10" y="16">Mean rank over {len(ranks_at(traces, scales, methods, trials))} problems, by trials '
        '(1 is best); bands: 95 %</text>', legend(methods, 10, 36), panel.frame(ticks, ticks),
        *(panel.curve(rows[m], *LOOK.get(m, ("#8c8c8c", 1.2))) for m in reversed(methods)),
        '<text x="360" y="392" text-anchor="middle">trials</text>'])


def write_tables(args, path):
    """Put the tables between the marks of the page."""
    lines = []
    for file in args.csv:
        lines += [line for line in open(file) if lines == [] or not line.startswith("problem,")]
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as together:
        together.writelines(lines)
        together.flush()
        tables = subprocess.run([args.program, "--no-run", "--markdown", "--csv", together.name, "--methods", args.methods,
                                 "--trials", str(args.trials)], capture_output=True, text=True, check=True).stdout
    page = open(path).read()
    before, rest = page.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    open(path, "w").write(f"{before}{MARKS[0]}\n{tables.strip()}\n{MARKS[1]}{after}")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("csv", nargs="+", help="traces of search-quality --csv")
    p.add_argument("--program", default=os.path.join(ROOT, "build/bench/search-quality"))
    p.add_argument("--methods", default="gp,gp:8,optuna-gp,optuna-tpe,sobol,random")
    p.add_argument("--trials", type=int, default=120)
    p.add_argument("--out", default=os.path.join(ROOT, "docs"))
    args = p.parse_args()
    listed = subprocess.run([args.program, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    scales = {row["problem"]: float(row["scale"]) for row in csv.DictReader(listed)}
    traces = {k: v for k, v in read(args.csv).items() if k in scales}
    methods = args.methods.split(",")
    draw_regret(traces, scales, methods, args.trials, os.path.join(args.out, "search-regret.svg"))
    draw_rank(traces, scales, methods, args.trials, os.path.join(args.out, "search-rank.svg"))
    write_tables(args, os.path.join(args.out, "search.md"))


if __name__ == "__main__":
    main()
