"""Studies: the loop of ask and tell, trials that wait, and results that are known."""
from __future__ import annotations

from typing import Any, Iterable, List, Mapping, Optional, Union, cast

from .asking import _StudyTrials
from .constants import JSON
from .constraints import _bounded_constraints, _constraint_metrics, _constraint_values
from .errors import AssayError, _repr
from .parameters import _of_space
from .states import TrialState, _state
from .trial import FrozenTrial, Trial, _client_name


class _StudyLoop(_StudyTrials):
    """The part of a Study that gives and takes single trials."""

    def _unknown(self, known: int) -> List[FrozenTrial]:
        found = [self._frozen(t, "running", {}, None) for t in self._held if t._sweep is None]
        for params, result, _ in self._waiting:
            metrics = (result or {}).get("metrics", {})
            state = "queued" if result is None else "completed" if metrics else "failed"
            found.append(FrozenTrial(known + len(found), state, params, metrics, [metrics.get(name) for name, _ in self.metrics]))
        return found

    def _enqueue_waiting(self) -> None:
        """Let the sweep have the configurations that it had no room for."""
        while self._waiting and self._sampler is None and self._enqueued(*self._waiting[0][:2]):
            self._waiting.pop(0)

    def _enqueued(self, params: JSON, result: Optional[JSON]) -> bool:
        """False: the sweep has no room."""
        try:
            self._enqueue(params, result)
        except AssayError as e:
            if e.status != 409:
                raise
            return False
        return True

    def ask(self, fixed_distributions: Optional[Mapping[str, Any]] = None) -> Trial:
        """A trial to run in a loop of your own; tell() its result. AssayError when there are no more.
        fixed_distributions: entries of a space; the trial suggests all of them at once."""
        trials = self._next(None, _client_name())
        if not trials:
            raise AssayError(f"the study {self.name} has no more trials" + (": tell those that it gave" if self._held else ""))
        trials[0]._is_asked = True
        for name, entry in (fixed_distributions or {}).items():
            trials[0]._suggest(_of_space(name, entry))
        return trials[0]

    def tell(self, trial: Union[Trial, int], values: Any = None, state: Any = None, reason: Optional[str] = None,
             skip_if_finished: bool = False) -> FrozenTrial:
        """The end of a trial that ask() gave, or of its number. values: as an objective returns them. state: completed,
        failed or pruned, by these words or those of TrialState; None: completed with values, failed without."""
        ended = _state(state) if state is not None else TrialState.FAIL if values is None else TrialState.COMPLETE
        if ended not in (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED):
            raise ValueError(f"state: found {state!r}, expected completed, failed or pruned")
        if (ended == TrialState.COMPLETE) != (values is not None):
            raise ValueError(f"values: found {_repr(values)[:200]}, expected " +
                             ("those of a completed trial" if values is None else f"none of a trial that is {ended}"))
        held = [t for t in self._held if t is trial or (isinstance(trial, int) and t.number == trial)]
        number = trial if isinstance(trial, int) else trial.number
        if not held and (skip_if_finished or isinstance(trial, int)):
            for record in self.trials if skip_if_finished else []:
                if record.number == number and record.state.is_finished():
                    return record
            raise ValueError(f"trial {number}: it was not asked for here, or it has ended")
        told = held[0] if held else cast(Trial, trial)
        before = None if held else self._records.get((told._sweep or "", told.number))
        if before is not None:
            raise ValueError(f"trial {number}: it has ended, as {before.state}")
        metrics = self._metrics_of(values) if ended == TrialState.COMPLETE else {}
        if ended != TrialState.FAIL:
            metrics = self._constrained(told, str(ended), metrics)
        return self._finish(told, str(ended), metrics, reason)

    def enqueue_trial(self, params: Mapping[str, Any], user_attrs: Optional[Mapping[str, Any]] = None,
                      skip_if_exists: bool = False) -> None:
        """Run this configuration next, before new suggestions; it counts towards n_trials. Parameters that are missing
        are drawn where the space comes from trials, and otherwise an error names them. user_attrs: of the trial that runs
        it here. skip_if_exists: not if a trial of the study, or one that waits, has these params."""
        if skip_if_exists and (any(t.params == params for t in self.trials) or any(p == params for p, _, _ in self._waiting)):
            return
        with self._lock:
            if user_attrs:
                self._queued_attrs.append((dict(params), dict(user_attrs)))
            if self.sweep is None or self._sampler is not None:
                self._waiting.append((dict(params), None, False))
            elif not self._enqueued(dict(params), None):  # all of its trials are made: the next call of optimize() has more
                self._waiting.append((dict(params), None, False))

    def add_trials(self, trials: Iterable[FrozenTrial]) -> None:
        """add_trial() of each."""
        for trial in trials:
            self.add_trial(trial)

    def add_trial(self, params: Union[Mapping[str, Any], FrozenTrial], values: Any = None, state: str = "completed") -> None:
        """Add a known result, from which the search learns; it does not count towards n_trials. values: as an
        objective returns them; state failed has none. Or a trial, such as one of another study or of create_trial(): the
        search learns from those that are completed or failed, and others are left out."""
        constraints = None
        if isinstance(params, FrozenTrial):
            if params.state not in (TrialState.COMPLETE, TrialState.FAIL):
                return
            constraints, state = params.system_attrs.get("constraints"), str(params.state)
            given = params.values or []
            values = None if state != "completed" else list(given) if len(given) > 1 else params.value
            params = params.params
        metrics = self._metrics_of(values) if state == "completed" else {}
        if metrics and constraints is not None and (self._constraints_func is not None or _bounded_constraints(self._options)[0]):
            metrics.update(_constraint_metrics(_constraint_values(constraints)))
        result: JSON = {"metrics": metrics} if metrics else {"state": "failed"}
        with self._lock:
            if self.sweep is None:
                self._waiting.append((dict(params), result, False))
            else:
                self._enqueue(dict(params), result)
