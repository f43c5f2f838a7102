#!/usr/bin/env python3
"""The step time of large trials for 8 to 4,096 ranks, by strategy and network: docs/scale.md.

    scale.py                write the tables of docs/scale.md and docs/pictures/scale.svg
    scale.py --check        fail if they do not follow from machine.jsonl, networks.json and this file
    scale.py --network NAME --megabytes N --compute-ms T     print a table for other inputs

machine.jsonl is what `./dev bench scale --json` printed. The formulas stand beside their names below;
docs/scale.md says where each is from. Times in seconds, sizes in bytes. N: bytes of a gradient;
a: latency of a message; b: seconds for a byte on the wire; g: seconds to add a byte; o: processor time of
a message (LogGP); c: mean time to compute a rank's shards, s: its standard deviation."""
import argparse
import json
import math
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RANKS = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
SERVERS = 16           # shards of a parameter server, each on a host of its own
GROUP = 8              # ranks of a group
PERIOD = 50            # local steps between two exchanges
SILENCE, REJOIN = 5.0, 1.0


def log2(ranks):
    return math.ceil(math.log2(ranks))


class Machine:
    """What was measured here."""

    def __init__(self, lines):
        self.of = {d["case"]: d["value"] * (1e-6 if d["unit"] == "us" else 1e9 if d["unit"] == "GB/s" else 1)
                   for d in map(json.loads, lines)}
        self.cores = int(self.of["processors"])
        self.g = 1 / self.of["add"]

    def time(self, algorithm, link, ranks, size):
        return self.of[f"{algorithm} {link} P={ranks} {size}"]

    def per_byte(self, algorithm, link, ranks):
        """Seconds for each byte that all ranks together send."""
        large, small = 16 << 20, 4 << 10
        sent = volume(algorithm, ranks)
        return (self.time(algorithm, link, ranks, large) - self.time(algorithm, link, ranks, small)) / (large - small) / sent

    def per_message(self, algorithm, link, ranks):
        return self.time(algorithm, link, ranks, 4 << 10) / total_messages(algorithm, ranks)

    def tree_more(self):
        """What the tree needs for each byte of N beside the ring's: memory of its own, and copies. Of the world in
        which every rank had a processor."""
        return max(0, 2 * (self.per_byte("tree", "shm", 2) - self.per_byte("ring", "shm", 2)))

    def handshake(self):
        """Processor time of one connection of a meeting: 16 ranks make 120, two sides each."""
        return self.of["meeting tcp P=16"] * self.cores / (16 * 15)


# ---- collectives ----

def core(ranks):
    return 1 << (ranks.bit_length() - 1)


def total_messages(algorithm, ranks):
    """Of all ranks. Halving: ranks beyond a power of two give theirs to others, and get the result."""
    if algorithm != "halving":
        return 2 * ranks * (ranks - 1)
    return 2 * core(ranks) * log2(core(ranks)) + 2 * (ranks - core(ranks))


def volume(algorithm, ranks):
    """Bytes that all ranks send, in N. The tree with one shard on each rank, as measured."""
    return 2 * (core(ranks) - 1) + 2 * (ranks - core(ranks)) if algorithm == "halving" else 2 * (ranks - 1)


def ring(n, r, net, m):
    return 2 * (r - 1) * net.a + (r - 1) / r * n * (2 * net.b + m.g)


def halving(n, r, net, m):
    fold = 2 * net.a + 2 * n * net.b if r & (r - 1) else 0
    return 2 * log2(r) * net.a + (r - 1) / r * n * (2 * net.b + m.g) + fold


def tree(n, r, net, m):
    """All to all, twice: the messages of a rank overlap, but each costs its processor time (LogGP)."""
    return 2 * (net.a + (r - 1) * net.o) + (r - 1) / r * n * (2 * net.b + m.g) + n * m.tree_more()


def two_level(n, r, net, m):
    return ring(n, min(r, GROUP), net, m)


# ---- strategies: seconds of a step ----

def slowest(job, ranks, steps=1):
    """Expected maximum of `ranks` normal draws: c + s sqrt(2 ln R); of means of `steps`, s / sqrt(steps)."""
    return job.c + job.s * math.sqrt(2 * math.log(ranks) / steps)


def fed(n, r, net):
    """Servers receive and send R N / SERVERS bytes in a step."""
    return max(2 * n * net.b, 2 * r * n / SERVERS * net.b)


STRATEGIES = {
    "allreduce: tree": lambda j, r, net, m: slowest(j, r) + tree(j.n, r, net, m),
    "allreduce: ring": lambda j, r, net, m: slowest(j, r) + ring(j.n, r, net, m),
    "allreduce: halving_doubling": lambda j, r, net, m: slowest(j, r) + halving(j.n, r, net, m),
    "compress: fp16": lambda j, r, net, m: slowest(j, r) + tree(j.n / 2, r, net, m) + 2 * j.n * m.g,
    "compress: one_bit": lambda j, r, net, m: slowest(j, r) + tree(j.n / 30, r, net, m) + 3 * j.n * m.g,
    "compress: powersgd": lambda j, r, net, m: slowest(j, r) + 2 * tree(j.n / 200, r, net, m) + 8 * j.n * m.g,
    "local_sgd, 50 steps": lambda j, r, net, m: slowest(j, r, PERIOD) + tree(j.n, r, net, m) / PERIOD,
    "server: sync": lambda j, r, net, m: slowest(j, r) + 2 * net.a + fed(j.n, r, net),
    "server: async": lambda j, r, net, m: max(j.c + 2 * net.a + 2 * j.n * net.b, fed(j.n, r, net)),
    "groups of 8": lambda j, r, net, m: max(slowest(j, GROUP) + two_level(j.n, r, net, m) + 2 * net.a + 2 * j.n * net.b,
                                            fed(j.n, r / GROUP, net)),
    "gossip: 1 peer": lambda j, r, net, m: j.c + net.a + j.n * net.b,
    "shard_state": lambda j, r, net, m: slowest(j, r) + tree(j.n, r, net, m),
}


class Network:
    def __init__(self, d):
        self.name, self.source = d["name"], d["source"]
        self.a, self.o, self.b = d["latency_us"] * 1e-6, d["overhead_us"] * 1e-6, 1e-9 / d["gbytes_s"]


class Job:
    def __init__(self, megabytes, compute_ms, deviation=0.05):
        self.n, self.c = megabytes * 1e6, compute_ms * 1e-3
        self.s = deviation * self.c


def efficiency(name, job, ranks, net, m):
    return job.c / STRATEGIES[name](job, ranks, net, m)


# ---- what deaths cost ----

def recovery(ranks, m, silent):
    """Notice, meet (each rank has R - 1 handshakes on one thread), compute the lost shards again."""
    return (SILENCE if silent else 0.05) + ranks * m.handshake() + REJOIN * 0.1


def loss_of_deaths(ranks, hours_between, m):
    rate = ranks / (hours_between * 3600)
    cost = rate * recovery(ranks, m, True)
    return cost / (1 + cost)


# ---- validation ----

FIT = 3  # ranks of the world that the two constants of each algorithm are from: the first with more than processors


def predicted(m, algorithm, link, ranks, size):
    """On one machine with fewer processors than ranks, every message and every byte costs processor time, and no
    wire is waited for: so the sums over all ranks count."""
    small = 4 << 10
    return (total_messages(algorithm, ranks) * m.per_message(algorithm, link, FIT) +
            volume(algorithm, ranks) * max(0, size - small) * m.per_byte(algorithm, link, FIT))


def validation(m):
    rows = []
    for algorithm in ("ring", "halving", "tree"):
        for link in ("shm", "tcp"):
            for ranks in (4, 8):
                for size in (4 << 10, 64 << 10, 1 << 20, 16 << 20):
                    real = m.time(algorithm, link, ranks, size)
                    rows.append((algorithm, link, ranks, size, predicted(m, algorithm, link, ranks, size), real))
    return rows


# ---- the page ----

def percent(x):
    return f"{100 * x:.0f} %" if x >= 0.095 else f"{100 * x:.1f} %"


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)] +
                     ["| " + " | ".join(map(str, r)) + " |" for r in rows])


def efficiency_table(job, net, m):
    return table(["ranks"] + [str(r) for r in RANKS],
                 [[f"`{s}`" if ":" in s and "peer" not in s else s] + [percent(efficiency(s, job, r, net, m)) for r in RANKS]
                  for s in STRATEGIES])


def limit(name, job, net, m):
    good = [r for r in RANKS if efficiency(name, job, r, net, m) >= 0.5]
    return "below 8" if not good else f"{good[-1]:,}" if good[-1] < RANKS[-1] else "4,096 and more"


def limits_table(job, nets, m):
    return table(["at least 50 % up to"] + [n.name for n in nets],
                 [[f"`{s}`" if ":" in s and "peer" not in s else s] + [limit(s, job, n, m) for n in nets] for s in STRATEGIES])


def networks_table(nets, m):
    rows = [["this machine, shm", f"{m.of['latency shm'] * 1e6:.0f} us", f"{m.of['bandwidth shm'] / 1e9:.2f} GB/s", "measured"],
            ["this machine, loopback", f"{m.of['latency tcp'] * 1e6:.0f} us", f"{m.of['bandwidth tcp'] / 1e9:.2f} GB/s", "measured"]]
    rows += [[n.name, f"{n.a * 1e6:g} us", f"{1e-9 / n.b:g} GB/s", n.source] for n in nets]
    return table(["network", "latency", "bandwidth", "source"], rows)


def deaths_table(m):
    kinds = [("50,000 h for a rank (GPUs of a large cluster)", 50000), ("1,000 h (old machines)", 1000), ("10 h (machines on call)", 10)]
    rows = [["time of a recovery"] + [f"{recovery(r, m, True):.1f} s" for r in RANKS[::3]]]
    rows += [[name] + [percent(loss_of_deaths(r, hours, m)) for r in RANKS[::3]] for name, hours in kinds]
    return table(["share of the time lost to deaths, ranks"] + [str(r) for r in RANKS[::3]], rows)


def validation_table(m):
    rows = []
    for algorithm in ("ring", "halving", "tree"):
        for link in ("shm", "tcp"):
            of = sorted(p / real for a, l, _, _, p, real in validation(m) if (a, l) == (algorithm, link))
            rows.append([algorithm, link, f"{of[len(of) // 2]:.2f}", f"{of[0]:.2f} to {of[-1]:.2f}"])
    return table(["algorithm", "transport", "predicted / measured, median", "all of 8"], rows)


def picture(job, net, m):
    wide, high, left, top = 760, 400, 56, 30
    plot_w, plot_h = 440, 320
    colours = ["#2f6fdb", "#d9822b", "#0b8a6a", "#8e44ad", "#c0392b", "#7f8c8d", "#16a085", "#b8860b", "#2c3e50", "#e056a0",
               "#1f2933", "#5b8c00"]
    x = lambda r: left + plot_w * (math.log2(r) - 3) / 9
    y = lambda e: top + plot_h * (1 - e)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img">',
           f"<title>Efficiency by number of ranks, {net.name}</title>",
           "<style>text{font:12px system-ui,sans-serif;fill:#1f2933}.g{stroke:#e4e7eb}.p{fill:none;stroke-width:2}</style>",
           f'<rect width="{wide}" height="{high}" fill="#fff"/>']
    for e in (0, 0.25, 0.5, 0.75, 1):
        out.append(f'<line class="g" x1="{left}" x2="{left + plot_w}" y1="{y(e):.1f}" y2="{y(e):.1f}"/>'
                   f'<text x="{left - 8}" y="{y(e) + 4:.1f}" text-anchor="end">{100 * e:.0f} %</text>')
    for r in RANKS:
        out.append(f'<text x="{x(r):.1f}" y="{top + plot_h + 18}" text-anchor="middle">{r}</text>')
    out.append(f'<text x="{left + plot_w / 2}" y="{top + plot_h + 40}" text-anchor="middle">ranks</text>')
    ends = sorted(((efficiency(s, job, RANKS[-1], net, m), i, s) for i, s in enumerate(STRATEGIES)), reverse=True)
    at = 0
    for e, i, s in ends:
        points = " ".join(f"{x(r):.1f},{y(efficiency(s, job, r, net, m)):.1f}" for r in RANKS)
        out.append(f'<polyline class="p" stroke="{colours[i]}" points="{points}"/>')
        label = max(y(e) + 4, at + 15)
        at = label
        out.append(f'<line x1="{x(4096) + 3:.1f}" y1="{y(e):.1f}" x2="{left + plot_w + 24}" y2="{label - 4:.1f}" stroke="{colours[i]}"/>'
                   f'<text x="{left + plot_w + 28}" y="{label:.1f}">{s}</text>')
    return "\n".join(out + ["</svg>", ""])


def page_of(text, parts):
    for name, body in parts.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        text, n = re.subn(pattern, lambda found: found[1] + body + "\n" + found[2], text, flags=re.S)
        if n != 1:
            sys.exit(f"docs/scale.md has {n} places for the table '{name}'")
    return text


def write(path, text, check):
    old = open(path).read() if os.path.exists(path) else ""
    if check and old != text:
        sys.exit(f"{os.path.relpath(path, ROOT)} does not follow from bench/scale: run bench/scale/scale.py")
    if not check:
        open(path, "w").write(text)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true")
    options.add_argument("--network")
    options.add_argument("--megabytes", type=float, default=100)
    options.add_argument("--compute-ms", type=float, default=200)
    a = options.parse_args()
    m = Machine(open(os.path.join(HERE, "machine.jsonl")))
    nets = [Network(d) for d in json.load(open(os.path.join(HERE, "networks.json")))]
    by_name = {n.name: n for n in nets}
    if a.network:
        if a.network not in by_name:
            sys.exit(f"--network: found {a.network!r}, expected one of {', '.join(by_name)}")
        print(efficiency_table(Job(a.megabytes, a.compute_ms), by_name[a.network], m))
        return
    job = Job(a.megabytes, a.compute_ms)
    parts = {"networks": networks_table(nets, m), "efficiency": efficiency_table(job, by_name["10 Gb/s"], m),
             "limits": limits_table(job, nets, m), "deaths": deaths_table(m), "validation": validation_table(m)}
    page = os.path.join(ROOT, "docs", "scale.md")
    write(page, page_of(open(page).read(), parts), a.check)
    write(os.path.join(ROOT, "docs", "pictures", "scale.svg"), picture(job, by_name["10 Gb/s"], m), a.check)


if __name__ == "__main__":
    main()
