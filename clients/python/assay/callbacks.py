"""Callbacks of other libraries. Each imports its library when it is called, and reports the numbers of a step to
`trial`, to the trial whose objective runs in this thread, or to that of assay-runner."""
from __future__ import annotations

import contextlib
import re
import warnings
from typing import Any, Dict, List, Mapping, Optional, Sequence

from .errors import TrialPruned
from .inside import report, should_stop
from .trial import Trial, _this_thread


class _Reporter:
    def __init__(self, trial: Optional[Trial], monitor: Optional[str]) -> None:
        self._trial = trial if trial is not None else getattr(_this_thread, "trial", None)
        self._monitor = monitor

    def send(self, step: int, numbers: Mapping[str, Any]) -> bool:
        """Report what is a number; with `monitor`, also as the value of the study's first objective. Returns whether to
        stop: in a trial of assay-runner. In an objective TrialPruned is raised instead."""
        found: Dict[str, float] = {}
        for name, value in numbers.items():
            with contextlib.suppress(TypeError, ValueError):
                found[re.sub(r"[^A-Za-z0-9_./@()-]", "_", re.sub(r"^(?![A-Za-z_])", "_", name))[:63]] = float(value)
        value = numbers.get(self._monitor) if self._monitor else None
        if self._monitor and value is None:
            warnings.warn(f"monitor: found no {self._monitor} among {', '.join(numbers) or 'no metrics'}", stacklevel=4)
        if self._trial is None:
            if found:
                report(int(step), **found)
            return should_stop()
        if found:
            self._trial.report(None if value is None else float(value), int(step), **found)
        if self._trial.should_prune():
            raise TrialPruned(self._trial._why_pruned(f"stopped at step {step}"))
        return False


def keras_callback(monitor: Optional[str] = None, trial: Optional[Trial] = None) -> Any:
    """For model.fit(callbacks=[…]): reports the logs of each epoch. monitor: such as val_accuracy."""
    try:
        import keras  # type: ignore[import]
    except ImportError:
        from tensorflow import keras  # type: ignore[import,no-redef]
    reporter = _Reporter(trial, monitor)

    class Callback(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self, epoch: int, logs: Optional[Mapping[str, Any]] = None) -> None:
            if reporter.send(epoch, logs or {}):
                self.model.stop_training = True

    return Callback()


def lightning_callback(monitor: Optional[str] = None, trial: Optional[Trial] = None) -> Any:
    """For Trainer(callbacks=[…]): reports callback_metrics after each validation, with the epoch as the step."""
    try:
        import lightning.pytorch as pl  # type: ignore[import]
    except ImportError:
        import pytorch_lightning as pl  # type: ignore[import,no-redef]
    reporter = _Reporter(trial, monitor)

    class Callback(pl.Callback):  # type: ignore[misc]
        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            if not trainer.sanity_checking and trainer.is_global_zero and \
                    reporter.send(trainer.current_epoch, trainer.callback_metrics):
                trainer.should_stop = True

    return Callback()


def huggingface_callback(monitor: Optional[str] = None, trial: Optional[Trial] = None) -> Any:
    """For Trainer(callbacks=[…]) of transformers: reports logs, and the metrics of each evaluation, by global step.
    monitor: such as eval_loss."""
    import transformers  # type: ignore[import]
    during, reporter = _Reporter(trial, None), _Reporter(trial, monitor)

    class Callback(transformers.TrainerCallback):  # type: ignore[misc]
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            if state.is_world_process_zero and not any(n.startswith("eval_") for n in logs or {}):
                during.send(state.global_step, logs or {})

        def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
            if state.is_world_process_zero and reporter.send(state.global_step, metrics or {}):
                control.should_training_stop = True

    return Callback()


def xgboost_callback(monitor: Optional[str] = None, trial: Optional[Trial] = None) -> Any:
    """For xgboost.train(callbacks=[…]): reports the evaluations of each round as DATA-METRIC. monitor: such as
    validation-logloss."""
    import xgboost  # type: ignore[import]
    reporter = _Reporter(trial, monitor)

    class Callback(xgboost.callback.TrainingCallback):  # type: ignore[misc]
        def after_iteration(self, model: Any, epoch: int, evals_log: Mapping[str, Mapping[str, Sequence[Any]]]) -> bool:
            last = {f"{data}-{metric}": values[-1] for data, log in evals_log.items() for metric, values in log.items()}
            return reporter.send(epoch, {n: v[0] if isinstance(v, tuple) else v for n, v in last.items()})

    return Callback()


def cross_val_score(estimator: Any, X: Any, y: Any = None, *, cv: Any = 5, scoring: Any = None, groups: Any = None,
                    trial: Optional[Trial] = None) -> List[float]:
    """The scores of scikit-learn's cross_val_score, fold by fold: the mean so far is reported after each fold, so that a
    trial can end between two folds."""
    from sklearn.base import clone, is_classifier  # type: ignore[import]
    from sklearn.metrics import check_scoring  # type: ignore[import]
    from sklearn.model_selection import check_cv  # type: ignore[import]
    from sklearn.utils import _safe_indexing  # type: ignore[import]
    reporter, scores = _Reporter(trial, "score"), []  # type: _Reporter, List[float]
    scorer = check_scoring(estimator, scoring)
    for fold, (train, test) in enumerate(check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y, groups)):
        parts = [(_safe_indexing(X, rows), None if y is None else _safe_indexing(y, rows)) for rows in (train, test)]
        fitted = clone(estimator).fit(*parts[0])
        scores.append(float(scorer(fitted, *parts[1])))
        if reporter.send(fold, {"score": sum(scores) / len(scores)}):
            break
    return scores
