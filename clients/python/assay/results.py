"""Studies: what they hold, and their results."""
from __future__ import annotations

import calendar
import datetime
import functools
import math
import random
import threading
import time
import urllib.parse
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from .address import _Address
from .connection import _Http
from .constraints import ConstraintsFunc, _constraints_in
from .constants import JSON, LEASE_S, TRIALS_MAX
from .frames import _joined_name, _optuna_table
from .notebook import _html
from .own_sampler import BaseSampler
from .parameters import _Parameter
from .pruners import BasePruner
from .run import _Run
from .states import StudyDirection, _state, _states
from .trial import FrozenTrial, Trial

Metrics = List[Tuple[str, str]]


def _seconds(text: str) -> float:
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) + float("0" + text[19:].rstrip("Z"))


def _local(text: Optional[str]) -> Optional[datetime.datetime]:
    """A time of the API as Optuna has it: local, without a zone."""
    if not text:
        return None
    return datetime.datetime.fromtimestamp(_seconds(text))


def _ran(row: JSON) -> Optional[float]:
    """Seconds for which the attempts of a trial ran that has ended, without what it waited between them: what the page and
    `assay trials` show. None: it has not ended, or never ran."""
    ran = row.get("ran_ms")
    return ran / 1000 if ran is not None and row.get("finished_at") else None


def _key_of(row: JSON) -> str:
    """The key of a result: the sweep and the number of its trial where it ran. A known result has it from there."""
    key = (row.get("suggestion") or {}).get("key") if row.get("origin") == "known" else None
    return str(key) if key else f"{row['sweep']}/{row['number']}"


# Fields of a study that are not pickled.
_OF_THE_PROCESS = ("_connected", "_sampling", "_lock", "_first", "_records", "_own", "_curves", "_held", "_given_back", "_beating",
                   "_run", "_maker", "_unfinished")


class _StudyData:
    """The part of a Study that everything else stands on: what it holds, and the results."""

    def __init__(self, name: str, metrics: Metrics, options: JSON, address: Callable[[], _Address]) -> None:
        self.name, self.metrics = name, metrics
        self.sweep: Optional[str] = None
        self._options = options  # fields of the sweep document
        self._address = address
        self._connected: Optional[_Http] = None
        self._space: Dict[str, _Parameter] = {}
        self._is_explicit = False
        self._limit = TRIALS_MAX
        self.user_attrs: JSON = {}
        self._constraints_func: Optional[ConstraintsFunc] = None
        self._sampler: Optional[BaseSampler] = None  # of the user's own
        self._chosen: Any = None  # the sampler that the user named
        self._sampling = threading.RLock()  # a sampler or pruner of the user's own is asked by one thread at a time
        self._pruner: Optional[BasePruner] = None  # that is asked here
        self._lease = LEASE_S  # seconds after which the server gives away the trials of a program that is silent
        self._shared = False  # other programs of the same name work on it too (load_if_exists)
        self._before = 0  # trials that ran in sweeps which the study has moved on from
        self._generation = 0
        self._origins: Dict[str, Optional[str]] = {}  # of sweeps of the study: the one that it moved on from
        self._over: Set[str] = set()  # sweeps before the last one whose trials have ended, and whose results it has
        self._random = random.Random(options.get("search", {}).get("seed"))
        self._lock = threading.RLock()
        self._first: Optional[Trial] = None  # the trial whose suggestions make the space
        self._missing: Dict[str, _Parameter] = {}  # suggested, and not in the space of the sweep
        # Enqueued and known, before there is a sweep; whether only the program that makes the sweep adds it.
        self._waiting: List[Tuple[JSON, Optional[JSON], bool]] = []
        self._queued_attrs: List[Tuple[JSON, JSON]] = []  # enqueued params with the user_attrs of their trial
        self._fixed: Dict[Tuple[str, int], JSON] = {}  # enqueued values that the sweep has no parameters for
        self._records: Dict[Tuple[str, int], FrozenTrial] = {}  # of this process, by sweep and number
        self._own: List[FrozenTrial] = []  # the same, in the order of their ends
        self._curves: Dict[Tuple[str, int], Dict[int, float]] = {}  # of trials of other programs that have ended
        self._held: List[Trial] = []
        self._given_back: Dict[Tuple[str, int], Trial] = {}  # to the queue, and not run since
        self._beating: Optional[threading.Thread] = None
        self._run: Optional[_Run] = None
        self._maker = 0  # the process whose optimize() made the sweep; a child of it ends nothing
        self._unfinished = False  # an exception or stop() ended optimize() before its last trial

    def __getstate__(self) -> JSON:
        """What is pickled: not the token, the trials that run, nor the results, which the server has."""
        state = {name: value for name, value in vars(self).items() if name not in _OF_THE_PROCESS}
        if isinstance(self._address, functools.partial):
            server, profile, _, start = self._address.args
            state["_address"] = functools.partial(self._address.func, server, profile, None, start)
        return state

    def __setstate__(self, state: JSON) -> None:
        _StudyData.__init__(self, state["name"], state["metrics"], state["_options"], state["_address"])
        vars(self).update(state)

    @property
    def _http(self) -> _Http:
        with self._lock:
            if self._connected is None:
                self._connected = _Http(self._address())
            return self._connected

    @property
    def url(self) -> str:
        """The address of the sweep in the dashboard."""
        return f"{self._http.address.url}/#/sweeps/{self.sweep or ''}"

    def _is_feasible(self, metrics: Mapping[str, float]) -> bool:
        return all(c.get("min", -math.inf) <= metrics.get(c["metric"], math.nan) <= c.get("max", math.inf)
                   for c in self._options.get("constraints") or [])

    @property
    def trials(self) -> List[FrozenTrial]:
        """All trials of the study, also those of other programs, in the order of their numbers."""
        while True:
            with self._lock:
                sweep = self.sweep
                if sweep is None:
                    return self._own + self._unknown(len(self._own))
            answer = list(self._pages(self._trials_path(sweep)))
            with self._lock:
                if sweep == self.sweep:  # otherwise the space grew meanwhile
                    rows, others = self._results(sweep, answer)
                    return rows + others + self._unknown(len(rows) + len(others))

    def _unknown(self, known: int) -> List[FrozenTrial]:
        """Trials that the server does not know yet: those that run here, and those that wait. known: how many come before
        them. The caller holds the lock."""
        return []

    @staticmethod
    def _trials_path(sweep: str) -> str:
        return f"/v1/sweeps/{sweep}/trials?page_size=500&include=user_attrs"

    def _results(self, sweep: str, rows: Sequence[JSON]) -> Tuple[List[FrozenTrial], List[FrozenTrial]]:
        """The trials of the sweep, which the server listed as `rows`, and those of this process that are not among
        them. The caller holds the lock: a trial that ends meanwhile is not in both."""
        found = []
        for row in rows:
            record = self._records.get((sweep, row["number"]))
            if record is None:
                record = self._from_row(row)
            record.number = row["number"]
            found.append(record)
        seen = {id(r) for r in found}
        return found, [r for r in self._own if id(r) not in seen]

    def get_trials(self, deepcopy: bool = False, states: Optional[Sequence[Any]] = None) -> List[FrozenTrial]:
        """The trials in some states: TrialState.COMPLETE, "COMPLETE" or "completed", … ValueError for another word."""
        wanted = None if states is None else _states(states)
        return [t for t in self.trials if wanted is None or t.state in wanted]

    def _curve_of(self, row: JSON) -> Dict[int, float]:
        """The curve of a trial of another program; of one that has ended it is read once."""
        key = row["sweep"], row["number"]
        curve = self._curves.get(key)
        if curve is None:
            curve = self._read_curve(*key)
            if _state(row["state"]).is_finished():
                self._curves[key] = curve
        return curve

    def _read_curve(self, sweep: str, number: int) -> Dict[int, float]:
        """The reported values of the first objective."""
        path, curve, cursor = f"/v1/sweeps/{sweep}/trials/{number}/measurements", {}, ""  # type: str, Dict[int, float], str
        metric = self.metrics[0][0]
        while True:
            page = self._http.call("GET", f"{path}?metric={urllib.parse.quote(metric)}{cursor}")
            found = page["series"].get(metric, {"steps": [], "values": []})
            curve.update(zip(map(int, found["steps"]), map(float, found["values"])))
            if not page.get("next_cursor"):
                return curve
            cursor = "&cursor=" + urllib.parse.quote(page["next_cursor"])

    def _pages(self, path: str) -> Iterator[JSON]:
        cursor = ""
        while True:
            page = self._http.call("GET", path + cursor)
            for row in page["items"]:
                yield row
            if not page["next_cursor"]:
                return
            cursor = "&cursor=" + urllib.parse.quote(page["next_cursor"])

    def _from_row(self, row: JSON) -> FrozenTrial:
        metrics = {name: float(value) for name, value in (row.get("metrics") or {}).items()}
        params = {n: self._space[n].decode(v) if n in self._space else v for n, v in row["params"].items()}
        values = [metrics.get(name) if row["state"] in ("completed", "pruned") else None for name, _ in self.metrics]
        record = FrozenTrial(row["number"], row["state"], params, metrics, values, row.get("reason"),
                             row.get("feasible") is not False, _ran(row),
                             row.get("user_attrs"), row["sweep"])
        record.system_attrs = _constraints_in(metrics, self._options)
        record._own_key = _key_of(row)
        record._encoded = record._given = row["params"]
        record._asked = {n: (self._space[n], v) for n, v in params.items() if n in self._space}
        record.datetime_start, record.datetime_complete = _local(row.get("started_at")), _local(row.get("finished_at"))
        record._read_curve = lambda: self._curve_of(row)
        return record

    def _better(self, a: FrozenTrial, b: FrozenTrial, objective: int = 0) -> float:
        """Above 0 when a is better than b in an objective."""
        assert a.values is not None and b.values is not None
        x, y = a.values[objective], b.values[objective]
        return y - x if self.metrics[objective][1] == "minimize" else x - y

    def _candidates(self, trials: Optional[List[FrozenTrial]] = None) -> List[FrozenTrial]:
        trials = self.trials if trials is None else trials
        return [t for t in trials if t.state == "completed" and t.feasible and t.values is not None]

    @property
    def best_trial(self) -> FrozenTrial:
        """The best completed trial that satisfies the constraints; of equal ones the first. ValueError without one;
        RuntimeError with several objectives."""
        if len(self.metrics) > 1:
            raise RuntimeError("the study has several objectives: best_trials is its Pareto front")
        return self._best(self.trials)

    def _best(self, trials: List[FrozenTrial]) -> FrozenTrial:
        candidates = self._candidates(trials)
        if not candidates:
            raise ValueError(f"no trial of {self.name} is completed" +
                             (" and satisfies the constraints" if self._options.get("constraints") else ""))
        best = candidates[0]
        for t in candidates[1:]:
            if self._better(t, best) > 0:
                best = t
        return best

    @property
    def best_trials(self) -> List[FrozenTrial]:
        """The Pareto front: the completed trials that no other one beats in every objective."""
        all_of_them, objectives = self._candidates(), range(len(self.metrics))

        def beats(a: FrozenTrial, b: FrozenTrial) -> bool:
            signs = [self._better(a, b, i) for i in objectives]
            return min(signs) >= 0 and max(signs) > 0

        return [t for t in all_of_them if not any(beats(other, t) for other in all_of_them)]

    @property
    def best_value(self) -> float:
        return float(self.best_trial.value)  # type: ignore[arg-type]

    @property
    def best_params(self) -> JSON:
        return self.best_trial.params

    @property
    def direction(self) -> StudyDirection:
        if len(self.metrics) > 1:
            raise RuntimeError("the study has several objectives: directions has those of all")
        return self.directions[0]

    @property
    def directions(self) -> List[StudyDirection]:
        return [StudyDirection(goal) for _, goal in self.metrics]

    @property
    def metric_names(self) -> List[str]:
        return [name for name, _ in self.metrics]

    @property
    def study_name(self) -> str:
        return self.name

    def rows(self) -> List[JSON]:
        """A dict for each trial: number, state, the metrics, the parameters, duration. A parameter whose name is taken
        is params_NAME."""
        table = []
        for t in self.trials:
            row: JSON = {"number": t.number, "state": t.state, **{n: t.metrics.get(n) for n, _ in self.metrics}}
            row.update((n, v) for n, v in t.metrics.items())
            taken = set(row) | {"duration"}
            row.update((f"params_{n}" if n in taken else n, v) for n, v in t.params.items())
            row["duration"] = t.duration
            table.append(row)
        return table

    def frame(self) -> Any:
        """rows() as a pandas DataFrame, or as they are without pandas."""
        try:
            import pandas  # type: ignore[import]
        except ImportError:
            return self.rows()
        return pandas.DataFrame(self.rows())

    def trials_dataframe(self, attrs: Optional[Sequence[str]] = None, multi_index: bool = False) -> Any:
        """A pandas DataFrame with Optuna's columns: number, value, datetime_start, …, params_x, state ("COMPLETE"). attrs:
        attributes of the trials instead of these. multi_index: (params, x) in place of params_x."""
        import pandas  # type: ignore[import]
        trials = self.trials
        columns, rows = _optuna_table(trials, self.metric_names, attrs)
        table = pandas.DataFrame([[row.get(c) for c in columns] for row in rows],
                                 columns=pandas.MultiIndex.from_tuples(columns) if columns else None)
        if columns and not multi_index:
            table.columns = [_joined_name(c) for c in columns]
        return table

    def _repr_html_(self) -> str:
        return _html(self, self.trials)
