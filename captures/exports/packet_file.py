"""A file of packets for Wireshark and tshark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from klamm.captures.captured import Captured
from klamm.captures.exports.exporting import SeenBy, seen_by
from klamm.captures.packets.endpoints import BROKER_PORT
from klamm.captures.packets.pcapng import Packets

MANY = 5  # ports that are named


class PacketFile:
    """The blocks of one file. `bodies` False: frames are cut off behind their headers."""

    def __init__(self, application: str, who: SeenBy = "client", bodies: bool = True) -> None:
        self._application, self._who, self._bodies = application, who, bodies
        self._packets = Packets()

    @property
    def frames(self) -> int:
        return self._packets.frames

    def blocks(self, rows: Iterable[Captured]) -> Iterator[bytes]:
        """All of the file. Rows come in the order of time."""
        yield self._packets.head(self._application)
        for row in seen_by(self._who, rows):
            yield from self._packets.blocks(row if self._bodies else row._replace(frame=None))

    def hint(self) -> str:
        """The option that tshark needs for ports that are not Kafka's; empty without such."""
        odd = [f"-d tcp.port=={port},kafka" for port in sorted(self._packets.ports - {BROKER_PORT})]
        return f"tshark and Wireshark need {' '.join(odd[:MANY])}" if odd else ""
