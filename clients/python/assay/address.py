"""The server: finding it. The order is that of the command line (docs/cli.md): a server that is named, a profile, the
environment, a running `assay up`. A token is only sent to the server that it was found for."""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Dict, Iterator, NamedTuple, Optional, Tuple

from .constants import JSON
from .errors import AssayError, Unavailable
from .messages import _say


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


def _program() -> Optional[str]:
    """The path of `assay`: in PATH, or near this file."""
    near = Path(__file__).resolve().parents  # of the file in a build folder, of the modules in a source tree
    beside = [str(folder / "cli" / "assay") for folder in (near[2], near[3] / "build")] if len(near) > 3 else []
    return shutil.which("assay") or next((path for path in beside if os.access(path, os.X_OK)), None)


def _start_server() -> JSON:
    """Starts `assay up`, which goes on when this program ends, and waits until it is ready. Its note."""
    program = _program()
    if not program:
        raise Unavailable("no server is known: start one with `assay up`, or name one with server= or ASSAY_SERVER. "
                          "None was started, because `assay` is not in PATH")
    handle, log = tempfile.mkstemp(prefix="assay-up-", suffix=".log")
    os.close(handle)
    # A shell starts it and ends, so that it is no child of this program: nobody has to wait for it.
    shell = subprocess.run(["sh", "-c", '"$@" >"$0" 2>&1 </dev/null & echo $!', log, program, "up"], check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    pid = awaited = int(shell.stdout)
    while True:
        live, note = _start_ticks(awaited) > 0, _running()
        if note is not None:  # ours, or that of another program which started one at the same moment
            if note["pid"] == pid:
                _say(f"started `assay up` at {note['url']}; it goes on after this program; `kill {pid}` ends it")
            os.unlink(log)
            return note
        if not live:
            with open(log, encoding="utf-8", errors="replace") as f:
                said = f.read()
            other = re.search(r"assay up \(pid (\d+)\) is running on ", said)  # another program was faster, and is not ready
            if other is None or int(other.group(1)) == awaited:
                raise Unavailable(f"`{program} up` ended; the end of its output ({log}): {said[-600:].strip()}")
            awaited = int(other.group(1))
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
