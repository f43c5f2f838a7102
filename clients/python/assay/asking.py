"""Studies: trials that are asked for, held and told."""
from __future__ import annotations

import atexit
import contextlib
import datetime
import os
import threading
import time
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

from .constants import BEAT_S, JSON
from .constraints import _bounded_constraints, _constraint_metrics, _constraint_values
from .distributions import _distribution
from .errors import AssayError, ResultError, _encodable, _repr
from .messages import _warn
from .own_sampler import BaseSampler, _sampled
from .parameters import _Parameter
from .run import _Run
from .states import _state
from .moving import ENDED, _StudyMoves
from .sweep import _made
from .trial import FrozenTrial, Trial, _json_number, _metric_name


_open_studies: Set[_StudyTrials] = set()  # that hold trials, or gave some back


def _after_fork() -> None:
    """In a child process: the trials are those of its parent, and a lock may be held by a thread that is not here."""
    for study in _open_studies:
        study._lock, study._sampling, study._beating = threading.RLock(), threading.RLock(), None
        for trial in study._held:
            trial._sending = threading.Lock()
        study._held, study._given_back = [], {}
    _open_studies.clear()


def _at_exit() -> None:
    for study in list(_open_studies):
        with contextlib.suppress(Exception):
            study._leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)


class _StudyTrials(_StudyMoves):
    """The part of a Study that holds trials: asks for them, keeps their leases, tells their ends."""

    def _hold(self, trial: Trial) -> Trial:
        with self._lock:
            self._held.append(trial)
            self._take_queued_attrs(trial, {**trial.params, **trial._fixed})
            self._given_back.pop((trial._sweep or "", trial.number), None)
            _open_studies.add(self)
            if self._beating is None or not self._beating.is_alive():
                self._beating = threading.Thread(target=self._beat, name="assay-heartbeat", daemon=True)
                self._beating.start()
        return trial

    def _take_queued_attrs(self, trial: Trial, params: JSON) -> None:
        """Give a trial the attributes of the enqueued configuration that it has."""
        with self._lock:
            for queued in self._queued_attrs:
                if all(params.get(n, trial) == v for n, v in queued[0].items()):
                    trial._unsent_attrs.update(queued[1])
                    trial.user_attrs = {**queued[1], **trial.user_attrs}
                    self._queued_attrs.remove(queued)
                    break

    def _beat(self) -> None:
        """Keep the leases of the trials that run, until none does."""
        pause = threading.Event()
        while True:
            beat = min(BEAT_S, self._lease / 4)
            pause.wait(beat)
            with self._lock:
                held = [t for t in self._held if t._sweep is not None and t._lost is None]
                if not self._held:
                    self._beating = None
                    return
            for trial in held:
                if time.monotonic() - max(trial._begin, trial._sent) >= beat / 2:
                    with contextlib.suppress(AssayError):  # the next one comes soon
                        trial._tell("heartbeat")

    def _next(self, run: Optional[_Run], client: str) -> List[Trial]:
        """Trials to run: the first one with values of our own, or what the server hands out. [] when there are no more."""
        if self._sampler is not None:
            return self._next_of_sampler(self._sampler, run, client)
        while True:
            with self._lock:
                if self.sweep is None and not self._is_explicit and (self._first is None or run is None):
                    fixed = self._waiting.pop(0)[0] if self._waiting and self._waiting[0][1] is None else None
                    self._first = Trial(self, None, None, client, fixed)
                    self._first.number = len(self._held)  # the server's, once it has one
                    return [self._hold(self._first)]
                if self.sweep is None and self._is_explicit:
                    self._begin(None)
                if self.sweep is not None and self._missing:
                    self._grow()
                sweep = self.sweep
            if run is not None and run.is_over():
                return []
            if sweep is None:  # another thread runs the first trial
                time.sleep(0.02)
                continue
            trials, answer = self._hand_out(sweep, run, client)
            if trials:
                return trials
            with self._lock:
                if sweep != self.sweep or (self._shared and self._catch_up()):
                    continue
                if answer["state"] == "paused" and self._shared:
                    self._complete_move(sweep)
                if answer["state"] == "cancelled" and self._shared and self._turn_back(sweep):
                    continue
            if answer["done"]:
                rest, later = self._ask_sources(client, self._wait_ms(run))
                if rest is not None:
                    return [self._hold(Trial(self, t["sweep"], t, client)) for t in rest["items"]]
                if not later:
                    return []
            elif self._holds_all(sweep):
                return []

    def _wait_ms(self, run: Optional[_Run]) -> int:
        """How long an ask waits for a trial. Shorter where another program may move the study on meanwhile, or where this
        one may hold all that is left."""
        longest = 1.0 if self._held and run is None else 2.0 if self._shared and not self._is_explicit else 10.0
        return int(1000 * (longest if run is None else min(longest, max(0.0, run.left()))))

    def _hand_out(self, sweep: str, run: Optional[_Run], client: str) -> Tuple[List[Trial], JSON]:
        """Trials that the server hands out, and its answer."""
        batch = run.batch if run else 1
        try:
            answer = self._request(sweep, client, batch, self._wait_ms(run))
        except Exception:
            raise
        except BaseException:  # Ctrl-C: the server may have handed out what did not arrive
            self._give_back(sweep, client, batch)
            raise
        with self._lock:  # _enqueue learns the number of a trial, and then says what is fixed in it
            trials = [Trial(self, sweep, t, client, self._fixed.get((sweep, t["number"]))) for t in answer["items"]]
        return [self._hold(t) for t in trials], answer

    def _next_of_sampler(self, sampler: BaseSampler, run: Optional[_Run], client: str) -> List[Trial]:
        """A trial with values of the user's sampler. The server gets it when it first reports or ends."""
        with self._lock:
            if self.sweep is None and self._is_explicit:
                self._begin(None)
            if self.sweep is not None and self._missing:
                self._grow()
            made = len(self._own) if self.sweep is None else _made(self._get(self.sweep))
            unknown = sum(t._sweep is None for t in self._held)  # to the server
            if made + unknown >= self._limit and self._shared and self.sweep is not None and self._catch_up():
                return self._next_of_sampler(sampler, run, client)
            if made + unknown >= self._limit or (run is not None and run.is_over()):
                return []
            queued = next((w for w in self._waiting if w[1] is None), None)
            if queued is not None:
                self._waiting.remove(queued)
            trial = Trial(self, None, None, client, queued[0] if queued is not None else None)
            trial.number = made + unknown  # the server's, once it has one
            self._hold(trial)
        try:
            with self._sampling:
                seen = self._frozen(trial, "running", {}, None)
                sampler.before_trial(self, seen)
                trial._relative = sampler.sample_relative(self, seen, sampler.infer_relative_search_space(self, seen))
        except BaseException:
            self._release(trial)
            raise
        return [trial]

    def _draw(self, trial: Trial, p: _Parameter) -> Any:
        """A value that the server did not suggest: of the user's sampler, or a random one."""
        if self._sampler is None:
            return p.draw(self._random)
        return _sampled(self._sampler, self, self._frozen(trial, "running", {}, None), trial._relative, p, _distribution(p))

    def _let_go(self, trial: Trial) -> None:
        with self._lock:
            if trial in self._held:
                self._held.remove(trial)
            if self._first is trial:
                self._first = None
            if not self._held and not self._given_back and not self._unfinished:
                _open_studies.discard(self)

    def _release(self, trial: Trial) -> None:
        """Give a trial back, so that others get it at once."""
        self._let_go(trial)
        if trial._sweep is not None and trial.number >= 0 and trial._process == os.getpid():
            with contextlib.suppress(AssayError):
                if trial._tell("complete", outcome="released") is not None:
                    self._given_back[trial._sweep, trial.number] = trial
                    _open_studies.add(self)

    def _give_back(self, sweep: str, client: str, count: int) -> None:
        """Give back what an ask got whose answer did not arrive."""
        patience, self._http.patience = self._http.patience, 5.0
        try:
            with contextlib.suppress(AssayError):
                for item in self._request(sweep, client, count, 0)["items"]:
                    self._release(Trial(self, sweep, item, client))
        finally:
            self._http.patience = patience

    def _leave(self) -> None:
        """At the end of the program. A sweep that nobody goes on with ends, unless other programs share the study: what an
        exception or stop() ended has no more trials, and those that were given back are cancelled."""
        _open_studies.discard(self)
        if self._connected is None:  # nothing was sent; no server is started here
            return
        self._http.patience = 5.0  # the program does not wait for a server that is away
        for trial in list(self._held):
            self._release(trial)
        if not self._shared:
            if self._maker == os.getpid() and self._unfinished and self.sweep and self._get(self.sweep)["state"] == "running":
                self._make_no_more()
            for sweep, number in self._given_back:
                if self._http.call("GET", f"/v1/sweeps/{sweep}/trials/{number}")["state"] == "queued":
                    self._change(sweep, limits={"max_trials": 1})
                    self._http.call("POST", f"/v1/sweeps/{sweep}/trials/{number}/cancel")
        self._http.close()

    def _finish(self, trial: Trial, state: str, metrics: Dict[str, float], reason: Optional[str] = None) -> FrozenTrial:
        """Tell the server how a trial ended, and keep it. state: completed, failed or pruned; of a trial that early stopping
        pauses the server makes paused of it."""
        if self._sampler is not None:
            ended = self._frozen(trial, state, metrics, reason)
            self._sampler.after_trial(self, ended, _state(state), ended.values if state == "completed" else None)  # type: ignore[arg-type]
        if trial._sweep is None:
            self._begin(trial)
        self._take_queued_attrs(trial, trial.params)
        trial._send()
        row: Optional[JSON] = None
        if trial._lost is None and state == "completed":
            row = trial._tell("complete", metrics={n: _json_number(v) for n, v in metrics.items()})
        elif trial._lost is None and state == "pruned":
            outcome = "paused" if trial._directive.get("action") == "pause" else "pruned"
            why = trial._why_pruned(str(reason or state))
            row = trial._tell("complete", outcome=outcome, reason=_encodable(why)[:2000])
        elif trial._lost is None:
            row = trial._tell("complete", outcome="failed", reason=_encodable(str(reason or state))[:2000])
        if trial._lost is not None:
            state, reason = "cancelled", trial._lost
        elif row is not None and (row["state"] != state or trial._directive):
            state, reason = row["state"], row.get("reason")  # a decision of early stopping stands
        record = self._frozen(trial, state, metrics, reason)
        if trial._lost is not None:
            _warn(f"trial {trial.number}: its result is not used: {trial._lost}")
        with self._lock:  # in one step, so that _grow finds the trial held or its record, never neither
            self._let_go(trial)
            if trial.number < 0 or state not in ENDED or trial._lost is not None:  # it has not ended, or its end is not from here
                return record
            self._own.append(record)
            self._records[record.sweep, record.number] = record
            for name, (p, _) in trial._asked.items():
                if name not in self._space:
                    self._missing[name] = p
            if state in ENDED and (trial._sweep != self.sweep or (trial._is_asked and self._shared)):
                self._carry(record)
        return record

    def _carry(self, record: FrozenTrial) -> None:
        """Let the last sweep of the study have a result that was not measured there. It gets it before the next trial if
        the server is away now."""
        with self._lock:
            if self.sweep is not None:
                with contextlib.suppress(AssayError):
                    self._catch_up()

    def _start_with_results(self) -> None:
        """Begin with a space and with results that did not come from the server."""
        with self._lock:
            self._space.update(self._missing)
            self._missing = {}
            self._infer_conditions(self._own)
            self._bound_constraints(next((r.system_attrs["constraints"] for r in self._own if "constraints" in r.system_attrs), None))
            created = self._post(self._limit, False, True) or {}
            self.sweep = sweep = str(created["id"])
            self._add_results(sweep, self._own)
            self._change(sweep, state="running")

    def _frozen(self, trial: Trial, state: str, metrics: Dict[str, float], reason: Optional[str]) -> FrozenTrial:
        latest: Dict[str, float] = {}
        for step in sorted(trial._steps):
            latest.update(trial._steps[step])
        latest.update(metrics)
        told = metrics if state == "completed" else latest if state == "pruned" else {}
        values = [told.get(name) for name, _ in self.metrics]
        record = FrozenTrial(trial.number, state, trial.params, latest, values, reason, self._is_feasible(latest),
                             None if state == "running" else time.monotonic() - trial._begin, trial.user_attrs, trial._sweep or "")
        record.system_attrs = dict(trial.system_attrs)
        record._given, record._asked = trial._given, dict(trial._asked)
        record._curve = {s: m[self.metrics[0][0]] for s, m in sorted(trial._steps.items()) if self.metrics[0][0] in m}
        record.datetime_start = trial.datetime_start
        record.datetime_complete = None if state == "running" else datetime.datetime.now()
        record._encoded = {name: p.encode(value) for name, (p, value) in trial._asked.items()}
        return record

    def _metrics_of(self, returned: Any) -> Dict[str, float]:
        """What an objective returned, by metric. A TypeError, which is a ValueError too, names what is wrong."""
        names = [name for name, _ in self.metrics]
        if returned is None:
            expected = "a number" if len(names) == 1 else f"{len(names)} numbers: {', '.join(names)}"
            raise ResultError(f"the objective returned None, expected {expected}", True)
        if isinstance(returned, Mapping):
            given = dict(returned)
        elif len(names) == 1 and not isinstance(returned, (tuple, list)):
            given = {names[0]: returned}
        elif isinstance(returned, (tuple, list)) and len(returned) == len(names):
            given = dict(zip(names, returned))
        else:
            raise ResultError(f"the objective returned {_repr(returned)}, expected {len(names)} numbers: {', '.join(names)}"[:500])
        for name in names:
            if name not in given:
                raise ResultError(f"the objective returned no value of {name}; found {', '.join(map(_repr, given))}"[:500])
        names = [_metric_name(name) for name in given]
        try:
            return dict(zip(names, map(float, given.values())))
        except (TypeError, ValueError, OverflowError):
            raise ResultError(f"the objective returned {_repr(returned)}, expected a number"[:500]) from None

    def _constrained(self, trial: Trial, state: str, metrics: Dict[str, float]) -> Dict[str, float]:
        """The metrics of a trial with what the constraints_func says of it. ValueError: it returned something else."""
        if self._constraints_func is None:
            return metrics
        values = _constraint_values(self._constraints_func(self._frozen(trial, state, metrics, None)))
        wanted = _bounded_constraints(self._options)[1]
        if wanted and wanted != len(values):
            raise ValueError(f"constraints_func returned {len(values)} values, expected {wanted} as of the first trial")
        trial.system_attrs["constraints"] = values
        return {**metrics, **_constraint_metrics(values)} if state == "completed" else metrics
