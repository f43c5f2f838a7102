"""Samplers by Optuna's names, for create_study(sampler=…). One chooses the search method of the service, its seed and the
constraints_func; its other arguments have no effect. GridSampler and BruteForceSampler choose the values themselves."""
from __future__ import annotations

import contextlib
import itertools
import random
from decimal import Decimal
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from .constants import JSON
from .constraints import ConstraintsFunc
from .distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from .errors import SpaceError, _repr
from .own_sampler import BaseSampler
from .parameters import _of_space
from .states import TrialState
from .trial import FrozenTrial


class _Sampler(BaseSampler):
    """method: of the sweep document. sample_independent() draws a random value, for the samplers of users that call it."""

    method = "gp"

    def __init__(self, *ignored: Any, seed: Optional[int] = None, constraints_func: Optional[ConstraintsFunc] = None,
                 **also_ignored: Any) -> None:
        self.seed, self.constraints_func = seed, constraints_func
        self._rng = random.Random(seed)

    def sample_independent(self, study: Any, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution) -> Any:
        p = _of_space(param_name, param_distribution)
        return p.decode(p.encode(p.draw(self._rng)))

    def reseed_rng(self) -> None:
        self._rng.seed()


class GPSampler(_Sampler):
    """The Gaussian process."""


class TPESampler(_Sampler):
    """The tree-structured Parzen estimator."""

    method = "tpe"


class CmaEsSampler(_Sampler):
    """CMA-ES."""

    method = "cmaes"


class RandomSampler(_Sampler):
    """Uniform random values."""

    method = "random"

    def __init__(self, seed: Optional[int] = None) -> None:
        super().__init__(seed=seed)


class QMCSampler(_Sampler):
    """A Sobol sequence."""

    method = "sobol"


class NSGAIISampler(_Sampler):
    """Evolution, which ranks trials by dominance with several objectives."""

    method = "evolution"


class NSGAIIISampler(NSGAIISampler):
    """The same."""


def _sampler_of(method: str, seed: Optional[int]) -> Optional[_Sampler]:
    """The sampler that has the name of a method; None: there is none."""
    for kind in (GPSampler, TPESampler, CmaEsSampler, QMCSampler, NSGAIISampler):
        if kind.method == method:
            return kind(seed=seed)
    return RandomSampler(seed) if method == "random" else None


def _all_values(name: str, distribution: BaseDistribution) -> List[Any]:
    """The values of a parameter that has few. ValueError: it has no step."""
    p = _of_space(name, distribution)
    if isinstance(distribution, CategoricalDistribution):
        return [p.decode(p.encode(choice)) for choice in distribution.choices]
    bounds = distribution.low, distribution.high, distribution.step  # type: ignore[attr-defined]
    if bounds[2] is None and bounds[0] < bounds[1]:
        raise ValueError(f"parameter '{name}': found a range without step=, of which not every value can be tried")
    low, high, step = (Decimal(str(number or 0)) for number in bounds)  # 0.001 to 0.01 in steps of 0.001 ends at 0.01
    values = [low + i * step for i in range(int((high - low) / step) + 1)] if step else [low]
    kind = float if isinstance(distribution, FloatDistribution) else int
    return [p.decode(p.encode(kind(value))) for value in values]


class BruteForceSampler(BaseSampler):
    """Each combination of values once, in a random order, also where names depend on values; then the study stops. Two
    programs, or threads, that choose at the same moment may choose one combination."""

    def __init__(self, seed: Optional[int] = None, avoid_premature_stop: bool = False) -> None:
        self._rng = random.Random(seed)

    def infer_relative_search_space(self, study: Any, trial: FrozenTrial) -> Mapping[str, BaseDistribution]:
        return {}

    def sample_relative(self, study: Any, trial: FrozenTrial, search_space: Any) -> Mapping[str, Any]:
        return {}

    def sample_independent(self, study: Any, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution) -> Any:
        ended = [t for t in study.get_trials(deepcopy=False) if t.state.is_finished()]
        values, path = _all_values(param_name, param_distribution), list(trial.params.items())
        return self._rng.choice([v for v in values if not self._is_tried(ended, [*path, (param_name, v)])] or values)

    def after_trial(self, study: Any, trial: FrozenTrial, state: TrialState, values: Optional[Sequence[float]]) -> None:
        ended = [t for t in study.get_trials(deepcopy=False) if t.state.is_finished()]
        if self._is_tried([*ended, trial], []):
            with contextlib.suppress(RuntimeError):  # of ask() and tell()
                study.stop()

    def _is_tried(self, ended: Sequence[FrozenTrial], path: Sequence[Tuple[str, Any]]) -> bool:
        """Has every combination that begins with these values been tried?"""
        known = [t for t in ended if list(t.params.items())[:len(path)] == list(path)]
        if not known or any(len(t.params) == len(path) for t in known):
            return bool(known)
        name = list(known[0].params)[len(path)]
        return all(self._is_tried(known, [*path, (name, v)]) for v in _all_values(name, known[0].distributions[name]))


class GridSampler(BaseSampler):
    """Each cell of a grid once, in a random order; then the study stops. Cells that trials of the study have, also those
    of other programs, are not tried again. Two programs that choose at the same moment may choose one cell.

    search_space: {name: the values to try}. method="grid" with space= has the service do this."""

    def __init__(self, search_space: Mapping[str, Sequence[Any]], seed: Optional[int] = None) -> None:
        for name, values in search_space.items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise ValueError(f"search_space: {name}: found {_repr(values)[:200]}, expected a list of values")
        self._names = sorted(search_space)
        self._cells = [dict(zip(self._names, cell)) for cell in itertools.product(*(search_space[n] for n in self._names))]
        random.Random(seed).shuffle(self._cells)

    def _left(self, study: Any) -> List[JSON]:
        """The cells that no trial has. One that runs here has its cell in _relative."""
        with study._lock:
            taken = [t._relative for t in study._held] + [t.params for t in study.trials]
        known = {self._key(p) for p in taken}
        return [cell for cell in self._cells if self._key(cell) not in known]

    def _key(self, params: Mapping[str, Any]) -> str:
        return _repr([params.get(n) for n in self._names])

    def infer_relative_search_space(self, study: Any, trial: FrozenTrial) -> Mapping[str, BaseDistribution]:
        return {}

    def sample_relative(self, study: Any, trial: FrozenTrial, search_space: Any) -> Mapping[str, Any]:
        left = self._left(study)
        if not left:
            self._stop(study)
        return left[0] if left else self._cells[0]

    def sample_independent(self, study: Any, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution) -> Any:
        if param_name not in self._names:
            raise SpaceError(f"parameter '{param_name}': found no values of it in the grid, which has {', '.join(self._names)}"[:600])
        raise SpaceError(f"parameter '{param_name}': found values in the grid that it may not have, expected "
                         f"{_of_space(param_name, param_distribution).described()}"[:600])

    def after_trial(self, study: Any, trial: FrozenTrial, state: TrialState, values: Optional[Sequence[float]]) -> None:
        if not self._left(study):
            self._stop(study)

    def _stop(self, study: Any) -> None:
        with contextlib.suppress(RuntimeError):  # of ask() and tell()
            study.stop()
