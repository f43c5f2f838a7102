"""One call of optimize(): what was asked for, and the results that are on their way."""
from __future__ import annotations

import math
import sys
import threading
import time
from typing import TYPE_CHECKING, Callable, List, Optional, Sequence, Tuple, Type

from .trial import FrozenTrial, Trial

if TYPE_CHECKING:
    from .progress import _Progress
    from .results import _StudyData
    from .study import Study

Callback = Callable[["Study", FrozenTrial], None]


class _Run:
    """One call of optimize()."""

    def __init__(self, timeout: Optional[float], catch: Tuple[Type[BaseException], ...], callbacks: Sequence[Callback],
                 batch: int, progress: "_Progress") -> None:
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.catch, self.callbacks, self.batch, self.progress = catch, list(callbacks), batch, progress
        self.stop = threading.Event()
        self.errors: List[BaseException] = []
        self.returned: List[Trial] = []  # asked for and not begun

    def left(self) -> float:
        return math.inf if self.deadline is None else self.deadline - time.monotonic()

    def is_over(self) -> bool:
        return self.stop.is_set() or self.left() <= 0


class _Teller:
    """A thread that sends the results of a batch while the objective goes on. An error is raised where wait() is."""

    def __init__(self, study: _StudyData) -> None:
        self._study = study
        self._work: List[Callable[[], None]] = []
        self._changed = threading.Condition()
        self._busy = self._over = False
        self._error: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._loop, name="assay-tell", daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._work or self._over)
                if not self._work:
                    break
                work, self._busy = self._work.pop(0), True
            try:
                work()
            except BaseException as e:
                self._error = self._error or e
            with self._changed:
                self._busy = False
                self._changed.notify_all()
        self._study._http.close()

    def add(self, work: Callable[[], None]) -> None:
        with self._changed:
            self._work.append(work)
            self._changed.notify_all()

    def wait(self) -> None:
        """Until all results are sent."""
        with self._changed:
            self._changed.wait_for(lambda: not self._work and not self._busy)
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def end(self) -> None:
        """Send what is left, and end the thread. An error is raised unless another is on its way."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self._thread.join()
        if self._error is not None and sys.exc_info()[0] is None:
            raise self._error
