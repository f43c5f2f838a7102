"""Studies: running an objective."""
from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Type, Union

from .asking import _open_studies
from .constants import JSON, TRIALS_MAX
from .errors import AssayError, ResultError, SpaceError, _reason_of
from .ask_tell import _StudyLoop
from .messages import _warn
from .own_sampler import BaseSampler
from .progress import _Progress
from .pruners import BasePruner, NopPruner
from .run import Callback, _Run, _Teller
from .sweep import _limit_of, _made
from .trial import FrozenTrial, Trial, _client_name, _metric_name, _this_thread


def _collect(study: Study, record: FrozenTrial) -> None:
    gc.collect()


class Study(_StudyLoop):
    """A search: one sweep of the service, or several where its space grew. Made by optimize(), create_study() and
    load_study(); any thread may use it.

    name: of the study; sweep: the id of its sweep, None before its first trial has reported or ended. metrics: the
    objectives, [(name, "minimize" or "maximize")]."""

    def optimize(self, objective: Callable[[Trial], Any], n_trials: Optional[int] = None, timeout: Optional[float] = None,
                 n_jobs: int = 1, catch: Union[Type[BaseException], Iterable[Type[BaseException]]] = (),
                 callbacks: Optional[Sequence[Callback]] = None, show_progress_bar: Optional[bool] = None,
                 batch: int = 1, total: Optional[int] = None, gc_after_trial: bool = False) -> None:
        """Run trials of `objective` until there are no more.

        n_trials: how many more than the study has; None: what is left of its limit, or no limit in a new one.
        total: instead, how many the study has in all, on every machine that works on it. timeout: seconds after which
        no trial begins. n_jobs: threads (-1: one for each processor). catch: exceptions that fail their trial and not
        the call; others fail the trial too, and are raised. callbacks: called with the study and the trial after each.
        batch: how many suggestions a thread asks for at once; above 1 results are sent in the background, and later
        ones of a batch do not know earlier ones. show_progress_bar: None: on a terminal and in a notebook. gc_after_trial:
        collect garbage after each trial."""
        if getattr(getattr(_this_thread, "trial", None), "_study", None) is self:
            raise RuntimeError(f"the study {self.name} runs this objective: optimize() of it cannot be called in there")
        if n_trials == 0:
            return
        for field, number in (("n_trials", n_trials), ("total", total), ("batch", batch)):
            if number is not None and (int(number) != number or number < 1):
                raise ValueError(f"{field}: found {number!r}, expected a whole number from 1")
        if batch > 64 or n_jobs == 0 or n_jobs < -1:
            raise ValueError(f"batch: found {batch}, expected 1 to 64; n_jobs: found {n_jobs}, expected -1 or more than 0")
        caught = (catch,) if isinstance(catch, type) else tuple(catch)
        if not self._set_limit(n_trials, total, timeout):
            return
        after: List[Callback] = [_collect] if gc_after_trial else []
        run = _Run(timeout, caught, after + list(callbacks or []), int(batch), _Progress(self, n_trials or total, show_progress_bar))
        self._run = run
        self._maker = os.getpid() if self.sweep is None else self._maker
        self._unfinished = True
        try:
            self._run_threads(objective, run, (os.cpu_count() or 1) if n_jobs == -1 else int(n_jobs))
        finally:
            self._run = None
            run.progress.end()
            if self._maker == os.getpid() and self.sweep is not None:
                _open_studies.add(self)  # it may have to end its sweep
        if run.errors:
            raise run.errors[0]
        self._unfinished = run.stop.is_set()
        if not self._unfinished and not self._held and not self._given_back:
            _open_studies.discard(self)
        if total is None and run.left() <= 0:
            self._end_here(run.returned)

    @property
    def sampler(self) -> Any:
        """What was given to create_study(), or the sampler that has the name of the service's method. One that is set later
        chooses the values of the trials that come, if it does so itself; a method is that of the sweep from its beginning on."""
        return self._chosen

    @sampler.setter
    def sampler(self, sampler: Any) -> None:
        self._chosen = sampler
        method = getattr(sampler, "method", None)
        self._sampler = sampler if method is None and isinstance(sampler, BaseSampler) else None
        if method is not None and self.sweep is None:
            self._options["search"] = {"method": method, **({} if sampler.seed is None else {"seed": sampler.seed})}
            self._constraints_func = sampler.constraints_func or self._constraints_func
        elif self._sampler is None:
            _warn(f"sampler: no effect on the sweep {self.sweep or self.name}, which keeps its method")

    @property
    def pruner(self) -> BasePruner:
        """What should_prune() asks in this process; a NopPruner where nothing is asked."""
        return self._pruner or NopPruner()

    @pruner.setter
    def pruner(self, pruner: BasePruner) -> None:
        self._pruner = pruner

    def set_metric_names(self, metric_names: Sequence[str]) -> None:
        """Name the objectives, before the first trial."""
        if len(metric_names) != len(self.metrics):
            raise ValueError(f"metric_names: found {len(metric_names)}, expected {len(self.metrics)}")
        if self.sweep is not None:
            raise AssayError(f"metric_names: the sweep {self.sweep} has the names that its objectives had at its first trial")
        self.metrics = [(_metric_name(name), goal) for name, (_, goal) in zip(metric_names, self.metrics)]

    def stop(self) -> None:
        """Begin no more trials in the call of optimize() that runs; for objectives and callbacks. RuntimeError: none does."""
        if self._run is None:
            raise RuntimeError(f"the study {self.name} runs no optimize() that could be stopped")
        self._run.stop.set()

    def _set_limit(self, n_trials: Optional[int], total: Optional[int], timeout: Optional[float]) -> bool:
        """Let the sweep have the limit that a call of optimize() asks for. False: the study has as many trials already."""
        with self._lock:
            if self.sweep is None:
                self._limit = total or n_trials or TRIALS_MAX
                return True
            if n_trials is None and total is None and timeout is None:
                return True
            while True:
                now = self._last_sweep()
                limit = total - self._before if total else _made(now) + n_trials if n_trials else TRIALS_MAX
                if limit < 1 and not _made(now):
                    return False
                self._limit = max(1, limit)
                if self._limit == _limit_of(now) or self._change_limit(_limit_of(now), self._limit):
                    self._enqueue_waiting()
                    return True

    def _last_sweep(self) -> JSON:
        """The sweep that the study is in, with its own limit: the study has not moved on from there, as far as the server
        knows, and no move there is under way."""
        while True:
            now = self._get(self.sweep or "")
            if not self._shared or not ((_limit_of(now) == 1 and self._catch_up()) or
                                        (now["state"] == "paused" and self._complete_move(now["id"])) or
                                        (now["state"] == "cancelled" and self._turn_back(now["id"]))):
                return now

    def _change_limit(self, old: int, new: int) -> bool:
        """Change the limit of the sweep. False: it is not `old` any more, because another program has changed it, or has
        closed the sweep to move the study on; that must not be undone."""
        try:
            self._http.call("PATCH", f"/v1/sweeps/{self.sweep}?if_max_trials={old}", {"limits": {"max_trials": new}})
        except AssayError as e:
            if e.status != 409:
                raise
            return False
        return True

    def _end_here(self, returned: Sequence[Trial] = ()) -> None:
        """After a timeout: what was made is all there is, so that the sweep ends and waits for nobody. The rest of a
        batch, which was returned, is cancelled."""
        with self._lock:
            if self.sweep is not None:
                with contextlib.suppress(AssayError):
                    self._make_no_more()
            for trial in returned:
                with contextlib.suppress(AssayError):
                    self._http.call("POST", f"/v1/sweeps/{trial._sweep}/trials/{trial.number}/cancel")

    def _run_threads(self, objective: Callable[[Trial], Any], run: _Run, n_jobs: int) -> None:
        if n_jobs == 1:
            self._work(objective, run)
            return
        threads = [threading.Thread(target=self._work_quietly, args=(objective, run), name=f"assay-{i}", daemon=True)
                   for i in range(n_jobs)]
        for t in threads:
            t.start()
        try:
            for t in threads:
                while t.is_alive():
                    t.join(0.2)
        except BaseException:  # Ctrl-C: the trials that run end, and no other begins
            run.stop.set()
            for trial in list(self._held):
                self._release(trial)
            raise

    def _work_quietly(self, objective: Callable[[Trial], Any], run: _Run) -> None:
        try:
            self._work(objective, run)
        except BaseException as e:
            run.errors.append(e)
            run.stop.set()
        finally:
            self._http.close()

    def _work(self, objective: Callable[[Trial], Any], run: _Run) -> None:
        """Run trials until there are no more. Of a batch, results are sent by another thread, in order."""
        ready: List[Trial] = []
        teller = _Teller(self) if run.batch > 1 else None
        client = _client_name()
        try:
            while not run.is_over():
                if not ready:
                    if teller:
                        teller.wait()
                    ready = self._next(run, client)
                    client = _client_name()
                    if not ready or run.stop.is_set():
                        break
                self._evaluate(objective, ready.pop(0), run, teller)
        finally:
            if teller:
                teller.end()
            for trial in ready:
                self._release(trial)
            run.returned += ready

    def _evaluate(self, objective: Callable[[Trial], Any], trial: Trial, run: _Run, teller: "Optional[_Teller]") -> None:
        outer, _this_thread.trial = getattr(_this_thread, "trial", None), trial
        trial._begin = time.monotonic()
        failure: Optional[BaseException] = None
        state, metrics, reason = "completed", {}, None  # type: str, Dict[str, float], Optional[str]
        try:
            metrics = self._result_of(objective, trial)
        except SpaceError:
            self._release(trial)
            raise
        except Exception as e:
            pruned = type(e).__name__ == "TrialPruned"
            state, reason = ("pruned" if pruned else "failed"), _reason_of(e)
            is_none = isinstance(e, ResultError) and e.is_none
            failure = None if pruned or is_none or isinstance(e, run.catch) else e
            if failure is not None and trial._sweep is None:  # no sweep for an objective that does not begin
                self._release(trial)
                raise
            if failure is None and not pruned and not trial._directive:
                _warn(f"trial {trial.number} failed: {reason}")
        except BaseException:  # Ctrl-C, SystemExit
            self._release(trial)
            raise
        finally:
            _this_thread.trial = outer
        if teller is None:
            self._conclude(trial, run, state, metrics, reason, failure)
        else:
            teller.add(lambda: self._conclude(trial, run, state, metrics, reason, failure))
        if failure is not None:
            raise failure

    def _result_of(self, objective: Callable[[Trial], Any], trial: Trial) -> Dict[str, float]:
        """Run the objective; what it returned, with the values of the constraints_func. Those of a pruned trial are kept
        too."""
        try:
            metrics = self._metrics_of(objective(trial))
        except Exception as e:
            if type(e).__name__ == "TrialPruned":
                self._constrained(trial, "pruned", {})
            raise
        return self._constrained(trial, "completed", metrics)

    def _prunes(self, trial: Trial) -> bool:
        """Does the study's own pruner stop the trial? It is not asked about one of several objectives."""
        with self._sampling:
            return (self._pruner is not None and len(self.metrics) == 1 and
                    self._pruner.prune(self, self._frozen(trial, "running", {}, None)))

    def _conclude(self, trial: Trial, run: _Run, state: str, metrics: Dict[str, float], reason: Optional[str],
                  failure: Optional[BaseException]) -> None:
        """Tell how a trial ended. failure: what optimize() raises, without a callback."""
        try:
            record = self._finish(trial, state, metrics, reason)
        except BaseException:
            self._release(trial)
            raise
        run.progress.add(record)
        for callback in run.callbacks if failure is None else []:
            callback(self, record)
