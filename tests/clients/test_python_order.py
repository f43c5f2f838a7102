#!/usr/bin/env python3
"""Threads of the Python client that meet at the worst moment, with a real server: a result that is told while
another thread moves the study on to a larger space, or lists its trials; a configuration that is asked for while it is
enqueued. Locks and requests are held back until the other thread is where it must be: the order is the same every time."""
import contextlib
import os
import sys
import tempfile
import threading
import unittest
import warnings

if not sys.warnoptions:  # what is left open is an error; unittest leaves the filters alone when it finds some
    os.execv(sys.executable, [sys.executable, "-W", "error", *sys.argv])
warnings.filterwarnings("ignore", category=ResourceWarning, module="harness")

SOURCE = os.environ["ASSAY_SOURCE_ROOT"]
sys.path[:0] = [os.path.join(os.environ["ASSAY_BUILD_ROOT"], "clients", "python"), os.path.join(SOURCE, "tests", "e2e")]
import assay  # noqa: E402
from harness import PATIENCE_S, Assay  # noqa: E402

STATE = tempfile.TemporaryDirectory(prefix="assay-py-", dir="/var/tmp")
os.environ.update(XDG_STATE_HOME=STATE.name, XDG_CONFIG_HOME=STATE.name)
for name in ("ASSAY_SERVER", "ASSAY_TOKEN", "ASSAY_TOKEN_FILE", "ASSAY_PROFILE"):
    os.environ.pop(name, None)
UP = Assay(runners=0, args=())


def setUpModule():
    UP.__enter__()


def tearDownModule():
    UP.__exit__(None, None, None)
    STATE.cleanup()


class Order(unittest.TestCase):
    @contextlib.contextmanager
    def told(self, study, trial, value):
        """Inside, the server has the result of a trial and the thread that tells it has no answer yet. Yields what lets
        the answer through and waits for the thread."""
        http, recorded, answer, errors = study._http, threading.Event(), threading.Event(), []
        path, call = f"/v1/sweeps/{trial._sweep}/suggestions/{trial.number}/complete", http.call

        def held(method, to, *args, **named):
            result = call(method, to, *args, **named)
            if to == path:
                recorded.set()
                answer.wait(PATIENCE_S)
            return result

        def tell():
            try:
                study.tell(trial, value)
            except BaseException as e:
                errors.append(e)
            finally:
                recorded.set()
                http.close()

        def let_through():
            answer.set()
            thread.join(PATIENCE_S)
            self.assertEqual((errors, thread.is_alive()), ([], False))

        thread = threading.Thread(target=tell)
        http.call = held
        thread.start()
        try:
            self.assertTrue(recorded.wait(PATIENCE_S))
            yield let_through
        finally:
            let_through()
            http.call = call

    def grown_while_told(self, names):
        """A study of three trials with the values 0, 1 and 2 whose space grew by what the last one suggested, while the
        second, which suggested `names`, was told."""
        study = assay.create_study()
        first = study.ask()
        first.suggest_float("x", 0, 1)
        study.tell(first, 0)
        second, third = study.ask(), study.ask()
        for name in names:
            second.suggest_float(name, 0, 1)
        for name in ("x", "late"):
            third.suggest_float(name, 0, 1)
        study.tell(third, 2)
        before = study.sweep
        with self.told(study, second, 1) as let_through:
            fourth = study.ask()
            self.assertNotEqual(study.sweep, before)
            let_through()
        return study, fourth

    def test_a_result_that_is_told_while_the_space_grows(self):
        study, fourth = self.grown_while_told(["x"])
        fourth.suggest_float("x", 0, 1)
        study.tell(fourth, 3)
        self.assertEqual(sorted(t.value for t in study.trials), [0, 1, 2, 3])
        self.assertEqual(sorted(r["metrics"]["value"] for r in UP.trials(study.sweep)), [0, 1, 2, 3])
        # The second suggested a name that even the larger space lacks: it is known to the sweep after that.
        study, fourth = self.grown_while_told(["x", "later"])
        fourth.suggest_float("x", 0, 1)
        study.tell(fourth, 3)
        fifth = study.ask()
        fifth.suggest_float("x", 0, 1)
        study.tell(fifth, 4)
        self.assertEqual(sorted(t.value for t in study.trials), [0, 1, 2, 3, 4])
        self.assertEqual(sorted(r["metrics"]["value"] for r in UP.trials(study.sweep)), [0, 1, 2, 3, 4])

    def test_a_configuration_that_is_asked_for_while_it_is_enqueued(self):
        """It keeps the values of names that the sweep does not have, though a thread got it before its number was known."""
        study, got = assay.create_study(), []
        first = study.ask()
        first.suggest_float("x", 0, 1)
        study.tell(first, 0)
        asker, call, lock = threading.Thread(target=lambda: got.append(study.ask())), study._http.call, study._lock
        asking, added, after = threading.Event(), threading.Event(), threading.Event()

        class Watched:
            """The lock of the study; says when the thread that asks wants it with its answer at hand."""
            def __enter__(self):
                if threading.current_thread() is asker and added.is_set():
                    after.set()
                return lock.__enter__()

            def __exit__(self, *args):
                return lock.__exit__(*args)

        def ordered(method, to, *args, **named):
            if threading.current_thread() is asker:
                asking.set()
                added.wait(PATIENCE_S)
            result = call(method, to, *args, **named)
            if to.endswith("/trials"):
                added.set()
                after.wait(PATIENCE_S)
            return result

        study._http.call, study._lock = ordered, Watched()
        asker.start()
        self.assertTrue(asking.wait(PATIENCE_S))
        study.enqueue_trial({"x": 0.25, "late": 0.625})
        asker.join(PATIENCE_S)
        self.assertEqual([t.suggest_float(n, 0, 1) for t in got for n in ("x", "late")], [0.25, 0.625])

    def test_results_that_are_read_while_one_is_told(self):
        study = assay.create_study(space={"x": (0.0, 1.0)})
        trial, pages = study.ask(), study._pages
        with self.told(study, trial, 1) as let_through:
            def then_answered(path):
                yield from pages(path)
                let_through()

            study._pages = then_answered
            self.assertEqual([t.value for t in study.trials], [1])


if __name__ == "__main__":
    unittest.main()
