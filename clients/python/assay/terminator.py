"""Optuna's terminators: a study stops when what it can still gain is less than the error of its values. What it can still
gain is the service's bound (GET /v1/sweeps/{sweep}/regret); `limits={"stop_when": …}` has the service itself compare it, with
a number that you give, for all programs that share the study."""
from __future__ import annotations

import math
import time
from typing import Any, List, Optional, Sequence

from .errors import _repr
from .messages import _say
from .states import StudyDirection, TrialState
from .trial import FrozenTrial

CV_SCORES = "terminator:cv_scores"  # a user attribute of trials
BOUND_WAIT_S = 30.0  # for a bound that knows the last trial


def report_cross_validation_scores(trial: Any, scores: Sequence[float]) -> None:
    """Keep the scores of the folds with a trial, for CrossValidationErrorEvaluator."""
    if len(scores) < 2:
        raise ValueError(f"scores: found {len(scores)}, expected those of two folds or more")
    trial.set_user_attr(CV_SCORES, [float(s) for s in scores])


class BaseImprovementEvaluator:
    """The base of what says how much better the best value may still become."""

    def evaluate(self, trials: List[FrozenTrial], study_direction: StudyDirection) -> float:
        raise NotImplementedError

    def _of_study(self, study: Any, trials: List[FrozenTrial]) -> float:
        return self.evaluate(trials, study.direction)


class BaseErrorEvaluator:
    """The base of what says how exact the best value is."""

    def evaluate(self, trials: List[FrozenTrial], study_direction: StudyDirection) -> float:
        raise NotImplementedError


class RegretBoundEvaluator(BaseImprovementEvaluator):
    """The service's bound of what is left to gain; infinity while it has none. Its arguments have no effect, and it needs the
    study: a Terminator asks it, evaluate() cannot."""

    def __init__(self, *ignored: Any, **also_ignored: Any) -> None:
        pass

    def _of_study(self, study: Any, trials: List[FrozenTrial]) -> float:
        until = time.monotonic() + BOUND_WAIT_S
        while True:
            found = study._http.call("GET", f"/v1/sweeps/{study.sweep}/regret")
            if not found["stale"] or time.monotonic() > until:
                break
            time.sleep(0.05)
        return float(found["bound"]) if found["enough"] and found["bound"] is not None else math.inf

    def evaluate(self, trials: List[FrozenTrial], study_direction: StudyDirection) -> float:
        raise TypeError("RegretBoundEvaluator: the bound is the service's, of a study: give this to a Terminator")


class BestValueStagnationEvaluator(BaseImprovementEvaluator):
    """How many more trials may pass without a better value; below 0 when there were more than max_stagnation_trials."""

    def __init__(self, max_stagnation_trials: int = 30) -> None:
        if max_stagnation_trials < 0:
            raise ValueError(f"max_stagnation_trials: found {_repr(max_stagnation_trials)[:100]}, expected a number from 0")
        self._most = max_stagnation_trials

    def evaluate(self, trials: List[FrozenTrial], study_direction: StudyDirection) -> float:
        values = [t.value for t in trials if t.state == TrialState.COMPLETE and t.value is not None]
        if not values:
            raise ValueError("no trial is completed")
        best = max(values) if study_direction == StudyDirection.MAXIMIZE else min(values)
        return float(self._most - (len(values) - 1 - values.index(best)))


class CrossValidationErrorEvaluator(BaseErrorEvaluator):
    """The standard error of the best trial's value, by the scores of its folds (report_cross_validation_scores(); Nadeau
    and Bengio 2003, as Optuna scales it)."""

    def evaluate(self, trials: List[FrozenTrial], study_direction: StudyDirection) -> float:
        done = [t for t in trials if t.state == TrialState.COMPLETE and t.value is not None]
        if not done:
            raise ValueError("no trial is completed")
        sign = -1.0 if study_direction == StudyDirection.MAXIMIZE else 1.0
        best = min(done, key=lambda t: sign * float(t.value or 0))
        scores = best.user_attrs.get(CV_SCORES)
        if scores is None:
            raise ValueError(f"trial {best.number} has no scores of folds: call report_cross_validation_scores() in the objective")
        n, mean = len(scores), sum(scores) / len(scores)
        return math.sqrt((1 / n + 1 / (n - 1)) * sum((s - mean) ** 2 for s in scores) / n)


class StaticErrorEvaluator(BaseErrorEvaluator):
    """A number that you know."""

    def __init__(self, constant: float) -> None:
        self._constant = float(constant)

    def evaluate(self, trials: List[FrozenTrial], study_direction: StudyDirection) -> float:
        return self._constant


class BaseTerminator:
    """The base of what says whether a study should stop."""

    def should_terminate(self, study: Any) -> bool:
        raise NotImplementedError


class Terminator(BaseTerminator):
    """Stops a study of at least min_n_trials completed trials when the improvement is below the error."""

    def __init__(self, improvement_evaluator: Any = None, error_evaluator: Any = None, min_n_trials: int = 20) -> None:
        if min_n_trials <= 0:
            raise ValueError(f"min_n_trials: found {_repr(min_n_trials)[:100]}, expected a number from 1")
        self._improvement = improvement_evaluator or RegretBoundEvaluator()
        stagnates = isinstance(self._improvement, BestValueStagnationEvaluator)
        self._error = error_evaluator or (StaticErrorEvaluator(0) if stagnates else CrossValidationErrorEvaluator())
        self._least = min_n_trials

    def should_terminate(self, study: Any) -> bool:
        trials = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
        if len(trials) < self._least:
            return False
        improvement = self._improvement
        left: float = improvement._of_study(study, trials) if isinstance(improvement, BaseImprovementEvaluator) else \
            improvement.evaluate(trials, study.direction)
        return bool(left < self._error.evaluate(trials, study.direction))


class TerminatorCallback:
    """For optimize(callbacks=[…]): stops the study when its terminator says so."""

    def __init__(self, terminator: Optional[BaseTerminator] = None) -> None:
        self._terminator = terminator or Terminator()

    def __call__(self, study: Any, trial: FrozenTrial) -> None:
        if trial.state == TrialState.COMPLETE and self._terminator.should_terminate(study):
            _say("the study is stopped by its terminator")
            study.stop()
