#!/usr/bin/env python3
"""Circles of files that include one another. A .c file, its header and its _priv.h count as one file. A circle
is an error, except for those that are listed here with the reason."""
import os
import re
import subprocess
import sys

ROOT = sys.argv[1]
ALLOWED = [  # the paths with which all files of a circle begin, and why it stays
    (("kernels/",), "back ends and operations call one another through tables: the circle is the design"),
    (("trial-runner/attempt/attempt", "trial-runner/rank/rank"),
     "an attempt owns its rank, and a rank speaks for its attempt, under the attempt's lock"),
    (("search/space/cond", "search/space/param"), "a parameter has a condition, and a condition names a parameter"),
    (("search/space/config", "search/space/expr", "search/space/space"),
     "a space has constraints, a constraint is an expression over a configuration of the space"),
    (("data/preprocess/",), "preprocess.h declares what is learnt; each other file learns or applies a part of it"),
    (("scheduler/sweep/sweep_",), "one parser of one document, in three files"),
    (("scheduler/store/pg", "scheduler/store/conn_pool", "scheduler/store/store", "scheduler/store/tx"),
     "a transaction runs on a connection of the pool, and the pool runs a transaction again"),
    (("scheduler/suggester/",), "the suggester owns the chains; a chain hands out what suggester.h declares"),
    (("api/http/http",), "one exchange over libmicrohttpd, in three files"),
]


def unit(path):
    return re.sub(r"(_priv)?\.(c|h|cu|cuh)$", "", path)


def includes(files):
    """unit -> the units that it includes."""
    known = {unit(f) for f in files}
    uses = {u: set() for u in known}
    for path in files:
        for line in open(os.path.join(ROOT, path), errors="replace"):
            m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if m and unit(m.group(1)) in known and unit(m.group(1)) != unit(path):
                uses[unit(path)].add(unit(m.group(1)))
    return uses


def circles(uses):
    """Strongly connected components of more than one unit (Tarjan 1972, without recursion)."""
    index, low, on, stack, found = {}, {}, set(), [], []
    for start in uses:
        if start in index:
            continue
        work = [(start, iter(sorted(uses[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on.add(start)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on.add(other)
                    work.append((other, iter(sorted(uses[other]))))
                    break
                if other in on:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    members = []
                    while True:
                        member = stack.pop()
                        on.discard(member)
                        members.append(member)
                        if member == node:
                            break
                    if len(members) > 1:
                        found.append(sorted(members))
    return found


def main():
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "*.c", "*.h", "*.cu", "*.cuh"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    files = [f for f in files if f and os.path.exists(os.path.join(ROOT, f))]
    bad, allowed = [], 0
    for circle in circles(includes(files)):
        if any(all(member.startswith(paths) for member in circle) for paths, _ in ALLOWED):
            allowed += 1
        else:
            bad.append("files in a circle: " + " ".join(circle))
    print("\n".join(bad) or f"{len(files)} files; {allowed} circles, each with its reason")
    return bool(bad) or not files


sys.exit(main())
