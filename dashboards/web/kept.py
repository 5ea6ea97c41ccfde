"""The newest exchanges of a running klamm, with their bodies while there is room for these."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from klamm.client.types import Body, Exchange
from klamm.dashboards.web.source import ROWS, Gone

BODIES = 64 << 20  # bytes, as base64


class Kept:
    """Gives each exchange a key: a number, from `first` on. The oldest lose their bodies first, and are
    forgotten in the end.
    """

    def __init__(self, most: int = ROWS, most_bytes: int = BODIES, first: int = 1) -> None:
        self.most, self.most_bytes = most, most_bytes
        self.kept: dict[str, Exchange] = {}
        self.bodied: dict[str, int] = {}  # bytes of bodies, by key
        self.bytes = 0
        self.next = first  # number of the next key

    def add(self, one: Exchange) -> str:
        key = str(self.next)
        self.next += 1
        one = replace(one, request=_plain(one.request), response=_plain(one.response))
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
            del self.kept[first]
            self.bytes -= self.bodied.pop(first, 0)
        return key

    def of(self, key: str) -> Exchange:
        """Raises Gone."""
        if key not in self.kept:
            raise Gone(f"exchange {key[:30]} is not kept any more: only the newest {self.most:,} are")
        return self.kept[key]

    def some(self, keys: Iterable[str]) -> list[tuple[str, Exchange]]:
        """Each of `keys` whose exchange is still kept, with the exchange."""
        return [(key, self.kept[key]) for key in keys if key in self.kept]

    def _without_bodies(self, key: str) -> None:
        del self.bodied[key]
        one = self.kept[key]
        why = f"only the newest {self.most_bytes >> 20} MiB of bodies are kept"
        self.kept[key] = replace(one, request=_bare(one.request, why), response=_bare(one.response, why))


def _bare(body: Body | None, why: str) -> Body | None:
    if body is None or body.raw is None:
        return body
    return replace(body, raw=None, came=None, sent=None, reason=why)


def _plain(body: Body | None) -> Body | None:
    """Values are for the views that read them at once; they are not counted, and so not kept."""
    return body if body is None or body.values is None else replace(body, values=None)


def _size(one: Exchange) -> int:
    bodies = (body for body in (one.request, one.response) if body is not None)
    return sum(len(text or "") for body in bodies for text in (body.raw, body.came, body.sent))
