"""Addresses for the ends of connections: their own where they are known, else made-up ones that nobody uses.

Those are of the networks for documentation (RFC 5737, RFC 3849), then of 127.64.0.0/10.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from itertools import chain
from typing import NamedTuple

from klamm.captures.captured import CapturedConnection
from klamm.captures.packets.packets import End

BROKER_PORT = 9092  # tools take it for Kafka by default
INVENTED = {
    4: ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "127.64.0.0/10"),
    6: ("2001:db8::/32",),
}


class Ends(NamedTuple):
    client: End
    broker: End


class Endpoints:
    """Gives each connection its addresses. `names` holds the made-up ones since it was last emptied."""

    def __init__(self) -> None:
        self.names: dict[IPv4Address | IPv6Address, str] = {}
        self._free = {version: _hosts(networks) for version, networks in INVENTED.items()}
        self._invented: dict[tuple[int, str], IPv4Address | IPv6Address] = {}
        self._open: set[Ends] = set()

    def open(self, connection: CapturedConnection) -> Ends:
        """No other open connection gets the same addresses."""
        client, broker = known(connection.client), known(connection.broker)
        version = (client or broker or End(IPv4Address(0), 0)).address.version
        if broker is None or broker.address.version != version:
            broker = End(self._named(version, broker_name(connection)), BROKER_PORT)
        if client is None:
            client = End(self._named(version, connection.client or "unknown client"), 1024)
        ends = Ends(client, broker)
        while ends in self._open:
            name = f"{connection.client} of {connection.capture} {connection.number}"
            ends = Ends(End(self._named(version, name), client.port), broker)
        self._open.add(ends)
        return ends

    def close(self, ends: Ends) -> None:
        self._open.discard(ends)

    def _named(self, version: int, name: str) -> IPv4Address | IPv6Address:
        found = self._invented.get((version, name))
        if found is None:
            found = self._invented[version, name] = next(self._free[version])
            self.names[found] = name
        return found


def known(text: str) -> End | None:
    """Parses an address and a port, "10.0.0.7:9092" or "[::1]:9092"; None for all else."""
    host, _, port = text.rpartition(":")
    try:
        address = ip_address(host.strip("[]").partition("%")[0])
        number = int(port)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return End(address.ipv4_mapped, number)
    return End(address, number) if 0 <= number <= 0xFFFF else None


def broker_name(connection: CapturedConnection) -> str:
    """A host name for the broker: "broker-2.orders"."""
    label = connection.broker
    host = f"broker-{label}" if label.isdecimal() else label.replace(" ", "-")
    return f"{host}.{connection.cluster}" if connection.cluster else host


def _hosts(networks: tuple[str, ...]) -> Iterator[IPv4Address | IPv6Address]:
    return chain.from_iterable(ip_network(network).hosts() for network in networks)
