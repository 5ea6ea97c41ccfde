"""The source of a page: a running klamm, or captures. Both give exchanges as they come, and single ones."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct, field

from klamm.client.types import Exchange
from klamm.dashboards.web.traffic.answers import Asked, Traffic

ROWS = 50_000  # the most that a page shows at once
Kind = Literal["live", "capture"]


class Wish(Struct, frozen=True, forbid_unknown_fields=True):
    """Which exchanges, and whether with their bodies. `since`, `until`: seconds since 1970, of captures.
    `hide`: names of kinds that are left out (noise.py). `past`: only exchanges that the source has already.
    `of_list`: the name of a list (lists.py), which begins with what it has got, as far as its key is greater
    than `after`; of a running klamm. `kept`: a running klamm's exchanges begin with all that are kept, from
    whichever page, and with what is missing between them (past.py).
    """

    where: str | None = None
    bodies: bool = False
    since: float | None = None
    until: float | None = None
    hide: tuple[str, ...] = ()
    past: bool = False
    of_list: str = ""
    after: int = 0
    kept: bool = False


class Part(Struct, frozen=True):
    """A time of which not all exchanges are there: seconds since 1970, by klamm's clock. `since` is 0 where
    it has no beginning, `until` None where it goes on.
    """

    since: float
    until: float | None = None


class Cut(NamedTuple):
    """A missing part begins or ends: `at` is now, and `known` is when the part began."""

    at: float
    known: float


class Hole(Struct, frozen=True):
    """A time in which a list was read with another filter, `where` and `hide`: what did not pass is missing.
    `unread`: nobody read the list. Its place is before the exchange of key `at`, or of the next key.
    """

    at: int
    since: float
    until: float
    where: str | None = None
    hide: tuple[str, ...] = ()
    unread: bool = False


class Found(Struct, frozen=True):
    """Exchanges that came together, each with the key by which the source finds it again for as long as it
    has it. `state`: the task of the source now, and `problem`: the reason why nothing comes, for people;
    `dropped`: exchanges that came too fast, behind these, and `lost`: the time in which they ended;
    `unjudged`: frames on which the filter takes too much work; `hidden`: exchanges of kinds that are left
    out; `whole`: all of a capture was looked at; `more`: it has more than a page shows; `again`: the list has
    got them before; `hole`: what it lacks at this place; `began`: the klamm from which they are, by the time
    of its start, 0 where that is not known. `missing`: all parts that are missing now, empty where they are
    as before; `cut`: a part begins or ends before these exchanges; `now`: the time by klamm's clock, 0 where
    it is of no use.
    """

    exchanges: list[tuple[str, Exchange]] = field(default_factory=list)
    state: str = ""
    problem: str = ""
    dropped: int = 0
    unjudged: int = 0
    hidden: int = 0
    whole: bool = False
    more: bool = False
    again: bool = False
    hole: Hole | None = None
    began: float = 0.0
    missing: list[Part] = field(default_factory=list)
    cut: Cut | None = None
    lost: Part | None = None
    now: float = 0.0


class About(Struct, frozen=True):
    """The source, for the head of the page; `first` and `last` in seconds since 1970, of captures."""

    kind: Kind
    name: str
    version: str
    first: float | None = None
    last: float | None = None


class Gone(Exception):
    """The source has the exchange no more, or never had it."""


class Source(Protocol):
    """The place from which exchanges come."""

    async def about(self) -> About: ...

    def found(self, wish: Wish) -> AsyncGenerator[Found, None]:
        """Exchanges as wished. Raises klamm.client.Refused where klamm refuses the expression."""
        ...

    async def exchange(self, key: str) -> Exchange:
        """With the raw bytes of its bodies. Raises Gone."""
        ...

    async def relay(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        """A call of klamm's admin API: the status and the body of its answer. Raises Gone for a capture."""
        ...

    async def traffic(self, asked: Asked) -> Traffic:
        """The traffic between clients, brokers and topics. Raises klamm.client.ApiError without an answer."""
        ...
