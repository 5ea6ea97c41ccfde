"""A line: bytes for one side of a connection that may not all go at once. They keep their order.

Pure: time is an argument. A connection has no line until a rule needs one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal, NamedTuple

from klamm.rules.orders import FOREVER, How, Shape

FULL = 1 << 20  # if more bytes wait, klamm stops reading from the other side
PIECES = 1024  # the most that one `take` gives; the next gives more
TICK_NS = 20_000_000  # at a limited rate, the longest time between two pieces
SEGMENT = 1448  # bytes of a TCP segment on most networks; one is lost at a time
LOST_IN_A_ROW = 10  # the most losses of one segment

Ending = Literal["eof", "close"]
Draw = Callable[[], float]


class Until(NamedTuple):
    """Later items wait until `until` (monotonic ns)."""

    until: int


class Mould(NamedTuple):
    """Later bytes go out with the traits of this shape."""

    shape: Shape
    draw: Draw


class PausedPlace:
    """The place of a paused frame: later items wait until it is `filled`. `size`: of the frame, bytes."""

    __slots__ = ("filled", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.filled: list[bytes | Until] | None = None


Item = bytes | memoryview | Until | Mould | PausedPlace | How | Ending
Out = bytes | memoryview | How | Ending


class Line:
    """`put` adds an item; `take` gives those that may go now. `size`: bytes that wait."""

    def __init__(self) -> None:
        self.waiting: deque[Item] = deque()
        self.size = 0
        self.clock = 0  # when the last piece was due; a late `take` does not change it
        self.next: tuple[int, int] | None = None  # the size of the next piece, and when it is due
        self.shape: Shape | None = None
        self.draw: Draw = float
        self.last_draw = 0.5
        self.passed = 0  # bytes that went out under `limit_bytes`
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
        """Items that are put from now on go out with the traits of this shape."""
        if self.waiting:
            self.waiting.append(Mould(shape, draw))
        else:
            self._become(shape, draw)

    def mute(self) -> None:
        """Drop all items, and all that are put later."""
        self.waiting.clear()
        self.size, self.muted = 0, True

    def idle(self) -> bool:
        """Does nothing wait, and would an item that is put now go out at once and whole?"""
        return not self.waiting and self.shape is None and not self.muted

    def held(self) -> int:
        """The frames that a rule holds, or a person."""
        return sum(isinstance(item, Until | PausedPlace) for item in self.waiting)

    def stuck(self) -> bool:
        """Are there items that will never go out?"""
        return self.muted or any(isinstance(item, Until) and item.until == FOREVER for item in self.waiting)

    def take(self, now: int) -> tuple[list[Out], int | None]:
        """The items that go now, and the time (ns) to call again; None: when something is put or filled."""
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
        """Set the traits that this shape has; the others stay as an earlier shape set them."""
        if self.shape is None:  # kept: a rule that shapes each frame must not repeat its draws
            self.draw = draw
        said = {trait: value for trait, value in shape._asdict().items() if value}
        self.shape = (self.shape or shape)._replace(**said)

    def _lingers(self, item: How | Ending) -> bool:
        """Is this ending to be passed on later (`close_after_ns`)? Then put a wait before it."""
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
        """Append to `out` the part of an item that may go now. None: all of it; else when to go on."""
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
        """How often the next segment is lost; `loss_correlation` makes each draw like the one before."""
        for count in range(LOST_IN_A_ROW):
            near = shape.loss_correlation
            self.last_draw = near * self.last_draw + (1 - near) * self.draw()
            if self.last_draw >= shape.loss:
                return count
        return LOST_IN_A_ROW


def _size(item: Item) -> int:
    """The bytes of an item."""
    if isinstance(item, PausedPlace):
        return item.size
    return len(item) if isinstance(item, bytes | memoryview) else 0
