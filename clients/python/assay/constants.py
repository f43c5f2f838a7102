"""Types and limits that every part uses."""
from __future__ import annotations

from typing import Any, Dict

__version__ = "0.1.0"

JSON = Dict[str, Any]
LEASE_S = 600.0  # how long the server holds a trial for a program that is silent: the server's default
BEAT_S = 20.0  # between heartbeats, so that a trial which a person cancels is known here soon
FLUSH_S = 0.5  # reports of a trial are sent together, at most this old
PATIENCE_S = 600.0  # how long a server that was reached before may be away
TRIALS_MAX = 1_000_000  # the largest limits.max_trials
ROWS_MAX = 1000  # known results in a request; the server takes 5,000 and 1 MiB
GENERATIONS_MAX = 60  # how often the space of a study may grow
