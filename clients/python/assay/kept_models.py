"""load_model(): a model file as an object like that which fit() returns."""
from __future__ import annotations

import json
import os
import shutil
import tempfile
from typing import Any, Dict, Union

from .constants import JSON
from .errors import AssayError
from .tables import Model

HEAD_MOST = 100_000_000  # bytes of the header, as the programs have it


def _manifest_of(path: str) -> JSON:
    with open(path, "rb") as f:
        length = int.from_bytes(f.read(8), "little")
        try:
            return dict(json.loads(json.loads(f.read(length if length <= HEAD_MOST else 0))["__metadata__"]["model"]))
        except (ValueError, KeyError, TypeError):
            raise AssayError(f"{path} is no model file, which save() and `assay models get` write") from None


def load_model(path: Union[str, "os.PathLike[str]"]) -> Model:
    """The model of a file that save() or `assay models get` wrote; predictions need no server. A file knows classes as texts, and
    neither interval, test, row_ms nor remarks; leaderboard() needs the server that it was made on."""
    name = os.fspath(path)
    manifest = _manifest_of(name)
    metric, score = next(iter((manifest.get("metrics") or {}).items()), ("", float("nan")))
    stem = os.path.splitext(os.path.basename(name))[0]
    report: Dict[str, Any] = {"metric": metric, "value": score, "sweep": manifest.get("lineage", {}).get("sweep", ""), "model": stem,
                              "version": 0, "size": os.path.getsize(name)}
    labels = {c: c for c in manifest.get("dataset", {}).get("classes") or []}
    folder = tempfile.mkdtemp(prefix="assay-fit-")
    try:
        shutil.copyfile(name, os.path.join(folder, "model.safetensors"))
        return Model(folder, report, None, labels, [])
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
