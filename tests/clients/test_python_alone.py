#!/usr/bin/env python3
"""The Python client without a server: parameters, addresses, what a program sees inside a trial, results, the wheel, the
one file and the modules that it is joined from. Runs in this Python, and in every other from 3.8 to 3.13 that is
installed, with warnings as errors."""
import ast
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
import zipfile
from unittest import mock

SOURCE = os.environ["ASSAY_SOURCE_ROOT"]
MODULES = os.path.join(SOURCE, "clients", "python")
CLIENT = os.path.join(os.environ["ASSAY_BUILD_ROOT"], "clients", "python")
sys.path.insert(0, CLIENT)
import assay  # noqa: E402
from assay import SpaceError  # noqa: E402


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="assay-py-")
        self.addCleanup(shutil.rmtree, self.folder)
        clean = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}
        clean.update(XDG_STATE_HOME=self.folder, XDG_CONFIG_HOME=self.folder, HOME=self.folder)
        patch = mock.patch.dict(os.environ, clean, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def refuses(self, kind, words, call, *args, **named):
        with self.assertRaises(kind) as caught:
            call(*args, **named)
        for word in words:
            self.assertIn(word, str(caught.exception))


class Parameters(Case):
    def test_entries(self):
        for entry, spec in [
            ((0.5, 2), {"type": "float", "min": 0.5, "max": 2.0}),
            ((1, 8), {"type": "int", "min": 1, "max": 8}),
            ((1, 8, "log"), {"type": "int", "min": 1, "max": 8, "scale": "log"}),
            (["a", "b"], {"type": "categorical", "values": ["a", "b"]}),
            ({"type": "int", "min": 1, "max": 4, "when": {"k": "a"}}, {"type": "int", "min": 1, "max": 4, "when": {"k": "a"}}),
            ((3, 3), {"type": "constant", "value": 3}),
        ]:
            self.assertEqual(assay._of_space("p", entry).spec, spec)
        self.assertEqual(assay._range("p", "int", 1, 10, 4, False).spec["max"], 9)
        self.assertEqual(assay._range("p", "int", 1, 10, 1, True).spec, {"type": "int", "min": 1, "max": 10, "scale": "log"})

    def test_refusals_name_the_parameter(self):
        wrong = [((2, 1), "low"), ((0, 1, "log"), "low"), ((0, math.inf), "high"), ("text", "expected"), ([], "choices"),
                 ({"type": "flot"}, "flot"), ((1, 2, 3), "expected"), (None, "expected")]
        for entry, word in wrong:
            self.refuses(SpaceError, ["parameter 'rate'", word], assay._of_space, "rate", entry)
        for name in ("", "a  b", "a ", "1a", "/a", "a=b", "a:b", "a,b", "a`", "a\n", "a\u200b", "a\ud800", "a" * 64, 3):
            self.refuses(SpaceError, ["expected a letter or _", "single blanks inside"], assay._of_space, name, (0, 1))
        for name in ("optimizer/lr", "learning rate", "layers[0]", "f(x)@k", "é", "学习 率", "a" * 63):
            self.assertEqual(assay._of_space(name, (0, 1)).name, name)
        self.refuses(SpaceError, ["'rate'", "step"], assay._range, "rate", "float", 0, 1, -1, False)
        self.refuses(SpaceError, ["'rate'", "low", "1.5"], assay._range, "rate", "int", 1.5, 4, None, False)

    def test_choices_keep_their_objects(self):
        mixed = [None, (1, 2), [64, 32], dict, "None", 1, True, 1.5]
        p = assay._choices("c", mixed)
        self.assertEqual(len(set(map(repr, p.spec["values"]))), len(mixed))
        for choice in mixed:
            back = p.decode(json.loads(json.dumps(p.encode(choice))))
            self.assertIs(type(back), type(choice))
            self.assertEqual(back, choice)
        self.refuses(SpaceError, ["'c'", "'x'"], p.encode, "x")
        self.assertEqual(assay._choices("c", [-1, 0, 1]).spec["values"], [-1, 0, 1])
        self.assertIs(assay._choices("c", [True, False]).decode(False), False)

    def test_a_prior_makes_no_other_parameter(self):
        """A sweep whose document has a prior takes the trials of a program that knows none."""
        plain = {"type": "float", "min": 0, "max": 1}
        known = assay._Parameter("x", {**plain, "scale": "linear", "prior": {"mean": 0.2, "deviation": 0.1}})
        self.assertTrue(assay._Parameter("x", plain).same(known))
        self.assertFalse(assay._Parameter("x", {**plain, "max": 2}).same(known))

    def test_draws_are_in_range(self):
        rng = random.Random(1)
        for p in [assay._range("p", "float", 1e-5, 1e-1, None, True), assay._range("p", "int", 1, 3, None, False),
                  assay._range("p", "int", 2, 32, None, True), assay._range("p", "float", 0, 1, 0.25, False),
                  assay._range("p", "int", 1, 10, 3, False)]:
            drawn = [p.draw(rng) for _ in range(300)]
            low, high = p.spec["min"], p.spec["max"]
            self.assertTrue(all(low <= x <= high for x in drawn), p.spec)
            if "step" in p.spec:
                self.assertTrue(all(abs((x - low) / p.spec["step"] % 1) < 1e-9 for x in drawn))
                self.assertEqual({min(drawn), max(drawn)}, {low, high})
            self.assertEqual({type(x) for x in drawn}, {int if p.kind == "int" else float})

    def test_conditions_follow_from_trials(self):
        clf, n = assay._choices("clf", ["svc", "rf", "mlp"]), assay._range("n", "int", 1, 4, None, False)
        self.assertEqual(assay._separation(clf, ["svc"], ["rf"]), ["svc", "mlp"])
        self.assertIsNone(assay._separation(clf, ["svc", "rf"], ["rf"]))
        self.assertIsNone(assay._separation(clf, ["svc"], []))
        self.assertEqual(assay._separation(n, [3, 4], [1]), {"min": 2})
        self.assertEqual(assay._separation(n, [1], [3]), {"max": 2})
        self.assertIsNone(assay._separation(n, [1, 4], [3]))

    def test_active_parameters(self):
        study = assay.create_study(space={"k": ["a", "b"], "x": {"type": "int", "min": 1, "max": 4, "when": {"k": "a"}},
                                          "y": {"type": "int", "min": 0, "max": 9, "when": {"x": {"min": 3}}}})
        fill = lambda p: p.spec["min"]  # noqa: E731
        self.assertEqual(study._complete({"k": "b", "x": 4, "y": 1}, fill), {"k": "b"})
        self.assertEqual(study._complete({"k": "a"}, fill), {"k": "a", "x": 1})
        self.assertEqual(study._complete({"k": "a", "x": 3}, fill), {"k": "a", "x": 3, "y": 0})


class Arguments(Case):
    def test_goals(self):
        self.assertEqual(assay.create_study(direction="maximize", metric="acc").metrics, [("acc", "maximize")])
        self.assertEqual(assay.create_study(directions=["minimize", "MAXIMIZE"]).metrics,
                         [("value_0", "minimize"), ("value_1", "maximize")])
        self.assertEqual(assay.create_study(metrics={"a": "minimize", "b": "maximize"}).metrics,
                         [("a", "minimize"), ("b", "maximize")])
        self.refuses(ValueError, ["direction of value", "down"], assay.create_study, direction="down")
        self.refuses(ValueError, ["metrics"], assay.create_study, metrics={"a": "minimize"}, direction="minimize")
        self.refuses(TypeError, ["storge"], assay.create_study, storge="x")
        self.refuses(ValueError, ["parameter_constraints"], assay.create_study, parameter_constraints=["a < b"])
        self.refuses(SpaceError, ["space"], assay.create_study, space={})

    def test_what_an_objective_returns(self):
        one, two = assay.create_study(), assay.create_study(directions=["minimize"] * 2)
        self.assertEqual(one._metrics_of(3), {"value": 3.0})
        self.assertEqual(one._metrics_of({"value": 3, "mb": 5}), {"value": 3.0, "mb": 5.0})
        self.assertEqual(two._metrics_of((1, 2)), {"value_0": 1.0, "value_1": 2.0})
        self.refuses(TypeError, ["None"], one._metrics_of, None)
        self.refuses(TypeError, ["2 numbers"], two._metrics_of, (1, 2, 3))
        self.refuses(ValueError, ["value", "loss"], one._metrics_of, {"loss": 1})

    def test_numbers_of_optimize(self):
        study = assay.create_study()
        study.optimize(lambda t: self.fail("a trial of none"), n_trials=0)
        for named in ({"n_trials": -1}, {"n_trials": 1.5}, {"batch": 65}, {"n_jobs": 0}, {"total": -1}):
            self.refuses(ValueError, [next(iter(named)), "expected"], study.optimize, lambda t: 0, **named)


class Address(Case):
    def note(self, pid, start, since, url="http://127.0.0.1:1"):
        token = self.write("token-" + str(since), "secret-" + str(since) + "\n")
        self.write(f"assay/up/{since}.json", json.dumps(
            {"url": url, "token_file": token, "pid": pid, "start": start, "since": since}))

    def test_nothing_is_known(self):
        self.refuses(assay.Unavailable, ["assay up", "ASSAY_SERVER"], assay._find, None, None, None, False)

    def test_the_newest_that_runs(self):
        mine = assay._start_ticks(os.getpid())
        self.assertGreater(mine, 0)
        self.note(os.getpid(), mine, 5, "http://127.0.0.1:5")
        self.note(os.getpid(), mine + 1, 9)  # another process had this pid
        self.note(os.getpid(), mine, 7, "http://127.0.0.1:7")
        self.write("assay/up/x.json", "{")
        found = assay._find(None, None, None, False)
        self.assertEqual(found[:2], ("http://127.0.0.1:7", "secret-7"))
        self.assertEqual(assay._find("http://127.0.0.1:5/", None, None, False).token, "secret-5")
        self.assertEqual(assay._find("http://other:1", None, None, False).token, "")  # a token is for its server alone

    def test_profiles(self):
        self.write("assay/lab.token", "t1\n")
        self.write("assay/config", "# mine\nprofiles:\n  lab: {url: \"https://lab.example/\", token_file: lab.token}\n"
                                   "  desk:  # at home\n    url: http://desk:7117\n")
        os.environ["ASSAY_TOKEN"] = "other"
        self.assertEqual(assay._find(None, "lab", None, False)[:2], ("https://lab.example", "t1"))
        os.environ["ASSAY_PROFILE"] = "desk"
        self.assertEqual(assay._find(None, None, None, False)[:2], ("http://desk:7117", "other"))
        os.environ["ASSAY_SERVER"] = "http://env:1"
        self.assertEqual(assay._find(None, None, None, False).url, "http://env:1")
        self.refuses(assay.AssayError, ["'nine'", "lab, desk"], assay._find, None, "nine", None, False)
        self.refuses(assay.AssayError, ["server=", "profile="], assay._find, "http://a", "lab", None, False)
        for text, words in [("profiles:\n  lab: {url}\n", ["config:2", "'url'"]), ("lab: {url: x}\n", ["config:1"]),
                            ("profiles:\n  lab: {url: lab.example}\n", ["/profiles/lab/url", "lab.example"]),
                            ("profiles:\n  lab: {url: http://a, tokn: b}\n", ["config:2", "tokn"])]:
            self.write("assay/config", text)
            self.refuses(assay.AssayError, words, assay._find, None, "lab", None, False)

    def test_token_files(self):
        os.environ["ASSAY_TOKEN_FILE"] = os.path.join(self.folder, "none")
        self.refuses(assay.AssayError, ["token file", "none"], assay._find, "http://a", None, None, False)
        os.environ["ASSAY_TOKEN_FILE"] = self.write("empty", "\n")
        self.refuses(assay.AssayError, ["empty"], assay._find, "http://a", None, None, False)
        self.refuses(assay.AssayError, ["server=", "ftp://x"], assay._find, "ftp://x", None, None, False)

    def test_no_answer(self):
        begin = time.monotonic()
        study = assay.create_study(server="http://127.0.0.1:9", token="x", space={"x": (0, 1)})
        self.refuses(assay.Unavailable, ["http://127.0.0.1:9", "does not answer"], study.optimize, lambda t: 0, n_trials=1)
        self.assertLess(time.monotonic() - begin, assay.PATIENCE_S / 2)  # nobody waits for a server that never was

    def test_problems_name_the_fields(self):
        body = {"title": "t", "detail": "first", "code": "invalid", "errors": [
            {"pointer": "/parameters/x/min", "detail": "/parameters/x/min: found 3, expected less"},
            {"pointer": "/name", "detail": "found A"}]}
        e = assay._problem(400, json.dumps(body).encode())
        self.assertEqual((e.status, e.code, len(e.errors)), (400, "invalid", 2))
        self.assertEqual(str(e), "/parameters/x/min: found 3, expected less; /name: found A")
        self.assertIn("<html>", str(assay._problem(502, b"<html>")))


class InsideTrial(Case):
    def test_outside(self):
        self.assertFalse(assay.in_trial())
        self.refuses(assay.AssayError, ["ASSAY_PARAMS", "assay-runner"], assay.params)
        self.refuses(assay.AssayError, ["ASSAY_CHECKPOINTS"], assay.checkpoint_dir)
        self.assertEqual(assay.params({"lr": 1}), {"lr": 1})
        self.assertEqual(assay.seed(7), 7)
        self.assertFalse(assay.should_stop())

    def test_inside(self):
        report = os.path.join(self.folder, "report")
        os.environ.update(ASSAY_PARAMS=self.write("p.json", '{"lr": 0.5}'), ASSAY_REPORT=report, ASSAY_SEED="12",
                          ASSAY_CHECKPOINTS=self.folder, ASSAY_ARTIFACTS=self.folder)
        self.assertEqual(assay.params({"lr": 1, "momentum": 0.9}), {"lr": 0.5, "momentum": 0.9})
        self.assertEqual((assay.seed(), str(assay.checkpoint_dir()), str(assay.artifacts_dir())), (12, self.folder, self.folder))
        assay.report(step=3, loss=0.25, acc=True)
        assay.report(loss=float("nan"))
        with open(report, encoding="utf-8") as f:
            lines = f.read().splitlines()
        self.assertEqual(json.loads(lines[0]), {"step": 3, "loss": 0.25, "acc": 1.0})
        self.assertEqual(lines[1], '{"loss": NaN}')
        self.refuses(ValueError, ["loss", "'x'"], assay.report, loss="x")
        self.refuses(ValueError, ["step", "-1"], assay.report, -1, loss=1)
        for name in ("val acc", "", "1st", "a=b", "x" * 64):
            self.refuses(ValueError, ["metric", repr(name), "letter"], lambda n=name: assay.report(**{n: 1}))
        assay.report(**{"val/acc": 0.5, "train.loss": 1, "mAP50-95(B)": 2, "recall@10": 3})
        with open(report, encoding="utf-8") as f:
            self.assertEqual(json.loads(f.read().splitlines()[2]), {"val/acc": 0.5, "train.loss": 1, "mAP50-95(B)": 2, "recall@10": 3})

    def test_stop(self):
        code = ("import assay, os, signal; assert not assay.should_stop(); os.kill(os.getpid(), signal.SIGTERM); "
                "assert assay.should_stop(); print('stopped')")
        env = dict(os.environ, PYTHONPATH=CLIENT, ASSAY_REPORT="r")
        done = subprocess.run([sys.executable, "-W", "error", "-c", code], env=env, stdout=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout), (0, b"stopped\n"))
        del env["ASSAY_REPORT"]  # a program of a person: SIGTERM is not taken
        self.assertEqual(subprocess.run([sys.executable, "-c", code], env=env).returncode, -signal.SIGTERM)


class Callbacks(Case):
    """Of libraries that cannot be installed here: base classes with their names stand in, and their calls are made as
    the libraries document them. test_python_optuna.py has the libraries that can."""

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "report")
        os.environ["ASSAY_REPORT"] = self.path

    def lines(self):
        with open(self.path, encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def library(self, name, **parts):
        return mock.patch.dict(sys.modules, {name: types.SimpleNamespace(**parts)})

    def stopping(self):
        return mock.patch.object(assay, "should_stop", lambda: True)

    def test_keras(self):
        base = type("Callback", (), {})
        with self.library("keras", callbacks=types.SimpleNamespace(Callback=base)):
            callback = assay.keras_callback("val_loss")
        self.assertIsInstance(callback, base)
        callback.model = types.SimpleNamespace(stop_training=False)
        callback.on_epoch_end(0, {"loss": 1, "val_loss": 0.5, "name": "x"})
        self.assertFalse(callback.model.stop_training)
        with self.stopping():
            callback.on_epoch_end(1, {"val_loss": 0.25})
        self.assertTrue(callback.model.stop_training)
        self.assertEqual(self.lines(), [{"step": 0, "loss": 1.0, "val_loss": 0.5}, {"step": 1, "val_loss": 0.25}])
        with self.library("keras", callbacks=types.SimpleNamespace(Callback=base)):
            assay.keras_callback().on_epoch_end(2, {"val/acc": 1, "Epoch time": 2})
        self.assertEqual(self.lines()[2], {"step": 2, "val/acc": 1.0, "Epoch_time": 2.0})
        with self.assertWarns(UserWarning):
            callback.on_epoch_end(2, {"loss": 1})

    def test_lightning(self):
        with self.library("lightning"), self.library("lightning.pytorch", Callback=object):
            sys.modules["lightning"].pytorch = sys.modules["lightning.pytorch"]
            callback = assay.lightning_callback("val_loss")
        trainer = types.SimpleNamespace(sanity_checking=True, is_global_zero=True, current_epoch=0, should_stop=False,
                                        callback_metrics={"val_loss": 0.5})
        callback.on_validation_end(trainer, None)
        self.assertFalse(os.path.exists(self.path))
        trainer.sanity_checking, trainer.current_epoch = False, 4
        with self.stopping():
            callback.on_validation_end(trainer, None)
        self.assertEqual((self.lines(), trainer.should_stop), ([{"step": 4, "val_loss": 0.5}], True))

    def test_huggingface(self):
        with self.library("transformers", TrainerCallback=object):
            callback = assay.huggingface_callback("eval_loss")
        state = types.SimpleNamespace(is_world_process_zero=True, global_step=10)
        control = types.SimpleNamespace(should_training_stop=False)
        callback.on_log(None, state, control, logs={"loss": 0.5, "epoch": 1})
        with self.stopping():
            callback.on_evaluate(None, state, control, metrics={"eval_loss": 0.25})
        callback.on_log(None, state, control, logs={"eval_loss": 0.25})
        self.assertEqual(self.lines(), [{"step": 10, "loss": 0.5, "epoch": 1.0}, {"step": 10, "eval_loss": 0.25}])
        self.assertTrue(control.should_training_stop)


class Results(Case):
    def test_html_is_escaped(self):
        study = assay.create_study(study_name="a")
        study.name = "<b>&"
        for i, v in enumerate((3.0, 2.0, 1.0)):
            study._own.append(assay.FrozenTrial(i, "completed", {"k<": "<script>"}, {"value": v}, [v]))
        text = study._repr_html_()
        self.assertNotIn("<script>", text)
        self.assertIn("&lt;b&gt;&amp;", text)
        self.assertIn("<polyline", text)
        self.assertEqual(study.best_trial.number, 2)

    def test_rows_and_fronts(self):
        study = assay.create_study(metrics={"a": "minimize", "b": "maximize"}, constraints=[{"metric": "mb", "max": 5}])
        for i, (a, b, mb) in enumerate([(1, 1, 1), (2, 2, 1), (2, 1, 1), (0, 3, 9)]):
            metrics = {"a": float(a), "b": float(b), "mb": float(mb)}
            study._own.append(assay.FrozenTrial(i, "completed", {"a": 9, "x": 1}, metrics, [float(a), float(b)],
                                                feasible=study._is_feasible(metrics)))
        self.assertEqual([t.number for t in study.best_trials], [0, 1])
        self.assertEqual(study.rows()[0], {"number": 0, "state": "completed", "a": 1.0, "b": 1.0, "mb": 1.0, "params_a": 9,
                                           "x": 1, "duration": None})
        self.refuses(RuntimeError, ["best_trials"], lambda: study.best_trial)
        self.refuses(ValueError, ["no trial"], lambda: assay.create_study().best_value)

    def test_optunas_table(self):
        def trial(number, state, params, values, **named):
            return assay.FrozenTrial(number, state, params, {}, values, **named)

        trials = [trial(0, "completed", {"b": 1, "a": 2}, [0.5], duration=1.5, user_attrs={"u": "v"}), trial(1, "failed", {"a": 3}, [None])]
        trials[0].system_attrs = {"constraints": [1.0]}
        columns, rows = assay._optuna_table(trials, ["value"])
        self.assertEqual([assay._joined_name(c) for c in columns],
                         ["number", "value", "datetime_start", "datetime_complete", "duration", "params_a", "params_b", "user_attrs_u",
                          "system_attrs_constraints", "state"])
        self.assertEqual([row[("state", "")] for row in rows], ["COMPLETE", "FAIL"])
        self.assertEqual((rows[0][("duration", "")].total_seconds(), rows[1].get(("params", "b"))), (1.5, None))
        for names, want in ([["error"], ["value_error"]], [["value_0", "value_1"], ["values_0", "values_1"]],
                            [["z", "a"], ["values_z", "values_a"]]):
            columns, _ = assay._optuna_table([trial(0, "completed", {}, [1.0] * len(names))], names, ["value"])
            self.assertEqual([assay._joined_name(c) for c in columns], want)

    def test_times(self):
        self.assertAlmostEqual(assay._seconds("2026-01-01T00:00:01.250Z") - assay._seconds("2025-12-31T23:59:59.500Z"), 1.75)
        self.assertEqual(assay._ran({"finished_at": "2026-01-01T00:00:01.250Z", "ran_ms": 1750}), 1.75)
        self.assertIsNone(assay._ran({"finished_at": None, "ran_ms": 1750}))  # it goes on, or waits at a rung
        self.assertIsNone(assay._ran({"finished_at": "2026-01-01T00:00:01.250Z", "ran_ms": None}))


class TheFile(Case):
    def test_imports_nothing_of_others(self):
        code = ("import sys; before = set(sys.modules); import assay; assay.create_study(); "
                "print('\\n'.join({m.split('.')[0] for m in set(sys.modules) - before}))")
        done = subprocess.run([sys.executable, "-S", "-c", code], env=dict(os.environ, PYTHONPATH=CLIENT),
                              stdout=subprocess.PIPE, check=True, universal_newlines=True)
        others = {"IPython", "pandas", "optuna", "keras", "tensorflow", "lightning", "pytorch_lightning", "transformers",
                  "xgboost", "sklearn", "numpy", "requests", "yaml"}
        self.assertFalse(others & set(done.stdout.split()))
        if hasattr(sys, "stdlib_module_names"):
            self.assertFalse(set(done.stdout.split()) - set(sys.stdlib_module_names) - {"assay"})

    def test_grammar_of_3_8(self):
        with open(os.path.join(CLIENT, "assay.py"), encoding="utf-8") as f:
            ast.parse(f.read(), feature_version=(3, 8))

    def test_the_modules_make_the_file(self):
        """In every Python the same bytes; and the folder of modules is a package with the same names."""
        made = os.path.join(self.folder, "assay.py")
        subprocess.run([sys.executable, "-W", "error", os.path.join(MODULES, "join.py"), made], check=True)
        with open(made, "rb") as a, open(os.path.join(CLIENT, "assay.py"), "rb") as b:
            self.assertEqual(a.read(), b.read())
        os.unlink(made)
        os.mkfifo(made)  # what is no file is not replaced
        done = subprocess.run([sys.executable, os.path.join(MODULES, "join.py"), made], stderr=subprocess.PIPE,
                              universal_newlines=True)
        self.assertEqual((done.returncode, "no regular file" in done.stderr), (1, True))
        code = ("import assay; assay.create_study(space={'x': (0, 1)}); print(assay.__file__); "
                "print(*sorted(n for n in assay.__all__ if hasattr(assay, n)))")
        done = subprocess.run([sys.executable, "-W", "error", "-B", "-c", code], env=dict(os.environ, PYTHONPATH=MODULES),
                              stdout=subprocess.PIPE, check=True, universal_newlines=True, cwd=self.folder)
        path, names = done.stdout.splitlines()
        self.assertEqual(path, os.path.join(MODULES, "assay", "__init__.py"))
        self.assertEqual(names.split(), sorted(assay.__all__))

    def test_what_cannot_be_joined(self):
        copy = os.path.join(self.folder, "python")
        for name, change, words in [
                ("run.py", "\nimport math as m\n", ["run.py:", "another name"]),
                ("run.py", "\n_say = 1\n", ["run.py:", "_say", "messages"]),
                ("errors.py", "\nfrom .trial import Trial\n", ["errors.py:", "Trial", "later"]),
                ("run.py", "\n" * 400, ["run.py:400", "at most 400"]),
                ("more.py", "", ["more", "MODULES"])]:
            shutil.copytree(MODULES, copy, ignore=shutil.ignore_patterns("__pycache__"))
            with open(os.path.join(copy, "assay", name), "a", encoding="utf-8") as f:
                f.write(change)
            done = subprocess.run([sys.executable, "-B", os.path.join(copy, "join.py"), os.path.join(self.folder, "out.py")],
                                  stderr=subprocess.PIPE, universal_newlines=True)
            self.assertEqual(done.returncode, 1)
            for word in words:
                self.assertIn(word, done.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "out.py")))
            shutil.rmtree(copy)

    def test_wheel(self):
        made = subprocess.run([sys.executable, "-W", "error", os.path.join(MODULES, "wheel.py"), self.folder], check=True,
                              stdout=subprocess.PIPE, universal_newlines=True).stdout.strip()
        self.assertEqual(os.path.dirname(made), self.folder)
        with zipfile.ZipFile(made) as z:
            self.assertIsNone(z.testzip())
            names = z.namelist()
            record = z.read([n for n in names if n.endswith("RECORD")][0]).decode()
        self.assertEqual(sorted(line.split(",")[0] for line in record.splitlines()), sorted(names))
        code = "import assay; print(assay.__version__, assay.__file__)"
        done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=made), check=True,
                              stdout=subprocess.PIPE, universal_newlines=True, cwd=self.folder)
        self.assertEqual(done.stdout.split(), [assay.__version__, os.path.join(made, "assay", "__init__.py")])
        pip = [sys.executable, "-m", "pip"]
        if subprocess.run(pip + ["--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            into = os.path.join(self.folder, "site")
            subprocess.run(pip + ["install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check",
                                  "--root-user-action", "ignore", "--target", into, made] if sys.version_info >= (3, 9) else
                           pip + ["install", "--quiet", "--no-index", "--no-deps", "--target", into, made],
                           check=True, stderr=subprocess.DEVNULL)
            self.assertTrue(os.path.exists(os.path.join(into, "assay", "py.typed")))
            # wheel.py is also what pip builds with: no network, no setuptools.
            again = os.path.join(self.folder, "again")
            subprocess.run(pip + ["wheel", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", "--wheel-dir",
                                  again, MODULES], check=True, stderr=subprocess.DEVNULL)
            with open(made, "rb") as a, open(os.path.join(again, os.path.basename(made)), "rb") as b:
                self.assertEqual(a.read(), b.read())


def others():
    """The other Pythons of this machine that the client is made for."""
    for minor in range(8, 14):
        program = shutil.which(f"python3.{minor}")
        if program and minor != sys.version_info[1]:
            done = subprocess.run([program, "-c", "import sys; print(sys.version_info[1])"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, universal_newlines=True)
            if done.returncode == 0 and done.stdout.strip() == str(minor):
                yield program


class Ends(unittest.TestCase):
    def test_a_study_that_sent_nothing_needs_no_server(self):
        """At the end of its program; a server would be started for it."""
        study = assay.Study("none", [("value", "minimize")], {}, lambda: self.fail("looked for a server"))

        def objective(trial):
            trial.suggest_float("x", 0, 1)
            raise ValueError("first")
        with self.assertRaises(ValueError):
            study.optimize(objective, n_trials=3)
        study._leave()


class Tables(unittest.TestCase):
    """What assay.fit() gives to the program."""

    def test_numbers_of_numpy(self):
        class Number(float):
            def __repr__(self):
                return f"np.float64({float.__repr__(self)})"

        self.assertEqual([assay._cell(v) for v in (Number(0.1), Number("nan"), 3, True, None)], ["0.1", "", "3", "true", ""])

    def test_times_and_names(self):
        self.assertEqual([assay._amount(v, 1000, "ms") for v in ("10m", 90, 0.5)], ["10m", "90000ms", "500ms"])
        self.assertEqual(assay._list(["a,b", 10, "c*", ""]), r'a\,b,10,c*,""')
        self.assertEqual(assay._list("a,b"), "a,b")

    def test_columns_whose_names_are_numbers(self):
        values = [[1, 2], [3, 4], [5, 6]]
        frame = assay._Columns(["10", "20", "0"], values, "pandas", None, [10, 20, 0])
        found, name = assay._with_target(frame, 0)  # the column of this name, not the first one
        self.assertEqual((found.names, name), (["10", "20", "target 0"], "target 0"))
        found, name = assay._with_target(frame._replace(names=["a", "20", "0"], labels=["a", 20, 0]), -1)
        self.assertEqual((found.names, name), (["a", "20", "0"], "0"))
        found, name = assay._with_target(assay._columns_of({"a": [1, 2], "b": [3, 4]}), 0)
        self.assertEqual((found.names, name), (["a", "b"], "a"))


if __name__ == "__main__":
    if sys.argv[1:] == ["--one"]:
        unittest.main(argv=sys.argv[:1], warnings="error")
    for python in [sys.executable, *others()]:
        print(f"{python}:", flush=True)
        if subprocess.run([python, "-W", "error", os.path.abspath(__file__), "--one"]).returncode != 0:
            sys.exit(f"{python} failed")
