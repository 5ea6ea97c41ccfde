"""bandwidth, slicer, limit_data, slow_close, packet_loss: how the bytes of a connection flow from a frame
on, or from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from klamm.rules.frame import Frame
from klamm.rules.quantities import Bytes, Duration, Share
from klamm.rules.rule import Draw
from klamm.rules.verdict import Direction, Order, Shape

EVERYWHERE: tuple[str, ...] = ("request", "response", "connect")


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """At most so many bytes a second."""

    name: ClassVar[str] = "bandwidth"
    sides: ClassVar[Sequence[str]] = EVERYWHERE

    rate: Bytes
    """Bytes a second."""
    side: Direction = "response"
    """Which of the two directions."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [Shape(self.side, bytes_per_s=self.rate)]


@dataclass(frozen=True, slots=True)
class Slicer:
    """Small pieces instead of large ones, with pauses between them."""

    name: ClassVar[str] = "slicer"
    sides: ClassVar[Sequence[str]] = EVERYWHERE

    size: Bytes
    """Of a piece, on average."""
    variation: Bytes = Bytes(0)
    """At most so much more or less."""
    pause: Duration = Duration(0)
    """Between two pieces."""
    side: Direction = "response"
    """Which of the two directions."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [Shape(self.side, slice_bytes=self.size, slice_spread=self.variation, slice_gap_ns=self.pause)]


@dataclass(frozen=True, slots=True)
class LimitData:
    """Close the connection when so much has passed."""

    name: ClassVar[str] = "limit_data"
    sides: ClassVar[Sequence[str]] = EVERYWHERE

    size: Bytes
    """Of what passes before the end."""
    side: Direction = "response"
    """Which of the two directions."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [Shape(self.side, limit_bytes=self.size)]


@dataclass(frozen=True, slots=True)
class SlowClose:
    """An end that closes is told of so much later."""

    name: ClassVar[str] = "slow_close"
    sides: ClassVar[Sequence[str]] = EVERYWHERE

    delay: Duration
    """Between the end and its being told."""
    side: Direction = "response"
    """Which of the two directions."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [Shape(self.side, close_after_ns=self.delay)]


@dataclass(frozen=True, slots=True)
class PacketLoss:
    """Segments are lost, and come again after a time-out: TCP delivers them all the same, late."""

    name: ClassVar[str] = "packet_loss"
    sides: ClassVar[Sequence[str]] = EVERYWHERE

    loss: Share
    """The share of segments that are lost."""
    timeout: Duration = Duration(200_000_000)
    """Until a lost one is sent again; doubled for each further loss in a row. Linux begins with 200 ms."""
    side: Direction = "response"
    """Which of the two directions."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [Shape(self.side, loss=self.loss, loss_ns=self.timeout)]
