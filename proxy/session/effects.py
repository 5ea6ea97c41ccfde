"""Effects: the requests of a session to the edge. Each has a type; one function carries them all out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, assert_never, final

from klamm.decoders.schema import Side
from klamm.proxy.session.line import Draw
from klamm.proxy.session.observing.listeners import Listeners
from klamm.proxy.session.paused import Paused
from klamm.rules.orders import How
from klamm.rules.orders import Shape as Traits

To = Literal["client", "broker"]  # the side that something is sent to
Piece = bytes | memoryview  # that goes on to one side
COPIED = 4096  # bytes; below it, copying costs less than another write


@final
@dataclass(slots=True)
class Send:
    """Write these bytes."""

    to: To
    data: Piece


@final
@dataclass(slots=True)
class Bind:
    """Nodes of the topology have no listening port yet: bind one for each, then call `Session.bound`."""


@final
@dataclass(slots=True)
class Exchange:
    """A request with its response, for the log and for these listeners."""

    fields: dict[str, Any]
    listeners: Listeners


@final
@dataclass(slots=True)
class Event:
    """A line for the log. str() of the message is asked for when the line is written."""

    kind: str
    api: str
    message: Any
    fields: dict[str, Any] | None = None


@final
@dataclass(slots=True)
class Close:
    """Send the bytes that still wait, and with `answered` the answers that are due, then close both sides.
    The fields are a line for the log.
    """

    kind: str
    api: str
    message: str
    fields: dict[str, Any] | None = None
    answered: bool = False


@final
@dataclass(slots=True)
class Hold:
    """Later bytes to this side wait until `until` (monotonic ns)."""

    to: To
    until: int


@final
@dataclass(slots=True)
class Shape:
    """Later bytes to this side go out at the pace, in the slices, with the losses of these traits."""

    to: To
    traits: Traits
    draw: Draw


@final
@dataclass(slots=True)
class MuteChannel:
    """Read no request before `until` (monotonic ns), then call `Session.unmute` (KIP-219)."""

    until: int


@final
@dataclass(slots=True)
class ReadClient:
    """Read from the client (`on`), or stop: too many of its requests wait for answers."""

    on: bool


@final
@dataclass(slots=True)
class Turn:
    """Let other connections have their turn before more bytes from this side are read."""

    side: Side


@final
@dataclass(slots=True)
class Pause:
    """Later bytes to this side wait until `Session.resolve` is called with a decision about this frame."""

    to: To
    frame: Paused


@final
@dataclass(slots=True)
class Keep:
    """A capture keeps the exchange of this request."""

    correlation_id: int


@final
@dataclass(slots=True)
class Silence:
    """Send nothing more to either side, drop their bytes, and close both after so many ns (0: never)."""

    close_after_ns: int


@final
@dataclass(slots=True)
class Cut:
    """Close or reset both sides once all bytes for this one have been sent."""

    to: To
    how: How


Effect = (
    Send | Bind | Exchange | Event | Close | Hold | Shape | MuteChannel | ReadClient | Turn | Pause | Keep
    | Silence | Cut
)  # fmt: skip


class Edge(Protocol):
    """Carries out effects: with sockets and timers, or in a test."""

    def send(self, to: To, data: Piece) -> None: ...
    def bind(self) -> None: ...
    def exchange(self, fields: dict[str, Any], listeners: Listeners) -> None: ...
    def event(self, kind: str, api: str, message: object, fields: dict[str, Any] | None) -> None: ...
    def close(
        self, kind: str, api: str, message: str, fields: dict[str, Any] | None, answered: bool
    ) -> None: ...
    def hold(self, to: To, until: int) -> None: ...
    def shape(self, to: To, traits: Traits, draw: Draw) -> None: ...
    def mute_channel(self, until: int) -> None: ...
    def read_client(self, on: bool) -> None: ...
    def turn(self, side: Side) -> None: ...
    def pause(self, to: To, frame: Paused) -> None: ...
    def keep(self, correlation_id: int) -> None: ...
    def silence(self, close_after_ns: int) -> None: ...
    def cut(self, to: To, how: How) -> None: ...


def carry_out(effects: Iterable[Effect], edge: Edge) -> None:
    """Carry out the effects in their order."""
    for effect in effects:
        match effect:
            case Send(to, data):
                edge.send(to, data)
            case Exchange(fields, listeners):
                edge.exchange(fields, listeners)
            case Event(kind, api, message, more):
                edge.event(kind, api, message, more)
            case Bind():
                edge.bind()
            case Close(kind, api, message, more, answered):
                edge.close(kind, api, message, more, answered)
            case Hold(to, until):
                edge.hold(to, until)
            case Shape(to, traits, draw):
                edge.shape(to, traits, draw)
            case MuteChannel(until):
                edge.mute_channel(until)
            case ReadClient(on):
                edge.read_client(on)
            case Turn(side):
                edge.turn(side)
            case Pause(to, frame):
                edge.pause(to, frame)
            case Keep(correlation_id):
                edge.keep(correlation_id)
            case Silence(close_after_ns):
                edge.silence(close_after_ns)
            case Cut(to, how):
                edge.cut(to, how)
            case _:
                assert_never(effect)


def sends(to: To, pieces: Sequence[Piece | Effect]) -> list[Effect]:
    """Small pieces in one write, large ones in one each; effects keep their place among them."""
    effects: list[Effect] = []
    small: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, bytes | memoryview) and len(piece) < COPIED:
            small.append(piece)
            continue
        if any(small):
            effects.append(Send(to, b"".join(small)))
        small = []
        effects.append(Send(to, piece) if isinstance(piece, bytes | memoryview) else piece)
    if any(small):
        effects.append(Send(to, b"".join(small)))
    return effects


def span(data: bytes, start: int, stop: int) -> bytes:
    """data[start:stop]; where that is all of it, the same object: compiled code would copy it."""
    return data if start == 0 and stop >= len(data) else data[start:stop]


def part(data: bytes, start: int, stop: int) -> Piece:
    """data[start:stop]; a large part is a view of the data, not a copy."""
    return data[start:stop] if stop - start < COPIED else memoryview(data)[start:stop]
