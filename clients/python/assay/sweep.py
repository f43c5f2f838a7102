"""Studies: the sweep, its document, its creation, its growth."""
from __future__ import annotations

import itertools
import random
import urllib.parse
import uuid
from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence, Tuple

from .attributes import ATTRIBUTE, TAGS_MAX, _attribute_tags, _attributes
from .constraints import _bounded_constraints, _constraint_bounds
from .constants import GENERATIONS_MAX, JSON, ROWS_MAX, TRIALS_MAX
from .errors import AssayError, SpaceError
from .parameters import _matches, _of_space, _of_spec, _Parameter, _when_meaning
from .results import _StudyData
from .trial import FrozenTrial, Trial

GREW_FROM = "grew-from="  # tags of a sweep that a study moved on to: from where, and the limit that was there
STUDY_LIMIT = "study-limit="
ENDED = ("completed", "failed")  # a pruned trial is no result: the search does not learn from it
Keyed = Tuple[str, FrozenTrial]  # a known result with a key: its sweep and its number there


def _made(sweep: JSON) -> int:
    """How many trials of a sweep count towards its limit."""
    return int(sweep["counts"]["total"]) - int(sweep["known_trials"])


def _origin(sweep: JSON) -> Tuple[Optional[str], int]:
    """The sweep that a study moved on from to this one, and the limit that it had; None and 0 without one."""
    tags = sweep["document"].get("tags", [])
    source = next((t[len(GREW_FROM):] for t in tags if t.startswith(GREW_FROM)), None)
    limit = next((t[len(STUDY_LIMIT):] for t in tags if t.startswith(STUDY_LIMIT)), "0")
    return source, int(limit) if limit.isdigit() else 0


def _parts(rows: Sequence[Keyed], size: int) -> Iterator[Sequence[Keyed]]:
    for first in range(0, len(rows), size):
        yield rows[first:first + size]


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
        tags = list(self._options.get("tags") or [])
        tags += _attribute_tags(self.user_attrs, TAGS_MAX - 2 - len(tags))  # without those of a study that moves on
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
            return dict(self._http.call("POST", "/v1/sweeps" + ("?" + query if query else ""), document, key=uuid.uuid4().hex))
        except AssayError as e:
            if not unique or e.status != 409 or not any(x.get("pointer") == "/name" for x in e.errors):
                raise
            return None

    def _change(self, sweep: str, **change: Any) -> JSON:
        return dict(self._http.call("PATCH", f"/v1/sweeps/{sweep}", change))

    def _get(self, sweep: str) -> JSON:
        return dict(self._http.call("GET", f"/v1/sweeps/{urllib.parse.quote(sweep, safe='', errors='replace')}"))

    def _request(self, sweep: str, client: str, count: int, wait_ms: int, params: Optional[JSON] = None) -> JSON:
        body: JSON = {"client": client, "count": count, "wait_ms": wait_ms, "lease_ms": int(self._lease * 1000)}
        if params is not None:
            body["params"] = params
        return dict(self._http.call("POST", f"/v1/sweeps/{sweep}/suggestions", body))

    def _begin(self, trial: Optional[Trial]) -> None:
        """Make the sweep: with the space that was given, or that of the first trial, which becomes a trial of it. Of several
        programs that share a name one makes it, and the others join it."""
        with self._lock:
            if self.sweep is not None:
                if trial is not None and trial._sweep is None:
                    self._begin_trial(trial)
                return
            if trial is not None:
                if not trial._asked:
                    raise SpaceError("the objective suggested no parameter before it reported or ended: call "
                                     "trial.suggest_float and the like in it, or give space=")
                self._space = {name: p for name, (p, _) in trial._asked.items()}
            self._bound_constraints(trial.system_attrs.get("constraints") if trial is not None else None)
            created = self._post(self._limit, unique=self._shared)
            if created is not None:
                self.sweep = created["id"]
            else:
                self._join(self._get(self.name))
            if trial is not None:
                self._begin_trial(trial)
            waiting = [w for w in self._waiting if self._sampler is None or w[1] is not None]
            self._waiting = [w for w in self._waiting if w not in waiting]
            for params, result, is_first in waiting:
                if created is not None or not is_first:
                    self._enqueue(params, result)
            self._first = None

    def _bound_constraints(self, values: Optional[Sequence[float]]) -> None:
        """Let the document of a sweep that is about to be created bound what the constraints_func returns."""
        others = self._options.get("constraints") or []
        if self._constraints_func is not None and not _bounded_constraints(self._options)[0]:
            self._options["constraints"] = [*others, *_constraint_bounds(values, len(others))]

    def _begin_trial(self, trial: Trial) -> None:
        """Let the first trial of this program, whose values were drawn here, be one of the sweep: in one step, so that no
        other program gets it. It is one too many when the sweep has no more trials."""
        for name, (p, _) in trial._asked.items():
            if name in self._space:
                trial._check_same(p, self._space[name], f"in the sweep {self.sweep}")
        given = {n: p.encode(v) for n, (p, v) in trial._asked.items() if n in self._space}
        params = self._complete(given, lambda p: p.encode(p.draw(self._random)))
        try:
            answer = self._request(self.sweep or "", trial._client, 1, 30000, params)
            while not answer["items"] and not answer["done"]:  # somebody paused the sweep, or others use all its places
                answer = self._request(self.sweep or "", trial._client, 1, 30000, params)
        except AssayError as e:
            if e.status != 409 or not self._shared or self._options.get("search", {}).get("method") == "grid":
                raise
            answer = {"items": []}
        if answer["items"]:
            trial._adopt(answer["items"][0])
        else:
            trial._sweep, trial.number = self.sweep, -1
            trial._lost = f"other programs ran all trials of the sweep {self.sweep} before this one began"

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

    def _grow(self) -> None:
        """Move on to a new sweep that has the parameters in _missing too, with what is left of the limit; the one
        before ends when the trials that run have ended. Nothing happens when nothing is left. Other programs that share
        the study find the new sweep by its tag."""
        if self._options.get("search", {}).get("method") == "grid":
            raise SpaceError(f"parameter '{next(iter(self._missing))}' was not suggested in the first trial, and the cells "
                             "of a grid are fixed: give space=")
        if self._generation >= GENERATIONS_MAX:
            raise SpaceError(f"parameter '{next(iter(self._missing))}': the space grew {GENERATIONS_MAX} times; do names "
                             "contain a number that is new in each trial? Give space=")
        if self._shared and self._follow():
            return
        source = self.sweep or ""
        before = self._get(source)
        limit = int(before["document"].get("limits", {}).get("max_trials", TRIALS_MAX))
        if before["state"] in ("cancelled", "failed") or limit <= _made(before):
            return
        if self._shared and before["state"] == "paused":  # another program still moves the study here: its limit may change
            return
        space, missing = dict(self._space), self._missing
        self._space.update(missing)
        self._infer_conditions([r for _, r in self._ended(source)])
        self._generation += 1
        successor = self._post_successor(source, limit)
        if successor is None:  # another program was faster
            self._space, self._generation = space, self._generation - 1
            self._follow()
            return
        self._missing = {}
        if not self._move(source, successor, limit):
            self._space, self._missing, self._generation = space, missing, self._generation - 1

    def _post_successor(self, source: str, limit: int) -> Optional[str]:
        """Create the sweep that the study moves on to, paused; its id. None: another program made it first. Programs that
        share the study try the same names in the same order, so that they meet."""
        tags = (GREW_FROM + source, f"{STUDY_LIMIT}{limit}")
        if not self._shared:
            created = self._post(limit, False, True, tags=tags)
            return str(created["id"]) if created else None
        for number in itertools.count(self._generation + 1):
            name = f"{self.name}-{number}"
            created = self._post(limit, True, True, name, tags)
            if created is not None:
                return str(created["id"])
            if _origin(self._get(name))[0] == source:
                return None
        raise AssertionError("not reached")

    def _move(self, source: str, successor: str, limit: int, by_others: bool = False) -> bool:
        """End the sweep `source`, and give the successor, which is paused, what is left of the limit and all results. Every
        step may be repeated, also by another program when the first one has died. Is anything left?"""
        made = _made(self._change(source, limits={"max_trials": 1}))
        left = limit - made
        if left <= 0:
            self._change(source, limits={"max_trials": limit})
            self._change(successor, state="cancelled")
            return False
        self._change(successor, limits={"max_trials": left})
        self._add_known(successor, self._ended(source), by_others)
        self._change(successor, state="running")
        if self.sweep == source:
            self.sweep, self._limit, self._before = successor, left, self._before + made
        return True

    def _ended(self, sweep: str) -> List[Keyed]:
        """The trials of the study that have ended, with those of the sweep that other programs ran. A trial that is being
        told may have ended for the server already: _finish carries it over, once it has it."""
        rows, others = self._results(sweep, list(self._pages(self._trials_path(sweep))))
        telling = {t.number for t in self._held if t._sweep == sweep and t._lost is None}
        found = [(f"{sweep}/{r.number}", r) for r in rows if r.number not in telling]
        return [(key, r) for key, r in found + [(r._own_key, r) for r in others] if r.state in ENDED]

    def _add_known(self, sweep: str, records: Sequence[Keyed], one_by_one: bool = False) -> bool:
        """Add known results. What another program added already under the same key is not added again. False: the sweep
        takes no more trials, and has not all of them."""
        takes = True
        for rows in _parts(records, 1 if one_by_one else ROWS_MAX):
            body = [dict(self._known_row(r), key=key) for key, r in rows]
            try:
                numbers = self._http.call("POST", f"/v1/sweeps/{sweep}/trials", body, key=uuid.uuid4().hex)["numbers"]
            except AssayError as e:
                if e.status != 409:
                    raise
                if not one_by_one:
                    takes &= self._add_known(sweep, rows, True)
                elif not any(x.get("pointer", "").endswith("/key") for x in e.errors):
                    takes = False
                continue  # alone: it is there with values that this program does not know, or the sweep has ended
            for (_, record), number in zip(rows, numbers):
                self._records[sweep, number] = record
        return takes

    # Studies that several programs share.

    def _join(self, found: JSON) -> None:
        """Go on with a sweep that the server has. SpaceError: it is not the space of this study."""
        document = found["document"]
        theirs = {name: _of_spec(name, spec) for name, spec in document["parameters"].items()}
        mine = {**self._missing, **self._space}
        for name, p in self._space.items():
            if name in theirs and not p.same(theirs[name]):
                raise SpaceError(f"parameter '{name}': found {p.described()}, but the sweep {found['id']} has "
                                 f"{theirs[name].described()}")
            if self._is_explicit and name not in theirs:
                raise SpaceError(f"parameter '{name}': found {p.described()}, but the sweep {found['id']} has no such parameter")
        for name, p in theirs.items():
            if self._is_explicit and name not in mine:
                raise SpaceError(f"parameter '{name}': space= does not have it, but the sweep {found['id']} has {p.described()}")
            if self._is_explicit and _when_meaning(mine[name].spec.get("when")) != _when_meaning(p.spec.get("when")):
                raise SpaceError(f"parameter '{name}': when: found {mine[name].spec.get('when')}, but the sweep {found['id']} "
                                 f"has {p.spec.get('when')}")
        known = {name: mine[name].choices for name in theirs if name in mine and mine[name].same(theirs[name])}
        self._missing = {name: p for name, p in mine.items() if name not in theirs}
        self._space = {name: mine[name] if known.get(name) is not None else p for name, p in theirs.items()}
        for name, p in theirs.items():
            when = p.spec.get("when")
            self._space[name].spec.pop("when", None)
            if when:
                self._space[name].spec["when"] = when
        self.metrics = [(m["name"], m["goal"]) for m in found["metrics"]]
        self._options = {k: document[k] for k in ("search", "constraints", "tags", "limits", "parameter_constraints", "forbidden",
                                                    "early_stopping") if k in document}
        self._options["tags"] = [t for t in document.get("tags", []) if not t.startswith((GREW_FROM, STUDY_LIMIT, ATTRIBUTE))]
        self.user_attrs = {**_attributes(document.get("tags", [])), **self.user_attrs}
        if self._constraints_func is not None and not _bounded_constraints(self._options)[0]:
            raise ValueError(f"constraints_func: the sweep {found['id']} was created without one, and its constraints do not change")
        self.sweep = found["id"]
        self._limit = int(document.get("limits", {}).get("max_trials", TRIALS_MAX))

    def _follow(self, carried: Sequence[Keyed] = ()) -> bool:
        """Go on with the sweep that another program moved the study on to, if there is one. carried: results that the sweep
        before does not have."""
        source = self.sweep or ""
        tag = urllib.parse.quote(GREW_FROM + source, safe="")
        found = [s for s in self._pages(f"/v1/sweeps?include=document&tag={tag}") if s["state"] != "cancelled" or _made(s)]
        if not found:
            return False
        # Closed already, or soon: the program that moves the study on may not have come to it, and the count must be final.
        self._before += _made(self._change(source, limits={"max_trials": 1}))
        self._join(found[0])
        self._generation += 1
        mine = [*carried, *((f"{s}/{n}", r) for (s, n), r in self._records.items() if s == source and r.state in ENDED)]
        if not self._add_known(self.sweep or "", mine, True) and self._follow(mine):
            return True  # the study had moved on from there too
        kept = {id(r) for (s, _), r in self._records.items() if s == self.sweep}
        self._own = [r for r in self._own if id(r) in kept or r.state == "pruned"]  # the server lists the others with the values that it has
        return True

    def _complete_move(self, sweep: str) -> None:
        """Finish what a program began that died between the creation of a successor and its start."""
        found = self._get(sweep)
        source, limit = _origin(found)
        changes = self._http.call("GET", f"/v1/sweeps/{sweep}/changes")["items"]
        if source is not None and found["state"] == "paused" and not any("state" in c["changes"] for c in changes):
            self._move(source, sweep, limit, by_others=True)

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
