"""Samplers and pruners by Optuna's names, for create_study(sampler=…, pruner=…). A sampler chooses the search method of the
service, its seed and the constraints_func; its other arguments have no effect. HyperbandPruner is the early_stopping of the
sweep; the other pruners do not say how many steps a full trial has, which the service wants to know, and have no effect."""
from __future__ import annotations

import random
from typing import Any, Optional

from .constants import JSON
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

    def early_stopping(self) -> Optional[JSON]:
        """The field of the sweep document; None: it has none."""
        return None


class NopPruner(_Pruner):
    pass


class MedianPruner(_Pruner):
    pass


class PercentilePruner(_Pruner):
    pass


class SuccessiveHalvingPruner(_Pruner):
    pass


class HyperbandPruner(_Pruner):
    """max_resource: the steps of a full trial; with "auto" it has no effect."""

    def __init__(self, min_resource: int = 1, max_resource: Any = "auto", reduction_factor: int = 3,
                 bootstrap_count: int = 0) -> None:
        super().__init__()
        self._steps, self._eta = (min_resource, max_resource), reduction_factor

    def early_stopping(self) -> Optional[JSON]:
        least, most = self._steps
        if not isinstance(most, int):
            return None
        return {"method": "hyperband", "min_steps": least, "max_steps": most, "eta": self._eta}
