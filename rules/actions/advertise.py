"""clamp, hide, stale_metadata: clients hear less of the brokers than there is, or what is no longer so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from klamm.decoders import API
from klamm.decoders.headers import refuses_version
from klamm.decoders.schema import Versions
from klamm.rules.frame import Frame
from klamm.rules.orders import Edit, OnAnswer, Order
from klamm.rules.quantities import ApiName
from klamm.rules.rule import Draw

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Clamp:
    """Advertise fewer versions of an API, to connections that open from now on. A range that the broker does
    not have leaves the API out.
    """

    name: ClassVar[str] = "clamp"
    sides: ClassVar[Sequence[str]] = ("request",)
    apis: ClassVar[Sequence[str]] = ("ApiVersions",)

    api: ApiName
    """The API."""
    versions: Versions
    """The highest range that is offered, such as 0-8."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [OnAnswer(lambda answer: advertised(answer, API[self.api].key, self.versions))]


@dataclass(frozen=True, slots=True)
class Hide:
    """Do not offer an API: to the client the broker does not have it."""

    name: ClassVar[str] = "hide"
    sides: ClassVar[Sequence[str]] = ("request",)
    apis: ClassVar[Sequence[str]] = ("ApiVersions",)

    api: ApiName
    """The API."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [OnAnswer(lambda answer: advertised(answer, API[self.api].key, Versions(0, -1)))]


def advertised(answer: Frame, key: int, most: Versions) -> list[Order]:
    """An ApiVersions answer with at most these versions of one API."""
    if refuses_version(answer.body):  # in the layout of version 0, for a version that nobody knows
        return []
    rows: list[Values] = []
    for row in answer.values["api_keys"]:
        if row["api_key"] == key:
            first, last = max(row["min_version"], most.first), min(row["max_version"], most.last)
            if first > last:
                continue
            row = {**row, "min_version": first, "max_version": last}
        rows.append(row)
    return [Edit({**answer.values, "api_keys": rows})]


@dataclass(frozen=True, slots=True)
class StaleMetadata:
    """Metadata that is out of date: leaders that no longer lead, under their current epoch, so that clients
    believe it; or brokers and topics that are missing.
    """

    name: ClassVar[str] = "stale_metadata"
    sides: ClassVar[Sequence[str]] = ("request",)
    apis: ClassVar[Sequence[str]] = ("Metadata",)

    leaders: bool | None = None
    """Each partition's former leader; where klamm has seen none, another of its replicas. By default where
    nothing is missing."""
    missing_brokers: tuple[int, ...] = ()
    """Node ids that are left out."""
    missing_topics: tuple[str, ...] = ()
    """Topics that are left out."""
    seen: dict[tuple[Any, int], list[int]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        only = frame.only

        def stale(answer: Frame) -> list[Order]:
            values = answer.values
            brokers = [row for row in values["brokers"] if row["node_id"] not in self.missing_brokers]
            topics = [
                topic if only is not None and not only({"topic": topic["name"]}) else self._stale(topic)
                for topic in values["topics"]
                if topic["name"] not in self.missing_topics
            ]
            return [Edit({**values, "brokers": brokers, "topics": topics})]

        return [OnAnswer(stale)]

    def _stale(self, topic: Values) -> Values:
        missing = self.missing_brokers or self.missing_topics
        if not (not missing if self.leaders is None else self.leaders):
            return topic
        return {**topic, "partitions": [self._led(topic["name"], row) for row in topic["partitions"]]}

    def _led(self, topic: Any, row: Values) -> Values:
        """The partition under a leader that it no longer has, or never had."""
        seen, leader = self.seen.setdefault((topic, row["partition_index"]), []), row["leader_id"]
        if not seen or seen[-1] != leader:
            seen[:] = [*seen[-1:], leader]
        others = [*seen[:-1], *(node for node in row["replica_nodes"] if node != leader)]
        return {**row, "leader_id": others[0]} if others and leader >= 0 else row
