"""Plots by Optuna's names: with plotly where it is installed (a Figure), else with matplotlib. Those of
visualization.matplotlib give its axes, or an array of them for several panels, as Optuna's do; the others always give
something with show()."""
from __future__ import annotations

import importlib.util
import math
from typing import Any, Callable, Dict, Optional, Sequence, Union

from .charts import (Target, _Chart, _curves, _distribution_of_values, _front, _history, _importances, _pairs, _Panel, _parallel,
                     _slices, _timeline)
from .errors import AssayError
from .study import Study


def is_available() -> bool:
    """Is plotly or matplotlib installed?"""
    return any(importlib.util.find_spec(name) is not None for name in ("plotly", "matplotlib"))


class _Drawn:
    """A chart that matplotlib drew, where a program expects plotly's: figure and axes are matplotlib's."""

    def __init__(self, axes: Any) -> None:
        self.axes = axes
        self.figure = (axes if hasattr(axes, "get_figure") else axes[0][0]).get_figure()

    def show(self, *ignored: Any, **also_ignored: Any) -> None:
        """Show the figures in windows, or in the notebook. The arguments of plotly's have no effect."""
        from matplotlib import pyplot  # type: ignore[import]
        pyplot.show()

    def write_image(self, file: Any, format: Optional[str] = None) -> None:
        """Write the figure to a file; the format is that of its name if it is not said."""
        self.figure.savefig(file, format=format)


def _draw(chart: _Chart, with_matplotlib: bool = False) -> Any:
    if not with_matplotlib and importlib.util.find_spec("plotly") is not None:
        return _with_plotly(chart)
    if importlib.util.find_spec("matplotlib") is not None:
        return _with_matplotlib(chart) if with_matplotlib else _Drawn(_with_matplotlib(chart))
    raise AssayError("a plot needs plotly or matplotlib, and neither is installed")


def _with_matplotlib(chart: _Chart) -> Any:
    from matplotlib import pyplot  # type: ignore[import]
    columns = max(1, math.ceil(math.sqrt(len(chart.panels))))
    rows = max(1, math.ceil(len(chart.panels) / columns))
    figure, grid = pyplot.subplots(rows, columns, squeeze=False, figsize=(6.4 * columns, 4.8 * rows))
    figure.suptitle(chart.title)
    for axes, panel in zip(grid.flat, chart.panels):
        _panel_with_matplotlib(axes, panel)
    for axes in list(grid.flat)[len(chart.panels):]:
        axes.set_visible(False)
    return grid[0][0] if len(chart.panels) <= 1 else grid


def _panel_with_matplotlib(axes: Any, panel: _Panel) -> None:
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    if panel.log_x:
        axes.set_xscale("log")
    if panel.log_y:
        axes.set_yscale("log")
    for s in panel.series:
        if s.kind == "points":
            drawn = axes.scatter(s.x, s.y, c=s.z, label=s.name)
            if s.z is not None and len(s.z):
                axes.figure.colorbar(drawn, ax=axes)
        elif s.kind == "line":
            axes.plot(s.x, s.y, label=s.name)
        else:
            axes.barh(s.y, s.x if s.z is None else s.z, left=None if s.z is None else s.x, label=s.name)
    if 1 < len(panel.series) <= 10:
        axes.legend()


def _with_plotly(chart: _Chart) -> Any:
    from plotly import graph_objects, subplots  # type: ignore[import]
    figure = subplots.make_subplots(rows=1, cols=max(1, len(chart.panels)))
    figure.update_layout(title=chart.title)
    for column, panel in enumerate(chart.panels, 1):
        for s in panel.series:
            if s.kind in ("points", "line"):
                marker = {"color": list(s.z)} if s.z is not None else None
                trace = graph_objects.Scatter(x=list(s.x), y=list(s.y), name=s.name, marker=marker,
                                              mode="markers" if s.kind == "points" else "lines")
            else:
                trace = graph_objects.Bar(x=list(s.x if s.z is None else s.z), y=list(s.y), name=s.name, orientation="h",
                                          base=None if s.z is None else list(s.x))
            figure.add_trace(trace, row=1, col=column)
        figure.update_xaxes(title_text=panel.x, type="log" if panel.log_x else None, row=1, col=column)
        figure.update_yaxes(title_text=panel.y, type="log" if panel.log_y else None, row=1, col=column)
    return figure


def _plots(with_matplotlib: bool) -> Dict[str, Callable[..., Any]]:
    """The functions by their names. `with_matplotlib`: also where plotly is installed."""
    def plot_optimization_history(study: Study, *, target: Optional[Target] = None, target_name: str = "value") -> Any:
        """The value of each trial, and the best so far."""
        return _draw(_history(study, target, target_name), with_matplotlib)

    def plot_slice(study: Study, params: Optional[Sequence[str]] = None, *, target: Optional[Target] = None,
                   target_name: str = "value") -> Any:
        """The value over each parameter, coloured by the number of the trial."""
        return _draw(_slices(study, params, target, target_name), with_matplotlib)

    def plot_contour(study: Study, params: Optional[Sequence[str]] = None, *, target: Optional[Target] = None,
                     target_name: str = "value") -> Any:
        """Each pair of parameters as points that are coloured by the value: what was measured, without a model."""
        return _draw(_pairs("Pairs of parameters", study, params, target, False), with_matplotlib)

    def plot_rank(study: Study, params: Optional[Sequence[str]] = None, *, target: Optional[Target] = None,
                  target_name: str = "value") -> Any:
        """Each pair of parameters as points that are coloured by the rank of the value."""
        return _draw(_pairs("Ranks", study, params, target, True), with_matplotlib)

    def plot_parallel_coordinate(study: Study, params: Optional[Sequence[str]] = None, *, target: Optional[Target] = None,
                                 target_name: str = "value") -> Any:
        """A line for each trial through its value and its parameters."""
        return _draw(_parallel(study, params, target, target_name), with_matplotlib)

    def plot_param_importances(study: Study, *, params: Optional[Sequence[str]] = None) -> Any:
        """get_param_importances() as bars."""
        return _draw(_importances(study, params), with_matplotlib)

    def plot_edf(study: Union[Study, Sequence[Study]], *, target: Optional[Target] = None, target_name: str = "value") -> Any:
        """The share of trials up to each value; also of several studies."""
        studies = [study] if isinstance(study, Study) else list(study)
        return _draw(_distribution_of_values(studies, target, target_name), with_matplotlib)

    def plot_intermediate_values(study: Study) -> Any:
        """What the trials reported, by step."""
        return _draw(_curves(study), with_matplotlib)

    def plot_pareto_front(study: Study, *, target_names: Optional[Sequence[str]] = None) -> Any:
        """The values of two objectives; those of the best trials apart."""
        return _draw(_front(study, target_names), with_matplotlib)

    def plot_timeline(study: Study) -> Any:
        """When each trial ran."""
        return _draw(_timeline(study), with_matplotlib)

    return {name: f for name, f in locals().items() if name.startswith("plot_")}
