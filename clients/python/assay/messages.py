"""What the client says to its user, through Python's logging: the logger `assay`, which writes to standard error. The
functions have the names of optuna.logging, whose library is this one here."""
from __future__ import annotations

import sys
from logging import INFO, Formatter, Handler, Logger, LogRecord, getLogger

from .errors import _encodable

_LOGGER = "assay"


class _ToStderr(Handler):
    """Writes to what sys.stderr is then."""

    def emit(self, record: LogRecord) -> None:
        try:
            print(_encodable(self.format(record)), file=sys.stderr, flush=True)
        except Exception:
            self.handleError(record)


def create_default_formatter() -> Formatter:
    """`assay: MESSAGE`."""
    return Formatter("assay: %(message)s")


def _made_logger() -> Logger:
    """The logger. A program that configured it before it imported this file keeps what it chose."""
    logger = getLogger(_LOGGER)
    if logger.level == 0:  # NOTSET
        logger.setLevel(INFO)
        logger.propagate = False
    return logger


_logger, _handler = _made_logger(), _ToStderr()
_handler.setFormatter(create_default_formatter())
if not _logger.handlers:
    _logger.addHandler(_handler)


def get_logger(name: str) -> Logger:
    """The logger `assay.NAME`. "optuna" and "assay" are the client's own."""
    return _logger if name in ("", "optuna", _LOGGER) else getLogger(name if name.startswith(_LOGGER + ".") else f"{_LOGGER}.{name}")


def get_verbosity() -> int:
    return _logger.getEffectiveLevel()


def set_verbosity(verbosity: int) -> None:
    """Messages below this level of `logging` are not written; WARNING leaves warnings and errors."""
    _logger.setLevel(verbosity)


def disable_default_handler() -> None:
    """Do not write to standard error."""
    _logger.removeHandler(_handler)


def enable_default_handler() -> None:
    _logger.addHandler(_handler)


def disable_propagation() -> None:
    """Do not give messages to the handlers of the program's root logger, as by default."""
    _logger.propagate = False


def enable_propagation() -> None:
    _logger.propagate = True


def _say(text: str) -> None:
    _logger.info("%s", text)


def _warn(text: str) -> None:
    _logger.warning("%s", text)
