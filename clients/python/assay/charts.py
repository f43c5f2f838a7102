"""Charts of a study as data, which visualization.py draws: what is on the dashboard's page of the sweep."""
from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

from .errors import _repr
from .importance import get_param_importances
from .states import TrialState
from .study import Study
from .trial import FrozenTrial

Target = Callable[[FrozenTrial], float]


class _Series(NamedTuple):
    """kind: points, line, bars (horizontal: names along y), or spans (from x to x + z). z: a colour for each point."""

    kind: str
    name: str
    x: Sequence[Any]
    y: Sequence[Any]
    z: Optional[Sequence[float]] = None


class _Panel(NamedTuple):
    x: str
    y: str
    series: List[_Series]
    log_x: bool = False
    log_y: bool = False


class _Chart(NamedTuple):
    title: str
    panels: List[_Panel]


def _completed(study: Study, target: Optional[Target]) -> List[Tuple[FrozenTrial, float]]:
    """The completed trials with the value that is drawn."""
    if target is None and len(study.metrics) > 1:
        raise ValueError("target: the study has several objectives: say which, such as target=lambda t: t.values[0]")
    done = [t for t in study.trials if t.state == TrialState.COMPLETE and t.values is not None]
    return [(t, float(target(t) if target is not None else t.values[0])) for t in done]  # type: ignore[index]


def _names_of(done: Sequence[Tuple[FrozenTrial, float]], params: Optional[Sequence[str]]) -> List[str]:
    known = list(dict.fromkeys(n for t, _ in done for n in t.params))
    for name in params or ():
        if name not in known:
            raise ValueError(f"params: found {_repr(name)}, expected some of {', '.join(known)}")
    return list(params) if params else known


def _is_log(study: Study, name: str) -> bool:
    return name in study._space and study._space[name].spec.get("scale") == "log"


def _drawable(value: Any) -> Any:
    """Numbers as they are, all else as a text."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else _repr(value)


def _history(study: Study, target: Optional[Target], target_name: str) -> _Chart:
    done = _completed(study, target)
    series = [_Series("points", target_name, [t.number for t, _ in done], [v for _, v in done])]
    if target is None:
        best: List[float] = []
        for _, v in done:
            best.append(v if not best else (min if study.metrics[0][1] == "minimize" else max)(best[-1], v))
        series.append(_Series("line", "best value", [t.number for t, _ in done], best))
    return _Chart("Optimization history", [_Panel("trial", target_name, series)])


def _slices(study: Study, params: Optional[Sequence[str]], target: Optional[Target], target_name: str) -> _Chart:
    done = _completed(study, target)
    panels = []
    for name in _names_of(done, params):
        mine = [(t, v) for t, v in done if name in t.params]
        panels.append(_Panel(name, target_name, [_Series("points", name, [_drawable(t.params[name]) for t, _ in mine],
                                                         [v for _, v in mine], [float(t.number) for t, _ in mine])],
                             _is_log(study, name)))
    return _Chart("Slices", panels)


def _pairs(title: str, study: Study, params: Optional[Sequence[str]], target: Optional[Target], ranked: bool) -> _Chart:
    """Each pair of parameters, coloured by value, or by the rank of the value."""
    done = _completed(study, target)
    names, panels = _names_of(done, params), []
    order = {t.number: float(i) for i, (t, _) in enumerate(sorted(done, key=lambda item: item[1]))}
    for i, a in enumerate(names):
        for b in names[i + 1:]:
            mine = [(t, v) for t, v in done if a in t.params and b in t.params]
            panels.append(_Panel(a, b, [_Series("points", f"{a}, {b}", [_drawable(t.params[a]) for t, _ in mine],
                                                [_drawable(t.params[b]) for t, _ in mine],
                                                [order[t.number] if ranked else v for t, v in mine])],
                                 _is_log(study, a), _is_log(study, b)))
    return _Chart(title, panels)


def _parallel(study: Study, params: Optional[Sequence[str]], target: Optional[Target], target_name: str) -> _Chart:
    """A line for each trial over the value and the parameters, each axis from 0 to 1."""
    done = _completed(study, target)
    names = _names_of(done, params)

    def place(values: Sequence[Any]) -> List[Optional[float]]:
        numbers = [v for v in values if v is not None]
        if not all(isinstance(v, (int, float)) for v in numbers):
            order = {v: float(i) for i, v in enumerate(dict.fromkeys(numbers))}
            return place([None if v is None else order[v] for v in values])
        low, high = min(numbers, default=0), max(numbers, default=1)
        return [None if v is None else (v - low) / (high - low) if high > low else 0.5 for v in values]

    columns = [place([v for _, v in done])]
    columns += [place([_drawable(t.params[n]) if n in t.params else None for t, _ in done]) for n in names]
    axes = [target_name, *names]
    lines = [_Series("line", f"trial {t.number}", [a for a, c in zip(axes, columns) if c[i] is not None],
                     [c[i] for c in columns if c[i] is not None]) for i, (t, _) in enumerate(done)]
    return _Chart("Parallel coordinates", [_Panel("", "place in the range", lines)])


def _importances(study: Study, params: Optional[Sequence[str]]) -> _Chart:
    shares = get_param_importances(study, params=params)
    names = list(shares)[::-1]
    return _Chart("Importance of parameters", [_Panel("share", "", [_Series("bars", "total", [shares[n] for n in names], names)])])


def _distribution_of_values(studies: Sequence[Study], target: Optional[Target], target_name: str) -> _Chart:
    series = []
    for study in studies:
        values = sorted(v for _, v in _completed(study, target))
        series.append(_Series("line", study.name, values, [(i + 1) / len(values) for i in range(len(values))]))
    return _Chart("Empirical distribution", [_Panel(target_name, "share of trials", series)])


def _curves(study: Study) -> _Chart:
    series = [_Series("line", f"trial {t.number}", list(t.intermediate_values), list(t.intermediate_values.values()))
              for t in study.trials if t.intermediate_values]
    return _Chart("Intermediate values", [_Panel("step", study.metrics[0][0], series)])


def _front(study: Study, target_names: Optional[Sequence[str]]) -> _Chart:
    if len(study.metrics) != 2:
        raise ValueError(f"a Pareto front is drawn of two objectives; the study has {len(study.metrics)}")
    names = list(target_names or study.metric_names)
    front = {t.number for t in study.best_trials}
    done = study._candidates()
    series = [_Series("points", label, [t.values[0] for t in done if (t.number in front) == inside],
                      [t.values[1] for t in done if (t.number in front) == inside])
              for label, inside in (("trials", False), ("best trials", True))]
    return _Chart("Pareto front", [_Panel(names[0], names[1], series)])


def _timeline(study: Study) -> _Chart:
    """When each trial ran, in seconds since the first began."""
    timed = [t for t in study.trials if t.datetime_start is not None and t.datetime_complete is not None]
    first = min((t.datetime_start for t in timed if t.datetime_start), default=None)
    series = []
    for state in TrialState:
        mine = [t for t in timed if t.state == state]
        if mine and first is not None:
            starts = [(t.datetime_start - first).total_seconds() for t in mine if t.datetime_start]
            lasts = [(t.datetime_complete - t.datetime_start).total_seconds() for t in mine
                     if t.datetime_complete and t.datetime_start]
            series.append(_Series("spans", str(state), starts, [t.number for t in mine], lasts))
    return _Chart("Timeline", [_Panel("seconds", "trial", series)])
