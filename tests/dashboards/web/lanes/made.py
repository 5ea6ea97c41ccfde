"""Exchanges that never were, and the marks that a timeline makes of them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from klamm.client.types import Body, Exchange
from klamm.dashboards.web.lanes.marks import Lane, Mark
from klamm.dashboards.web.lanes.reading import Timeline
from klamm.dashboards.web.source import Cut
from klamm.decoders import encode
from klamm.decoders.payloads import encode_payload

START = 1_700_000_000.0
Values = Mapping[str, Any]


def body(values: Values, api: str, version: int, side: Any) -> Body:
    data = encode(dict(values), api, version, side)
    return Body(len(data), raw=b64encode(data).decode())


@dataclass
class Client:
    """Somebody who asks brokers; `at` is when, in seconds."""

    name: str = "app"
    number: int = 1
    broker: str = "1"
    host: str = "10.0.0.7"
    numbers: Any = field(default_factory=lambda: count(1))

    def asks(
        self, at: float, api: str, version: int, request: Values, response: Values | None = None,
        took: float = 0.0, topics: Mapping[str, list[int]] | None = None,
    ) -> Exchange:  # fmt: skip
        """The exchange that ends at `at`."""
        return Exchange(
            START + at, "kafka", self.broker, f"{self.host}:{50_000 + self.number}", api, version, self.name,
            "broker", 100, 100, took * 1000, connection_id=self.number, topics=dict(topics or {}),
            request=body(request, api, version, "request"),
            response=None if response is None else body(response, api, version, "response"),
        )  # fmt: skip


class Sheet:
    """What a page has after these exchanges: lanes by name, and marks in order of their beginnings. The
    times of a cut are in seconds.
    """

    def __init__(self, timeline: Timeline, exchanges: Iterable[Exchange | Cut]) -> None:
        self.lanes: dict[tuple[str, str], Lane] = {}
        marks: dict[Any, Mark] = {}
        for number, one in enumerate(exchanges):
            if isinstance(one, Cut):
                items = timeline.cut(Cut(at(one.at), at(one.known)))
            else:
                items = timeline.read(f"k{number}", one)
            for item in items:
                if isinstance(item, Lane):
                    self.lanes[item.group, item.member] = item
                else:
                    assert (item.group, item.member) in self.lanes
                    marks[item.id or ("once", len(marks))] = item
        self.marks = sorted(marks.values(), key=lambda mark: mark.begin)

    def of(self, kind: str) -> list[Mark]:
        return [mark for mark in self.marks if mark.kind == kind]

    def one(self, kind: str) -> Mark:
        (found,) = self.of(kind)
        return found

    def texts(self, kind: str) -> list[str]:
        return [mark.text for mark in self.of(kind)]

    def on(self, member: str, *kinds: str) -> list[str]:
        """The kinds of marks on a lane, by the end of its name; those that are asked for."""
        return [
            mark.kind for mark in self.marks
            if mark.member.endswith(member) and (not kinds or mark.kind in kinds)
        ]  # fmt: skip


def at(seconds: float) -> float:
    return START + seconds


def subscription(*topics: str, rack: str | None = None) -> bytes:
    return encode_payload(
        "ConsumerProtocolSubscription", {"version": 3, "topics": list(topics), "rack_id": rack}
    )


def assignment(**topics: list[int]) -> bytes:
    parts = [{"topic": name, "partitions": numbers} for name, numbers in topics.items()]
    return encode_payload("ConsumerProtocolAssignment", {"version": 3, "assigned_partitions": parts})
