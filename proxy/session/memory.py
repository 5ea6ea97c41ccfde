"""What a connection remembers of frames, by API version: while the same bytes come again, nothing is read.

Frames of one length that follow each other are compared at once, with one Struct. Every byte that the memory
speaks of is still compared, in each frame.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, NamedTuple

from klamm.decoders.framing import SIZE
from klamm.proxy.session.counters import RequestCounters
from klamm.proxy.session.summaries import EMPTY, NO_ERRORS, RequestSummary, ResponseSummary
from klamm.rules.plan import Plan

NO_LENGTH = 2**31  # longer than any frame: matches none
FEWEST = 4  # equal frames in a read, below which comparing them one by one is as fast
MOST = 64  # frames at once: a Struct is kept for each number of them

Form = tuple[Callable[[bytes | memoryview], tuple[Any, ...]], list[tuple[int, tuple[bytes, ...]]]]


class ResponsePattern(NamedTuple):
    """A response that matches is known without being read: its length, and its bytes at three offsets
    from the correlation id on, between which only values of a fixed size, or records, may differ. `summary`
    is what such a response says.
    """

    least: int
    most: int
    first: bytes
    second: bytes
    second_at: int
    third: bytes
    third_at: int
    summary: ResponseSummary


NO_PATTERN = ResponsePattern(NO_LENGTH, NO_LENGTH, b"", b"", 0, b"", 0, NO_ERRORS)


class EqualFrames:
    """Frames of `stride` bytes, their size field included, that begin with `head`, go on with a correlation
    id, and have these constants at these offsets. They hold for as long as `steady` is what the memory
    remembers.
    """

    __slots__ = ("constants", "forms", "steady", "stride")

    def __init__(
        self,
        stride: int,
        steady: bytes | ResponsePattern,
        head: bytes,
        constants: tuple[tuple[int, bytes], ...],
    ) -> None:
        self.stride, self.steady = stride, steady
        self.constants = ((0, head), *((at, what) for at, what in constants if what))
        self.forms: dict[int, Form] = {}

    def ids(self, data: bytes | memoryview, count: int) -> tuple[int, ...] | None:
        """The correlation ids of the `count` frames in `data`; None if they are not equal."""
        unpack, columns = self.forms.get(count) or self._form(count)
        values, width = unpack(data), len(columns) + 1
        for at, expected in columns:
            if values[at::width] != expected:
                return None
        return values[1::width]

    def _form(self, count: int) -> Form:
        (_, head), *rest = self.constants
        frame, end = f"{len(head)}si", len(head) + 4
        for at, what in rest:
            frame += f"{at - end}x{len(what)}s"
            end = at + len(what)
        unpack = Struct(">" + f"{frame}{self.stride - end}x" * count).unpack
        columns = [(number, (what,) * count) for number, (_, what) in enumerate(rest, 2)]
        form = self.forms[count] = (unpack, [(0, (head,) * count), *columns])
        return form


class ApiMemory:
    """One API version on one connection: where it is counted, and what the last frames said.

    `prefix` are the bytes from a request's client id to the last field read of it, and `summary` what they
    mean:
    while they come again nothing is parsed. `least` is the shortest frame that can hold them. `before` is
    what was remembered before that: clients take turns between two topics. `answer` is the same for
    responses.
    """

    __slots__ = (
        "answer",
        "answer_columns",
        "answer_length",
        "before",
        "concerns",
        "counters",
        "equal",
        "equal_answers",
        "header",
        "held",
        "least",
        "noted",
        "plan",
        "prefix",
        "replaced",
        "response_summary",
        "revision",
        "summary",
    )  # fmt: skip

    def __init__(self, plan: Plan, counters: RequestCounters) -> None:
        self.plan, self.counters = plan, counters
        self.header = b""  # of requests: client id and tagged fields
        self.prefix, self.least, self.summary = b"", NO_LENGTH, EMPTY
        self.noted = NO_LENGTH  # `least`, where rules look at each frame
        self.equal: EqualFrames | None = None
        self.before: tuple[bytes, int, RequestSummary, EqualFrames | None] | None = None
        self.answer = NO_PATTERN
        self.equal_answers: EqualFrames | None = None
        self.response_summary = NO_ERRORS
        self.answer_columns: list[Any] | None = None
        self.answer_length = 0  # of the last response that was read
        self.held: bytes | None = None  # the last response that was held, from its correlation id on,
        self.replaced: list[bytes] = []  # what was sent for it,
        self.revision = -1  # and the topology's revision then
        self.concerns: tuple[Any, Any] = (
            None,
            None,
        )  # for its requests, for its responses; None: there are none

    def forget(self) -> None:
        """Let the next request be read."""
        self.least, self.before = NO_LENGTH, None

    def turn(self, data: bytes, pos: int, length: int) -> bool:
        """If the request at `pos` equals the one before the last, remember that one again."""
        before = self.before
        if before is None or length < before[1] or not data.startswith(before[0], pos + 12):
            return False
        self.before = self.prefix, self.least, self.summary, self.equal
        self.prefix, self.least, self.summary, self.equal = before
        return True


def equal_requests(memory: ApiMemory, head: bytes, stride: int) -> EqualFrames | None:
    """What requests like the memory's last have in common; None if none of this length has come just
    before.
    """
    known = memory.equal
    if known is not None and known.stride == stride and known.steady is memory.prefix:
        return known
    memory.equal = EqualFrames(stride, memory.prefix, head, ((12, memory.prefix),))
    return None


def equal_responses(memory: ApiMemory, stride: int) -> EqualFrames | None:
    """The same for responses that the memory's pattern knows."""
    known, pattern = memory.equal_answers, memory.answer
    if known is not None and known.stride == stride and known.steady is pattern:
        return known
    if pattern.least <= stride - 4 <= pattern.most:
        constants = (
            (8, pattern.first),
            (pattern.second_at, pattern.second),
            (pattern.third_at, pattern.third),
        )
        memory.equal_answers = EqualFrames(stride, pattern, SIZE.pack(stride - 4), constants)
    return None
