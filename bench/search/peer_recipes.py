#!/usr/bin/env python3
"""The recipes of HEBO and BoTorch as peers: they suggest, and evaluate nothing. The protocol of peer_optuna.py.

    {"op": "begin", "sampler": "hebo" | "botorch", "seed": 1, "deterministic": true, "parameters": {the sweep's parameters}}

These are restatements in numpy (recipes/hebo.py, recipes/botorch.py, whose heads say what differs), not the projects'
programs: those need newer versions of Python's packages than Debian 12 has. A figure of them says what the idea is
worth, not how good the product is. `deterministic` is not used: both recipes always fit a noise.
"""
import os
import sys
import time

import numpy as np
import scipy

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from peer_protocol import serve  # noqa: E402
from recipes.botorch import Botorch  # noqa: E402
from recipes.hebo import Hebo  # noqa: E402
from recipes.space import Space  # noqa: E402

RECIPES = {"hebo": Hebo, "botorch": Botorch}


class Peer:
    def begin(self, sampler, seed, parameters, deterministic):
        self.space = Space(parameters)
        self.recipe = RECIPES[sampler](self.space, seed)
        self.points, self.values, self.pending = [], [], {}
        return {}

    def known(self):
        """Finished trials and their values; a failed one has the worst value. None has a value: no trial counts."""
        finite = [v for v in self.values if v is not None]
        if not finite:
            return np.empty((0, self.space.d)), np.empty(0)
        worst = max(finite)
        return np.array(self.points), np.array([worst if v is None else v for v in self.values])

    def ask(self, trial):
        start, cpu = time.perf_counter(), time.process_time()
        U, y = self.known()
        if not len(y):  # failed trials count as asked
            pending = np.array(self.points + list(self.pending.values())).reshape(-1, self.space.d)
        else:
            pending = np.array(list(self.pending.values())).reshape(-1, self.space.d)
        u = self.recipe.ask(U, y, pending)
        self.pending[trial] = u
        return {"params": self.space.document(u), "ms": 1e3 * (time.perf_counter() - start),
                "cpu_ms": 1e3 * (time.process_time() - cpu)}

    def tell(self, trial, value):
        self.points.append(self.pending.pop(trial))
        self.values.append(value)
        return {}

    def add(self, params, value):
        self.points.append(self.space.point(params))
        self.values.append(value)
        return {}


def load():
    return {"recipes": f"numpy {np.__version__}, scipy {scipy.__version__}"}, Peer()


if __name__ == "__main__":
    serve(load)
