"""The exchanges of a capture for which an expression holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from klamm.captures.exchanges import Exchange
from klamm.captures.frames import Framed, Framing
from klamm.captures.headers import Headers

if TYPE_CHECKING:
    from klamm.rules.expressions import Expression

T = TypeVar("T")
TELL_S = 0.25  # seconds between two results of a long reading


class Choosing:
    """Chooses exchanges of one capture, in their order: those for which `where` holds, as in rules. It never
    holds where no frame is known. `topics`: names of topic ids that are known before.
    """

    def __init__(self, where: Expression | None = None, topics: Mapping[bytes, str] | None = None) -> None:
        self.where, self.framing = where, Framing(topics)
        self.headers = None if where is None else Headers(where)

    def framed(self, one: Exchange) -> Framed | None:
        """The exchange with its frames; None where it is not chosen."""
        if self.headers is not None and not self.headers.may_choose(one.first):
            return None
        framed = self.framing.exchange(one)
        return framed if self.where is None or self.where.holds(framed.request, framed.response) else None


def chosen(
    exchanges: Iterable[Exchange],
    where: Expression | None = None,
    topics: Mapping[bytes, str] | None = None,
) -> Iterator[Framed]:
    """The exchanges that `Choosing` chooses."""
    choosing = Choosing(where, topics)
    for one in exchanges:
        framed = choosing.framed(one)
        if framed is not None:
            yield framed


def in_batches(
    exchanges: Iterable[Exchange],
    choose: Callable[[Exchange], T | None],
    most: int,
    clock: Callable[[], float] = monotonic,
) -> Iterator[list[T]]:
    """The results of `choose` that are not None, in lists of at most `most`. A list comes each TELL_S and at
    the end, even if it is empty.
    """
    batch, told_s = list[T](), clock()
    for each in exchanges:
        one = choose(each)
        if one is not None:
            batch.append(one)
        if len(batch) == most or clock() - told_s >= TELL_S:
            yield batch
            batch, told_s = [], clock()
    yield batch
