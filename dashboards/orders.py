"""Sums up the orders of actions in words: the same order on many frames is one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from klamm.captures.values import changes
from klamm.decoders import DecodeError
from klamm.decoders.error_codes import error_name
from klamm.decoders.schema import ERROR, marked
from klamm.decoders.text import printable
from klamm.proxy.log.lines import duration, size
from klamm.rules.frame import Frame
from klamm.rules.orders import (
    Answer,
    Cut,
    Delay,
    Drop,
    Edit,
    Log,
    Order,
    Raw,
    Shape,
    Silence,
    Twice,
)
from klamm.rules.subjects import at
from klamm.settings.listing import some

KINDS = 1000  # of words that are counted apart; the others are counted together
PLACES = 3  # changed fields that are named
OTHERS = "do something else"


class Orders:
    """The orders of one rule."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.delays: dict[str, list[int]] = {}  # side -> count, least, most, in ns
        self.examples: dict[str, str] = {}

    def take(self, frame: Frame, order: Order) -> None:
        """Takes one more order; the frame is as it was before."""
        if isinstance(order, Delay):
            known = self.delays.setdefault(frame.side, [0, order.ns, order.ns])
            known[:] = known[0] + 1, min(known[1], order.ns), max(known[2], order.ns)
            return
        words, example = _words(frame, order)
        if words not in self.counts and len(self.counts) >= KINDS:
            words = OTHERS
        self.counts[words] += 1
        if example:
            self.examples.setdefault(words, example)

    def lines(self) -> Iterator[str]:
        """A line for each kind, the most frequent first."""
        for side, (count, least, most) in self.delays.items():
            by = (
                duration(least / 1e6)
                if least == most
                else f"{duration(least / 1e6)} to {duration(most / 1e6)}"
            )
            yield f"delay the {side} by {by} ({count})"
        for words, count in self.counts.most_common():
            example = self.examples.get(words)
            yield f"{words} ({count}){f', first {example}' if example else ''}"


def _words(frame: Frame, order: Order) -> tuple[str, str]:
    """The order in words, with an example where each is another."""
    side = frame.side
    match order:
        case Answer(None):
            return "withhold the request, and answer nothing", ""
        case Answer(dict() as values):
            names = sorted({error_name(code) for code in _errors(frame, values) if code})
            return f"answer in the broker's place{' with ' if names else ''}{', '.join(names)}", ""
        case Edit(values):
            return _edit(frame, values)
        case Raw(body):
            return f"send other bytes in place of the {side}", f"{size(len(frame.body))} -> {size(len(body))}"
        case Drop():
            return f"drop the {side}", ""
        case Cut(how, sent):
            cut = (
                ""
                if sent == 0
                else " after the frame"
                if sent is None
                else f" after {sent} bytes of the frame"
            )
            return f"{'close' if how == 'fin' else 'reset'} the connection{cut}", ""
        case Silence(close_after_ns):
            closes = f", and close it {duration(close_after_ns / 1e6)} later" if close_after_ns else ""
            return f"let the connection fall silent{closes}", ""
        case Twice():
            return "send the request twice", ""
        case Shape():
            rate = f" at {size(order.bytes_per_s)}/s" if order.bytes_per_s else ""
            return (
                f"shape what flows to the {'broker' if order.direction == 'request' else 'client'}{rate}",
                "",
            )
        case Log(message, _):
            return "log", printable(message)
    return f"{type(order).__name__.lower()} the {side}", ""


def _edit(frame: Frame, values: dict[str, Any]) -> tuple[str, str]:
    """The fields that change, without their places in arrays."""
    try:
        found = list(changes(frame.values, values))
    except DecodeError:
        return f"replace the {frame.side}", ""
    paths = list(dict.fromkeys(change.path.replace("[", ".").replace("]", "") for change in found))
    names = list(
        dict.fromkeys(".".join(part for part in path.split(".") if not part.isdigit()) for path in paths)
    )
    if not names:
        return f"change nothing in the {frame.side}", ""
    first = found[0]
    example = f"{first.path}: {_value(first.path, first.before)} -> {_value(first.path, first.after)}"
    return f"change {some(names, PLACES)} of the {frame.side}", example


def _value(path: str, value: Any) -> str:
    if path.endswith("error_code") and isinstance(value, int):
        return error_name(value)
    return "nothing" if value is None else printable(str(value))[:80]


def _errors(frame: Frame, values: dict[str, Any]) -> Iterator[int]:
    for path in marked(frame.api.response, frame.version, frozenset({ERROR})):
        yield from at(values, path)
