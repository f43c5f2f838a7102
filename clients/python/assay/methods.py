"""Samplers and pruners by Optuna's names, for create_study(sampler=…, pruner=…). A sampler chooses the search method of the
service, its seed and the constraints_func; its other arguments have no effect. A pruner has none: the service does not stop trials for their
results yet."""
from __future__ import annotations

from typing import Any, Optional

from .constraints import ConstraintsFunc


class _Sampler:
    """method: of the sweep document."""

    method = "gp"

    def __init__(self, *ignored: Any, seed: Optional[int] = None, constraints_func: Optional[ConstraintsFunc] = None,
                 **also_ignored: Any) -> None:
        self.seed, self.constraints_func = seed, constraints_func


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
