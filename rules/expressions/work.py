"""The work that one evaluation of an expression may take, in steps of up to 0.1 us each.

Both come from outside: expressions from people, frames from clients. Beyond the limit there is no match.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from klamm.decoders.failures import DecodeError
from klamm.rules.expressions.tree import (
    Arithmetic,
    Call,
    Compare,
    IsNone,
    Item,
    Logic,
    Negative,
    Node,
    Not,
    Quantified,
)
from klamm.rules.frame import Frame

LIVE = 100_000  # some 10 ms, in which klamm does nothing else
OFFLINE = 100 * LIVE  # of commands that read captures

# Prices in steps. What is evaluated on an element, a value or a record has its own besides: see `price`.
ELEMENT = 2  # of an array, in `any` and `all`
NAMED = 1  # a value of `topic`, `error` and such
RECORD, BATCH = 10, 25
HEADER = 7  # of a record
MOST_HEADERS = 1000  # of a record; one with more is unknown
# Bytes for a step.
DECOMPRESSED, DECOMPRESSED_OLD = 32, 16  # of batches; of those of magic 0 and 1, which are read twice
TEXT, JSON = 32, 4

OPERATORS = Arithmetic, Call, IsNone, Item, Negative, Not, Quantified


class OverLimit(DecodeError):
    """An evaluation took more work than it may."""

    def __init__(self, frame: Frame, limit: int) -> None:
        reason = f"takes more than {limit:,} steps"
        of = frame.api.name, frame.version, frame.side
        super().__init__(reason, api=of[0], version=of[1], side=of[2], path="", offset=0)


def price(tree: Any) -> int:
    """The steps for one evaluation of a part of an expression, without what depends on the frame: one for
    each operator and function.
    """
    if isinstance(tree, tuple):
        return sum(map(price, tree))
    if not isinstance(tree, Node):
        return 0
    match tree:
        case Compare(_, several) | Logic(_, several):
            own = len(several)
        case _:
            own = int(isinstance(tree, OPERATORS))
    return own + sum(price(getattr(tree, each.name)) for each in fields(tree))
