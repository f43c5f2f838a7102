"""Studies whose space grows: they move on from sweep to sweep, and each result goes along once.

A study moves on from a sweep, the source, to a successor in four steps. Each may be repeated, also by another program when
the first one has died, or seems to have:
 1. The successor is created, paused. Its tags name the source and the limit of it. Programs that share the study try the
    same names in the same order, so that one of them makes it.
 2. The source is closed: its max_trials is 1, so that no more trials are made there, and the count is final.
 3. The successor gets what is left of the limit, and the results of the source.
 4. The successor starts. 3 and 4 are done to a paused sweep only: a program that was stopped between them changes nothing
    of a sweep that others have started, and perhaps closed since.
A result has one key, the sweep and the number of its trial where it ran. The server adds a key to a sweep once, whoever
sends it, and says it with the trial; a sweep that has ended takes results too. So it does no harm when several programs
carry a result, and this is who does:

| its trial ended | carried by |
| --- | --- |
| before the results of the source were listed | the program that moves the study on; and the one that told it, when that one follows |
| after that | the program that told it: when it tells if it has moved on, else as it follows (before it asks, after it told) |
| after that, and the program that told it died | whoever finds the last sweep at its end |
| not: its program died, and the trial is in the queue of the source | whoever finds the last sweep at its end runs it |

A successor for which nothing was left is cancelled before it starts; who had followed there turns back.

max_trials cannot be 0: a sweep that was closed before its first trial would still make one, which nobody has counted. So a
study does not move on from a sweep before a trial was made there: it asks for one first."""
from __future__ import annotations

import contextlib
import itertools
import json
import re
import urllib.parse
import uuid
from typing import Dict, Iterator, List, Optional, Sequence, Set, Tuple

from .attributes import ATTRIBUTE, _attributes
from .constants import BYTES_MAX, GENERATIONS_MAX, JSON, ROWS_MAX
from .constraints import _bounded_constraints
from .errors import AssayError, SpaceError, Unavailable
from .parameters import _of_spec, _Parameter, _when_meaning
from .results import _key_of
from .sweep import GREW_FROM, STUDY_LIMIT, _limit_of, _made, _origin, _StudySweep
from .trial import FrozenTrial, Trial

FEW = 8  # results that are added without a look at which of them are there
ENDED = ("completed", "failed")  # a pruned trial is no result: the search does not learn from it


def _is_given_up(sweep: JSON) -> bool:
    """Was a successor cancelled before its start?"""
    return bool(sweep["state"] == "cancelled" and not _made(sweep))


def _parts(rows: Sequence[JSON]) -> Iterator[Sequence[JSON]]:
    """Known results as requests take them."""
    first = size = 0
    for i, row in enumerate(rows):
        more = len(json.dumps(row))
        if i > first and (i - first >= ROWS_MAX or size + more > BYTES_MAX):
            yield rows[first:i]
            first, size = i, 0
        size += more
    if rows:
        yield rows[first:]


class _StudyMoves(_StudySweep):
    """The part of a Study that finds its sweep, and moves on to the next."""

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
                self._catch_up()
            if trial is not None:
                self._begin_trial(trial)
            waiting = [w for w in self._waiting if self._sampler is None or w[1] is not None]
            self._waiting = [w for w in self._waiting if w not in waiting]
            for params, result, is_first in waiting:
                if created is not None or not is_first:
                    self._enqueue(params, result)
            self._first = None

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
                if answer["state"] == "paused" and self._shared:
                    self._complete_move(self.sweep or "")
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
        self._options["noise"] = document.get("metric", {}).get("noise")
        self._options["tags"] = [t for t in document.get("tags", []) if not t.startswith((GREW_FROM, STUDY_LIMIT, ATTRIBUTE))]
        self.user_attrs = {**_attributes(found), **self.user_attrs}
        if self._constraints_func is not None and not _bounded_constraints(self._options)[0]:
            raise ValueError(f"constraints_func: the sweep {found['id']} was created without one, and its constraints do not change")
        self.sweep = found["id"]
        self._origins[found["id"]] = _origin(found)[0]
        self._limit = _limit_of(found)

    # To move on.

    def _grow(self) -> None:
        """Move on to a new sweep that has the parameters in _missing too, with what is left of the limit; the one before ends
        when the trials that run have ended. Nothing happens when nothing is left, or before a trial was made there."""
        if self._options.get("search", {}).get("method") == "grid":
            raise SpaceError(f"parameter '{next(iter(self._missing))}' was not suggested in the first trial, and the cells "
                             "of a grid are fixed: give space=")
        if self._generation >= GENERATIONS_MAX:
            raise SpaceError(f"parameter '{next(iter(self._missing))}': the space grew {GENERATIONS_MAX} times; do names "
                             "contain a number that is new in each trial? Give space=")
        if self._shared and self._catch_up():
            return
        source = self.sweep or ""
        before = self._get(source)
        limit = _limit_of(before)
        if before["state"] in ("cancelled", "failed") or not 0 < _made(before) < limit:
            return
        if self._shared and before["state"] == "paused":  # another program still moves the study here: its limit may change
            return
        space, missing = dict(self._space), self._missing
        self._space.update(missing)
        self._infer_conditions(self._ended(source))
        self._generation += 1
        successor = self._post_successor(source, limit)
        if successor is None:  # another program was faster
            self._space, self._generation = space, self._generation - 1
            self._catch_up()
            return
        self._missing = {}
        if not self._move(source, successor, limit):
            self._space, self._missing, self._generation = space, missing, self._generation - 1

    def _post_successor(self, source: str, limit: int) -> Optional[str]:
        """Create the sweep that the study moves on to, paused; its id. None: another program made it first."""
        tags = (GREW_FROM + source, f"{STUDY_LIMIT}{limit}")
        if not self._shared:
            created = self._post(limit, False, True, tags=tags)
            return str(created["id"]) if created else None
        for number in itertools.count(self._generation + 1):
            name = f"{self.name}-{number}"
            created = self._post(limit, True, True, name, tags)
            if created is not None:
                return str(created["id"])
            found = self._get(name)
            if _origin(found)[0] == source and not _is_given_up(found):
                return None
        raise AssertionError("not reached")

    def _move(self, source: str, successor: str, limit: int) -> bool:
        """Steps 2 to 4. False: nothing is left, and the source goes on."""
        made = _made(self._change(source, limits={"max_trials": 1}))
        left = limit - made
        if left <= 0:
            self._change(source, limits={"max_trials": limit})
            self._change_paused(successor, state="cancelled")
            return False
        self._change_paused(successor, limits={"max_trials": left})
        self._add_results(successor, self._ended(source))
        self._change_paused(successor, state="running")
        if self.sweep == source:
            self.sweep, self._limit, self._before = successor, left, self._before + made
            self._origins[successor] = source
        return True

    def _change_paused(self, sweep: str, **change: JSON) -> None:
        """Change a sweep that has not started; nothing if another program has started or cancelled it."""
        with _but(409):
            self._http.call("PATCH", f"/v1/sweeps/{sweep}?if_state=paused", change)

    def _complete_move(self, sweep: str) -> bool:
        """Finish what a program began that died between the creation of a successor and its start. False: the sweep is
        paused for another reason."""
        found = self._get(sweep)
        if found["state"] == "paused":
            source, limit = _origin(found)
            changes = self._http.call("GET", f"/v1/sweeps/{sweep}/changes")["items"]
            if source is None or any("state" in c["changes"] for c in changes):
                return False
            self._move(source, sweep, limit)
        return True

    # Results that go along.

    def _ended(self, sweep: str) -> List[FrozenTrial]:
        """The results of the study as a sweep has them, with those of this program that it lacks. A trial that is being told
        may have ended for the server already: _finish carries it over, once it has it."""
        rows, others = self._results(sweep, list(self._pages(self._trials_path(sweep))))
        telling = {t.number for t in self._held if t._sweep == sweep and t._lost is None}
        return [r for r in [r for r in rows if r.number not in telling] + others if r.state in ENDED]

    def _add_results(self, sweep: str, records: Sequence[FrozenTrial]) -> bool:
        """Let a sweep have these results, each once. False: it had them, or takes none (somebody cancelled or deleted it)."""
        added, refused, is_known = False, set(), len(records) <= FEW  # type: bool, Set[str], bool
        records = [r for r in records if r._own_key.rpartition("/")[0] != sweep]  # those that ran there are there
        with _but(404, 409):
            while True:
                there = {} if is_known else {_key_of(t): int(t["number"]) for t in self._pages(self._trials_path(sweep))}
                self._records.update(((sweep, there[r._own_key]), r) for r in records if r._own_key in there)
                rest = {r._own_key: r for r in records if r._own_key not in there and r._own_key not in refused}
                try:
                    for rows in _parts([dict(self._known_row(r), key=key) for key, r in rest.items()]):
                        answer = self._http.call("POST", f"/v1/sweeps/{sweep}/trials", rows, key=uuid.uuid4().hex)
                        for row, number in zip(rows, answer["numbers"]):
                            self._records[sweep, number] = record = rest[row["key"]]
                            self._keep_attrs(f"{sweep}/trials/{number}", record.user_attrs)
                        added = True
                    break
                except AssayError as e:  # another program was faster, with the values that it had
                    taken = _refused_key(e)
                    if taken is None:
                        raise
                    refused.add(str(rows[taken]["key"]))
                    is_known = False
            self._own = [r for r in self._own if r._own_key not in refused or r._own_key in there]
        return added

    def _bring(self) -> bool:
        """Let the sweep have all results of this program. False: it has them."""
        sweep = self.sweep or ""
        here = {id(r) for (s, _), r in self._records.items() if s == sweep}
        lacking = [r for r in self._own if r.state in ENDED and id(r) not in here]
        return bool(lacking) and self._add_results(sweep, lacking)

    # Studies that several programs share.

    def _follow(self) -> bool:
        """Go on with the sweep that another program moved the study on to, if there is one."""
        source = self.sweep or ""
        tag = urllib.parse.quote(GREW_FROM + source, safe="")
        found = [s for s in self._pages(f"/v1/sweeps?include=document&tag={tag}") if not _is_given_up(s)]
        if not found:
            return False
        # Closed already, or soon: the program that moves the study on may not have come to it, and the count must be final.
        self._before += _made(self._change(source, limits={"max_trials": 1}))
        self._join(self._get(found[0]["id"]))
        self._generation += 1
        return True

    def _catch_up(self) -> bool:
        """Go on with the last sweep of the study, and let it have all results of this program. The study may move on from
        there before they are in it: then they go along once more. True: it was another sweep."""
        begun = self.sweep
        while True:
            while self._shared and not self._is_explicit and self._follow():
                pass
            if not self._bring() or not self._shared:
                return self.sweep != begun

    def _turn_back(self, sweep: str) -> bool:
        """Go back to the source of a successor that was given up."""
        found = self._get(sweep)
        source = _origin(found)[0]
        if source is None or not _is_given_up(found):
            return False
        before = self._get(source)
        self._join(before)
        self._before, self._generation = self._before - _made(before), self._generation - 1
        return True

    def _sources(self) -> List[str]:
        """The sweeps that the study has moved on from, the last one first."""
        found: List[str] = []
        sweep = self.sweep
        while sweep is not None:
            if sweep not in self._origins:
                self._origins[sweep] = None
                with _but(404):
                    self._origins[sweep] = _origin(self._get(sweep))[0]
            sweep = self._origins[sweep]
            if sweep is not None:
                found.append(sweep)
        return found

    def _ask_sources(self, client: str, wait_ms: int) -> Tuple[Optional[JSON], bool]:
        """When the last sweep has ended: a trial that waits in one before it, because its program gave it back or died; and
        whether there may be one later. The results of those that have ended go along."""
        later = False
        for source in self._sources():
            if source in self._over:
                continue
            answer: JSON = {"items": [], "done": True, "state": ""}
            with _but(404):
                answer = self._request(source, client, 1, wait_ms)
            if answer["items"]:
                return answer, True
            if answer["done"]:
                with self._lock, _but(404):
                    self._add_results(self.sweep or "", self._ended(source))
                self._over.add(source)
            elif answer["state"] != "paused" and not self._holds_all(source):
                later = True
        return None, later

    def _holds_all(self, sweep: str) -> bool:
        """Does all that is left of a sweep wait for the loop of ask and tell in this program?"""
        mine = sum(t._sweep == sweep and t._lost is None and (self._run is None or t._is_asked) for t in self._held)
        if not mine:
            return False
        found = self._get(sweep)
        counts: Dict[str, int] = found["counts"]
        return counts["running"] <= mine and not counts["queued"] and not counts["paused"] and _made(found) >= _limit_of(found)


@contextlib.contextmanager
def _but(*statuses: int) -> Iterator[None]:
    """Suppress these answers of the server."""
    try:
        yield
    except AssayError as e:
        if e.status not in statuses or isinstance(e, Unavailable):
            raise


def _refused_key(error: AssayError) -> Optional[int]:
    """The row of a list of known results whose key has another result already."""
    for fault in error.errors if error.status == 409 else []:
        found = re.match(r"/(\d+)/key\Z", str(fault.get("pointer", "")))
        if found:
            return int(found.group(1))
    return None
