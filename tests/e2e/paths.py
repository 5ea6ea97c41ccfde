"""The ways to each endpoint of a cluster, with klamm and without, and one exchanged for the other."""

from collections.abc import Iterator
from struct import Struct
from typing import Any, NamedTuple

from crc32c import crc32c

Address = tuple[str, int]
TOPIC = "led-elsewhere"
LEADER, OTHER = 3, 2
QUORUM = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}


class Paths(NamedTuple):
    """The ways to each endpoint: `direct` and `through` klamm, by (kind, node id); and the topic's id."""

    direct: dict[tuple[str, int], Address]
    through: dict[tuple[str, int], Address]
    topic_id: Any

    def arrows(self, addresses_there: set[Address]) -> str:
        """Addresses and what became of them, for people."""
        names = {address: end for end, address in self.direct.items()}
        ways = sorted((*address, *self.through[names[address]]) for address in addresses_there)
        return ", ".join(f"{host}:{port} -> {own}:{own_port}" for host, port, own, own_port in ways)

    def replace(self, value: Any) -> Any:
        """`value` with every direct address replaced by that through klamm."""
        table = {self.direct[end]: self.through[end] for end in self.direct}
        if isinstance(value, list):
            return [self.replace(item) for item in value]
        if not isinstance(value, dict):
            return value
        replaced = {name: self.replace(item) for name, item in value.items()}
        if address := table.get((value.get("host", ""), value.get("port", -1))):
            replaced["host"], replaced["port"] = address
        return replaced


def addresses(value: Any) -> Iterator[Address]:
    """Every host and port in a decoded body."""
    if isinstance(value, list):
        for item in value:
            yield from addresses(item)
    elif isinstance(value, dict):
        if value.get("host"):
            yield value["host"], value["port"]
        for item in value.values():
            yield from addresses(item)


def drawn_as(passed: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    """`sent` with what KRaft brokers draw anew for each answer (order, controller) as `passed` has it."""

    def place(broker: dict[str, Any]) -> int:
        return order.index((broker["host"], broker["port"]))

    order = list(addresses(passed.get("brokers", [])))
    if sorted(order) != sorted(addresses(sent.get("brokers", []))):
        return sent
    drawn = {"controller_id": passed["controller_id"]} if passed.get("controller_id", -1) > 0 else {}
    return {**sent, **drawn, **({"brokers": sorted(sent["brokers"], key=place)} if order else {})}


def one_record() -> bytes:
    """A batch (magic 2) of one record: no key, b"value", no headers. Small varints are twice their value."""
    record = bytes([11 * 2, 0, 0, 0, 1, 5 * 2, *b"value", 0])
    counted = Struct(">hiqqqhii").pack(0, 0, 1, 1, -1, -1, -1, 1) + record
    return Struct(">qiibI").pack(0, len(counted) + 9, -1, 2, crc32c(counted)) + counted
