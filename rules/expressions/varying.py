"""Words that an expression uses: which are of headers, and which differ between frames that say the same."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import fields
from typing import Any

from klamm.rules.expressions.tree import Name, Node

HEADER = {
    "api", "version", "side", "client_id", "client_instance_id", "client", "client_port", "connection",
    "broker", "cluster", "principal",
}  # fmt: skip
VARYING = {"size", "request_size", "response_size", "latency_ms", "duration", "record"}


def varies(tree: Node) -> bool:
    """Whether an expression uses a word whose value varies."""
    return mentions(tree, VARYING)


def mentions(tree: Node, words: Set[str]) -> bool:
    """Whether an expression uses one of these words."""
    return not words.isdisjoint(_words(tree))


def mentions_only(tree: Node, words: Set[str]) -> bool:
    """Whether an expression uses no other words."""
    return words >= set(_words(tree))


def _words(tree: Any) -> Iterator[str]:
    if isinstance(tree, Name):
        yield tree.name
    elif isinstance(tree, Node):
        for each in fields(tree):
            yield from _words(getattr(tree, each.name))
    elif isinstance(tree, tuple):
        for each in tree:
            yield from _words(each)
