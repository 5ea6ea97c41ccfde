"""Writes a capture as packets for Wireshark and similar tools: the bytes of the connections in made-up TCP.

Of a frame whose content was not kept there is the header, as far as the capture tells it, in packets that are
cut short as those of a capture with a snapshot length are.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from klamm.captures.captured import Captured, CapturedConnection
from klamm.captures.packets.endpoints import Endpoints, Ends
from klamm.captures.packets.packets import Packet, TcpConnection
from klamm.captures.packets.pcapng_blocks import interface, names, packet, section
from klamm.decoders import API
from klamm.decoders.headers import REQUEST, request_header_version
from klamm.decoders.schema import Side

SIZE, RESPONSE, TEXT = Struct(">i"), Struct(">ii"), Struct(">h")
SIDES: tuple[Side, ...] = ("request", "response")
ABOUT = """\
Exported by klamm from a capture of its own. Frames and times are as they were, and so are addresses where \
they were known. The packets around them are made up, and so are addresses in 192.0.2.0/24, 198.51.100.0/24, \
203.0.113.0/24, 127.64.0.0/10 and 2001:db8::/32: they stand for the brokers after which they are named. What \
is secret is zeros, as records are unless they were kept; frames that were not kept are cut short."""
FATES = {
    "rewritten": "klamm sent other bytes than it got",
    "withheld": "klamm did not send this on",
    "made": "klamm said this itself",
}


class _Speaking(NamedTuple):
    """A connection that is open."""

    talk: TcpConnection
    ends: Ends
    interface: int


class Packets:
    """The packets of one file. `ports` are those of brokers."""

    def __init__(self) -> None:
        self.frames = 0
        self.ports: set[int] = set()
        self.endpoints = Endpoints()
        self.speaking: dict[CapturedConnection, _Speaking] = {}
        self.interfaces: dict[tuple[str, str], int] = {}
        self.comments: dict[
            CapturedConnection | None, list[str]
        ] = {}  # comments of the next packet, there or anywhere

    def head(self, application: str) -> bytes:
        """The first bytes of the file."""
        return section(application, ABOUT)

    def blocks(self, row: Captured) -> Iterator[bytes]:
        """The blocks of one row; rows come in the order of time."""
        if remark := _remark(row):
            self.comments.setdefault(row.connection, []).append(remark)
        if row.connection is None:
            return
        if row.connection not in self.speaking:
            yield from self._begin(row.connection)
        one = self.speaking[row.connection]
        for data, size in _packets(row, one.talk):
            yield packet(one.interface, row.time_ns, data, size, self._comment(row.connection))
        self.frames += row.kind == "frame"
        if row.kind == "closed":
            del self.speaking[row.connection]
            self.endpoints.close(one.ends)

    def _begin(self, connection: CapturedConnection) -> Iterator[bytes]:
        key = connection.capture, connection.cluster
        if key not in self.interfaces:
            self.interfaces[key] = len(self.interfaces)
            yield interface(connection.cluster or "klamm", f"capture {connection.capture}")
        ends = self.endpoints.open(connection)
        if self.endpoints.names:
            yield names(self.endpoints.names)
            self.endpoints.names.clear()
        self.ports.add(ends.broker.port)
        first = crc32(repr(connection).encode())
        self.speaking[connection] = _Speaking(TcpConnection(*ends, first), ends, self.interfaces[key])

    def _comment(self, connection: CapturedConnection) -> str:
        if not self.comments:
            return ""
        comments = self.comments.pop(None, []) + self.comments.pop(connection, [])
        return "\n".join(f"klamm: {words}" for words in comments)


def _remark(row: Captured) -> str:
    """A comment for a row, of the facts that the packet cannot show."""
    if row.kind == "lost":
        whose = "" if row.connection is None else " of this connection"
        return f"{row.lost} frames{whose} are missing before this: {row.text or 'not captured'}"
    return row.text or FATES.get(row.fate, "")


def _packets(row: Captured, talk: TcpConnection) -> Iterator[Packet]:
    if row.kind == "opened":
        if not row.text:  # else its beginning was not seen
            yield from talk.opened()
    elif row.kind == "closed":
        yield from talk.closed("response" if "broker" in row.text else "request", "reset" in row.text)
    elif row.kind == "lost":
        for side in SIDES if row.side is None else (row.side,):
            talk.missed(side, row.size or max(row.lost, 1))  # 0: nobody knows how many bytes
    elif row.side is not None:
        yield from talk.sent(row.side, _known(row), SIZE.size + row.size)


def _known(row: Captured) -> bytes:
    """The frame and its size, or its first bytes. A token has none: zeros could pass for a request."""
    if row.kind == "token":
        return SIZE.pack(row.size)
    return _header(row) if row.frame is None else SIZE.pack(row.size) + row.frame


def _header(row: Captured) -> bytes:
    """The first bytes of a frame that was not kept."""
    if row.side == "response":
        return RESPONSE.pack(row.size, row.correlation_id)
    start = REQUEST.pack(row.size, row.api_key, row.api_version, row.correlation_id)
    api = API.get(row.api_key)
    if api is None or request_header_version(api, row.api_version) == 0:
        return start
    if row.client_id is None:
        return start + TEXT.pack(-1)
    name = row.client_id.encode("utf-8", "surrogateescape")
    return start + TEXT.pack(len(name)) + name
