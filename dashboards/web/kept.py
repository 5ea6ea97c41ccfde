"""The newest exchanges of a running klamm, with their bodies while there is room for these."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from klamm.client.types import Body, Exchange
from klamm.dashboards.web.lanes.recent import Recent
from klamm.dashboards.web.source import ROWS, Gone

BODIES = 64 << 20  # bytes, as base64
VALUES = 10  # bytes that the values of a byte take, roughly
RECENT = 10_000  # exchanges that are known when another reader of klamm gets them too
SAME_S = 0.02  # between the times of one exchange as klamm tells it to two readers, at most


class First(NamedTuple):
    """The key that an exchange got when the first reader had it, and its time as that reader was told."""

    key: str
    time: float


class Kept:
    """Gives each exchange a key: a number, from `first` on. The oldest lose their bodies first, and are
    forgotten in the end. `since`: no exchange that ended later has lost anything, in seconds since 1970. One
    that several readers of klamm have got is there under several keys, all but the first in `repeats`.
    """

    def __init__(self, most: int = ROWS, most_bytes: int = BODIES, first: int = 1) -> None:
        self.most, self.most_bytes = most, most_bytes
        self.kept: dict[str, Exchange] = {}
        self.bodied: dict[str, int] = {}  # bytes of bodies, by key
        self.bytes = 0
        self.next = first  # number of the next key
        self.bare = 0  # the newest number of those that have lost their bodies
        self.since = 0.0
        self.repeats: set[str] = set()
        self.recent: Recent[int, First] = Recent(RECENT)

    def once(self, one: Exchange) -> str:
        """The key that it has got already, or a new one."""
        first = self._first(one)
        return self.add(one) if first is None or first.key not in self.kept else first.key

    def add(self, one: Exchange) -> str:
        key = str(self.next)
        self.next += 1
        if self._first(one) is None:
            self.recent.put(_mark(one), First(key, one.time))
        else:
            self.repeats.add(key)
        self.kept[key] = one
        size = _size(one)
        if size:
            self.bodied[key] = size
            self.bytes += size
        while self.bytes > self.most_bytes:
            old, freed = next(iter(self.bodied.items()))
            self._without_bodies(old)
            self.bytes -= freed
        if len(self.kept) > self.most:
            first = next(iter(self.kept))
            self.since = max(self.since, self.kept.pop(first).time)
            self.repeats.discard(first)
            self.bytes -= self.bodied.pop(first, 0)
        return key

    def of(self, key: str) -> Exchange:
        """Raises Gone."""
        if key not in self.kept:
            raise Gone(f"exchange {key[:30]} is not kept any more: only the newest {self.most:,} are")
        return _shown(self.kept[key])

    def some(self, keys: Iterable[str]) -> list[tuple[str, Exchange]]:
        """Each of `keys` whose exchange is still kept, with the exchange."""
        return [(key, _shown(self.kept[key])) for key in keys if key in self.kept]

    def distinct(self, first: int) -> list[tuple[str, Exchange]]:
        """Each exchange from the key `first` on, once; without those that may have lost their bodies."""
        gone = self.next - len(self.kept)  # keys follow each other
        some = islice(self.kept.items(), max(0, max(first, self.bare + 1) - gone), None)
        return [(key, one) for key, one in some if key not in self.repeats]

    def _first(self, one: Exchange) -> First | None:
        """The same exchange, as a reader of klamm has got it before."""
        found = self.recent.get(_mark(one))
        return found if found is not None and abs(found.time - one.time) <= SAME_S else None

    def _without_bodies(self, key: str) -> None:
        del self.bodied[key]
        one = self.kept[key]
        self.bare, self.since = int(key), max(self.since, one.time)
        why = f"only the newest {self.most_bytes >> 20} MiB of bodies are kept"
        self.kept[key] = replace(one, request=_bare(one.request, why), response=_bare(one.response, why))


def _bare(body: Body | None, why: str) -> Body | None:
    if body is None or not _size_of(body):
        return body
    return replace(body, raw=None, came=None, sent=None, values=None, reason=why)


def _shown(one: Exchange) -> Exchange:
    """Without the values of bodies that could have secrets: they are for marks."""
    if any(body is not None and body.values is not None for body in (one.request, one.response)):
        return replace(one, request=_plain(one.request), response=_plain(one.response))
    return one


def _plain(body: Body | None) -> Body | None:
    return body if body is None or body.values is None else replace(body, values=None)


def _mark(one: Exchange) -> int:
    """Of two exchanges with equal marks that end at nearly the same time, both are the same one."""
    sizes, raw = (one.request_bytes, one.response_bytes), None if one.request is None else one.request.raw
    place = one.cluster, one.broker, one.connection, one.connection_id
    return hash((place, one.api, one.version, one.latency_ms, one.waited_ms, sizes, raw))


def _size(one: Exchange) -> int:
    return sum(_size_of(body) for body in (one.request, one.response) if body is not None)


def _size_of(body: Body) -> int:
    values = 0 if body.values is None else VALUES * body.bytes
    return values + sum(len(text or "") for text in (body.raw, body.came, body.sent))
