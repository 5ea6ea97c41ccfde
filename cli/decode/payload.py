"""Payloads without their frames, by their names: what Kafka writes into its own topics and fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from klamm.cli.decode.as_json import payload_as_object
from klamm.cli.decode.tree import DIM, Line, View, payload_lines
from klamm.cli.tables import print_json
from klamm.decoders.shown.inside import payload_alone
from klamm.decoders.shown.records import wrongs

Print = Callable[[Iterable[Line]], None]


def show(name: str, form: str, data: bytes, view: View, show_lines: Print) -> bool:
    """Prints the payload as a tree. False: it is not as its layout says."""
    alone = payload_alone(name, data)
    show_lines([[(f"{form}, {len(data)} bytes", DIM)], []])
    show_lines(payload_lines(alone.whole, data, view))
    return not any(wrongs(alone.whole))


def show_json(name: str, data: bytes, places: bool) -> bool:
    """Prints it as one object in a line. False as above."""
    alone = payload_alone(name, data)
    print_json(payload_as_object(data, alone, places))
    return not any(wrongs(alone.whole))
