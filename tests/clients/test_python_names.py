#!/usr/bin/env python3
"""Optuna's names in the Python client, without a server: the table of docs/python.md against Optuna's public names, states
and distributions, and what mypy finds in a user's program."""
import contextlib
import importlib
import importlib.util
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
                "assert optuna.study.StudyDirection.MINIMIZE == 'minimize'\n")
        for path in (CLIENT, MODULES):
            subprocess.run([sys.executable, "-W", "error", "-B", "-c", code], env=dict(os.environ, PYTHONPATH=path), check=True)

    def test_pruners(self):
        """One that says the steps of a full trial is early_stopping; early_stopping goes before it."""
        def stopping(**named):
            with contextlib.redirect_stderr(None):
                return assay.create_study(**named)._options.get("early_stopping")

        hyperband = assay.pruners.HyperbandPruner(2, 54, reduction_factor=3)
        self.assertEqual(stopping(pruner=hyperband), {"method": "hyperband", "min_steps": 2, "max_steps": 54, "eta": 3})
        self.assertEqual(stopping(pruner=hyperband, early_stopping={"method": "asha"}), {"method": "asha"})
        for pruner in (assay.pruners.HyperbandPruner(), assay.pruners.MedianPruner(), assay.pruners.NopPruner(), None):
            self.assertIsNone(stopping(pruner=pruner))

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
