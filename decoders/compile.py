"""From a layout to functions specialised for it, made on first use.

One walk over the fields, five goals:

    read(data, pos, end) -> (values, pos)         everything, as dicts and lists
    pick(data, pos, end) -> (column, ..., pos)    some fields, in the order asked; returns after the last
    walk() -> generator                           pick over chunks: send() bytes; (column, ..., bytes left)
    locate(data, pos, end) -> [(path, start, end, value), ...]    with their spans, in wire order
    write(values) -> bytes

A column is a value, None where null or absent, and a list per array on the way to the field. Made functions
check lengths, counts and the end only. Whatever they raise (UNREADABLE, UNWRITABLE), the interpreter is asked
again and explains, or, where they merely lack a rare case (unknown fields, strings that are not UTF-8, tagged
fields to write), does the work.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from struct import error
from typing import Any

from klamm.decoders.emit.pick import TAG_PATH, Counter, Locator, Path, Picker, Walker
from klamm.decoders.emit.read import Reader
from klamm.decoders.emit.write import Writer
from klamm.decoders.interpret import Layout
from klamm.decoders.tags import Malformed, long_uvarint, skip_tags, tags_end, unknown_tags

__all__ = [
    "TAG_PATH", "UNREADABLE", "UNWRITABLE", "Locate", "Malformed", "Path", "Pick", "Read", "Walk", "Write",
    "beyond", "ends", "locate", "long_uvarint", "pick", "read", "skip_tags", "tags_end", "unknown_tags",
    "walk", "write",
]  # fmt: skip

Read = Callable[[bytes, int, int], tuple[dict[str, Any], int]]
Pick = Callable[[bytes, int, int], tuple[Any, ...]]
Walk = Callable[[], Generator[None, bytes, tuple[Any, ...]]]
Locate = Callable[[bytes, int, int], list[tuple[int, int, int, Any]]]
Write = Callable[[dict[str, Any]], bytes]

UNREADABLE = (Malformed, error, IndexError, UnicodeError)  # from read, pick, walk and locate
UNWRITABLE = (Malformed, error, KeyError, TypeError, AttributeError, OverflowError)  # from write


def read(layout: Layout) -> Read:
    """Its source is its __doc__."""
    return Reader(layout, "read").everything()


def pick(layout: Layout, paths: tuple[Path, ...], most: int | None = None) -> Pick:
    """Paths that this version lacks give None. `most`: elements; where an array has more, the columns have
    what was found before it, and the position is the end.
    """
    return Picker(layout, "pick", paths, most=most).made("data, pos, end")


def walk(layout: Layout, paths: tuple[Path, ...], stop: str | None = None, most: int | None = None) -> Walk:
    """Start the generator with next(), feed it the body in pieces with send(). Only wanted fields are kept.

    `stop` names a top-level field before which to return; for a tagged one that is before the tagged section.
    `most`: elements to read, as of `pick`.
    """
    return Walker(layout, "walk", paths, stop, most).made("")


def beyond(layout: Layout, most: int) -> Callable[[bytes, int, int], bool]:
    """Has a body more than `most` elements of arrays? Raises as `pick` does."""
    return Counter(layout, most).made("data, pos, end")


def ends(layout: Layout) -> Pick:
    """(pos,): the position after a body, in which nothing is read. Raises as `pick` does."""
    return Picker(layout, "end", (), "-").made("data, pos, end")


def locate(layout: Layout, paths: tuple[Path, ...]) -> Locate:
    """Each span is from the first byte of a field (its length included) to the byte after it."""
    return Locator(layout, "locate", paths).made("data, pos, end")


def write(layout: Layout) -> Write:
    """Missing fields, and tagged fields other than their defaults, are left to the interpreter."""
    return Writer(layout).made("values")
