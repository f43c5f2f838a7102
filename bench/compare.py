#!/usr/bin/env python3
"""Compare two builds: compare.py BUILD_BEFORE BUILD_AFTER [--rounds N] BENCHMARK [OPTION…]

Runs build/bench/BENCHMARK --json OPTION… of both builds in turn, N times (5), the order swapped from round to
round, and prints for each case the medians, their ratio, and the ratio of the best values (the smallest of times,
the largest of rates). On a noisy machine a change is one that both ratios show."""
import json
import statistics
import subprocess
import sys


def measure(build, bench, options, into):
    done = subprocess.run([f"{build}/bench/{bench}", "--json", *options], capture_output=True, text=True, check=True)
    for line in done.stdout.split("\n"):
        if line.startswith("{"):
            row = json.loads(line)
            if row["value"] is not None:
                into.setdefault((row["case"], row["unit"]), {}).setdefault(build, []).append(row["value"])


def main():
    args, rounds = sys.argv[1:], 5
    if "--rounds" in args:
        at = args.index("--rounds")
        rounds = int(args[at + 1])
        del args[at:at + 2]
    if len(args) < 3:
        sys.exit(__doc__)
    before, after, bench, options = args[0], args[1], args[2], args[3:]
    cases = {}
    for number in range(rounds):
        for build in (before, after) if number % 2 == 0 else (after, before):
            measure(build, bench, options, cases)
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    print("| case | unit | before | after | ratio | ratio of the best |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for (case, unit), values in cases.items():
        b, a = values.get(before, []), values.get(after, [])
        if not a or not b:
            continue
        best = max if "/s" in unit else min
        middle_b, middle_a = statistics.median(b), statistics.median(a)
        print(f"| {case} | {unit} | {middle_b:.4g} | {middle_a:.4g} | {middle_a / middle_b:.2f} | {best(a) / best(b):.2f} |")


main()
