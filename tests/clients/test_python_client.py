#!/usr/bin/env python3
"""The Python client with a real server: searches with and without a space, spaces that grow, failures, threads,
batches, programs that are killed and started again, a server that is killed, and programs that assay-runner starts."""
import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import warnings

if not sys.warnoptions:  # what is left open is an error; unittest leaves the filters alone when it finds some
    os.execv(sys.executable, [sys.executable, "-W", "error", *sys.argv])
warnings.filterwarnings("ignore", category=ResourceWarning, module="harness")

SOURCE = os.environ["ASSAY_SOURCE_ROOT"]
CLIENT = os.path.join(os.environ["ASSAY_BUILD_ROOT"], "clients", "python")
sys.path[:0] = [CLIENT, os.path.join(SOURCE, "tests", "e2e")]
import assay  # noqa: E402
from harness import ASSAY, PATIENCE_S, Assay, Problem  # noqa: E402

STATE = tempfile.TemporaryDirectory(prefix="assay-py-", dir="/var/tmp")
os.environ.update(XDG_STATE_HOME=STATE.name, XDG_CONFIG_HOME=STATE.name)
for name in ("ASSAY_SERVER", "ASSAY_TOKEN", "ASSAY_TOKEN_FILE", "ASSAY_PROFILE"):
    os.environ.pop(name, None)
# No test says where the server is: the client finds it. Clients lose their trials no sooner than runners do, so that the
# lease of runners is its own here.
UP = Assay(runners=1, args=())


def setUpModule():
    UP.__enter__()


def tearDownModule():
    UP.__exit__(None, None, None)
    STATE.cleanup()


def sphere(trial):
    return trial.suggest_float("x", -5, 5) ** 2 + trial.suggest_float("y", -5, 5) ** 2


class Case(unittest.TestCase):
    def refuses(self, kind, words, call, *args, **named):
        with self.assertRaises(kind) as caught:
            call(*args, **named)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def states(self, study):
        return [t["state"] for t in UP.trials(study.sweep)]


class Searches(Case):
    def test_without_a_space(self):
        seen = []

        def objective(trial):
            x, y = trial.suggest_float("x", -100, 100), trial.suggest_categorical("y", [-1, 0, 1])
            self.assertEqual(trial.suggest_float("x", -100, 100), x)
            seen.append((trial.number, {"x": x, "y": y}, x ** 2 + y))
            return x ** 2 + y

        study = assay.optimize(objective, n_trials=12, name="first", seed=3)
        UP.check_exact(study.sweep, 12)
        rows = UP.trials(study.sweep)
        self.assertEqual([(r["number"], r["params"], r["metrics"]["value"]) for r in rows], seen)
        self.assertEqual([r["origin"] for r in rows], ["enqueued"] + ["suggested"] * 11)
        self.assertEqual(UP.wait_ended(study.sweep)["state"], "completed")
        self.assertEqual([(t.number, t.params, t.value) for t in study.trials], seen)
        self.assertEqual((study.best_value, study.best_params), min((v, p) for _, p, v in seen)[::1])
        self.assertEqual(UP.sweep(study.sweep)["best"]["value"], study.best_value)
        self.assertTrue(UP.cli("replay", study.sweep).stdout.startswith("11 of 11"))
        study.optimize(objective, n_trials=3)  # three more of the same
        self.assertEqual([r["number"] for r in UP.trials(study.sweep)], list(range(15)))
        loaded = assay.load_study(study.sweep)
        self.assertEqual((loaded.best_value, len(loaded.trials)), (study.best_value, 15))
        self.assertIn("15 completed", loaded._repr_html_())
        self.assertEqual([r["x"] for r in loaded.rows()], [p["x"] for _, p, _ in seen])

    def test_with_a_space(self):
        space = {"lr": (1e-4, 1.0, "log"), "kind": ["a", None], "n": {"type": "int", "min": 1, "max": 9, "when": {"kind": "a"}}}

        def objective(trial):
            self.assertEqual(set(trial.params), {"lr", "kind"} | ({"n"} if trial["kind"] == "a" else set()))
            self.assertEqual(trial.suggest_float("lr", 1e-4, 1, log=True), trial["lr"])
            return trial.params["lr"] + trial.params.get("n", 0)

        study = assay.optimize(objective, space, 10, method="sobol", direction="maximize", metric="score")
        UP.check_exact(study.sweep, 10)
        self.assertEqual({t.params["kind"] for t in study.trials}, {"a", None})
        self.assertEqual(study.best_value, max(t.metrics["score"] for t in study.trials))
        self.refuses(assay.SpaceError, ["'lr'", "0.0", "0.0001"], assay.optimize, lambda t: t.suggest_float("lr", 0, 1), space, 3)
        self.refuses(assay.SpaceError, ["'width'", "space="], assay.optimize, lambda t: t.suggest_int("width", 0, 1), space, 3)
        with self.assertRaises(assay.AssayError) as caught:
            assay.optimize(sphere, {"x": (0, 1)}, 3, parameter_constraints=["x +"])
        self.assertIn("/parameter_constraints/0", str(caught.exception))

    def test_a_space_that_grows(self):
        calls = []

        def objective(trial):
            if trial.suggest_categorical("classifier", ["svc", "forest"]) == "svc":
                value = abs(trial.suggest_float("c", 1e-3, 1e3, log=True) - 1)
            else:
                value = abs(trial.suggest_int("depth", 2, 32, log=True) - 7)
            for i in range(trial.suggest_int("layers", 1, 3)):
                value += trial.suggest_int(f"units_{i}", 4, 64) / 64
            calls.append(dict(trial.params))
            return value

        study = assay.optimize(objective, n_trials=24, name="grows", seed=1)
        self.assertEqual(len(calls), 24)
        rows = UP.trials(study.sweep)  # the last sweep knows all of them, with their values
        self.assertEqual([r["number"] for r in rows], list(range(24)))
        self.assertNotEqual(study.sweep, "grows")
        self.assertEqual([t.params for t in study.trials], calls)
        for row, params in zip(rows, calls):
            self.assertLessEqual(params.items(), {**params, **row["params"]}.items())
            self.assertEqual({n: row["params"][n] for n in params if n in row["params"]}, {n: params[n] for n in params if n in row["params"]})
        ran = 0
        for name in ["grows"] + [f"grows-{i}" for i in range(2, 9)]:
            try:
                UP.sweep(name)
            except Problem:
                break
            s = UP.wait_ended(name)
            self.assertEqual(s["state"], "completed", s)
            ran += s["counts"]["total"] - s["known_trials"]
        self.assertEqual(ran, 24)  # no trial was lost, and none ran twice
        parameters = UP.sweep(study.sweep)["document"]["parameters"]
        self.assertEqual(parameters["c"]["when"], {"classifier": ["svc"]})
        self.assertEqual(parameters["depth"]["when"], {"classifier": ["forest"]})
        study.optimize(objective, n_trials=4)
        self.assertEqual(len(calls), 28)
        self.assertEqual(len(study.trials), 28)

    def test_ranges_that_change(self):
        self.refuses(assay.SpaceError, ["'x'", "0.0 to 2", "0.0 to 1"], assay.optimize,
                     lambda t: t.suggest_float("x", 0, t.number + 1), n_trials=5)
        self.refuses(assay.SpaceError, ["no parameter", "space="], assay.optimize, lambda t: 1, n_trials=5)
        self.refuses(assay.SpaceError, ["'a'", "int"], assay.optimize,
                     lambda t: t.suggest_float("a", 0, 1) + t.suggest_int("a", 0, 1), n_trials=5)
        most, assay.GENERATIONS_MAX = assay.GENERATIONS_MAX, 3
        try:
            self.refuses(assay.SpaceError, ["grew 3 times"], assay.optimize,
                         lambda t: t.suggest_float(f"x{t.number}", 0, 1), n_trials=9)
        finally:
            assay.GENERATIONS_MAX = most

    def test_several_objectives_and_constraints(self):
        def objective(trial):
            x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
            return {"error": x, "speed": x * (2 - y), "mb": 10 * y}

        study = assay.optimize(objective, n_trials=12, metrics={"error": "minimize", "speed": "maximize"},
                               constraints=[{"metric": "mb", "max": 6}])
        front = UP.call("GET", f"/v1/sweeps/{study.sweep}/pareto")["items"]
        self.assertEqual(sorted(t.number for t in study.best_trials), sorted(t["number"] for t in front))
        self.assertEqual([t.feasible for t in study.trials], [t["feasible"] for t in UP.trials(study.sweep)])
        pair = assay.optimize(lambda t: (t.suggest_float("x", 0, 1), 1), n_trials=3, directions=["minimize", "maximize"])
        self.assertEqual(set(UP.trials(pair.sweep)[0]["metrics"]), {"value_0", "value_1"})

    def test_enqueued_and_known(self):
        study = assay.create_study(study_name="queue", direction="maximize")
        study.enqueue_trial({"x": 1.5, "y": -2})
        study.enqueue_trial({"x": 0.25})
        study.add_trial({"x": 3, "y": 3}, 18)
        study.optimize(sphere, n_trials=5)
        rows = UP.trials(study.sweep)
        self.assertEqual(sum(r["origin"] == "known" for r in rows), 1)
        self.assertEqual(len(rows), 6)
        ran = [r["params"] for r in rows if r["origin"] == "enqueued"]
        self.assertEqual((ran[0], ran[1]["x"]), ({"x": 1.5, "y": -2}, 0.25))
        self.refuses(assay.SpaceError, ["'z'", "x, y"], self.enqueue_unknown)
        self.refuses(assay.SpaceError, ["'k'", "'c'"], self.enqueue_wrong)

    def enqueue_unknown(self):
        study = assay.create_study(space={"x": (0, 1), "y": (0, 1)})
        study.enqueue_trial({"x": 0, "y": 0, "z": 1})
        study.optimize(sphere, n_trials=1)

    def enqueue_wrong(self):
        assay.optimize(lambda t: len(t.suggest_categorical("k", ["a", "b"])), n_trials=2, enqueue=[{"k": "c"}])

    def test_ask_and_tell(self):
        study = assay.create_study(study_name="loop", space={"x": (-1.0, 1.0)}, limits={"max_concurrent_trials": 3})
        trials = [study.ask() for _ in range(3)]
        self.assertEqual([t.number for t in trials], [0, 1, 2])  # each ask is a client of its own
        for t in reversed(trials):
            study.tell(t, t.params["x"])
        study.tell(study.ask(), state="failed", reason="did not start")
        self.assertEqual(self.states(study), ["completed"] * 3 + ["failed"])
        self.refuses(ValueError, ["state", "done"], study.tell, trials[0], 1, state="done")
        self.refuses(ValueError, ["trial 0: it has ended, as completed"], study.tell, trials[0], 99)


class Ends(Case):
    def test_exceptions(self):
        def objective(trial):
            x = trial.suggest_float("x", 0, 1)
            if trial.number == 2:
                raise RuntimeError("out of memory")
            return x

        study = assay.create_study(study_name="raises")
        self.refuses(RuntimeError, ["out of memory"], study.optimize, objective, n_trials=5)
        self.assertEqual(self.states(study), ["completed", "completed", "failed"])
        self.assertEqual(UP.trials(study.sweep)[2]["reason"], "RuntimeError: out of memory")
        study.optimize(objective, n_trials=2)
        caught = assay.optimize(objective, n_trials=5, catch=RuntimeError)
        self.assertEqual(self.states(caught), ["completed", "completed", "failed", "completed", "completed"])
        self.refuses(ZeroDivisionError, [], assay.optimize, lambda t: 1 / 0, n_trials=5)

    def test_results_that_are_no_numbers(self):
        values = {1: float("nan"), 2: float("inf")}
        study = assay.optimize(lambda t: values.get(t.number, t.suggest_float("x", 0, 1)), n_trials=4, space={"x": (0.0, 1.0)})
        self.assertEqual(self.states(study), ["completed", "failed", "failed", "completed"])
        self.assertEqual([t.state for t in study.trials], self.states(study))
        self.refuses(TypeError, ["'a'"], assay.optimize, lambda t: t.suggest_float("x", 0, 1) and "a", n_trials=2)

    def test_pruned_by_the_objective(self):
        class TrialPruned(Exception):
            """As Optuna's: known by its name."""

        def objective(trial):
            trial.report(trial.suggest_float("x", 0, 1), 0)
            self.assertFalse(trial.should_prune())
            if trial.number % 2:
                raise TrialPruned() if trial.number == 1 else assay.TrialPruned("slow")
            return 1

        study = assay.optimize(objective, n_trials=4)
        self.assertEqual([t.state for t in study.trials], ["completed", "pruned", "completed", "pruned"])
        self.assertEqual(self.states(study), ["completed", "pruned", "completed", "pruned"])
        self.assertEqual([t["reason"] for t in UP.trials(study.sweep)][3], "TrialPruned: slow")

    def run_stopped(self, name, **early_stopping):
        """8 trials of which each is worse than the one before, one after the other, to 9 steps; the steps that they ran."""
        ran = []

        def objective(trial):
            x = trial.suggest_float("x", 0, 1)
            ran.append([trial.number, 0])
            for step in range(1, 10):
                ran[-1][1] = step
                trial.report(len(ran) + x / 10, step)
                if trial.should_prune():
                    raise assay.TrialPruned()
            return len(ran)

        stopping = {"min_steps": 1, "max_steps": 9, "eta": 3, **early_stopping}
        study = assay.optimize(objective, {"x": (0.0, 1.0)}, 8, name=name, method="random", early_stopping=stopping)
        return study, ran

    def test_early_stopping(self):
        study, ran = self.run_stopped("stopped", method="asha")
        self.assertEqual(ran[0], [0, 9])
        self.assertEqual([steps for _, steps in ran[1:]], [1] * 7)
        rows = UP.trials("stopped")
        self.assertEqual([r["state"] for r in rows], ["completed"] + ["pruned"] * 7)
        self.assertEqual([t.state for t in study.trials], [r["state"] for r in rows])
        for row, trial in zip(rows[1:], study.trials[1:]):
            self.assertIn("at step 1", row["reason"])
            self.assertEqual(trial.intermediate_values, {1: trial.metrics["value"]})
        self.assertEqual(UP.wait_ended("stopped")["state"], "completed")

    def test_early_stopping_that_pauses(self):
        """A trial that was paused is handed out again when it is promoted; what is not is pruned at the end."""
        study, ran = self.run_stopped("waits", method="asha", mode="pause")
        ended = UP.wait_ended("waits")
        self.assertEqual(ended["state"], "completed")
        self.assertEqual(ended["counts"]["paused"], 0)
        states = [t.state for t in study.trials]
        self.assertEqual(states.count("completed") + states.count("pruned"), 8)
        self.assertGreaterEqual(states.count("completed"), 1)
        self.assertGreater(len(ran), 8)  # some ran again
        for number in {n for n, _ in ran}:
            detail = UP.call("GET", f"/v1/sweeps/waits/trials/{number}")
            outcomes = [a["outcome"] for a in detail["attempts"]]
            self.assertEqual(set(outcomes[:-1]) - {"paused"}, set(), outcomes)

    def test_a_result_after_the_decision(self):
        """It stands: what the objective returns is no result."""
        def objective(trial):
            trial.report(trial.number, 1)
            said.append(trial.should_prune())
            return trial.suggest_float("x", 0, 1)

        said = []
        study = assay.create_study(study_name="deaf", space={"x": (0.0, 1.0)}, method="random",
                                   pruner=assay.pruners.HyperbandPruner(1, 9, 3),
                                   early_stopping={"method": "asha", "min_steps": 1, "max_steps": 9, "eta": 3})
        study.optimize(objective, n_trials=4)
        self.assertEqual(said, [False, True, True, True])
        self.assertEqual([t.state for t in study.trials], ["completed", "pruned", "pruned", "pruned"])
        self.assertEqual(self.states(study), [t.state for t in study.trials])

    def test_a_failure_after_the_decision(self):
        """It stands, too, and the study says so with the service's reason."""
        def objective(trial):
            trial.report(trial.number, 1)
            if trial.should_prune():
                raise KeyError("after") if trial.number % 2 else assay.TrialPruned()
            return trial.suggest_float("x", 0, 1)

        study = assay.create_study(study_name="fails-late", space={"x": (0.0, 1.0)}, method="random",
                                   early_stopping={"method": "asha", "min_steps": 1, "max_steps": 9, "eta": 3})
        study.optimize(objective, n_trials=4, catch=KeyError)
        rows = UP.trials("fails-late")
        self.assertEqual([t.state for t in study.trials], ["completed", "pruned", "pruned", "pruned"])
        self.assertEqual([t.reason for t in study.trials], [r["reason"] for r in rows])
        self.assertIn("rank 2 of 2", study.trials[1].reason)
        with self.assertRaisesRegex(ValueError, "early_stopping: found 'asha', expected a dictionary"):
            assay.create_study(early_stopping="asha")

    def test_promoted_before_it_said_its_end(self):
        """Others let a trial go on that was told to pause, before its program has said that it waits: it has not ended."""
        def objective(trial):
            if not trial.number and trial.attempt == 1:
                trial.report(1.0, 1)
                self.assertTrue(trial.should_prune())
                for client in ("b", "c"):
                    for other in UP.call("POST", "/v1/sweeps/hasty/suggestions", {"client": client})["items"]:
                        path = f"/v1/sweeps/hasty/suggestions/{other['number']}"
                        UP.call("POST", f"{path}/measurements", {"client": client, "items": [{"step": 1, "metrics": {"value": 2}}]})
                        UP.call("POST", f"{path}/complete", {"client": client, "outcome": "paused"})
                raise assay.TrialPruned()
            seen.append((trial.number, trial.attempt, [t.state for t in study.trials if t.number == trial.number]))
            for step in range(1, 10):
                trial.report(1.0 + trial.number, step)
                if trial.should_prune():
                    raise assay.TrialPruned()
            return 1.0

        seen = []
        study = assay.create_study(study_name="hasty", space={"x": (0.0, 1.0)}, method="random", limits={"max_trials": 3},
                                   early_stopping={"method": "asha", "min_steps": 1, "max_steps": 9, "mode": "pause"})
        study.optimize(objective, n_trials=3)
        self.assertEqual(seen[0], (0, 2, ["running"]))
        self.assertEqual([t.number for t in study.trials].count(0), 1)
        self.assertEqual([t.state for t in study.trials if t.number == 0], ["completed"])

    def test_pruner_of_the_program(self):
        """It sees the curves of other programs, and stops trials here."""
        def objective(trial):
            level = levels.pop(0)
            for step in range(4):
                trial.report(level, step)
                if trial.should_prune():
                    raise assay.TrialPruned()
            return level

        levels = [1.0, 2.0, 3.0]
        first = assay.create_study(study_name="median", space={"x": (0.0, 1.0)}, method="random")
        first.optimize(objective, n_trials=3)
        levels = [1.5, 2.5, 9.0]
        pruner = assay.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=1)
        again = assay.load_study("median", storage="sqlite:///none", pruner=pruner)
        again.optimize(objective, n_trials=3)
        self.assertEqual([t.state for t in again.trials], ["completed"] * 4 + ["pruned"] * 2)
        self.assertEqual([t.last_step for t in again.trials[3:]], [3, 1, 1])

    def test_grid_of_the_program(self):
        """Each cell once, over two programs and threads, and the study stops by itself."""
        def objective(trial):
            x, kind = trial.suggest_int("x", 0, 10), trial.suggest_categorical("kind", ["a", "b"])
            if (x, kind) == (2, "a"):
                raise ValueError("a cell that fails is not tried again")
            return x

        def run(n_trials):
            sampler = assay.samplers.GridSampler({"x": [1, 2, 5], "kind": ["a", "b"]}, seed=1)
            study = assay.create_study(study_name="cells", sampler=sampler, load_if_exists=True)
            study.optimize(objective, n_trials=n_trials, n_jobs=2, catch=ValueError)
            return study

        run(2)
        cells = sorted((t.params["x"], t.params["kind"]) for t in run(50).trials)
        self.assertEqual(cells, [(x, k) for x in (1, 2, 5) for k in "ab"])
        with self.assertRaisesRegex(assay.SpaceError, "'x': found values in the grid that it may not have, expected int from 0 to 3"):
            assay.create_study(sampler=assay.samplers.GridSampler({"x": [7]})).optimize(lambda t: t.suggest_int("x", 0, 3), n_trials=1)
        with self.assertRaisesRegex(assay.SpaceError, "'y': found no values of it in the grid, which has x"):
            assay.create_study(sampler=assay.samplers.GridSampler({"x": [7]})).optimize(lambda t: t.suggest_int("y", 0, 3), n_trials=1)

    def test_reports_are_a_curve(self):
        def objective(trial):
            x = trial.suggest_float("x", 0, 1)
            for step in range(1200):
                trial.report(x + step, step, lr=0.5)
            assay.report(loss=4.0)  # the trial of this thread
            trial.report(-1, 1199)  # what is recorded stays
            return x

        study = assay.optimize(objective, n_trials=2)
        for t in study.trials:
            metrics = UP.call("GET", f"/v1/sweeps/{study.sweep}/trials/{t.number}/measurements")["series"]
            self.assertEqual(metrics["value"]["values"], [t.params["x"] + i for i in range(1200)] + [t.params["x"]])
            self.assertEqual((len(metrics["lr"]["values"]), metrics["loss"]["values"]), (1200, [4.0]))
            self.assertEqual(t.value, t.params["x"])
        self.refuses(ValueError, ["step", "-1"], assay.optimize, lambda t: t.report(t.suggest_float("x", 0, 1), -1), n_trials=1)

    def test_cancelled_by_hand(self):
        said = []

        def objective(trial):
            x = trial.suggest_float("x", 0, 1)
            if trial.number == 1:
                UP.call("POST", f"/v1/sweeps/{study.sweep}/trials/1/cancel")
                deadline = time.monotonic() + PATIENCE_S
                while not trial.should_prune() and time.monotonic() < deadline:
                    trial.report(x)
                    time.sleep(0.02)
                said.append(trial.should_stop())
                raise assay.TrialPruned()
            return x

        study = assay.create_study(study_name="by-hand")
        study.optimize(objective, n_trials=4)
        self.assertEqual(said, [True])
        self.assertEqual([t.state for t in study.trials], ["completed", "cancelled", "completed", "completed"])

    def test_ctrl_c_returns_the_trial(self):
        def objective(trial):
            x = trial.suggest_float("x", 0, 1)
            if trial.number == 1:
                raise KeyboardInterrupt
            return x

        study = assay.create_study(study_name="ctrl-c")
        for jobs in (1, 2):
            with self.assertRaises(KeyboardInterrupt):
                study.optimize(objective, n_trials=4, n_jobs=jobs)
            self.assertEqual(self.states(study)[1], "queued")
        study.optimize(lambda t: t.suggest_float("x", 0, 1))  # what is left
        self.assertNotIn("queued", self.states(study))

    def test_timeout_ends_the_sweep(self):
        study = assay.create_study(study_name="timeout")
        study.optimize(lambda t: time.sleep(0.05) or t.suggest_float("x", 0, 1), timeout=1.5)
        s = UP.wait_ended(study.sweep)
        self.assertEqual(s["state"], "completed")
        self.assertEqual(s["counts"]["completed"], s["counts"]["total"])
        self.assertEqual(len(study.trials), s["counts"]["total"])
        for timeout in (1, 4, 16, 64):  # until the batch comes in time
            begin, ran = time.monotonic(), []

            def lasts(t):
                ran.append(t.number)
                while len(ran) > 1 and time.monotonic() < begin + timeout:
                    time.sleep(0.02)
                return t.suggest_float("x", 0, 1)

            batch = assay.create_study(study_name="timeout-batch")  # the rest of a batch does not keep the sweep
            batch.optimize(lasts, timeout=timeout, batch=20)
            cancelled = UP.wait_ended(batch.sweep)["counts"]["cancelled"]
            if len(ran) > 1:
                break
        self.assertEqual(len(ran), 2)
        self.assertGreater(cancelled, 0)

    def test_stop_in_a_callback(self):
        study = assay.create_study(study_name="stops")
        with contextlib.redirect_stderr(io.StringIO()) as shown:
            study.optimize(sphere, n_trials=20, callbacks=[lambda s, t: s.stop() if t.number == 4 else None],
                           show_progress_bar=True)
        self.assertEqual(len(study.trials), 5)
        last = shown.getvalue().split("\r")[-1]
        self.assertIn(f"5 of 20 trials, best {study.best_value:.6g} in trial {study.best_trial.number}, ", last)


class Together(Case):
    def test_threads(self):
        lock, calls, threads = threading.Lock(), [], set()

        def objective(trial):
            x = trial.suggest_float("x", -1, 1)
            y = trial.suggest_float("neg" if x < 0 else "pos", 0, 1)
            with lock:
                calls.append((x, y))
                threads.add(threading.current_thread().name)
            deadline = time.monotonic() + PATIENCE_S
            while len(calls) > 4 and len(threads) == 1 and time.monotonic() < deadline:
                time.sleep(0.02)  # one thread must not do all of it before the others have begun
            return x * x + y

        study = assay.optimize(objective, n_trials=24, n_jobs=4, name="threads")
        self.assertEqual(len(calls), 24)
        self.assertGreater(len(threads), 1)
        self.assertEqual(sorted(t.value for t in study.trials), sorted(x * x + y for x, y in calls))
        self.assertEqual(len(UP.trials(study.sweep)), 24)
        with self.assertRaises(RuntimeError):
            assay.optimize(self.fails_at_3, n_trials=20, n_jobs=3)

    @staticmethod
    def fails_at_3(trial):
        if trial.number == 3:
            raise RuntimeError
        return trial.suggest_float("x", 0, 1)

    def test_batches(self):
        seen = []
        study = assay.optimize(lambda t: seen.append(t.number) or sphere(t), n_trials=21, batch=5)
        self.assertEqual(sorted(seen), list(range(21)))
        UP.check_exact(study.sweep, 21)
        self.assertEqual([t.state for t in study.trials], ["completed"] * 21)
        with self.assertRaises(RuntimeError):
            assay.optimize(self.fails_at_3, n_trials=21, batch=4)

    def test_killed_and_started_again(self):
        script = textwrap.dedent("""
            import assay, sys, time
            assay.LEASE_S = 2  # a killed program's trials are free again after this
            def objective(trial):
                x = trial.suggest_float("x", 0, 1)
                print(trial.number, flush=True)
                time.sleep(0.1)
                return x
            study = assay.optimize(objective, {"x": (0.0, 1.0)}, 15, name="again", load_if_exists=True)
            print("trials", len(study.trials), flush=True)
        """)
        run = lambda: subprocess.Popen([sys.executable, "-W", "error", "-c", script], stdout=subprocess.PIPE,  # noqa: E731
                                       universal_newlines=True, env=dict(os.environ, PYTHONPATH=CLIENT))
        first = run()
        for _ in range(4):
            self.assertTrue(first.stdout.readline())
        first.kill()
        first.communicate()
        both = [run(), run()]
        for p in both:
            out, _ = p.communicate(timeout=PATIENCE_S)
            self.assertEqual(p.returncode, 0, out)
            self.assertIn("trials 15", out)
        UP.wait_ended("again")
        UP.check_exact("again", 15)

    def test_the_server_is_killed(self):
        def objective(trial):
            x = trial.suggest_float("x", 0, 1)
            if trial.number == 3:
                os.kill(UP.processes("assayd")[0], signal.SIGKILL)
            trial.report(x, 0)
            return x

        study = assay.optimize(objective, n_trials=8, name="outage")
        UP.check_exact(study.sweep, 8)

    def test_heartbeats_of_a_silent_trial(self):
        """They keep its lease, and bring the news that it was cancelled."""
        def objective(trial):
            x = trial.suggest_float("x", 0, 1)
            if trial.number == 1:
                UP.call("POST", f"/v1/sweeps/{trial._sweep}/trials/1/cancel")
                deadline = time.monotonic() + PATIENCE_S
                while not trial.should_prune() and time.monotonic() < deadline:
                    time.sleep(0.02)
                said.append(trial.should_prune())
            return x

        said = []
        beat, assay.BEAT_S = assay.BEAT_S, 0.3
        try:
            study = assay.optimize(objective, {"x": (0.0, 1.0)}, 3, name="silent")
        finally:
            assay.BEAT_S = beat
        self.assertEqual(said, [True])
        self.assertEqual(self.states(study), ["completed", "cancelled", "completed"])


class Named(Case):
    """What has Optuna's names."""

    def objective(self, trial):
        x, k = trial.suggest_float("x", 1e-3, 1, log=True), trial.suggest_categorical("k", ["a", "b"])
        for step in range(3):
            trial.report(x * step, step)
        return x + (k == "a")

    def test_studies(self):
        study = assay.optimize(self.objective, n_trials=12, name="named", seed=1)
        loaded = assay.load_study("named")
        for s in (study, loaded):
            t = s.get_trials(states=["COMPLETE"])[2]
            self.assertEqual([t.intermediate_values[i] for i in range(3)], [t.params["x"] * i for i in range(3)])
            self.assertEqual(t.distributions, {"x": assay.FloatDistribution(1e-3, 1, log=True),
                                               "k": assay.CategoricalDistribution(["a", "b"])})
            self.assertGreaterEqual(t.datetime_complete, t.datetime_start)
            self.assertEqual((s.study_name, s.directions, s.direction), ("named", ["minimize"], assay.StudyDirection.MINIMIZE))
        self.assertEqual(set(assay.get_param_importances(loaded)), {"x", "k"})
        copied = assay.copy_study(from_study_name="named", to_study_name="copied")
        self.assertEqual((len(copied.trials), copied.best_value), (12, study.best_value))
        self.assertLessEqual({"named", "copied"}, set(assay.get_all_study_names()))
        summary = next(s for s in assay.get_all_study_summaries() if s.study_name == "named")
        self.assertEqual((summary.best_value, summary.n_trials), (study.best_value, 12))
        assay.delete_study("named")
        self.assertNotIn("named", assay.get_all_study_names())
        self.refuses(assay.AssayError, ["named"], assay.delete_study, "named")

    def test_asked_enqueued_and_told(self):
        study = assay.create_study(study_name="named-ask")
        study.enqueue_trial({"x": 0.5}, user_attrs={"why": "first"}, skip_if_exists=True)
        study.enqueue_trial({"x": 0.5}, skip_if_exists=True)
        first = study.ask({"x": assay.FloatDistribution(0, 1)})
        self.assertEqual((first.params, study.tell(first, 1.0).user_attrs), ({"x": 0.5}, {"why": "first"}))
        self.assertNotEqual(study.ask({"x": (0.0, 1.0)}).params, {"x": 0.5})
        study.tell(1, 2.0)
        study.tell(study.ask({"x": (0.0, 1.0)}), state=assay.TrialState.FAIL)
        self.assertEqual([t.state.name for t in study.trials], ["COMPLETE", "COMPLETE", "FAIL"])
        self.assertEqual(study.tell(1, 3.0, skip_if_finished=True).value, 2.0)
        self.refuses(ValueError, ["trial 1"], study.tell, 1, 3.0)

    def check_constraints(self, study, values_of, bounded):
        """The sweep bounds these metrics; the service, this process and another one know the values of each trial."""
        document = UP.sweep(study.sweep)["document"]
        self.assertEqual(document["constraints"], [{"metric": m, "max": 0} for m in bounded])
        for s in (study, assay.load_study(study.sweep)):
            for t in s.get_trials(states=["COMPLETE"]):
                self.assertEqual(t.system_attrs, {"constraints": values_of(t)})
                self.assertEqual(t.feasible, all(c <= 0 for c in values_of(t)))
            allowed = [t for t in s.trials if t.feasible and t.value is not None]
            self.assertEqual(s.best_value, min(t.value for t in allowed))
        for row in UP.trials(study.sweep):
            if row["state"] == "completed":
                self.assertEqual(row["feasible"], row["metrics"]["constraint"] <= 0)
        return [t.feasible for t in study.trials]

    def test_attributes_of_a_study(self):
        """They are on the server, also after its space grew."""
        def objective(trial):
            return trial.suggest_float("x", 0, 1) + (trial.suggest_float("y", 0, 1) if trial.number == 2 else 0)

        study = assay.create_study(study_name="attributes", tags=["mine"])
        attrs = {"data set": "digits", "shape": [1, {"a": None}], "dot.ted": 0.5, "a=b/c~": 1, "gr\u00f6\u00dfe": "\u2603", "long": "x" * 5000}
        hidden = {"object": object(), "nan": float("nan"), "large": "x" * 20000, "": 1, "n" * 129: 1, "a\nb": 1, "lone": "\udcff", "nul": "\0"}
        for key, value in {**attrs, **hidden}.items():
            study.set_user_attr(key, value)
        study.optimize(objective, n_trials=1)
        study.set_user_attr("late", 1)
        self.assertEqual(study.user_attrs, {**attrs, **hidden, "late": 1})
        loaded = assay.load_study("attributes")
        self.assertEqual((loaded.user_attrs, loaded._options["tags"]), ({**attrs, "late": 1}, ["mine"]))
        loaded.set_user_attr("late", None)
        self.assertEqual(assay.load_study("attributes").user_attrs, attrs)
        study.optimize(objective, n_trials=4)
        self.assertNotEqual(study.sweep, "attributes")
        self.assertEqual(assay.load_study(study.sweep).user_attrs, {**attrs, "late": 1})
        copied = assay.copy_study(from_study_name=study.sweep, to_study_name="attributes-copy")
        self.assertEqual(assay.load_study("attributes-copy").user_attrs, copied.user_attrs)
        many = assay.create_study(study_name="attributes-many", tags=["t"])
        for i in range(100):
            many.set_user_attr(f"a{i}", i)
        many.optimize(objective, n_trials=4)
        self.assertEqual(assay.load_study(many.sweep).user_attrs, {f"a{i}": i for i in range(64)})

    def test_attributes_of_trials(self):
        """Other programs see them: those of a first trial, of one that failed or was enqueued, and of results that went along
        as the space grew; a trial sends them once."""
        def objective(trial):
            value = trial.suggest_float("x", 0, 1) + (trial.suggest_float("y", 0, 1) if trial.number == 2 else 0)
            trial.set_user_attr("weights", [value, None])
            trial.set_user_attr("model", self)
            trial.report(value, 0)
            trial.set_user_attr("epoch", 1)
            if trial.number == 1:
                raise ValueError("fails")
            return value

        study = assay.create_study(study_name="trial-attributes")
        study.enqueue_trial({"x": 0.5}, user_attrs={"why": "first"})
        study.optimize(objective, n_trials=5, catch=ValueError)
        self.assertTrue(study.sweep.endswith("-2"))
        self.assertEqual({t.user_attrs["model"] for t in study.trials if "model" in t.user_attrs}, {self})
        found = assay.load_study(study.sweep).trials
        self.assertEqual(len(found), 5)
        for t in found:
            mine = next(m for m in study.trials if m.number == t.number)
            self.assertEqual(t.user_attrs, {k: v for k, v in mine.user_attrs.items() if k != "model"})
            self.assertEqual(set(t.user_attrs) - {"why"}, {"weights", "epoch"})
        self.assertEqual([t.user_attrs.get("why") for t in found].count("first"), 1)
        path = f"/v1/sweeps/{study.sweep}/trials/0/user_attrs"
        for _ in range(2):
            self.assertEqual(UP.call("PATCH", path, {"epoch": None, "new": {"a": 1}})["user_attrs"].keys(), {"weights", "new"} | set(found[0].user_attrs) & {"why"})
        row = UP.call("GET", f"/v1/sweeps/{study.sweep}/trials/0")
        self.assertEqual(row["user_attrs"]["new"], {"a": 1})
        self.assertNotIn("user_attrs", UP.trials(study.sweep)[0])
        self.assertIn("attr.new", UP.cli("trial", f"{study.sweep}/0").stdout)
        self.assertIn("user_attrs", json.loads(UP.cli("show", study.sweep, "--json").stdout))
        for bad, pointer in [({"": 1}, "/"), ({"n" * 129: 1}, "/" + "n" * 129), ({"a\tb": 1}, "/a\tb"), ({"a/b": "x" * 17000}, "/a~1b"),
                             ([1], ""), ({str(i): "x" * 1000 for i in range(65)}, ""), ({str(i): "x" * 16000 for i in range(5)}, "")]:
            with self.assertRaises(Problem) as refused:
                UP.call("PATCH", path, bad)
            self.assertIn(refused.exception.status, (400, 413), bad)
            if pointer:
                self.assertTrue(pointer.startswith(refused.exception.body["errors"][0]["pointer"]), refused.exception.body)  # cut at 120
        self.assertEqual(UP.call("GET", f"/v1/sweeps/{study.sweep}/trials/0")["user_attrs"], row["user_attrs"])
        for missing in (f"/v1/sweeps/{study.sweep}/trials/99/user_attrs", "/v1/sweeps/none/user_attrs"):
            with self.assertRaises(Problem) as refused:
                UP.call("PATCH", missing, {"a": 1})
            self.assertEqual(refused.exception.status, 404)

    def test_constraints_func(self):
        def of(t):
            return [0.5 - t.params["x"], t.params["x"] - 0.9]

        def objective(t):
            return t.suggest_float("x", 0, 1)

        sampler = assay.samplers.TPESampler(constraints_func=of, seed=2)
        study = assay.create_study(study_name="bounded-two", sampler=sampler)
        study.optimize(objective, n_trials=12)
        self.assertEqual(set(self.check_constraints(study, of, ["constraint_0", "constraint_1"])), {True, False})
        self.assertGreaterEqual(study.best_value, 0.5)

        def reports(t):  # the sweep is created before it is known how many there are
            t.report(t.suggest_float("x", 0, 1))
            return t.params["x"]

        study = assay.optimize(reports, name="bounded-reports", n_trials=8, constraints_func=lambda t: tuple(of(t)), seed=2)
        self.assertEqual(set(self.check_constraints(study, of, ["constraint"])), {True, False})
        study = assay.optimize(objective, {"x": (0.0, 1.0)}, name="bounded-space", n_trials=8, constraints_func=of, seed=2)
        self.check_constraints(study, of, ["constraint"])
        copied = assay.copy_study(from_study_name="bounded-space", to_study_name="bounded-copy")
        self.assertEqual([t.feasible for t in copied.trials], [t.feasible for t in study.trials])
        self.check_constraints(copied, of, ["constraint"])

    def test_constraints_while_the_space_grows(self):
        def objective(t):
            x = t.suggest_float("x", 0, 1)
            t.report(0, 0, noise=float("nan"))  # known results have finite numbers alone
            return x + (t.suggest_float("y", 0, 1) if t.number == 3 else 0)

        def of(t):
            return [0.5 - t.params["x"]]

        study = assay.create_study(study_name="bounded-grows", constraints_func=of, seed=3)
        study.add_trial(assay.create_trial(params={"x": 0.75}, distributions={"x": assay.FloatDistribution(0, 1)}, value=0.75,
                                           system_attrs={"constraints": [-0.25]}))
        study.optimize(objective, n_trials=8)
        self.assertNotEqual(study.sweep, "bounded-grows")
        self.check_constraints(study, of, ["constraint"])

    def test_constraints_of_a_loop_and_of_pruned_trials(self):
        study = assay.create_study(study_name="bounded-loop", constraints_func=lambda t: [t.params["x"] - 0.5, *t.user_attrs["more"]])
        for i in range(4):
            trial = study.ask()
            trial.suggest_float("x", 0, 1)
            trial.set_user_attr("more", [-1.0] * (2 if i < 3 else 1))
            if i < 3:
                told = study.tell(trial, 1.0, state=[None, "PRUNED", "COMPLETE"][i]) if i != 1 else study.tell(trial, state="PRUNED")
                self.assertEqual(told.system_attrs["constraints"], [trial.params["x"] - 0.5, -1.0, -1.0])
            else:
                self.refuses(ValueError, ["constraints_func", "2 values, expected 3"], study.tell, trial, 1.0)
                study.tell(trial, state="FAIL")
        self.assertEqual([t.state.name for t in study.trials], ["COMPLETE", "PRUNED", "COMPLETE", "FAIL"])

    def test_constraints_that_are_refused(self):
        def objective(t):
            return t.suggest_float("x", 0, 1)

        for number, (returned, words) in enumerate([(3, "list of numbers"), ([float("nan")], "finite"), ([float("inf")], "finite"),
                                                    ([0.0] * 65, "at most 64"), (["a"], "list of numbers")]):
            study = assay.create_study(study_name=f"bounded-wrong-{number}", constraints_func=lambda t: returned)
            study.optimize(objective, n_trials=1, catch=ValueError)
            self.assertEqual([t.state.name for t in study.trials], ["FAIL"])
            self.assertIn("constraints_func returned", study.trials[0].reason)
            self.assertIn(words, study.trials[0].reason)
        self.refuses(ValueError, ["constraint_1"], assay.create_study, metric="constraint_1", constraints_func=lambda t: [0])
        self.refuses(ValueError, ["constraints_func", "bounded-wrong-9"], self.joins_one_without)

    def joins_one_without(self):
        assay.optimize(sphere, n_trials=1, name="bounded-wrong-9")
        assay.load_study("bounded-wrong-9", constraints_func=lambda t: [0])

    class Walk(assay.samplers.BaseSampler):
        """A step from the last completed trial; what is new is in the middle of its range. `calls`: what was called."""

        def __init__(self):
            self.calls = []

        def infer_relative_search_space(self, study, trial):
            return assay.search_space.intersection_search_space(study.trials)

        def sample_relative(self, study, trial, search_space):
            done = study.get_trials(states=["COMPLETE"])
            self.calls.append(sorted(search_space))
            return {n: min(done[-1].params[n] + 0.25, d.high) for n, d in search_space.items() if not hasattr(d, "choices")}

        def sample_independent(self, study, trial, param_name, param_distribution):
            self.calls.append(param_name)
            choices = getattr(param_distribution, "choices", None)
            return choices[-1] if choices else (param_distribution.low + param_distribution.high) / 2

        def after_trial(self, study, trial, state, values):
            self.calls.append((state.name, values))

    def test_a_sampler_of_the_users_own(self):
        def objective(trial):
            x, k = trial.suggest_float("x", 0, 1), trial.suggest_categorical("k", ["a", None])
            if trial.number == 2:
                raise ValueError("no")
            if trial.number == 3:
                raise assay.TrialPruned()
            return x + (k is None)

        sampler = self.Walk()
        study = assay.create_study(study_name="own", sampler=sampler)
        study.optimize(objective, n_trials=6, catch=ValueError)
        want = [(0.5, "COMPLETE"), (0.75, "COMPLETE"), (1.0, "FAIL"), (1.0, "PRUNED"), (1.0, "COMPLETE"), (1.0, "COMPLETE")]
        self.assertEqual([(t.params["x"], t.state.name) for t in study.trials], want)
        self.assertEqual(sampler.calls[:7], [[], "x", "k", ("COMPLETE", [1.5]), ["k", "x"], "k", ("COMPLETE", [1.75])])
        self.assertEqual([c[0] for c in sampler.calls if isinstance(c, tuple)], [state for _, state in want])
        rows = UP.trials("own")
        self.assertEqual([(r["params"]["x"], r["params"]["k"]) for r in rows], [(x, None) for x, _ in want])
        self.assertEqual(UP.wait_ended("own")["counts"]["total"], 6)
        study.enqueue_trial({"x": 0.125})
        study.optimize(objective, n_trials=2)
        self.assertEqual([t.params["x"] for t in study.trials[6:]], [0.125, 0.375])

    def test_a_sampler_of_the_users_own_while_others_run_and_the_space_grows(self):
        def objective(trial):
            x = trial.suggest_float("x", 0, 1)
            trial.report(x)
            return x + (trial.suggest_int("late", 0, 4) if trial.number > 3 else 0)

        study = assay.optimize(objective, name="own-grows", n_trials=12, n_jobs=3, sampler=self.Walk())
        self.assertEqual((len(study.trials), {t.state.name for t in study.trials}), (12, {"COMPLETE"}))
        self.assertTrue(all("late" in t.params for t in study.trials if t.number > 6), study.trials)
        total = assay.create_study(study_name="own-space", space={"x": (0.0, 1.0)}, sampler=self.Walk())
        total.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=3)
        self.assertEqual([t.params["x"] for t in total.trials], [0.5, 0.75, 1.0])

    def test_a_sampler_of_the_users_own_that_is_wrong(self):
        class Wrong(self.Walk):
            def sample_independent(self, study, trial, param_name, param_distribution):
                return 3.0

        study = assay.create_study(study_name="own-wrong", sampler=Wrong())
        self.refuses(assay.SpaceError, ["'x'", "found 3.0 of Wrong.sample_independent()", "from 0.0 to 1.0"], study.optimize,
                     lambda t: t.suggest_float("x", 0, 1), 1)
        self.refuses(NotImplementedError, [], assay.create_study(sampler=assay.samplers.BaseSampler()).optimize, sphere, 1)
        draws = assay.samplers.RandomSampler(seed=1)
        self.assertTrue(all(0 <= draws.sample_independent(None, None, "x", assay.IntDistribution(0, 3)) <= 3 for _ in range(20)))

    def test_trials_that_are_asked_for_together(self):
        """Before there is a sweep: each has values of its own, and all become trials of it."""
        study = assay.create_study(study_name="named-together")
        trials = [study.ask() for _ in range(3)]
        for t in trials[::-1]:
            study.tell(t, t.suggest_float("x", 0, 1))
        self.assertEqual(sorted(t.number for t in study.trials), [0, 1, 2])
        self.assertEqual([t.value for t in study.trials], [t.params["x"] for t in study.trials])

    def test_plots(self):
        pythons = [p for p in (sys.executable, "/usr/bin/python3") if os.path.exists(p) and subprocess.run(
            [p, "-c", "import matplotlib"], stderr=subprocess.DEVNULL).returncode == 0]
        if not pythons:
            self.skipTest("matplotlib is not installed")
        assay.optimize(self.objective, n_trials=12, name="plots", seed=1)
        assay.optimize(lambda t: (t.suggest_float("x", 0, 1), 1 - t.params["x"]), n_trials=4, name="front",
                       directions=["minimize", "minimize"])
        script = """if True:
            import assay
            import os
            plots_of_plotly = assay.visualization
            plots, one, two = assay.visualization.matplotlib, assay.load_study("plots"), assay.load_study("front")
            for name in ("optimization_history", "slice", "contour", "rank", "parallel_coordinate", "param_importances", "edf",
                         "intermediate_values", "timeline"):
                drawn = getattr(plots, "plot_" + name)(one)
                axes = drawn if hasattr(drawn, "get_title") else drawn[0][0]
                assert axes.collections or axes.lines or axes.patches, name
            drawn = plots_of_plotly.plot_slice(one)
            if not hasattr(drawn, "to_plotly_json"):  # plotly is not installed
                drawn.show()
                drawn.write_image("slice.png")
                assert drawn.figure is drawn.axes[0][0].get_figure() and os.path.getsize("slice.png")
            points = plots.plot_pareto_front(two).collections
            assert sum(len(c.get_offsets()) for c in points) == 4
            try:
                plots.plot_slice(two)
            except ValueError as e:
                assert "target" in str(e)
            plots.plot_slice(two, target=lambda t: t.values[0])
        """
        with tempfile.TemporaryDirectory(prefix="assay-py-") as folder:
            subprocess.run([pythons[0], "-B", "-c", script], check=True, cwd=folder,
                           env=dict(os.environ, PYTHONPATH=CLIENT, MPLBACKEND="Agg"))


class Documents(Case):
    def test_artifacts_and_terminators(self):
        """Files of trials are found by another program; a study ends by the service's bound of what is left to gain."""
        a, calls = assay.artifacts, []
        with tempfile.TemporaryDirectory() as folder:
            store, path = a.FileSystemArtifactStore(folder), os.path.join(folder, "note.txt")

            def objective(trial):
                x = trial.suggest_float("x/y", -5, 5)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(f"{x!r}")
                a.upload_artifact(artifact_store=store, file_path=path, study_or_trial=trial)
                assay.terminator.report_cross_validation_scores(trial, [x * x - 9, x * x + 9])
                calls.append(x)
                return x * x

            study = assay.create_study(study_name="stops", sampler=assay.samplers.GPSampler(seed=1))
            kept = a.upload_artifact(artifact_store=store, file_path=__file__, study_or_trial=study)
            study.optimize(objective, n_trials=200, callbacks=[assay.terminator.TerminatorCallback()])
            self.assertTrue(20 <= len(calls) < 200, len(calls))
            loaded = assay.load_study(study.sweep)
            self.assertEqual([m.artifact_id for m in a.get_all_artifact_meta(loaded)], [kept])
            found, = a.get_all_artifact_meta(loaded.best_trial)
            a.download_artifact(artifact_store=store, file_path=path, artifact_id=found.artifact_id)
            with open(path, encoding="utf-8") as f:
                self.assertEqual(float(f.read()), loaded.best_params["x/y"])

    def test_programs_that_start_together(self):
        """Of two programs one starts `assay up`; the other waits for that one, also where it had begun to start its own."""
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            code = "import assay; print(assay.create_study(study_name='first', method='random')._http.call('GET', '/v1/sweeps')['items'])"
            env = dict(os.environ, PYTHONPATH=CLIENT, ASSAY_DATA=folder, PATH=os.path.dirname(ASSAY) + os.pathsep + os.environ["PATH"],
                       XDG_STATE_HOME=os.path.join(folder, "state"))
            runs = [subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                    for _ in range(2)]
            said = [run.communicate(timeout=PATIENCE_S) for run in runs]
            pids = [int(p) for _, err in said for p in re.findall(r"`kill (\d+)` ends it", err)]
            for pid in pids:
                os.kill(pid, signal.SIGTERM)
            while any(os.path.exists(f"/proc/{pid}") for pid in pids):
                time.sleep(0.05)
            self.assertEqual([run.returncode for run in runs], [0, 0], said)
            self.assertEqual(len(pids), 1, said)

    def test_the_blocks_of_the_page(self):
        """docs/python.md, from its first block to its last."""
        with open(os.path.join(SOURCE, "docs", "python.md"), encoding="utf-8") as f:
            blocks = re.findall(r"^```python\n(.*?)^```", f.read(), re.M | re.S)
        scope, ran = {}, 0
        with contextlib.redirect_stdout(io.StringIO()) as out:
            for block in blocks:
                if "import optuna" not in block:  # test_python_optuna.py
                    exec(compile(block, "docs/python.md", "exec"), scope)
                    ran += 1
        self.assertGreaterEqual(ran, 5)
        self.assertIn("completed", out.getvalue())
        self.assertEqual(UP.sweep("train")["counts"]["completed"], 12)

    def test_the_example(self):
        done = subprocess.run([sys.executable, "-W", "error", os.path.join(SOURCE, "examples", "python", "optimize.py"), "12"],
                              env=dict(os.environ, PYTHONPATH=CLIENT), stdout=subprocess.PIPE, universal_newlines=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn("error 0.", done.stdout)
        self.assertEqual(len([t for t in assay.load_study("rings-2").trials if t.state == "completed"]), 12)


class Programs(Case):
    def test_inside_a_trial(self):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            os.chmod(folder, 0o777)
            script = os.path.join(folder, "trial.py")
            with open(script, "w", encoding="utf-8") as f:
                f.write(textwrap.dedent("""
                    import assay, os, sys, time
                    p = assay.params({"momentum": 0.9})
                    assert assay.in_trial() and assay.seed() and assay.checkpoint_dir().is_dir()
                    before = assay.checkpoint_dir() / "step"
                    first = int(before.read_text()) if before.exists() else 0
                    for step in range(first, 3):
                        assay.report(step=step, loss=p["x"] + step, momentum=p["momentum"])
                        if p["x"] > 0.5 and step == 1 and first == 0:
                            before.write_text("2")
                            sys.exit(75)  # goes on in the next attempt
                    while p["wait"] and not assay.should_stop():
                        time.sleep(0.02)
                    (assay.artifacts_dir() / "done").write_text(str(assay.should_stop()))
                """))
            os.chmod(script, 0o644)
            document = {"name": "program", "metric": {"name": "loss", "goal": "minimize"}, "limits": {"max_trials": 2},
                        "parameters": {"x": {"type": "categorical", "values": [0.25, 0.75]},
                                       "wait": {"type": "constant", "value": False}}, "search": {"method": "grid"},
                        "trial": {"command": [sys.executable, "-W", "error", script], "env": {"PYTHONPATH": CLIENT}}}
            sweep = UP.call("POST", "/v1/sweeps", document)["id"]
            UP.wait_ended(sweep)
            rows = UP.trials(sweep)
            self.assertEqual([(r["state"], r["value"]) for r in rows], [("completed", 2.25), ("completed", 2.75)], rows)
            self.assertEqual([r["attempt"] for r in rows], [1, 2])
            document["parameters"]["wait"]["value"] = True
            sweep = UP.call("POST", "/v1/sweeps", dict(document, limits={"max_trials": 1, "grace": "200s"}))["id"]
            UP.wait(lambda: any(t["step"] == 2 for t in UP.trials(sweep)), "the last report")
            UP.call("POST", f"/v1/sweeps/{sweep}/trials/0/cancel")  # SIGTERM: it ends by itself, long before SIGKILL
            UP.wait(lambda: not subprocess.run(["pgrep", "-f", script], stdout=subprocess.DEVNULL).returncode == 0,
                    "the program to end")

    def test_data_folder_chooses(self):
        before = dict(os.environ)
        with tempfile.TemporaryDirectory(prefix="assay-py-", dir="/var/tmp") as folder:
            notes = os.path.join(folder, "assay", "up")
            for i, name in enumerate(("old", "new")):
                os.makedirs(os.path.join(folder, name))
                os.makedirs(notes, exist_ok=True)
                with open(os.path.join(notes, f"{name}.json"), "w") as f:
                    json.dump({"url": f"http://h:{i}", "token_file": "t", "data": os.path.join(folder, name), "since": i,
                               "pid": os.getpid(), "start": assay._start_ticks(os.getpid())}, f)
            os.symlink("old", os.path.join(folder, "link"))
            try:
                os.environ["XDG_STATE_HOME"] = folder
                for variable in ("ASSAY_DATA", "ASSAY_SERVER", "ASSAY_PROFILE"):
                    os.environ.pop(variable, None)
                self.assertEqual(assay._running()["url"], "http://h:1")
                for name, url in (("old", "http://h:0"), ("new", "http://h:1"), ("link", "http://h:0")):
                    os.environ["ASSAY_DATA"] = os.path.join(folder, name)
                    self.assertEqual(assay._running()["url"], url)
                    self.assertEqual(assay._running("http://h:1")["url"], "http://h:1")  # for a token: the URL decides
                os.environ["ASSAY_DATA"] = os.path.join(folder, "none")
                with self.assertRaisesRegex(assay.Unavailable, "data folder .*none"):
                    assay._find(None, None, None, start=False)
            finally:
                os.environ.clear()
                os.environ.update(before)

    def test_starts_a_server(self):
        with tempfile.TemporaryDirectory(prefix="assay-py-", dir="/var/tmp") as folder:
            os.chmod(folder, 0o755)
            script = ("import assay; s = assay.optimize(lambda t: t.suggest_float('x', 0, 1), n_trials=3); "
                      "print(len(s.trials), assay._running()['pid'])")
            env = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}
            env.update(PYTHONPATH=CLIENT, XDG_STATE_HOME=folder, ASSAY_DATA=os.path.join(folder, "data"),
                       PATH=os.path.dirname(ASSAY) + os.pathsep + os.environ["PATH"])
            done = [subprocess.run([sys.executable, "-W", "error", "-c", script], env=env, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, universal_newlines=True, timeout=PATIENCE_S) for _ in range(2)]
            try:
                self.assertEqual([d.returncode for d in done], [0, 0], done)
                self.assertEqual(done[0].stdout, done[1].stdout)  # the second program finds the one of the first
                self.assertIn("started `assay up`", done[0].stderr)
                self.assertNotIn("started", done[1].stderr)
            finally:
                pid = int(done[0].stdout.split()[1])
                ticks = assay._start_ticks(pid)
                os.kill(pid, signal.SIGTERM)
                deadline = time.monotonic() + PATIENCE_S
                while assay._start_ticks(pid) == ticks and ticks and time.monotonic() < deadline:
                    time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
