"""Captures as the source of a page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from time import monotonic

from klamm.captures.captured import Captured
from klamm.captures.choosing import Choosing, chosen, in_batches
from klamm.captures.ended import Ended
from klamm.captures.exchanges import Exchange as Exchanged
from klamm.captures.exchanges import exchanges
from klamm.captures.frames import Framed, Framing
from klamm.captures.headers import keeping
from klamm.captures.period import Period
from klamm.captures.storage.reading import read
from klamm.captures.topic_names import TopicNames
from klamm.client.types import Body, Exchange
from klamm.dashboards.captured import as_exchange
from klamm.dashboards.web.noise import Hidden
from klamm.dashboards.web.source import ROWS, About, Found, Gone, Wish
from klamm.dashboards.web.traffic.answers import Asked, Traffic
from klamm.dashboards.web.traffic.captured import CapturedTraffic, Passage
from klamm.proxy.control.exchange import body
from klamm.proxy.metrics.snapshot import product_version
from klamm.rules.expressions import Expression, parse
from klamm.rules.expressions.work import OFFLINE
from klamm.rules.frame import Frame

BATCH = 500
COUNTED = 2000  # exchanges that the view `traffic` takes at once
NOTHING = Found()
READ_ONLY = "a capture is looked at: there is no klamm to ask"


class Captures:
    """Exchanges of captures, in the order of their ends. Each page reads the files anew, in a thread."""

    def __init__(self, paths: Sequence[str], clock: Callable[[], float] = monotonic) -> None:
        self.paths, self.topics, self.clock = paths, TopicNames(paths), clock
        self.counted = CapturedTraffic(self._passage)

    async def about(self) -> About:
        return await asyncio.to_thread(self._about)

    async def found(self, wish: Wish) -> AsyncGenerator[Found, None]:
        found = self._found(wish)
        yield Found(state="reading")
        while (batch := await asyncio.to_thread(next, found, None)) is not None:
            if batch != NOTHING:
                yield batch

    async def exchange(self, key: str) -> Exchange:
        return await asyncio.to_thread(self._exchange, key)

    async def relay(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        raise Gone(READ_ONLY)

    async def traffic(self, asked: Asked) -> Traffic:
        return await self.counted.traffic(asked)

    def ended(self, wish: Wish, expression: Expression | None) -> Ended:
        """The exchanges of the wished time, those that `expression` cannot choose left out. Not for the loop:
        reading waits for the disk.
        """
        return Ended(self.paths, Period(_ns(wish.since), _ns(wish.until)), keeping(expression))

    def chosen(self, ended: Ended, wish: Wish, expression: Expression | None) -> Iterator[Framed]:
        """The exchanges for which the expression holds. Names of topics from before the wished time count."""
        return chosen(ended, expression, self._topics(wish))

    def _topics(self, wish: Wish) -> Mapping[bytes, str] | None:
        is_part = wish.since is not None or wish.until is not None
        return self.topics.now() if is_part else None

    def _about(self) -> About:
        segments = read(self.paths).segments()
        first = min((one.first_ns for one in segments), default=0) / 1e9
        last = max((one.last_ns for one in segments), default=0) / 1e9
        return About("capture", " ".join(self.paths), product_version(), first, last)

    def _passage(self, asked: Asked) -> Passage:
        """The exchanges that the view `traffic` counts."""
        expression = parse(asked.where, OFFLINE) if asked.where else None
        wish, about = Wish(asked.where or None, since=asked.since, until=asked.until), self._about()
        since = (about.first or 0.0) if asked.since is None else asked.since
        until = (about.last or 0.0) if asked.until is None else asked.until
        ended = self.ended(wish, expression)
        found = in_batches(ended, Choosing(expression, self._topics(wish)).framed, COUNTED, self.clock)
        return Passage(found, since, until, ended.problems, expression)

    def _found(self, wish: Wish) -> Iterator[Found]:
        """Now and then, also where nothing was found; the last one tells whether this was all."""
        expression = None if wish.where is None else parse(wish.where, OFFLINE)
        ended, choosing = self.ended(wish, expression), Choosing(expression, self._topics(wish))
        bodies, hidden = _body if wish.bodies else None, Hidden(wish.hide)

        def choose(each: Exchanged) -> tuple[str, Exchange] | None:
            one = choosing.framed(each)
            if one is None or hidden.hides(one.request, one.response):
                return None
            return key_of(one), as_exchange(one, bodies)

        left = ROWS
        for batch in in_batches(ended, choose, BATCH, self.clock):
            yield Found(batch[:left], hidden=hidden.taken())
            left -= len(batch)
            if left <= 0:
                yield Found(more=True)
                return
        unjudged = 0 if expression is None else expression.unjudged
        yield Found(problem="; ".join(ended.problems), unjudged=unjudged, whole=True)

    def _exchange(self, key: str) -> Exchange:
        try:
            # The last is -1 where the request is missing.
            first_ns, last_ns, number, exchange = map(int, key.split("-", 3))
        except ValueError:
            raise Gone(f"{key[:60]!r} names no exchange of a capture") from None
        framing = Framing(self.topics.now())
        for one in exchanges(read(self.paths, since_ns=first_ns, until_ns=last_ns + 1)):
            of = one.first.connection
            if one.first.exchange == exchange and of is not None and of.number == number:
                framed = framing.exchange(one)
                if key_of(framed) == key:
                    return as_exchange(framed, _body)
        raise Gone(f"{key} is not in the capture any more")


def _body(frame: Frame, row: Captured) -> Body:
    """The body as it came, and as klamm sent it on where that differs."""
    return body(frame, raw=True)


def _ns(seconds: float | None) -> int | None:
    """Of whole microseconds, which a float holds exactly."""
    return None if seconds is None else round(seconds * 1e6) * 1000


def key_of(one: Framed) -> str:
    """Where to find it again: its times, its connection, and its number there."""
    first, last = one.exchange.first, one.exchange.last
    number = 0 if first.connection is None else first.connection.number
    return f"{first.time_ns}-{last.time_ns}-{number}-{first.exchange}"
