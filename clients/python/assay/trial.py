"""Trials."""
from __future__ import annotations

import datetime
import getpass
import itertools
import math
import os
import random
import re
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union, cast

from .address import _start_ticks
from .constants import FLUSH_S, JSON, STEP_MAX
from .errors import AssayError, SpaceError, _repr
from .distributions import BaseDistribution, _distribution
from .parameters import Choice, _choices, _Parameter, _range
from .states import _state

if TYPE_CHECKING:
    from .asking import _StudyTrials
    from .study import Study

_this_thread = threading.local()  # .trial: the trial whose objective this thread runs
_names = itertools.count()


def _client_name() -> str:
    """A name for an ask, of the form that `assay tell` on this machine knows as its user's own."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        user = f"uid{os.getuid()}"
    user, host = (re.sub(r"[^A-Za-z0-9._:-]", "_", s) for s in (user, socket.gethostname() or "localhost"))
    if not user[:1].isalnum():
        user = f"uid{os.getuid()}"
    return f"{user[:12]}@{host[:20]}-{os.getpid()}-{_start_ticks(os.getpid()):x}-{next(_names)}"


def _json_number(value: Any) -> Union[float, int, str]:
    number = float(value)
    return number if math.isfinite(number) else "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"


def _step(step: Any) -> int:
    """A step of measurements, which the server keeps in 64 bits. The result has the step after the last one."""
    try:
        whole = int(step)
        if whole != step or isinstance(step, bool) or not 0 <= whole <= STEP_MAX:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"step: found {_repr(step)[:200]}, expected a whole number from 0 to 2^63 - 2") from None
    return whole


def _metric_name(name: Any) -> str:
    if not isinstance(name, str) or not re.match(r"[A-Za-z_][A-Za-z0-9_./@()-]{0,62}\Z", name):
        raise ValueError(f"metric {_repr(name)[:200]}: expected a name of 1 to 63 letters, digits, _ . - / @ ( and ), "
                         "which begins with a letter or _")
    return name


def _measured(name: str, value: Any) -> float:
    """A measured value. It may be infinite or NaN: then the server keeps this for curves, and a result fails its trial."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name}: found {_repr(value)[:200]}, expected a number") from None


class _Suggests:
    """Optuna's names of what an objective asks for, for all kinds of trials."""

    def _suggest(self, p: _Parameter) -> Any:
        """The value of a parameter."""
        raise NotImplementedError

    def suggest_float(self, name: str, low: float, high: float, *, step: Optional[float] = None, log: bool = False) -> float:
        """A number from low to high, both included; on a log scale; or low, low + step, …"""
        return float(self._suggest(_range(name, "float", low, high, step, log)))

    def suggest_int(self, name: str, low: int, high: int, step: int = 1, log: bool = False) -> int:
        """A whole number from low to high, both included; on a log scale; or low, low + step, …"""
        return int(self._suggest(_range(name, "int", low, high, step, log)))

    def suggest_categorical(self, name: str, choices: Sequence[Choice]) -> Any:
        """One of the choices. Those that JSON does not have are compared by their repr()."""
        return self._suggest(_choices(name, choices))

    def suggest_uniform(self, name: str, low: float, high: float) -> float:
        return self.suggest_float(name, low, high)

    def suggest_loguniform(self, name: str, low: float, high: float) -> float:
        return self.suggest_float(name, low, high, log=True)

    def suggest_discrete_uniform(self, name: str, low: float, high: float, q: float) -> float:
        return self.suggest_float(name, low, high, step=q)


def _given_value(values: Mapping[str, Any], p: _Parameter, owner: str) -> Any:
    """The value that a trial was given of a parameter. SpaceError: it has none, or one that the objective does not take."""
    if p.name not in values:
        raise SpaceError(f"parameter '{p.name}': the {owner} has no value of it")
    value = values[p.name]
    if not p.contains(value):
        raise SpaceError(f"parameter '{p.name}': found {_repr(value)}, expected {p.described()}"[:600])
    return p.decode(p.encode(value))


class FrozenTrial(_Suggests):
    """A trial as it was when it was read.

    number: its number in the sweep `sweep`. state: queued, running, paused, completed, pruned, failed or cancelled; pruned
    is a trial whose objective raised TrialPruned, or that early stopping ended. params: what the objective suggested.
    metrics: the latest value of each metric; value and values: those of the objectives, of a pruned trial the last that it
    reported; None where there is none. It may be run again: objective(study.best_trial) has its params.
    feasible: whether it satisfies the study's constraints. duration: seconds for which its attempts ran, without what it
    waited between them, or None; datetime_start and datetime_complete: local times, or None. user_attrs: what its program kept with it. system_attrs: with a
    constraints_func "constraints" has the values that it returned."""

    def __init__(self, number: int, state: Any, params: JSON, metrics: Dict[str, float], values: List[Optional[float]],
                 reason: Optional[str] = None, feasible: bool = True, duration: Optional[float] = None,
                 user_attrs: Optional[JSON] = None, sweep: str = "") -> None:
        self.number, self.state, self.params, self.metrics = number, _state(state), params, metrics
        has_all = all(v is not None and not math.isnan(v) for v in values)
        self.values = cast(List[float], list(values)) if has_all else None
        self.reason, self.feasible = reason, feasible
        self.duration, self.user_attrs, self.sweep = duration, dict(user_attrs or {}), sweep
        self.system_attrs: JSON = {}
        self._own_key = f"{sweep}/{number}"  # where it ran; its number changes when the study moves on to another sweep
        self._encoded: JSON = {}  # what was suggested, as the server has it
        self._given: JSON = {}  # what the server suggested, whether the objective asked for it or not
        self._asked: Dict[str, Tuple[_Parameter, Any]] = {}
        self._curve: Optional[Dict[int, float]] = None
        self._read_curve: Optional[Callable[[], Dict[int, float]]] = None
        self.datetime_start: Optional[datetime.datetime] = None
        self.datetime_complete: Optional[datetime.datetime] = None

    def _finite_metrics(self) -> Dict[str, float]:
        """Its metrics as a known result has them."""
        return {n: v for n, v in self.metrics.items() if math.isfinite(v)}

    @property
    def value(self) -> Optional[float]:
        return None if self.values is None else self.values[0]

    def _suggest(self, p: _Parameter) -> Any:
        return _given_value(self.params, p, f"trial {self.number}")

    def report(self, value: Any = None, step: Optional[int] = None, **metrics: Any) -> None:
        """Nothing: the trial has ended."""

    def should_prune(self) -> bool:
        """No."""
        return False

    @property
    def distributions(self) -> Dict[str, BaseDistribution]:
        """Of each of the params."""
        return {name: _distribution(p) for name, (p, _) in self._asked.items()}

    @property
    def intermediate_values(self) -> Dict[int, float]:
        """What was reported of the first objective, by step; of a trial of another program it is read when it is asked
        for."""
        if self._curve is None:
            self._curve = self._read_curve() if self._read_curve is not None else {}
        return self._curve

    @property
    def last_step(self) -> Optional[int]:
        return max(self.intermediate_values, default=None)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, FrozenTrial) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash((self._own_key, self.number))

    def __lt__(self, other: FrozenTrial) -> bool:
        return self.number < other.number

    def _content(self) -> Tuple[Any, ...]:
        return self._own_key, self.number, self.state, self.params, self.values, self.user_attrs

    def __getstate__(self) -> JSON:
        return {**vars(self), "_curve": self.intermediate_values, "_read_curve": None}

    def __repr__(self) -> str:
        return f"FrozenTrial(number={self.number}, state='{self.state}', values={self.values}, params={self.params})"


class Trial(_Suggests):
    """What an objective gets: it names the values to try and takes what was measured.

    number: of the trial in its sweep; 0 for the first trial of a new study. params: the parameters so far, or all of
    them when the study was given its space. seed: for the trial's own random numbers, the same in each attempt. One
    thread at a time."""

    def __init__(self, study: _StudyTrials, sweep: Optional[str], item: Optional[JSON], client: str,
                 fixed: Optional[JSON] = None) -> None:
        self._study, self._sweep, self._client = study, sweep, client
        self.number = 0
        self.seed = random.SystemRandom().getrandbits(63)
        self.attempt = 1
        self.user_attrs: JSON = {}
        self.system_attrs: JSON = {}  # "constraints": what the constraints_func of the study returned
        self._given: JSON = {}
        self._relative: Mapping[str, Any] = {}  # values of the study's own sampler
        self._fixed = dict(fixed or {})  # values of an enqueued configuration for names that the sweep does not have
        self._asked: Dict[str, Tuple[_Parameter, Any]] = {}
        self._steps: Dict[int, Dict[str, float]] = {}
        self._unsent: Dict[int, Dict[str, float]] = {}
        self._begin = self._sent = time.monotonic()
        self.datetime_start = datetime.datetime.now()
        self._sending = threading.Lock()
        self._lost: Optional[str] = None
        self._is_asked = False  # by ask(): no thread of optimize() runs it
        self._unsent_attrs: Set[str] = set()
        self._directive: JSON = {}  # what early stopping decided: its action and the reason
        self._process = os.getpid()
        if item is not None:
            self._adopt(item)

    def _adopt(self, item: JSON) -> None:
        """Be the trial that the server handed out."""
        self.number, self.seed, self.attempt = item["number"], int(item["seed"]), item["attempt"]
        self._sweep, self._given = item["sweep"], item["params"]
        if self._study._is_explicit:
            for name, value in self._given.items():
                p = self._study._space[name]
                self._asked[name] = (p, p.decode(value))

    def _suggest(self, p: _Parameter) -> Any:
        if p.name in self._asked:
            old, value = self._asked[p.name]
            self._check_same(p, old, "in this trial")
            return value
        known = self._study._known_parameter(p.name)
        if known is not None:
            self._check_same(p, known, "before")
        if p.name in self._given:
            value = p.decode(self._given[p.name])
        elif self._study._is_explicit and (known is None or self._study._sampler is None):
            why = f"its condition is {known.spec.get('when')}" if known else "space= does not have it"
            raise SpaceError(f"parameter '{p.name}' is not active in trial {self.number}: {why}")
        else:
            value = p.decode(p.encode(self._fixed[p.name])) if p.name in self._fixed else self._study._draw(self, p)
        self._asked[p.name] = (p, value)
        return value

    def _check_same(self, p: _Parameter, old: _Parameter, when: str) -> None:
        if not p.same(old):
            raise SpaceError(f"parameter '{p.name}': found {p.described()}, expected {old.described()} as {when}; "
                             "a range may not depend on anything (use another name, or a fraction of a fixed range)")

    @property
    def study(self) -> Study:
        return cast("Study", self._study)

    @property
    def distributions(self) -> Dict[str, BaseDistribution]:
        """Of what was suggested so far."""
        return {name: _distribution(p) for name, (p, _) in self._asked.items()}

    @property
    def params(self) -> JSON:
        """What was suggested so far; what the server suggested, if the objective did not ask yet."""
        if self._asked:
            return {name: value for name, (_, value) in self._asked.items()}
        return {n: self._study._space[n].decode(v) for n, v in self._given.items()}

    def __getitem__(self, name: str) -> Any:
        if name in self._asked:
            return self._asked[name][1]
        if name in self._given:
            return self._study._space[name].decode(self._given[name])
        raise KeyError(f"parameter '{name}' has no value in trial {self.number}")

    def set_user_attr(self, key: str, value: Any) -> None:
        """Keep a value with the trial, on the server: JSON of at most 16 KiB, for 64 names and 64 KiB in all. What is
        something else is kept in this process alone. It is sent with the reports, at the latest with the result."""
        self.user_attrs[key] = value
        self._unsent_attrs.add(key)

    def report(self, value: Any = None, step: Optional[int] = None, **metrics: Any) -> None:
        """Record measurements at a step: `value` of the first objective, others by name. The step is a whole number
        from 0 to 2^63 - 2; None is the next one. What was recorded at a step does not change. Sent every half second."""
        if value is not None:
            metrics = {self._study.metrics[0][0]: value, **metrics}
        step = max(self._steps, default=-1) + 1 if step is None else _step(step)
        if not metrics:
            raise ValueError("report: expected a value or metrics by name")
        numbers = {_metric_name(name): _measured(name, number) for name, number in metrics.items()}
        have = self._steps.setdefault(step, {})
        with self._sending:
            for name, number in numbers.items():
                if name not in have:
                    have[name] = number
                    self._unsent.setdefault(step, {})[name] = number
        if self._sweep is None:
            self._study._begin(self)
        if time.monotonic() - self._sent >= FLUSH_S or len(self._unsent) >= 500:
            self._send()

    def _send(self) -> None:
        """Send the reports that wait."""
        with self._sending:
            unsent, self._unsent = self._unsent, {}
            names, self._unsent_attrs = self._unsent_attrs, set()
        if names and self._lost is None:
            self._study._keep_attrs(f"{self._sweep}/trials/{self.number}", self.user_attrs, names)
        items = [{"step": s, "metrics": {n: _json_number(v) for n, v in m.items()}} for s, m in sorted(unsent.items())]
        self._sent = time.monotonic()
        for first in range(0, len(items), 1000):
            if self._lost is None:
                answer = self._tell("measurements", items=items[first:first + 1000])
                for directive in (answer or {}).get("directives", ()):
                    if directive["action"] in ("prune", "pause"):
                        self._directive = directive

    def _tell(self, operation: str, **body: Any) -> Any:
        """One operation on this trial. A 409 of a trial that is no longer ours is noted, and answered with None. A program
        that was stopped for longer than its lease goes on while nobody else has begun its trial: the server still takes
        the result."""
        path = f"/v1/sweeps/{self._sweep}/suggestions/{self.number}/{operation}"
        try:
            return self._study._http.call("POST", path, {"client": self._client, "attempt": self.attempt, **body})
        except AssayError as e:
            if e.status != 409 or e.code != "stale_attempt":
                raise
            row = self._study._http.call("GET", f"/v1/sweeps/{self._sweep}/trials/{self.number}")
            if operation == "complete" or row["state"] != "queued":
                self._lost = str(e)
                if row["attempt"] > self.attempt:
                    self._lost += f" (this program was silent for more than {self._study._lease:g} s: was it stopped?)"
            return None

    def should_prune(self) -> bool:
        """Should the objective stop this trial, by raising TrialPruned? True once the early_stopping of the study has
        decided so by what was reported, or its pruner says so now, and once the service has taken the trial away: it was
        cancelled by hand, or its sweep was. With early_stopping what was reported is sent at once, and the answer is the
        decision."""
        at_once = "early_stopping" in self._study._options
        if self._sweep is not None and self._unsent and (at_once or time.monotonic() - self._sent >= FLUSH_S):
            self._send()
        return self._lost is not None or bool(self._directive) or self.study._prunes(self)

    def _why_pruned(self, otherwise: str) -> str:
        return self._lost or str(self._directive.get("reason") or otherwise)

    should_stop = should_prune
