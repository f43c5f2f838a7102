#!/usr/bin/env python3
"""Studies whose space grows while several programs work on them, with a real server: each result is in the last sweep once,
whoever told it, when, and whether its program lived on. The orders are those of the table in clients/python/assay/moving.py,
each made by hand; then programs with planted delays meet in an order that a seed decides, and some of them are killed.
ASSAY_ORDERS=100 tries so many seeds."""
import json
import os
import signal
import sys
import threading
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


def key_of(row):
    return row["suggestion"].get("key") or f"{row['sweep']}/{row['number']}"


class Moving(Case):
    def study(self, name, **options):
        return assay.create_study(study_name=name, load_if_exists=True, **options)

    def run_one(self, study, value, names=("x",)):
        trial = study.ask()
        for name in names:
            trial.suggest_float(name, 0, 1)
        return study.tell(trial, value)

    def check(self, name, values):
        """The last sweep has these values, each once."""
        chain = self.chain(name)
        rows = [r for r in UP.trials(chain[-1]) if r["state"] == "completed"]
        self.assertEqual(sorted(r["metrics"]["value"] for r in rows), sorted(values), chain)
        self.assertEqual(len({key_of(r) for r in rows}), len(rows))
        return chain

    def begun(self, name, limit):
        """A study of `limit` trials with one result, 0, and two programs that know it."""
        first = self.study(name)
        first._set_limit(None, limit, None)
        self.run_one(first, 0)
        return first, self.study(name)

    def test_a_late_trial_that_lets_the_space_grow_again(self):
        fast, slow = self.begun("late-grows", 6)
        late = slow.ask()
        late.suggest_float("x", 0, 1)
        self.run_one(fast, 1, ("x", "y"))
        self.run_one(fast, 2)  # the study has moved on
        late.suggest_float("z", 0, 1)
        slow.tell(late, 3)  # with a name that the sweep lacks to which the study moved
        self.assertEqual(sorted(r["metrics"]["value"] for r in UP.trials(fast.sweep)), [0, 1, 2, 3])
        self.run_one(slow, 4)  # it moves on once more
        self.run_one(fast, 5)
        chain = self.check("late-grows", range(6))
        self.assertEqual(len(chain), 3)
        self.assertEqual(set(UP.sweep(chain[-1])["document"]["parameters"]), {"x", "y", "z"})
        self.assertEqual(self.ran(chain), 6)
        self.assertEqual([sorted(t.value for t in s.trials) for s in (fast, slow)], [list(range(6))] * 2)

    def test_an_ask_while_a_trial_of_a_closed_sweep_is_held(self):
        """The sweep does not end before the trial does; the ask goes to the one that the study has now."""
        fast, slow = self.begun("held", 5)
        held = slow.ask()
        held.suggest_float("x", 0, 1)
        self.run_one(fast, 1, ("x", "y"))
        self.run_one(fast, 2)
        self.run_one(slow, 3)
        slow.tell(held, 4)
        self.check("held", range(5))
        with self.assertRaisesRegex(assay.AssayError, "no more trials"):
            slow.ask()

    def test_an_ask_when_all_that_is_left_is_held_here(self):
        study = assay.create_study(study_name="all-held", space={"x": (0.0, 1.0)})
        study._set_limit(2, None, None)
        held = [study.ask(), study.ask()]
        with self.assertRaisesRegex(assay.AssayError, "no more trials: tell those that it gave"):
            study.ask()
        for trial in held:
            study.tell(trial, 1)
        with self.assertRaisesRegex(assay.AssayError, "no more trials$"):
            study.ask()

    def test_a_result_after_the_last_sweep_has_ended(self):
        fast, slow = self.begun("after-the-end", 4)
        late = slow.ask()
        late.suggest_float("x", 0, 1)
        self.run_one(fast, 1, ("x", "y"))
        self.run_one(fast, 2)
        self.assertEqual(UP.wait_ended(fast.sweep)["state"], "completed")
        slow.tell(late, 3)
        self.check("after-the-end", range(4))

    def test_a_program_that_dies_after_it_told(self):
        """It told a trial of a sweep that the study had left, and never followed: who comes to the end carries the result."""
        fast, slow = self.begun("told-and-died", 4)
        late = slow.ask()
        late.suggest_float("x", 0, 1)
        self.run_one(fast, 1, ("x", "y"))
        self.run_one(fast, 2)
        slow._carry = lambda record: None
        slow.tell(late, 3)
        self.assertEqual(slow.sweep, "told-and-died")
        with self.assertRaisesRegex(assay.AssayError, "no more trials"):
            fast.ask()
        self.check("told-and-died", range(4))

    def test_a_program_that_dies_with_a_trial_of_a_sweep_before(self):
        """Its trial goes back to the queue of a sweep that nobody asks any more: who comes to the end runs it."""
        first = self.study("died-with-it")
        first._set_limit(None, 5, None)
        self.run_one(first, 0)
        p = program("""
            study = assay.create_study(study_name="died-with-it", load_if_exists=True, lease=1)
            trial = study.ask()
            trial.suggest_float("x", 0, 1)
            print(trial.number, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        """)
        self.ended(p, -signal.SIGKILL)
        self.run_one(first, 1, ("x", "y"))
        first.optimize(lambda t: t.suggest_float("x", 0, 1) * 0 + 2, total=5)
        chain = self.check("died-with-it", [0, 1, 2, 2, 2])
        self.assertEqual(self.ran(chain), 5)
        self.assertEqual(len(first.trials), 5)

    def test_a_server_that_is_away_while_a_result_is_carried(self):
        fast, slow = self.begun("away", 6)
        late = slow.ask()
        late.suggest_float("x", 0, 1)
        self.run_one(fast, 1, ("x", "y"))
        self.run_one(fast, 2)
        call = slow._http.call

        def away(method, path, *args, **named):
            if "?" in path or path.endswith("/trials"):
                raise assay.Unavailable("the server is away")
            return call(method, path, *args, **named)

        slow._http.call = away
        slow.tell(late, 3)
        slow._http.call = call
        self.run_one(slow, 4)
        self.run_one(fast, 5)
        self.check("away", range(6))

    def test_a_program_that_was_stopped_while_it_moved_the_study(self):
        """Others finish what it began; when it wakes up it must not open again what they have closed."""
        fast, slow = self.begun("stopped", 7)
        self.run_one(fast, 1, ("x", "y"))
        call, stopped, go, errors = fast._http.call, threading.Event(), threading.Event(), []

        def stops(method, path, *args, **named):
            answer = call(method, path, *args, **named)
            if method == "PATCH" and path == "/v1/sweeps/stopped":  # the source is closed, the successor not yet begun
                stopped.set()
                go.wait(PATIENCE_S)
            return answer

        def ask():
            try:
                self.run_one(fast, 6)
            except BaseException as e:
                errors.append(e)
            finally:
                fast._http.close()

        fast._http.call = stops
        thread = threading.Thread(target=ask)
        thread.start()
        self.assertTrue(stopped.wait(PATIENCE_S))
        self.run_one(slow, 2, ("x", "z"))  # finishes the move
        self.run_one(slow, 3)  # and moves on once more
        closed = self.chain("stopped")[1]
        self.assertEqual(UP.sweep(closed)["document"]["limits"]["max_trials"], 1)
        go.set()
        thread.join(PATIENCE_S)
        self.assertEqual((errors, thread.is_alive()), ([], False))
        self.assertEqual(UP.sweep(closed)["document"]["limits"]["max_trials"], 1)
        self.run_one(slow, 4)
        self.run_one(slow, 5)
        chain = self.check("stopped", range(7))
        self.assertEqual(self.ran(chain), 7)

    def test_a_successor_that_was_given_up(self):
        """Nothing was left of the limit when the source was closed: who had followed turns back."""
        fast, slow = self.begun("given-up", 4)
        self.run_one(fast, 1, ("x", "y"))
        held, call = slow.ask(), fast._http.call

        def created(method, path, *args, **named):
            answer = call(method, path, *args, **named)
            if method == "POST" and path.startswith("/v1/sweeps?"):
                self.run_one(others, 2)  # the last place is taken between the creation and the close
                self.assertTrue(slow._follow())
            return answer

        others = self.study("given-up")
        fast._http.call = created
        fast._grow()
        self.assertEqual([s["state"] for s in UP.call("GET", "/v1/sweeps?tag=grew-from=given-up")["items"]], ["cancelled"])
        held.suggest_float("x", 0, 1)
        slow.tell(held, 3)
        with self.assertRaisesRegex(assay.AssayError, "no more trials"):
            slow.ask()
        self.assertEqual(slow.sweep, "given-up")
        self.assertEqual(self.check("given-up", range(4)), ["given-up"])
        self.assertEqual(len(slow.trials), 4)

    def test_a_sweep_in_which_nothing_was_made_is_not_left(self):
        """max_trials cannot be 0: the sweep would still make a trial after it was closed, one more than the study has."""
        fast, slow = self.begun("left-empty", 6)
        late = slow.ask()
        late.suggest_float("x", 0, 1)
        self.run_one(fast, 1, ("x", "y"))
        call = fast._http.call

        def asks(method, path, *args, **named):
            if path == "/v1/sweeps/left-empty-2/suggestions":  # the study has moved on there, and nobody has a trial of it
                fast._http.call = call
                late.suggest_float("z", 0, 1)
                slow.tell(late, 2)
                self.run_one(slow, 3)  # with a name that is missing there
            return call(method, path, *args, **named)

        fast._http.call = asks
        self.run_one(fast, 4)
        self.run_one(slow, 5)
        with self.assertRaisesRegex(assay.AssayError, "no more trials"):
            fast.ask()
        chain = self.check("left-empty", range(6))
        self.assertEqual((len(chain), self.ran(chain)), (3, 6))
        self.assertEqual(set(UP.sweep(chain[-1])["document"]["parameters"]), {"x", "y", "z"})

    def joins(self, name, total, made, moves):
        """A program joins the study, and says that it has `total` trials in all. made: what is to happen before it joins;
        moves: before it changes anything of the sweep name-2."""
        made()
        study = self.study(name)
        call = study._http.call

        def late(method, path, *args, **named):
            if method == "PATCH" and path.startswith(f"/v1/sweeps/{name}-2"):
                study._http.call = call
                moves()
            return call(method, path, *args, **named)

        study._http.call = late
        self.assertTrue(study._set_limit(None, total, None))
        self.assertIsNot(study._http.call, late)
        self.assertEqual(UP.sweep(name + "-2")["document"]["limits"]["max_trials"], 1)  # closed, as it was

    def test_a_program_that_joins_while_the_study_is_moved(self):
        """It finds the new sweep with the limit of the one before, and others have closed the sweep when it says its own."""
        fast, slow = self.begun("joins", 7)
        self.run_one(fast, 1, ("x", "y"))
        call = fast._http.call

        def moves():
            self.run_one(slow, 2, ("x", "z"))  # finishes the move
            self.run_one(slow, 3)  # and moves on once more

        def created(method, path, *args, **named):
            answer = call(method, path, *args, **named)
            if method == "POST" and path.startswith("/v1/sweeps?"):
                fast._http.call = call
                self.joins("joins", 7, lambda: None, moves)
            return answer

        fast._http.call = created
        for value in (4, 5, 6):
            self.run_one(fast, value)
        with self.assertRaisesRegex(assay.AssayError, "no more trials"):
            fast.ask()
        self.assertEqual(self.ran(self.check("joins", range(7))), 7)

    def test_a_program_that_raises_the_limit_while_the_study_moves_on(self):
        fast, slow = self.begun("raises", 7)
        self.run_one(fast, 1, ("x", "y"))

        def moves():
            self.run_one(fast, 3, ("x", "z"))
            self.run_one(fast, 4)

        self.joins("raises", 9, lambda: self.run_one(fast, 2), moves)
        slow.optimize(lambda t: t.suggest_float("x", 0, 1) * 0 + 5, total=9)
        self.assertEqual(self.ran(self.check("raises", [0, 1, 2, 3, 4, 5, 5, 5, 5])), 9)

    def test_a_program_that_wants_no_more_than_there_are(self):
        """The study has moved on to a sweep that has no trial yet."""
        fast, slow = self.begun("enough", 7)
        self.run_one(fast, 1, ("x", "y"))
        fast._grow()
        self.study("enough").optimize(lambda t: self.fail("a third trial"), total=2)
        self.run_one(fast, 2)
        self.assertEqual(self.ran(self.chain("enough")[:1]), 2)

    def test_a_timeout_while_the_study_moves_on(self):
        """The sweep in which nothing was made ends, too."""
        study = assay.create_study(study_name="in-time")
        study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=1)
        call = study._http.call

        def over(method, path, *args, **named):
            answer = call(method, path, *args, **named)
            if args and args[0] == {"state": "running"}:
                study._run.deadline = 0
            return answer

        study._http.call = over
        study.optimize(lambda t: t.suggest_float("x", 0, 1) + t.suggest_float("y", 0, 1), n_trials=5, timeout=PATIENCE_S)
        self.assertEqual([UP.wait_ended(s)["counts"]["running"] for s in ("in-time", "in-time-2")], [0, 0])
        self.assertEqual(len(study.trials), 2)

    def test_programs_with_tokens_of_their_own(self):
        """A result that two of them carry is there once."""
        made = UP.call("POST", "/v1/tokens", {"name": "second", "role": "user"})
        fast, slow = self.begun("tokens", 5)[0], self.study("tokens", token=made["token"])
        late = slow.ask()
        late.suggest_float("x", 0, 1)
        self.run_one(fast, 1, ("x", "y"))
        slow._carry = lambda record: None
        slow.tell(late, 2)
        self.run_one(fast, 3)  # the study moves on with it
        del slow._carry
        self.run_one(slow, 4)
        self.check("tokens", range(5))


class Orders(Case):
    TEXT = """
        import json, random, threading
        seed, kill, n, me = int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
        rng, lock, calls, call = random.Random(f"{seed}/{me}"), threading.Lock(), [0], assay._Http.call
        def delayed(self, method, path, *args, **named):
            with lock:
                calls[0] += 1
                number, before, after = calls[0], rng.random(), rng.random()
            time.sleep(0.3 * before ** 6)
            if number == kill:
                os.kill(os.getpid(), signal.SIGKILL)
            answer = call(self, method, path, *args, **named)
            if number == -kill:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.3 * after ** 6)
            return answer
        assay._Http.call = delayed
        def objective(trial):
            value = trial.suggest_float("x", 0, 1)
            if trial.suggest_categorical("kind", ["a", "b", "c"]) == "a":
                value += trial.suggest_float("left", 0, 1)
            time.sleep(0.5 * rng.random() ** 4)
            return value + sum(trial.suggest_float(f"w{i}", 0, 1) for i in range(trial.suggest_int("n", 0, 3)))
        study = assay.optimize(objective, n_trials=n, name=sys.argv[1], load_if_exists=True, n_jobs=1 + seed % 2, lease=2)
        print(json.dumps([study.sweep, len(study.trials)]))
    """

    def one(self, seed):
        """Two to four programs; one or none of them is killed, before or after one of its requests."""
        name, n, programs = f"order-{seed}", 20, 2 + seed % 3
        kills = [0] * programs
        if seed % 2 == 0:
            kills[0] = (1, -1)[seed // 2 % 2] * (3 + seed * 7 % 60)
        running = [program(self.TEXT, name, str(seed), str(kill), str(n), str(i)) for i, kill in enumerate(kills)]
        found = []
        for p, kill in zip(running, kills):
            out, err = p.communicate(timeout=PATIENCE_S)
            self.assertIn(p.returncode, (0, -signal.SIGKILL) if kill else (0,), (seed, out, err))
            found += [json.loads(out)] if p.returncode == 0 else []
        chain = self.chain(name)
        rows = [r for r in UP.trials(chain[-1]) if r["state"] in ("completed", "failed")]
        keys = [key_of(r) for r in rows]
        self.assertEqual((self.ran(chain), len(rows), len(set(keys))), (n, n, n), (seed, chain, sorted(keys)))
        self.assertEqual({tuple(f) for f in found}, {(chain[-1], n)}, (seed, chain))

    def test_orders_of_seeds(self):
        for seed in range(int(os.environ.get("ASSAY_ORDERS", "6"))):
            with self.subTest(seed=seed):
                self.one(seed)


class Server(Case):
    """What the server promises for it."""

    def test_known_results_of_a_sweep_that_has_completed(self):
        study = assay.optimize(lambda t: 1.0, {"x": (0.0, 1.0)}, 2, name="has-completed")
        last = UP.wait_ended(study.sweep)
        known = {"params": {"x": 0.5}, "metrics": {"value": 0.25}, "key": "elsewhere/1"}
        path = f"/v1/sweeps/{study.sweep}/trials"
        for _ in range(2):
            self.assertEqual(UP.call("POST", path, [known])["numbers"], [2])
        self.assertEqual(UP.call("GET", path + "/2")["suggestion"], {"method": "known", "key": "elsewhere/1"})
        now = UP.sweep(study.sweep)
        self.assertEqual((now["state"], now["finished_at"], now["counts"]["completed"], now["best"]["number"]),
                         ("completed", last["finished_at"], 3, 2))
        for refused in ({"params": {"x": 0.5}}, [known, {"params": {"x": 0.5}, "key": "other"}]):
            with self.assertRaisesRegex(Problem, "takes no more trials"):
                UP.call("POST", path, refused)
        UP.call("PATCH", f"/v1/sweeps/{study.sweep}", {"limits": {"max_trials": 3}})
        study.tell(study.ask(), 2.0)
        self.assertEqual(UP.wait_ended(study.sweep)["counts"]["total"], 4)

    def test_a_change_of_a_sweep_in_one_state(self):
        study = assay.create_study(study_name="in-one-state", space={"x": (0.0, 1.0)})
        study.tell(study.ask(), 1.0)
        path = "/v1/sweeps/in-one-state"
        with self.assertRaisesRegex(Problem, "is running, not paused"):
            UP.call("PATCH", path + "?if_state=paused", {"limits": {"max_trials": 5}})
        self.assertNotEqual(UP.sweep("in-one-state")["document"]["limits"]["max_trials"], 5)
        UP.call("PATCH", path + "?if_state=running", {"limits": {"max_trials": 5}, "state": "paused"})
        self.assertEqual(UP.call("PATCH", path + "?if_state=paused", {"state": "running"})["document"]["limits"]["max_trials"], 5)
        with self.assertRaisesRegex(Problem, "if_state|state"):
            UP.call("PATCH", path + "?if_state=asleep", {"state": "running"})

    def test_a_change_of_a_sweep_with_one_limit(self):
        study = assay.create_study(study_name="with-one-limit", space={"x": (0.0, 1.0)})
        study._limit = 4
        study.tell(study.ask(), 1.0)
        path = "/v1/sweeps/with-one-limit?if_max_trials="
        with self.assertRaisesRegex(Problem, "has max_trials 4, not 5"):
            UP.call("PATCH", path + "5", {"limits": {"max_trials": 6}})
        self.assertEqual(UP.call("PATCH", path + "4", {"limits": {"max_trials": 6}})["document"]["limits"]["max_trials"], 6)
        with self.assertRaisesRegex(Problem, "has max_trials 6, not 4"):  # also for what is no limit
            UP.call("PATCH", path + "4", {"state": "paused"})
        with self.assertRaisesRegex(Problem, "if_max_trials is '0'"):
            UP.call("PATCH", path + "0", {"state": "paused"})
        self.assertEqual(UP.sweep("with-one-limit")["state"], "running")


if __name__ == "__main__":
    unittest.main()
