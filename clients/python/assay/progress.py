"""Progress: a line on a terminal, and HTML in a notebook (IPython is used when it is running, and never imported)."""
from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any, List, Optional

from .notebook import _Html, _html
from .trial import FrozenTrial

if TYPE_CHECKING:
    from .results import _StudyData


class _Progress:
    def __init__(self, study: _StudyData, planned: Optional[int], wanted: Optional[bool]) -> None:
        self._study, self._planned = study, planned
        self._lock = threading.Lock()
        self._begin = self._shown = time.monotonic()
        self._ended = 0
        self._best: Optional[FrozenTrial] = None
        self._trials: List[FrozenTrial] = list(study._own)
        self._notebook = self._display() if wanted is not False else None
        self._line = self._notebook is None and sys.stderr is not None and (sys.stderr.isatty() if wanted is None else wanted)

    def _display(self) -> Any:
        """A display of this notebook's cell, or None."""
        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython is not None else None
        if shell is None or not hasattr(shell, "kernel"):
            return None
        return sys.modules["IPython.display"].display(self._study, display_id=True)  # type: ignore[attr-defined]

    def add(self, record: FrozenTrial) -> None:
        with self._lock:
            self._ended += 1
            self._trials.append(record)
            if self._study._candidates([record]) and (self._best is None or self._study._better(record, self._best) > 0):
                self._best = record
            now = time.monotonic()
            if now - self._shown >= (1.0 if self._notebook else 0.2):
                self._shown = now
                self._show()

    def _show(self) -> None:
        if self._notebook is not None:
            self._notebook.update(_Html(_html(self._study, self._trials)))
        elif self._line:
            rate = self._ended / max(1e-9, time.monotonic() - self._begin)
            best = f", best {self._best.value:.6g} in trial {self._best.number}" if self._best else ""
            print(f"\r{self._ended}{f' of {self._planned}' if self._planned else ''} trials{best}, {rate:.3g}/s\x1b[K",
                  end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        self._show()
        if self._line:
            print(file=sys.stderr, flush=True)
