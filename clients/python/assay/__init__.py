"""Assay for Python: hyperparameter search with the standard library alone, Python 3.8 to 3.13.

    import assay

    def objective(trial):
        lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
        return train(lr)

    study = assay.optimize(objective, n_trials=30)
    print(study.best_value, study.best_params)

Why it is made this way:
- It speaks to the operations of docs/ask-tell.md alone. Every request may be repeated: an ask has a client name of its
  own, so an answer that was lost is asked for again; what creates something has an idempotency key.
- The service needs the space before the first suggestion, and a define-by-run objective says it while it runs. So the
  first trial runs with values drawn here. The sweep is created when that trial first reports or ends, and it is that
  sweep's trial 0. A name that a later trial suggests first is drawn here too; then the study moves on to a new sweep
  with the larger space, which is given all results so far (Study._grow).
- A thread has a connection of its own, which stays open. A study has one lock; it is never held while an objective
  runs. Nothing but the standard library is imported before the user asks for it.
- It is written as a package of modules and delivered as one file, which join.py makes of them: the modules in the order
  of join.MODULES, in one namespace, without their imports of each other.
"""
from __future__ import annotations

from .callbacks import cross_val_score, huggingface_callback, keras_callback, lightning_callback, xgboost_callback
from .constants import __version__
from .create import create_study, load_study, optimize
from .distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from .errors import AssayError, SpaceError, TrialPruned, Unavailable
from .fixed import FixedTrial, create_trial
from .importance import get_param_importances
from .inside import artifacts_dir, checkpoint_dir, in_trial, params, report, seed, should_stop
from .kept_models import load_model
from .methods import CmaEsSampler, GPSampler, QMCSampler, RandomSampler, TPESampler
from .names import __getattr__
from .sampler import AssaySampler
from .states import StudyDirection, TrialState
from .studies import (MaxTrialsCallback, StudySummary, copy_study, delete_study, get_all_study_names,
                      get_all_study_summaries)
from .study import Study
from .tables import Model, fit
from .trial import FrozenTrial, Trial

__all__ = ["AssayError", "AssaySampler", "BaseDistribution", "CategoricalDistribution", "CmaEsSampler", "FixedTrial",
           "FloatDistribution", "FrozenTrial", "GPSampler", "IntDistribution", "MaxTrialsCallback", "Model", "QMCSampler",
           "RandomSampler", "SpaceError", "Study", "StudyDirection", "StudySummary", "TPESampler", "Trial", "TrialPruned",
           "TrialState", "Unavailable", "__version__", "artifacts_dir", "checkpoint_dir", "copy_study",
           "create_study", "create_trial", "cross_val_score", "delete_study", "fit", "get_all_study_names",
           "get_all_study_summaries", "get_param_importances", "huggingface_callback", "in_trial", "keras_callback",
           "lightning_callback", "load_model", "load_study", "optimize", "params", "report", "seed", "should_stop", "xgboost_callback"]
