"""Errors."""
from __future__ import annotations

from typing import Any, Sequence

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


class ResultError(TypeError, ValueError):
    """What an objective returned, or a loop told, is no result. is_none: it is None, as of an objective that gave up; then
    its trial fails, and optimize() goes on."""

    def __init__(self, message: str, is_none: bool = False) -> None:
        super().__init__(message)
        self.is_none = is_none


class ExperimentalWarning(Warning):
    """Optuna's name, for programs that silence it. Nothing here warns so."""


class DuplicatedStudyError(AssayError):
    """Optuna's name. A name that is taken gets -2, -3, … here."""


class UpdateFinishedTrialError(AssayError, RuntimeError):
    """Optuna's name. What has ended does not change, without an error."""


class TrialPruned(Exception):
    """Raise it in an objective to give a trial up. Optuna's exception of this name is understood too."""


def _encodable(text: str) -> str:
    """The text with escapes in the place of what UTF-8 does not have (parts of file names) and of NUL."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def _repr(value: Any) -> str:
    """repr(value) as a text that can be sent, also of what has none."""
    try:
        return _encodable(repr(value))
    except Exception as fault:
        return f"<{type(value).__name__} whose repr() raises {type(fault).__name__}>"


def _reason_of(failure: BaseException) -> str:
    """`Type: message` of an exception, of at most 2,000 characters; also if its message cannot be made or encoded."""
    try:
        message = str(failure)
    except Exception as fault:
        message = f"<its text raises {type(fault).__name__}>"
    return _encodable(f"{type(failure).__name__}: {message}")[:2000]

