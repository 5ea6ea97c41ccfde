"""The filters with which the list of a page was read, one after the other, and the holes that they left."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from klamm.dashboards.web.source import Hole
from klamm.rules.expressions import ExpressionError, parse
from klamm.rules.expressions.tree import Logic, Node

MOST = 100  # stretches of a list; the oldest are forgotten first
LEAST_S = 1.0  # that nobody reads a list: a page that is loaded again takes less


class Stretch(Struct):
    """A time in which a list was read with one filter. Its exchanges have keys from `first` to before `end`;
    `until` is None while it goes on. `reader`: the number of the one who reads.
    """

    where: str | None
    hide: tuple[str, ...]
    first: int
    since: float
    until: float | None = None
    end: int = 0
    reader: int = 0

    def is_same(self, where: str | None, hide: tuple[str, ...]) -> bool:
        return self.where == where and set(self.hide) == set(hide)

    def stop(self, key: int, now: float) -> None:
        if self.until is None:
            self.until, self.end = now, key


class Reading(NamedTuple):
    """One reader of a list, from the beginning to the end of its stream."""

    stretch: Stretch
    reader: int

    def end(self, key: int, now: float) -> None:
        """`key`: that of the next exchange. Another reader may have the list by now."""
        if self.stretch.reader == self.reader:
            self.stretch.stop(key, now)


class History:
    """Of one list; times in seconds since 1970."""

    def __init__(self) -> None:
        self.stretches: deque[Stretch] = deque(maxlen=MOST)

    def begin(self, where: str | None, hide: tuple[str, ...], key: int, now: float) -> Reading:
        """The list is read with this filter from now on, no longer with another. `key`: as for `end`."""
        last = self.stretches[-1] if self.stretches else None
        if last is not None:
            last.stop(key, now)
            if last.is_same(where, hide) and now - (last.until or now) < LEAST_S:
                last.until = None
                last.reader += 1
                return Reading(last, last.reader)
        self.stretches.append(Stretch(where, hide, key, now))
        return Reading(self.stretches[-1], 0)

    def holes(self, where: str | None, hide: tuple[str, ...], after: int) -> list[Hole]:
        """The holes of the list for a filter, but for those that end before the key `after`."""
        return [hole for hole, end in self._holes(where, hide) if end > after]

    def _holes(self, where: str | None, hide: tuple[str, ...]) -> Iterator[tuple[Hole, int]]:
        """Each with the key before which it ends, oldest first."""
        before = None
        for one in self.stretches:
            if before is not None and before.until and one.since - before.until >= LEAST_S:
                yield Hole(before.end, before.until, one.since, unread=True), one.first
            before = one
            if one.until is None or passes(one.where, one.hide, where, hide):
                continue
            yield Hole(one.first, one.since, one.until, one.where, one.hide), one.end


def passes(where: str | None, hide: tuple[str, ...], wanted: str | None, hidden: tuple[str, ...]) -> bool:
    """Whether a filter passes all that another one does, which is `wanted` and `hidden`."""
    given = _terms(wanted)
    return all(_follows(term, given) for term in _terms(where)) and set(hide) <= set(hidden)


@lru_cache(1000)
def _terms(where: str | None) -> frozenset[Node]:
    """Conditions that hold for whatever passes a filter: `a and b` passes only what `a` does."""
    if where is None:
        return frozenset()
    try:
        return frozenset(_each(parse(where).tree))
    except ExpressionError:
        return frozenset()


def _follows(term: Node, given: frozenset[Node]) -> bool:
    """Whether it holds wherever all that is given does: it is among that, or one of its alternatives is."""
    if isinstance(term, Logic) and term.operator == "or":
        return term in given or any(all(_follows(each, given) for each in _each(one)) for one in term.terms)
    return term in given


def _each(node: Node) -> Iterator[Node]:
    if isinstance(node, Logic) and node.operator == "and":
        for term in node.terms:
            yield from _each(term)
    else:
        yield node
