"""What goes out on one side of a connection when it may not all go at once: in order, each piece in its time.

Pure: time is an argument. A connection has none until a rule asks for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal, NamedTuple

from klamm.rules.orders import FOREVER, How, Shape

FULL = 1 << 20  # bytes that wait before reading stops on the other side
PIECES = 1024  # at most in one go: what is sliced thinner comes in several
TICK_NS = 20_000_000  # a limited rate is kept in steps of so long
SEGMENT = 1448  # bytes of a TCP segment on most networks: what is lost at once
LOST_IN_A_ROW = 10  # at most

Ending = Literal["eof", "close"]
Draw = Callable[[], float]


class Until(NamedTuple):
    """What follows waits until then (ns)."""

    until: int


class Mould(NamedTuple):
    """What follows flows like this."""

    shape: Shape
    draw: Draw


class PausedPlace:
    """The place of what is not decided yet: what follows waits until it is `filled`. `size`: bytes."""

    __slots__ = ("filled", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.filled: list[bytes | Until] | None = None


Item = bytes | memoryview | Until | Mould | PausedPlace | How | Ending
Out = bytes | memoryview | How | Ending


class Line:
    """`put` what is to go out, `take` what may go now. `size`: bytes that wait."""

    def __init__(self) -> None:
        self.waiting: deque[Item] = deque()
        self.size = 0
        self.clock = 0  # when the last piece went, in its own time
        self.next: tuple[int, int] | None = None  # size of the next piece, and when it is due
        self.shape: Shape | None = None
        self.draw: Draw = float
        self.last_draw = 0.5
        self.passed = 0  # bytes, since their number is limited
        self.closing = False
        self.muted = False

    def put(self, item: Item, now: int) -> None:
        if self.muted:
            return
        if not self.waiting:
            self.clock = max(self.clock, now)
        self.size += _size(item)
        self.waiting.append(item)

    def mould(self, shape: Shape, draw: Draw) -> None:
        """What is put from here on flows like this."""
        if self.waiting:
            self.waiting.append(Mould(shape, draw))
        else:
            self._become(shape, draw)

    def mute(self) -> None:
        """Nothing more goes out."""
        self.waiting.clear()
        self.size, self.muted = 0, True

    def idle(self) -> bool:
        """Nothing waits, and nothing that is put later would be changed, delayed or dropped."""
        return not self.waiting and self.shape is None and not self.muted

    def stuck(self) -> bool:
        """Is there something that will never go out?"""
        return self.muted or any(isinstance(item, Until) and item.until == FOREVER for item in self.waiting)

    def take(self, now: int) -> tuple[list[Out], int | None]:
        """What goes now, and when (ns) to ask again."""
        out: list[Out] = []
        while self.waiting:
            item = self.waiting[0]
            if isinstance(item, Until):
                if item.until > now:
                    return out, None if item.until == FOREVER else item.until
                self.clock = max(self.clock, item.until)
            elif isinstance(item, Mould):
                self._become(*item)
            elif isinstance(item, PausedPlace):
                if item.filled is None:
                    return out, None
                self.waiting.popleft()
                self.waiting.extendleft(reversed(item.filled))
                self.size += sum(map(_size, item.filled)) - item.size
                self.clock = max(self.clock, now)
                continue
            elif isinstance(item, str):
                if self._lingers(item):
                    continue
                out.append(item)
            elif (again := self._pass(item, out, now)) is not None:
                return out, again
            if self.waiting:
                self.waiting.popleft()
        return out, None

    def _become(self, shape: Shape, draw: Draw) -> None:
        """What an earlier shape said and this does not, stays."""
        if self.shape is None:  # a rule that says it of each frame does not draw the same again
            self.draw = draw
        said = {trait: value for trait, value in shape._asdict().items() if value}
        self.shape = (self.shape or shape)._replace(**said)

    def _lingers(self, item: How | Ending) -> bool:
        """Is the end of the other side told later?"""
        if (
            self.closing
            or item not in ("eof", "close")
            or self.shape is None
            or not self.shape.close_after_ns
        ):
            return False
        self.closing = True
        self.waiting.appendleft(Until(self.clock + self.shape.close_after_ns))
        return True

    def _pass(self, item: bytes | memoryview, out: list[Out], now: int) -> int | None:
        """Let go what of this may go: None if that is all of it, else when the rest may."""
        shape = self.shape
        if shape is None:
            self.size -= len(item)
            out.append(item)
            return None
        left = memoryview(item)
        while len(left):
            if self.next is None:
                size, gap = self._piece(len(left), shape)
                self.next = size, self.clock + gap
            size, due = self.next
            if due > now or len(out) >= PIECES:
                self.waiting[0] = left
                return max(due, now)
            self.clock, self.next = due, None
            piece, left = left[:size], left[size:]
            self.size -= size
            out.append(piece)
            if shape.limit_bytes:
                self.passed += size
                if self.passed >= shape.limit_bytes:
                    out.append("fin")
                    self.mute()
                    return None
        return None

    def _piece(self, left: int, shape: Shape) -> tuple[int, int]:
        """(size, ns before it) of the next piece."""
        size, gap = left, 0
        if shape.limit_bytes:
            size = min(size, max(1, shape.limit_bytes - self.passed))
        if shape.bytes_per_s:
            size = min(size, max(1, shape.bytes_per_s * TICK_NS // 1_000_000_000))
        if shape.slice_bytes:
            spread = round((2 * self.draw() - 1) * shape.slice_spread)
            size = min(size, max(1, shape.slice_bytes + spread))
            gap += shape.slice_gap_ns
        if shape.loss:
            size = min(size, SEGMENT)
            gap += sum(shape.loss_ns << nth for nth in range(self._losses(shape)))
        if shape.bytes_per_s:
            gap += size * 1_000_000_000 // shape.bytes_per_s
        return size, gap

    def _losses(self, shape: Shape) -> int:
        """How often the next segment is lost, each time as likely as the time before was."""
        for count in range(LOST_IN_A_ROW):
            near = shape.loss_correlation
            self.last_draw = near * self.last_draw + (1 - near) * self.draw()
            if self.last_draw >= shape.loss:
                return count
        return LOST_IN_A_ROW


def _size(item: Item) -> int:
    """Bytes that wait with it."""
    if isinstance(item, PausedPlace):
        return item.size
    return len(item) if isinstance(item, bytes | memoryview) else 0
