#!/usr/bin/env python3
"""Optuna's names in the Python client, without a server: the table of docs/python.md against Optuna's public names, states
and distributions, and what mypy finds in a user's program."""
import contextlib
import importlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

SOURCE = os.environ["ASSAY_SOURCE_ROOT"]
CLIENT = os.path.join(os.environ["ASSAY_BUILD_ROOT"], "clients", "python")
MODULES = os.path.join(SOURCE, "clients", "python")
sys.path.insert(0, CLIENT)
import assay  # noqa: E402


def listed():
    with open(os.path.join(SOURCE, "tests", "clients", "optuna_names.txt"), encoding="utf-8") as f:
        return {line.strip() for line in f if not line.startswith("#")}


def table():
    """{name: same, differs or absent} of the page."""
    with open(os.path.join(SOURCE, "docs", "python.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| `(optuna[\w.]*)`: (.*?) \| (same|differs|absent) \| (.*?) \|$", f.read(), re.M)
    found = {}
    for prefix, names, here, how in rows:
        assert how or here == "same", (prefix, names)
        for name in re.findall(r"`(\w+)`", names):
            assert f"{prefix}.{name}" not in found, (prefix, name)
            found[f"{prefix}.{name}"] = here
    return found


def has(root, name):
    """Is there such an attribute? Those of an instance are set in __init__."""
    at = root
    for part in name.split(".")[1:]:
        if not hasattr(at, part):
            return isinstance(at, type) and part in at.__init__.__code__.co_names
        at = getattr(at, part)
    return True


class Names(unittest.TestCase):
    def test_every_name_is_in_the_table(self):
        self.assertEqual(set(table()), listed())

    def test_what_the_table_says_is_so(self):
        for name, here in table().items():
            self.assertEqual(has(assay, name), here != "absent", name)

    @unittest.skipIf(importlib.util.find_spec("optuna") is None, "optuna is not installed")
    def test_the_list_is_optunas_own(self):
        optuna = importlib.import_module("optuna")
        for name in sorted(listed()):
            with self.subTest(name), contextlib.suppress(ImportError):  # of a class, which is no package
                importlib.import_module(name.rpartition(".")[0])
            with self.subTest(name):
                self.assertTrue(has(optuna, name) or importlib.util.find_spec(name))
        for module in (optuna, optuna.study, optuna.trial, optuna.visualization, optuna.importance):
            for name in module.__all__:
                self.assertIn(f"{module.__name__}.{name}", listed())

    def test_modules_are_imported_by_their_names(self):
        code = ("import assay as optuna\nfrom assay.trial import TrialState, FixedTrial\nfrom assay.samplers import TPESampler\n"
                "from assay.visualization import plot_slice\nimport assay.visualization.matplotlib\n"
                "assert optuna.trial.TrialState is TrialState is optuna.TrialState\n"
                "assert optuna.study.StudyDirection.MINIMIZE == 'minimize'\n"
                "from assay.storages.journal import JournalFileBackend\nfrom assay.logging import WARNING, set_verbosity\n"
                "optuna.create_study(storage=optuna.storages.JournalStorage(JournalFileBackend('none/x')))\n"
                "assert not __import__('os').path.exists('none')\n")
        for path in (CLIENT, MODULES):
            subprocess.run([sys.executable, "-W", "error", "-B", "-c", code], env=dict(os.environ, PYTHONPATH=path), check=True)

    def test_pruners(self):
        """One that says the steps of a full trial is early_stopping; early_stopping goes before it. Others are asked here."""
        def made(**named):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                study = assay.create_study(**named)
            return study._options.get("early_stopping"), study._pruner, said.getvalue()

        p = assay.pruners
        hyperband, median = p.HyperbandPruner(2, 54, reduction_factor=3), p.MedianPruner()
        self.assertEqual(made(pruner=hyperband), ({"method": "hyperband", "min_steps": 2, "max_steps": 54, "eta": 3}, None, ""))
        self.assertEqual(made(pruner=hyperband, early_stopping={"method": "asha"}), ({"method": "asha"}, None, ""))
        self.assertEqual(made(pruner=median), (None, median, ""))
        self.assertEqual(made(pruner=p.NopPruner()), (None, None, ""))
        for without in (p.HyperbandPruner(), object()):
            self.assertEqual(made(pruner=without), (None, None, "assay: pruner: no effect here, the service has its own\n"))

    def prunes(self, pruner, curve, others=(), direction="minimize"):
        """The steps of `curve` at which the pruner would stop its trial; others: (state, curve)."""
        study = assay.create_study(direction=direction, study_name="p")
        for number, (state, points) in enumerate(others):
            t = assay.FrozenTrial(number, state, {}, {}, [0.0], sweep="s")
            t._curve = dict(points)
            study._own.append(t)
        trial, stopped = assay.FrozenTrial(99, "running", {}, {}, [None], sweep="s"), []
        trial._curve = {}
        for step, value in curve:
            trial._curve[step] = value
            if pruner.prune(study, trial):
                stopped.append(step)
        return stopped

    def test_rules_of_pruners(self):
        """By Optuna's documentation. Values of other trials at each step: 1, 2, 3, 4, 5."""
        p, nan = assay.pruners, float("nan")
        five = [("completed", [(s, float(v)) for s in range(10)]) for v in range(1, 6)]
        flat = [(s, 3.5) for s in range(6)]
        self.assertEqual(self.prunes(p.MedianPruner(), flat, five), [0, 1, 2, 3, 4, 5])
        self.assertEqual(self.prunes(p.MedianPruner(), flat, five, "maximize"), [])
        self.assertEqual(self.prunes(p.MedianPruner(), [(0, 2.9)] + flat[1:], five), [])  # its best counts
        self.assertEqual(self.prunes(p.MedianPruner(6), flat, five), [])
        self.assertEqual(self.prunes(p.MedianPruner(5), flat, five[:4] + [("failed", five[4][1])]), [])
        self.assertEqual(self.prunes(p.MedianPruner(0, n_min_trials=6), flat, five), [])
        self.assertEqual(self.prunes(p.MedianPruner(0), [(20, 9.0)], five), [])  # nobody reported there
        self.assertEqual(self.prunes(p.MedianPruner(0, 2, 3), flat, five), [2, 5])
        self.assertEqual(self.prunes(p.MedianPruner(0, 2, 3), [(1, 9.0), (3, 9.0), (4, 9.0), (6, 9.0)], five), [3, 6])
        self.assertEqual(self.prunes(p.PercentilePruner(75.0), flat, five), [])
        self.assertEqual(self.prunes(p.PercentilePruner(60.0), flat, five), [0, 1, 2, 3, 4, 5])  # 3.4
        self.assertEqual(self.prunes(p.MedianPruner(), [(0, nan)], five), [0])
        self.assertEqual(self.prunes(p.ThresholdPruner(upper=3.0), [(0, 2.0), (1, 3.0), (2, 3.1), (3, nan), (4, 1.0)]), [2, 3])
        self.assertEqual(self.prunes(p.ThresholdPruner(lower=3.0, n_warmup_steps=1), [(0, 2.0), (1, 2.0), (2, 3.0)]), [1])
        gains = [(0, 5.0), (1, 4.0), (2, 4.5), (3, 4.5), (4, 3.0), (5, 3.5), (6, 3.5)]
        self.assertEqual(self.prunes(p.PatientPruner(None, 1), gains), [3, 6])
        self.assertEqual(self.prunes(p.PatientPruner(None, 1, min_delta=0.5), gains), [])
        self.assertEqual(self.prunes(p.PatientPruner(p.NopPruner(), 1), gains), [])
        self.assertEqual(self.prunes(p.PatientPruner(p.MedianPruner(), 1), gains, five), [3])
        for wrong in (lambda: p.ThresholdPruner(), lambda: p.PatientPruner(3, 1), lambda: p.MedianPruner(-1),
                      lambda: p.PercentilePruner(101), lambda: p.SuccessiveHalvingPruner(reduction_factor=1)):
            with self.assertRaises((TypeError, ValueError)):
                wrong()

    def test_wilcoxon(self):
        """p values of scipy.stats.wilcoxon(…, alternative="greater", zero_method="zsplit"), exact and by the normal distribution; the
        rule of Optuna's pruner."""
        for differences, p in (([0.5, -0.2, 0.9], 0.25), ([1.0, 2.0, 3.0, 4.0, 5.0], 0.03125), ([-1.0, -2.0], 1.0), ([0.0], 0.5),
                               ([0.0, 1.0, 1.0, -1.0, 2.0], 0.13590922), ([1.0] * 60, 0.0)):
            self.assertAlmostEqual(assay._chance_of_more(differences), p, 7)
        prune, best = assay.pruners.WilcoxonPruner, [("completed", [(s, float(s)) for s in range(10)])]
        worse = [(s, s + 1.0 + s / 9) for s in (4, 1, 9, 2, 5)]
        self.assertEqual(self.prunes(prune(), worse, best), [2, 5])  # four of four have p = 1/16, three 1/8
        self.assertEqual(self.prunes(prune(p_threshold=0.04), worse, best), [5])
        self.assertEqual(self.prunes(prune(n_startup_steps=5), worse, best), [5])
        self.assertEqual(self.prunes(prune(), worse, best, "maximize"), [])
        self.assertEqual(self.prunes(prune(), worse), [])  # nothing is completed
        self.assertEqual(self.prunes(prune(), [(s, float("inf")) for s in range(9)], best), [])
        self.assertEqual(self.prunes(prune(), [(s + 50, 9.0) for s in range(9)], best), [])  # no step in common
        with self.assertRaises(ValueError):
            prune(p_threshold=2)

    def test_terminators(self):
        """The rules that need no server."""
        t, study = assay.terminator, assay.create_study(study_name="t", direction="maximize")

        def stops(terminator, values, scores=None):
            study._own = [assay.FrozenTrial(i, "completed", {}, {}, [v], user_attrs=scores and {"terminator:cv_scores": scores},
                                            sweep="s") for i, v in enumerate(values)]
            return terminator.should_terminate(study)

        stagnation = t.Terminator(t.BestValueStagnationEvaluator(2), min_n_trials=3)
        self.assertFalse(stops(stagnation, [1.0, 5.0]))
        self.assertFalse(stops(stagnation, [1.0, 5.0, 2.0, 5.0]))
        self.assertTrue(stops(stagnation, [5.0, 1.0, 2.0, 5.0]))

        class Left(t.BaseImprovementEvaluator):
            def evaluate(self, trials, study_direction):
                return 0.05 if study_direction == "maximize" and len(trials) == 2 else 9

        folds = t.Terminator(Left(), min_n_trials=1)
        self.assertTrue(stops(folds, [1.0, 2.0], [0.8, 0.9, 1.0]))   # sqrt((1/3 + 1/2) * 0.02 / 3) = 0.0745
        self.assertFalse(stops(folds, [1.0, 2.0], [0.9, 0.91, 0.9]))
        self.assertFalse(stops(t.Terminator(Left(), t.StaticErrorEvaluator(0.05), min_n_trials=1), [1.0, 2.0]))
        with self.assertRaisesRegex(ValueError, "trial 1 has no scores of folds"):
            stops(folds, [1.0, 2.0])
        with self.assertRaisesRegex(ValueError, "expected those of two folds or more"):
            t.report_cross_validation_scores(assay.FixedTrial({}), [1.0])

    def test_artifacts(self):
        """A store in a folder; ids name no other file; what fails is tried again."""
        a, trial = assay.artifacts, assay.FixedTrial({})
        with tempfile.TemporaryDirectory() as folder:
            path, store = os.path.join(folder, "net.tar.gz"), a.FileSystemArtifactStore(folder)
            with open(path, "wb") as f:
                f.write(b"weights")

            class Flaky:
                calls = 0

                def write(self, artifact_id, content_body):
                    self.calls += 1
                    content_body.read()
                    if self.calls < 3:
                        raise OSError("busy")
                    content_body.seek(0)
                    store.write(artifact_id, content_body)

            first = a.upload_artifact(artifact_store=store, file_path=path, study_or_trial=trial)
            second = a.upload_artifact(artifact_store=a.Backoff(Flaky(), min_delay=0), file_path=path, study_or_trial=trial, mimetype="x/y")
            self.assertEqual(a.get_all_artifact_meta(trial), [(first, "net.tar.gz", "application/x-tar", "gzip"), (second, "net.tar.gz", "x/y", "gzip")])
            for made in (first, second):
                a.download_artifact(artifact_store=store, file_path=path + ".back", artifact_id=made)
                with open(path + ".back", "rb") as f:
                    self.assertEqual(f.read(), b"weights")
            for wrong in ("../x", "", "."):
                with self.assertRaisesRegex(ValueError, "artifact_id: found"):
                    store.open_reader(wrong)
            with self.assertRaisesRegex(ValueError, "trial 3 has ended"):
                a.upload_artifact(artifact_store=store, file_path=path, study_or_trial=assay.FrozenTrial(3, "completed", {}, {}, [0.0]))
            trial.user_attrs["artifacts"] = {str(i): "x" * 200 for i in range(100)}
            with self.assertRaisesRegex(assay.AssayError, "100 artifacts are kept already"):
                a.upload_artifact(artifact_store=store, file_path=path, study_or_trial=trial)
            self.assertEqual(len(os.listdir(folder)), 4)  # nothing was written for it

    def test_callbacks_of_lightgbm(self):
        """What lightgbm.train() and lightgbm.cv() of versions 3 and 4 hand to a callback."""
        class Env:
            def __init__(self, iteration, *results):
                self.iteration, self.evaluation_result_list = iteration, results

        class Seen:
            def __init__(self):
                self.said, self.stop = [], False

            def report(self, value, step, **metrics):
                self.said.append((value, step, metrics))

            def should_prune(self):
                return self.stop

            def _why_pruned(self, otherwise):
                return otherwise

        trial = Seen()
        callback = assay.integration.LightGBMPruningCallback(trial, "auc", "valid_1", report_interval=2)
        callback(Env(0, ("valid_1", "auc", 0.5, True)))
        callback(Env(1, ("valid_0", "auc", 0.7, True), ("valid_1", "auc", 0.6, True)))
        self.assertEqual(trial.said, [(0.6, 1, {"valid_1-auc": 0.6})])
        of_cv = assay.integration.LightGBMPruningCallback(trial, "auc")
        for name in ("valid auc", "auc"):
            of_cv(Env(4, ("cv_agg", "train auc", 0.99, True, 0.1), ("cv_agg", name, 0.8, True, 0.1)))
        self.assertEqual(trial.said[1:], [(0.8, 4, {"valid_0-auc": 0.8})] * 2)
        trial.stop = True
        with self.assertRaisesRegex(assay.TrialPruned, "step 5"):
            of_cv(Env(5, ("valid_0", "auc", 0.1, True)))
        with self.assertRaisesRegex(ValueError, "found no auc of valid_0, expected one of valid_0 l2"):
            of_cv(Env(6, ("valid_0", "l2", 0.1, False)))

    def test_successive_halving(self):
        """Rungs at 2, 4 and 8. Of 8 trials the best 4 go on; trials count that were stopped or run."""
        pruner = assay.pruners.SuccessiveHalvingPruner(2, 2)
        others = [("pruned" if v % 2 else "running", [(2, float(v))]) for v in range(7)]
        self.assertEqual(self.prunes(pruner, [(1, 9.0), (2, 3.5), (3, 9.0)], others), [2])
        self.assertEqual(self.prunes(pruner, [(1, 9.0), (2, 2.5), (3, 9.0), (4, 9.0)], others), [])  # the first at its rung
        self.assertEqual(self.prunes(pruner, [(3, 3.5)], others), [3])  # the first report after its step
        self.assertEqual(self.prunes(pruner, [(2, 2.5)], others, "maximize"), [2])
        self.assertEqual(self.prunes(pruner, [(2, 3.5)], others, "maximize"), [])
        self.assertEqual(self.prunes(pruner, [(2, float("nan"))], others), [2])
        auto = assay.pruners.SuccessiveHalvingPruner()
        self.assertEqual(self.prunes(auto, [(1, 9.0)], others), [])
        self.assertEqual(self.prunes(auto, [(1, 9.0), (2, 9.0)], [("completed", [(1, 1.0), (250, 1.0)])]), [2])

    def test_messages(self):
        """They go through a logger, below whose level nothing is said, and to a program's own handler."""
        def said():
            with contextlib.redirect_stderr(io.StringIO()) as err:
                assay.create_study(sampler=object())
            return err.getvalue()

        want = "assay: sampler: no effect here, the service has its own\n"
        log = assay.logging
        self.assertEqual((log.get_verbosity(), said()), (log.INFO, want))
        try:
            log.set_verbosity(log.ERROR)
            self.assertEqual(said(), "")
            log.set_verbosity(log.WARNING)
            log.disable_default_handler()
            log.enable_propagation()
            with self.assertLogs("assay", "WARNING") as own:
                self.assertEqual(said(), "")
            self.assertEqual([r.getMessage() for r in own.records], [want[7:-1]])
        finally:
            log.disable_propagation()
            log.enable_default_handler()
            log.set_verbosity(log.INFO)
        self.assertIs(log.get_logger("optuna"), log.get_logger("assay"))
        self.assertEqual(log.get_logger("mine").name, "assay.mine")
        self.assertEqual(said(), want)

    def test_states(self):
        study = assay.create_study()
        for number, state in enumerate(["completed", "failed", "pruned"]):
            study._own.append(assay.FrozenTrial(number, state, {}, {}, [1.0]))
        for state in (assay.TrialState.COMPLETE, "COMPLETE", "completed"):
            self.assertEqual([t.number for t in study.get_trials(states=[state])], [0])
        self.assertEqual([t.number for t in study.get_trials(states=["FAIL", "PRUNED"])], [1, 2])
        self.assertEqual([t.state.name for t in study.trials], ["COMPLETE", "FAIL", "PRUNED"])
        for wrong in ("compleet", "", None, 1, "Completed"):
            with self.assertRaisesRegex(ValueError, "state: found .* expected one of WAITING.*completed"):
                study.get_trials(states=[wrong])
        with self.assertRaisesRegex(ValueError, "states"):
            study.get_trials(states="completed")

    def test_fixed_and_created_trials(self):
        def objective(trial):
            trial.report(1, 0)
            return trial.suggest_float("x", 0, 1) + trial.suggest_int("n", 1, 3) + len(trial.suggest_categorical("c", ["a", "bb"]))

        fixed = assay.FixedTrial({"x": 0.5, "n": 2, "c": "bb"})
        self.assertEqual((objective(fixed), fixed.params, fixed.should_prune()), (4.5, {"x": 0.5, "n": 2, "c": "bb"}, False))
        for wrong in ({"x": 2.0}, {"n": 9}, {"c": "z"}, {}):
            with self.assertRaisesRegex(assay.SpaceError, "parameter"):
                objective(assay.FixedTrial({**({"x": 0.5, "n": 2, "c": "a"} if wrong else {}), **wrong}))
        made = assay.create_trial(params={"x": 0.5}, distributions={"x": assay.FloatDistribution(0, 1)}, value=2.0)
        self.assertEqual((made.state, made.value, made.distributions), ("completed", 2.0, {"x": assay.FloatDistribution(0, 1)}))
        for wrong in ({"value": 1, "values": [1]}, {"params": {"x": 1}}, {"state": "completed"}, {"state": "failed", "value": 1}):
            with self.assertRaises(ValueError):
                assay.create_trial(**wrong)

    def test_distributions(self):
        for a, b, c in [(assay.FloatDistribution(0, 1), assay.FloatDistribution(0.0, 1.0), assay.FloatDistribution(0, 1, step=0.5)),
                        (assay.IntDistribution(1, 9), assay.IntDistribution(1, 9, step=1), assay.IntDistribution(1, 9, log=True)),
                        (assay.CategoricalDistribution(["a", 1]), assay.CategoricalDistribution(("a", 1.0)),
                         assay.CategoricalDistribution(["a"]))]:
            self.assertEqual((a == b, a == c, hash(a) == hash(b), a.single(), c.single()),
                             (True, False, True, False, isinstance(c, assay.CategoricalDistribution)))
            study = assay.create_study(space={"p": a})
            self.assertTrue(study._space["p"].same(a._parameter()))
        with self.assertRaises(assay.SpaceError):
            assay.FloatDistribution(2, 1)

    def test_samplers_choose_the_method(self):
        for name, method in [("TPESampler", "tpe"), ("RandomSampler", "random"), ("GPSampler", "gp"), ("CmaEsSampler", "cmaes"),
                             ("QMCSampler", "sobol")]:
            study = assay.create_study(sampler=getattr(assay.samplers, name)(seed=3))
            self.assertEqual(study._options["search"], {"method": method, "seed": 3})


@unittest.skipIf(shutil.which("mypy") is None, "mypy is not installed")
class Types(unittest.TestCase):
    RIGHT = """
        import assay
        def objective(trial: assay.Trial) -> float:
            return trial.suggest_float("x", 0, 1)
        study = assay.optimize(objective, n_trials=3)
        best: float = study.best_value
        assay.create_study().optimize(objective, n_trials=3, callbacks=[assay.MaxTrialsCallback(3)])
    """
    WRONG = [("def objective(trial: assay.Trial) -> float:", "def objective(trial: int) -> float:", "Argument 1"),
             ("best: float", "best: str", "Incompatible types"), ("n_trials=3)", 'n_trials="3")', "n_trials")]

    def mypy(self, folder, text, *options):
        path = os.path.join(folder, "program.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(textwrap.dedent(text))
        done = subprocess.run(["mypy", "--cache-dir", os.path.join(folder, "cache"), *options, "program.py"], cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                              env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
        return done.returncode, done.stdout

    def check(self, folder, *options):
        code, out = self.mypy(folder, self.RIGHT, *options)
        self.assertEqual(code, 0, out)
        for before, after, words in self.WRONG:
            code, out = self.mypy(folder, self.RIGHT.replace(before, after, 1), *options)
            self.assertEqual((code, "program.py" in out, words in out), (1, True, True), out)

    def test_the_file_beside_a_program(self):
        with tempfile.TemporaryDirectory(prefix="assay-py-") as folder:
            shutil.copy(os.path.join(CLIENT, "assay.py"), folder)
            self.check(folder)

    def test_the_installed_wheel(self):
        """In the site-packages of an environment, where mypy reads only packages with py.typed."""
        with tempfile.TemporaryDirectory(prefix="assay-py-") as folder:
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", os.path.join(folder, "env")], check=True)
            python = os.path.join(folder, "env", "bin", "python")
            site = subprocess.run([python, "-c", "import site; print(site.getsitepackages()[0])"], check=True,
                                  stdout=subprocess.PIPE, universal_newlines=True).stdout.strip()
            made = subprocess.run([sys.executable, os.path.join(MODULES, "wheel.py"), folder], check=True, stdout=subprocess.PIPE,
                                  universal_newlines=True).stdout.strip()
            shutil.unpack_archive(made, site, "zip")
            self.check(folder, "--strict", "--python-executable", python)

    def test_the_modules_themselves(self):
        with tempfile.TemporaryDirectory(prefix="assay-py-") as folder:
            done = subprocess.run(["mypy", "--cache-dir", folder, "--config-file", "pyproject.toml", "-p", "assay"], cwd=MODULES,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
            self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
