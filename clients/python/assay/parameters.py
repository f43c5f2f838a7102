"""Parameters: what an objective suggests, what a sweep document says, what Optuna calls a distribution."""
from __future__ import annotations

import contextlib
import json
import math
import random
import re
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from .constants import JSON
from .errors import SpaceError, _encodable, _repr

Choice = Any
PARAM_NAME_MAX = 63  # characters
_UNSEEN = ("\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\udfff"
           "\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U000e0000-\U0010ffff")
PARAM_NAME = re.compile(rf"[^\x00-@\[-^`{{-\xa0{_UNSEEN}](?: ?[^\x00-'*-,:-?\\^`{{-\xa0{_UNSEEN}])*\Z")


def _label(choice: Choice) -> Any:
    """A choice as a value of the sweep document: itself, or a text that names it. A tuple is a list there."""
    if isinstance(choice, str):
        return _encodable(choice)
    if choice is None or isinstance(choice, bool):
        return choice
    if isinstance(choice, (list, tuple)) and _is_plain(choice, 4):
        return json.loads(json.dumps(choice))
    if isinstance(choice, int) and abs(choice) < 2**53:
        return choice
    if isinstance(choice, float) and math.isfinite(choice):
        return choice
    return str(getattr(choice, "__qualname__", None) or _repr(choice))


def _is_plain(items: Iterable[Any], depth: int) -> bool:
    """Is it a list of what a sweep document may have in a list?"""
    return depth > 0 and all(_is_plain(x, depth - 1) if isinstance(x, (list, tuple)) else
                             x is None or isinstance(x, bool) or (isinstance(x, str) and x == _encodable(x)) or (isinstance(x, int) and abs(x) < 2**53) or
                             (isinstance(x, float) and math.isfinite(x)) for x in items)


def _key(label: Any) -> str:
    """Equal for labels that the server takes for one value: 1 and 1.0 are, 1 and true are not."""
    if isinstance(label, list):
        return "[" + ",".join(map(_key, label)) + "]"
    return repr(float(label)) if isinstance(label, (int, float)) and not isinstance(label, bool) else json.dumps(label)


class _Parameter:
    """A parameter: its name and its entry in the sweep document (`spec`). A categorical parameter has its choices as
    Python objects (`choices`) beside the values of the document, in the same order: tuples are lists there, classes
    are texts."""

    def __init__(self, name: str, spec: JSON, choices: Optional[Sequence[Choice]] = None) -> None:
        if not isinstance(name, str) or not PARAM_NAME.match(name) or len(name) > PARAM_NAME_MAX:
            raise SpaceError(f"parameter {name!r}: expected a letter or _, then letters, digits, _ . - / @ ( ) [ ] and single "
                             f"blanks inside, at most {PARAM_NAME_MAX} characters")
        self.name, self.spec = name, spec
        self.choices = list(choices) if choices is not None else None

    @property
    def kind(self) -> str:
        return str(self.spec["type"])

    def meaning(self) -> Tuple[Any, ...]:
        """Its values and its scale, equal for all spellings of a document that mean the same: defaults that are written or
        left out, 1 and 1.0, a maximum between two steps, a range of one value. No part of it are conditions, the points of
        a grid, and what is known of likely values. SpaceError: the entry is not one of a sweep document."""
        s = {k: v for k, v in self.spec.items() if v is not None}
        try:
            if self.kind in ("float", "int"):
                return _range_meaning(self.kind, s)
            values = [False, True] if self.kind == "bool" else [self.spec["value"]] if self.kind == "constant" else s["values"]
            keys = [_key(v) for v in values]
        except (KeyError, TypeError, ValueError, OverflowError):
            raise SpaceError(f"parameter '{self.name}': found {_repr(self.spec)}, expected an entry of a sweep document"[:600]) \
                from None
        return ("ordinal", *keys) if self.kind == "ordinal" and len(keys) > 1 else ("choice", *sorted(keys))

    def same(self, other: "_Parameter") -> bool:
        """Is it the same parameter, whatever its conditions and what is known of it?"""
        return self.meaning() == other.meaning()

    def described(self) -> str:
        s = self.spec
        if s["type"] in ("float", "int"):
            step = s.get("step") if (s["type"], s.get("step")) != ("int", 1) else None
            extra = (" on a log scale" if s.get("scale") == "log" else "") + (f" in steps of {step}" if step else "")
            return f"{s['type']} from {s['min']} to {s['max']}{extra}"
        return f"{s['type']} {s.get('values', s.get('value', ''))}"[:200]

    def encode(self, value: Any) -> Any:
        """As the server has it. SpaceError when the parameter has no such value."""
        if self.kind == "categorical" and self.choices is not None:
            for choice, label in zip(self.choices, self.spec["values"]):
                if choice is value or (type(choice) is type(value) and choice == value):
                    return label
            for choice, label in zip(self.choices, self.spec["values"]):
                with contextlib.suppress(Exception):
                    if bool(choice == value) and isinstance(choice, bool) == isinstance(value, bool):
                        return label
            raise SpaceError(f"parameter '{self.name}': found {_repr(value)}, expected one of {_repr(self.choices)}"[:600])
        return _number(self.name, "value", value, self.kind == "int") if self.kind in ("float", "int") else value

    def contains(self, value: Any) -> bool:
        """Is it one of its values?"""
        try:
            value = self.decode(self.encode(value))
        except SpaceError:
            return False
        if self.kind in ("float", "int"):
            return bool(self.spec["min"] <= value <= self.spec["max"])
        return self.kind != "constant" or bool(value == self.spec["value"])

    def decode(self, value: Any) -> Any:
        """As the objective wants it."""
        if self.kind == "categorical" and self.choices is not None:
            for choice, label in zip(self.choices, self.spec["values"]):
                if _key(label) == _key(value):
                    return choice
        if self.kind == "float" or (self.kind == "constant" and isinstance(self.spec["value"], float)):
            return float(value)
        return int(value) if self.kind == "int" else value

    def draw(self, rng: random.Random) -> Any:
        """A random value, as the objective wants it."""
        s = self.spec
        if s["type"] == "constant":
            return s["value"]
        if s["type"] == "bool":
            return rng.random() < 0.5
        if s["type"] not in ("float", "int"):
            return rng.choice(self.choices if self.choices is not None else s["values"])
        low, high = s["min"], s["max"]
        step = s.get("step")
        wide = 0.5 if s["type"] == "int" and step in (None, 1) else 0.0  # an int has its share of the log scale
        if s.get("scale") == "log":
            x = math.exp(rng.uniform(math.log(low - wide), math.log(high + wide)))
        elif step is not None:
            x = low + step * rng.randrange(_levels(low, high, step))
        else:
            x = rng.uniform(low - wide, high + wide)
        x = min(max(x, low), high)
        return int(round(x)) if s["type"] == "int" else float(x)


def _levels(low: float, high: float, step: float) -> int:
    """How many values there are from low to high in steps."""
    if isinstance(step, int) and isinstance(low, int) and isinstance(high, int):
        return (high - low) // step + 1
    return int(math.floor((high - low) / step + 1e-9)) + 1


def _range_meaning(kind: str, s: Mapping[str, Any]) -> Tuple[Any, ...]:
    """The meaning of a range of numbers."""
    number = int if kind == "int" else float
    low, high, scale = number(s["min"]), number(s["max"]), str(s.get("scale", "linear"))
    step = number(s["step"]) if "step" in s else 1 if kind == "int" else 0.0
    if step > 0:
        high = low + (_levels(low, high, step) - 1) * step
        high = high if kind == "int" else float(f"{high:.15g}")
    return ("choice", _key(low)) if low == high else (kind, low, high, step, scale)


def _when_meaning(when: Optional[Mapping[str, Any]]) -> Tuple[Any, ...]:
    """Equal for conditions that mean the same: a value and a list of it, values in any order."""
    found: List[Tuple[Any, ...]] = []
    for parent, condition in (when or {}).items():
        if isinstance(condition, Mapping):
            ends = {k: _key(v) for k, v in condition.items() if v is not None}
            found.append((parent, "range", ends.get("min"), ends.get("max")))
        else:
            found.append((parent, "values", *sorted(map(_key, condition if isinstance(condition, list) else [condition]))))
    return tuple(sorted(found, key=repr))


def _number(name: str, field: str, value: Any, whole: bool) -> Union[int, float]:
    try:
        number = float(value)
        if not math.isfinite(number) or (whole and number != int(number)):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise SpaceError(f"parameter '{name}': {field}: found {_repr(value)}, expected a "
                         f"{'whole' if whole else 'finite'} number") from None
    return int(value) if whole else number


def _range(name: str, kind: str, low: Any, high: Any, step: Any, log: bool) -> _Parameter:
    """A float or an int from low to high, both included."""
    whole = kind == "int"
    low, high = _number(name, "low", low, whole), _number(name, "high", high, whole)
    if low > high:
        raise SpaceError(f"parameter '{name}': found low {low} above high {high}")
    if log and low <= 0:
        raise SpaceError(f"parameter '{name}': low: found {low}, expected more than 0 on a log scale")
    if step is not None:
        step = _number(name, "step", step, whole)
        if step <= 0 or (log and (not whole or step != 1)):
            raise SpaceError(f"parameter '{name}': step: found {step}, expected more than 0" +
                             (", and no step with log=True" if log else ""))
    if whole and step == 1:
        step = None
    if low == high or (step is not None and low + step > high):
        return _Parameter(name, {"type": "constant", "value": low})
    spec: JSON = {"type": kind, "min": low, "max": high}
    if log:
        spec["scale"] = "log"
    if step is not None:
        spec["step"] = step
        if whole:
            spec["max"] = low + (high - low) // step * step
    return _Parameter(name, spec)


def _choices(name: str, choices: Iterable[Choice]) -> _Parameter:
    items = list(choices)
    if not items:
        raise SpaceError(f"parameter '{name}': choices: found none, expected one or more")
    labels = [_label(c) for c in items]
    if len(set(map(_key, labels))) < len(labels):
        labels = [f"{i}: {_repr(c)}"[:200] for i, c in enumerate(items)]  # (1,) and [1]
    return _Parameter(name, {"type": "categorical", "values": labels}, items)


def _of_space(name: str, entry: Any) -> _Parameter:
    """An entry of `space`: that of a sweep document, (low, high), (low, high, "log"), a list of choices, or what has
    the attributes of an Optuna distribution."""
    if isinstance(entry, Mapping):
        spec = dict(entry)
        if spec.get("type") == "categorical" and isinstance(spec.get("values"), (list, tuple)):
            p = _choices(name, spec["values"])
            return _Parameter(name, dict(spec, values=p.spec["values"]), p.choices)
        if spec.get("type") in ("float", "int", "bool", "ordinal", "constant"):
            return _Parameter(name, spec)
        raise SpaceError(f"parameter '{name}': type: found {spec.get('type')!r}, expected float, int, categorical, "
                         "ordinal, bool or constant")
    if hasattr(entry, "choices"):
        return _choices(name, entry.choices)
    if hasattr(entry, "low") and hasattr(entry, "high"):
        step = getattr(entry, "step", getattr(entry, "q", None))
        log = bool(getattr(entry, "log", "LogUniform" in type(entry).__name__))
        return _range(name, "int" if type(entry).__name__.startswith("Int") else "float", entry.low, entry.high,
                      None if log else step, log)
    if isinstance(entry, list):
        return _choices(name, entry)
    if isinstance(entry, tuple) and len(entry) in (2, 3) and (len(entry) == 2 or entry[2] in ("log", "linear")):
        whole = all(isinstance(x, int) and not isinstance(x, bool) for x in entry[:2])
        return _range(name, "int" if whole else "float", entry[0], entry[1], None, len(entry) == 3 and entry[2] == "log")
    raise SpaceError(f"parameter '{name}': found {_repr(entry)}, expected (low, high), (low, high, \"log\"), a list of "
                     "choices or an entry of a sweep document such as {\"type\": \"float\", \"min\": 0, \"max\": 1}"[:600])


def _of_spec(name: str, spec: JSON) -> _Parameter:
    """A parameter of a sweep that the server has."""
    return _Parameter(name, dict(spec), spec["values"] if spec["type"] == "categorical" else None)


def _matches(condition: Any, value: Any) -> bool:
    """Does a value satisfy a condition of `when`? Ranges of ordinals are the server's alone."""
    if isinstance(condition, Mapping):
        return bool(condition.get("min", value) <= value <= condition.get("max", value))
    wanted = condition if isinstance(condition, list) else [condition]
    return any(w == value and isinstance(w, bool) == isinstance(value, bool) for w in wanted)
