"""Writes values of YAML as one line of YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

WORDS = frozenset({"~", "null"})  # text that would be read as nothing


def flow(value: Any) -> str:
    """`{api: Produce, times: 3, error: {code: 6, applied: true}}`"""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(str(key))}: {flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return _text(value) if isinstance(value, str) else str(value)


def _text(text: str) -> str:
    """The text, in quotes where YAML, within braces, would read another value."""
    if text not in WORDS and text.isprintable() and _read(text) == text:
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    plain = (c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text)
    return '"' + "".join(plain) + '"'


def _read(text: str) -> Any:
    try:
        ((found,),) = yaml.load(f"[[{text}]]", yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, TypeError):
        return None
    return found
