"""Distributions with Optuna's names: entries of `space`, of ask(fixed_distributions), and what trials say of their
parameters."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

from .errors import _repr
from .parameters import Choice, _choices, _Parameter, _range


class BaseDistribution:
    """What the distributions have in common: equal when they mean the same."""

    def _parameter(self) -> _Parameter:
        raise NotImplementedError

    def single(self) -> bool:
        """Has it one value only?"""
        return self._parameter().meaning()[0] == "choice" and len(self._parameter().meaning()) == 2

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self._parameter().same(other._parameter())

    def __hash__(self) -> int:
        return hash(self._parameter().meaning())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={_repr(v)}' for k, v in vars(self).items())})"


class FloatDistribution(BaseDistribution):
    """A number from low to high, both included; on a log scale, or in steps."""

    def __init__(self, low: float, high: float, log: bool = False, step: Optional[float] = None) -> None:
        self.low, self.high, self.log, self.step = float(low), float(high), bool(log), step
        self._parameter()

    def _parameter(self) -> _Parameter:
        return _range("value", "float", self.low, self.high, self.step, self.log)


class IntDistribution(BaseDistribution):
    """A whole number from low to high, both included; on a log scale, or in steps."""

    def __init__(self, low: int, high: int, log: bool = False, step: int = 1) -> None:
        self.low, self.high, self.log, self.step = low, high, bool(log), step
        self._parameter()

    def _parameter(self) -> _Parameter:
        return _range("value", "int", self.low, self.high, self.step, self.log)


class CategoricalDistribution(BaseDistribution):
    """One of the choices."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self.choices: Tuple[Choice, ...] = tuple(choices)
        self._parameter()

    def _parameter(self) -> _Parameter:
        return _choices("value", self.choices)


def _distribution(p: _Parameter) -> BaseDistribution:
    """The distribution of a parameter."""
    s = p.spec
    if p.kind == "float":
        return FloatDistribution(s["min"], s["max"], s.get("scale") == "log", s.get("step"))
    if p.kind == "int":
        return IntDistribution(s["min"], s["max"], s.get("scale") == "log", s.get("step") or 1)
    if p.kind == "constant":
        value = s["value"]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return IntDistribution(value, value) if isinstance(value, int) else FloatDistribution(value, value)
        return CategoricalDistribution([value])
    return CategoricalDistribution([False, True] if p.kind == "bool" else p.choices or s["values"])
