"""Words whose values differ between frames that say the same."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from klamm.rules.expressions.tree import Name, Node

VARYING = {"size", "request_size", "response_size", "latency_ms", "duration", "record"}


def varies(tree: Any) -> bool:
    """Does an expression use one of them?"""
    if isinstance(tree, Name):
        return tree.name in VARYING
    if isinstance(tree, Node):
        return any(varies(getattr(tree, f.name)) for f in fields(tree))
    return isinstance(tree, tuple) and any(map(varies, tree))
