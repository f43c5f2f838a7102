"""Types and limits that every part uses."""
from __future__ import annotations

from typing import Any, Dict

__version__ = "0.1.0"

JSON = Dict[str, Any]
LEASE_S = 60.0  # how long the server holds a trial for a program that is silent: killed, or stopped
BEAT_S = 15.0  # between heartbeats; at most a quarter of the lease
FLUSH_S = 0.5  # reports of a trial are sent together, at most this old
PATIENCE_S = 600.0  # how long a server that was reached before may be away
STEP_MAX = 2**63 - 2  # the largest step of a report
TRIALS_MAX = 1_000_000  # the largest limits.max_trials
ROWS_MAX = 1000  # known results in a request; the server takes 5,000
BYTES_MAX = 500_000  # in a request with them; the server takes 1 MiB
GENERATIONS_MAX = 60  # how often the space of a study may grow
