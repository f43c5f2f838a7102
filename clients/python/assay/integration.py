"""Optuna's pruning callbacks of other libraries, by the names and arguments of optuna-integration."""
from __future__ import annotations

from typing import Any

from .callbacks import _Reporter, keras_callback, lightning_callback, xgboost_callback
from .trial import Trial


def XGBoostPruningCallback(trial: Trial, observation_key: str) -> Any:
    return xgboost_callback(observation_key, trial)


def KerasPruningCallback(trial: Trial, monitor: str, interval: int = 1) -> Any:
    return keras_callback(monitor, trial)


def TFKerasPruningCallback(trial: Trial, monitor: str) -> Any:
    return keras_callback(monitor, trial)


def PyTorchLightningPruningCallback(trial: Trial, monitor: str) -> Any:
    return lightning_callback(monitor, trial)


class LightGBMPruningCallback:
    """For lightgbm.train(callbacks=[…]) and lightgbm.cv(): reports `metric` of the data `valid_name`."""

    def __init__(self, trial: Trial, metric: str, valid_name: str = "valid_0", report_interval: int = 1) -> None:
        self._name = f"{valid_name}-{metric}"
        self._reporter, self._metric = _Reporter(trial, self._name), metric
        self._data, self._interval = valid_name, report_interval

    def __call__(self, env: Any) -> None:
        if (env.iteration + 1) % self._interval:
            return
        found = {}
        for data, name, value, *_ in env.evaluation_result_list or ():
            of, _, short = name.rpartition(" ")  # lightgbm.cv has "cv_agg", "valid auc"; before version 4 without "valid"
            if data == "cv_agg" and (of or "valid") in ("valid", self._data) and short == self._metric:
                found[self._name] = value
            elif data == self._data and name == self._metric:
                found[self._name] = value
        if not found:
            raise ValueError(f"metric: found no {self._metric} of {self._data}, expected one of "
                             f"{', '.join(f'{e[0]} {e[1]}' for e in env.evaluation_result_list or ()) or 'what is evaluated'}")
        self._reporter.send(env.iteration, found)
