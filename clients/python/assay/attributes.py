"""Attributes of studies, as tags of their sweeps."""
from __future__ import annotations

import contextlib
import json
from typing import Any, List, Mapping, Sequence

from .constants import JSON

ATTRIBUTE = "user-attr:"  # user-attr:KEY=JSON
TAGS_MAX, TAG_MAX = 64, 128  # of a sweep; characters in one


def _attribute_tags(attrs: Mapping[str, Any], most: int) -> List[str]:
    """The attributes of a study that fit into tags, so that other programs see them."""
    found = []
    for key, value in attrs.items():
        with contextlib.suppress(TypeError, ValueError):
            tag = f"{ATTRIBUTE}{key}={json.dumps(value)}"
            if len(tag) <= TAG_MAX and str(key).isprintable() and str(key).isascii() and "=" not in key:
                found.append(tag)
    return found[:max(0, most)]


def _attributes(tags: Sequence[str]) -> JSON:
    """The attributes in the tags of a sweep."""
    found = {}
    for tag in tags:
        key, _, value = tag[len(ATTRIBUTE):].partition("=")
        if tag.startswith(ATTRIBUTE):
            with contextlib.suppress(ValueError):
                found[key] = json.loads(value)
    return found
