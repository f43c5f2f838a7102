#!/usr/bin/env python3
"""Optuna as a peer: suggests, and evaluates nothing. A line of JSON per request on stdin, one per answer on stdout.

    {"op": "begin", "sampler": "gp" | "tpe" | "cmaes", "seed": 1, "deterministic": true, "parameters": {the sweep's parameters}}
    {"op": "ask", "trial": 0}                        -> {"params": {…}, "ms": 12.3, "cpu_ms": 12.1}
    {"op": "tell", "trial": 0, "value": 1.5 | null}  null: the trial failed
    {"op": "add", "params": {…}, "value": 1.5}       a trial that was run elsewhere

Every answer is an object; {"error": …} ends the process. The first line is {"optuna": version, …}. OPTUNA_PATH goes
before the installed packages.

GPSampler gets deterministic_objective for problems without noise, which is to its advantage; everything else is
its default. Optuna has no conditional parameters in its space: it is asked for the active ones alone, in the
order of the document, which is its define-by-run.

Optuna 5 says `with torch.device("cpu")`, which torch before 2.0 does not know. Nothing here sets another default
device, so the block changes nothing, and a context that does nothing stands in for it.
"""
import contextlib
import os
import sys
import time
import warnings

from peer_protocol import serve

if os.environ.get("OPTUNA_PATH"):
    sys.path.insert(0, os.environ["OPTUNA_PATH"])


class OldTorch:
    """torch, whose device() can stand in a `with`."""

    def __init__(self, torch):
        self._torch = torch

    def __getattr__(self, name):
        return getattr(self._torch, name)

    @staticmethod
    def device(*_):
        return contextlib.nullcontext()


def load_optuna():
    import optuna
    import torch
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    have_gp = hasattr(optuna.samplers, "GPSampler")
    if have_gp and not hasattr(torch.device, "__enter__"):
        import optuna.samplers._gp.sampler as gp
        gp.torch = OldTorch(torch)
    return optuna, {"optuna": optuna.__version__, "gp": have_gp, "torch": torch.__version__.split("+")[0],
                    "python": sys.version.split()[0]}


class Peer:
    def __init__(self, optuna):
        self.optuna = optuna
        self.study = None

    def begin(self, sampler, seed, parameters, deterministic):
        kinds = self.optuna.samplers
        if sampler == "gp":
            chosen = kinds.GPSampler(seed=seed, deterministic_objective=deterministic)
        elif sampler == "cmaes":
            chosen = kinds.CmaEsSampler(seed=seed)
        else:
            chosen = kinds.TPESampler(seed=seed)
        self.study = self.optuna.create_study(sampler=chosen)
        self.parameters, self.trials = parameters, {}
        self.distributions = {name: self.distribution(p) for name, p in parameters.items()}
        return {}

    def distribution(self, p):
        d = self.optuna.distributions
        log = p.get("scale") == "log"
        if p["type"] == "float":
            return d.FloatDistribution(p["min"], p["max"], log=log, step=p.get("step"))
        if p["type"] == "int":
            return d.IntDistribution(p["min"], p["max"], log=log, step=1 if log else p.get("step", 1))
        if p["type"] == "bool":
            return d.CategoricalDistribution([False, True])
        if p["type"] == "ordinal" and all(isinstance(v, (int, float)) for v in p["values"]):
            return d.CategoricalDistribution(p["values"])
        return d.CategoricalDistribution([p["value"]] if p["type"] == "constant" else p["values"])

    @staticmethod
    def is_active(p, params):
        for other, wanted in p.get("when", {}).items():
            if other not in params:
                return False
            if isinstance(wanted, dict):
                if not wanted.get("min", params[other]) <= params[other] <= wanted.get("max", params[other]):
                    return False
            elif params[other] not in (wanted if isinstance(wanted, list) else [wanted]):
                return False
        return True

    def ask(self, trial):
        start, cpu = time.perf_counter(), time.process_time()
        asked, params = self.study.ask(), {}
        for name, p in self.parameters.items():
            if self.is_active(p, params):
                value = asked._suggest(name, self.distributions[name])
                if p["type"] in ("float", "int"):
                    value = min(max(value, p["min"]), p["max"])
                params[name] = value
        self.trials[trial] = asked
        return {"params": params, "ms": 1e3 * (time.perf_counter() - start),
                "cpu_ms": 1e3 * (time.process_time() - cpu)}

    def tell(self, trial, value):
        state = self.optuna.trial.TrialState
        if value is None:
            self.study.tell(self.trials.pop(trial), state=state.FAIL)
        else:
            self.study.tell(self.trials.pop(trial), value)
        return {}

    def add(self, params, value):
        self.study.add_trial(self.optuna.trial.create_trial(
            params=params, distributions={n: self.distributions[n] for n in params}, value=value))
        return {}


def load():
    optuna, hello = load_optuna()
    return hello, Peer(optuna)


if __name__ == "__main__":
    serve(load)
