"""Streams of one connection, and players that give them to a reader, cut in any way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, NamedTuple

from klamm.captures.captured import Captured, CapturedConnection
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.connection_reader import ConnectionReader
from klamm.captures.streams.cutting import filled
from klamm.decoders import API, decode, interpret, layout
from klamm.decoders.headers import request_frame, response_frame
from klamm.decoders.interpret import Layout
from klamm.decoders.records import Batch, Record, write
from klamm.decoders.schema import Field, Side, members
from tests.decoders.hostile import LAYOUTS, struct_of
from tests.proxy.traffic import Exchanged, whole

CONNECTION = CapturedConnection("run", 1, "main", "1", "10.0.0.7:50000")
TOPIC_ID = bytes(range(16))
PLANTED = b"planted-in-a-record"
CODECS = "none", "gzip", "snappy", "lz4", "zstd"


class Step(NamedTuple):
    """Bytes of one side: `data` came; `sent` went on towards each side, None where `data` did."""

    side: Side
    data: bytes
    sent: list[tuple[Side, bytes]] | None = None


Cutting = Callable[[bytes], Iterable[bytes]]


def sides(one: Exchanged) -> tuple[tuple[Side, bytes], tuple[Side, bytes | None]]:
    return ("request", one.request), ("response", one.answer)


def exchange_steps(*exchanges: Exchanged) -> list[Step]:
    """Each request, and its answer behind it."""
    return [Step(side, data) for one in exchanges for side, data in sides(one) if data is not None]


def play(
    steps: Iterable[Step], cut: Cutting = whole, keeping: Keeping | None = None, mid_stream: bool = False
) -> list[Captured]:
    """The rows of a connection, from its first byte to its end; the times are 0."""
    reader = ConnectionReader(CONNECTION, keeping or Keeping("keep"), mid_stream)
    rows = [row for step in steps for row in take(reader, step, cut)]
    rows += reader.end(0, "over")
    assert (reader.keeping.buffered_bytes, reader.keeping.unmatched) == (0, 0)
    return rows


def take(reader: ConnectionReader, step: Step, cut: Cutting = whole) -> list[Captured]:
    rows = []
    for piece in cut(step.data):
        rows += reader.feed(step.side, piece, 0, forwarded=step.sent is None)
    for side, data in step.sent or ():
        for piece in cut(data):
            rows += reader.sent(side, piece, 0)
    return rows


def frames(rows: Iterable[Captured], side: Side) -> list[bytes | None]:
    """The frames of one side as a reader gives them."""
    there = [row for row in rows if row.kind in ("frame", "token") and row.side == side]
    return [None if row.frame is None else filled(row.frame, row.blanks) for row in there]


def contents(rows: Iterable[Captured]) -> bytes:
    """All the bytes that rows carry."""
    return b"|".join(part for row in rows for part in (row.frame, row.forwarded) if part)


def batch(codec: str = "none", count: int = 3, content: bytes = PLANTED, magic: int = 2) -> bytes:
    """`count` records with keys, values and, where the format has them, headers."""
    headers = ((content.decode(), content),) if magic == 2 else ()
    rows = [
        Record(offset, 1_700_000_000_000 + offset, content + b"-key", content * 3, headers)
        for offset in range(count)
    ]
    return write(Batch(magic=magic, codec=codec), rows)


def of_layout(of: Layout, random: Random, secret: bytes = b"") -> bytes:
    """A body with `secret` in all its secrets, and batches for its records."""
    values = struct_of(of.fields, of.version, False, random)
    _plant(values, of.fields, secret, random)
    return interpret.write(of, values)


def _plant(values: dict[str, Any], fields: tuple[Field, ...], secret: bytes, random: Random) -> None:
    for f in fields:
        value = values.get(f.name)
        if value is None:
            continue
        if f.mark == "SECRET" and secret:
            values[f.name] = secret.decode() if f.kind == "string" else secret
        elif f.kind == "records":
            values[f.name] = batch(random.choice(CODECS), random.randrange(1, 4), magic=2) * random.randrange(
                3
            )
        elif members(f):
            for each in value if isinstance(value, list) else [value]:
                _plant(each, members(f), secret, random)


def of_any_api(random: Random, count: int, secret: bytes = b"") -> list[Step]:
    """Requests of any API and version, some of them sent before the answers to others have come."""
    requests = [of for of in LAYOUTS if of.side == "request" and (of.api, of.version) != ("SaslHandshake", 0)]
    steps: list[Step] = []
    waiting: list[Step] = []
    for number in range(count):
        of = random.choice(requests)
        api, version = API[of.api], of.version
        body = of_layout(of, random, secret)
        client_id = (
            None if api.name == "ControlledShutdown" and version == 0 else random.choice(["app", None, "ä"])
        )
        steps.append(Step("request", request_frame(api, version, number, client_id, body)))
        if api.name != "Produce" or decode(body, api.key, version, "request")["acks"] != 0:
            answered = of_layout(layout(api.key, version, "response"), random, secret)
            waiting.append(Step("response", response_frame(api, version, number, answered)))
        while waiting and random.random() < 0.7:
            steps.append(waiting.pop(0))
    return steps + waiting
