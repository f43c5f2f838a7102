"""Optuna: its studies with the search of Assay. One line of a script changes: sampler=assay.AssaySampler()."""
from __future__ import annotations

import atexit
import threading
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from .constants import JSON
from .constraints import ConstraintsFunc, _constraint_metrics, _constraint_values
from .create import create_study
from .parameters import _of_space, _Parameter
from .study import Study
from .trial import FrozenTrial, Trial, _client_name


class _OptunaLink:
    """What the sampler does, without Optuna's classes. The first trial, and names that no trial had suggested before,
    are drawn by Optuna; all else comes from a Study of this file, whose trials end when Optuna's do."""

    def __init__(self, make: Callable[[Any], Study]) -> None:
        self._make = make
        self._study: Optional[Study] = None
        self._lock = threading.RLock()
        self._running: Dict[int, Trial] = {}
        self._distributions: Dict[str, Any] = {}

    def space(self, optuna_study: Any) -> Dict[str, Any]:
        with self._lock:
            if self._study is None:
                self._study = self._make(optuna_study)
                atexit.register(self.close)
                past = [t for t in optuna_study.get_trials(deepcopy=False) if t.state.name == "COMPLETE" and t.params]
                for t in past:
                    self._remember(t, "completed", t.values, t.system_attrs.get("constraints"))
            return {n: d for n, d in self._distributions.items() if not d.single()}

    def _remember(self, theirs: Any, state: str, values: Any, constraints: Optional[Sequence[float]]) -> FrozenTrial:
        """A trial of Optuna's whose values we did not suggest: a known result."""
        assert self._study is not None
        trial = Trial(self._study, None, None, "")
        trial.number = theirs.number
        trial._asked = self._asked(theirs)
        metrics = self._metrics(trial, values, constraints) if state == "completed" else {}
        record = self._study._frozen(trial, state, metrics, None if metrics else state)
        with self._study._lock:
            self._study._own.append(record)
            for name, (p, _) in trial._asked.items():
                if name not in self._study._space:
                    self._study._missing[name] = p
        self._distributions.update(theirs.distributions)
        return record

    def _metrics(self, trial: Trial, values: Any, constraints: Optional[Sequence[float]]) -> Dict[str, float]:
        assert self._study is not None
        metrics = self._study._metrics_of(list(values))
        if self._study._constraints_func is None or constraints is None:
            return metrics
        trial.system_attrs["constraints"] = list(constraints)
        return {**metrics, **_constraint_metrics(constraints)}

    def _asked(self, theirs: Any) -> Dict[str, Tuple[_Parameter, Any]]:
        return {n: (_of_space(n, theirs.distributions[n]), v) for n, v in theirs.params.items()}

    def sample(self, theirs: Any) -> JSON:
        with self._lock:
            study = self._study
            if study is None or not self._distributions or "fixed_params" in theirs.system_attrs:
                return {}
            if study.sweep is None:
                study._start_with_results()
        trials = study._next(None, _client_name())
        if not trials:
            return {}
        self._running[theirs._trial_id] = trials[0]
        return {n: study._space[n].decode(v) for n, v in trials[0]._given.items() if n in self._distributions}

    def after(self, theirs: Any, state: str, values: Any, constraints: Optional[Sequence[float]] = None) -> None:
        study, trial = self._study, self._running.pop(theirs._trial_id, None)
        if study is None or (trial is None and not theirs.params):
            return
        ended = {"COMPLETE": "completed", "PRUNED": "pruned"}.get(state, "failed")
        if trial is None:
            with self._lock, study._lock:  # in one step: a space that grows between the two would carry it as well
                study._carry(self._remember(theirs, ended, values, constraints))
            return
        trial._asked = self._asked(theirs)
        trial._steps = trial._unsent = {s: {study.metrics[0][0]: float(v)} for s, v in theirs.intermediate_values.items()}
        moved = [n for n, (p, v) in trial._asked.items() if n in trial._given and p.encode(v) != trial._given[n]]
        self._distributions.update(theirs.distributions)
        if moved:
            study._finish(trial, "failed", {}, f"parameter '{moved[0]}': the objective used another value than the suggested one")
        elif ended == "completed":
            study._finish(trial, ended, self._metrics(trial, values, constraints))
        else:
            study._finish(trial, ended, {}, "pruned by Optuna" if ended == "pruned" else "the objective failed")

    def close(self) -> None:
        """The sweep has all the trials it will have; the next trial of Optuna's begins another one."""
        atexit.unregister(self.close)
        with self._lock:
            study, self._study = self._study, None
            running, self._running, self._distributions = self._running, {}, {}
        if study is not None:
            study._http.patience = 5.0  # the program is about to end: it does not wait for a server that is away
            for trial in running.values():
                study._release(trial)
            study._end_here()
            study._http.close()


def AssaySampler(*, study_name: Optional[str] = None, method: str = "gp", seed: Optional[int] = None,
                 constraints_func: Optional[ConstraintsFunc] = None, server: Optional[str] = None, profile: Optional[str] = None,
                 token: Optional[str] = None, start: bool = True) -> Any:
    """A sampler for Optuna whose suggestions are those of Assay: optuna.create_study(sampler=assay.AssaySampler()).
    Also for several objectives; trials that the study has already become known results. The arguments are those of
    create_study(); constraints_func gets Optuna's trial. A trial that Optuna prunes is pruned in the sweep too."""
    import optuna  # type: ignore[import]

    def make(study: Any) -> Study:
        goals = [d.name.lower() for d in study.directions]
        names = getattr(study, "metric_names", None)
        return create_study(study_name=study_name or study.study_name, directions=goals, metric=names, method=method, seed=seed,
                            constraints_func=constraints_func, server=server, profile=profile, token=token, start=start)

    link = _OptunaLink(make)
    independent = optuna.samplers.RandomSampler(seed=seed)

    class Sampler(optuna.samplers.BaseSampler):  # type: ignore[misc]
        def infer_relative_search_space(self, study: Any, trial: Any) -> JSON:
            return link.space(study)

        def sample_relative(self, study: Any, trial: Any, search_space: JSON) -> JSON:
            return link.sample(trial)

        def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
            return independent.sample_independent(study, trial, param_name, param_distribution)

        def after_trial(self, study: Any, trial: Any, state: Any, values: Any) -> None:
            constraints = None
            if constraints_func is not None and state.name in ("COMPLETE", "PRUNED"):
                try:
                    constraints = _constraint_values(constraints_func(trial))
                except Exception:
                    link.after(trial, "FAIL", None)
                    raise
                study._storage.set_trial_system_attr(trial._trial_id, "constraints", tuple(constraints))
            link.after(trial, state.name, values, constraints)

        def reseed_rng(self) -> None:
            independent.reseed_rng()

        def close(self) -> None:
            """End the sweep now; it ends with the program otherwise."""
            link.close()

    return Sampler()
