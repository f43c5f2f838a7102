"""Errors."""
from __future__ import annotations

import sys
from typing import Sequence

from .constants import JSON


class AssayError(Exception):
    """What the server or this file refuses. `status` and `code` are those of the server's problem document (0 and ""
    otherwise), `errors` its list of {"pointer", "detail"}."""

    def __init__(self, message: str, status: int = 0, code: str = "", errors: Sequence[JSON] = ()) -> None:
        super().__init__(message)
        self.status, self.code, self.errors = status, code, list(errors)


class Unavailable(AssayError):
    """No server is known, or it does not answer."""


class SpaceError(AssayError, ValueError):
    """A parameter is wrong, or not what it was in an earlier trial. It ends optimize(), whatever `catch` says."""


class TrialPruned(Exception):
    """Raise it in an objective to give a trial up. Optuna's exception of this name is understood too."""


def _say(text: str) -> None:
    print("assay: " + text, file=sys.stderr, flush=True)
