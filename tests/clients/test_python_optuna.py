#!/usr/bin/env python3
"""Objectives that were written for Optuna: shapes of optuna-examples through assay.optimize(), unchanged files of
optuna-examples (ASSAY_OPTUNA_EXAMPLES names a checkout), the sampler inside Optuna, and callbacks of libraries. What
needs a package that is not installed is skipped; the shapes need none."""
import contextlib
import importlib
import importlib.util
import math
import os
import pickle
import random
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock
import warnings

SOURCE = os.environ["ASSAY_SOURCE_ROOT"]
sys.path[:0] = [os.path.join(os.environ["ASSAY_BUILD_ROOT"], "clients", "python"), os.path.join(SOURCE, "tests", "e2e")]
warnings.simplefilter("default")  # the libraries' own warnings are not ours
import assay  # noqa: E402
from harness import Assay  # noqa: E402

STATE = tempfile.TemporaryDirectory(prefix="assay-py-", dir="/var/tmp")
os.environ.update(XDG_STATE_HOME=STATE.name, XDG_CONFIG_HOME=STATE.name)
UP = Assay(runners=0, args=())


def setUpModule():
    UP.__enter__()


def tearDownModule():
    UP.__exit__(None, None, None)
    STATE.cleanup()


def needs(*packages):
    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    return unittest.skipIf(missing, f"not installed: {' '.join(missing)}")


class Shapes(unittest.TestCase):
    """The objectives of optuna-examples, with arithmetic in the place of training."""

    def run_exact(self, objective, n=14, **named):
        study = assay.optimize(objective, n_trials=n, seed=4, **named)
        rows = UP.trials(study.sweep)
        self.assertEqual([r["number"] for r in rows], list(range(n)))
        self.assertEqual({r["state"] for r in rows}, {"completed"})
        self.assertEqual(len(study.trials), n)
        return study

    def test_quadratic(self):  # basic/quadratic.py: continued, and for a time
        def objective(trial):
            return trial.suggest_float("x", -100, 100) ** 2 + trial.suggest_categorical("y", [-1, 0, 1])

        study = assay.create_study()
        study.optimize(objective, n_trials=5)
        study.optimize(objective, n_trials=5)
        self.assertEqual(len(study.trials), 10)
        study.optimize(objective, timeout=0.5)
        self.assertEqual(study.best_value, min(t.value for t in study.trials))
        self.assertEqual(set(study.best_params), {"x", "y"})

    def test_multi_objective(self):  # basic/quadratic_multi_objective.py
        def objective(trial):
            x, y = trial.suggest_float("x", -100, 100), trial.suggest_categorical("y", [-1, 0, 1])
            return x ** 2 + y, -((x - 2) ** 2 + y)

        study = self.run_exact(objective, directions=["minimize", "maximize"])
        self.assertTrue(all(len(t.values) == 2 for t in study.best_trials))

    def test_pruning(self):  # basic/pruning.py: a report and a question in each step
        def objective(trial):
            alpha, score = trial.suggest_float("alpha", 1e-5, 1e-1, log=True), 0.0
            for step in range(100):
                score = 1 - abs(math.log10(alpha) + 3) / (step + 1)
                trial.report(score, step)
                if trial.should_prune():
                    raise assay.TrialPruned()
            return score

        study = self.run_exact(objective, direction="maximize")
        self.assertEqual(UP.trials(study.sweep)[3]["step"], 100)

    def test_two_models(self):  # sklearn/sklearn_simple.py, sklearn/sklearn_additional_args.py: a class with data
        class Objective:
            def __init__(self, data):
                self.data = data

            def __call__(self, trial):
                if trial.suggest_categorical("classifier", ["SVC", "RandomForest"]) == "SVC":
                    return -abs(math.log10(trial.suggest_float("svc_c", 1e-10, 1e10, log=True)) - self.data)
                return -trial.suggest_int("rf_max_depth", 2, 32, log=True) / 4

        study = self.run_exact(Objective(1.0), direction="maximize")
        for t in study.trials:
            self.assertEqual(set(t.params), {"classifier", "svc_c" if t.params["classifier"] == "SVC" else "rf_max_depth"})

    def test_layers(self):  # pytorch/pytorch_simple.py, tensorflow/…: names that depend on a number
        def objective(trial):
            loss = 0.0
            for i in range(trial.suggest_int("n_layers", 1, 3)):
                loss += abs(trial.suggest_int(f"n_units_l{i}", 4, 128) - 64) + trial.suggest_float(f"dropout_l{i}", 0.2, 0.5)
            return loss + abs(math.log10(trial.suggest_float("lr", 1e-5, 1e-1, log=True)) + 3) + \
                len(trial.suggest_categorical("optimizer", ["Adam", "RMSprop", "SGD"]))

        study = self.run_exact(objective, 18)
        for t in study.trials:
            self.assertEqual(sum(n.startswith("n_units") for n in t.params), t.params["n_layers"])

    def test_boosting(self):  # xgboost/xgboost_simple.py, lightgbm/…: many parameters, some for one booster
        def objective(trial):
            p = {"booster": trial.suggest_categorical("booster", ["gbtree", "gblinear", "dart"]),
                 "lambda": trial.suggest_float("lambda", 1e-8, 1.0, log=True),
                 "subsample": trial.suggest_float("subsample", 0.2, 1.0)}
            if p["booster"] in ("gbtree", "dart"):
                p["max_depth"] = trial.suggest_int("max_depth", 3, 9, step=2)
                p["grow_policy"] = trial.suggest_categorical("grow_policy", ["depthwise", "lossguide"])
            if p["booster"] == "dart":
                p["rate_drop"] = trial.suggest_float("rate_drop", 1e-8, 1.0, log=True)
            return p["subsample"] + p.get("max_depth", 5) / 9

        study = self.run_exact(objective, 20, direction="maximize")
        self.assertTrue(all(t.params.get("max_depth", 3) in (3, 5, 7, 9) for t in study.trials))

    def test_enqueued(self):  # faq/enqueue_trial.py
        study = assay.create_study(direction="maximize")
        study.enqueue_trial({"svc_c": 1})
        study.enqueue_trial({"svc_c": 10})
        study.optimize(lambda t: -abs(math.log10(t.suggest_float("svc_c", 1e-10, 1e10, log=True)) - 1), n_trials=6)
        self.assertEqual([t.params["svc_c"] for t in study.trials[:2]], [1, 10])
        self.assertEqual(study.best_params["svc_c"], 10)


class Behaviour(unittest.TestCase):
    """What Optuna's own tests and tutorials do with a study."""

    def square(self, trial):
        return trial.suggest_float("x", -1, 1) ** 2

    def states(self, study):
        return [t.state.name for t in study.trials]

    def test_trials_that_run_and_wait(self):
        study = assay.create_study()
        study.enqueue_trial({"x": 0.5})
        self.assertEqual((self.states(study), study.trials[0].datetime_start), (["WAITING"], None))
        trial = study.ask()
        self.assertEqual((self.states(study), study.trials[0].datetime_complete), (["RUNNING"], None))
        study.tell(trial, self.square(trial))
        self.assertEqual((self.states(study), study.best_params), (["COMPLETE"], {"x": 0.5}))

        def objective(trial):
            last = trial.study.trials[-1]
            self.assertEqual((last.number, last.state.name), (trial.number, "RUNNING"))
            return self.square(trial)

        assay.create_study().optimize(objective, n_trials=3)

    def test_a_sampler_that_looks_at_the_trial_before(self):  # tutorial/20_recipes/005_user_defined_sampler.py
        class Walk(assay.samplers.BaseSampler):
            seen = []

            def infer_relative_search_space(self, study, trial):
                return {}

            def sample_relative(self, study, trial, search_space):
                if len(study.trials) > 1:
                    self.seen.append((study.trials[-2].state.name, study.trials[-1].number == trial.number))
                return {}

            def sample_independent(self, study, trial, name, distribution):
                return distribution.low

        assay.create_study(sampler=Walk()).optimize(self.square, n_trials=3)
        self.assertEqual(Walk.seen, [("COMPLETE", True)] * 2)

    def test_every_combination_once(self):
        def objective(trial):
            if trial.suggest_categorical("kind", ["a", "b"]) == "a":
                return trial.suggest_int("n", 1, 5, step=2)
            return trial.suggest_float("x", 0, 1, step=0.5) + trial.suggest_int("one", 1, 1)

        study = assay.create_study(sampler=assay.samplers.BruteForceSampler(seed=1))
        study.optimize(objective, n_trials=100)
        tried = sorted(sorted((n, str(v)) for n, v in t.params.items()) for t in study.trials)
        self.assertEqual(len(tried), 6)
        self.assertEqual([t for i, t in enumerate(tried) if t in tried[:i]], [])
        with self.assertRaisesRegex(ValueError, "parameter 'x': found a range without step="):
            assay.create_study(sampler=assay.samplers.BruteForceSampler()).optimize(self.square, n_trials=1)

    def test_configurations_that_come_when_all_trials_are_made(self):
        study = assay.create_study()
        study.optimize(self.square, n_trials=2)
        study.enqueue_trial({"x": 0.25}, user_attrs={"memo": 1})
        study.enqueue_trial({"x": 0.25}, skip_if_exists=True)
        self.assertEqual(self.states(study), ["COMPLETE", "COMPLETE", "WAITING"])
        study.optimize(self.square, n_trials=2)
        self.assertEqual([t.params["x"] == 0.25 for t in study.trials][2], True)
        self.assertEqual((study.trials[2].user_attrs, len(study.trials)), ({"memo": 1}, 4))
        study = assay.create_study()
        study.enqueue_trial({"x": 0.5}, user_attrs={"memo": "known when it begins"})
        self.assertEqual(study.ask().user_attrs, {"memo": "known when it begins"})
        study = assay.create_study()
        study.add_trial({"x": 0.5}, 0.25)
        self.assertEqual((study.best_value, self.states(study)), (0.25, ["COMPLETE"]))

    def test_optimize_within_optimize_and_stop_without(self):
        def objective(trial):
            with self.assertRaisesRegex(RuntimeError, "cannot be called in there"):
                trial.study.optimize(self.square, n_trials=1)
            return self.square(trial)

        study = assay.create_study()
        with self.assertRaisesRegex(RuntimeError, "no optimize"):
            study.stop()
        study.optimize(objective, n_trials=2, gc_after_trial=True)
        self.assertEqual(self.states(study), ["COMPLETE"] * 2)

    def test_callbacks_and_what_is_raised(self):
        seen = []

        def fails(trial):
            if self.square(trial) >= 0 and trial.number > 0:
                raise ArithmeticError("no")
            return 1.0

        study = assay.create_study()
        with contextlib.redirect_stderr(None):
            study.optimize(fails, n_trials=3, catch=ArithmeticError, callbacks=[lambda s, t: seen.append(t.state.name)])
            self.assertEqual(seen, ["COMPLETE", "FAIL", "FAIL"])
            with self.assertRaises(ArithmeticError):
                study.optimize(fails, n_trials=3, callbacks=[lambda s, t: seen.append(t.state.name)])
        self.assertEqual(len(seen), 3)  # no callback for what is raised
        self.assertEqual((study.trials[1].value, study.trials[1].values), (None, None))

    def test_a_result_that_is_none(self):
        study = assay.create_study()
        study.optimize(lambda t: None if self.square(t) >= 0 and t.number == 1 else 1.0, n_trials=3)
        self.assertEqual(self.states(study), ["COMPLETE", "FAIL", "COMPLETE"])
        self.assertEqual(study.trials[1].reason, "ResultError: the objective returned None, expected a number")

    def test_tell_of_what_has_ended_and_of_what_is_no_result(self):
        study = assay.create_study()
        trial = study.ask()
        self.square(trial)
        for values, state in ((None, "COMPLETE"), (1, "PRUNED"), (1, "FAIL"), ([1, 2], "COMPLETE"), ("a", None)):
            with self.assertRaises(ValueError):
                study.tell(trial, values, state)
        study.tell(trial, 1.0)
        self.assertEqual(study.tell(trial, 2.0, skip_if_finished=True).value, 1.0)
        with self.assertRaisesRegex(ValueError, "it has ended"):
            study.tell(trial, 2.0)
        trial = study.ask()
        self.square(trial)
        trial.report(2.0, step=1)
        study.tell(trial, state="PRUNED")
        self.assertEqual((study.trials[1].value, assay.load_study(study.sweep).trials[1].value), (2.0, 2.0))
        self.assertEqual(study.best_value, 1.0)

    def test_a_study_that_is_pickled(self):
        study = assay.create_study(token=UP.token, server=UP.url, sampler=assay.samplers.TPESampler(seed=1))
        study.optimize(lambda t: self.square(t) + len(t.suggest_categorical("c", ["a", ("b", 1)])), n_trials=4)
        data = pickle.dumps(study)
        self.assertNotIn(UP.token.encode(), data)
        with unittest.mock.patch.dict(os.environ, ASSAY_TOKEN=UP.token):
            again = pickle.loads(data)
            self.assertEqual(again.trials, study.trials)
            self.assertEqual(sorted(again.trials)[2].number, 2)
            again.optimize(lambda t: self.square(t) + len(t.suggest_categorical("c", ["a", ("b", 1)])), n_trials=2)
        self.assertEqual((len(again.trials), type(again.sampler)), (6, assay.samplers.TPESampler))
        best = pickle.loads(pickle.dumps(again.best_trial))
        self.assertEqual((best, best.intermediate_values), (again.best_trial, again.best_trial.intermediate_values))

    def test_a_best_trial_that_is_run_again(self):  # tutorial/20_recipes/010_reuse_best_trial.py
        study = assay.create_study()
        study.optimize(self.square, n_trials=3)
        best = study.best_trial
        best.report(1.0, 5)
        self.assertEqual((self.square(best), best.should_prune(), best.intermediate_values), (study.best_value, False, {}))
        for wrong, word in ((lambda: best.suggest_int("y", 0, 1), "no value"), (lambda: best.suggest_int("x", 5, 6), "expected int")):
            with self.assertRaisesRegex(assay.SpaceError, word):
                wrong()

    def test_samplers_pruners_and_names_that_come_later(self):
        study = assay.create_study(directions=["minimize", "maximize"])
        self.assertEqual((type(study.sampler).__name__, type(study.pruner).__name__), ("GPSampler", "NopPruner"))
        study.sampler = assay.samplers.RandomSampler(seed=3)
        study.set_metric_names(["error", "speed"])
        study.optimize(lambda t: (self.square(t), 1.0), n_trials=2)
        document = UP.sweep(study.sweep)["document"]
        self.assertEqual((document["search"], [m["name"] for m in document["metrics"]]),
                         ({"method": "random", "seed": 3}, ["error", "speed"]))
        self.assertEqual(type(assay.load_study(study.sweep).sampler), assay.samplers.RandomSampler)
        with self.assertRaises(RuntimeError):
            study.best_trial
        with self.assertRaisesRegex(assay.AssayError, "at its first trial"):
            study.set_metric_names(["a", "b"])

    def test_studies_that_the_server_has(self):
        study = assay.create_study(study_name="in-the-list")
        study.set_user_attr("who", "me")
        study.optimize(self.square, n_trials=2)
        summary = next(s for s in assay.get_all_study_summaries() if s.study_name == "in-the-list")
        self.assertEqual((summary.user_attrs, summary.best_trial, summary.n_trials), ({"who": "me"}, study.best_trial, 2))
        for missing in (assay.load_study, assay.delete_study):
            with self.assertRaisesRegex(KeyError, "no sweep 'missing'"):
                missing("missing")


EXAMPLES = os.environ.get("ASSAY_OPTUNA_EXAMPLES", "")


@unittest.skipUnless(EXAMPLES, "ASSAY_OPTUNA_EXAMPLES names no checkout of optuna-examples")
@needs("optuna")
class Unchanged(unittest.TestCase):
    """The objectives of others, from their files, through assay.optimize()."""

    def objective(self, path):
        spec = importlib.util.spec_from_file_location("example", os.path.join(EXAMPLES, path))
        module = importlib.util.module_from_spec(spec)
        sys.modules["example"] = module
        try:
            spec.loader.exec_module(module)
        except ImportError as e:
            self.skipTest(str(e))
        return module

    def check(self, path, n=8, named=None, make=lambda module: module.objective):
        study = assay.optimize(make(self.objective(path)), n_trials=n, **(named or {}))
        self.assertEqual([t.state for t in study.trials], ["completed"] * n)
        return study

    def test_quadratic(self):
        self.check("basic/quadratic.py")

    def test_multi_objective(self):
        self.check("basic/quadratic_multi_objective.py", named={"directions": ["minimize", "maximize"]})

    def test_pruning(self):
        self.check("basic/pruning.py", named={"direction": "maximize"})

    def test_sklearn(self):
        self.check("sklearn/sklearn_simple.py", named={"direction": "maximize"})

    def test_sklearn_class(self):
        self.check("sklearn/sklearn_additional_args.py", named={"direction": "maximize"},
                   make=lambda m: m.Objective(m.sklearn.datasets.load_iris()))

    def test_enqueue(self):
        self.check("faq/enqueue_trial.py", named={"direction": "maximize", "enqueue": [{"svc_c": 1}]})

    def test_max_trials(self):
        self.check("faq/max_trials_callback.py", 3)

    def runs(self, path):
        """The file as a program, with `import optuna` made `import assay as optuna` by a module of that name."""
        with tempfile.TemporaryDirectory(prefix="assay-py-", dir="/var/tmp") as folder:
            with open(os.path.join(folder, "optuna.py"), "w", encoding="utf-8") as f:
                f.write("import sys, assay\nsys.modules['optuna'] = assay\n"
                        "sys.modules.update(('optuna' + n[5:], m) for n, m in list(sys.modules.items()) if n.startswith('assay.'))\n")
            path_ = os.pathsep.join([folder, sys.path[0], *filter(None, [os.environ.get("PYTHONPATH")])])
            done = subprocess.run([sys.executable, "-B", os.path.join(EXAMPLES, path)], cwd=folder, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, universal_newlines=True,
                                  env=dict(os.environ, PYTHONPATH=path_, MPLBACKEND="Agg"))
            self.assertEqual(done.returncode, 0, done.stdout)
            return done.stdout

    @needs("numpy")
    def test_a_sampler_of_its_own(self):
        self.assertIn("Best trial:", self.runs("samplers/simulated_annealing_sampler.py"))

    def test_constraints(self):
        self.assertRegex(self.runs("basic/quadratic_constraint.py"), "Constraints: c1=|No trials satisfied")

    @needs("pandas")
    def test_a_table(self):
        self.assertIn("Number of completed trials: 10", self.runs("faq/max_trials_callback.py"))

    @needs("matplotlib")
    def test_a_figure_that_shows_itself(self):
        self.runs("visualization/plot_pareto_front.py")

    def test_xgboost(self):
        self.check("xgboost/xgboost_simple.py", named={"direction": "maximize"})


@needs("optuna")
class Sampler(unittest.TestCase):
    def setUp(self):
        self.optuna = importlib.import_module("optuna")
        self.optuna.logging.set_verbosity(self.optuna.logging.ERROR)

    def study(self, sweep, constraints_func=None, **named):
        sampler = assay.AssaySampler(study_name=sweep, seed=1, constraints_func=constraints_func)
        self.addCleanup(sampler.close)
        return self.optuna.create_study(sampler=sampler, **named), sampler

    def same(self, study, sweep, states):
        """The sweep has the trials of the study, with their parameters, values and states."""
        rows = UP.trials(sweep)
        self.assertEqual([r["state"] for r in rows], states)
        for row, t in zip(rows, study.trials):
            common = {n: v for n, v in row["params"].items() if n in t.params}
            self.assertEqual(common, {n: t.params[n] for n in common})
            if t.values is not None:
                self.assertEqual(list(row["metrics"].values()), t.values)
        return rows

    def test_one_line(self):
        study, sampler = self.study("sampler-one")
        study.optimize(lambda t: t.suggest_float("x", -5, 5) ** 2 + t.suggest_int("k", 0, 3) +
                       (t.suggest_categorical("c", ["a", None]) is None), n_trials=16)
        rows = UP.trials("sampler-one")
        self.assertEqual(len(rows), 16)
        self.assertEqual([r["origin"] for r in rows], ["known"] + ["suggested"] * 15)  # the first is Optuna's own
        self.assertEqual([r["metrics"]["value"] for r in rows], [t.value for t in study.trials])
        self.assertLess(study.best_value, 1.0)
        sampler.close()
        self.assertEqual(UP.wait_ended("sampler-one")["state"], "completed")

    def test_branches_failures_and_fixed_values(self):
        def objective(t):
            if t.number == 4:
                raise ValueError("no")
            if t.number == 6:
                raise self.optuna.TrialPruned()
            if t.suggest_categorical("model", ["svc", "forest"]) == "svc":
                return t.suggest_float("c", 1e-3, 1e3, log=True)
            return t.suggest_int("depth", 2, 32, log=True) / 7

        study, sampler = self.study("sampler-two")
        study.enqueue_trial({"model": "svc", "c": 0.5})
        study.optimize(objective, n_trials=4)
        study.enqueue_trial({"model": "forest", "depth": 9})
        study.optimize(objective, n_trials=12, catch=(ValueError,))
        sampler.close()
        last = next(s for s in (f"sampler-two-{i}" for i in range(9, 1, -1)) if exists(s))
        values = sorted(r["metrics"]["value"] for r in UP.trials(last) if r["state"] == "completed")
        self.assertEqual(values, sorted(t.value for t in study.trials if t.value is not None))

    def test_constraints(self):
        study, sampler = self.study("sampler-bounded", lambda t: (0.5 - t.params["x"], t.params["x"] - 0.9))
        study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=10)
        rows = UP.trials("sampler-bounded")
        self.assertEqual([c["metric"] for c in UP.sweep("sampler-bounded")["document"]["constraints"]], ["constraint_0", "constraint_1"])
        self.assertEqual([(r["metrics"]["constraint_0"], r["metrics"]["constraint_1"]) for r in rows],
                         [t.system_attrs["constraints"] for t in study.trials])
        self.assertEqual([r["feasible"] for r in rows], [0.5 <= t.value <= 0.9 for t in study.trials])
        self.assertGreaterEqual(study.best_value, 0.5)
        sampler.close()
        self.assertEqual(UP.wait_ended("sampler-bounded")["best"]["value"], study.best_value)
        study, sampler = self.study("sampler-wrong", lambda t: [float("nan")])
        with self.assertRaisesRegex(ValueError, "constraints_func returned"):
            study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=2)
        self.assertEqual(sampler.close(), None)

    def test_several_objectives_threads_and_old_results(self):
        study, sampler = self.study("sampler-three", directions=["minimize", "maximize"])
        study.add_trial(self.optuna.trial.create_trial(
            params={"x": 0.5}, distributions={"x": self.optuna.distributions.FloatDistribution(0, 1)}, values=[0.5, 1.5]))
        study.optimize(lambda t: (t.suggest_float("x", 0, 1), 2 - t.params["x"]), n_trials=11, n_jobs=3)
        sampler.close()
        rows = UP.trials("sampler-three")
        self.assertEqual(len(rows), 12)
        self.assertEqual(sorted(r["metrics"]["value_0"] for r in rows), sorted(t.values[0] for t in study.trials))
        self.assertEqual(sum(r["origin"] == "suggested" for r in rows), 11)


class Link(unittest.TestCase):
    """What the sampler does without Optuna's classes; trials are records of the fields that it reads."""

    @staticmethod
    def trial(number, **params):
        floats = types.SimpleNamespace(low=0, high=1, single=lambda: False)
        return types.SimpleNamespace(number=number, _trial_id=number, params=params, system_attrs={}, intermediate_values={},
                                     distributions={name: floats for name in params})

    def test_a_result_of_its_own_while_the_space_grows(self):
        study = assay.create_study(study_name="link")
        link = assay._OptunaLink(lambda _: study)
        link.space(types.SimpleNamespace(get_trials=lambda deepcopy: []))
        self.addCleanup(link.close)
        link.after(self.trial(0, x=0.25), "COMPLETE", [0])
        self.assertEqual(set(link.sample(self.trial(1))), {"x"})
        lock, carry, got, settled = study._lock, study._carry, [], threading.Event()

        class Watched:
            """The lock of the study; says when the thread that grows the space has to wait for it."""
            def __enter__(self):
                if not lock.acquire(blocking=False):
                    settled.set()
                    lock.acquire()

            def __exit__(self, *args):
                lock.release()

        def grow():
            got.extend(study._next(None, "grows"))
            study._http.close()
            settled.set()

        def carry_later(record):
            thread.start()
            settled.wait()
            carry(record)

        thread = threading.Thread(target=grow)
        study._lock, study._carry = Watched(), carry_later
        link.after(self.trial(2, x=0.5, late=0.5), "COMPLETE", [2])  # values that the sampler did not suggest
        thread.join()
        self.assertEqual(set(got[0]._given), {"x", "late"})
        self.assertEqual(sorted(r["metrics"]["value"] for r in UP.trials(study.sweep) if r["state"] == "completed"), [0, 2])
        study._release(got[0])


def exists(sweep):
    with contextlib.suppress(Exception):
        return bool(UP.sweep(sweep))
    return False


class Callbacks(unittest.TestCase):
    def series(self, study, number=0):
        return UP.call("GET", f"/v1/sweeps/{study.sweep}/trials/{number}/measurements")["series"]

    @needs("sklearn")
    def test_sklearn(self):
        from sklearn import datasets, model_selection, svm
        X, y = datasets.load_iris(return_X_y=True)

        def objective(trial):
            model = svm.SVC(C=trial.suggest_float("c", 1e-3, 1e3, log=True))
            scores = assay.cross_val_score(model, X, y, cv=4)
            self.assertEqual(scores, list(model_selection.cross_val_score(model, X, y, cv=4)))
            return sum(scores) / 4

        study = assay.optimize(objective, n_trials=3, direction="maximize", metric="accuracy")
        series = self.series(study)
        self.assertEqual(len(series["score"]["values"]), 4)
        self.assertAlmostEqual(series["accuracy"]["values"][3], study.trials[0].value)

    @needs("xgboost")
    def test_xgboost(self):
        import xgboost
        rng = random.Random(1)
        rows = [[rng.random(), rng.random()] for _ in range(80)]
        numpy = importlib.import_module("numpy")
        data = xgboost.DMatrix(numpy.array(rows), label=numpy.array([float(a > b) for a, b in rows]))

        def objective(trial):
            seen = {}
            xgboost.train({"objective": "binary:logistic", "eval_metric": "logloss", "verbosity": 0,
                           "eta": trial.suggest_float("eta", 0.01, 1.0)}, data, 6, evals=[(data, "train")],
                          evals_result=seen, verbose_eval=False, callbacks=[assay.xgboost_callback("train-logloss")])
            logs.append(seen["train"]["logloss"])
            return logs[-1][-1]

        logs = []
        study = assay.optimize(objective, n_trials=2)
        for number, log in enumerate(logs):
            self.assertEqual(self.series(study, number)["value"]["values"][:6], log)

    @needs("pandas")
    def test_frame(self):
        study = assay.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=3)
        frame = study.frame()
        self.assertEqual(list(frame["value"]), [t.value for t in study.trials])
        self.assertEqual(list(frame.columns), ["number", "state", "value", "x", "duration"])
        table = study.trials_dataframe()
        self.assertEqual(len(table[table.state == "COMPLETE"]), 3)
        self.assertEqual(list(table.columns), ["number", "value", "datetime_start", "datetime_complete", "duration", "params_x", "state"])
        self.assertEqual(list(study.trials_dataframe(multi_index=True)[("params", "x")]), list(frame["x"]))
        self.assertEqual(list(study.trials_dataframe(("number", "params")).columns), ["number", "params_x"])
        self.assertEqual(len(assay.create_study().trials_dataframe().columns), 0)


if __name__ == "__main__":
    unittest.main(warnings="default")
