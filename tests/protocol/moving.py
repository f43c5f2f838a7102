#!/usr/bin/env python3
"""Orders of the requests of programs that share a study whose space grows: moving.py ASSAY.PY [--orders N] [--first SEED].

The client is the real one (clients/python/assay/moving.py says how a study moves), the server a model (moving_server.py). Each
request is one step, and its answer arrives in another; which thread goes on is decided by a seed, at random or by priorities
that change at few steps (Burckhardt et al., 2010, A randomized scheduler with probabilistic guarantees of finding bugs).
Programs begin at any step. By the seed one of them is killed, requests are repeated, and leases end. At the end as many
trials ran as the study has, the last sweep has the result of each once, every program says so, and every sweep has ended.
Planted errors, which are changes of the client's text, must be found."""
import argparse
import contextlib
import importlib.util
import logging
import random
import sys
import tempfile
import threading
import time
import types

from moving_server import Server

STEPS_MAX = 8000  # of an order; more means that nobody comes to an end
PLANTED = {
    "a sweep is left before a trial was made there": ("not 0 < _made(before) < limit", "limit <= _made(before)"),
    "a limit is changed that others have changed": ("?if_max_trials={old}", ""),
    "a successor gets the limit of its source": ('limits={"max_trials": left})', 'limits={"max_trials": limit})'),
}
mine = threading.local()  # .name, .program


class Killed(BaseException):
    pass


class Scheduler:
    """Lets one thread go on at a time. A thread gives way by point()."""

    def __init__(self, seed):
        self.rng, self.changed, self.alive, self.waiting, self.busy = random.Random(seed), threading.Condition(), set(), {}, 0
        self.turn, self.step, self.fault = None, 0, ""
        self.priorities = {} if seed % 2 else None
        self.drops = {self.rng.randrange(400) for _ in range(4)}

    def start(self, target, program, name):
        def run():
            mine.name, mine.program = name, program
            try:
                self.point()
                target()
            except Killed:
                pass
            except BaseException as e:
                self.fault = self.fault or f"{name}: {e!r}"
            with self.changed:
                self.busy -= 1
                self.alive.discard(name)
                self.changed.notify_all()

        with self.changed:
            self.busy += 1
            self.alive.add(name)
        threading.Thread(target=run, daemon=True).start()

    def point(self, can=lambda: True, waits=lambda: False):
        """Wait for a turn. can: may it have one now? waits: then it is one only now and then."""
        with self.changed:
            self.waiting[mine.name] = can, waits
            self.busy -= 1
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.turn == mine.name)
            del self.waiting[mine.name]
            self.turn, self.busy = None, self.busy + 1
            self.changed.notify_all()
        if self.fault or mine.program.killed:
            raise Killed

    def chosen(self, names):
        eager = [n for n in names if not self.waiting[n][1]()]
        names = eager if eager and self.rng.random() < 0.9 else names
        if self.priorities is None or self.rng.random() < 0.03:
            return self.rng.choice(names)
        pick = max(names, key=lambda n: self.priorities.setdefault(n, self.rng.random()))
        if self.step in self.drops or self.rng.random() < 0.02:
            self.priorities[pick] = self.rng.random() - 1
        return pick

    def run(self, between):
        """Until all threads have ended. between: is called before each step."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.busy == 0)
                if not self.alive:
                    return
                self.step += 1
                names = sorted(n for n in self.waiting if self.waiting[n][0]())
                if self.step > STEPS_MAX or not names:
                    self.fault = self.fault or f"nothing comes to an end: {sorted(self.waiting)}"
                between()
                self.turn = self.rng.choice(sorted(self.waiting)) if self.fault else self.chosen(names)
                self.changed.notify_all()
                self.changed.wait_for(lambda: self.turn is None)


class Lock:
    """A lock of one thread, which it may take again."""

    def __init__(self, scheduler):
        self.scheduler, self.owner, self.depth = scheduler, None, 0

    def __enter__(self):
        if self.owner not in (None, mine.name):
            self.scheduler.point(lambda: self.owner is None)
        self.owner, self.depth = mine.name, self.depth + 1

    def __exit__(self, *args):
        self.depth -= 1
        self.owner = self.owner if self.depth else None


class Order:
    """One order of a study of n trials."""

    def __init__(self, assay, seed):
        self.assay, self.seed, self.rng, self.scheduler = assay, seed, random.Random(f"order {seed}"), Scheduler(seed)
        self.server = Server(assay.AssayError, assay._matches, random.Random(seed))
        self.n, self.jobs = self.rng.choice([7, 8, 10]), self.rng.choice([1, 2, 2])
        self.programs = [types.SimpleNamespace(killed=False, says=None, number=i) for i in range(self.rng.choice([2, 3, 3, 4]))]
        faults = seed % 4  # none, a kill, repeats, leases that end
        self.kill_at = self.rng.randrange(5, 250) if faults == 1 else 0
        self.repeats, self.ends = 0.15 if faults == 2 else 0, 0.004 if faults == 3 else 0
        self.clients = {}

    def call(self, method, path, body=None, key=None):
        is_ask = path.endswith("/suggestions") and "params" not in body
        answer = fault = None
        for again in range(2 if self.rng.random() < self.repeats else 1):
            self.scheduler.point(waits=lambda: is_ask and self.server.waits(path.split("/")[3], body["client"]))
            if again and key:
                continue  # the answer that is kept with the key
            answer = fault = None
            try:
                answer = self.server.call(method, path, body)
            except self.assay.AssayError as e:
                fault = e
        self.scheduler.point()
        if fault:
            raise fault
        return answer

    def objective(self, program):
        rng = random.Random(f"{self.seed}/{program.number}")

        def branches(trial):
            kind = trial.suggest_categorical("kind", ["a", "b", "c"])
            self.scheduler.point()
            if kind == "a":
                return trial.suggest_float("left", 0, 1)
            return trial.suggest_int("depth", 1, 3) + sum(trial.suggest_float(f"w{i}", 0, 1) for i in range(trial.suggest_int("n", 0, 2)))

        def names(trial):
            value = trial.suggest_float("x", 0, 1)
            self.scheduler.point()
            return value + sum(trial.suggest_float(f"z{i}", 0, 1) for i in range(4) if rng.random() < 0.35)

        return branches if self.seed % 3 else names

    def program(self, program):
        study = self.assay.Study("s", [("value", "minimize")], {"search": {"method": "gp", "seed": self.seed}}, None)
        study._lock, study._shared, study._beating = Lock(self.scheduler), True, types.SimpleNamespace(is_alive=lambda: True)
        study._connected = types.SimpleNamespace(call=self.call, close=lambda: None, patience=1)
        study._run_threads = lambda objective, run, n_jobs: self.threads(study, objective, run)
        with contextlib.suppress(self.assay._NoSuchSweep):
            self.assay._load(study, "s")
        total = None if study.sweep is None else self.n
        study.optimize(self.objective(program), None if total else self.n, n_jobs=self.jobs, show_progress_bar=False, total=total)
        program.says = study.sweep, len(study.trials)

    def threads(self, study, objective, run):
        ended, program = [], mine.program

        def work():
            try:
                study._work(objective, run)
            except Exception as e:
                run.errors.append(e)
                run.stop.set()
            finally:
                ended.append(1)

        for i in range(self.jobs):
            self.scheduler.start(work, program, f"{mine.name}.{i}")
        self.scheduler.point(lambda: len(ended) == self.jobs or program.killed)

    def client_name(self):
        name = f"c{len(self.clients)}"
        self.clients[name] = mine.program
        return name

    def between(self):
        if self.scheduler.step == self.kill_at:
            self.programs[0].killed = True
        for sweep in self.server.sweeps.values():
            for t in sweep.trials:
                if t["state"] == "running" and self.rng.random() < (0.05 if self.clients[t["client"]].killed else self.ends):
                    t["state"] = "queued"  # its lease has ended

    def faults(self):
        self.assay._client_name = self.client_name
        self.assay.time = types.SimpleNamespace(monotonic=time.monotonic, sleep=lambda s: self.scheduler.point())
        for p in self.programs:
            begin = self.rng.choice([0, 0, self.rng.randrange(150)])

            def late(p=p, begin=begin):
                self.scheduler.point(waits=lambda: self.scheduler.step < begin)
                self.program(p)

            self.scheduler.start(late, p, f"p{p.number}")
        self.scheduler.run(self.between)
        return self.scheduler.fault or self.wrong()

    def wrong(self):
        sweeps = list(self.server.sweeps.values())
        made = {s.id: s.made() for s in sweeps}
        last = [s for s in sweeps if s.state != "cancelled" or s.made()][-1]
        keys = {t["suggestion"].get("key") or f"{last.id}/{t['number']}" for t in last.trials if t["state"] in ("completed", "failed")}
        says = {p.says for p in self.programs if not p.killed}
        if sum(made.values()) != self.n:
            return f"{sum(made.values())} trials ran, and the study has {self.n}: {made}"
        if len(keys) != self.n or len(last.trials) != self.n:
            return f"the last sweep, {last.id}, has {len(keys)} of {self.n} results"
        if says != {(last.id, self.n)}:
            return f"the programs say {says}, and the last sweep is {last.id}"
        return "".join(f"{s.id} is {s.state}" for s in sweeps if s.state not in ("completed", "cancelled"))


def loaded(text):
    with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        spec = importlib.util.spec_from_file_location("assay", f.name)
        module = sys.modules["assay"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    logging.getLogger("assay").disabled = True
    module.atexit.unregister(module._at_exit)
    return module


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("client")
    parser.add_argument("--orders", type=int, default=150)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    with open(args.client, encoding="utf-8") as f:
        text = f.read()
    assay, bad = loaded(text), 0
    for seed in range(args.first, args.first + args.orders):
        fault = Order(assay, seed).faults()
        bad += bool(fault)
        if fault:
            print(f"order {seed}: {fault}")
    print(f"{args.orders} orders, {bad} wrong")
    for what, (old, new) in PLANTED.items():
        assert text.count(old) == 1, f"{old} stands {text.count(old)} times in {args.client}"
        assay = loaded(text.replace(old, new))
        found = next((seed for seed in range(3000) if Order(assay, seed).faults()), None)
        print(f"planted: {what}: " + ("not found" if found is None else f"found by order {found}"))
        bad += found is None
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
