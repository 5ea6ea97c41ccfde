"""A rule as it stands in the file, read and checked: which frames, when, and what is done with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from klamm.decoders.schema import ALL, Side, Versions
from klamm.rules.glob import Glob

if TYPE_CHECKING:
    from klamm.rules.expressions import Expression
    from klamm.rules.frame import Frame
    from klamm.rules.orders import Order

Event = Literal["frame", "connect"]
Per = Literal["rule", "connection", "client", "topic", "group"]


class Moment(NamedTuple):
    """A time: `ns` after the rule's start or first match, or, when `absolute`, since 1970."""

    ns: int
    absolute: bool = False


class Draw(Protocol):
    """The next number from 0 to 1 for this hit: the same in every run with one seed."""

    def __call__(self) -> float: ...


class Action(Protocol):
    """One thing that can be done to a frame. Its fields are its parameters; plugins are no different.

    `act` is asked on the side that the rule matches on. It may raise: the frame then goes on as it was.
    `name` is its key in the file; `sides` where it may be used: "request", "response", "connect". One with
    `observes` true leaves the frame alone, and sees it also when a rule before it has ended it. It may have
    `apis`, names of the APIs that it is for, and `fits(api, version, side)`, which gives the reason why it
    cannot act on such a frame, or None; and `entries`, the field that gets a mapping whose keys users
    choose. It acts on those parts of a frame for which `frame.only` holds.
    """

    name: ClassVar[str]
    sides: ClassVar[Sequence[str]]

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]: ...


@dataclass(frozen=True, slots=True)
class When:
    """Decides which matches are hits. They are counted `per` client, topic, ..."""

    chance: float = 1.0
    times: int | None = None
    every: int = 1
    nth: tuple[int, ...] = ()
    after: Moment | None = None
    until: Moment | None = None
    lasting_ns: int | None = None
    since: Literal["start", "first match"] = "start"
    per: Per = "rule"
    once_hit: str = ""
    until_hit: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """`side` is that on which it matches. Empty selectors select everything; `keys` are API keys."""

    name: str
    do: tuple[Action, ...]
    event: Event = "frame"
    keys: frozenset[int] = frozenset()
    versions: Versions = ALL
    side: Side = "request"
    topic: Glob | None = None
    partition: frozenset[int] = frozenset()
    group: Glob | None = None
    client: Glob | None = None
    principal: Glob | None = None
    broker: frozenset[str] = frozenset()
    cluster: Glob | None = None
    where: Expression | None = None
    when: When = field(default_factory=When)
    dry: bool = False
    enabled: bool = True
    origin: Any = None  # where it was written, for messages

    @property
    def reads(self) -> bool:
        """Whether the match needs more than the header."""
        return self.when.per in ("topic", "group") or any(
            (self.topic, self.partition, self.group, self.where)
        )
