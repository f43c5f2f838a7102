"""Optuna's module names, so that `import assay as optuna` finds what it looks for: optuna.trial.TrialState, optuna.samplers,
optuna.visualization.plot_slice, also as `from assay.trial import TrialState`. docs/python.md has the table."""
from __future__ import annotations

import sys
import types
from logging import CRITICAL, DEBUG, ERROR, FATAL, INFO, WARN, WARNING
from typing import Any

from .artifacts import (ArtifactMeta, Backoff, FileSystemArtifactStore, download_artifact, get_all_artifact_meta,
                        upload_artifact)
from .create import create_study, load_study
from .distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from .errors import (AssayError, DuplicatedStudyError, ExperimentalWarning, TrialPruned, Unavailable,
                     UpdateFinishedTrialError)
from .fixed import FixedTrial, create_trial
from .importance import get_param_importances
from .integration import (KerasPruningCallback, LightGBMPruningCallback, PyTorchLightningPruningCallback,
                          TFKerasPruningCallback, XGBoostPruningCallback)
from .messages import (create_default_formatter, disable_default_handler, disable_propagation, enable_default_handler,
                       enable_propagation, get_logger, get_verbosity, set_verbosity)
from .methods import (BruteForceSampler, CmaEsSampler, GPSampler, GridSampler, NSGAIIISampler, NSGAIISampler, QMCSampler, RandomSampler,
                      TPESampler)
from .own_sampler import BaseSampler, IntersectionSearchSpace, intersection_search_space
from .pruners import (BasePruner, HyperbandPruner, MedianPruner, NopPruner, PatientPruner, PercentilePruner,
                      SuccessiveHalvingPruner, ThresholdPruner, WilcoxonPruner)
from .states import StudyDirection, TrialState
from .storages import (GrpcStorageProxy, InMemoryStorage, JournalFileBackend, JournalFileOpenLock, JournalFileStorage,
                       JournalFileSymlinkLock, JournalRedisBackend, JournalRedisStorage, JournalStorage, RDBStorage,
                       RetryFailedTrialCallback)
from .studies import (MaxTrialsCallback, StudySummary, copy_study, delete_study, get_all_study_names,
                      get_all_study_summaries)
from .study import Study
from .terminator import (BaseErrorEvaluator, BaseImprovementEvaluator, BaseTerminator, BestValueStagnationEvaluator,
                         CrossValidationErrorEvaluator, RegretBoundEvaluator, StaticErrorEvaluator, Terminator,
                         TerminatorCallback, report_cross_validation_scores)
from .trial import FrozenTrial, Trial
from .visualization import _plots, is_available


def _module(name: str, *items: Any, **named: Any) -> Any:
    """The module `assay.name` with these functions and classes; one that is there already (a module of the package) gets
    them too."""
    path = __name__.partition(".")[0] + "." + name
    module = sys.modules.setdefault(path, types.ModuleType(path))
    for item in items:
        named[item.__name__] = item
    vars(module).update(named)
    return module


_trial_names = _module("trial", FixedTrial, FrozenTrial, Trial, TrialState, create_trial)
_study_names = _module("study", MaxTrialsCallback, Study, StudyDirection, StudySummary, copy_study, create_study, delete_study,
                       get_all_study_names, get_all_study_summaries, load_study)
_distribution_names = _module("distributions", BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution)
_exception_names = _module("exceptions", DuplicatedStudyError, ExperimentalWarning, TrialPruned, UpdateFinishedTrialError,
                           OptunaError=AssayError, StorageInternalError=Unavailable)
_importance_names = _module("importance", get_param_importances)
_logging_names = _module("logging", create_default_formatter, disable_default_handler, disable_propagation, enable_default_handler,
                         enable_propagation, get_logger, get_verbosity, set_verbosity, CRITICAL=CRITICAL, DEBUG=DEBUG,
                         ERROR=ERROR, FATAL=FATAL, INFO=INFO, WARN=WARN, WARNING=WARNING)
_sampler_names = _module("samplers", BaseSampler, BruteForceSampler, CmaEsSampler, GPSampler, GridSampler, NSGAIIISampler, NSGAIISampler,
                         QMCSampler, RandomSampler, TPESampler)
_journal_names = (JournalFileBackend, JournalFileOpenLock, JournalFileStorage, JournalFileSymlinkLock, JournalRedisBackend,
                  JournalRedisStorage, JournalStorage)
_storage_names = _module("storages", GrpcStorageProxy, InMemoryStorage, RDBStorage, RetryFailedTrialCallback, *_journal_names,
                         journal=_module("storages.journal", *_journal_names))
_search_space_names = _module("search_space", IntersectionSearchSpace, intersection_search_space)
_pruner_names = _module("pruners", BasePruner, HyperbandPruner, MedianPruner, NopPruner, PatientPruner, PercentilePruner,
                        SuccessiveHalvingPruner, ThresholdPruner, WilcoxonPruner)
_artifact_names = _module("artifacts", ArtifactMeta, Backoff, FileSystemArtifactStore, download_artifact, get_all_artifact_meta,
                          upload_artifact)
_improvement_names = (BaseImprovementEvaluator, BestValueStagnationEvaluator, RegretBoundEvaluator)
_error_names = (BaseErrorEvaluator, CrossValidationErrorEvaluator, StaticErrorEvaluator, report_cross_validation_scores)
_terminator_names = _module("terminator", BaseTerminator, Terminator, TerminatorCallback, *_improvement_names, *_error_names,
                            callback=_module("terminator.callback", TerminatorCallback),
                            erroreval=_module("terminator.erroreval", *_error_names),
                            improvement=_module("terminator.improvement", *_improvement_names),
                            terminator=_module("terminator.terminator", BaseTerminator, Terminator))
_integration_names = _module("integration", KerasPruningCallback, LightGBMPruningCallback, PyTorchLightningPruningCallback,
                             TFKerasPruningCallback, XGBoostPruningCallback)
_visualization_names = _module("visualization", is_available, **_plots(False),
                               matplotlib=_module("visualization.matplotlib", is_available, **_plots(True)))
_all_names = {"trial": _trial_names, "study": _study_names, "distributions": _distribution_names,
              "exceptions": _exception_names, "importance": _importance_names, "logging": _logging_names,
              "samplers": _sampler_names, "storages": _storage_names, "pruners": _pruner_names,
              "search_space": _search_space_names, "artifacts": _artifact_names, "terminator": _terminator_names,
              "integration": _integration_names, "visualization": _visualization_names}


def __getattr__(name: str) -> Any:
    """assay.trial, assay.visualization, …"""
    if name in _all_names:
        return _all_names[name]
    raise AttributeError(f"module 'assay' has no attribute '{name}'")
