"""Optuna's artifacts: files that a program keeps with its trials and studies. The files are in the program's own store; which
there are is a user attribute of the trial or study, so the server and other programs know them. Files of a trial of
assay-runner are those of artifacts_dir(), which the server has itself."""
from __future__ import annotations

import json
import mimetypes
import os
import shutil
import time
import uuid
from typing import IO, Any, Dict, List, NamedTuple, Optional, Union

from .attributes import VALUE_MAX
from .constants import JSON
from .errors import AssayError, _repr
from .trial import FrozenTrial

ARTIFACTS = "artifacts"  # the user attribute: {id: {filename, mimetype, encoding}}


class ArtifactMeta(NamedTuple):
    """What is known of a file."""

    artifact_id: str
    filename: str
    mimetype: str
    encoding: Optional[str]


class FileSystemArtifactStore:
    """Files in a folder, by their ids. A store of your own has these three methods."""

    def __init__(self, base_path: Union[str, "os.PathLike[str]"]) -> None:
        self._folder = os.fspath(base_path)

    def _path(self, artifact_id: str) -> str:
        if not artifact_id or os.path.basename(artifact_id) != artifact_id or artifact_id in (".", ".."):
            raise ValueError(f"artifact_id: found {_repr(artifact_id)[:100]}, expected what upload_artifact() returned")
        return os.path.join(self._folder, artifact_id)

    def open_reader(self, artifact_id: str) -> IO[bytes]:
        return open(self._path(artifact_id), "rb")

    def write(self, artifact_id: str, content_body: IO[bytes]) -> None:
        path = self._path(artifact_id)
        with open(path + ".part", "wb") as out:
            shutil.copyfileobj(content_body, out)
        os.replace(path + ".part", path)

    def remove(self, artifact_id: str) -> None:
        os.remove(self._path(artifact_id))


class Backoff:
    """A store whose calls are tried again, with pauses that grow."""

    def __init__(self, backend: Any, *, max_retries: int = 10, multiplier: float = 2, min_delay: float = 0.1,
                 max_delay: float = 30) -> None:
        self._backend, self._retries = backend, max_retries
        self._multiplier, self._least, self._most = multiplier, min_delay, max_delay

    def _try(self, call: Any, *given: Any) -> Any:
        for i in range(self._retries):
            try:
                return call(*given)
            except Exception as e:
                if isinstance(e, (FileNotFoundError, ValueError)) or i == self._retries - 1:
                    raise
                for body in given:  # what was read of a file is to be sent again
                    if hasattr(body, "seek"):
                        body.seek(0)
                time.sleep(min(self._least * self._multiplier ** i, self._most))

    def open_reader(self, artifact_id: str) -> IO[bytes]:
        found: IO[bytes] = self._try(self._backend.open_reader, artifact_id)
        return found

    def write(self, artifact_id: str, content_body: IO[bytes]) -> None:
        self._try(self._backend.write, artifact_id, content_body)

    def remove(self, artifact_id: str) -> None:
        self._try(self._backend.remove, artifact_id)


def upload_artifact(*, artifact_store: Any, file_path: str, study_or_trial: Any, storage: Any = None,
                    mimetype: Optional[str] = None, encoding: Optional[str] = None) -> str:
    """Keep a file with a study, or with a trial that runs; its id. `storage` has no effect. AssayError: the attribute
    has no room for another one (some 100)."""
    if isinstance(study_or_trial, FrozenTrial):
        raise ValueError(f"trial {study_or_trial.number} has ended, and what has ended does not change: upload_artifact() is for "
                         "the trial that an objective gets, and for studies")
    name = os.path.basename(file_path)
    kind, packed = mimetypes.guess_type(name)
    made = str(uuid.uuid4())
    known: JSON = {**study_or_trial.user_attrs.get(ARTIFACTS, {}),
                   made: {"filename": name, "mimetype": mimetype or kind or "application/octet-stream", "encoding": encoding or packed}}
    if len(json.dumps(known)) > VALUE_MAX:
        raise AssayError(f"{name}: {len(known) - 1} artifacts are kept already, and there is no room for another one")
    with open(file_path, "rb") as f:
        artifact_store.write(made, f)
    study_or_trial.set_user_attr(ARTIFACTS, known)
    return made


def get_all_artifact_meta(study_or_trial: Any, *, storage: Any = None) -> List[ArtifactMeta]:
    """The files that are kept with a study or trial, in the order of their uploads. `storage` has no effect."""
    known: Dict[str, JSON] = study_or_trial.user_attrs.get(ARTIFACTS, {})
    return [ArtifactMeta(made, a["filename"], a["mimetype"], a["encoding"]) for made, a in known.items()]


def download_artifact(*, artifact_store: Any, file_path: str, artifact_id: str) -> None:
    """Copy a file from the store."""
    with artifact_store.open_reader(artifact_id) as found, open(file_path, "wb") as out:
        shutil.copyfileobj(found, out)
