"""A sweep's parameters as columns of numbers, for recipes that know nothing of sweep documents.

A point is a row U[d]. A float or an ordered parameter (int, ordinal, bool, float with a step) has its
place in [0, 1], linear or logarithmic; a categorical has the index of its value. Constants have no
column. A parameter whose `when` does not hold is at its default: the middle of its range, or its
first value.
"""
import math

import numpy as np

MAX_LEVELS = 20  # an ordered parameter with more values is searched as if it were continuous


class Column:
    """One parameter. kind: "real", "ordered" or "choice"; n: how many values, 0 for a real."""

    def __init__(self, name, p):
        self.name, self.when = name, p.get("when", {})
        self.is_log = p.get("scale") == "log"
        self.is_int = p["type"] == "int"
        self.values = {"bool": [False, True]}.get(p["type"], p.get("values"))
        self.low, self.high, self.step = 0, 1, None
        if self.values is not None:
            self.kind = "choice" if p["type"] == "categorical" else "ordered"
            self.high, self.step, self.is_log = len(self.values) - 1, 1, False
        else:
            self.low, self.high = p["min"], p["max"]
            self.step = 1 if self.is_int and self.is_log else p.get("step", 1 if self.is_int else None)
            self.kind = "real" if self.step is None else "ordered"
        self.n = 0 if self.step is None else 1 + int(math.floor((self.high - self.low) / self.step + 1e-9))
        self.default = 0.0 if self.values is not None else float(self.place(self.number(np.array([0.5]))[0]))

    def number(self, u):
        """Numbers (of an ordinal: indices) at places u."""
        if self.kind == "choice":
            return u
        if self.high == self.low:
            return np.full_like(u, self.low)
        if self.is_log:
            v = self.low * (self.high / self.low) ** u
        else:
            v = self.low + u * (self.high - self.low)
        if self.step is not None:
            v = self.low + self.step * np.round((v - self.low) / self.step)
        return np.clip(v, self.low, self.low + self.step * (self.n - 1) if self.step is not None else self.high)

    def place(self, v):
        if self.kind == "choice" or self.high == self.low:
            return np.asarray(v, float) * (self.kind == "choice")
        if self.is_log:
            return np.log(np.asarray(v, float) / self.low) / math.log(self.high / self.low)
        return (np.asarray(v, float) - self.low) / (self.high - self.low)

    def levels(self):
        """The places of all values of an ordered parameter."""
        return self.place(self.low + self.step * np.arange(self.n))

    def value(self, u):
        """What a document says: a number, or one of the values."""
        v = float(self.number(np.array([u]))[0])
        if self.values is not None:
            return self.values[int(round(v))]
        return int(round(v)) if self.is_int else v

    def of_value(self, value):
        if self.values is None:
            return float(self.place(value))
        return float(self.place(self.values.index(value)))

    def holds(self, u, wanted):
        """Which places have a value that a `when` names: a value, a list of values, or {min, max}."""
        if self.values is not None:
            wanted = wanted if isinstance(wanted, list) else [wanted]
            return np.isin(np.round(self.number(u)), [self.values.index(w) for w in wanted])
        v = self.number(u)
        if isinstance(wanted, dict):
            return (v >= wanted.get("min", -math.inf)) & (v <= wanted.get("max", math.inf))
        return np.isin(v, wanted if isinstance(wanted, list) else [wanted])


class Space:
    def __init__(self, parameters):
        self.constants = {n: p for n, p in parameters.items() if p["type"] == "constant"}
        self.columns = [Column(n, p) for n, p in parameters.items() if p["type"] != "constant"]
        self.order = list(parameters)
        self.index = {c.name: i for i, c in enumerate(self.columns)}
        self.d = len(self.columns)
        self.defaults = np.array([c.default for c in self.columns])
        self.choices = [i for i, c in enumerate(self.columns) if c.kind == "choice"]
        self.stepped = [i for i, c in enumerate(self.columns) if c.kind == "ordered" and c.n <= MAX_LEVELS]
        self.smooth = [i for i in range(self.d) if i not in self.choices and i not in self.stepped]
        self.conditional = {n: p["when"] for n, p in parameters.items() if p.get("when")}
        self.top = np.array([c.n - 1 if c.kind == "choice" else 1 for c in self.columns], float)
        self.grid = [i for i, c in enumerate(self.columns) if c.kind == "ordered" and c.high > c.low]
        grid = [self.columns[i] for i in self.grid]
        self.low, self.step, self.steps, self.range = (np.array(v, float) for v in (
            [c.low for c in grid], [c.step for c in grid], [c.n - 1 for c in grid], [c.high - c.low for c in grid]))
        self.is_log = np.array([c.is_log for c in grid], bool)
        self.first = np.where(self.is_log, self.low, 1)  # no division by 0
        self.ratio = np.array([c.high / c.low if c.is_log else 2.0 for c in grid])

    def active(self, U):
        """n x d of bool. A parameter of which a condition's parameter is inactive is inactive too."""
        on, out = {}, np.full((len(U), self.d), True)
        for name in self.conditional:
            on[name] = np.full(len(U), True)
            for other, wanted in self.conditional[name].items():
                on[name] &= on.get(other, True) & self._holds(U, other, wanted)
            if name in self.index:
                out[:, self.index[name]] = on[name]
        return out

    def _holds(self, U, other, wanted):
        if other in self.constants:
            return np.full(len(U), self.constants[other]["value"] in (wanted if isinstance(wanted, list) else [wanted]))
        j = self.index[other]
        return self.columns[j].holds(U[:, j], wanted)

    def _snap(self, U):
        """Column.snap of all columns at once."""
        V = np.minimum(np.maximum(U, 0), self.top)
        if len(self.grid):
            u = V[:, self.grid]
            w = np.where(self.is_log, np.abs(self.low) * self.ratio ** u, self.low + u * self.range)
            w = self.low + self.step * np.minimum(np.round((w - self.low) / self.step), self.steps)
            V[:, self.grid] = np.where(self.is_log, np.log(np.where(self.is_log, w / self.first, 1)) / np.log(self.ratio), (w - self.low) / self.range)
        V[:, self.choices] = np.round(V[:, self.choices])
        return V

    def canonical(self, U):
        """Snapped, and inactive parameters at their defaults. A copy."""
        U = self._snap(U)
        return np.where(self.active(U), U, self.defaults) if self.conditional else U

    def spread(self, Q):
        """Points of quantiles Q, n x d in [0, 1): canonical. Every value of a choice is as likely."""
        Q = Q.copy()
        Q[:, self.choices] = np.floor(Q[:, self.choices] * (self.top[self.choices] + 1))
        return self.canonical(Q)

    def document(self, u):
        """The active parameters of one canonical point, in the order of the sweep's document."""
        on, out = self.active(u[None])[0], {}
        for name in self.order:
            if name in self.constants:
                if not self.constants[name].get("when"):
                    out[name] = self.constants[name]["value"]
            elif on[self.index[name]]:
                out[name] = self.columns[self.index[name]].value(u[self.index[name]])
        return out

    def point(self, document):
        """The canonical point of a document."""
        return np.array([c.of_value(document[c.name]) if c.name in document else c.default for c in self.columns])

    def features(self, U):
        """n x D: the columns, with an indicator for each value of a choice."""
        parts = [np.eye(c.n)[U[:, i].astype(int)] if c.kind == "choice" else U[:, i:i + 1]
                 for i, c in enumerate(self.columns)]
        return np.concatenate(parts, axis=1)

    def feature_owner(self):
        """The column to which each feature belongs."""
        return np.concatenate([[i] * (c.n if c.kind == "choice" else 1) for i, c in enumerate(self.columns)])
