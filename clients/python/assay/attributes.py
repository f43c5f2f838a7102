"""Attributes of studies and trials, as the server keeps them."""
from __future__ import annotations

import json
from typing import Any, Mapping, Sequence

from .constants import JSON

ATTRIBUTE = "user-attr:"  # tags of sweeps that versions before wrote: user-attr:KEY=JSON
ATTRS_MAX, NAME_MAX = 64, 128  # of a trial or study; characters of a name
VALUE_MAX, VALUES_MAX = 16 << 10, 64 << 10  # bytes of JSON in one, and in all with their names


def _sendable(attrs: Mapping[str, Any]) -> JSON:
    """Those that the server keeps: what is JSON and within its limits, the first ones first. None removes a name there."""
    found: JSON = {}
    left = VALUES_MAX
    for name, value in attrs.items():
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False)
            size = len(text.encode()) + len(name.encode())
        except (TypeError, ValueError, AttributeError, RecursionError):  # no JSON, or a text that UTF-8 lacks
            continue
        is_name = isinstance(name, str) and 0 < len(name) <= NAME_MAX and name.isprintable()
        if is_name and "\\u0000" not in text and size <= min(left, VALUE_MAX) and len(found) < ATTRS_MAX:
            found[name], left = json.loads(text), left - size
    return found


def _attributes(sweep: JSON) -> JSON:
    """The attributes of a study: those of its sweep, and those that versions before kept in its tags."""
    found: JSON = {}
    tags: Sequence[str] = sweep["document"].get("tags", [])
    for tag in tags:
        key, _, value = tag[len(ATTRIBUTE):].partition("=")
        if tag.startswith(ATTRIBUTE):
            try:
                found[key] = json.loads(value)
            except ValueError:
                continue
    return {**found, **(sweep.get("user_attrs") or {})}
