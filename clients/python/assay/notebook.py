"""A study for a notebook: HTML without scripts and style sheets."""
from __future__ import annotations

import html
from typing import TYPE_CHECKING, Dict, List, Optional

from .trial import FrozenTrial

if TYPE_CHECKING:
    from .results import _StudyData


class _Html:
    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text


def _curve(study: _StudyData, trials: List[FrozenTrial]) -> str:
    """The best value after each trial, as an inline picture."""
    best: Optional[FrozenTrial] = None
    heights: List[float] = []
    for t in study._candidates(trials):
        if best is None or study._better(t, best) > 0:
            best = t
        heights.append(float(best.values[0]))  # type: ignore[index]
    if len(heights) < 2:
        return ""
    low, high = min(heights), max(heights)
    points = " ".join(f"{300 * i / (len(heights) - 1):.1f},{56 - 52 * ((h - low) / (high - low) if high > low else 0.5):.1f}"
                      for i, h in enumerate(heights))
    return (f'<svg width="304" height="60" role="img" aria-label="best value by trial"><polyline points="{points}" '
            'fill="none" stroke="currentColor" stroke-width="1.5"/></svg>')


def _html(study: _StudyData, trials: List[FrozenTrial]) -> str:
    """A study for a notebook: counts, the best trials, the best value by trial. No scripts, no style sheets."""
    counts: Dict[str, int] = {}
    for t in trials:
        counts[t.state] = counts.get(t.state, 0) + 1
    head = f"<b>{html.escape(study.name)}</b>: " + html.escape(", ".join(f"{n} {state}" for state, n in counts.items()) or "no trials")
    if study.sweep and study._connected:
        head += f' · <a href="{html.escape(study.url)}">dashboard</a>'
    candidates = study._candidates(trials)
    ordered = sorted(candidates, key=lambda t: float(t.values[0]),  # type: ignore[index]
                     reverse=study.metrics[0][1] == "maximize")[:5]
    names = list(dict.fromkeys(n for t in ordered for n in t.params))
    cells = ["number"] + [n for n, _ in study.metrics] + names
    rows = ["".join(f"<th>{html.escape(c)}</th>" for c in cells)]
    for t in ordered:
        values = [str(t.number)] + [f"{v:.6g}" for v in t.values or []]
        values += [f"{t.params[n]:.6g}" if isinstance(t.params.get(n), float) else str(t.params.get(n, "")) for n in names]
        rows.append("".join(f"<td>{html.escape(v)}</td>" for v in values))
    table = "<table>" + "".join(f"<tr>{r}</tr>" for r in rows) + "</table>" if ordered else ""
    return f"<div>{head}<br>{_curve(study, trials)}{table}</div>"
