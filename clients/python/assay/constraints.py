"""Optuna's constraints_func, in the service's terms: metrics with an upper bound of 0.

Each value is reported as a metric: constraint_0, constraint_1, … The sweep document bounds each of them, if their number is
known when the sweep is created: when its first trial has ended by then. Otherwise, and for more than a document may have, it
bounds the metric `constraint`, which is the largest of them: a trial is feasible under the one just when it is under the
other, and the search learns the boundary of one value instead of several."""
from __future__ import annotations

import math
import re
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from .constants import JSON
from .errors import _repr

ConstraintsFunc = Callable[[Any], Sequence[float]]
CONSTRAINT = "constraint"  # the metric with the largest of the values; the others are CONSTRAINT_0, …
CONSTRAINTS_MAX = 8  # in a sweep document
CONSTRAINT_VALUES_MAX = 64  # that a constraints_func may return; a result has at most 100 metrics


def _is_constraint_name(name: str) -> bool:
    return re.match(CONSTRAINT + r"(_\d+)?\Z", name) is not None


def _check_free_names(names: Iterable[str]) -> None:
    """ValueError: a metric of the user's has a name that is wanted here."""
    for name in names:
        if _is_constraint_name(name):
            raise ValueError(f"metric {name}: with constraints_func this name is that of a constraint, expected another one")


def _constraint_values(returned: Any) -> List[float]:
    """What a constraints_func returned. ValueError names what is wrong."""
    try:
        values = [float(v) for v in returned]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"constraints_func returned {_repr(returned)}, expected a list of numbers"[:500]) from None
    if len(values) > CONSTRAINT_VALUES_MAX or not all(map(math.isfinite, values)):
        raise ValueError(f"constraints_func returned {_repr(returned)}, expected at most {CONSTRAINT_VALUES_MAX} finite numbers"[:500])
    return values


def _constraint_metrics(values: Sequence[float]) -> Dict[str, float]:
    """The values as metrics."""
    return {**({CONSTRAINT: max(values)} if values else {CONSTRAINT: 0.0}), **{f"{CONSTRAINT}_{i}": v for i, v in enumerate(values)}}


def _constraint_bounds(values: Optional[Sequence[float]], others: int) -> List[JSON]:
    """What the sweep document bounds. values: of a first trial, None when none has ended. others: how many constraints the
    document has besides."""
    each = values is not None and 0 < len(values) <= CONSTRAINTS_MAX - others
    names = [f"{CONSTRAINT}_{i}" for i in range(len(values or ()))] if each else [CONSTRAINT]
    return [{"metric": name, "max": 0} for name in names]


def _bounded_constraints(options: Mapping[str, Any]) -> Tuple[bool, int]:
    """Whether a sweep document has constraints of a constraints_func, and how many it must return (0: any number)."""
    names = [str(c["metric"]) for c in options.get("constraints") or [] if _is_constraint_name(str(c["metric"]))]
    return bool(names), 0 if names == [CONSTRAINT] else len(names)


def _constraints_in(metrics: Mapping[str, float], options: Mapping[str, Any]) -> JSON:
    """Optuna's system_attrs of a trial that the server has: {"constraints": values}, or {} for one without."""
    if not _bounded_constraints(options)[0] or CONSTRAINT not in metrics:
        return {}
    values: List[float] = []
    while f"{CONSTRAINT}_{len(values)}" in metrics:
        values.append(metrics[f"{CONSTRAINT}_{len(values)}"])
    return {"constraints": values}
