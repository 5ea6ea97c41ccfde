"""The exchanges that a page of marks begins with: all that are kept and match, whichever page got them.
Where klamm was away, or its exchanges came too fast, the page gets what others have got meanwhile. It gets
the parts of time as well of which not all exchanges are there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from klamm.client.types import Exchange
from klamm.dashboards.web.kept import Kept
from klamm.dashboards.web.source import ROWS, Cut, Found, Part
from klamm.dashboards.web.spans import Span, Spans, Wanted

Keyed = list[tuple[str, Exchange]]
MOST = 100  # parts that are told; the oldest are left out first
AT_ONCE = 1000  # exchanges that share a line


class Past:
    """Of one page. It has got all exchanges with numbers before `next`, and those with the keys in `got`,
    which klamm told since. The missing parts are `settled` as far as `since`.
    """

    def __init__(self, kept: Kept, spans: Spans, wanted: Wanted, chosen: Callable[[Keyed], Keyed]) -> None:
        self.kept, self.spans, self.wanted, self.chosen = kept, spans, wanted, chosen
        self.next, self.since = 0, 0.0
        self.got: set[str] = set()
        self.settled: list[Part] = []
        self.missing: list[Part] = []
        self.own: Span | None = None

    @contextmanager
    def reading(self) -> Iterator[Span]:
        """While klamm tells exchanges to this page."""
        try:
            with self.spans.reading(self.wanted) as span:
                self.own = span
                yield span
        finally:
            self.own = None
            self._lost(span.until)

    def live(self, span: Span, found: Found) -> Found:
        """What klamm has told, without what the page has got already."""
        self._lost(self.spans.told(span, found))
        new = [
            (key, replace(one, time=self.kept.kept.get(key, one).time))  # that which later pages get
            for key, one in found.exchanges
            if int(key) >= self.next
        ]
        self.got.update(key for key, _ in new)
        if len(self.got) > ROWS:
            self.got &= self.kept.kept.keys()
        return replace(found, exchanges=new)

    async def more(self) -> list[Found]:
        """What the page has not got yet, in the order of time, and the parts that are missing now."""
        kept = [(key, one) for key, one in self.kept.distinct(self.next) if key not in self.got]
        self.next = self.kept.next
        self.got.clear()
        parts = self.spans.missing(self.wanted, self.since, self.kept.since, self.own)
        exchanges = await asyncio.to_thread(self.chosen, kept)
        missing = [*self.settled, *parts][-MOST:]
        if missing == self.missing and not exchanges:
            return []
        self.missing = missing
        exchanges.sort(key=lambda each: each[1].time)
        return [Found(missing=missing, now=self.spans.now()), *_cut(exchanges, parts)]

    def _lost(self, at: float | None) -> None:
        """Since this time the page has not got all."""
        if at is not None:
            self.settled = [part for part in self.missing if part.until is not None]
            self.since = at


def _cut(exchanges: Keyed, parts: list[Part]) -> Iterator[Found]:
    """The exchanges in pieces, with a cut where a part begins or ends between two."""
    cuts = [Cut(at, part.since) for part in parts for at in (part.since, part.until) if at]
    place = 0
    for cut, end in zip([None, *cuts], [*(cut.at for cut in cuts), float("inf")], strict=True):
        first = place
        while place < len(exchanges) and exchanges[place][1].time < end:
            place += 1
        if cut:
            yield Found(cut=cut)
        for at in range(first, place, AT_ONCE):
            yield Found(exchanges[at : min(at + AT_ONCE, place)])
