"""Optuna's storages, which programs name when they create a study: accepted, and without effect, because the service is the
storage. Nothing is written to the place that they name."""
from __future__ import annotations

from typing import Any


class InMemoryStorage:
    """Without effect, as all of these."""

    def __init__(self, *ignored: Any, **also_ignored: Any) -> None:
        pass


class RDBStorage(InMemoryStorage):
    pass


class JournalStorage(InMemoryStorage):
    pass


class JournalFileBackend(InMemoryStorage):
    pass


class JournalFileStorage(InMemoryStorage):
    pass


class JournalRedisBackend(InMemoryStorage):
    pass


class JournalRedisStorage(InMemoryStorage):
    pass


class JournalFileOpenLock(InMemoryStorage):
    pass


class JournalFileSymlinkLock(InMemoryStorage):
    pass


class GrpcStorageProxy(InMemoryStorage):
    pass


class RetryFailedTrialCallback(InMemoryStorage):
    """The service gives the trials of a program that is silent to others (create_study(lease=…))."""
