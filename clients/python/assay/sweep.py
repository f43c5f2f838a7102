"""Studies: the sweep, its document, its creation, its growth."""
from __future__ import annotations

import random
import uuid
from typing import Any, Callable, List, Mapping, Optional

from .constants import GENERATIONS_MAX, JSON, LEASE_S, ROWS_MAX
from .errors import AssayError, SpaceError
from .parameters import _matches, _of_space, _Parameter
from .results import _StudyData
from .trial import FrozenTrial, Trial


def _made(sweep: JSON) -> int:
    """How many trials of a sweep count towards its limit."""
    return int(sweep["counts"]["total"]) - int(sweep["known_trials"])


def _separation(parent: _Parameter, yes: List[Any], no: List[Any]) -> Any:
    """The condition on `parent` that holds for all of `yes` and none of `no`, or None."""
    if not yes or not no or any(_matches(no, y) for y in yes):
        return None
    if parent.kind == "categorical":
        return [v for v in parent.spec["values"] if not _matches(no, v)]
    if max(no) < min(yes):
        return {"min": max(no) + 1}
    return {"max": min(no) - 1} if min(no) > max(yes) else None


class _StudySweep(_StudyData):
    """The part of a Study that makes sweeps and adds to them."""

    def _known_parameter(self, name: str) -> Optional[_Parameter]:
        with self._lock:
            return self._space.get(name) or self._missing.get(name)

    def _use_space(self, space: Mapping[str, Any]) -> None:
        if not space:
            raise SpaceError("space: found no parameter, expected one or more")
        self._space = {name: _of_space(name, entry) for name, entry in space.items()}
        self._is_explicit = True

    def _document(self, limit: int) -> JSON:
        objectives = [{"name": name, "goal": goal} for name, goal in self.metrics]
        document: JSON = {"name": self.name, "parameters": {n: p.spec for n, p in self._space.items()}, "ensemble": False}
        if len(objectives) == 1:
            document["metric"] = objectives[0]
        else:
            document["metrics"] = objectives
        document.update({k: v for k, v in self._options.items() if v not in (None, [], {})})
        document["limits"] = dict(self._options.get("limits") or {}, max_trials=limit)
        if self._generation:
            document["description"] = (f"The study {self.name} since its space grew for the {self._generation}. time; "
                                       "its earlier trials are known results here")
        return document

    def _create(self, limit: int, known: List[FrozenTrial], paused: bool) -> None:
        """A sweep with the space as it is, and with known results. paused: until _resume()."""
        created = self._http.call("POST", "/v1/sweeps?paused=true" if paused else "/v1/sweeps", self._document(limit),
                                  key=uuid.uuid4().hex)
        self.sweep, self._limit = created["id"], limit
        rows = [(r, self._known_row(r)) for r in known]
        for first in range(0, len(rows), ROWS_MAX):
            part = rows[first:first + ROWS_MAX]
            body = [dict(row, key=f"{i + first}") for i, (_, row) in enumerate(part)]
            numbers = self._http.call("POST", f"/v1/sweeps/{self.sweep}/trials", body, key=uuid.uuid4().hex)["numbers"]
            for (record, _), number in zip(part, numbers):
                self._records[self.sweep or "", number] = record

    def _resume(self) -> None:
        self._http.call("PATCH", f"/v1/sweeps/{self.sweep}", {"state": "running"})

    def _request(self, sweep: str, client: str, count: int, wait_ms: int) -> JSON:
        answer = self._http.call("POST", f"/v1/sweeps/{sweep}/suggestions",
                                 {"client": client, "count": count, "wait_ms": wait_ms, "lease_ms": int(LEASE_S * 1000)})
        return dict(answer)

    def _begin(self, trial: Optional[Trial]) -> None:
        """Make the sweep: with the space that was given, or that of the first trial, which becomes its trial 0."""
        with self._lock:
            if self.sweep is not None:
                return
            if trial is not None:
                if not trial._asked:
                    raise SpaceError("the objective suggested no parameter before it reported or ended: call "
                                     "trial.suggest_float and the like in it, or give space=")
                self._space = {name: p for name, (p, _) in trial._asked.items()}
            paused = trial is not None or bool(self._waiting)
            self._create(self._limit, [], paused)
            if trial is not None:
                self._add({n: p.encode(v) for n, (p, v) in trial._asked.items()})
            waiting, self._waiting = self._waiting, []
            for params, result in waiting:
                self._enqueue(params, result)
            if paused:
                self._resume()
            if trial is not None:
                answer = self._request(self.sweep or "", trial._client, 1, 30000)
                while not answer["items"]:  # somebody paused the sweep
                    if answer["done"]:
                        raise AssayError(f"the sweep {self.sweep} has ended: {answer['state']}")
                    answer = self._request(self.sweep or "", trial._client, 1, 30000)
                trial._adopt(answer["items"][0])
            self._first = None

    def _add(self, params: JSON, result: Optional[JSON] = None) -> int:
        """addTrial; the number."""
        return int(self._http.call("POST", f"/v1/sweeps/{self.sweep}/trials", {"params": params, **(result or {})},
                                   key=uuid.uuid4().hex)["number"])

    def _enqueue(self, params: JSON, result: Optional[JSON]) -> None:
        """Add a configuration. Where the space comes from trials, parameters that it does not name are drawn, and
        those that are not yet known wait until the trial suggests them."""
        values = {n: p.encode(params[n]) for n, p in self._space.items() if n in params}
        if self._is_explicit or result is not None:
            for name in set(params) - set(self._space):
                raise SpaceError(f"parameter '{name}': the study has no such parameter; it has {', '.join(self._space)}")
            self._add(values, result)
            return
        active = self._complete(values, lambda p: p.encode(p.draw(self._random)))
        self._fixed[self.sweep or "", self._add(active)] = {n: v for n, v in params.items() if n not in active}

    def _complete(self, values: JSON, other: Callable[[_Parameter], Any]) -> JSON:
        """Exactly the parameters that are active for `values`, in the order of the space; what is not there, by other()."""
        found: JSON = {}

        def is_active(name: str) -> bool:
            p = self._space[name]
            if not all(is_active(parent) and _matches(condition, found[parent])
                       for parent, condition in p.spec.get("when", {}).items()):
                return False
            if name not in found:
                found[name] = values[name] if name in values else other(p)
            return True

        return {name: found[name] for name in self._space if is_active(name)}

    def _known_row(self, record: FrozenTrial) -> JSON:
        """A trial of this study as a known result. A parameter that it did not ask for has any value: the result did
        not depend on it."""
        draw = random.Random(record.number)
        params = self._complete({**record._given, **record._encoded}, lambda p: p.encode(p.draw(draw)))
        if record.state == "completed":
            return {"params": params, "metrics": record.metrics}
        return {"params": params, "state": "failed", "reason": record.reason}

    def _grow(self) -> None:
        """Move on to a new sweep that has the parameters in _missing too, with what is left of the limit; the one
        before ends when the trials that run have ended. Nothing happens when nothing is left."""
        if self._options.get("search", {}).get("method") == "grid":
            raise SpaceError(f"parameter '{next(iter(self._missing))}' was not suggested in the first trial, and the cells "
                             "of a grid are fixed: give space=")
        if self._generation >= GENERATIONS_MAX:
            raise SpaceError(f"parameter '{next(iter(self._missing))}': the space grew {GENERATIONS_MAX} times; do names "
                             "contain a number that is new in each trial? Give space=")
        path = f"/v1/sweeps/{self.sweep}"
        before = self._http.call("GET", path)
        if before["state"] in ("cancelled", "failed") or self._limit <= _made(before):
            return
        left = self._limit - _made(self._http.call("PATCH", path, {"limits": {"max_trials": 1}}))
        if left <= 0:
            return
        # A trial that is being told may have ended for the server already: _finish carries it over, once it has it.
        rows, others = self._results(self.sweep or "", list(self._pages(self._trials_path(self.sweep or ""))))
        telling = {t.number for t in self._held if t._sweep == self.sweep and t._lost is None}
        records = [r for r in rows if r.number not in telling] + others
        self._space.update(self._missing)
        self._missing = {}
        self._infer_conditions(records)
        self._generation += 1
        moved = [r for r in records if r.state in ("completed", "failed", "pruned")]
        self._create(left, moved, bool(moved))
        if moved:
            self._resume()

    def _infer_conditions(self, records: List[FrozenTrial]) -> None:
        """Say `when` of each parameter that some completed trials suggested and others did not, if the value of one
        other parameter separates them. Values that no trial had count as active: an idle parameter costs the search
        little, a missing one is drawn at random."""
        done = [r for r in records if r.state == "completed"]
        for name, p in self._space.items():
            p.spec.pop("when", None)
            users = [r for r in done if name in r._encoded]
            for parent, q in self._space.items():
                if parent == name:
                    break  # only what is suggested before
                if q.kind not in ("categorical", "int") or any(parent not in r._encoded for r in users):
                    continue
                yes = [r._encoded[parent] for r in users]
                no = [r._encoded[parent] for r in done if parent in r._encoded and name not in r._encoded]
                condition = _separation(q, yes, no)
                if condition is not None:
                    p.spec["when"] = {parent: condition}
                    break
