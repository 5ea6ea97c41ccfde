"""drop, blackhole, disconnect, down, and what refuses connections: the ways not to hear an answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from klamm.rules.actions.answers import is_answered
from klamm.rules.frame import Frame
from klamm.rules.orders import Cut, Delay, Drop, How, OnAnswer, Order, Silence
from klamm.rules.quantities import Duration
from klamm.rules.rule import Draw

# Where a connection is cut -> is the request sent, and how much of the answer does the client get
Moment = Literal["before", "after", "answered", "mid frame"]


@dataclass(frozen=True, slots=True)
class Dropping:
    """Never answer this request. The connection's later answers wait behind it, as a client would insist."""

    name: ClassVar[str] = "drop"
    sides: ClassVar[Sequence[str]] = ("request", "response")

    sent: bool = False
    """The broker gets the request all the same."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        if self.sent and frame.side == "request":
            return [OnAnswer(lambda _: [Drop()], needs_request=False)]
        return [Drop()]


@dataclass(frozen=True, slots=True)
class Blackhole:
    """From this frame on the client gets no more answers on its connection, and its requests do not
    arrive.
    """

    name: ClassVar[str] = "blackhole"
    sides: ClassVar[Sequence[str]] = ("request", "response", "connect")

    time: Duration = Duration(0)
    """Time until the connection is closed; 0: it stays open."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [Silence(self.time)]


@dataclass(frozen=True, slots=True)
class Stall:
    """Accept a connection and nothing more: it leads nowhere, and its bytes are not read."""

    name: ClassVar[str] = "stall"
    sides: ClassVar[Sequence[str]] = ("connect",)

    time: Duration = Duration(0)
    """Time until it is closed; 0: it stays open."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [Silence(self.time)]


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Cut the connection at this frame."""

    name: ClassVar[str] = "disconnect"
    sides: ClassVar[Sequence[str]] = ("request", "response", "connect")

    when: Moment = "after"
    """before: the broker does not get the request; after: it does, and its answer is lost; mid frame: half
    of the answer is heard; answered: all of it. A request that gets no answer (acks=0) is sent in the last
    three."""
    how: How = "rst"
    """rst is a reset, fin a close."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        if frame.side == "response":
            return self._cut(frame)
        if self.when == "before":
            return [Cut(self.how)]
        if is_answered(frame):
            return [OnAnswer(self._cut, needs_request=False)]
        return [Cut(self.how, None)]

    def _cut(self, answer: Frame) -> list[Order]:
        sent = {"mid frame": 4 + len(answer.body) // 2, "answered": None}.get(self.when, 0)
        return [Cut(self.how, sent)]


@dataclass(frozen=True, slots=True)
class Reset:
    """Reset a new connection, at once or later. Until then its client gets no answer."""

    name: ClassVar[str] = "reset"
    sides: ClassVar[Sequence[str]] = ("connect",)

    time: Duration = Duration(0)
    """Time until the reset."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [Delay(self.time), Cut("rst")] if self.time else [Cut("rst")]


@dataclass(frozen=True, slots=True)
class Refuse:
    """Let no connection open: to the client the broker is not there."""

    name: ClassVar[str] = "refuse"
    sides: ClassVar[Sequence[str]] = ("connect",)

    how: How = "rst"
    """rst is a reset, fin a close."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [Cut(self.how)]


@dataclass(frozen=True, slots=True)
class Down:
    """The broker is not there: with `event: connect`, connections are refused; with frames, those that are
    open are cut when they say anything.
    """

    name: ClassVar[str] = "down"
    sides: ClassVar[Sequence[str]] = ("request", "connect")

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [Cut("rst")]
