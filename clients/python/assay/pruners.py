"""Pruners by Optuna's names, for create_study(pruner=…). A study with one asks it in trial.should_prune(), in this process:
it compares what the trial reported of the first objective with what other trials of the study reported, those of other
programs too. Rules as Optuna documents them. HyperbandPruner with the steps of a full trial is the early_stopping of the
sweep instead, which the service decides."""
from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Tuple, Union

from .constants import JSON
from .errors import _repr
from .states import StudyDirection, TrialState
from .trial import FrozenTrial


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name}: found {_repr(value)[:100]}, expected a whole number from {least}")
    return value


def _goal(study: Any) -> float:
    """1 where values are minimised, else -1: what it is multiplied with is better when it is smaller."""
    return 1.0 if study.directions[0] == StudyDirection.MINIMIZE else -1.0


def _least(values: List[float]) -> float:
    """The smallest number; NaN when there is none."""
    return min((v for v in values if v == v), default=math.nan)


def _percentile(values: List[float], percent: float) -> float:
    """With linear interpolation between neighbours; of what is no NaN. NaN when there is nothing."""
    known = sorted(v for v in values if v == v)
    if not known:
        return math.nan
    place = (len(known) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(known) - 1)
    return known[low] if place == low else known[low] + (known[high] - known[low]) * (place - low)


class BasePruner:
    """The base of pruners."""

    def prune(self, study: Any, trial: FrozenTrial) -> bool:
        """Should the trial stop, by its intermediate_values?"""
        raise NotImplementedError

    def _early_stopping(self) -> Optional[JSON]:
        """The field of the sweep document that takes its place; None: it is asked here."""
        return None


class NopPruner(BasePruner):
    """Stops no trial."""

    def prune(self, study: Any, trial: FrozenTrial) -> bool:
        return False


def _is_due(trial: FrozenTrial, n_warmup_steps: int, interval_steps: int) -> bool:
    """Is its last report the first one since a step at which it is compared? These are interval_steps apart, from
    n_warmup_steps on."""
    steps = sorted(trial.intermediate_values)
    if not steps or steps[-1] < n_warmup_steps:
        return False
    due = (steps[-1] - n_warmup_steps) // interval_steps * interval_steps + n_warmup_steps
    return len(steps) == 1 or steps[-2] < due


class PercentilePruner(BasePruner):
    """Stops a trial whose best value so far is not among the best `percentile` percent of what completed trials reported
    at its last step.

    n_startup_trials: so many have to be completed first. n_warmup_steps, interval_steps: when a trial is compared.
    n_min_trials: so many completed trials have to have reported at the step."""

    def __init__(self, percentile: float, n_startup_trials: int = 5, n_warmup_steps: int = 0, interval_steps: int = 1, *,
                 n_min_trials: int = 1) -> None:
        if not 0 <= percentile <= 100:
            raise ValueError(f"percentile: found {_repr(percentile)[:100]}, expected a number from 0 to 100")
        self._percentile, self._startup = percentile, _whole("n_startup_trials", n_startup_trials, 0)
        self._warmup, self._interval = _whole("n_warmup_steps", n_warmup_steps, 0), _whole("interval_steps", interval_steps, 1)
        self._least_trials = _whole("n_min_trials", n_min_trials, 1)

    def prune(self, study: Any, trial: FrozenTrial) -> bool:
        if not _is_due(trial, self._warmup, self._interval):
            return False
        step, goal = trial.last_step, _goal(study)
        completed = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
        if not completed or len(completed) < self._startup:
            return False
        mine = _least([goal * v for v in trial.intermediate_values.values()])
        others = [goal * t.intermediate_values[step] for t in completed if step in t.intermediate_values]
        if mine != mine:  # NaN is worst
            return True
        return len(others) >= self._least_trials and mine > _percentile(others, self._percentile)


class MedianPruner(PercentilePruner):
    """Stops a trial whose best value so far is worse than the median of what completed trials reported at its last step."""

    def __init__(self, n_startup_trials: int = 5, n_warmup_steps: int = 0, interval_steps: int = 1, *, n_min_trials: int = 1) -> None:
        super().__init__(50.0, n_startup_trials, n_warmup_steps, interval_steps, n_min_trials=n_min_trials)


class ThresholdPruner(BasePruner):
    """Stops a trial whose last value is below `lower`, above `upper`, or NaN."""

    def __init__(self, lower: Optional[float] = None, upper: Optional[float] = None, n_warmup_steps: int = 0,
                 interval_steps: int = 1) -> None:
        if lower is None and upper is None:
            raise TypeError("ThresholdPruner: found neither lower nor upper, expected one of them or both")
        self._lower, self._upper = -math.inf if lower is None else float(lower), math.inf if upper is None else float(upper)
        if self._lower > self._upper:
            raise ValueError(f"lower: found {lower}, expected at most upper, which is {upper}")
        self._warmup, self._interval = _whole("n_warmup_steps", n_warmup_steps, 0), _whole("interval_steps", interval_steps, 1)

    def prune(self, study: Any, trial: FrozenTrial) -> bool:
        if not _is_due(trial, self._warmup, self._interval):
            return False
        return not self._lower <= trial.intermediate_values[max(trial.intermediate_values)] <= self._upper


class PatientPruner(BasePruner):
    """Stops a trial that has not gained min_delta in its last `patience` steps, if `wrapped_pruner` stops it too; None: if
    it has not gained."""

    def __init__(self, wrapped_pruner: Optional[BasePruner], patience: int, min_delta: float = 0.0) -> None:
        if wrapped_pruner is not None and not isinstance(wrapped_pruner, BasePruner):
            raise TypeError(f"wrapped_pruner: found {_repr(wrapped_pruner)[:100]}, expected a pruner or None")
        if not min_delta >= 0:
            raise ValueError(f"min_delta: found {_repr(min_delta)[:100]}, expected a number from 0")
        self._wrapped, self._patience, self._delta = wrapped_pruner, _whole("patience", patience, 0), min_delta

    def prune(self, study: Any, trial: FrozenTrial) -> bool:
        goal = _goal(study)
        values = [goal * v for _, v in sorted(trial.intermediate_values.items())]
        if len(values) <= self._patience + 1:
            return False
        before, since = _least(values[:-self._patience - 1]), _least(values[-self._patience - 1:])
        if before + self._delta < since or since != since:
            return self._wrapped is None or self._wrapped.prune(study, trial)
        return False


def _signed_ranks(differences: List[float]) -> Tuple[float, List[float]]:
    """Wilcoxon's sum of the ranks of what is above 0, and all ranks; of equal distances from 0 the mean. The ranks of
    zeros count half."""
    order = sorted(range(len(differences)), key=lambda i: abs(differences[i]))
    ranks = [0.0] * len(differences)
    first = 0
    while first < len(order):
        last = first
        while last + 1 < len(order) and abs(differences[order[last + 1]]) == abs(differences[order[first]]):
            last += 1
        for k in range(first, last + 1):
            ranks[order[k]] = (first + last) / 2 + 1
        first = last + 1
    return sum(r if d > 0 else r / 2 for d, r in zip(differences, ranks) if d >= 0), ranks


def _chance_of_more(differences: List[float]) -> float:
    """The p value of Wilcoxon's signed-rank test that what is above 0 outweighs: exact for at most 50 numbers without ties
    and zeros, else by the normal distribution."""
    n = len(differences)
    above, ranks = _signed_ranks(differences)
    if n <= 50 and len(set(ranks)) == n and 0 not in differences:
        ways = [1] + [0] * (n * (n + 1) // 2)  # to make a sum of some of the ranks 1 to n
        for rank in range(1, n + 1):
            for total in range(len(ways) - 1, rank - 1, -1):
                ways[total] += ways[total - rank]
        return sum(ways[int(above):]) / 2 ** n
    ties = [ranks.count(r) for r in set(ranks)]
    variance = (n * (n + 1) * (2 * n + 1) - sum(t * (t * t - 1) for t in ties) / 2) / 24
    return math.erfc((above - n * (n + 1) / 4) / math.sqrt(2 * variance)) / 2


class WilcoxonPruner(BasePruner):
    """Stops a trial whose values are worse than those of the best trial at the same steps, by Wilcoxon's signed-rank test
    with at most p_threshold; not while its mean is better. Steps are problems or folds, in any order, and of at least
    n_startup_steps."""

    def __init__(self, *, p_threshold: float = 0.1, n_startup_steps: int = 2) -> None:
        if not 0 <= p_threshold <= 1:
            raise ValueError(f"p_threshold: found {_repr(p_threshold)[:100]}, expected a number from 0 to 1")
        self._threshold, self._startup = p_threshold, _whole("n_startup_steps", n_startup_steps, 0)

    def prune(self, study: Any, trial: FrozenTrial) -> bool:
        mine = trial.intermediate_values
        try:
            best = study.best_trial.intermediate_values if mine else {}
        except ValueError:  # no trial is completed
            return False
        if not best or not all(map(math.isfinite, [*mine.values(), *best.values()])):
            return False
        goal = _goal(study)
        differences = [goal * (v - best[step]) for step, v in sorted(mine.items()) if step in best]
        if len(differences) < max(1, self._startup):
            return False
        is_better = goal * sum(mine.values()) / len(mine) <= goal * sum(best.values()) / len(best)
        return not is_better and _chance_of_more(differences) < self._threshold


class SuccessiveHalvingPruner(BasePruner):
    """Asynchronous successive halving (Li et al. 2020): at the steps min_resource * reduction_factor ** (rung +
    min_early_stopping_rate) a trial goes on when its value there is among the best 1 / reduction_factor of those that
    trials of the study had there, and the best of fewer trials than that.

    min_resource: "auto": a hundredth of the steps of the first completed trial, at least 1; no trial stops before one has
    completed. bootstrap_count: so many trials have to have reached a rung first."""

    def __init__(self, min_resource: Union[str, int] = "auto", reduction_factor: int = 4, min_early_stopping_rate: int = 0,
                 bootstrap_count: int = 0) -> None:
        self._resource = None if min_resource == "auto" else _whole("min_resource", min_resource, 1)
        self._factor, self._rate = _whole("reduction_factor", reduction_factor, 2), _whole("min_early_stopping_rate", min_early_stopping_rate, 0)
        self._bootstrap = _whole("bootstrap_count", bootstrap_count, 0)

    def prune(self, study: Any, trial: FrozenTrial) -> bool:
        if not trial.intermediate_values:
            return False
        others = [t for t in study.get_trials(deepcopy=False) if t._own_key != trial._own_key]
        resource = self._resource or self._found_resource(others)
        if resource is None:
            return False
        goal, steps = _goal(study), sorted(trial.intermediate_values)
        rung_step, last = resource * self._factor ** self._rate, steps[-1]
        while rung_step <= last:
            if (steps[-2] if len(steps) > 1 else -1) < rung_step:  # the last report is its first one at this rung
                mine = goal * trial.intermediate_values[last]
                if mine != mine or self._is_behind(mine, [goal * v for v in _at_rung(others, rung_step)]):
                    return True
            rung_step *= self._factor
        return False

    @staticmethod
    def _found_resource(others: List[FrozenTrial]) -> Optional[int]:
        first = next((t for t in others if t.state == TrialState.COMPLETE and t.last_step is not None), None)
        return None if first is None else max(1, (first.last_step or 0) // 100)

    def _is_behind(self, mine: float, others: List[float]) -> bool:
        if len(others) < self._bootstrap:
            return True
        reached = sorted([v for v in others if v == v] + [mine])
        return mine > reached[max(0, (len(others) + 1) // self._factor - 1)]


def _at_rung(trials: List[FrozenTrial], rung_step: int) -> List[float]:
    """What trials had at their first report from this step on."""
    found = []
    for t in trials:
        curve: Dict[int, float] = t.intermediate_values
        step = min((s for s in curve if s >= rung_step), default=None)
        if step is not None:
            found.append(curve[step])
    return found


class HyperbandPruner(BasePruner):
    """max_resource: the steps of a full trial; with "auto" it has no effect."""

    def __init__(self, min_resource: int = 1, max_resource: Any = "auto", reduction_factor: int = 3,
                 bootstrap_count: int = 0) -> None:
        self._steps, self._eta = (min_resource, max_resource), reduction_factor

    def prune(self, study: Any, trial: FrozenTrial) -> bool:
        return False

    def _early_stopping(self) -> Optional[JSON]:
        least, most = self._steps
        if not isinstance(most, int):
            return None
        return {"method": "hyperband", "min_steps": least, "max_steps": most, "eta": self._eta}
