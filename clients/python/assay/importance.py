"""How much each parameter matters, as the service computes it (docs/search.md)."""
from __future__ import annotations

import urllib.parse
from typing import Dict, Optional, Sequence

from .errors import AssayError
from .study import Study


def get_param_importances(study: Study, *, params: Optional[Sequence[str]] = None, normalize: bool = True,
                          metric: Optional[str] = None) -> Dict[str, float]:
    """The share of the variance of the first objective (or of `metric`) that each parameter explains with its interactions:
    total Sobol indices of a model of the completed trials, the largest first. normalize: so that they add up to 1. What
    the service cannot say yet is an AssayError."""
    if study.sweep is None:
        raise AssayError(f"the study {study.name} has no trials yet")
    name = metric or study.metrics[0][0]
    found = study._http.call("GET", f"/v1/sweeps/{study.sweep}/importance?metric={urllib.parse.quote(name)}")
    shares = {p["name"]: float(p["total"]) for p in found["parameters"] if p["total"] is not None}
    if not shares:
        raise AssayError(f"the study {study.name} has too few completed trials for the importance of parameters: "
                         f"{found['trials']}")
    for wanted in params or ():
        if wanted not in shares:
            raise ValueError(f"params: found '{wanted}', expected some of {', '.join(shares)}")
    shares = {n: max(0.0, v) for n, v in shares.items() if params is None or n in params}
    whole = sum(shares.values())
    if normalize and whole > 0:
        shares = {n: v / whole for n, v in shares.items()}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))
