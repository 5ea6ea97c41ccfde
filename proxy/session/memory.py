"""The memory of a connection: the last frames of each API version. While the same bytes come again, nothing
is parsed.

Successive frames of one length are compared at once, with one Struct, which still compares every remembered
byte in each frame.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, final

from klamm.decoders.framing import SIZE
from klamm.proxy.session.observing.counters import RequestCounters
from klamm.proxy.session.observing.summaries import EMPTY, NO_ERRORS, RequestSummary, ResponseSummary
from klamm.rules.plan import Plan

NO_LENGTH = 2**31  # longer than any frame: matches none
MOST = 64  # most frames in one comparison: a Struct is kept for each number

Form = tuple[Callable[[bytes | memoryview], tuple[Any, ...]], list[tuple[int, tuple[bytes, ...]]]]


def int32(data: bytes, pos: int) -> int:
    """The big-endian int32 at `pos`. Compiled, this is a few instructions; a Struct is several objects."""
    value = data[pos] << 24 | data[pos + 1] << 16 | data[pos + 2] << 8 | data[pos + 3]
    return value if value < 1 << 31 else value - (1 << 32)


@final
class ResponsePattern:
    """Recognises a response without reading it: by its length, without the size field, and by its bytes at
    three offsets of the frame. Between these, only values of a fixed size, or records, may differ. `summary`
    is that of such a response. A second or third part that is not needed is empty.
    """

    __slots__ = ("first", "least", "most", "second", "second_at", "summary", "third", "third_at")

    def __init__(
        self,
        least: int,
        most: int,
        summary: ResponseSummary,
        first: bytes = b"",
        second: bytes = b"",
        second_at: int = 0,
        third: bytes = b"",
        third_at: int = 0,
    ) -> None:
        self.least, self.most, self.summary = least, most, summary
        self.first = first  # at 8: behind the correlation id
        self.second, self.second_at = second, second_at
        self.third, self.third_at = third, third_at

    def matches(self, data: bytes, pos: int, length: int) -> bool:
        """Does the frame at `pos` match? Its size field says `length`; its last bytes may be missing."""
        if not self.least <= length <= self.most:
            return False
        first, second, at = self.first, self.second, pos + self.second_at
        if data[pos + 8 : pos + 8 + len(first)] != first or data[at : at + len(second)] != second:
            return False
        third, at = self.third, pos + self.third_at
        return data[at : at + len(third)] == third

    def equals(self, other: ResponsePattern) -> bool:
        """Do both match the same responses, with the same summary?"""
        return self._parts() == other._parts() and self.summary is other.summary

    def _parts(self) -> tuple[int | bytes, ...]:
        return self.least, self.most, self.first, self.second, self.second_at, self.third, self.third_at


NO_PATTERN = ResponsePattern(NO_LENGTH, NO_LENGTH, NO_ERRORS)


class EqualFrames:
    """Recognises frames of `stride` bytes, size field included: `head`, a correlation id, these constants at
    these offsets. Valid while `steady` is the prefix or the pattern of the memory.
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
    """The memory of one API version on one connection, and the counters of its frames.

    `prefix` is the bytes of the last request from its client id to the last field that was read, `summary`
    their summary: while these bytes come again, nothing is parsed. `least` is the length of the shortest
    request that can hold them. `before` keeps the same of the request before, for clients that alternate
    between two topics. `answer` is the pattern of the last response. `whole_answer`: one has been seen that
    ends where its layout does.
    """

    __slots__ = (
        "answer",
        "answer_columns",
        "answer_length",
        "before",
        "client_id",
        "code",
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
        "whole_answer",
    )  # fmt: skip

    def __init__(self, code: int, plan: Plan, counters: RequestCounters, client_id: str) -> None:
        self.code = code  # key and version, as one int32
        self.plan, self.counters = plan, counters
        self.client_id = client_id  # of the last header; that of `counters` is a label, which is bounded
        self.header: bytes | None = None  # client id and tagged fields of requests; None: not decodable
        self.prefix, self.least, self.summary = b"", NO_LENGTH, EMPTY
        self.noted = NO_LENGTH  # takes the place of `least` where rules look at each request
        self.equal: EqualFrames | None = None
        self.before: tuple[bytes, int, RequestSummary, EqualFrames | None] | None = None
        self.answer = NO_PATTERN
        self.equal_answers: EqualFrames | None = None
        self.whole_answer = plan.unknown is not None
        self.response_summary = NO_ERRORS
        self.answer_columns: list[Any] | None = None
        self.answer_length = 0  # of the last response that was read
        self.held: bytes | None = None  # the last response that was held, from behind its correlation id on,
        self.replaced: list[bytes] = []  # the pieces that were sent for it,
        self.revision = -1  # and the topology's revision then
        self.concerns: tuple[Any, Any] = (
            None,
            None,
        )  # the rules for its requests and for its responses; None: no rule concerns them

    def forget(self) -> None:
        """Have the next request parsed."""
        self.least, self.before = NO_LENGTH, None

    def forget_unnamed(self) -> None:
        """Have the next request parsed where klamm did not know the name of a topic id."""
        if not self.summary.named or self.before is not None:
            self.forget()
            self.noted = NO_LENGTH

    def least_now(self) -> int:
        """The length of the shortest request that can hold the prefix, also where rules look at each."""
        return self.least if self.concerns[0] is None else self.noted

    def matches(self, data: bytes, pos: int, length: int) -> bool:
        """Has the request at `pos` the same bytes as the last, or as the one before it?"""
        if self.least > length or data[pos + 12 : pos + 12 + len(self.prefix)] != self.prefix:
            return self.turn(data, pos, length)
        return True

    def turn(self, data: bytes, pos: int, length: int) -> bool:
        """Does the request at `pos` equal `before`? Then that one and the last change places."""
        before = self.before
        if before is None or length < before[1] or not data.startswith(before[0], pos + 12):
            return False
        self.before = self.prefix, self.least, self.summary, self.equal
        self.prefix, self.least, self.summary, self.equal = before
        return True


def equal_requests(memory: ApiMemory, head: bytes, stride: int) -> EqualFrames | None:
    """The EqualFrames of requests that equal the memory's last. None the first time for this length: then
    they are prepared.
    """
    known = memory.equal
    if known is not None and known.stride == stride and known.steady is memory.prefix:
        return known
    memory.equal = EqualFrames(stride, memory.prefix, head, ((12, memory.prefix),))
    return None


def equal_responses(memory: ApiMemory, stride: int) -> EqualFrames | None:
    """The same for responses that match the memory's pattern."""
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
