"""Samplers that a user writes as for Optuna: classes whose base is samplers.BaseSampler. A study with one asks it for the
values of each trial, and gives them to the sweep as configurations of its own."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence

from .distributions import BaseDistribution
from .errors import SpaceError, _repr
from .parameters import _Parameter
from .states import TrialState
from .trial import FrozenTrial

if TYPE_CHECKING:
    from .results import _StudyData


class BaseSampler:
    """The base of samplers, with Optuna's methods. For each trial before_trial(), infer_relative_search_space() and
    sample_relative() are called, sample_independent() for each parameter that they gave no value of, and after_trial() when
    the trial has ended. `trial` is a FrozenTrial."""

    def infer_relative_search_space(self, study: Any, trial: FrozenTrial) -> Mapping[str, BaseDistribution]:
        """The parameters that sample_relative() is to give values of."""
        raise NotImplementedError

    def sample_relative(self, study: Any, trial: FrozenTrial, search_space: Any) -> Mapping[str, Any]:
        """Values by name."""
        raise NotImplementedError

    def sample_independent(self, study: Any, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution) -> Any:
        """A value of one parameter."""
        raise NotImplementedError

    def before_trial(self, study: Any, trial: FrozenTrial) -> None:
        """Nothing."""

    def after_trial(self, study: Any, trial: FrozenTrial, state: TrialState, values: Optional[Sequence[float]]) -> None:
        """Nothing."""

    def reseed_rng(self) -> None:
        """Nothing."""


def _sampled(sampler: BaseSampler, study: _StudyData, trial: FrozenTrial, relative: Mapping[str, Any], p: _Parameter,
             distribution: BaseDistribution) -> Any:
    """The value of a parameter, as the objective wants it. SpaceError: the sampler's is none."""
    if p.kind == "constant":
        return p.spec["value"]
    if p.name in relative and p.contains(relative[p.name]):
        return p.decode(p.encode(relative[p.name]))
    value = sampler.sample_independent(study, trial, p.name, distribution)
    if not p.contains(value):
        raise SpaceError(f"parameter '{p.name}': found {_repr(value)} of {type(sampler).__name__}.sample_independent(), "
                         f"expected {p.described()}"[:600])
    return p.decode(p.encode(value))


def intersection_search_space(trials: Sequence[FrozenTrial], include_pruned: bool = False) -> Dict[str, BaseDistribution]:
    """The parameters that all completed trials suggested, with the same distribution; by name."""
    states = (TrialState.COMPLETE, TrialState.PRUNED) if include_pruned else (TrialState.COMPLETE,)
    found: Optional[Dict[str, BaseDistribution]] = None
    for t in trials:
        if t.state in states:
            mine = t.distributions
            found = mine if found is None else {n: d for n, d in found.items() if n in mine and mine[n] == d}
    return dict(sorted((found or {}).items()))


class IntersectionSearchSpace:
    """intersection_search_space() of a study."""

    def __init__(self, include_pruned: bool = False) -> None:
        self._include_pruned = include_pruned

    def calculate(self, study: Any) -> Dict[str, BaseDistribution]:
        return intersection_search_space(study.get_trials(deepcopy=False), self._include_pruned)
