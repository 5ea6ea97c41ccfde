"""Two trees of a body, field by field: as it came and as klamm sent it on, or of two exchanges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from klamm.dashboards.web.chosen.nodes import Node
from klamm.decoders.spans import TAGGED

MOST = 1000  # changes that are told


class Change(Struct, frozen=True):
    """A field that differs: `path` is as in topics[0].name, and None stands where it is not there."""

    path: str
    before: str | None
    after: str | None


class Bodied(Struct, frozen=True):
    """A tree, and the bytes of its body."""

    tree: Sequence[Node]
    data: bytes


def changes(before: Bodied, after: Bodied) -> list[Change]:
    """The fields that differ, in the order of `before`, the new ones behind them."""
    old, new = dict(_leaves(before.tree, "")), dict(_leaves(after.tree, ""))
    found = []
    for path in dict.fromkeys([*old, *new]):
        one, other = old.get(path), new.get(path)
        if one is None or other is None:
            texts = None if one is None else one.text, None if other is None else other.text
        elif one.text != other.text:
            texts = one.text, other.text
        elif _bytes(one, before.data) != _bytes(other, after.data):
            texts = one.text, f"{other.text} (other bytes)"
        else:
            continue
        found.append(Change(path, *texts))
        if len(found) == MOST:
            break
    return found


def _bytes(node: Node, data: bytes) -> bytes:
    return data[node.start : node.end] if 0 <= node.start <= node.end else b""


def _leaves(nodes: Sequence[Node], above: str) -> Iterator[tuple[str, Node]]:
    """Each field that holds no others. The page makes the same paths (tree.js)."""
    for node in nodes:
        if node.name == TAGGED:
            yield from _leaves(node.parts, above)
            continue
        path = f"{above}{node.name}" if node.name.startswith("[") or not above else f"{above}.{node.name}"
        if not node.parts:
            yield path, node
            continue
        yield from _leaves(node.parts, path)
        end = max(part.end for part in node.parts)
        if 0 <= end < node.end:  # records of a batch, which are not in the tree
            yield f"{path}.records", Node("records", end, node.end, text=f"{node.end - end:,} bytes")
