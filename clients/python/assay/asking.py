"""Studies: trials that are asked for, held and told."""
from __future__ import annotations

import contextlib
import threading
import time
from typing import Any, Dict, List, Mapping, Optional

from .constants import BEAT_S, JSON
from .errors import AssayError
from .run import _Run
from .sweep import _StudySweep
from .trial import FrozenTrial, Trial, _client_name, _json_number


class _StudyTrials(_StudySweep):
    """The part of a Study that holds trials: asks for them, keeps their leases, tells their ends."""

    def _hold(self, trial: Trial) -> Trial:
        with self._lock:
            self._held.append(trial)
            if self._beating is None or not self._beating.is_alive():
                self._beating = threading.Thread(target=self._beat, name="assay-heartbeat", daemon=True)
                self._beating.start()
        return trial

    def _beat(self) -> None:
        """Keep the leases of the trials that run, until none does."""
        pause = threading.Event()
        while True:
            pause.wait(BEAT_S)
            with self._lock:
                held = [t for t in self._held if t._sweep is not None and t._lost is None]
                if not self._held:
                    self._beating = None
                    return
            for trial in held:
                if time.monotonic() - max(trial._begin, trial._sent) >= BEAT_S / 2:
                    with contextlib.suppress(AssayError):  # the next one comes soon
                        trial._tell("heartbeat")

    def _next(self, run: Optional[_Run], client: str) -> List[Trial]:
        """Trials to run: the first one with values of our own, or what the server hands out. [] when there are no more."""
        while True:
            with self._lock:
                if self.sweep is None and not self._is_explicit and self._first is None:
                    fixed = self._waiting.pop(0)[0] if self._waiting and self._waiting[0][1] is None else None
                    self._first = Trial(self, None, None, client, fixed)
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
            wait = 10.0 if run is None else min(10.0, max(0.0, run.left()))
            answer = self._request(sweep, client, run.batch if run else 1, int(wait * 1000))
            with self._lock:  # _enqueue learns the number of a trial, and then says what is fixed in it
                trials = [Trial(self, sweep, t, client, self._fixed.get((sweep, t["number"]))) for t in answer["items"]]
            if trials:
                return [self._hold(t) for t in trials]
            with self._lock:
                if answer["done"] and sweep == self.sweep:
                    return []

    def _let_go(self, trial: Trial) -> None:
        with self._lock:
            if trial in self._held:
                self._held.remove(trial)
            if self._first is trial:
                self._first = None

    def _release(self, trial: Trial) -> None:
        """Give a trial back, so that others get it at once."""
        self._let_go(trial)
        if trial._sweep is not None:
            with contextlib.suppress(AssayError):
                trial._tell("complete", outcome="released")

    def _finish(self, trial: Trial, state: str, metrics: Dict[str, float], reason: Optional[str] = None) -> FrozenTrial:
        """Tell the server how a trial ended, and keep it. state: completed, failed or pruned."""
        if trial._sweep is None:
            self._begin(trial)
        trial._send()
        row: Optional[JSON] = None
        if trial._lost is None and state == "completed":
            row = trial._tell("complete", metrics={n: _json_number(v) for n, v in metrics.items()})
        elif trial._lost is None:
            row = trial._tell("complete", outcome="failed", reason=(reason or state)[:2000])
        if trial._lost is not None:
            state, reason = "cancelled", trial._lost
        elif row is not None and state == "completed" and row["state"] != "completed":
            state, reason = row["state"], row.get("reason")
        record = self._frozen(trial, state, metrics, reason)
        with self._lock:  # in one step, so that _grow finds the trial held or its record, never neither
            self._let_go(trial)
            self._own.append(record)
            self._records[record.sweep, record.number] = record
            for name, (p, _) in trial._asked.items():
                if name not in self._space:
                    self._missing[name] = p
            if trial._sweep != self.sweep and state != "cancelled":
                self._carry(record)
        return record

    def _carry(self, record: FrozenTrial) -> None:
        """Tell the sweep that the study has now of a trial that was not run there."""
        with self._lock:
            if self.sweep is not None and not self._missing:  # otherwise it goes into the next sweep with all others
                with contextlib.suppress(AssayError):  # the sweep has ended meanwhile
                    row = self._known_row(record)
                    self._records[self.sweep, self._add(row.pop("params"), row)] = record

    def _start_with_results(self) -> None:
        """Begin with a space and with results that did not come from the server."""
        with self._lock:
            self._space.update(self._missing)
            self._missing = {}
            self._infer_conditions(self._own)
            self._create(self._limit, self._own, True)
            self._resume()

    def _frozen(self, trial: Trial, state: str, metrics: Dict[str, float], reason: Optional[str]) -> FrozenTrial:
        latest: Dict[str, float] = {}
        for step in sorted(trial._steps):
            latest.update(trial._steps[step])
        latest.update(metrics)
        values = [metrics.get(name) for name, _ in self.metrics] if state == "completed" else [None for _ in self.metrics]
        record = FrozenTrial(trial.number, state, trial.params, latest, values, reason, self._is_feasible(latest),
                             time.monotonic() - trial._begin, trial.user_attrs, trial._sweep or "")
        record._given = trial._given
        record._encoded = {name: p.encode(value) for name, (p, value) in trial._asked.items()}
        return record

    def _metrics_of(self, returned: Any) -> Dict[str, float]:
        """What an objective returned, by metric. TypeError and ValueError name what is wrong."""
        names = [name for name, _ in self.metrics]
        if isinstance(returned, Mapping):
            given = dict(returned)
        elif len(names) == 1 and not isinstance(returned, (tuple, list)):
            given = {names[0]: returned}
        elif isinstance(returned, (tuple, list)) and len(returned) == len(names):
            given = dict(zip(names, returned))
        else:
            raise TypeError(f"the objective returned {returned!r}, expected {len(names)} numbers: {', '.join(names)}"[:500])
        for name in names:
            if name not in given:
                raise ValueError(f"the objective returned no value of {name}; found {', '.join(map(str, given))}"[:500])
        try:
            return {str(name): float(value) for name, value in given.items()}
        except (TypeError, ValueError):
            raise TypeError(f"the objective returned {returned!r}, expected a number"[:500]) from None

    def ask(self) -> Trial:
        """A trial to run in a loop of your own; tell() its result. AssayError when there are no more."""
        trials = self._next(None, _client_name())
        if not trials:
            raise AssayError(f"the study {self.name} has ended: it has no more trials")
        return trials[0]

    def tell(self, trial: Trial, values: Any = None, state: str = "completed", reason: Optional[str] = None) -> FrozenTrial:
        """The end of a trial that ask() gave. values: as an objective returns them. state: completed, failed, pruned."""
        if state not in ("completed", "failed", "pruned"):
            raise ValueError(f"state: found {state!r}, expected completed, failed or pruned")
        return self._finish(trial, state, self._metrics_of(values) if state == "completed" else {}, reason)

    def enqueue_trial(self, params: Mapping[str, Any]) -> None:
        """Run this configuration next, before new suggestions; it counts towards n_trials. Parameters that are missing
        are drawn where the space comes from trials, and otherwise an error names them."""
        with self._lock:
            if self.sweep is None:
                self._waiting.append((dict(params), None))
            else:
                self._enqueue(dict(params), None)

    def add_trial(self, params: Mapping[str, Any], values: Any = None, state: str = "completed") -> None:
        """Add a known result, from which the search learns; it does not count towards n_trials. values: as an
        objective returns them; state failed has none."""
        result: JSON = {"metrics": self._metrics_of(values)} if state == "completed" else {"state": "failed"}
        with self._lock:
            if self.sweep is None:
                self._waiting.append((dict(params), result))
            else:
                self._enqueue(dict(params), result)
