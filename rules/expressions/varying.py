"""Words that an expression uses; and of these, which differ between frames that say the same."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import fields
from typing import Any

from klamm.rules.expressions.tree import Name, Node

VARYING = {"size", "request_size", "response_size", "latency_ms", "duration", "record"}


def varies(tree: Node) -> bool:
    """Whether an expression uses a word whose value varies."""
    return mentions(tree, VARYING)


def mentions(tree: Any, words: Set[str]) -> bool:
    """Whether an expression uses one of these words."""
    if isinstance(tree, Name):
        return tree.name in words
    if isinstance(tree, Node):
        return any(mentions(getattr(tree, f.name), words) for f in fields(tree))
    return isinstance(tree, tuple) and any(mentions(each, words) for each in tree)
