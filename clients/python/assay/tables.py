"""fit(): a model of a table, made by `assay fit`. A table is a pandas frame, a numpy array, a dict of columns, a list of dicts,
or the path of a CSV file; pandas and numpy are used only if the table is one of theirs. Predictions have its form."""
from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import tempfile
from difflib import get_close_matches
from time import monotonic
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .address import _program
from .constants import JSON
from .errors import AssayError, Unavailable
from .messages import _say

Table = Any  # see above
PROGRESS_S = 3.0


class _Columns(NamedTuple):
    """A table as columns of Python values; None is missing."""
    names: List[str]
    values: List[List[Any]]
    form: str  # "pandas", "numpy" or "list": of what is returned
    index: Any  # of a frame
    labels: Sequence[Any] = ()  # of a frame: what its columns are called, which may be numbers


def _is_of(value: Any, package: str, *names: str) -> bool:
    """Is the value of one of these classes, without importing the package?"""
    return any(c.__module__.partition(".")[0] == package and c.__name__ in names for c in type(value).__mro__)


def _of_frame(frame: Any) -> _Columns:
    names = [str(name) for name in frame.columns]
    values = []
    for i in range(len(names)):
        column = frame.iloc[:, i]
        values.append([None if gone else v for v, gone in zip(column.tolist(), column.isna().tolist())])
    return _Columns(names, values, "pandas", frame.index, list(frame.columns))


def _of_array(array: Any) -> _Columns:
    if array.ndim != 2:
        raise AssayError(f"the table is an array of {array.ndim} dimensions, expected 2: rows and columns")
    return _Columns([f"x{i}" for i in range(array.shape[1])], [column.tolist() for column in array.T], "numpy", None)


def _of_rows(rows: Sequence[Mapping[str, Any]]) -> _Columns:
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    return _Columns(names, [[row.get(name) for row in rows] for name in names], "list", None)


def _columns_of(table: Table) -> _Columns:
    if _is_of(table, "pandas", "DataFrame"):
        columns = _of_frame(table)
    elif _is_of(table, "numpy", "ndarray"):
        columns = _of_array(table)
    elif isinstance(table, Mapping):
        columns = _Columns([str(name) for name in table], [list(v) for v in table.values()], "list", None)
    elif isinstance(table, Sequence) and not isinstance(table, (str, bytes)) and all(isinstance(r, Mapping) for r in table):
        columns = _of_rows(table)
    else:
        raise AssayError(f"the table is {type(table).__name__}, expected a pandas frame, a numpy array of two dimensions, a "
                         "dict of columns, a list of dicts, or the path of a CSV file")
    lengths = {len(v) for v in columns.values}
    if len(lengths) != 1 or lengths == {0}:
        raise AssayError(f"the columns of the table have {sorted(lengths)} rows, expected one number above 0")
    return columns


def _cell(value: Any) -> str:
    """As a CSV file has it; numbers read back as they are."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return float.__repr__(value) if isinstance(value, float) else str(value)  # numpy's own repr has a name before it


def _class_key(value: Any) -> str:
    """How a class is written in predictions: whole numbers have no fraction there, texts no blanks around them."""
    text = _cell(value).strip()
    try:
        return str(int(float(text))) if float(text).is_integer() else text
    except (ValueError, OverflowError):
        return text


def _write(columns: _Columns, path: str) -> None:
    with open(path, "w", newline="", encoding="utf-8") as f:
        writer = csv.writer(f)
        writer.writerow(columns.names)
        writer.writerows([_cell(v) for v in row] for row in zip(*columns.values))


def _list(values: Union[str, Iterable[Any]]) -> str:
    return values if isinstance(values, str) else ",".join(str(v).replace(",", "\\,") or '""' for v in values)


def _numbers(values: Union[float, str, Iterable[float]]) -> str:
    return str(values) if isinstance(values, (int, float, str)) else ",".join(str(v) for v in values)


def _amount(value: Union[str, float], factor: int, unit: str) -> str:
    """A time or size as the program reads it; a number is seconds or bytes."""
    return value if isinstance(value, str) else f"{int(value * factor)}{unit}"


def _assay() -> str:
    program = _program()
    if not program:
        raise Unavailable("the program `assay` is not in PATH: assay.fit() and predictions run it")
    return program


def _failure(text: str, names: Mapping[str, str] = {}) -> str:
    """The message of an error that the program wrote as a problem document. `names`: what temporary files are."""
    found = text.strip()[-600:]
    for line in reversed(text.strip().splitlines()):
        try:
            found = str(json.loads(line)["detail"])
            break
        except (ValueError, KeyError, TypeError):
            continue
    for path, name in names.items():
        found = found.replace(path, name)
    return found


def _run(args: Sequence[str], names: Mapping[str, str] = {}) -> str:
    done = subprocess.run([_assay(), *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          encoding="utf-8", errors="replace")
    if done.returncode != 0:
        raise AssayError(_failure(done.stderr, names))
    return done.stdout


class Model:
    """What fit() returns. The model is a file, so predictions need no server; leaderboard() does.

    metric, score, interval (low, high) or None, test (the score on the test rows) or None, classes or None, sweep (its id),
    name and version of the model on the server, size_bytes, row_ms, remarks (on the table, as sentences)."""

    def __init__(self, folder: str, report: JSON, columns: Optional[_Columns], labels: Dict[str, Any],
                 where: Sequence[str]) -> None:
        self._folder, self._labels, self._where = folder, labels, list(where)
        self._form = columns.form if columns else "list"
        self.metric, self.score = str(report["metric"]), float(report["value"])
        interval, test = report.get("interval"), report.get("test")
        self.interval: Optional[Tuple[float, float]] = (interval["low"], interval["high"]) if interval else None
        self.test: Optional[float] = float(test["value"]) if test else None
        self.sweep, self.name, self.version = str(report["sweep"]), str(report["model"]), int(report["version"])
        before = report.get("before")  # the sweep whose ranges were too narrow
        self._sweeps = [self.sweep] + ([str(before)] if before else [])
        self.size_bytes, self.row_ms = int(report["size"]), report.get("row_ms")
        self.remarks: List[str] = list(report.get("remarks") or [])

    def __repr__(self) -> str:
        return f"<assay.Model {self.name}@{self.version}: {self.metric} {self.score:.6g}>"

    def __del__(self) -> None:
        shutil.rmtree(self.__dict__.get("_folder", ""), ignore_errors=True)

    def __getstate__(self) -> Dict[str, Any]:
        """Of pickle, joblib and copy: with the file, because each object has a folder of its own."""
        with open(self._path, "rb") as f:
            return {**self.__dict__, "_folder": f.read()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        folder = tempfile.mkdtemp(prefix="assay-fit-")
        self.__dict__.update(state, _folder=folder)
        with open(self._path, "wb") as f:
            f.write(state["_folder"])

    @property
    def _path(self) -> str:
        return os.path.join(self._folder, "model.safetensors")

    def _predict(self, table: Table, proba: bool) -> Tuple[List[str], List[List[str]], Any, str]:
        """The header and rows of the predictions, and the index and form of the table."""
        with tempfile.TemporaryDirectory(prefix="assay-predict-") as folder:
            index: Any = None
            form = self._form
            if isinstance(table, (str, os.PathLike)):
                path = os.fspath(table)
            else:
                columns = _columns_of(table)
                index, form, path = columns.index, columns.form, os.path.join(folder, "rows.csv")
                _write(columns, path)
            out = os.path.join(folder, "predictions.csv")
            _run(["predict", self._path, "--data", path, "--output", out, "--json", *(["--proba"] if proba else [])],
                 {} if index is None and path == table else {path: "the table"})
            with open(out, newline="", encoding="utf-8") as f:
                rows = list(csv.reader(f))
            return rows[0], rows[1:], index, form

    def _value(self, text: str) -> Any:
        if self._labels:
            return self._labels.get(text, text)
        try:
            return float(text)
        except ValueError:
            return text

    def predict(self, table: Table) -> Any:
        """A class or number for each row, of the type that the target had: a list; for a numpy array an array, for a pandas
        frame a series with its index. The target's column may be missing."""
        header, rows, index, form = self._predict(table, False)
        if len(header) > 1:
            return _shaped([[float(v) for v in row] for row in rows], header, index, form)
        values = [self._value(row[0]) for row in rows]
        if form == "pandas":
            import pandas
            return pandas.Series(values, index=index, name=header[0])
        if form == "numpy":
            import numpy
            return numpy.array(values)
        return values

    def predict_proba(self, table: Table) -> Any:
        """A probability for each class, in the order of `classes`: a list of lists, an array, or a frame with the classes as
        its columns."""
        header, rows, index, form = self._predict(table, True)
        at = [i for i, name in enumerate(header) if name.startswith("probability_")]
        names = [self._value(header[i][len("probability_"):]) for i in at]
        return _shaped([[float(row[i]) for i in at] for row in rows], names, index, form)

    @property
    def classes(self) -> Optional[List[Any]]:
        """The classes in the order of predict_proba(); None of a model of numbers."""
        return list(self._labels.values()) or None

    def leaderboard(self, top: int = 20) -> Any:
        """The best trials of the search: a list of dicts, or a pandas frame if the model is one of a frame."""
        lists = [json.loads(_run(["best", sweep, "--top", str(top), "--json", *self._where]))["items"] for sweep in self._sweeps]
        falls = any(items[0]["value"] > items[-1]["value"] for items in lists if items)  # each has its best trial first
        every = sorted((t for items in lists for t in items), key=lambda t: t["value"], reverse=falls)
        rows = [{"sweep": t["sweep"], "trial": t["number"], "value": t["value"], **t["params"]} for t in every[:top]]
        if self._form == "pandas":
            import pandas
            return pandas.DataFrame(rows)
        return rows

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Write the model file, which `assay predict`, `assay serve` and `assay models get --from` take."""
        shutil.copyfile(self._path, os.fspath(path))


def _shaped(rows: List[List[float]], names: Sequence[Any], index: Any, form: str) -> Any:
    if form == "pandas":
        import pandas
        return pandas.DataFrame(rows, columns=list(names), index=index)
    if form == "numpy":
        import numpy
        return numpy.array(rows)
    return rows


def _with_target(columns: _Columns, target: Any) -> Tuple[_Columns, str]:
    """The table with its target as a column, and its name. A header of numbers alone looks like a row, so the target gets
    a text as its name then."""
    columns, name = _found_target(columns, target)
    if not all(n.isdecimal() for n in columns.names):
        return columns, name
    return columns._replace(names=[f"target {n}" if n == name else n for n in columns.names]), f"target {name}"


def _found_target(columns: _Columns, target: Any) -> Tuple[_Columns, str]:
    """target: a name, an index, or the values themselves."""
    if isinstance(target, str):
        if target not in columns.names:
            same = [n for n in columns.names if n.strip().lower() == target.strip().lower()]
            near = (same or get_close_matches(target, columns.names, 1))[:1]
            meant = f"did you mean '{near[0]}'? The" if near else "the"
            raise AssayError(f"target: there is no column '{target}'; {meant} columns are: {', '.join(columns.names[:20])}")
        return columns, target
    if isinstance(target, int) and target in columns.labels:  # a column of this name, not of this number
        return columns, columns.names[list(columns.labels).index(target)]
    if isinstance(target, int) and not isinstance(target, bool):
        if not -len(columns.names) <= target < len(columns.names):
            raise AssayError(f"target: found column {target} of {len(columns.names)}")
        return columns, columns.names[target]
    values = target.tolist() if hasattr(target, "tolist") else list(target)
    rows = len(columns.values[0])
    if len(values) != rows:
        raise AssayError(f"target: found {len(values)} values for {rows} rows")
    name = str(getattr(target, "name", None) or "target")
    if name in columns.names:
        raise AssayError(f"target: its name '{name}' is that of a column, too")
    return columns._replace(names=[*columns.names, name], values=[*columns.values, values]), name


def _test_of(test: Any, goal: str) -> _Columns:
    """A table with the target's column, or a table and the target's values."""
    if not isinstance(test, tuple):
        columns = _columns_of(test)
        if goal not in columns.names:
            raise AssayError(f"test: there is no column '{goal}', the target: give it, or test=(table, values)")
        return columns
    if len(test) != 2:
        raise AssayError(f"test: found {len(test)} items, expected a table, or a table and the target's values")
    columns = _columns_of(test[0])
    values = test[1].tolist() if hasattr(test[1], "tolist") else list(test[1])
    if len(values) != len(columns.values[0]):
        raise AssayError(f"test: found {len(values)} values for {len(columns.values[0])} rows")
    return columns._replace(names=[*columns.names, goal], values=[*columns.values, values])


def _labels_of(columns: _Columns, target: str) -> Dict[str, Any]:
    return {_class_key(v): v for v in columns.values[columns.names.index(target)]}


class _Follower:
    """Reads the lines of `assay fit --json`: progress, and the report at the end."""

    def __init__(self, verbose: bool) -> None:
        self.verbose, self.said, self.last = verbose, 0.0, {}  # type: bool, float, JSON

    def read(self, line: str) -> None:
        try:
            self.last = json.loads(line)
        except ValueError:
            return
        counts, best = self.last.get("counts"), self.last.get("best") or {}
        if not self.verbose or not counts or monotonic() - self.said < PROGRESS_S:
            return
        self.said = monotonic()
        left = max(0, self.last.get("left_ms", 0)) / 1000
        shown = f", best {best['value']:.6g} ({best.get('params', {}).get('kind', '?')})" if "value" in best else ""
        _say(f"{counts.get('completed', 0)} trials{shown}, about {left:.0f} s left")


def _fit_program(args: Sequence[str], verbose: bool, names: Mapping[str, str]) -> JSON:
    follower = _Follower(verbose)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors, subprocess.Popen(
            [_assay(), "fit", *args, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
            encoding="utf-8", errors="replace") as child:
        assert child.stdout is not None
        for line in child.stdout:
            follower.read(line)
        if child.wait() != 0:
            errors.seek(0)
            raise AssayError(_failure(errors.read(), names) or f"`assay fit` ended with {child.returncode}")
    return follower.last


def fit(data: Table, target: Any, *, test: Optional[Table] = None, time: Union[str, float] = "10m",
        size: Union[str, float] = "50MB",
        metric: Optional[str] = None, groups: Optional[str] = None, folds: Optional[int] = None, trials: Optional[int] = None,
        layers: Optional[int] = None, name: Optional[str] = None, task: Optional[str] = None, drop: Union[str, Iterable[str]] = (),
        numeric: Union[str, Iterable[str]] = (), text: Union[str, Iterable[str]] = (), missing: Union[float, Iterable[float]] = (),
        warm: bool = True,
        server: Optional[str] = None, profile: Optional[str] = None, verbose: bool = True) -> Model:
    """A model of a table, in `time` (a text such as "10m", or seconds; `size` is bytes). target: the name or number of a
    column, or its values. test: rows for a figure that
    nothing is chosen by, with the target's column or as (table, values). The other options are those of `assay fit` (docs/fit.md), which is run."""
    where = [f for option, v in (("--server", server), ("--profile", profile)) if v for f in (option, v)]
    folder = tempfile.mkdtemp(prefix="assay-fit-")
    try:
        columns, labels = None, {}  # type: Optional[_Columns], Dict[str, Any]
        path, goal = os.path.join(folder, f"{name or 'table'}.csv"), str(target)
        if isinstance(data, (str, os.PathLike)):
            path = os.fspath(data)
        else:
            columns, goal = _with_target(_columns_of(data), target)
            _write(columns, path)
        args = [path, "--target", goal, "--time", _amount(time, 1000, "ms"), "--size", _amount(size, 1, ""),
                "--output", os.path.join(folder, "model.safetensors")]
        names = {} if columns is None else {path: "the table"}
        if test is not None and not isinstance(test, (str, os.PathLike)):
            tested = os.path.join(folder, "test.csv")
            _write(_test_of(test, goal), tested)
            names[tested] = "test"
            test = tested
        for option, value in (("--test", test), ("--metric", metric), ("--groups", groups), ("--folds", folds), ("--trials", trials), ("--layers", layers),
                              ("--name", name), ("--task", task), ("--drop", _list(drop)), ("--numeric", _list(numeric)),
                              ("--text", _list(text)), ("--missing", _numbers(missing))):
            args += [option, str(value)] if value not in (None, "") else []
        args += [] if warm else ["--no-warm"]
        report = _fit_program([*args, *where], verbose, names)
        if columns and report.get("classes"):
            found = _labels_of(columns, goal)
            labels = {str(c): found.get(str(c), c) for c in report["classes"]}
        elif report.get("classes"):
            labels = {str(c): c for c in report["classes"]}
        model = Model(folder, report, columns, labels, where)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    for remark in model.remarks if verbose else ():
        _say(remark)
    return model
