"""Samplers and pruners by Optuna's names, for create_study(sampler=…, pruner=…). A sampler chooses the search method of the
service, its seed and the constraints_func; its other arguments have no effect. A pruner has none: the service does not stop trials for their
results yet."""
from __future__ import annotations

import random
from typing import Any, Optional

from .constraints import ConstraintsFunc
from .distributions import BaseDistribution
from .own_sampler import BaseSampler
from .parameters import _of_space
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


class _Pruner:
    def __init__(self, *ignored: Any, **also_ignored: Any) -> None:
        pass


class NopPruner(_Pruner):
    pass


class MedianPruner(_Pruner):
    pass


class PercentilePruner(_Pruner):
    pass


class SuccessiveHalvingPruner(_Pruner):
    pass


class HyperbandPruner(_Pruner):
    pass
