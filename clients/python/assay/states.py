"""States of trials and directions of objectives, with Optuna's names."""
from __future__ import annotations

import enum
from typing import Any, Iterable, List

from .errors import _repr


class TrialState(str, enum.Enum):
    """The state of a trial. Each is equal to the service's own word for it: TrialState.FAIL == "failed"."""

    WAITING = "queued"
    RUNNING = "running"
    PAUSED = "paused"  # this one and CANCELLED are not among Optuna's
    COMPLETE = "completed"
    PRUNED = "pruned"
    FAIL = "failed"
    CANCELLED = "cancelled"

    def is_finished(self) -> bool:
        return self not in (TrialState.WAITING, TrialState.RUNNING, TrialState.PAUSED)

    def __str__(self) -> str:
        return str(self.value)


class StudyDirection(str, enum.Enum):
    """The direction of an objective, equal to the service's word for it."""

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"

    def __str__(self) -> str:
        return str(self.value)


def _state(state: Any) -> TrialState:
    """A state by Optuna's name (of its enum too) or the service's word. ValueError for anything else."""
    word = getattr(state, "name", state)
    for known in TrialState:
        if isinstance(word, str) and word in (known.name, known.value):
            return known
    raise ValueError(f"state: found {_repr(state)}, expected one of {', '.join(s.name for s in TrialState)}, "
                     f"or of {', '.join(s.value for s in TrialState)}")


def _states(states: Iterable[Any]) -> List[TrialState]:
    if isinstance(states, str):
        raise ValueError(f"states: found the text {_repr(states)}, expected a list of states")
    return [_state(s) for s in states]
