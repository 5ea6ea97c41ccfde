"""drop, blackhole, disconnect, down, and what refuses connections: the ways not to hear an answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from klamm.rules.frame import Frame
from klamm.rules.rule import Draw
from klamm.rules.verdict import Cut, Drop, How, Mute, OnAnswer, Order

# Where a connection is cut -> is the request sent, and how much of the answer is heard
Moment = Literal["before", "after", "answered", "mid frame"]


@dataclass(frozen=True, slots=True)
class Dropping:
    """Never answer this request. The connection's later answers wait behind it, as a client would insist."""

    name: ClassVar[str] = "drop"
    sides: ClassVar[Sequence[str]] = ("request", "response")

    drop: bool = True
    """true."""
    sent: bool = False
    """The broker gets the request all the same."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [OnAnswer(lambda _: [Drop()])] if self.sent and frame.side == "request" else [Drop()]


@dataclass(frozen=True, slots=True)
class Blackhole:
    """From this frame on the client hears nothing more on its connection, and nothing it says arrives."""

    name: ClassVar[str] = "blackhole"
    sides: ClassVar[Sequence[str]] = ("request", "response", "connect")

    blackhole: bool = True
    """true."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [Mute()]


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Cut the connection at this frame."""

    name: ClassVar[str] = "disconnect"
    sides: ClassVar[Sequence[str]] = ("request", "response", "connect")

    when: Moment = "after"
    """before: the broker does not get the request; after: it does, and its answer is lost; mid frame: half
    of the answer is heard; answered: all of it."""
    how: How = "rst"
    """rst is a reset, fin a close."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        if frame.side == "request" and self.when != "before":
            return [OnAnswer(self._cut)]
        return self._cut(frame) if frame.side == "response" else [Cut(self.how)]

    def _cut(self, answer: Frame) -> list[Order]:
        sent = {"mid frame": 4 + len(answer.body) // 2, "answered": None}.get(self.when, 0)
        return [Cut(self.how, sent)]


@dataclass(frozen=True, slots=True)
class Down:
    """The broker is not there: new connections are refused, and old ones cut when they say anything."""

    name: ClassVar[str] = "down"
    sides: ClassVar[Sequence[str]] = ("request", "connect")

    down: bool = True
    """true."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [Cut("rst")]
