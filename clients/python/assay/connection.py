"""The server: HTTP. One connection for each thread; it stays open."""
from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import ssl
import threading
import time
import urllib.parse
from typing import Any, Mapping, Optional, Tuple

from .address import _Address
from .constants import PATIENCE_S, __version__
from .errors import AssayError, Unavailable
from .messages import _warn


class _Plain(http.client.HTTPConnection):
    """A connection that is closed when the thread that it belongs to has ended."""

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


class _Tls(http.client.HTTPSConnection):
    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


def _trusted() -> ssl.SSLContext:
    """The authorities of the system, or those of ASSAY_CA_FILE alone."""
    path = os.environ.get("ASSAY_CA_FILE") or None
    try:
        context = ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as e:
        raise AssayError(f"ASSAY_CA_FILE: {path} has no certificates of authorities: {e}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class _Http:
    """Requests to one server, from any thread. A request that fails in a way that may pass is repeated: at once on a
    connection that the server had closed, and for up to `patience` seconds when the server had answered before."""

    def __init__(self, address: _Address) -> None:
        self.address = address
        self._parts = urllib.parse.urlsplit(address.url)
        self._tls = _trusted() if self._parts.scheme == "https" else None
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
        data = None if body is None else _encoded(body)
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
                _warn(f"{problem}; trying again for {self.patience / 60:.0f} minutes")
            pause = min(pause * 1.7, 5.0)
            time.sleep(max(pause * (0.5 + random.random()), min(wait, 30.0)))


def _encoded(body: Any) -> bytes:
    """The body of a request. AssayError for what JSON or UTF-8 does not have."""
    try:
        text = json.dumps(body, allow_nan=False, ensure_ascii=False)
        data = text.encode()
    except UnicodeEncodeError as e:
        raise AssayError(f"found the text {e.object[max(0, e.start - 20):e.end + 20]!r}, expected one that UTF-8 has") from None
    except (ValueError, TypeError) as e:
        raise AssayError(f"a request has what JSON does not have: {e}") from None
    if "\\u0000" in text.replace("\\\\", ""):
        raise AssayError("found a text with NUL, expected one without")
    return data


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
