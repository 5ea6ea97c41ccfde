"""Requests that wait for their answers, oldest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, final

from klamm.proxy.session.effects import Effect, Piece
from klamm.proxy.session.memory import ApiMemory
from klamm.proxy.session.observing.summaries import RequestSummary
from klamm.rules.frame import Frame

REQUEST = 100  # bytes of memory for a pending request, roughly
MOST = 4 << 20  # bytes of requests and answers; beyond it no more is read from the client
ALL = 24 << 20  # the same for all clients together: where they are many, each has less,
LEAST = 64 << 10  # but so much


@final
class PendingRequests:
    """Requests of one memory and one summary that came in one read, and wait for their answers. `memory` is
    None for an answer of klamm's own. `frame`: the request as it came, where a listener takes bodies.
    """

    __slots__ = (
        "answer_orders", "arrived", "first", "frame", "length", "made", "many", "memory", "next", "summary",
    )  # fmt: skip

    def __init__(
        self,
        memory: ApiMemory | None,
        summary: RequestSummary,
        arrived: int,
        first: int,
        length: int,
        made: tuple[Piece | Effect, ...] = (),
        answer_orders: Any = None,
        frame: Frame | None = None,
    ) -> None:
        self.memory, self.summary = memory, summary
        self.arrived = arrived  # ns
        self.first = first  # correlation id
        self.many: list[int] | None = None  # correlation ids in order, where there is more than one
        self.length = length  # of the first, without its size field
        self.made = made  # klamm's own answer
        self.answer_orders = answer_orders  # asked.AnswerOrders: decided when the request came
        self.frame = frame
        self.next: PendingRequests | None = None  # in the queue

    def also(self, correlation_id: int) -> None:
        """Add an equal request of the same read."""
        if self.many is None:
            self.many = [self.first]
        self.many.append(correlation_id)

    def of(self, ids: list[int]) -> PendingRequests:
        """The same with these of its correlation ids; itself where they are all."""
        if len(ids) == self.count():
            return self
        made = PendingRequests(
            self.memory,
            self.summary,
            self.arrived,
            ids[0],
            self.length,
            self.made,
            self.answer_orders,
            self.frame,
        )
        for correlation_id in ids[1:]:
            made.also(correlation_id)
        return made

    def count(self) -> int:
        return 1 if self.many is None else len(self.many)

    def weight(self) -> int:
        """Its bytes of memory, roughly, with klamm's own answer, and with a request that is kept."""
        size = REQUEST * self.count()
        if self.made:
            size += sum([len(piece) for piece in self.made if isinstance(piece, bytes | memoryview)])
        if self.frame is not None or (
            self.answer_orders is not None and self.answer_orders.request is not None
        ):
            size += self.length
        return size

    @property
    def told_at_once(self) -> bool:
        """Was it told when it went on? The client awaits no answer; a rule awaits that of the broker."""
        return self.answer_orders is not None and not self.summary.answered

    @property
    def ids(self) -> Sequence[int]:
        """The correlation ids, in order."""
        return [self.first] if self.many is None else self.many


@final
class PendingQueue:
    """A linked list, so that an exchange touches few cache lines. `own`: the number of entries that are
    klamm's own answers. `weight`: bytes, roughly.
    """

    __slots__ = ("newest", "oldest", "own", "weight")

    def __init__(self) -> None:
        self.oldest: PendingRequests | None = None
        self.newest: PendingRequests | None = None
        self.own = 0
        self.weight = 0

    def __iter__(self) -> Iterator[PendingRequests]:
        each = self.oldest
        while each is not None:
            yield each
            each = each.next

    def append(self, pending: PendingRequests) -> None:
        if self.newest is None:
            self.oldest = pending
        else:
            self.newest.next = pending
        self.newest = pending
        self.weight += pending.weight()
        if pending.memory is None:
            self.own += 1

    def also(self, correlation_id: int) -> None:
        """One more request that came in the same read as the newest."""
        assert self.newest is not None
        self.newest.also(correlation_id)
        self.weight += REQUEST

    def waiting(self, answered: int) -> int:
        """The weight without the oldest requests, so many of which are answered: the last one of their entry
        may have come in part, and nobody answers that one before the client is read again.
        """
        return self.weight - REQUEST * answered

    def remove_oldest(self) -> PendingRequests:
        """Raises IndexError if there is none."""
        oldest = self.oldest
        if oldest is None:
            raise IndexError("no request waits for an answer")
        self.oldest = oldest.next
        if oldest.next is None:
            self.newest = None
        self.weight -= oldest.weight()
        if oldest.memory is None:
            self.own -= 1
        return oldest

    def wanting(self, correlation_id: int, answered: int) -> int:
        """The number of requests to a broker with this id. `answered`: so many of the oldest have answers."""
        found = 0
        for each in self:
            if each.memory is not None:
                found += each.ids[answered:].count(correlation_id)
            answered = 0
        return found

    def bring_forward(self, correlation_id: int, answered: int) -> PendingRequests:
        """Make the request with this id the oldest, without those `answered`. Raises IndexError if there is
        none.
        """
        rest: list[PendingRequests] = []
        first: PendingRequests | None = None
        for each in list(self):
            ids = list(each.ids)[answered:]
            answered = 0
            if first is None and each.memory is not None and correlation_id in ids:
                ids.remove(correlation_id)
                first = each.of([correlation_id])
            if ids:
                rest.append(each.of(ids))
        if first is None:
            raise IndexError(f"no request with correlation id {correlation_id}")
        self._fill([first, *rest])
        return first

    def _fill(self, entries: list[PendingRequests]) -> None:
        self.oldest, self.newest, self.own, self.weight = None, None, 0, 0
        for each in entries:
            each.next = None
            self.append(each)

    def replace(self, gone: PendingRequests, instead: PendingRequests | None) -> None:
        """Put `instead` in the place of `gone`, or just remove `gone`."""
        rest = [instead if each is gone else each for each in self]
        self._fill([each for each in rest if each is not None])
