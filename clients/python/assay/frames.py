"""The table of a study as Optuna has it, for trials_dataframe()."""
from __future__ import annotations

import datetime
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .trial import FrozenTrial

OPTUNA_COLUMNS = ("number", "value", "datetime_start", "datetime_complete", "duration", "params", "user_attrs", "system_attrs",
                  "state")
Column = Tuple[str, str]  # params and x; number and ""


def _values_of(trial: FrozenTrial, names: Sequence[str]) -> Dict[Column, Any]:
    """Of one objective `value`, with its name if it has one; of several `values` with their names or numbers."""
    if len(names) == 1:
        return {("value", "" if names[0] == "value" else names[0]): trial.value}
    is_named = list(names) != [f"value_{i}" for i in range(len(names))]
    return {("values", name if is_named else str(i)): v for i, (name, v) in enumerate(zip(names, trial.values or [None for _ in names]))}


def _cells_of(trial: FrozenTrial, attr: str, names: Sequence[str]) -> Dict[Column, Any]:
    if attr in ("value", "values"):
        return _values_of(trial, names)
    found = getattr(trial, attr)
    if isinstance(found, dict):
        return {(attr, str(name)): value for name, value in found.items()}
    if attr == "state":
        found = found.name
    elif attr == "duration" and found is not None:
        found = datetime.timedelta(seconds=found)
    return {(attr, ""): found}


def _optuna_table(trials: Sequence[FrozenTrial], names: Sequence[str], attrs: Optional[Sequence[str]] = None) \
        -> Tuple[List[Column], List[Dict[Column, Any]]]:
    """The columns, and a dict for each trial. names: of the objectives. attrs: attributes of the trials, OPTUNA_COLUMNS
    when None."""
    wanted = OPTUNA_COLUMNS if attrs is None else tuple(attrs)
    rows: List[Dict[Column, Any]] = [{} for _ in trials]
    columns: List[Column] = []
    for attr in wanted:
        cells = [_cells_of(t, attr, names) for t in trials]
        named = list(dict.fromkeys(c for row in cells for c in row))
        columns += named if attr in ("value", "values") else sorted(named)
        for row, new in zip(rows, cells):
            row.update(new)
    return columns, rows


def _joined_name(column: Column) -> str:
    return "_".join(part for part in column if part)
