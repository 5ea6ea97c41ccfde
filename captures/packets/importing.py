"""Turns packets into rows of a capture: segments into connections, and connections of Kafka into rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from klamm.captures.captured import ENDED_BY_BROKER, ENDED_BY_CLIENT, Captured, CapturedConnection
from klamm.captures.packets.layers import PORTS, Unread
from klamm.captures.packets.packet_files import Packet
from klamm.captures.packets.recognising import Guess, Kind
from klamm.captures.packets.tcp import UNKNOWN, Assembly, Piece
from klamm.captures.packets.tcp_segments import Segment, backward, endpoints, segment
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.connection_reader import ConnectionReader
from klamm.decoders.framing import TLS_RECORD
from klamm.decoders.schema import Side

SIZE = 4  # bytes of the size field, which frames are kept without
ROWS = 512  # that are written at once
FIRST_NS, LAST_NS = 0, 9_223_372_036 * 10**9  # 1970 to 2262: the times that a capture can hold
FORGOTTEN_NS = 120_000_000_000  # after its end, nothing comes of a connection
SWEEP = 10_000  # new connections between two times of forgetting
ENDED = tuple(zip(ENDED_BY_CLIENT, ENDED_BY_BROKER, strict=True))  # closed and reset, by client and broker
ASKS: Side = "request"
ANSWERS: Side = "response"


class Hole(NamedTuple):
    """Bytes of a Kafka connection that no packet has; `missing` -1: nobody knows how many."""

    time_ns: int  # since 1970
    client: str
    broker: str
    side: Side
    missing: int


@dataclass
class Found:
    """Counts of the packets so far. Requests and responses are counted by their API key; responses whose
    request was not seen have none.
    """

    packets: int = 0
    moved_times: int = 0  # packets with a time that a capture cannot hold: they have the nearest that it can
    first_ns: int = 0
    last_ns: int = 0
    connections: Counter[Kind] = field(default_factory=Counter)
    mid_stream: int = 0  # of those of Kafka: they began before the packets do
    decrypted: int = 0  # of those of Kafka: they are in TLS
    not_read: Counter[tuple[Kind, str]] = field(default_factory=Counter)  # connections, by their server
    unread: Counter[Unread] = field(default_factory=Counter)  # packets without a segment of TCP
    requests: Counter[int] = field(default_factory=Counter)
    responses: Counter[int] = field(default_factory=Counter)
    without_request: int = 0  # responses
    without_request_bytes: int = 0
    holes: list[Hole] = field(default_factory=list)
    cut_packets: int = 0  # of which the capture kept only the beginning
    cut_bytes: int = 0
    repeated_bytes: int = 0

    @property
    def whole(self) -> bool:
        """Whether no bytes of Kafka are missing."""
        return not self.holes and not self.cut_packets


class _TcpConnection:
    """One TCP connection. `kind` None: it is not known yet whether it is Kafka, and its pieces wait."""

    __slots__ = (
        "assembly",
        "client",
        "ended_ns",
        "first_ns",
        "flow",
        "guess",
        "inside",
        "kind",
        "reader",
        "waiting",
    )  # fmt: skip

    def __init__(self, flow: bytes, first_ns: int, assembly: Assembly) -> None:
        self.flow, self.first_ns, self.assembly = flow, first_ns, assembly
        self.ended_ns = 0
        self.inside: _TcpConnection | None = None  # the decrypted connection
        self.guess: Guess | None = None
        self.waiting: list[Piece] = []
        self.kind: Kind | None = None
        self.client = 0
        self.reader: ConnectionReader | None = None

    def ends(self) -> tuple[str, str]:
        """Client and broker, as far as they are known; else the end with the lower port is the broker."""
        ends = endpoints(self.flow)
        client = self.client if self.kind == "Kafka" else self.assembly.client
        if client is None:
            source, target = PORTS.unpack(self.flow[-4:])
            client = int(source < target)
        return (ends[0], ends[1]) if client == 0 else (ends[1], ends[0])


class Import:
    """`ports` are those of brokers; without any, each connection may be Kafka. `write` takes rows as they
    come.
    """

    def __init__(
        self,
        capture: str,
        keeping: Keeping,
        write: Callable[[list[Captured]], None],
        ports: Collection[int] = (),
    ) -> None:
        self.capture, self.keeping, self.ports = capture, keeping, frozenset(ports)
        self.found = Found()
        self._write = write
        self._rows: list[Captured] = []
        self._talks: dict[bytes, tuple[_TcpConnection, int]] = {}
        self._until_sweep = SWEEP
        self._number = 0  # of the last connection of Kafka

    def take(self, packet: Packet, plain: bytes = b"") -> None:
        """Takes the next packet; `plain` are the bytes that were decrypted of it."""
        found = self.found
        found.packets += 1
        if not FIRST_NS <= packet.time_ns <= LAST_NS:
            found.moved_times += 1
            packet = packet._replace(time_ns=max(FIRST_NS, min(packet.time_ns, LAST_NS)))
        found.first_ns = found.first_ns or packet.time_ns
        found.last_ns = max(found.last_ns, packet.time_ns)
        one = segment(packet)
        if isinstance(one, Unread):
            found.unread[one] += 1
            return
        talk, way = self._talks.get(one.flow) or self._begin(one)
        assembly = talk.assembly
        if assembly.is_another(way, one):
            self._end(talk, "another connection took its port")
            talk, way = self._begin(one)
            assembly = talk.assembly
        if assembly.ended is not None:
            return
        for piece in assembly.take(way, one):
            self._hear(talk, piece)
        if plain:
            self._hear_inside(talk, Piece(way, plain, one.time_ns))
        if assembly.ended is not None:
            how, who = assembly.ended
            self._end(talk, ENDED[how == "reset"][who != self._client(talk)])

    def end(self) -> None:
        """There are no more packets."""
        for talk in {id(talk): talk for talk, _ in self._talks.values()}.values():
            self._end(talk, "the packets end")
        self._talks.clear()
        self._flush()

    def _begin(self, first: Segment) -> tuple[_TcpConnection, int]:
        self._until_sweep -= 1
        if self._until_sweep <= 0:
            self._until_sweep = SWEEP
            long_ago = first.time_ns - FORGOTTEN_NS
            known = self._talks.items()
            self._talks = {flow: found for flow, found in known if not 0 < found[0].ended_ns < long_ago}
        talk = _TcpConnection(first.flow, first.time_ns, Assembly())
        self._talks[backward(first.flow)] = talk, 1
        self._talks[first.flow] = talk, 0
        return talk, 0

    def _hear(self, talk: _TcpConnection, piece: Piece) -> None:
        if talk.reader is not None:
            self._say(talk, talk.reader, piece)
        elif talk.kind is None:
            self._guess(talk, piece)
        elif talk.inside is not None and piece.missing:
            self._hear(talk.inside, piece._replace(missing=UNKNOWN))

    def _hear_inside(self, talk: _TcpConnection, piece: Piece) -> None:
        if talk.inside is None:
            talk.inside = _TcpConnection(talk.flow, talk.first_ns, talk.assembly)
        self._hear(talk.inside, piece)

    def _guess(self, talk: _TcpConnection, piece: Piece) -> None:
        talk.waiting.append(piece)
        if self.ports:
            source, target = PORTS.unpack(talk.flow[-4:])
            if source not in self.ports and target not in self.ports:
                self._is(talk, "other")
            elif piece.data:
                talk.client = int(target not in self.ports)
                self._is(talk, "TLS" if TLS_RECORD.match(piece.data) else "Kafka")
            return
        if talk.guess is None:
            talk.guess = Guess(talk.assembly.client if talk.assembly.began else None)
        kind = talk.guess.hear(piece.way, piece.data) if piece.data else talk.guess.miss()
        if kind is not None:
            self._is(talk, kind)

    def _is(self, talk: _TcpConnection, kind: Kind) -> None:
        waiting, talk.waiting, talk.kind = talk.waiting, [], kind
        began = talk.assembly.began
        if talk.guess is not None and talk.guess.client is not None:
            talk.client = talk.guess.client
        talk.guess = None
        if kind != "Kafka":
            return
        client, broker = talk.ends()
        self._number += 1
        connection = CapturedConnection(self.capture, self._number, "", broker, client)
        self.found.mid_stream += not began
        text = "" if began else "it was there when the capture began"
        self._put([Captured(talk.first_ns, "opened", connection, text=text)])
        reader = talk.reader = ConnectionReader(connection, self.keeping, mid_stream=not began)
        for piece in waiting:
            self._say(talk, reader, piece)

    def _say(self, talk: _TcpConnection, reader: ConnectionReader, piece: Piece) -> None:
        side = ASKS if piece.way == talk.client else ANSWERS
        if piece.data:
            self._put(reader.feed(side, piece.data, piece.time_ns))
            return
        if piece.cut:
            self.found.cut_packets += 1
            self.found.cut_bytes += piece.missing
        else:
            of = reader.connection
            self.found.holes.append(Hole(piece.time_ns, of.client, of.broker, side, piece.missing))
        missing = None if piece.missing == UNKNOWN else piece.missing
        self._put(reader.gap(side, missing, piece.time_ns))

    def _end(self, talk: _TcpConnection, why: str) -> None:
        if talk.ended_ns:
            return
        talk.ended_ns = max(self.found.last_ns, 1)
        for piece in talk.assembly.rest():
            self._hear(talk, piece)
        self.found.repeated_bytes += talk.assembly.repeated
        kind = self._close(talk, why)
        if talk.inside is not None and self._close(talk.inside, why) == "Kafka":
            kind = "Kafka"
            self.found.decrypted += 1
        self.found.connections[kind] += 1
        if kind != "Kafka":
            self.found.not_read[kind, talk.ends()[1]] += 1
        talk.inside = None

    def _close(self, talk: _TcpConnection, why: str) -> Kind:
        if talk.kind is None:
            self._is(talk, talk.guess.end() if talk.guess is not None else "other")
        if talk.reader is not None:
            self._put(talk.reader.end(max(talk.assembly.time_ns, talk.first_ns), why))
            talk.reader = None
        assert talk.kind is not None
        return talk.kind

    def _client(self, talk: _TcpConnection) -> int:
        return talk.client if talk.kind == "Kafka" or talk.assembly.client is None else talk.assembly.client

    def _put(self, rows: list[Captured]) -> None:
        for row in rows:
            if row.kind == "frame":
                self._count(row)
        self._rows += rows
        if len(self._rows) >= ROWS:
            self._flush()

    def _count(self, frame: Captured) -> None:
        found = self.found
        if frame.side == "request":
            found.requests[frame.api_key] += 1
        elif frame.exchange >= 0:
            found.responses[frame.api_key] += 1
        else:
            found.without_request += 1
            found.without_request_bytes += SIZE + frame.size

    def _flush(self) -> None:
        if self._rows:
            self._write(self._rows)
            self._rows = []
