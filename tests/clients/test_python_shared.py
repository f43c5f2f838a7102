#!/usr/bin/env python3
"""Studies of the Python client that several programs share, with a real server: one name and one sweep, spaces that are
compared by what they mean, programs that are killed, stopped, interrupted and forked, and what cannot be sent."""
import contextlib
import io
import os
import signal
import sys
import time
import unittest
import warnings

if not sys.warnoptions:  # what is left open is an error; unittest leaves the filters alone when it finds some
    os.execv(sys.executable, [sys.executable, "-W", "error", *sys.argv])
warnings.filterwarnings("ignore", category=ResourceWarning, module="harness")

sys.path[:0] = [os.path.join(os.environ["ASSAY_SOURCE_ROOT"], "tests", part) for part in ("clients", "e2e")]
from programs import UP, Case, begin, end, program  # noqa: E402
import assay  # noqa: E402
from harness import PATIENCE_S, Problem  # noqa: E402

setUpModule, tearDownModule = begin, end
# Each kind of parameter, in spellings that mean the same.
SPELLINGS = [
    [{"type": "int", "min": 1, "max": 9}, (1, 9), {"type": "int", "min": 1, "max": 9, "step": 1},
     {"type": "int", "min": 1.0, "max": 9, "scale": "linear", "step": None}],
    [{"type": "int", "min": 1, "max": 10, "step": 4}, {"type": "int", "min": 1, "max": 9, "step": 4, "scale": "linear"}],
    [{"type": "int", "min": 1, "max": 64, "scale": "log"}, (1, 64, "log"), {"type": "int", "min": 1, "max": 64, "scale": "log", "step": 1}],
    [{"type": "float", "min": 0, "max": 1}, (0.0, 1.0), {"type": "float", "min": 0.0, "max": 1, "scale": "linear"}],
    [{"type": "float", "min": 0, "max": 1, "step": 0.25}, {"type": "float", "min": 0.0, "max": 1.125, "step": 0.25}],
    [{"type": "float", "min": 1e-5, "max": 1, "scale": "log"}, (1e-5, 1.0, "log")],
    [["a", None, 2, True, [1, 2]], {"type": "categorical", "values": ["a", None, 2.0, True, (1, 2)]}],
    [{"type": "ordinal", "values": [1, 2, 4]}, {"type": "ordinal", "values": [1.0, 2, 4]}],
    [{"type": "bool"}, [False, True]],
    [{"type": "constant", "value": 3}, (3, 3), [3], {"type": "int", "min": 3, "max": 3}, {"type": "float", "min": 3, "max": 3}],
]


class Spaces(Case):
    def test_spellings_of_one_space(self):
        for i, spellings in enumerate(SPELLINGS):
            others = [s[0] for k, s in enumerate(SPELLINGS) if k != i]
            for k, first in enumerate(spellings):
                name = f"spelt-{i}-{k}"
                study = assay.create_study(study_name=name, space={"p": first, "x": (0.0, 1.0)}, load_if_exists=True)
                study.tell(study.ask(), 1.0)
                for again in spellings:
                    study = assay.create_study(study_name=name, space={"p": again, "x": (0.0, 1.0)}, load_if_exists=True)
                    self.assertEqual(study.sweep, name)
                    study.tell(study.ask(), 1.0)
                for other in others:
                    with self.assertRaisesRegex(assay.SpaceError, f"parameter 'p'.*{name}"):
                        assay.create_study(study_name=name, space={"p": other, "x": (0.0, 1.0)}, load_if_exists=True)
            UP.call("PATCH", f"/v1/sweeps/{name}", {"limits": {"max_trials": 1}})

    def test_conditions_and_names(self):
        when = {"k": ["a", "b", "c"], "n": {"type": "int", "min": 1, "max": 4, "when": {"k": "a"}}}
        make = lambda space: assay.create_study(study_name="conditions", space=space, load_if_exists=True)  # noqa: E731
        study = make(when)
        study.tell(study.ask(), 1.0)
        make({"k": ["c", "b", "a"], "n": {"type": "int", "min": 1, "max": 4, "step": 1, "when": {"k": ["a"]}}})
        for space, word in [({"k": ["a", "b", "c"]}, "'n'"), (dict(when, z=(0, 1)), "'z'"),
                            (dict(when, n={"type": "int", "min": 1, "max": 4, "when": {"k": "b"}}), "when"),
                            (dict(when, n=(1, 4)), "when"), (dict(when, n={"type": "int", "min": 1}), "'n'")]:
            with self.assertRaisesRegex(assay.SpaceError, word):
                make(space)

    def test_a_second_process_and_a_restart(self):
        text = """
            def objective(trial):
                return trial.suggest_int("y", 1, 9) + trial.suggest_float("x", 0, 1) + trial.suggest_int("k", 1, 8, log=True)
            study = assay.optimize(objective, n_trials=int(sys.argv[1]), name="restarted", load_if_exists=True)
            print(study.sweep, len(study.trials))
        """
        for total in (4, 6, 8):
            self.assertEqual(self.ended(program(text, str(total)))[0].split(), ["restarted", str(total)])


class Together(Case):
    def test_two_programs_without_a_space(self):
        """Both run their first trial when neither has made the sweep."""
        for number in range(3):
            text = """
                name, me, other, calls = *sys.argv[1:], []
                def objective(trial):
                    if not calls:
                        open(me, "w").close()
                        wait_for(other)
                    calls.append(trial.number)
                    return trial.suggest_float("x", 0, 1) + trial.suggest_int("n", 1, 5) + len(trial.suggest_categorical("c", ["a", "bb"]))
                study = assay.optimize(objective, n_trials=20, name=name, load_if_exists=True)
                print(study.sweep, len(study.trials), len(calls), len({t.number for t in study.trials}))
            """
            name = f"together-{number}"
            paths = [self.path(f"{number}-{i}") for i in range(2)]
            found = [self.ended(p)[0].split() for p in (program(text, name, *paths), program(text, name, *paths[::-1]))]
            self.assertEqual([(f[0], f[1], f[3]) for f in found], [(name, "20", "20")] * 2)
            self.assertEqual(sum(int(f[2]) for f in found), 20)
            UP.wait_ended(name)
            UP.check_exact(name, 20)
            with self.assertRaises(Problem):
                UP.sweep(name + "-2")

    def test_a_program_that_comes_too_late(self):
        """Its first trial began when the study had none, and ended when it had all."""
        late = program("""
            def objective(trial):
                x = trial.suggest_float("x", 0, 1)
                open(sys.argv[1] + "/began", "w").close()
                wait_for(sys.argv[1] + "/over")
                return x
            study = assay.optimize(objective, n_trials=3, name="late", load_if_exists=True)
            print(len(study.trials), [str(t.state) for t in study.trials])
        """, self.folder)
        while not os.path.exists(self.path("began")):
            self.assertIsNone(late.poll())
            time.sleep(0.02)
        assay.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=3, name="late", load_if_exists=True)
        self.touch("over")
        out, err = self.ended(late)
        self.assertEqual(out.strip(), "3 ['completed', 'completed', 'completed']")
        self.assertIn("all trials", err)
        UP.check_exact("late", 3)

    BRANCHES = """
        def objective(trial):
            if trial.suggest_categorical("kind", ["a", "b", "c"]) == "a":
                return trial.suggest_float("left", 0, 1)
            value = trial.suggest_float("right", 0, 1) + trial.suggest_int("depth", 1, 3)
            return value + sum(trial.suggest_float(f"w{i}", 0, 1) for i in range(trial.suggest_int("n", 0, 2)))
    """

    def test_spaces_that_grow(self):
        text = self.BRANCHES + """
        study = assay.optimize(objective, n_trials=30, name=sys.argv[1], load_if_exists=True, n_jobs=2)
        print(study.sweep, len(study.trials))
        """
        for number in range(2):
            name = f"growing-{number}"
            found = [self.ended(p)[0].split() for p in [program(text, name) for _ in range(3)]]
            chain = self.chain(name)
            self.assertGreater(len(chain), 1)
            self.assertEqual({f[0] for f in found}, {chain[-1]}, chain)
            self.assertEqual(self.ran(chain), 30, [(UP.sweep(s)["counts"], UP.call("GET", f"/v1/sweeps/{s}/changes")) for s in chain])
            self.assertEqual({f[1] for f in found}, {"30"})
            self.assertEqual(len(UP.trials(chain[-1])), 30)
            again = self.ended(program(text, name))[0].split()  # started again: it has all there is
            self.assertEqual(again, found[0])

    def test_a_program_that_dies_while_the_space_grows(self):
        text = self.BRANCHES + """
        if len(sys.argv) > 2:
            step, call = sys.argv[2], assay._Http.call
            def dies(self, method, path, *args, **named):
                if step == "created" and method == "PATCH" or step == "closed" and path.endswith("/trials") or \\
                        step == "added" and method == "PATCH" and args[0].get("state") == "running":
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(self, method, path, *args, **named)
            assay._Http.call = dies
        study = assay.optimize(objective, n_trials=12, name=sys.argv[1], load_if_exists=True, seed=5, lease=2)
        print(study.sweep, len(study.trials))
        """
        for step in ("created", "closed", "added"):
            name = f"dies-{step}"
            self.ended(program(text, name, step), -signal.SIGKILL)
            chain = self.chain(name)
            self.assertEqual(UP.sweep(chain[-1])["state"], "paused")
            out = self.ended(program(text, name))[0].split()
            chain = self.chain(name)
            self.assertEqual(out, [chain[-1], "12"])
            self.assertEqual(self.ran(chain), 12)


class Lives(Case):
    SLOW = """
        def objective(trial):
            x = trial.suggest_float("x", 0, 1)
            if trial.number == 1 and trial.attempt == 1:
                open(sys.argv[1] + "/runs", "w").close()
                wait_for(sys.argv[1] + "/go")
            return x
        study = assay.optimize(objective, {"x": (0.0, 1.0)}, 4, name=sys.argv[2], load_if_exists=True, lease=int(sys.argv[3]))
        print([str(t.state) for t in study.trials])
    """

    def with_leases(self, name, attempts, run):
        """What run(name, lease) does leaves these attempts. A program that gets no processor for a lease looks like one
        that is silent: then it is tried with a longer one, twice."""
        for lease in (1, 6, 36):
            for file in ("runs", "go"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.path(file))
            said = run(f"{name}-{lease}", lease)
            found = [t["attempt"] for t in UP.trials(f"{name}-{lease}")]
            if said is None and found == attempts:
                return
        self.fail(f"{said or 'all was well'}, and the attempts are {found}, not {attempts}")

    def slow(self, name, lease):
        return program(self.SLOW, self.folder, name, str(lease))

    def runs(self, name, lease):
        p = self.slow(name, lease)
        while not os.path.exists(self.path("runs")):
            self.assertIsNone(p.poll())
            time.sleep(0.02)
        return p

    def test_the_lease_is_short(self):
        study = assay.create_study(study_name="lease", space={"x": (0.0, 1.0)})
        begin = time.time()
        answer = study._request(study.sweep or study._begin(None) or study.sweep, "me", 1, 30000)
        held = assay._seconds(answer["items"][0]["lease_until"]) - begin
        self.assertLess(held, 120)
        with self.assertRaisesRegex(ValueError, "lease"):
            assay.create_study(lease=0.5)

    def test_heartbeats_keep_what_is_held(self):
        def run(name, lease):
            p = self.runs(name, lease)
            begin = UP.call("GET", f"/v1/sweeps/{name}/trials/1")
            time.sleep(4 * lease)  # nothing to wait for: the trial stays where it is
            now = UP.call("GET", f"/v1/sweeps/{name}/trials/1")
            self.touch("go")
            self.assertEqual(self.ended(p)[0].strip(), str(["completed"] * 4))
            held = [(t["state"], t["attempt"]) for t in (begin, now)]
            return None if held == [("running", 1)] * 2 else f"it was {held}"
        self.with_leases("beats", [1, 1, 1, 1], run)

    def test_killed(self):
        def run(name, lease):
            p = self.runs(name, lease)
            p.kill()
            p.communicate()
            self.touch("go")
            self.assertEqual(self.ended(self.slow(name, lease))[0].strip(), str(["completed"] * 4))
        self.with_leases("killed", [1, 2, 1, 1], run)

    def stopped(self, name, lease):
        """A program that has not been heard for its lease."""
        p = self.runs(name, lease)
        os.kill(p.pid, signal.SIGSTOP)
        UP.wait(lambda: UP.call("GET", f"/v1/sweeps/{name}/trials/1")["state"] == "queued", "the lease to end")
        return p

    def test_stopped_and_nobody_took_its_trial(self):
        def run(name, lease):
            p = self.stopped(name, lease)
            self.touch("go")
            os.kill(p.pid, signal.SIGCONT)
            self.assertEqual(self.ended(p)[0].strip(), str(["completed"] * 4))
        self.with_leases("stopped", [1, 1, 1, 1], run)

    def test_stopped_and_another_ran_its_trial(self):
        def run(name, lease):
            p = self.stopped(name, lease)
            self.ended(self.slow(name, lease))
            self.touch("go")
            os.kill(p.pid, signal.SIGCONT)
            out, err = self.ended(p)
            self.assertIn("trial 1: its result is not used", err)
            self.assertIn(f"silent for more than {lease} s", err)
            self.assertEqual(out.strip(), str(["completed"] * 4))  # the trial is the other program's, once
        self.with_leases("taken", [1, 2, 1, 1], run)

    def test_children_leave_the_trials_of_their_parent(self):
        p = program("""
            def objective(trial):
                x = trial.suggest_float("x", 0, 1)
                trial.report(x, 0)
                with trial._study._lock:  # as when the heartbeat has it
                    children = [os.fork()]
                if children[0] == 0:
                    with trial._study._lock:
                        trial.report(x, 1)
                        trial._send()
                    sys.exit(0)
                assert os.waitpid(children[0], 0)[1] == 0
                assert not trial.should_prune()
                return x
            study = assay.optimize(objective, n_trials=3, name="forks")
            print([str(t.state) for t in study.trials])
        """)
        out, err = self.ended(p)
        self.assertEqual(out.strip().splitlines()[-1], str(["completed"] * 3))
        self.assertEqual([t["step"] for t in UP.trials("forks")], [2, 2, 2])  # two reports and the result

    def test_no_trial_stays_queued(self):
        """After Ctrl-C in a trial, in a request, in a batch, or in threads, and the end of the program."""
        for name, options in [("alone", ""), ("batch", ", batch=4"), ("threads", ", n_jobs=2")]:
            p = program("""
                def objective(trial):
                    x = trial.suggest_float("x", 0, 1)
                    if trial.number == 2:
                        raise KeyboardInterrupt
                    return x
                study = assay.create_study(study_name=sys.argv[1])
                try:
                    study.optimize(objective, n_trials=9%s)
                except KeyboardInterrupt:
                    print("interrupted")
                    raise SystemExit(1)
            """ % options, "interrupt-" + name)
            self.ended(p, 1)
            s = UP.wait_ended("interrupt-" + name)
            self.assertEqual((s["state"], s["counts"]["queued"], s["counts"]["running"]), ("completed", 0, 0))
            self.assertGreaterEqual(s["counts"]["cancelled"], 1)

    def test_no_sweep_waits_for_an_objective_that_raised(self):
        """Nor for one that was stopped; a study of another program, and one that goes on, are left alone."""
        p = program("""
            def objective(trial):
                x = trial.suggest_float("x", 0, 1)
                if trial.number == 2:
                    raise ValueError("two")
                return x
            for name, options in (("raises", {}), ("raises-threads", {"n_jobs": 2})):
                try:
                    assay.optimize(objective, n_trials=9, name=name, **options)
                except ValueError:
                    print("raised")
            assay.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=9, name="stops", callbacks=[lambda s, t: s.stop()])
            loop = assay.create_study(study_name="loops")
            trial = loop.ask()
            loop.tell(trial, trial.suggest_float("x", 0, 1))
            try:
                assay.load_study("loops").optimize(objective, n_trials=9)
            except ValueError:
                print("raised")
        """)
        self.assertEqual(self.ended(p)[0].count("raised"), 3)
        for name in ("raises", "raises-threads", "stops"):
            s = UP.wait_ended(name)
            self.assertEqual((s["state"], s["counts"]["queued"], s["counts"]["running"]), ("completed", 0, 0))
        self.assertEqual(UP.call("GET", "/v1/sweeps/loops")["state"], "running")

    def test_an_interrupt_between_a_request_and_its_answer(self):
        p = program("""
            study = assay.create_study(study_name="interrupt-ask", space={"x": (0.0, 1.0)})
            study.tell(study.ask(), 1.0)
            call = study._http.call
            def interrupted(method, path, *args, **named):
                answer = call(method, path, *args, **named)
                if path.endswith("/suggestions"):
                    study._http.call = call
                    raise KeyboardInterrupt
                return answer
            study._http.call = interrupted
            try:
                study.ask()
            except KeyboardInterrupt:
                print("interrupted")
        """)
        self.assertIn("interrupted", self.ended(p)[0])
        s = UP.wait_ended("interrupt-ask")
        self.assertEqual((s["counts"]["completed"], s["counts"]["cancelled"], s["counts"]["total"]), (1, 1, 2))

    def test_duration_is_without_what_a_trial_waited(self):
        """It was given back and waited for another client; then it failed, and waited for a retry."""
        study = assay.create_study(study_name="waits", space={"x": (0.0, 1.0)})
        study.tell(study.ask(), 1.0)
        path = f"/v1/sweeps/{study.sweep}/suggestions"

        def run(client, **end):
            t, = UP.call("POST", path, {"client": client, "count": 1})["items"]
            time.sleep(0.05)
            UP.call("POST", f"{path}/{t['number']}/complete", {"client": client, "attempt": t["attempt"], **end})
            time.sleep(0.2)  # for so long it waits, if it goes on
            return t["number"]

        number = run("first", outcome="released")
        self.assertEqual(run("second", outcome="failed", reason="try again"), number)
        failed = study.trials[number].duration
        UP.call("POST", f"/v1/sweeps/{study.sweep}/retry", {"state": "failed"})
        time.sleep(0.2)
        self.assertEqual(run("third", metrics={"value": 2.0}), number)
        row = UP.call("GET", f"/v1/sweeps/{study.sweep}/trials/{number}")
        ended = study.trials[number]
        self.assertEqual(ended.duration, row["ran_ms"] / 1000)
        self.assertGreaterEqual(ended.duration, 0.05)
        first, second = ((assay._seconds(a["started_at"]), assay._seconds(a["ended_at"])) for a in row["attempts"][:2])
        waited = second[0] - first[1]
        self.assertGreaterEqual(waited, 0.2)
        self.assertAlmostEqual(failed, second[1] - first[0] - waited, delta=0.01)

    def test_a_program_that_leaves_without_telling(self):
        p = program("""
            study = assay.create_study(study_name="leaves", space={"x": (0.0, 1.0)})
            trials = [study.ask() for _ in range(3)]
            study.tell(trials[0], 1.0)
        """)
        self.ended(p)
        self.assertEqual(UP.wait_ended("leaves")["counts"]["cancelled"], 2)


class Border(Case):
    """What an objective gives that cannot be sent, or is not what it seems."""

    def test_exceptions_whose_text_cannot_be_sent(self):
        class Silent(Exception):
            def __str__(self):
                raise RuntimeError("no text")

        failures = [OSError(b"\xff/file".decode("utf8", "surrogateescape")), Silent(), ValueError("a\0b"), KeyError("é" * 3000),
                    ValueError("x" * 100000), UnicodeDecodeError("utf8", b"\xff", 0, 1, "bad")]

        def objective(trial):
            x = trial.suggest_float("x", 0, 1)
            if trial.number < len(failures):
                raise failures[trial.number]
            return x

        with contextlib.redirect_stderr(io.StringIO()):
            study = assay.optimize(objective, {"x": (0.0, 1.0)}, len(failures) + 1, name="unsendable", catch=Exception)
        rows = UP.trials(study.sweep)
        self.assertEqual([r["state"] for r in rows], ["failed"] * len(failures) + ["completed"])
        self.assertEqual(rows[0]["reason"], "OSError: \\udcff/file")
        self.assertEqual(rows[1]["reason"], "Silent: <its text raises RuntimeError>")
        self.assertEqual(rows[2]["reason"], "ValueError: a\\x00b")
        self.assertEqual(UP.wait_ended(study.sweep)["state"], "completed")
        with self.assertRaises(Silent):  # without catch
            assay.optimize(lambda t: t.suggest_float("x", 0, 1) and objective(t), {"x": (0.0, 1.0)}, 3,
                           enqueue=[{"x": 0.5}], catch=OSError)

    def test_reports_that_are_refused_at_once(self):
        def objective(trial):
            x = trial.suggest_float("x", 0, 1)
            for step in (2**70, 2**63 - 1, -1, 1.5, float("nan"), float("inf"), True, "1", b"1", [1]):
                with self.assertRaisesRegex(ValueError, "step: found .*, expected a whole number from 0"):
                    trial.report(1, step)
            for value in ("text", [1], 10**400, {}):
                with self.assertRaisesRegex(ValueError, "value: found .*, expected a number"):
                    trial.report(value, 1)
            for name in ("", "a b", "é", "\udcff", "x" * 64):
                with self.assertRaisesRegex(ValueError, "metric"):
                    trial.report(**{name: 1})
            for number, step in enumerate([0, 7.0, 2**53, 2**63 - 2]):
                trial.report(number, step)
            for value in (float("nan"), float("inf"), True):
                trial.report(value, 3, other=value)
            return x

        study = assay.optimize(objective, n_trials=2, name="reports")
        self.assertEqual([t.state for t in study.trials], ["completed", "completed"])
        steps = UP.call("GET", "/v1/sweeps/reports/trials/0/measurements")["series"]["value"]["steps"]
        self.assertEqual(steps, [0, 3, 7, 2**53, 2**63 - 2, 2**63 - 1])

    def test_results_and_choices_that_are_refused(self):
        space = {"x": (0.0, 1.0)}
        for returned in (10**400, "1,5", {"value": 1, "a b": 2}, {"value": 1, "\udcff": 2}, {1: 2}):
            with self.assertRaises((TypeError, ValueError)):
                assay.optimize(lambda t: returned, space, 1)
        choices = ["a\udcff", "b\0", "c\ud800", ("d\udcff",), 1]
        study = assay.optimize(lambda t: choices.index(t.suggest_categorical("c", choices)), n_trials=8, method="random", seed=1)
        self.assertEqual([choices[int(t.value)] for t in study.trials], [t.params["c"] for t in study.trials])
        for params in ({"x": "text"}, {"x": float("nan")}, {"x": 10**400}, {"x": None}):
            study = assay.create_study(space=space)
            study.enqueue_trial(params)
            with self.assertRaisesRegex(assay.SpaceError, "parameter 'x': value: found"):
                study.optimize(lambda t: 1.0, n_trials=1)
        for named in ({"tags": ["a\udcff"]}, {"tags": ["a\0"]}):
            with self.assertRaisesRegex(assay.AssayError, "found (the|a) text"):
                assay.optimize(lambda t: 1.0, space, 1, **named)


if __name__ == "__main__":
    unittest.main()
