"""Making a study."""
from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Tuple, Type, Union

from .address import _find
from .constants import JSON, LEASE_S
from .constraints import ConstraintsFunc, _check_free_names
from .errors import AssayError, _repr
from .messages import _warn
from .methods import _Sampler, _sampler_of
from .own_sampler import BaseSampler
from .pruners import BasePruner, HyperbandPruner, NopPruner
from .results import Metrics
from .run import Callback
from .study import Study
from .trial import Trial


def _goals(direction: Optional[str], directions: Optional[Sequence[str]], metric: Union[str, Sequence[str], None],
           metrics: Optional[Mapping[str, str]]) -> Metrics:
    if metrics is not None:
        if direction or directions or metric:
            raise ValueError("metrics: it takes the place of metric, direction and directions")
        pairs = list(metrics.items())
    elif directions is not None:
        names = list(metric) if metric is not None and not isinstance(metric, str) else \
            [f"value_{i}" for i in range(len(directions))] if len(directions) > 1 else [metric or "value"]
        pairs = list(zip(map(str, names), (getattr(d, "name", d) for d in directions)))
        if direction or len(names) != len(directions):
            raise ValueError(f"directions: found {len(directions)} for {len(names)} metrics" + (" and direction" if direction else ""))
    else:
        if metric is not None and not isinstance(metric, str):
            raise ValueError("metric: found a list, expected a name; with several, give directions or metrics")
        pairs = [(metric or "value", getattr(direction, "name", direction) or "minimize")]
    for name, goal in pairs:
        if str(goal).lower() not in ("minimize", "maximize"):
            raise ValueError(f"direction of {name}: found {goal!r}, expected minimize or maximize")
    return [(name, str(goal).lower()) for name, goal in pairs]


def _slug(name: Optional[str]) -> str:
    """A name that a sweep may have; by default that of the program."""
    if not name:
        name = os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0]
        name = "notebook" if name in ("ipykernel_launcher", "colab_kernel_launcher") else name
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:60] or "study"


def create_study(*, study_name: Optional[str] = None, direction: Optional[str] = None,
                 directions: Optional[Sequence[str]] = None, metric: Union[str, Sequence[str], None] = None,
                 metrics: Optional[Mapping[str, str]] = None, space: Optional[Mapping[str, Any]] = None,
                 method: str = "gp", seed: Optional[int] = None, constraints: Sequence[Mapping[str, Any]] = (),
                 parameter_constraints: Sequence[str] = (), forbidden: Sequence[Mapping[str, Any]] = (),
                 tags: Sequence[str] = (), limits: Optional[Mapping[str, Any]] = None,
                 early_stopping: Optional[Mapping[str, Any]] = None, load_if_exists: bool = False,
                 noise: Optional[str] = None, lease: Optional[float] = None, constraints_func: Optional[ConstraintsFunc] = None,
                 server: Optional[str] = None, profile: Optional[str] = None, token: Optional[str] = None,
                 start: bool = True, **ignored: Any) -> Study:
    """A new study. Nothing is sent before its first trial.

    study_name: of the sweep; the server adds -2, -3, … to a name that is taken. direction, directions: minimize
    (default) or maximize, for each objective. metric: their names ("value", "value_0", …); or metrics, both at once:
    {"error": "minimize", "speed": "maximize"}. space: {name: (low, high), (low, high, "log"), a list of choices, an
    entry of a sweep document or an Optuna distribution}; None: what the objective suggests. method, seed, constraints,
    parameter_constraints, forbidden, tags, limits, early_stopping: fields of the sweep document (docs/sweep.md).
    early_stopping, such as {"method": "asha", "max_steps": 81}, ends trials by what they report, where their objective asks
    should_prune(). noise: "none" says that values are exact. load_if_exists: work
    on the sweep of this name, if there is one. lease: seconds (60) after which the server gives the trials of this program
    to others when it is silent; a thread says every quarter of it, at most every 15 s, that it lives.
    constraints_func: called with each trial that completed or was pruned; the trial is feasible when every number that it
    returns is at most 0. server, profile, token: see docs/python.md; start: start `assay up`
    when no server is known. Optuna's storage is accepted and has no effect. A pruner of assay.pruners, or one of your own
    (pruners.BasePruner), is asked by should_prune(); HyperbandPruner is early_stopping with max_resource, and has no effect
    without. A sampler of assay.samplers chooses method, seed and constraints_func; GridSampler, BruteForceSampler and one
    of your own (samplers.BaseSampler) choose the values; others have no effect."""
    for field in set(ignored) - {"storage", "sampler", "pruner"}:
        raise TypeError(f"create_study() has no argument '{field}'")
    chosen = sampler = ignored.pop("sampler", None)
    if isinstance(sampler, _Sampler):
        method, seed = sampler.method, sampler.seed if seed is None else seed
        constraints_func = constraints_func or sampler.constraints_func
    elif isinstance(sampler, BaseSampler):
        method = "random"  # the service does not search
    elif sampler is not None:
        ignored["sampler"] = sampler
    pruner, rule = _pruning(ignored)
    early_stopping = early_stopping or rule
    if any(v is not None for v in ignored.values()):
        _warn(f"{', '.join(sorted(ignored))}: no effect here, the service has its own")
    if (parameter_constraints or forbidden) and space is None:
        raise ValueError("parameter_constraints and forbidden need space=: they name parameters before the first trial")
    goals = _goals(direction, directions, metric, metrics)
    options: JSON = {"search": {"method": method, **({} if seed is None else {"seed": int(seed)})},
                     "constraints": [dict(c) for c in constraints], "parameter_constraints": list(parameter_constraints),
                     "forbidden": [dict(f) for f in forbidden], "tags": list(tags), "limits": dict(limits or {}), "noise": noise}
    if not isinstance(early_stopping or {}, Mapping):
        raise ValueError(f"early_stopping: found {_repr(early_stopping)[:200]}, expected a dictionary such as "
                         "{'method': 'asha', 'max_steps': 81}")
    if early_stopping:
        options["early_stopping"] = dict(early_stopping)

    study = Study(_slug(study_name), goals, options, functools.partial(_find, server, profile, token, start))
    study._lease = _lease_of(lease)
    study._sampler, study._pruner, study._chosen = _own_sampler(sampler), pruner, chosen or _sampler_of(method, seed)
    if constraints_func is not None:
        _check_free_names([name for name, _ in goals] + [str(c.get("metric")) for c in constraints])
        study._constraints_func = constraints_func
    if space is not None:
        study._use_space(space)
    if load_if_exists:
        study._shared = True
        with contextlib.suppress(_NoSuchSweep):
            _load(study, study_name or study.name)
    return study


def _pruning(arguments: JSON) -> Tuple[Optional[BasePruner], Optional[JSON]]:
    """What the pruner among the arguments is here: one that the study asks, or a rule for early_stopping. One without
    effect stays among them."""
    pruner = arguments.get("pruner")
    rule = pruner._early_stopping() if isinstance(pruner, BasePruner) else None
    if not isinstance(pruner, BasePruner) or (isinstance(pruner, HyperbandPruner) and rule is None):
        return None, None
    del arguments["pruner"]
    return (None if rule is not None or isinstance(pruner, NopPruner) else pruner), rule


def _own_sampler(sampler: Any) -> Optional[BaseSampler]:
    """The sampler, if it chooses the values itself."""
    return sampler if isinstance(sampler, BaseSampler) and not isinstance(sampler, _Sampler) else None


def _lease_of(lease: Optional[float]) -> float:
    """The server takes 1 s to 7 days."""
    if lease is None:
        return LEASE_S
    if isinstance(lease, bool) or not isinstance(lease, (int, float)) or not 1 <= lease <= 7 * 86400:
        raise ValueError(f"lease: found {lease!r}, expected seconds from 1 to {7 * 86400}")
    return float(lease)


class _NoSuchSweep(AssayError, KeyError):
    __str__ = Exception.__str__


def _load(study: Study, sweep: str) -> None:
    """Make a study that of a sweep which the server has."""
    try:
        found = study._get(sweep)
    except AssayError as e:
        if e.status != 404:
            raise
        raise _NoSuchSweep(str(e), e.status, e.code) from None
    study._join(found)
    study.name = found["name"]
    while study._follow():  # where its space grew
        pass


def load_study(study_name: str, storage: Any = None, sampler: Any = None, pruner: Any = None, *,
               constraints_func: Optional[ConstraintsFunc] = None, server: Optional[str] = None, profile: Optional[str] = None,
               token: Optional[str] = None) -> Study:
    """The study of a sweep that the server has, by its id: to read its trials, or to go on with it. Its optimize()
    without n_trials runs what is left of the sweep's limit, with the constraints_func of the program that made it.
    A sampler that chooses the values itself, and a pruner that is asked by should_prune(), are asked in this program too.
    What the sweep has (method, early_stopping) stays, and storage has no effect. AssayError with status 404 when there is
    none."""
    study = Study(study_name, [("value", "minimize")], {}, functools.partial(_find, server, profile, token, False))
    study._sampler, study._pruner = _own_sampler(sampler), _pruning({"pruner": pruner})[0]
    study._constraints_func = constraints_func
    _load(study, study_name)
    search = study._options.get("search", {})
    study._chosen = sampler or _sampler_of(search.get("method", "gp"), search.get("seed"))
    return study


def optimize(objective: Callable[[Trial], Any], space: Optional[Mapping[str, Any]] = None, n_trials: Optional[int] = 30, *,
             name: Optional[str] = None, timeout: Optional[float] = None, n_jobs: int = 1,
             catch: Union[Type[BaseException], Iterable[Type[BaseException]]] = (),
             callbacks: Optional[Sequence[Callback]] = None, show_progress_bar: Optional[bool] = None, batch: int = 1,
             enqueue: Sequence[Mapping[str, Any]] = (), load_if_exists: bool = False, **study: Any) -> Study:
    """Search: run `objective` n_trials times, each time with values that the service suggests, and return the study.

    The objective gets a Trial and returns a number (or one for each objective, or {metric: number}). `space` is
    optional: without it, what the objective suggests in its trials is the space. name: of the sweep; with
    load_if_exists a program that was started again, or a second one, goes on with the sweep of that name, and n_trials
    is then its total. enqueue: configurations to run first. The other arguments are those of Study.optimize() and
    create_study(): direction="maximize", metric="accuracy", seed=…, constraints=…, server=…, …"""
    made = create_study(study_name=name, space=space, load_if_exists=load_if_exists, **study)
    for params_ in enqueue if made.sweep is None else ():
        made._waiting.append((dict(params_), None, True))
    goes_on = made.sweep is not None
    made.optimize(objective, None if goes_on else n_trials, timeout, n_jobs, catch, callbacks, show_progress_bar, batch,
                  total=n_trials if goes_on else None)
    return made
