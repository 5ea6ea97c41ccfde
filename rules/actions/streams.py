"""bandwidth, slicer, limit_data, slow_close, packet_loss: how the bytes of a connection flow from a frame
on, or from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from klamm.rules.frame import Frame
from klamm.rules.orders import Direction, Order, Shape
from klamm.rules.quantities import Bytes, Duration, Share
from klamm.rules.rule import Draw

EVERYWHERE: tuple[str, ...] = ("request", "response", "connect")
Directions = Literal["request", "response", "both"]


def shaped(directions: Directions, shape: Shape) -> list[Order]:
    """The same shape for each of the directions; `shape` is that of responses."""
    ways: tuple[Direction, ...] = ("request", "response") if directions == "both" else (directions,)
    return [shape._replace(direction=way) for way in ways]


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """At most so many bytes a second."""

    name: ClassVar[str] = "bandwidth"
    sides: ClassVar[Sequence[str]] = EVERYWHERE

    rate: Bytes
    """Bytes a second."""
    side: Directions = "response"
    """The direction: that of requests, that of responses, or both."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return shaped(self.side, Shape("response", bytes_per_s=self.rate))


@dataclass(frozen=True, slots=True)
class Slicer:
    """Small pieces instead of large ones, with pauses between them."""

    name: ClassVar[str] = "slicer"
    sides: ClassVar[Sequence[str]] = EVERYWHERE

    size: Bytes
    """The average size of a piece."""
    variation: Bytes = Bytes(0)
    """The largest deviation from it."""
    pause: Duration = Duration(0)
    """Between two pieces."""
    side: Directions = "response"
    """The direction: that of requests, that of responses, or both."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return shaped(
            self.side,
            Shape("response", slice_bytes=self.size, slice_spread=self.variation, slice_gap_ns=self.pause),
        )


@dataclass(frozen=True, slots=True)
class LimitData:
    """Close the connection when so much has passed."""

    name: ClassVar[str] = "limit_data"
    sides: ClassVar[Sequence[str]] = EVERYWHERE

    size: Bytes
    """The bytes that pass before the end."""
    side: Directions = "response"
    """The direction: that of requests, that of responses, or both."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return shaped(self.side, Shape("response", limit_bytes=self.size))


@dataclass(frozen=True, slots=True)
class SlowClose:
    """Close an end this much later than the other end closed."""

    name: ClassVar[str] = "slow_close"
    sides: ClassVar[Sequence[str]] = EVERYWHERE

    delay: Duration
    """Between the end and its being told."""
    side: Directions = "response"
    """The direction: that of requests, that of responses, or both."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return shaped(self.side, Shape("response", close_after_ns=self.delay))


@dataclass(frozen=True, slots=True)
class PacketLoss:
    """Segments are lost, and come again after a time-out: TCP delivers them all the same, late."""

    name: ClassVar[str] = "packet_loss"
    sides: ClassVar[Sequence[str]] = EVERYWHERE

    loss: Share
    """The share of segments that are lost."""
    timeout: Duration = Duration(200_000_000)
    """Time until a lost segment is sent again; doubled for each further loss in a row. Linux begins with 200
    ms.
    """
    correlation: Share = Share(0.0)
    """The weight of the previous segment's chance in each chance: losses come in bursts."""
    side: Directions = "response"
    """The direction: that of requests, that of responses, or both."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return shaped(
            self.side,
            Shape("response", loss=self.loss, loss_ns=self.timeout, loss_correlation=self.correlation),
        )
