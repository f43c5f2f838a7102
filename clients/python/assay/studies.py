"""The studies that a server has: their names, summaries, copies, ends."""
from __future__ import annotations

import functools
from typing import Any, Callable, Iterable, List, Mapping, Optional

from .address import _find
from .connection import _Http
from .constants import JSON
from .create import create_study, load_study
from .errors import AssayError
from .results import _local
from .states import StudyDirection, TrialState, _state
from .study import Study
from .trial import FrozenTrial


class StudySummary:
    """A sweep of the server, as a study. best_value: of its first objective, None without one."""

    def __init__(self, sweep: JSON, has_best: bool, load: Callable[[str], Study]) -> None:
        self.study_name, self.state = str(sweep["id"]), str(sweep["state"])
        self.directions = [StudyDirection(m["goal"]) for m in sweep["metrics"]]
        self.best_value: Optional[float] = sweep["best"]["value"] if has_best and sweep.get("best") else None
        self.n_trials, self.datetime_start = int(sweep["counts"]["total"]), _local(sweep.get("created_at"))
        self._load = load

    @property
    def direction(self) -> StudyDirection:
        return self.directions[0]

    @property
    def user_attrs(self) -> JSON:
        """Read when it is asked for."""
        return self._load(self.study_name).user_attrs

    @property
    def best_trial(self) -> Optional[FrozenTrial]:
        """Read when it is asked for; None without one, and with several objectives."""
        if self.best_value is None or len(self.directions) > 1:
            return None
        return self._load(self.study_name).best_trial

    def __repr__(self) -> str:
        return (f"StudySummary(study_name='{self.study_name}', directions={[str(d) for d in self.directions]}, "
                f"best_value={self.best_value}, n_trials={self.n_trials}, state='{self.state}')")


def _sweeps(server: Optional[str], profile: Optional[str], token: Optional[str]) -> List[JSON]:
    study = Study("list", [("value", "minimize")], {}, lambda: _find(server, profile, token, False))
    try:
        return list(study._pages("/v1/sweeps?page_size=500"))
    finally:
        study._http.close()


def get_all_study_names(storage: Any = None, *, server: Optional[str] = None, profile: Optional[str] = None,
                        token: Optional[str] = None) -> List[str]:
    """The ids of all sweeps of the server, oldest first. storage has no effect."""
    return [s["id"] for s in reversed(_sweeps(server, profile, token))]


def get_all_study_summaries(storage: Any = None, include_best_trial: bool = True, *, server: Optional[str] = None,
                            profile: Optional[str] = None, token: Optional[str] = None) -> List[StudySummary]:
    """All sweeps of the server, oldest first. storage has no effect."""
    load = functools.partial(load_study, server=server, profile=profile, token=token)
    return [StudySummary(s, include_best_trial, load) for s in reversed(_sweeps(server, profile, token))]


def delete_study(study_name: str, storage: Any = None, *, server: Optional[str] = None, profile: Optional[str] = None,
                 token: Optional[str] = None) -> None:
    """Delete a sweep with its trials and files; one that runs is cancelled first. AssayError with status 404 when there is
    none."""
    http: _Http = load_study(study_name, server=server, profile=profile, token=token)._http
    study = Study(study_name, [("value", "minimize")], {}, lambda: http.address)
    found = study._get(study_name)
    if found["state"] in ("running", "paused", "finishing"):
        study._change(found["id"], state="cancelled")
    try:
        http.call("DELETE", f"/v1/sweeps/{found['id']}")
    except AssayError as e:
        if e.status != 409:
            raise
        raise AssayError(f"the study {study_name} was cancelled, and some of its trials still run: {e}", 409, e.code) from None
    finally:
        http.close()
        study._http.close()


def copy_study(*, from_study_name: str, to_study_name: Optional[str] = None, from_storage: Any = None,
               to_storage: Any = None, server: Optional[str] = None, profile: Optional[str] = None,
               token: Optional[str] = None) -> Study:
    """A new study with the space and the results of another one, as known results. The storages have no effect."""
    source = load_study(from_study_name, server=server, profile=profile, token=token)
    space: Mapping[str, Any] = {name: p.spec for name, p in source._space.items()}
    options = {k: v for k, v in source._options.items() if k in ("constraints", "parameter_constraints", "forbidden")}
    made = create_study(study_name=to_study_name or source.name, metrics=dict(source.metrics), space=space, server=server,
                        profile=profile, token=token, start=False, method=source._options.get("search", {}).get("method", "gp"),
                        **options)
    made.user_attrs.update(source.user_attrs)
    for record in source.trials:
        if record.state in (TrialState.COMPLETE, TrialState.FAIL):
            made.add_trial(record._given or record._encoded, record._finite_metrics()
                           if record.state == TrialState.COMPLETE else None, str(record.state))
    made._begin(None)
    return made


class MaxTrialsCallback:
    """For optimize(callbacks=[…]): stop when the study has n_trials trials in these states."""

    def __init__(self, n_trials: int, states: Optional[Iterable[Any]] = (TrialState.COMPLETE,)) -> None:
        self._most, self._states = n_trials, None if states is None else [_state(s) for s in states]

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        if len(study.get_trials(deepcopy=False, states=self._states)) >= self._most:
            study.stop()


