"""Trials that no study made: FixedTrial runs an objective with given values, create_trial() makes a known result."""
from __future__ import annotations

import datetime
from typing import Any, Dict, Mapping, Optional, Sequence

from .constants import JSON
from .errors import _repr
from .parameters import _of_space, _Parameter
from .states import TrialState, _state
from .trial import FrozenTrial, _given_value, _measured, _metric_name, _step, _Suggests


class FixedTrial(_Suggests):
    """For an objective outside of a study: objective(FixedTrial({"x": 1.0})). A value that is not in the range which the
    objective asks for is a SpaceError."""

    def __init__(self, params: Mapping[str, Any], number: int = 0) -> None:
        self.number, self.user_attrs = number, {}  # type: int, JSON
        self.datetime_start = datetime.datetime.now()
        self.intermediate_values: Dict[int, float] = {}
        self._values = dict(params)
        self._suggested: JSON = {}

    def _suggest(self, p: _Parameter) -> Any:
        self._suggested[p.name] = value = _given_value(self._values, p, "FixedTrial")
        return value

    @property
    def params(self) -> JSON:
        """What was suggested so far."""
        return dict(self._suggested)

    def report(self, value: Any = None, step: Optional[int] = None, **metrics: Any) -> None:
        for name, number in metrics.items():
            _measured(_metric_name(name), number)
        if value is not None:
            at = max(self.intermediate_values, default=-1) + 1 if step is None else _step(step)
            self.intermediate_values.setdefault(at, _measured("value", value))

    def should_prune(self) -> bool:
        return False

    def set_user_attr(self, key: str, value: Any) -> None:
        self.user_attrs[key] = value


def create_trial(*, params: Optional[Mapping[str, Any]] = None, distributions: Optional[Mapping[str, Any]] = None,
                 value: Optional[float] = None, values: Optional[Sequence[float]] = None, state: Any = TrialState.COMPLETE,
                 user_attrs: Optional[JSON] = None, intermediate_values: Optional[Mapping[int, float]] = None,
                 system_attrs: Optional[JSON] = None) -> FrozenTrial:
    """A known result for study.add_trial(). distributions: of each of the params. system_attrs: "constraints" has the
    values of a constraints_func."""
    if value is not None and values is not None:
        raise ValueError("value and values: found both, expected one")
    given, space = dict(params or {}), {n: _of_space(n, d) for n, d in (distributions or {}).items()}
    if set(given) != set(space):
        raise ValueError(f"params and distributions: found {sorted(given)} and {sorted(space)}, expected the same names")
    numbers = [value] if value is not None else list(values or [])
    made = _state(state)
    if (made is TrialState.COMPLETE) != bool(numbers):
        raise ValueError(f"values: found {_repr(numbers)}, expected " + ("one or more" if not numbers else f"none of state {made}"))
    record = FrozenTrial(-1, made, given, {}, [_measured("value", v) for v in numbers] or [None], user_attrs=user_attrs)
    record.system_attrs = dict(system_attrs or {})
    record._asked = {n: (space[n], v) for n, v in given.items()}
    record._encoded = {n: space[n].encode(v) for n, v in given.items()}
    record._curve = {_step(s): _measured("value", v) for s, v in (intermediate_values or {}).items()}
    return record
