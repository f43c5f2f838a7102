"""Inside a trial that assay-runner started (docs/trials.md), and inside an objective of optimize()."""
from __future__ import annotations

import itertools
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any, Mapping, Optional

from .constants import JSON
from .errors import AssayError
from .messages import _say
from .trial import _measured, _metric_name, _step, _this_thread

_stop = threading.Event()
_stop_watched = False
_next_step = itertools.count()


def in_trial() -> bool:
    """Did assay-runner start this program as a trial?"""
    return "ASSAY_REPORT" in os.environ


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise AssayError(f"{name} is not set: this program was not started by assay-runner as a trial")
    return value


def params(defaults: Optional[Mapping[str, Any]] = None) -> JSON:
    """The parameters of this trial, with `defaults` for those that are not active. Outside of a trial: the defaults, or
    AssayError without them."""
    trial = getattr(_this_thread, "trial", None)
    if trial is not None:
        return {**(defaults or {}), **trial.params}
    if defaults is not None and "ASSAY_PARAMS" not in os.environ:
        return dict(defaults)
    with open(_variable("ASSAY_PARAMS"), encoding="utf-8") as f:
        return {**(defaults or {}), **json.load(f)}


def seed(default: int = 0) -> int:
    """The seed of this trial, the same in every attempt; `default` outside of a trial."""
    trial = getattr(_this_thread, "trial", None)
    return int(trial.seed if trial is not None else os.environ.get("ASSAY_SEED") or default)


def report(step: Optional[int] = None, **metrics: Any) -> None:
    """Record measurements of this trial: report(step=3, loss=0.2). Without a step, the next one. Outside of a trial the
    line goes to standard error."""
    trial = getattr(_this_thread, "trial", None)
    if trial is not None:
        trial.report(None, step, **metrics)
        return
    if not metrics:
        raise ValueError("report: expected metrics by name, such as loss=0.2")
    line: JSON = {} if step is None else {"step": _step(step)}
    line.update((_metric_name(name), _measured(name, value)) for name, value in metrics.items())
    if not in_trial():
        _say("report " + json.dumps(line))
        return
    # One write of a whole line to a file opened for appending: lines of several processes do not mix.
    handle = os.open(_variable("ASSAY_REPORT"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, json.dumps(line).encode() + b"\n")
    finally:
        os.close(handle)


def checkpoint_dir() -> Path:
    """The folder that outlives this attempt: the next one finds its files there. Write to a temporary name and rename."""
    return Path(_variable("ASSAY_CHECKPOINTS"))


def artifacts_dir() -> Path:
    """The folder whose files are kept."""
    return Path(_variable("ASSAY_ARTIFACTS"))


def should_stop() -> bool:
    """Was this trial asked to stop? Then write a checkpoint and exit with 75 to be continued, or with 0.

    In a trial of assay-runner the first call, in the main thread, makes SIGTERM set this instead of ending the
    program; a handler that was there before is called too."""
    global _stop_watched
    trial = getattr(_this_thread, "trial", None)
    if trial is not None:
        return bool(trial.should_prune())
    if not _stop_watched and in_trial() and threading.current_thread() is threading.main_thread():
        _stop_watched = True
        before = signal.getsignal(signal.SIGTERM)

        def handle(number: int, frame: Any) -> None:
            _stop.set()
            if callable(before):
                before(number, frame)

        signal.signal(signal.SIGTERM, handle)
    return _stop.is_set()
