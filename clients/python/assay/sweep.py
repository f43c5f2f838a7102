"""Studies: the sweep, its document, its creation, what is added to it."""
from __future__ import annotations

import random
import urllib.parse
import uuid
from typing import Any, Callable, Iterable, List, Mapping, Optional, Sequence, Tuple

from .attributes import _sendable
from .constraints import _bounded_constraints, _constraint_bounds
from .constants import JSON, TRIALS_MAX
from .errors import AssayError, SpaceError
from .messages import _warn
from .parameters import _matches, _of_space, _Parameter
from .results import _StudyData
from .trial import FrozenTrial

GREW_FROM = "grew-from="  # tags of a sweep that a study moved on to: from where, and the limit that was there
STUDY_LIMIT = "study-limit="


def _made(sweep: JSON) -> int:
    """How many trials of a sweep count towards its limit."""
    return int(sweep["counts"]["total"]) - int(sweep["known_trials"])


def _limit_of(sweep: JSON) -> int:
    return int(sweep["document"].get("limits", {}).get("max_trials", TRIALS_MAX))


def _origin(sweep: JSON) -> Tuple[Optional[str], int]:
    """The sweep that a study moved on from to this one, and the limit that it had; None and 0 without one."""
    tags = sweep["document"].get("tags", [])
    source = next((t[len(GREW_FROM):] for t in tags if t.startswith(GREW_FROM)), None)
    limit = next((t[len(STUDY_LIMIT):] for t in tags if t.startswith(STUDY_LIMIT)), "0")
    return source, int(limit) if limit.isdigit() else 0


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
        if self._options.get("noise") and len(objectives) == 1:
            document["metric"]["noise"] = self._options["noise"]
        document.update({k: v for k, v in self._options.items() if k != "noise" and v not in (None, [], {})})
        tags = list(self._options.get("tags") or [])
        if tags:
            document["tags"] = tags
        document["limits"] = dict(self._options.get("limits") or {}, max_trials=limit)
        if self._generation:
            document["description"] = (f"The study {self.name} since its space grew for the {self._generation}. time; "
                                       "its earlier trials are known results here")
        return document

    def _post(self, limit: int, unique: bool, paused: bool = False, name: str = "",
              tags: Sequence[str] = ()) -> Optional[JSON]:
        """Create a sweep with the space as it is. unique: None if its name is taken."""
        document = self._document(limit)
        document["name"] = name or document["name"]
        if tags:
            document["tags"] = [*document.get("tags", []), *tags]
        query = "&".join([*(["unique=true"] if unique else []), *(["paused=true"] if paused else [])])
        try:
            made = dict(self._http.call("POST", "/v1/sweeps" + ("?" + query if query else ""), document, key=uuid.uuid4().hex))
            self._keep_attrs(str(made["id"]), self.user_attrs)
            return made
        except AssayError as e:
            if not unique or e.status != 409 or not any(x.get("pointer") == "/name" for x in e.errors):
                raise
            return None

    def _keep_attrs(self, path: str, attrs: Mapping[str, Any], names: Optional[Iterable[str]] = None) -> None:
        """Let the server keep attributes; those that it does not take stay in this process. path: of a sweep, or
        SWEEP/trials/NUMBER. names: those that changed; None: all."""
        sent = _sendable(attrs)
        if names is not None:
            sent = {name: value for name, value in sent.items() if name in names}
        try:
            if sent:
                self._http.call("PATCH", f"/v1/sweeps/{path}/user_attrs", sent)
        except AssayError as e:
            if e.status not in (400, 413):
                raise
            _warn(f"{path}: the server does not keep its attributes: {e}")

    def set_user_attr(self, key: str, value: Any) -> None:
        """Keep a value with the study, on the server: JSON of at most 16 KiB, for 64 names and 64 KiB in all. What is
        something else is kept in this process alone. Other programs see it when they load or join the study."""
        self.user_attrs[key] = value
        if self.sweep is not None:
            self._keep_attrs(self.sweep, self.user_attrs, [key])

    def _change(self, sweep: str, **change: Any) -> JSON:
        return dict(self._http.call("PATCH", f"/v1/sweeps/{sweep}", change))

    def _make_no_more(self) -> None:
        """Let the sweep end when the trials that run have ended. max_trials cannot be 0: a sweep of this program alone in
        which none was made is cancelled."""
        made = _made(self._change(self.sweep or "", limits={"max_trials": 1}))
        if not made and not self._shared:
            self._change(self.sweep or "", state="cancelled")

    def _get(self, sweep: str) -> JSON:
        return dict(self._http.call("GET", f"/v1/sweeps/{urllib.parse.quote(sweep, safe='', errors='replace')}"))

    def _request(self, sweep: str, client: str, count: int, wait_ms: int, params: Optional[JSON] = None) -> JSON:
        body: JSON = {"client": client, "count": count, "wait_ms": wait_ms, "lease_ms": int(self._lease * 1000)}
        if params is not None:
            body["params"] = params
        return dict(self._http.call("POST", f"/v1/sweeps/{sweep}/suggestions", body))

    def _bound_constraints(self, values: Optional[Sequence[float]]) -> None:
        """Let the document of a sweep that is about to be created bound what the constraints_func returns."""
        others = self._options.get("constraints") or []
        if self._constraints_func is not None and not _bounded_constraints(self._options)[0]:
            self._options["constraints"] = [*others, *_constraint_bounds(values, len(others))]

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
            return {"params": params, "metrics": record._finite_metrics()}
        return {"params": params, "state": "failed", "reason": record.reason}

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
