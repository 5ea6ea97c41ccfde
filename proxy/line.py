"""What goes out on one side of a connection when it may not all go at once: in order, each piece in its time.

Pure: time is an argument. A connection has none until a rule asks for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal, NamedTuple

from klamm.rules.verdict import FOREVER, How, Shape

FULL = 1 << 20  # bytes that wait before reading stops on the other side
TICK_NS = 20_000_000  # a limited rate is kept in steps of so long
SEGMENT = 1448  # bytes of a TCP segment on most networks: what is lost at once

End = Literal["eof", "close"]
Draw = Callable[[], float]


class Hold(NamedTuple):
    """What follows waits until then (ns)."""

    until: int


class Gap(NamedTuple):
    """What follows goes so much later (ns) than what came before it."""

    ns: int


Item = bytes | memoryview | Hold | Gap | How | End


class Line:
    """`put` what is to go out, `take` what may go now. `size`: bytes that wait."""

    def __init__(self) -> None:
        self.waiting: deque[Item] = deque()
        self.size = 0
        self.clock = 0  # when the last piece went, in its own time
        self.shape: Shape | None = None
        self.draw: Draw = float
        self.passed = 0
        self.lost_in_a_row = 0
        self.muted = False

    def put(self, item: Item, now: int) -> None:
        if self.muted:
            return
        if not isinstance(item, bytes | memoryview):
            if self.shape is not None and self.shape.close_after_ns and item in ("eof", "close"):
                self.waiting.append(Gap(self.shape.close_after_ns))
            self.waiting.append(item)
            return
        if not self.waiting:
            self.clock = max(self.clock, now)
        if self.shape is None:
            self.waiting.append(item)
        else:
            item = self._shaped(item, self.shape)
        self.size += len(item)

    def mould(self, shape: Shape, draw: Draw) -> None:
        """From here on the bytes flow like this; what an earlier shape said and this does not, stays."""
        said = {trait: value for trait, value in shape._asdict().items() if value}
        self.shape = (self.shape or shape)._replace(**said)
        self.draw = draw

    def mute(self) -> None:
        """Nothing more goes out."""
        self.waiting.clear()
        self.size, self.muted = 0, True

    def stuck(self) -> bool:
        """Is there something that will never go out?"""
        return self.muted or any(isinstance(item, Hold) and item.until == FOREVER for item in self.waiting)

    def idle(self) -> bool:
        return not self.waiting and self.shape is None and not self.muted

    def take(self, now: int) -> tuple[list[bytes | memoryview | How | End], int | None]:
        """What goes now, and when (ns) to ask again."""
        out: list[bytes | memoryview | How | End] = []
        while self.waiting:
            item = self.waiting[0]
            if isinstance(item, Gap):
                self.clock = max(self.clock, 0) + item.ns
                self.waiting[0] = Hold(self.clock)
                continue
            if isinstance(item, Hold):
                if item.until > now:
                    return out, None if item.until == FOREVER else item.until
                self.clock = max(self.clock, item.until)
            else:
                if not isinstance(item, str):
                    self.size -= len(item)
                out.append(item)
            self.waiting.popleft()
        return out, None

    def _shaped(self, data: bytes | memoryview, shape: Shape) -> bytes | memoryview:
        """Queue data in pieces with gaps between them; what of it is within the limit."""
        cut = False
        if shape.limit_bytes:
            room = shape.limit_bytes - self.passed
            cut = len(data) >= room
            data = data[: max(0, room)]
        self.passed += len(data)
        pos = 0
        while pos < len(data):
            size, gap = self._next(len(data) - pos, shape)
            if gap:
                self.waiting.append(Gap(gap))
            self.waiting.append(data[pos : pos + size])
            pos += size
        if cut:
            self.waiting.append("fin")
        return data

    def _next(self, left: int, shape: Shape) -> tuple[int, int]:
        """(size, ns before it) of the next piece."""
        size, gap = left, 0
        if shape.bytes_per_s:
            size = min(size, max(1, shape.bytes_per_s * TICK_NS // 1_000_000_000))
        if shape.slice_bytes:
            spread = round((2 * self.draw() - 1) * shape.slice_spread)
            size = min(size, max(1, shape.slice_bytes + spread))
            gap += shape.slice_gap_ns
        if shape.loss:
            size = min(size, SEGMENT)
            while self.draw() < shape.loss and self.lost_in_a_row < 10:
                gap += shape.loss_ns << self.lost_in_a_row
                self.lost_in_a_row += 1
            self.lost_in_a_row = 0
        if shape.bytes_per_s:
            gap += size * 1_000_000_000 // shape.bytes_per_s
        return size, gap
