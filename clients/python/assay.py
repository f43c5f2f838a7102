"""Assay for Python: hyperparameter search in one file, standard library alone, Python 3.8 to 3.13.

    import assay

    def objective(trial):
        lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
        return train(lr)

    study = assay.optimize(objective, n_trials=30)
    print(study.best_value, study.best_params)

The parts, in their order: errors; the server (finding it, starting it, HTTP); parameters; trials; studies; `optimize`;
what a program sees inside a trial that assay-runner started; Optuna; callbacks of other libraries.

Why it is made this way:
- It speaks to the operations of docs/ask-tell.md alone. Every request may be repeated: an ask has a client name of its
  own, so an answer that was lost is asked for again; what creates something has an idempotency key.
- The service needs the space before the first suggestion, and a define-by-run objective says it while it runs. So the
  first trial runs with values drawn here. The sweep is created when that trial first reports or ends, and it is that
  sweep's trial 0. A name that a later trial suggests first is drawn here too; then the study moves on to a new sweep
  with the larger space, which is given all results so far (Study._grow).
- A thread has a connection of its own, which stays open. A study has one lock; it is never held while an objective
  runs. Nothing but the standard library is imported before the user asks for it.
"""
from __future__ import annotations

import atexit
import calendar
import contextlib
import getpass
import html
import http.client
import itertools
import json
import math
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import uuid
import warnings
from pathlib import Path
from typing import (Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type,
                    Union)

__version__ = "0.1.0"
__all__ = ["AssayError", "AssaySampler", "FrozenTrial", "SpaceError", "Study", "Trial", "TrialPruned", "Unavailable",
           "artifacts_dir", "checkpoint_dir", "create_study", "cross_val_score", "huggingface_callback", "in_trial",
           "keras_callback", "lightning_callback", "load_study", "optimize", "params", "report", "seed", "should_stop",
           "xgboost_callback"]

JSON = Dict[str, Any]
LEASE_S = 600.0  # how long the server holds a trial for a program that is silent: the server's default
BEAT_S = 20.0  # between heartbeats, so that a trial which a person cancels is known here soon
FLUSH_S = 0.5  # reports of a trial are sent together, at most this old
PATIENCE_S = 600.0  # how long a server that was reached before may be away
TRIALS_MAX = 1_000_000  # the largest limits.max_trials
ROWS_MAX = 1000  # known results in a request; the server takes 5,000 and 1 MiB
GENERATIONS_MAX = 60  # how often the space of a study may grow


# Errors.

class AssayError(Exception):
    """What the server or this file refuses. `status` and `code` are those of the server's problem document (0 and ""
    otherwise), `errors` its list of {"pointer", "detail"}."""

    def __init__(self, message: str, status: int = 0, code: str = "", errors: Sequence[JSON] = ()) -> None:
        super().__init__(message)
        self.status, self.code, self.errors = status, code, list(errors)


class Unavailable(AssayError):
    """No server is known, or it does not answer."""


class SpaceError(AssayError, ValueError):
    """A parameter is wrong, or not what it was in an earlier trial. It ends optimize(), whatever `catch` says."""


class TrialPruned(Exception):
    """Raise it in an objective to give a trial up. Optuna's exception of this name is understood too."""


def _say(text: str) -> None:
    print("assay: " + text, file=sys.stderr, flush=True)


# The server: finding it. The order is that of the command line (docs/cli.md): a server that is named, a profile, the
# environment, a running `assay up`. A token is only sent to the server that it was found for.

class _Address(NamedTuple):
    url: str
    token: str
    origin: str  # where the address was found, for messages


def _read_token(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as f:
            token = f.readline(4096).strip()
    except OSError as e:
        raise AssayError(f"token file {path}: {e.strerror}") from None
    if not token:
        raise AssayError(f"the token file {path} is empty")
    return token


def _user_folder(variable: str, below_home: str) -> str:
    base = os.environ.get(variable, "")
    return os.path.join(base if base.startswith("/") else os.path.join(os.path.expanduser("~"), below_home), "assay")


def _start_ticks(pid: int) -> int:
    """When a process began, in the kernel's ticks: with its pid it identifies the process. 0: it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            rest = f.read().rpartition(")")[2].split()
        return 0 if rest[0] == "Z" else int(rest[19])
    except (OSError, IndexError, ValueError):
        return 0


def _running(url: Optional[str] = None) -> Optional[JSON]:
    """The note of the newest `assay up` of this user that still runs, or None. url: only of that server; without it,
    only of that on the data folder ASSAY_DATA, if the variable is set."""
    folder = os.path.join(_user_folder("XDG_STATE_HOME", ".local/state"), "up")
    data = os.environ.get("ASSAY_DATA") if url is None else None
    best: Optional[JSON] = None
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                note = json.load(f)
            live = name.endswith(".json") and note["start"] > 0 and _start_ticks(note["pid"]) == note["start"]
            meant = url in (None, note["url"]) and (not data or note.get("data") == os.path.realpath(data))
            if live and meant and (best is None or note["since"] > best["since"]):
                best = note
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return best


def _scalar(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _profile_fields(at: str, text: str) -> Iterator[Tuple[str, str]]:
    for part in filter(None, map(str.strip, text.split(","))):
        name, colon, value = part.partition(":")
        if not colon or not value.strip():
            raise AssayError(f"{at}: found '{part}', expected FIELD: VALUE")
        yield name.strip(), _scalar(value)


def _parse_profiles(path: str, text: str) -> Dict[str, Dict[str, str]]:
    """The servers of ~/.config/assay/config, of which this reads what docs/cli.md shows: a line for each profile with
    its fields in braces, or a line for each field below the profile's name."""
    found: Dict[str, Dict[str, str]] = {}
    inside, name = False, ""
    for number, line in enumerate(text.splitlines(), 1):
        at, line = f"{path}:{number}", re.sub(r"(^|\s)#.*$", "", line).rstrip()
        depth = len(line) - len(line.lstrip(" "))
        if not line:
            continue
        key, colon, rest = line.strip().partition(":")
        rest = rest.strip()
        if depth == 0 and (key, rest) == ("profiles", ""):
            inside = True
        elif not inside or not colon or depth == 0:
            raise AssayError(f"{at}: found '{line.strip()[:60]}', expected profiles: and the profiles below it")
        elif not rest:
            name = _scalar(key)
            found[name] = {}
        elif rest.startswith("{") and rest.endswith("}"):
            name = ""
            found[_scalar(key)] = dict(_profile_fields(at, rest[1:-1]))
        elif name:
            found[name].update(_profile_fields(at, f"{key}: {rest}"))
        else:
            raise AssayError(f"{at}: found '{line.strip()[:60]}', expected NAME: {{url: …, token_file: …}}")
        for fields in found.values():
            for field in set(fields) - {"url", "token_file"}:
                raise AssayError(f"{at}: found the field {field}, expected url or token_file")
    return found


def _profile(name: str) -> Tuple[str, str]:
    """URL and path of the token's file ("" without one) of a profile."""
    folder = _user_folder("XDG_CONFIG_HOME", ".config")
    path = os.path.join(folder, "config")
    try:
        with open(path, encoding="utf-8") as f:
            profiles = _parse_profiles(path, f.read())
    except OSError as e:
        raise AssayError(f"the profile '{name}': {path}: {e.strerror}") from None
    if name not in profiles:
        raise AssayError(f"there is no profile '{name}'; known are {', '.join(profiles) or 'none'}")
    url, token = profiles[name].get("url", ""), profiles[name].get("token_file", "")
    if not re.match(r"https?://", url):
        raise AssayError(f"{path}: /profiles/{name}/url: found '{url}', expected http://… or https://…")
    return url, os.path.join(folder, os.path.expanduser(token)) if token else ""


def _start_server() -> JSON:
    """Starts `assay up`, which goes on when this program ends, and waits until it is ready. Its note."""
    beside = Path(__file__).resolve().parent.parent.parent / "build" / "cli" / "assay"
    program = shutil.which("assay") or (str(beside) if os.access(str(beside), os.X_OK) else None)
    if not program:
        raise Unavailable("no server is known: start one with `assay up`, or name one with server= or ASSAY_SERVER. "
                          "None was started, because `assay` is not in PATH")
    handle, log = tempfile.mkstemp(prefix="assay-up-", suffix=".log")
    os.close(handle)
    # A shell starts it and ends, so that it is no child of this program: nobody has to wait for it.
    shell = subprocess.run(["sh", "-c", '"$@" >"$0" 2>&1 </dev/null & echo $!', log, program, "up"], check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    pid = int(shell.stdout)
    while True:
        live, note = _start_ticks(pid) > 0, _running()
        if note is not None:  # ours, or that of another program which started one at the same moment
            if note["pid"] == pid:
                _say(f"started `assay up` at {note['url']}; it goes on after this program; `kill {pid}` ends it")
            os.unlink(log)
            return note
        if not live:
            with open(log, encoding="utf-8", errors="replace") as f:
                raise Unavailable(f"`{program} up` ended; the end of its output ({log}): {f.read()[-600:].strip()}")
        time.sleep(0.05)


def _find(server: Optional[str], profile: Optional[str], token: Optional[str], start: bool) -> _Address:
    """token: its text, or None for the token that belongs to the server."""
    if server and profile:
        raise AssayError("choose one of server= and profile=")
    env, token_file, origin = os.environ.get, "", "server="
    if not server and not profile:
        server, origin = env("ASSAY_SERVER"), "ASSAY_SERVER"
        profile = None if server else env("ASSAY_PROFILE")
    if profile:
        server, token_file = _profile(profile)
        origin = f"the profile {profile}"
    if not server:
        note = _running() or (_start_server() if start else None)
        if note is None and env("ASSAY_DATA"):
            raise Unavailable(f"no `assay up` runs on the data folder {env('ASSAY_DATA')} (ASSAY_DATA): start it, or "
                              "name a server with server=, profile= or ASSAY_SERVER")
        if note is None:
            raise Unavailable("no server is known: start one with `assay up`, or name one with server=, profile= or "
                              "ASSAY_SERVER")
        server, origin = str(note["url"]), "`assay up`"
    server = server.rstrip("/")
    if not re.match(r"https?://[^/]", server):
        raise AssayError(f"{origin}: found '{server}', expected http://… or https://…")
    if token is None:
        token = _read_token(token_file) if token_file else env("ASSAY_TOKEN") or ""
        if not token and env("ASSAY_TOKEN_FILE"):
            token = _read_token(env("ASSAY_TOKEN_FILE", ""))
        if not token:
            note = _running(server)
            token = _read_token(note["token_file"]) if note else ""
    return _Address(server, token, origin)


# The server: HTTP. One connection for each thread; it stays open.

class _Plain(http.client.HTTPConnection):
    """A connection that is closed when the thread that it belongs to has ended."""

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


class _Tls(http.client.HTTPSConnection):
    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


class _Http:
    """Requests to one server, from any thread. A request that fails in a way that may pass is repeated: at once on a
    connection that the server had closed, and for up to `patience` seconds when the server had answered before."""

    def __init__(self, address: _Address) -> None:
        self.address = address
        self._parts = urllib.parse.urlsplit(address.url)
        self._tls = ssl.create_default_context() if self._parts.scheme == "https" else None
        self._own = threading.local()
        self._reached = False
        self.patience = PATIENCE_S
        self._headers = {"Content-Type": "application/json", "User-Agent": f"assay-python/{__version__}"}
        if address.token:
            self._headers["Authorization"] = f"Bearer {address.token}"

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._tls:
            return _Tls(host, port, timeout=100, context=self._tls)
        return _Plain(host, port, timeout=100)

    def close(self) -> None:
        """Close the connection of this thread; the next request opens another."""
        connection = getattr(self._own, "connection", None)
        self._own.connection = None
        if connection is not None:
            connection.close()

    def _once(self, method: str, path: str, data: Optional[bytes], headers: Mapping[str, str]) -> Tuple[int, str, bytes]:
        """One request: status, Retry-After, body. OSError, http.client.HTTPException."""
        if getattr(self._own, "pid", None) != os.getpid():  # of the process before a fork: not ours to use
            self._own.connection, self._own.pid = None, os.getpid()
        for again in (True, False):
            connection = self._own.connection
            fresh = connection is None
            if connection is None:
                connection = self._own.connection = self._connect()
            try:
                connection.request(method, self._parts.path + path, data, dict(headers))
                answer = connection.getresponse()
                return answer.status, answer.headers.get("Retry-After", ""), answer.read()
            except (http.client.HTTPException, OSError):
                self.close()
                if fresh or not again:
                    raise
            except BaseException:  # Ctrl-C between a request and its answer
                self.close()
                raise
        raise AssertionError("not reached")

    def call(self, method: str, path: str, body: Any = None, key: Optional[str] = None) -> Any:
        """One operation; the decoded answer. key: the idempotency key of what creates something. AssayError with the
        server's words for what it refuses; Unavailable."""
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = dict(self._headers, **({"Idempotency-Key": key} if key else {}))
        if method == "PATCH":
            headers["Content-Type"] = "application/merge-patch+json"
        begin, said, pause = time.monotonic(), False, 0.05
        while True:
            wait = 0.0
            try:
                status, retry_after, text = self._once(method, path, data, headers)
            except (OSError, http.client.HTTPException) as e:
                problem: AssayError = Unavailable(
                    f"the server at {self.address.url} (from {self.address.origin}) does not answer: {e or repr(e)}; "
                    "is `assay up` running?")
            else:
                self._reached = True
                if 200 <= status < 300:
                    return json.loads(text) if text else None
                problem = _problem(status, text)
                if status not in (429, 502, 503, 504):
                    raise problem
                wait = float(retry_after) if retry_after.isdigit() else 0.0
            passed = time.monotonic() - begin
            if passed > self.patience or not self._reached:
                raise problem
            if passed > 5 and not said:
                said = True
                _say(f"{problem}; trying again for {self.patience / 60:.0f} minutes")
            pause = min(pause * 1.7, 5.0)
            time.sleep(max(pause * (0.5 + random.random()), min(wait, 30.0)))


def _problem(status: int, text: bytes) -> AssayError:
    """An error from a problem document (RFC 9457); its message names the fields at fault."""
    try:
        document = json.loads(text)
        errors = document.get("errors") or []
        lines = [e["detail"] if e["pointer"] in e["detail"] else f"{e['pointer']}: {e['detail']}" for e in errors]
        message = "; ".join(lines) or document.get("detail") or document.get("title") or ""
        code = str(document.get("code", ""))
    except (ValueError, AttributeError, KeyError, TypeError):
        message, code, errors = text.decode(errors="replace")[:300], "", []
    if status == 401:
        message += " (name a token with token=, ASSAY_TOKEN or ASSAY_TOKEN_FILE)"
    return AssayError(message or f"the server answered {status}", status, code, errors)


# Parameters: what an objective suggests, what a sweep document says, what Optuna calls a distribution.

Choice = Any


def _label(choice: Choice) -> Any:
    """A choice as a value of the sweep document: itself, or a text that names it. A tuple is a list there."""
    if choice is None or isinstance(choice, (bool, str)):
        return choice
    if isinstance(choice, (list, tuple)) and _is_plain(choice, 4):
        return json.loads(json.dumps(choice))
    if isinstance(choice, int) and abs(choice) < 2**53:
        return choice
    if isinstance(choice, float) and math.isfinite(choice):
        return choice
    return str(getattr(choice, "__qualname__", None) or repr(choice))


def _is_plain(items: Iterable[Any], depth: int) -> bool:
    """Is it a list of what a sweep document may have in a list?"""
    return depth > 0 and all(_is_plain(x, depth - 1) if isinstance(x, (list, tuple)) else
                             x is None or isinstance(x, (bool, str)) or (isinstance(x, int) and abs(x) < 2**53) or
                             (isinstance(x, float) and math.isfinite(x)) for x in items)


def _key(label: Any) -> str:
    """Equal for labels that the server takes for one value: 1 and 1.0 are, 1 and true are not."""
    if isinstance(label, list):
        return "[" + ",".join(map(_key, label)) + "]"
    return repr(float(label)) if isinstance(label, (int, float)) and not isinstance(label, bool) else json.dumps(label)


class _Parameter:
    """A parameter: its name and its entry in the sweep document (`spec`). A categorical parameter has its choices as
    Python objects (`choices`) beside the values of the document, in the same order: tuples are lists there, classes
    are texts."""

    def __init__(self, name: str, spec: JSON, choices: Optional[Sequence[Choice]] = None) -> None:
        if not isinstance(name, str) or not re.match(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}\Z", name):
            raise SpaceError(f"parameter {name!r}: expected a name of 1 to 63 letters, digits, _, . and -, "
                             "which begins with a letter or _")
        self.name, self.spec = name, spec
        self.choices = list(choices) if choices is not None else None

    @property
    def kind(self) -> str:
        return str(self.spec["type"])

    def same(self, other: "_Parameter") -> bool:
        """Is it the same parameter, whatever its conditions and what is known of it?"""
        mine, theirs = ({k: v for k, v in p.spec.items() if k not in ("when", "points", "prior")} for p in (self, other))
        mine.setdefault("scale", "linear")
        theirs.setdefault("scale", "linear")
        return json.dumps(mine, sort_keys=True) == json.dumps(theirs, sort_keys=True)

    def described(self) -> str:
        s = self.spec
        if s["type"] in ("float", "int"):
            extra = (" on a log scale" if s.get("scale") == "log" else "") + (f" in steps of {s['step']}" if "step" in s else "")
            return f"{s['type']} from {s['min']} to {s['max']}{extra}"
        return f"{s['type']} {s.get('values', s.get('value', ''))}"[:200]

    def encode(self, value: Any) -> Any:
        """As the server has it. SpaceError when the parameter has no such value."""
        if self.kind == "categorical" and self.choices is not None:
            for choice, label in zip(self.choices, self.spec["values"]):
                if choice is value or (type(choice) is type(value) and choice == value):
                    return label
            for choice, label in zip(self.choices, self.spec["values"]):
                with contextlib.suppress(Exception):
                    if bool(choice == value) and isinstance(choice, bool) == isinstance(value, bool):
                        return label
            raise SpaceError(f"parameter '{self.name}': found {value!r}, expected one of {self.choices!r}"[:600])
        if self.kind == "float":
            return float(value)
        return int(value) if self.kind == "int" else value

    def decode(self, value: Any) -> Any:
        """As the objective wants it."""
        if self.kind == "categorical" and self.choices is not None:
            for choice, label in zip(self.choices, self.spec["values"]):
                if _key(label) == _key(value):
                    return choice
        if self.kind == "float" or (self.kind == "constant" and isinstance(self.spec["value"], float)):
            return float(value)
        return int(value) if self.kind == "int" else value

    def draw(self, rng: random.Random) -> Any:
        """A random value, as the objective wants it."""
        s = self.spec
        if s["type"] == "constant":
            return s["value"]
        if s["type"] == "bool":
            return rng.random() < 0.5
        if s["type"] not in ("float", "int"):
            return rng.choice(self.choices if self.choices is not None else s["values"])
        low, high = s["min"], s["max"]
        wide = 0.5 if s["type"] == "int" and "step" not in s else 0.0  # an int has its share of the log scale
        if s.get("scale") == "log":
            x = math.exp(rng.uniform(math.log(low - wide), math.log(high + wide)))
        elif "step" in s:
            x = low + s["step"] * rng.randrange(int(math.floor((high - low) / s["step"] + 1e-9)) + 1)
        else:
            x = rng.uniform(low - wide, high + wide)
        x = min(max(x, low), high)
        return int(round(x)) if s["type"] == "int" else float(x)


def _number(name: str, field: str, value: Any, whole: bool) -> Union[int, float]:
    try:
        number = float(value)
        if not math.isfinite(number) or (whole and number != int(number)):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise SpaceError(f"parameter '{name}': {field}: found {value!r}, expected a "
                         f"{'whole' if whole else 'finite'} number") from None
    return int(value) if whole else number


def _range(name: str, kind: str, low: Any, high: Any, step: Any, log: bool) -> _Parameter:
    """A float or an int from low to high, both included."""
    whole = kind == "int"
    low, high = _number(name, "low", low, whole), _number(name, "high", high, whole)
    if low > high:
        raise SpaceError(f"parameter '{name}': found low {low} above high {high}")
    if log and low <= 0:
        raise SpaceError(f"parameter '{name}': low: found {low}, expected more than 0 on a log scale")
    if step is not None:
        step = _number(name, "step", step, whole)
        if step <= 0 or (log and (not whole or step != 1)):
            raise SpaceError(f"parameter '{name}': step: found {step}, expected more than 0" +
                             (", and no step with log=True" if log else ""))
    if whole and step == 1:
        step = None
    if low == high or (step is not None and low + step > high):
        return _Parameter(name, {"type": "constant", "value": low})
    spec: JSON = {"type": kind, "min": low, "max": high}
    if log:
        spec["scale"] = "log"
    if step is not None:
        spec["step"] = step
        if whole:
            spec["max"] = low + (high - low) // step * step
    return _Parameter(name, spec)


def _choices(name: str, choices: Iterable[Choice]) -> _Parameter:
    items = list(choices)
    if not items:
        raise SpaceError(f"parameter '{name}': choices: found none, expected one or more")
    labels = [_label(c) for c in items]
    if len(set(map(_key, labels))) < len(labels):
        labels = [f"{i}: {c!r}"[:200] for i, c in enumerate(items)]  # (1,) and [1]
    return _Parameter(name, {"type": "categorical", "values": labels}, items)


def _of_space(name: str, entry: Any) -> _Parameter:
    """An entry of `space`: that of a sweep document, (low, high), (low, high, "log"), a list of choices, or what has
    the attributes of an Optuna distribution."""
    if isinstance(entry, Mapping):
        spec = dict(entry)
        if spec.get("type") == "categorical" and isinstance(spec.get("values"), (list, tuple)):
            p = _choices(name, spec["values"])
            return _Parameter(name, dict(spec, values=p.spec["values"]), p.choices)
        if spec.get("type") in ("float", "int", "bool", "ordinal", "constant"):
            return _Parameter(name, spec)
        raise SpaceError(f"parameter '{name}': type: found {spec.get('type')!r}, expected float, int, categorical, "
                         "ordinal, bool or constant")
    if hasattr(entry, "choices"):
        return _choices(name, entry.choices)
    if hasattr(entry, "low") and hasattr(entry, "high"):
        step = getattr(entry, "step", getattr(entry, "q", None))
        log = bool(getattr(entry, "log", "LogUniform" in type(entry).__name__))
        return _range(name, "int" if type(entry).__name__.startswith("Int") else "float", entry.low, entry.high,
                      None if log else step, log)
    if isinstance(entry, list):
        return _choices(name, entry)
    if isinstance(entry, tuple) and len(entry) in (2, 3) and (len(entry) == 2 or entry[2] in ("log", "linear")):
        whole = all(isinstance(x, int) and not isinstance(x, bool) for x in entry[:2])
        return _range(name, "int" if whole else "float", entry[0], entry[1], None, len(entry) == 3 and entry[2] == "log")
    raise SpaceError(f"parameter '{name}': found {entry!r}, expected (low, high), (low, high, \"log\"), a list of "
                     "choices or an entry of a sweep document such as {\"type\": \"float\", \"min\": 0, \"max\": 1}"[:600])


def _of_spec(name: str, spec: JSON) -> _Parameter:
    """A parameter of a sweep that the server has."""
    return _Parameter(name, dict(spec), spec["values"] if spec["type"] == "categorical" else None)


def _matches(condition: Any, value: Any) -> bool:
    """Does a value satisfy a condition of `when`? Ranges of ordinals are the server's alone."""
    if isinstance(condition, Mapping):
        return bool(condition.get("min", value) <= value <= condition.get("max", value))
    wanted = condition if isinstance(condition, list) else [condition]
    return any(w == value and isinstance(w, bool) == isinstance(value, bool) for w in wanted)


# Trials.

_this_thread = threading.local()  # .trial: the trial whose objective this thread runs
_names = itertools.count()


def _client_name() -> str:
    """A name for an ask, of the form that `assay tell` on this machine knows as its user's own."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        user = f"uid{os.getuid()}"
    user, host = (re.sub(r"[^A-Za-z0-9._:-]", "_", s) for s in (user, socket.gethostname() or "localhost"))
    if not user[:1].isalnum():
        user = f"uid{os.getuid()}"
    return f"{user[:12]}@{host[:20]}-{os.getpid()}-{_start_ticks(os.getpid()):x}-{next(_names)}"


def _json_number(value: Any) -> Union[float, int, str]:
    number = float(value)
    return number if math.isfinite(number) else "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"


class FrozenTrial:
    """A trial as it was when it was read.

    number: its number in the sweep `sweep`. state: queued, running, completed, pruned, failed or cancelled; pruned is
    a trial whose objective raised TrialPruned (the service has it as failed). params: what the objective suggested.
    metrics: the latest value of each metric; value and values: those of the objectives, None where there is none.
    feasible: whether it satisfies the study's constraints. duration: seconds, or None."""

    def __init__(self, number: int, state: str, params: JSON, metrics: Dict[str, float], values: List[Optional[float]],
                 reason: Optional[str] = None, feasible: bool = True, duration: Optional[float] = None,
                 user_attrs: Optional[JSON] = None, sweep: str = "") -> None:
        self.number, self.state, self.params, self.metrics = number, state, params, metrics
        self.values, self.reason, self.feasible = values, reason, feasible
        self.duration, self.user_attrs, self.sweep = duration, dict(user_attrs or {}), sweep
        self._encoded: JSON = {}  # what was suggested, as the server has it
        self._given: JSON = {}  # what the server suggested, whether the objective asked for it or not

    @property
    def value(self) -> Optional[float]:
        return self.values[0]

    def __repr__(self) -> str:
        return f"FrozenTrial(number={self.number}, state={self.state!r}, values={self.values}, params={self.params})"


class Trial:
    """What an objective gets: it names the values to try and takes what was measured.

    number: of the trial in its sweep; 0 for the first trial of a new study. params: the parameters so far, or all of
    them when the study was given its space. seed: for the trial's own random numbers, the same in each attempt. One
    thread at a time."""

    def __init__(self, study: "Study", sweep: Optional[str], item: Optional[JSON], client: str,
                 fixed: Optional[JSON] = None) -> None:
        self._study, self._sweep, self._client = study, sweep, client
        self.number = 0
        self.seed = random.SystemRandom().getrandbits(63)
        self.attempt = 1
        self.user_attrs: JSON = {}
        self._given: JSON = {}
        self._fixed = dict(fixed or {})  # values of an enqueued configuration for names that the sweep does not have
        self._asked: Dict[str, Tuple[_Parameter, Any]] = {}
        self._steps: Dict[int, Dict[str, float]] = {}
        self._unsent: Dict[int, Dict[str, float]] = {}
        self._begin = self._sent = time.monotonic()
        self._sending = threading.Lock()
        self._lost: Optional[str] = None
        if item is not None:
            self._adopt(item)

    def _adopt(self, item: JSON) -> None:
        """Be the trial that the server handed out."""
        self.number, self.seed, self.attempt = item["number"], int(item["seed"]), item["attempt"]
        self._sweep, self._given = item["sweep"], item["params"]
        if self._study._is_explicit:
            for name, value in self._given.items():
                p = self._study._space[name]
                self._asked[name] = (p, p.decode(value))

    def _suggest(self, p: _Parameter) -> Any:
        if p.name in self._asked:
            old, value = self._asked[p.name]
            self._check_same(p, old, "in this trial")
            return value
        known = self._study._known_parameter(p.name)
        if known is not None:
            self._check_same(p, known, "before")
        if p.name in self._given:
            value = p.decode(self._given[p.name])
        elif self._study._is_explicit:
            why = f"its condition is {known.spec.get('when')}" if known else "space= does not have it"
            raise SpaceError(f"parameter '{p.name}' is not active in trial {self.number}: {why}")
        else:
            value = p.decode(p.encode(self._fixed[p.name])) if p.name in self._fixed else p.draw(self._study._random)
        self._asked[p.name] = (p, value)
        return value

    def _check_same(self, p: _Parameter, old: _Parameter, when: str) -> None:
        if not p.same(old):
            raise SpaceError(f"parameter '{p.name}': found {p.described()}, expected {old.described()} as {when}; "
                             "a range may not depend on anything (use another name, or a fraction of a fixed range)")

    def suggest_float(self, name: str, low: float, high: float, *, step: Optional[float] = None, log: bool = False) -> float:
        """A number from low to high, both included; on a log scale; or low, low + step, …"""
        return float(self._suggest(_range(name, "float", low, high, step, log)))

    def suggest_int(self, name: str, low: int, high: int, step: int = 1, log: bool = False) -> int:
        """A whole number from low to high, both included; on a log scale; or low, low + step, …"""
        return int(self._suggest(_range(name, "int", low, high, step, log)))

    def suggest_categorical(self, name: str, choices: Sequence[Choice]) -> Any:
        """One of the choices. Those that JSON does not have are compared by their repr()."""
        return self._suggest(_choices(name, choices))

    def suggest_uniform(self, name: str, low: float, high: float) -> float:
        return self.suggest_float(name, low, high)

    def suggest_loguniform(self, name: str, low: float, high: float) -> float:
        return self.suggest_float(name, low, high, log=True)

    def suggest_discrete_uniform(self, name: str, low: float, high: float, q: float) -> float:
        return self.suggest_float(name, low, high, step=q)

    @property
    def params(self) -> JSON:
        """What was suggested so far; what the server suggested, if the objective did not ask yet."""
        if self._asked:
            return {name: value for name, (_, value) in self._asked.items()}
        return {n: self._study._space[n].decode(v) for n, v in self._given.items()}

    def __getitem__(self, name: str) -> Any:
        if name in self._asked:
            return self._asked[name][1]
        if name in self._given:
            return self._study._space[name].decode(self._given[name])
        raise KeyError(f"parameter '{name}' has no value in trial {self.number}")

    def set_user_attr(self, key: str, value: Any) -> None:
        """Keep a value with the trial, in this process."""
        self.user_attrs[key] = value

    def report(self, value: Any = None, step: Optional[int] = None, **metrics: Any) -> None:
        """Record measurements at a step: `value` of the first objective, others by name. The step is a whole number
        from 0; None is the next one. What was recorded at a step does not change. Sent every half second."""
        if value is not None:
            metrics = {self._study.metrics[0][0]: value, **metrics}
        if step is None:
            step = max(self._steps, default=-1) + 1
        if int(step) != step or step < 0:
            raise ValueError(f"step: found {step!r}, expected a whole number from 0")
        if not metrics:
            raise ValueError("report: expected a value or metrics by name")
        _check_metric_names(metrics)
        have = self._steps.setdefault(int(step), {})
        with self._sending:
            for name, number in metrics.items():
                if name not in have:
                    have[name] = float(number)
                    self._unsent.setdefault(int(step), {})[name] = float(number)
        if self._sweep is None:
            self._study._begin(self)
        if time.monotonic() - self._sent >= FLUSH_S or len(self._unsent) >= 500:
            self._send()

    def _send(self) -> None:
        """Send the reports that wait."""
        with self._sending:
            unsent, self._unsent = self._unsent, {}
        items = [{"step": s, "metrics": {n: _json_number(v) for n, v in m.items()}} for s, m in sorted(unsent.items())]
        self._sent = time.monotonic()
        for first in range(0, len(items), 1000):
            if self._lost is None:
                self._tell("measurements", items=items[first:first + 1000])

    def _tell(self, operation: str, **body: Any) -> Any:
        """One operation on this trial. A 409 of a trial that is no longer ours is noted, and answered with None."""
        path = f"/v1/sweeps/{self._sweep}/suggestions/{self.number}/{operation}"
        try:
            return self._study._http.call("POST", path, {"client": self._client, "attempt": self.attempt, **body})
        except AssayError as e:
            if e.status != 409 or e.code != "stale_attempt":
                raise
            self._lost = str(e)
            return None

    def should_prune(self) -> bool:
        """Should the objective stop this trial? True once the service has taken it away: it was cancelled by hand, or
        its sweep was. This version of the service does not stop trials for their results."""
        if self._sweep is not None and self._unsent and time.monotonic() - self._sent >= FLUSH_S:
            self._send()
        return self._lost is not None

    should_stop = should_prune


# Studies.

Metrics = List[Tuple[str, str]]
Callback = Callable[["Study", FrozenTrial], None]


class _Run:
    """One call of optimize()."""

    def __init__(self, timeout: Optional[float], catch: Tuple[Type[BaseException], ...], callbacks: Sequence[Callback],
                 batch: int, progress: "_Progress") -> None:
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.catch, self.callbacks, self.batch, self.progress = catch, list(callbacks), batch, progress
        self.stop = threading.Event()
        self.errors: List[BaseException] = []
        self.returned: List[Trial] = []  # asked for and not begun

    def left(self) -> float:
        return math.inf if self.deadline is None else self.deadline - time.monotonic()

    def is_over(self) -> bool:
        return self.stop.is_set() or self.left() <= 0


class Study:
    """A search: one sweep of the service, or several where its space grew. Made by optimize(), create_study() and
    load_study(); any thread may use it.

    name: of the study; sweep: the id of its sweep, None before its first trial has reported or ended. metrics: the
    objectives, [(name, "minimize" or "maximize")]."""

    def __init__(self, name: str, metrics: Metrics, options: JSON, address: Callable[[], _Address]) -> None:
        self.name, self.metrics = name, metrics
        self.sweep: Optional[str] = None
        self._options = options  # fields of the sweep document
        self._address = address
        self._connected: Optional[_Http] = None
        self._space: Dict[str, _Parameter] = {}
        self._is_explicit = False
        self._limit = TRIALS_MAX
        self._generation = 0
        self._random = random.Random(options.get("search", {}).get("seed"))
        self._lock = threading.RLock()
        self._first: Optional[Trial] = None  # the trial whose suggestions make the space
        self._missing: Dict[str, _Parameter] = {}  # suggested, and not in the space of the sweep
        self._waiting: List[Tuple[JSON, Optional[JSON]]] = []  # enqueued and known, before there is a sweep
        self._fixed: Dict[Tuple[str, int], JSON] = {}  # enqueued values that the sweep has no parameters for
        self._records: Dict[Tuple[str, int], FrozenTrial] = {}  # of this process, by sweep and number
        self._own: List[FrozenTrial] = []  # the same, in the order of their ends
        self._held: List[Trial] = []
        self._beating: Optional[threading.Thread] = None
        self._run: Optional[_Run] = None

    @property
    def _http(self) -> _Http:
        with self._lock:
            if self._connected is None:
                self._connected = _Http(self._address())
            return self._connected

    @property
    def url(self) -> str:
        """The address of the sweep in the dashboard."""
        return f"{self._http.address.url}/#/sweeps/{self.sweep or ''}"

    # The sweep: its document, its creation, its growth.

    def _known_parameter(self, name: str) -> Optional[_Parameter]:
        with self._lock:
            return self._space.get(name) or self._missing.get(name)

    def _use_space(self, space: Mapping[str, Any]) -> None:
        if not space:
            raise SpaceError("space: found no parameter, expected one or more")
        self._space = {name: _of_space(name, entry) for name, entry in space.items()}
        self._is_explicit = True

    def _document(self, limit: int) -> JSON:
        objectives = [{"name": name, "goal": goal} for name, goal in self.metrics]
        document: JSON = {"name": self.name, "parameters": {n: p.spec for n, p in self._space.items()}, "ensemble": False}
        if len(objectives) == 1:
            document["metric"] = objectives[0]
        else:
            document["metrics"] = objectives
        document.update({k: v for k, v in self._options.items() if v not in (None, [], {})})
        document["limits"] = dict(self._options.get("limits") or {}, max_trials=limit)
        if self._generation:
            document["description"] = (f"The study {self.name} since its space grew for the {self._generation}. time; "
                                       "its earlier trials are known results here")
        return document

    def _create(self, limit: int, known: List[FrozenTrial], paused: bool) -> None:
        """A sweep with the space as it is, and with known results. paused: until _resume()."""
        created = self._http.call("POST", "/v1/sweeps?paused=true" if paused else "/v1/sweeps", self._document(limit),
                                  key=uuid.uuid4().hex)
        self.sweep, self._limit = created["id"], limit
        rows = [(r, self._known_row(r)) for r in known]
        for first in range(0, len(rows), ROWS_MAX):
            part = rows[first:first + ROWS_MAX]
            body = [dict(row, key=f"{i + first}") for i, (_, row) in enumerate(part)]
            numbers = self._http.call("POST", f"/v1/sweeps/{self.sweep}/trials", body, key=uuid.uuid4().hex)["numbers"]
            for (record, _), number in zip(part, numbers):
                self._records[self.sweep or "", number] = record

    def _resume(self) -> None:
        self._http.call("PATCH", f"/v1/sweeps/{self.sweep}", {"state": "running"})

    def _begin(self, trial: Optional[Trial]) -> None:
        """Make the sweep: with the space that was given, or that of the first trial, which becomes its trial 0."""
        with self._lock:
            if self.sweep is not None:
                return
            if trial is not None:
                if not trial._asked:
                    raise SpaceError("the objective suggested no parameter before it reported or ended: call "
                                     "trial.suggest_float and the like in it, or give space=")
                self._space = {name: p for name, (p, _) in trial._asked.items()}
            paused = trial is not None or bool(self._waiting)
            self._create(self._limit, [], paused)
            if trial is not None:
                self._add({n: p.encode(v) for n, (p, v) in trial._asked.items()})
            waiting, self._waiting = self._waiting, []
            for params, result in waiting:
                self._enqueue(params, result)
            if paused:
                self._resume()
            if trial is not None:
                answer = self._request(self.sweep or "", trial._client, 1, 30000)
                while not answer["items"]:  # somebody paused the sweep
                    if answer["done"]:
                        raise AssayError(f"the sweep {self.sweep} has ended: {answer['state']}")
                    answer = self._request(self.sweep or "", trial._client, 1, 30000)
                trial._adopt(answer["items"][0])
            self._first = None

    def _add(self, params: JSON, result: Optional[JSON] = None) -> int:
        """addTrial; the number."""
        return int(self._http.call("POST", f"/v1/sweeps/{self.sweep}/trials", {"params": params, **(result or {})},
                                   key=uuid.uuid4().hex)["number"])

    def _enqueue(self, params: JSON, result: Optional[JSON]) -> None:
        """Add a configuration. Where the space comes from trials, parameters that it does not name are drawn, and
        those that are not yet known wait until the trial suggests them."""
        values = {n: p.encode(params[n]) for n, p in self._space.items() if n in params}
        if self._is_explicit or result is not None:
            for name in set(params) - set(self._space):
                raise SpaceError(f"parameter '{name}': the study has no such parameter; it has {', '.join(self._space)}")
            self._add(values, result)
            return
        active = self._complete(values, lambda p: p.encode(p.draw(self._random)))
        self._fixed[self.sweep or "", self._add(active)] = {n: v for n, v in params.items() if n not in active}

    def _complete(self, values: JSON, other: Callable[[_Parameter], Any]) -> JSON:
        """Exactly the parameters that are active for `values`, in the order of the space; what is not there, by other()."""
        found: JSON = {}

        def is_active(name: str) -> bool:
            p = self._space[name]
            if not all(is_active(parent) and _matches(condition, found[parent])
                       for parent, condition in p.spec.get("when", {}).items()):
                return False
            if name not in found:
                found[name] = values[name] if name in values else other(p)
            return True

        return {name: found[name] for name in self._space if is_active(name)}

    def _known_row(self, record: FrozenTrial) -> JSON:
        """A trial of this study as a known result. A parameter that it did not ask for has any value: the result did
        not depend on it."""
        draw = random.Random(record.number)
        params = self._complete({**record._given, **record._encoded}, lambda p: p.encode(p.draw(draw)))
        if record.state == "completed":
            return {"params": params, "metrics": record.metrics}
        return {"params": params, "state": "failed", "reason": record.reason}

    def _grow(self) -> None:
        """Move on to a new sweep that has the parameters in _missing too, with what is left of the limit; the one
        before ends when the trials that run have ended. Nothing happens when nothing is left."""
        if self._options.get("search", {}).get("method") == "grid":
            raise SpaceError(f"parameter '{next(iter(self._missing))}' was not suggested in the first trial, and the cells "
                             "of a grid are fixed: give space=")
        if self._generation >= GENERATIONS_MAX:
            raise SpaceError(f"parameter '{next(iter(self._missing))}': the space grew {GENERATIONS_MAX} times; do names "
                             "contain a number that is new in each trial? Give space=")
        path = f"/v1/sweeps/{self.sweep}"
        before = self._http.call("GET", path)
        if before["state"] in ("cancelled", "failed") or self._limit <= _made(before):
            return
        left = self._limit - _made(self._http.call("PATCH", path, {"limits": {"max_trials": 1}}))
        if left <= 0:
            return
        # A trial that is being told may have ended for the server already: _finish carries it over, once it has it.
        rows, others = self._results(self.sweep or "", list(self._pages(self._trials_path(self.sweep or ""))))
        telling = {t.number for t in self._held if t._sweep == self.sweep and t._lost is None}
        records = [r for r in rows if r.number not in telling] + others
        self._space.update(self._missing)
        self._missing = {}
        self._infer_conditions(records)
        self._generation += 1
        moved = [r for r in records if r.state in ("completed", "failed", "pruned")]
        self._create(left, moved, bool(moved))
        if moved:
            self._resume()

    def _infer_conditions(self, records: List[FrozenTrial]) -> None:
        """Say `when` of each parameter that some completed trials suggested and others did not, if the value of one
        other parameter separates them. Values that no trial had count as active: an idle parameter costs the search
        little, a missing one is drawn at random."""
        done = [r for r in records if r.state == "completed"]
        for name, p in self._space.items():
            p.spec.pop("when", None)
            users = [r for r in done if name in r._encoded]
            for parent, q in self._space.items():
                if parent == name:
                    break  # only what is suggested before
                if q.kind not in ("categorical", "int") or any(parent not in r._encoded for r in users):
                    continue
                yes = [r._encoded[parent] for r in users]
                no = [r._encoded[parent] for r in done if parent in r._encoded and name not in r._encoded]
                condition = _separation(q, yes, no)
                if condition is not None:
                    p.spec["when"] = {parent: condition}
                    break

    # Asking and telling.

    def _request(self, sweep: str, client: str, count: int, wait_ms: int) -> JSON:
        answer = self._http.call("POST", f"/v1/sweeps/{sweep}/suggestions",
                                 {"client": client, "count": count, "wait_ms": wait_ms, "lease_ms": int(LEASE_S * 1000)})
        return dict(answer)

    def _hold(self, trial: Trial) -> Trial:
        with self._lock:
            self._held.append(trial)
            if self._beating is None or not self._beating.is_alive():
                self._beating = threading.Thread(target=self._beat, name="assay-heartbeat", daemon=True)
                self._beating.start()
        return trial

    def _beat(self) -> None:
        """Keep the leases of the trials that run, until none does."""
        pause = threading.Event()
        while True:
            pause.wait(BEAT_S)
            with self._lock:
                held = [t for t in self._held if t._sweep is not None and t._lost is None]
                if not self._held:
                    self._beating = None
                    return
            for trial in held:
                if time.monotonic() - max(trial._begin, trial._sent) >= BEAT_S / 2:
                    with contextlib.suppress(AssayError):  # the next one comes soon
                        trial._tell("heartbeat")

    def _next(self, run: Optional[_Run], client: str) -> List[Trial]:
        """Trials to run: the first one with values of our own, or what the server hands out. [] when there are no more."""
        while True:
            with self._lock:
                if self.sweep is None and not self._is_explicit and self._first is None:
                    fixed = self._waiting.pop(0)[0] if self._waiting and self._waiting[0][1] is None else None
                    self._first = Trial(self, None, None, client, fixed)
                    return [self._hold(self._first)]
                if self.sweep is None and self._is_explicit:
                    self._begin(None)
                if self.sweep is not None and self._missing:
                    self._grow()
                sweep = self.sweep
            if run is not None and run.is_over():
                return []
            if sweep is None:  # another thread runs the first trial
                time.sleep(0.02)
                continue
            wait = 10.0 if run is None else min(10.0, max(0.0, run.left()))
            answer = self._request(sweep, client, run.batch if run else 1, int(wait * 1000))
            with self._lock:  # _enqueue learns the number of a trial, and then says what is fixed in it
                trials = [Trial(self, sweep, t, client, self._fixed.get((sweep, t["number"]))) for t in answer["items"]]
            if trials:
                return [self._hold(t) for t in trials]
            with self._lock:
                if answer["done"] and sweep == self.sweep:
                    return []

    def _let_go(self, trial: Trial) -> None:
        with self._lock:
            if trial in self._held:
                self._held.remove(trial)
            if self._first is trial:
                self._first = None

    def _release(self, trial: Trial) -> None:
        """Give a trial back, so that others get it at once."""
        self._let_go(trial)
        if trial._sweep is not None:
            with contextlib.suppress(AssayError):
                trial._tell("complete", outcome="released")

    def _finish(self, trial: Trial, state: str, metrics: Dict[str, float], reason: Optional[str] = None) -> FrozenTrial:
        """Tell the server how a trial ended, and keep it. state: completed, failed or pruned."""
        if trial._sweep is None:
            self._begin(trial)
        trial._send()
        row: Optional[JSON] = None
        if trial._lost is None and state == "completed":
            row = trial._tell("complete", metrics={n: _json_number(v) for n, v in metrics.items()})
        elif trial._lost is None:
            row = trial._tell("complete", outcome="failed", reason=(reason or state)[:2000])
        if trial._lost is not None:
            state, reason = "cancelled", trial._lost
        elif row is not None and state == "completed" and row["state"] != "completed":
            state, reason = row["state"], row.get("reason")
        record = self._frozen(trial, state, metrics, reason)
        with self._lock:  # in one step, so that _grow finds the trial held or its record, never neither
            self._let_go(trial)
            self._own.append(record)
            self._records[record.sweep, record.number] = record
            for name, (p, _) in trial._asked.items():
                if name not in self._space:
                    self._missing[name] = p
            if trial._sweep != self.sweep and state != "cancelled":
                self._carry(record)
        return record

    def _carry(self, record: FrozenTrial) -> None:
        """Tell the sweep that the study has now of a trial that was not run there."""
        with self._lock:
            if self.sweep is not None and not self._missing:  # otherwise it goes into the next sweep with all others
                with contextlib.suppress(AssayError):  # the sweep has ended meanwhile
                    row = self._known_row(record)
                    self._records[self.sweep, self._add(row.pop("params"), row)] = record

    def _start_with_results(self) -> None:
        """Begin with a space and with results that did not come from the server."""
        with self._lock:
            self._space.update(self._missing)
            self._missing = {}
            self._infer_conditions(self._own)
            self._create(self._limit, self._own, True)
            self._resume()

    def _frozen(self, trial: Trial, state: str, metrics: Dict[str, float], reason: Optional[str]) -> FrozenTrial:
        latest: Dict[str, float] = {}
        for step in sorted(trial._steps):
            latest.update(trial._steps[step])
        latest.update(metrics)
        values = [metrics.get(name) for name, _ in self.metrics] if state == "completed" else [None for _ in self.metrics]
        record = FrozenTrial(trial.number, state, trial.params, latest, values, reason, self._is_feasible(latest),
                             time.monotonic() - trial._begin, trial.user_attrs, trial._sweep or "")
        record._given = trial._given
        record._encoded = {name: p.encode(value) for name, (p, value) in trial._asked.items()}
        return record

    def _is_feasible(self, metrics: Mapping[str, float]) -> bool:
        return all(c.get("min", -math.inf) <= metrics.get(c["metric"], math.nan) <= c.get("max", math.inf)
                   for c in self._options.get("constraints") or [])

    def _metrics_of(self, returned: Any) -> Dict[str, float]:
        """What an objective returned, by metric. TypeError and ValueError name what is wrong."""
        names = [name for name, _ in self.metrics]
        if isinstance(returned, Mapping):
            given = dict(returned)
        elif len(names) == 1 and not isinstance(returned, (tuple, list)):
            given = {names[0]: returned}
        elif isinstance(returned, (tuple, list)) and len(returned) == len(names):
            given = dict(zip(names, returned))
        else:
            raise TypeError(f"the objective returned {returned!r}, expected {len(names)} numbers: {', '.join(names)}"[:500])
        for name in names:
            if name not in given:
                raise ValueError(f"the objective returned no value of {name}; found {', '.join(map(str, given))}"[:500])
        try:
            return {str(name): float(value) for name, value in given.items()}
        except (TypeError, ValueError):
            raise TypeError(f"the objective returned {returned!r}, expected a number"[:500]) from None

    def ask(self) -> Trial:
        """A trial to run in a loop of your own; tell() its result. AssayError when there are no more."""
        trials = self._next(None, _client_name())
        if not trials:
            raise AssayError(f"the study {self.name} has ended: it has no more trials")
        return trials[0]

    def tell(self, trial: Trial, values: Any = None, state: str = "completed", reason: Optional[str] = None) -> FrozenTrial:
        """The end of a trial that ask() gave. values: as an objective returns them. state: completed, failed, pruned."""
        if state not in ("completed", "failed", "pruned"):
            raise ValueError(f"state: found {state!r}, expected completed, failed or pruned")
        return self._finish(trial, state, self._metrics_of(values) if state == "completed" else {}, reason)

    def enqueue_trial(self, params: Mapping[str, Any]) -> None:
        """Run this configuration next, before new suggestions; it counts towards n_trials. Parameters that are missing
        are drawn where the space comes from trials, and otherwise an error names them."""
        with self._lock:
            if self.sweep is None:
                self._waiting.append((dict(params), None))
            else:
                self._enqueue(dict(params), None)

    def add_trial(self, params: Mapping[str, Any], values: Any = None, state: str = "completed") -> None:
        """Add a known result, from which the search learns; it does not count towards n_trials. values: as an
        objective returns them; state failed has none."""
        result: JSON = {"metrics": self._metrics_of(values)} if state == "completed" else {"state": "failed"}
        with self._lock:
            if self.sweep is None:
                self._waiting.append((dict(params), result))
            else:
                self._enqueue(dict(params), result)

    # Running an objective.

    def optimize(self, objective: Callable[[Trial], Any], n_trials: Optional[int] = None, timeout: Optional[float] = None,
                 n_jobs: int = 1, catch: Union[Type[BaseException], Iterable[Type[BaseException]]] = (),
                 callbacks: Optional[Sequence[Callback]] = None, show_progress_bar: Optional[bool] = None,
                 batch: int = 1, total: Optional[int] = None) -> None:
        """Run trials of `objective` until there are no more.

        n_trials: how many more than the study has; None: what is left of its limit, or no limit in a new one.
        total: instead, how many the study has in all, on every machine that works on it. timeout: seconds after which
        no trial begins. n_jobs: threads (-1: one for each processor). catch: exceptions that fail their trial and not
        the call; others fail the trial too, and are raised. callbacks: called with the study and the trial after each.
        batch: how many suggestions a thread asks for at once; above 1 results are sent in the background, and later
        ones of a batch do not know earlier ones. show_progress_bar: None: on a terminal and in a notebook."""
        for field, number in (("n_trials", n_trials), ("total", total), ("batch", batch)):
            if number is not None and (int(number) != number or number < 1):
                raise ValueError(f"{field}: found {number!r}, expected a whole number from 1")
        if batch > 64 or n_jobs == 0 or n_jobs < -1:
            raise ValueError(f"batch: found {batch}, expected 1 to 64; n_jobs: found {n_jobs}, expected -1 or more than 0")
        caught = (catch,) if isinstance(catch, type) else tuple(catch)
        self._set_limit(n_trials, total, timeout)
        run = _Run(timeout, caught, callbacks or [], int(batch), _Progress(self, n_trials or total, show_progress_bar))
        self._run = run
        try:
            self._run_threads(objective, run, (os.cpu_count() or 1) if n_jobs == -1 else int(n_jobs))
        finally:
            self._run = None
            run.progress.end()
        if run.errors:
            raise run.errors[0]
        if total is None and run.left() <= 0:
            self._end_here(run.returned)

    def stop(self) -> None:
        """Begin no more trials in the call of optimize() that runs; for callbacks."""
        if self._run is not None:
            self._run.stop.set()

    def _set_limit(self, n_trials: Optional[int], total: Optional[int], timeout: Optional[float]) -> None:
        with self._lock:
            if self.sweep is None:
                self._limit = total or n_trials or TRIALS_MAX
                return
            if n_trials is None and total is None and timeout is None:
                return
            now = self._http.call("GET", f"/v1/sweeps/{self.sweep}")
            done_before = self._made_before()
            limit = total - done_before if total else _made(now) + n_trials if n_trials else TRIALS_MAX
            limit = max(1, limit)
            if limit != now["document"].get("limits", {}).get("max_trials"):
                self._http.call("PATCH", f"/v1/sweeps/{self.sweep}", {"limits": {"max_trials": limit}})
            self._limit = limit

    def _made_before(self) -> int:
        """How many trials ran in sweeps that this study has moved on from."""
        return sum(1 for r in self._own if r.sweep != self.sweep)

    def _end_here(self, returned: Sequence[Trial] = ()) -> None:
        """After a timeout: what was made is all there is, so that the sweep ends and waits for nobody. The rest of a
        batch, which was returned, is cancelled."""
        with self._lock:
            if self.sweep is not None:
                with contextlib.suppress(AssayError):
                    self._http.call("PATCH", f"/v1/sweeps/{self.sweep}", {"limits": {"max_trials": 1}})
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
            metrics = self._metrics_of(objective(trial))
        except SpaceError:
            self._release(trial)
            raise
        except Exception as e:
            pruned = type(e).__name__ == "TrialPruned"
            state, reason = ("pruned" if pruned else "failed"), f"{type(e).__name__}: {e}"[:2000]
            failure = None if pruned or isinstance(e, run.catch) else e
            if failure is not None and trial._sweep is None:  # no sweep for an objective that does not begin
                self._release(trial)
                raise
            if failure is None and not pruned:
                _say(f"trial {trial.number} failed: {reason}")
        except BaseException:  # Ctrl-C, SystemExit
            self._release(trial)
            raise
        finally:
            _this_thread.trial = outer
        if teller is None:
            self._conclude(trial, run, state, metrics, reason)
        else:
            teller.add(lambda: self._conclude(trial, run, state, metrics, reason))
        if failure is not None:
            raise failure

    def _conclude(self, trial: Trial, run: _Run, state: str, metrics: Dict[str, float], reason: Optional[str]) -> None:
        try:
            record = self._finish(trial, state, metrics, reason)
        except BaseException:
            self._release(trial)
            raise
        run.progress.add(record)
        for callback in run.callbacks:
            callback(self, record)

    # Results.

    @property
    def trials(self) -> List[FrozenTrial]:
        """All trials of the study, also those of other programs, in the order of their numbers."""
        while True:
            with self._lock:
                sweep = self.sweep
                if sweep is None:
                    return list(self._own)
            answer = list(self._pages(self._trials_path(sweep)))
            with self._lock:
                if sweep == self.sweep:  # otherwise the space grew meanwhile
                    rows, others = self._results(sweep, answer)
                    return rows + others

    @staticmethod
    def _trials_path(sweep: str) -> str:
        return f"/v1/sweeps/{sweep}/trials?page_size=500"

    def _results(self, sweep: str, rows: Sequence[JSON]) -> Tuple[List[FrozenTrial], List[FrozenTrial]]:
        """The trials of the sweep, which the server listed as `rows`, and those of this process that are not among
        them. The caller holds the lock: a trial that ends meanwhile is not in both."""
        found = []
        for row in rows:
            record = self._records.get((sweep, row["number"]))
            if record is None:
                record = self._from_row(row)
            record.number = row["number"]
            found.append(record)
        seen = {id(r) for r in found}
        return found, [r for r in self._own if id(r) not in seen]

    def get_trials(self, deepcopy: bool = False, states: Optional[Sequence[str]] = None) -> List[FrozenTrial]:
        return [t for t in self.trials if states is None or t.state in states]

    def _pages(self, path: str) -> Iterator[JSON]:
        cursor = ""
        while True:
            page = self._http.call("GET", path + cursor)
            for row in page["items"]:
                yield row
            if not page["next_cursor"]:
                return
            cursor = "&cursor=" + urllib.parse.quote(page["next_cursor"])

    def _from_row(self, row: JSON) -> FrozenTrial:
        metrics = {name: float(value) for name, value in (row.get("metrics") or {}).items()}
        params = {n: self._space[n].decode(v) if n in self._space else v for n, v in row["params"].items()}
        values = [metrics.get(name) if row["state"] == "completed" else None for name, _ in self.metrics]
        record = FrozenTrial(row["number"], row["state"], params, metrics, values, row.get("reason"),
                             row.get("feasible") is not False, _span(row.get("started_at"), row.get("finished_at")),
                             None, row["sweep"])
        record._encoded = record._given = row["params"]
        return record

    def _better(self, a: FrozenTrial, b: FrozenTrial, objective: int = 0) -> float:
        """Above 0 when a is better than b in an objective."""
        x, y = a.values[objective], b.values[objective]
        assert x is not None and y is not None
        return y - x if self.metrics[objective][1] == "minimize" else x - y

    def _candidates(self, trials: Optional[List[FrozenTrial]] = None) -> List[FrozenTrial]:
        trials = self.trials if trials is None else trials
        return [t for t in trials if t.state == "completed" and t.feasible and None not in t.values]

    @property
    def best_trial(self) -> FrozenTrial:
        """The best completed trial that satisfies the constraints; of equal ones the first. ValueError without one, or
        with several objectives."""
        if len(self.metrics) > 1:
            raise ValueError("the study has several objectives: best_trials is its Pareto front")
        return self._best(self.trials)

    def _best(self, trials: List[FrozenTrial]) -> FrozenTrial:
        candidates = self._candidates(trials)
        if not candidates:
            raise ValueError(f"no trial of {self.name} is completed" +
                             (" and satisfies the constraints" if self._options.get("constraints") else ""))
        best = candidates[0]
        for t in candidates[1:]:
            if self._better(t, best) > 0:
                best = t
        return best

    @property
    def best_trials(self) -> List[FrozenTrial]:
        """The Pareto front: the completed trials that no other one beats in every objective."""
        all_of_them, objectives = self._candidates(), range(len(self.metrics))

        def beats(a: FrozenTrial, b: FrozenTrial) -> bool:
            signs = [self._better(a, b, i) for i in objectives]
            return min(signs) >= 0 and max(signs) > 0

        return [t for t in all_of_them if not any(beats(other, t) for other in all_of_them)]

    @property
    def best_value(self) -> float:
        return float(self.best_trial.value)  # type: ignore[arg-type]

    @property
    def best_params(self) -> JSON:
        return self.best_trial.params

    @property
    def direction(self) -> str:
        return self.metrics[0][1]

    def rows(self) -> List[JSON]:
        """A dict for each trial: number, state, the metrics, the parameters, duration. A parameter whose name is taken
        is params_NAME."""
        table = []
        for t in self.trials:
            row: JSON = {"number": t.number, "state": t.state, **{n: t.metrics.get(n) for n, _ in self.metrics}}
            row.update((n, v) for n, v in t.metrics.items())
            taken = set(row) | {"duration"}
            row.update((f"params_{n}" if n in taken else n, v) for n, v in t.params.items())
            row["duration"] = t.duration
            table.append(row)
        return table

    def frame(self) -> Any:
        """rows() as a pandas DataFrame, or as they are without pandas."""
        try:
            import pandas  # type: ignore[import]
        except ImportError:
            return self.rows()
        return pandas.DataFrame(self.rows())

    trials_dataframe = frame

    def _repr_html_(self) -> str:
        return _html(self, self.trials)


def _made(sweep: JSON) -> int:
    """How many trials of a sweep count towards its limit."""
    return int(sweep["counts"]["total"]) - int(sweep["known_trials"])


def _separation(parent: _Parameter, yes: List[Any], no: List[Any]) -> Any:
    """The condition on `parent` that holds for all of `yes` and none of `no`, or None."""
    if not yes or not no or any(_matches(no, y) for y in yes):
        return None
    if parent.kind == "categorical":
        return [v for v in parent.spec["values"] if not _matches(no, v)]
    if max(no) < min(yes):
        return {"min": max(no) + 1}
    return {"max": min(no) - 1} if min(no) > max(yes) else None


def _span(first: Optional[str], last: Optional[str]) -> Optional[float]:
    """Seconds between two times of the API."""
    def seconds(text: str) -> float:
        return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) + float("0" + text[19:].rstrip("Z"))

    return seconds(last) - seconds(first) if first and last else None


class _Teller:
    """A thread that sends the results of a batch while the objective goes on. An error is raised where wait() is."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._work: List[Callable[[], None]] = []
        self._changed = threading.Condition()
        self._busy = self._over = False
        self._error: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._loop, name="assay-tell", daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._work or self._over)
                if not self._work:
                    break
                work, self._busy = self._work.pop(0), True
            try:
                work()
            except BaseException as e:
                self._error = self._error or e
            with self._changed:
                self._busy = False
                self._changed.notify_all()
        self._study._http.close()

    def add(self, work: Callable[[], None]) -> None:
        with self._changed:
            self._work.append(work)
            self._changed.notify_all()

    def wait(self) -> None:
        """Until all results are sent."""
        with self._changed:
            self._changed.wait_for(lambda: not self._work and not self._busy)
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def end(self) -> None:
        """Send what is left, and end the thread. An error is raised unless another is on its way."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self._thread.join()
        if self._error is not None and sys.exc_info()[0] is None:
            raise self._error


# Progress: a line on a terminal, and HTML in a notebook (IPython is used when it is running, and never imported).

class _Progress:
    def __init__(self, study: Study, planned: Optional[int], wanted: Optional[bool]) -> None:
        self._study, self._planned = study, planned
        self._lock = threading.Lock()
        self._begin = self._shown = time.monotonic()
        self._ended = 0
        self._best: Optional[FrozenTrial] = None
        self._trials: List[FrozenTrial] = list(study._own)
        self._notebook = self._display() if wanted is not False else None
        self._line = self._notebook is None and (sys.stderr.isatty() if wanted is None else wanted)

    def _display(self) -> Any:
        """A display of this notebook's cell, or None."""
        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython is not None else None
        if shell is None or not hasattr(shell, "kernel"):
            return None
        return sys.modules["IPython.display"].display(self._study, display_id=True)  # type: ignore[attr-defined]

    def add(self, record: FrozenTrial) -> None:
        with self._lock:
            self._ended += 1
            self._trials.append(record)
            if self._study._candidates([record]) and (self._best is None or self._study._better(record, self._best) > 0):
                self._best = record
            now = time.monotonic()
            if now - self._shown >= (1.0 if self._notebook else 0.2):
                self._shown = now
                self._show()

    def _show(self) -> None:
        if self._notebook is not None:
            self._notebook.update(_Html(_html(self._study, self._trials)))
        elif self._line:
            rate = self._ended / max(1e-9, time.monotonic() - self._begin)
            best = f", best {self._best.values[0]:.6g} in trial {self._best.number}" if self._best else ""
            print(f"\r{self._ended}{f' of {self._planned}' if self._planned else ''} trials{best}, {rate:.3g}/s\x1b[K",
                  end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        self._show()
        if self._line:
            print(file=sys.stderr, flush=True)


class _Html:
    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text


def _curve(study: Study, trials: List[FrozenTrial]) -> str:
    """The best value after each trial, as an inline picture."""
    best: Optional[FrozenTrial] = None
    heights: List[float] = []
    for t in study._candidates(trials):
        if best is None or study._better(t, best) > 0:
            best = t
        heights.append(float(best.values[0]))  # type: ignore[arg-type]
    if len(heights) < 2:
        return ""
    low, high = min(heights), max(heights)
    points = " ".join(f"{300 * i / (len(heights) - 1):.1f},{56 - 52 * ((h - low) / (high - low) if high > low else 0.5):.1f}"
                      for i, h in enumerate(heights))
    return (f'<svg width="304" height="60" role="img" aria-label="best value by trial"><polyline points="{points}" '
            'fill="none" stroke="currentColor" stroke-width="1.5"/></svg>')


def _html(study: Study, trials: List[FrozenTrial]) -> str:
    """A study for a notebook: counts, the best trials, the best value by trial. No scripts, no style sheets."""
    counts: Dict[str, int] = {}
    for t in trials:
        counts[t.state] = counts.get(t.state, 0) + 1
    head = f"<b>{html.escape(study.name)}</b>: " + html.escape(", ".join(f"{n} {state}" for state, n in counts.items()) or "no trials")
    if study.sweep and study._connected:
        head += f' · <a href="{html.escape(study.url)}">dashboard</a>'
    candidates = study._candidates(trials)
    ordered = sorted(candidates, key=lambda t: float(t.values[0]),  # type: ignore[arg-type]
                     reverse=study.metrics[0][1] == "maximize")[:5]
    names = list(dict.fromkeys(n for t in ordered for n in t.params))
    cells = ["number"] + [n for n, _ in study.metrics] + names
    rows = ["".join(f"<th>{html.escape(c)}</th>" for c in cells)]
    for t in ordered:
        values = [str(t.number)] + [f"{v:.6g}" for v in t.values if v is not None]
        values += [f"{t.params[n]:.6g}" if isinstance(t.params.get(n), float) else str(t.params.get(n, "")) for n in names]
        rows.append("".join(f"<td>{html.escape(v)}</td>" for v in values))
    table = "<table>" + "".join(f"<tr>{r}</tr>" for r in rows) + "</table>" if ordered else ""
    return f"<div>{head}<br>{_curve(study, trials)}{table}</div>"


# Making a study.

def _goals(direction: Optional[str], directions: Optional[Sequence[str]], metric: Union[str, Sequence[str], None],
           metrics: Optional[Mapping[str, str]]) -> Metrics:
    if metrics is not None:
        if direction or directions or metric:
            raise ValueError("metrics: it takes the place of metric, direction and directions")
        pairs = list(metrics.items())
    elif directions is not None:
        names = list(metric) if metric is not None and not isinstance(metric, str) else \
            [f"value_{i}" for i in range(len(directions))] if len(directions) > 1 else [metric or "value"]
        pairs = list(zip(map(str, names), (getattr(d, "name", d) for d in directions)))
        if direction or len(names) != len(directions):
            raise ValueError(f"directions: found {len(directions)} for {len(names)} metrics" + (" and direction" if direction else ""))
    else:
        if metric is not None and not isinstance(metric, str):
            raise ValueError("metric: found a list, expected a name; with several, give directions or metrics")
        pairs = [(metric or "value", getattr(direction, "name", direction) or "minimize")]
    for name, goal in pairs:
        if str(goal).lower() not in ("minimize", "maximize"):
            raise ValueError(f"direction of {name}: found {goal!r}, expected minimize or maximize")
    return [(name, str(goal).lower()) for name, goal in pairs]


def _slug(name: Optional[str]) -> str:
    """A name that a sweep may have; by default that of the program."""
    if not name:
        name = os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0]
        name = "notebook" if name in ("ipykernel_launcher", "colab_kernel_launcher") else name
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:60] or "study"


def create_study(*, study_name: Optional[str] = None, direction: Optional[str] = None,
                 directions: Optional[Sequence[str]] = None, metric: Union[str, Sequence[str], None] = None,
                 metrics: Optional[Mapping[str, str]] = None, space: Optional[Mapping[str, Any]] = None,
                 method: str = "gp", seed: Optional[int] = None, constraints: Sequence[Mapping[str, Any]] = (),
                 parameter_constraints: Sequence[str] = (), forbidden: Sequence[Mapping[str, Any]] = (),
                 tags: Sequence[str] = (), limits: Optional[Mapping[str, Any]] = None, load_if_exists: bool = False,
                 server: Optional[str] = None, profile: Optional[str] = None, token: Optional[str] = None,
                 start: bool = True, **ignored: Any) -> Study:
    """A new study. Nothing is sent before its first trial.

    study_name: of the sweep; the server adds -2, -3, … to a name that is taken. direction, directions: minimize
    (default) or maximize, for each objective. metric: their names ("value", "value_0", …); or metrics, both at once:
    {"error": "minimize", "speed": "maximize"}. space: {name: (low, high), (low, high, "log"), a list of choices, an
    entry of a sweep document or an Optuna distribution}; None: what the objective suggests. method, seed, constraints,
    parameter_constraints, forbidden, tags, limits: fields of the sweep document (docs/sweep.md). load_if_exists: work
    on the sweep of this name, if there is one. server, profile, token: see docs/python.md; start: start `assay up`
    when no server is known. Optuna's storage, sampler and pruner are accepted and have no effect."""
    for field in set(ignored) - {"storage", "sampler", "pruner"}:
        raise TypeError(f"create_study() has no argument '{field}'")
    if ignored:
        _say(f"{', '.join(sorted(ignored))}: no effect here, the service has its own")
    if (parameter_constraints or forbidden) and space is None:
        raise ValueError("parameter_constraints and forbidden need space=: they name parameters before the first trial")
    goals = _goals(direction, directions, metric, metrics)
    options: JSON = {"search": {"method": method, **({} if seed is None else {"seed": int(seed)})},
                     "constraints": [dict(c) for c in constraints], "parameter_constraints": list(parameter_constraints),
                     "forbidden": [dict(f) for f in forbidden], "tags": list(tags), "limits": dict(limits or {})}

    def address() -> _Address:
        return _find(server, profile, token, start)

    study = Study(_slug(study_name), goals, options, address)
    if space is not None:
        study._use_space(space)
    if load_if_exists:
        with contextlib.suppress(_NoSuchSweep):
            _load(study, study_name or study.name)
    return study


class _NoSuchSweep(AssayError):
    pass


def _load(study: Study, sweep: str) -> None:
    """Make a study that of a sweep which the server has."""
    try:
        found = study._http.call("GET", f"/v1/sweeps/{urllib.parse.quote(sweep, safe='')}")
    except AssayError as e:
        if e.status != 404:
            raise
        raise _NoSuchSweep(str(e), e.status, e.code) from None
    document = found["document"]
    space = {name: _of_spec(name, spec) for name, spec in document["parameters"].items()}
    for name, p in study._space.items():
        if name not in space or not p.same(space[name]):
            raise SpaceError(f"parameter '{name}': found {p.described()}, but the sweep {found['id']} has "
                             f"{space[name].described() if name in space else 'no such parameter'}")
    study._space = {name: study._space.get(name, p) for name, p in space.items()}
    study.metrics = [(m["name"], m["goal"]) for m in found["metrics"]]
    study._options = {k: document[k] for k in ("search", "constraints", "tags", "limits", "parameter_constraints", "forbidden")
                      if k in document}
    study.name, study.sweep = found["name"], found["id"]
    study._limit = int(document.get("limits", {}).get("max_trials", TRIALS_MAX))


def load_study(study_name: str, *, server: Optional[str] = None, profile: Optional[str] = None,
               token: Optional[str] = None) -> Study:
    """The study of a sweep that the server has, by its id: to read its trials, or to go on with it. Its optimize()
    without n_trials runs what is left of the sweep's limit. AssayError with status 404 when there is none."""
    study = Study(study_name, [("value", "minimize")], {}, lambda: _find(server, profile, token, False))
    _load(study, study_name)
    return study


def optimize(objective: Callable[[Trial], Any], space: Optional[Mapping[str, Any]] = None, n_trials: Optional[int] = 30, *,
             name: Optional[str] = None, timeout: Optional[float] = None, n_jobs: int = 1,
             catch: Union[Type[BaseException], Iterable[Type[BaseException]]] = (),
             callbacks: Optional[Sequence[Callback]] = None, show_progress_bar: Optional[bool] = None, batch: int = 1,
             enqueue: Sequence[Mapping[str, Any]] = (), load_if_exists: bool = False, **study: Any) -> Study:
    """Search: run `objective` n_trials times, each time with values that the service suggests, and return the study.

    The objective gets a Trial and returns a number (or one for each objective, or {metric: number}). `space` is
    optional: without it, what the objective suggests in its trials is the space. name: of the sweep; with
    load_if_exists a program that was started again, or a second one, goes on with the sweep of that name, and n_trials
    is then its total. enqueue: configurations to run first. The other arguments are those of Study.optimize() and
    create_study(): direction="maximize", metric="accuracy", seed=…, constraints=…, server=…, …"""
    made = create_study(study_name=name, space=space, load_if_exists=load_if_exists, **study)
    for params_ in enqueue if made.sweep is None else ():
        made.enqueue_trial(params_)
    goes_on = made.sweep is not None
    made.optimize(objective, None if goes_on else n_trials, timeout, n_jobs, catch, callbacks, show_progress_bar, batch,
                  total=n_trials if goes_on else None)
    return made


# Inside a trial that assay-runner started (docs/trials.md), and inside an objective of optimize().

_stop = threading.Event()
_stop_watched = False
_next_step = itertools.count()


def in_trial() -> bool:
    """Did assay-runner start this program as a trial?"""
    return "ASSAY_REPORT" in os.environ


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise AssayError(f"{name} is not set: this program was not started by assay-runner as a trial")
    return value


def params(defaults: Optional[Mapping[str, Any]] = None) -> JSON:
    """The parameters of this trial, with `defaults` for those that are not active. Outside of a trial: the defaults, or
    AssayError without them."""
    trial = getattr(_this_thread, "trial", None)
    if trial is not None:
        return {**(defaults or {}), **trial.params}
    if defaults is not None and "ASSAY_PARAMS" not in os.environ:
        return dict(defaults)
    with open(_variable("ASSAY_PARAMS"), encoding="utf-8") as f:
        return {**(defaults or {}), **json.load(f)}


def seed(default: int = 0) -> int:
    """The seed of this trial, the same in every attempt; `default` outside of a trial."""
    trial = getattr(_this_thread, "trial", None)
    return int(trial.seed if trial is not None else os.environ.get("ASSAY_SEED") or default)


def _check_metric_names(metrics: Mapping[str, Any]) -> None:
    """The service takes the same names (base/metric_name.h)."""
    for name in metrics:
        if not re.match(r"[A-Za-z_][A-Za-z0-9_./@()-]{0,62}\Z", name) or name == "step":
            raise ValueError(f"metric {name!r}: expected a letter or _, then letters, digits and _ . - / @ ( ), at most 63 "
                             "characters, and not 'step'")


def report(step: Optional[int] = None, **metrics: Any) -> None:
    """Record measurements of this trial: report(step=3, loss=0.2). Without a step, the next one. Outside of a trial the
    line goes to standard error."""
    trial = getattr(_this_thread, "trial", None)
    if trial is not None:
        trial.report(None, step, **metrics)
        return
    if not metrics:
        raise ValueError("report: expected metrics by name, such as loss=0.2")
    _check_metric_names(metrics)
    if step is not None and (int(step) != step or step < 0):
        raise ValueError(f"step: found {step!r}, expected a whole number from 0")
    line: JSON = {} if step is None else {"step": int(step)}
    for name, value in metrics.items():
        try:
            line[name] = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"{name}: found {value!r}, expected a number") from None
    if not in_trial():
        _say("report " + json.dumps(line))
        return
    # One write of a whole line to a file opened for appending: lines of several processes do not mix.
    handle = os.open(_variable("ASSAY_REPORT"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, json.dumps(line).encode() + b"\n")
    finally:
        os.close(handle)


def checkpoint_dir() -> Path:
    """The folder that outlives this attempt: the next one finds its files there. Write to a temporary name and rename."""
    return Path(_variable("ASSAY_CHECKPOINTS"))


def artifacts_dir() -> Path:
    """The folder whose files are kept."""
    return Path(_variable("ASSAY_ARTIFACTS"))


def should_stop() -> bool:
    """Was this trial asked to stop? Then write a checkpoint and exit with 75 to be continued, or with 0.

    In a trial of assay-runner the first call, in the main thread, makes SIGTERM set this instead of ending the
    program; a handler that was there before is called too."""
    global _stop_watched
    trial = getattr(_this_thread, "trial", None)
    if trial is not None:
        return bool(trial.should_prune())
    if not _stop_watched and in_trial() and threading.current_thread() is threading.main_thread():
        _stop_watched = True
        before = signal.getsignal(signal.SIGTERM)

        def handle(number: int, frame: Any) -> None:
            _stop.set()
            if callable(before):
                before(number, frame)

        signal.signal(signal.SIGTERM, handle)
    return _stop.is_set()


# Optuna: its studies with the search of Assay. One line of a script changes: sampler=assay.AssaySampler().

class _OptunaLink:
    """What the sampler does, without Optuna's classes. The first trial, and names that no trial had suggested before,
    are drawn by Optuna; all else comes from a Study of this file, whose trials end when Optuna's do."""

    def __init__(self, make: Callable[[Any], Study]) -> None:
        self._make = make
        self._study: Optional[Study] = None
        self._lock = threading.RLock()
        self._running: Dict[int, Trial] = {}
        self._distributions: Dict[str, Any] = {}

    def space(self, optuna_study: Any) -> Dict[str, Any]:
        with self._lock:
            if self._study is None:
                self._study = self._make(optuna_study)
                atexit.register(self.close)
                past = [t for t in optuna_study.get_trials(deepcopy=False) if t.state.name == "COMPLETE" and t.params]
                for t in past:
                    self._remember(t, "completed", t.values)
            return {n: d for n, d in self._distributions.items() if not d.single()}

    def _remember(self, theirs: Any, state: str, values: Any) -> FrozenTrial:
        """A trial of Optuna's whose values we did not suggest: a known result."""
        assert self._study is not None
        trial = Trial(self._study, None, None, "")
        trial.number = theirs.number
        trial._asked = self._asked(theirs)
        metrics = self._study._metrics_of(list(values)) if state == "completed" else {}
        record = self._study._frozen(trial, state, metrics, None if metrics else state)
        with self._study._lock:
            self._study._own.append(record)
            for name, (p, _) in trial._asked.items():
                if name not in self._study._space:
                    self._study._missing[name] = p
        self._distributions.update(theirs.distributions)
        return record

    def _asked(self, theirs: Any) -> Dict[str, Tuple[_Parameter, Any]]:
        return {n: (_of_space(n, theirs.distributions[n]), v) for n, v in theirs.params.items()}

    def sample(self, theirs: Any) -> JSON:
        with self._lock:
            study = self._study
            if study is None or not self._distributions or "fixed_params" in theirs.system_attrs:
                return {}
            if study.sweep is None:
                study._start_with_results()
        trials = study._next(None, _client_name())
        if not trials:
            return {}
        self._running[theirs._trial_id] = trials[0]
        return {n: study._space[n].decode(v) for n, v in trials[0]._given.items() if n in self._distributions}

    def after(self, theirs: Any, state: str, values: Any) -> None:
        study, trial = self._study, self._running.pop(theirs._trial_id, None)
        if study is None or (trial is None and not theirs.params):
            return
        ended = {"COMPLETE": "completed", "PRUNED": "pruned"}.get(state, "failed")
        if trial is None:
            with self._lock, study._lock:  # in one step: a space that grows between the two would carry it as well
                study._carry(self._remember(theirs, ended, values))
            return
        trial._asked = self._asked(theirs)
        trial._steps = trial._unsent = {s: {study.metrics[0][0]: float(v)} for s, v in theirs.intermediate_values.items()}
        moved = [n for n, (p, v) in trial._asked.items() if n in trial._given and p.encode(v) != trial._given[n]]
        self._distributions.update(theirs.distributions)
        if moved:
            study._finish(trial, "failed", {}, f"parameter '{moved[0]}': the objective used another value than the suggested one")
        elif ended == "completed":
            study._finish(trial, ended, study._metrics_of(list(values)))
        else:
            study._finish(trial, ended, {}, "pruned by Optuna" if ended == "pruned" else "the objective failed")

    def close(self) -> None:
        """The sweep has all the trials it will have; the next trial of Optuna's begins another one."""
        atexit.unregister(self.close)
        with self._lock:
            study, self._study = self._study, None
            running, self._running, self._distributions = self._running, {}, {}
        if study is not None:
            study._http.patience = 5.0  # the program is about to end: it does not wait for a server that is away
            for trial in running.values():
                study._release(trial)
            study._end_here()
            study._http.close()


def AssaySampler(*, study_name: Optional[str] = None, method: str = "gp", seed: Optional[int] = None,
                 server: Optional[str] = None, profile: Optional[str] = None, token: Optional[str] = None,
                 start: bool = True) -> Any:
    """A sampler for Optuna whose suggestions are those of Assay: optuna.create_study(sampler=assay.AssaySampler()).
    Also for several objectives; trials that the study has already become known results. The arguments are those of
    create_study(). A trial that Optuna prunes is a failed one for the search."""
    import optuna  # type: ignore[import]

    def make(study: Any) -> Study:
        goals = [d.name.lower() for d in study.directions]
        names = getattr(study, "metric_names", None)
        return create_study(study_name=study_name or study.study_name, directions=goals, metric=names, method=method, seed=seed,
                            server=server, profile=profile, token=token, start=start)

    link = _OptunaLink(make)
    independent = optuna.samplers.RandomSampler(seed=seed)

    class Sampler(optuna.samplers.BaseSampler):  # type: ignore[misc]
        def infer_relative_search_space(self, study: Any, trial: Any) -> JSON:
            return link.space(study)

        def sample_relative(self, study: Any, trial: Any, search_space: JSON) -> JSON:
            return link.sample(trial)

        def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
            return independent.sample_independent(study, trial, param_name, param_distribution)

        def after_trial(self, study: Any, trial: Any, state: Any, values: Any) -> None:
            link.after(trial, state.name, values)

        def reseed_rng(self) -> None:
            independent.reseed_rng()

        def close(self) -> None:
            """End the sweep now; it ends with the program otherwise."""
            link.close()

    return Sampler()


# Callbacks of other libraries. Each imports its library when it is called, and reports the numbers of a step to
# `trial`, to the trial whose objective runs in this thread, or to that of assay-runner.

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
            raise TrialPruned(self._trial._lost or f"stopped at step {step}")
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
