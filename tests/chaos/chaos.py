#!/usr/bin/env python3
"""`./dev chaos --minutes N --seed S`: the real programs under a storm of faults, and then a check of what they promise.

README.md says what happens, what is checked and how a violation is reproduced. Exit codes: 0 no violation, 1 some,
77 it cannot run here, 64 wrong options."""
import argparse
import collections
import contextlib
import glob
import heapq
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import check
import faults
import history
from cluster import PLANTED, Cluster
from fleet import LEASE_S, Fleet
from load import KINDS, Load

PATIENCE_S = 600  # without any progress: a hang
WARM_S = 6
RECOVERED, WITHIN_S = 0.98, 10


class Storm:
    """One run. Faults call later() and database_away()."""

    def __init__(self, options):
        self.options, self.later_jobs, self.n_later = options, [], 0
        self.folder = tempfile.mkdtemp(prefix="assay-chaos-", dir=options.dir)
        os.chmod(self.folder, 0o755)
        self.history = os.path.join(self.folder, "history")
        os.mkdir(self.history)
        open(os.path.join(self.history, "trials"), "a").close()
        self.done, self.violations, self.seen = [], [], set()
        self.cluster = self.fleet = self.load = None
        self.orphan_s = None
        self.lag_s, self.is_watching = 0.0, True

    # What faults leave for later, in the main thread.

    def later(self, seconds, job):
        self.n_later += 1
        heapq.heappush(self.later_jobs, (time.monotonic() + seconds, self.n_later, job))

    def database_away(self, seconds):
        self.later(seconds, self.start_database)

    def start_database(self):
        if self.cluster.postmaster.poll() is not None:
            self.cluster.start()

    def tick(self, until):
        """Let time pass until then; do what is due, and watch."""
        while True:
            now = time.monotonic()
            while self.later_jobs and self.later_jobs[0][0] <= now:
                heapq.heappop(self.later_jobs)[2]()
            self.fleet.tick()
            if self.cluster.postmaster.poll() is not None and not self.later_jobs and not self.cluster.control.is_full:
                self.start_database()  # a full disk ended it
            if now >= until:
                return
            time.sleep(min(0.05, max(0.0, until - now)))

    def wait(self, condition, what):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"waited {PATIENCE_S} s for {what}")
            time.sleep(0.05)

    # The run.

    def prepare(self):
        # the user of the cluster may not enter the build folder
        library = shutil.copy(os.path.join(self.options.build, "tests", "chaos", "chaos.so"), self.folder)
        self.cluster = Cluster(os.path.join(self.folder, "cluster"), library, self.options.plant)
        self.cluster.make()
        self.fleet = Fleet(self.folder, self.options.build, self.cluster, library)
        self.fleet.start(self.wait)
        env = {**os.environ, "ASSAY_SERVER": f"http://127.0.0.1:{self.fleet.port}", "ASSAY_TOKEN_FILE": self.fleet.token_file}
        if "group" in self.options.load or "ranks" in self.options.load:
            subprocess.run([os.path.join(self.options.build, "cli", "assay"), "data", "add", "digits",
                            os.path.join(self.options.source, "examples", "digits.csv"), "--target", "class"], check=True,
                           stdout=subprocess.DEVNULL, env=env)
        self.cluster.begin_planted()
        self.load = Load(self.fleet, self.history, history.Writer(os.path.join(self.history, "clients")), self.options.seed,
                         self.options.load)

    def watch(self):
        """In a thread: looks at the limits, and how late this machine is."""
        while self.is_watching:
            with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):  # the database is away
                check.sample(self.cluster, self.seen)
            asked = time.monotonic()
            time.sleep(0.3)
            self.lag_s = max(self.lag_s, time.monotonic() - asked - 0.3)

    def storm(self):
        seconds = self.options.minutes * 60
        plan = faults.schedule(self.options.seed, seconds, self.options.faults, WARM_S, self.options.every)
        self.begin = time.monotonic()
        self.begin_ms = history.now_ms()
        for at, kind, seed in plan:
            self.tick(self.begin + at)
            said = faults.apply(self, kind, seed)
            self.done.append({"at": round(time.monotonic() - self.begin, 2), "planned": round(at, 2), "kind": kind, "did": said,
                              "seed": seed})
            if self.options.verbose:
                print(f"{at:8.2f} s  {kind}: {said}", flush=True)
        self.tick(self.begin + seconds)

    def cut_that_loses(self, rng):
        """Cut the power of PostgreSQL when an end was acknowledged that it has not synced, of an attempt whose beginning
        it has: one that begins again may end with the same value. Returns what the power cut does."""
        limit = time.monotonic() + PATIENCE_S
        while time.monotonic() < limit:
            held = self.cluster.sql("select s.id || '/' || t.number, t.attempt from trial t join sweep_base s on s.key = t.sweep_key "
                                    "where t.state = 'running'")
            self.cluster.sql("set synchronous_commit = on; select pg_logical_emit_message(true, '', '')")  # syncs all before
            synced_ms, n_syncs = history.now_ms(), self.cluster.n_syncs()
            while history.now_ms() < synced_ms + 1000 and n_syncs == self.cluster.n_syncs():
                if history.has_end(history.read(self.history), held, synced_ms):
                    if (taken := self.cluster.power_cut(rng, False, n_syncs)) is not None:
                        return taken
                    break
                time.sleep(0.02)
        raise TimeoutError(f"for {PATIENCE_S} s no acknowledged result was in danger")

    def drain(self):
        """No further sweep and no further fault; one runner is gone for good."""
        while self.later_jobs:
            self.tick(self.later_jobs[0][0])
        for member in self.fleet.runners:
            member.control.set(offset_ns=0)
        if set(self.options.load) - {"ask", "noop"}:
            self.orphan()
        self.load.is_over = True
        last, progress = time.monotonic(), None
        while self.load.current or any(t.name == "keep" and t.is_alive() for t in self.load.threads):
            self.tick(time.monotonic() + 0.5)
            now = self.progress()
            if now != progress:
                last, progress = time.monotonic(), now
            if time.monotonic() - last > PATIENCE_S:
                self.violations.append(f"ends: nothing happens any more, and these sweeps have not ended: {self.load.current}")
                return
            if self.load.is_broken:
                return

    def orphan(self):
        """A runner dies while it runs trials: how long until they are running no more? It may be a lease until the
        servers end leases again after the last fault, then the lease itself and the reaper's period. On a machine that
        is busy with other things the servers may be late, so that it is measured three times before it counts."""
        limit_s = 2 * LEASE_S + check.REAPER_S + check.SLACK_S
        for _ in range(3):
            runner, self.orphan_s = self.kill_holder()
            if self.orphan_s is None or self.orphan_s <= limit_s + 2 * self.lag_s:
                return
            runner.start()
        self.violations.append(f"lease: trials of a dead runner were running for {self.orphan_s:.1f} s")

    def kill_holder(self):
        """A runner that held trials and is dead, and the seconds until they were running no more; None: none held one."""
        def holder(condition="true"):
            """The runner that holds most of them; "" for none."""
            self.tick(time.monotonic() + 0.3)
            done = self.cluster.psql("select runner from trial where state = 'running' and runner in ('r0', 'r1', 'r2') and "
                                     f"{condition} group by 1 order by count(*) desc limit 1")
            return done.stdout.strip() if done.returncode == 0 else None
        begin = time.monotonic()
        while not (name := holder()) and time.monotonic() < begin + 60:
            pass
        runner = self.fleet.runners[int(name[1:]) if name else 0]
        runner.kill()
        begin = time.monotonic()
        while name and holder(f"runner = '{name}'") != "" and time.monotonic() < begin + PATIENCE_S:
            pass
        return runner, time.monotonic() - begin if name else None

    def progress(self):
        done = self.cluster.psql("select sum(n_completed), sum(n_failed), sum(n_total), sum(n_queued), "
                                 "(select max(step) from trial), (select count(*) from attempt) from sweep")
        return done.stdout

    def judge(self):
        self.is_watching = False
        self.watcher.join()
        export = check.Export(self.load, self.load.http())
        lines = history.read(self.history)
        self.violations += check.check(export, lines) + sorted(self.seen) + check.check_rows(self.options.build, self.cluster)
        self.violations += self.load.problems + [text for _, text in self.fleet.deaths] + self.reports()
        return export, lines

    def reports(self):
        """What a sanitizer or an assertion wrote."""
        words, found = ("ERROR: AddressSanitizer", "runtime error:", "Assertion `", "ThreadSanitizer"), []
        for path in glob.glob(os.path.join(self.folder, "*.log")):
            found += [f"log: {path}: {line.strip()}" for line in open(path, errors="replace") if any(w in line for w in words)]
        return found

    def run(self):
        self.prepare()
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()
        self.load.start()
        self.storm()
        self.drain()
        export, lines = self.judge()
        if self.options.strict:
            self.violations += [f"recovery: {k} took {s}" for k, s in recoveries(self, lines) if s is None or s > WITHIN_S]
        return export, lines

    def end(self):
        self.is_watching = False
        if self.load:
            self.load.is_done = True
        if self.fleet:
            self.fleet.end()
        if self.load:
            self.load.join()
        if self.cluster and self.cluster.postmaster:
            self.cluster.stop()


def rates(storm, lines, width_ms=1000, step_ms=250):
    """[(seconds from the begin, acknowledged ends in the second before)]."""
    times = sorted(line["t"] - storm.begin_ms for line in lines if line["event"] == "acked")
    found, low, high = [], 0, 0
    for at in range(width_ms, int(storm.options.minutes * 60000), step_ms):
        while high < len(times) and times[high] <= at:
            high += 1
        while low < len(times) and times[low] <= at - width_ms:
            low += 1
        found.append((at / 1000, high - low))
    return found


def recoveries(storm, lines):
    """[(kind, seconds from the fault until the rate was once 98% of the median before the first; None: never)]."""
    all_rates = rates(storm, lines)
    quiet = [n for at, n in all_rates if 2 < at <= WARM_S]
    if not quiet:
        return []
    wanted = RECOVERED * statistics.median(quiet)
    found = []
    for fault in storm.done:
        if fault["did"]:
            first = next((at for at, n in all_rates if at >= fault["at"] + 1 and n >= wanted), None)
            found.append((fault["kind"], None if first is None else first - fault["at"]))
    return found


def table(storm, export, lines):
    kinds = collections.Counter(f["kind"] for f in storm.done if f["did"])
    missed = collections.Counter(f["kind"] for f in storm.done if not f["did"])
    back = collections.defaultdict(list)
    for kind, seconds in recoveries(storm, lines):
        back[kind].append(seconds)
    print(f"\n{'fault':<18}{'times':>6}{'missed':>8}{'98% of the rate after, s (median, most)':>44}")
    for kind in sorted(kinds | missed):
        known = [s for s in back[kind] if s is not None]
        text = f"{statistics.median(known):.1f}, {max(known):.1f}" if known else "-"
        text += f" (never: {len(back[kind]) - len(known)})" if len(known) < len(back[kind]) else ""
        print(f"{kind:<18}{kinds[kind]:>6}{missed[kind]:>8}{text:>44}")
    events = collections.Counter(line["event"] for line in lines)
    states = collections.Counter(t["state"] for t in export.trials.values())
    dropped = [p.count_dropped() for p in [*storm.fleet.database_proxies, storm.fleet.http_proxy]]
    within = [s is not None and s <= WITHIN_S for _, s in recoveries(storm, lines)]
    rows = [("faults", sum(kinds.values())), ("replies lost after the commit", sum(dropped)), ("sweeps", len(export.sweeps)),
            ("trials", f"{len(export.trials)} ({', '.join(f'{n} {s}' for s, n in states.most_common())})"),
            ("attempts", sum(t["attempt"] for t in export.trials.values())),
            ("restarts", sum(t["restarts"] for t in export.trials.values())),
            ("processes begun", events["begin"]), ("ends told by clients", events["tells"]),
            ("acknowledged results", events["acked"]), ("refused", events["refused"]),
            ("acknowledged measurements", events["points"]),
            ("back at 98% within 10 s", f"{sum(within)} of {len(within)} faults"),
            ("without a lease", "no trial was running" if storm.orphan_s is None else
             f"trials of a runner that died were queued again after {storm.orphan_s:.1f} s"),
            ("this machine's delay", f"{storm.lag_s:.1f} s"), ("violations", len(storm.violations))]
    for what, value in rows:
        print(f"{what + ':':<32}{value}")


def parse(argv):
    p = argparse.ArgumentParser(prog="./dev chaos", description="the real programs under a storm of faults")
    p.add_argument("--minutes", type=float, default=1)
    p.add_argument("--seed", type=int, default=None, help="of the schedule; default: by the clock")
    p.add_argument("--faults", default="", help="only these kinds, with commas: " + ", ".join(sorted(faults.KINDS)))
    p.add_argument("--load", default="", help="only these kinds of sweeps: " + ", ".join(KINDS))
    p.add_argument("--every", type=float, default=2.5, help="seconds between two faults, on average")
    p.add_argument("--plant", choices=sorted(PLANTED), help="run PostgreSQL with a fault that the check must find")
    p.add_argument("--strict", action="store_true", help="a rate that is not back at 98%% within 10 s is a violation")
    p.add_argument("--keep", action="store_true", help="keep the folder with logs and history")
    p.add_argument("--verbose", action="store_true", help="print each fault when it happens")
    p.add_argument("--dir", default="/var/tmp", help="where to make the folder")
    options = p.parse_args(argv)
    options.seed = int(time.time()) if options.seed is None else options.seed
    for name, known in (("faults", sorted(faults.KINDS)), ("load", list(KINDS))):
        words = [w for w in getattr(options, name).split(",") if w] or known
        if unknown := [w for w in words if w not in known]:
            p.error(f"--{name} {unknown[0]}: expected some of {', '.join(known)}")
        setattr(options, name, words)
    options.build = os.environ["ASSAY_BUILD_ROOT"]
    options.source = os.environ["ASSAY_SOURCE_ROOT"]
    return options


def main(argv):
    options = parse(argv)
    if not glob.glob("/usr/lib/postgresql/*/bin/initdb") or not shutil.which("setpriv"):
        print("skipped: PostgreSQL's server programs or setpriv are not installed")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    storm, export, is_kept = Storm(options), None, True
    print(f"chaos: seed {options.seed}, {options.minutes} minutes, folder {storm.folder}", flush=True)
    try:
        export, lines = storm.run()
        table(storm, export, lines)
        is_kept = options.keep or bool(storm.violations)
    finally:
        storm.end()
        if is_kept:
            with open(os.path.join(storm.folder, "schedule.json"), "w") as f:
                json.dump({"seed": options.seed, "argv": argv, "faults": storm.done, "violations": storm.violations}, f, indent=1)
        else:
            shutil.rmtree(storm.folder, ignore_errors=True)
    if storm.violations:
        print(f"\n{len(storm.violations)} violations with --seed {options.seed}; logs, history and schedule are in {storm.folder}")
        for text in storm.violations[:40]:
            print("  " + text)
        for f in storm.done:
            print(f"  {f['at']:8.2f} s  {f['kind']}: {f['did']}")
    elif options.keep:
        print(f"kept: {storm.folder}")
    return 1 if storm.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
