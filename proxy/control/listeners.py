"""Listeners of exchanges. Sessions show them exchanges where the request alone decides; where the response
decides, and where bodies are wanted, a rule without effects does. Without listeners nothing is done.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar, Protocol

from klamm.decoders import API, DecodeError
from klamm.proxy.control.exchange import Seen, seen
from klamm.proxy.control.rule_book import RuleBook
from klamm.proxy.session.listeners import Listener, Listeners, holds
from klamm.rules.actions.answers import is_answered
from klamm.rules.expressions import Expression
from klamm.rules.frame import Frame
from klamm.rules.orders import OnAnswer, Order
from klamm.rules.plan import ListenerWish, Planner, Wishes
from klamm.rules.rule import Draw, Rule

Test = Callable[[Frame], bool | None]


class Log(Protocol):
    """What the sessions' exchanges are written to."""

    def exchange(self, fields: Mapping[str, Any]) -> None: ...


class ShowTo:
    """An action of klamm's own: shows `listener` each exchange for which `where` holds."""

    name: ClassVar[str] = "watch"
    sides: ClassVar[Sequence[str]] = ("request",)
    observes: ClassVar[bool] = True

    def __init__(self, listener: Listener, where: Expression | None) -> None:
        self.listener, self.where = listener, where
        self.tests: dict[tuple[int, int], tuple[Test | None, Test | None]] = {}

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        on_request, on_answer = self._tests(frame)
        wanted = on_request is not None and holds(on_request, frame)
        if not wanted and on_answer is None:
            return ()
        request = _copy(frame)
        if _unanswered(frame):
            if wanted:
                self.listener.take(seen(request, None))
            return ()

        def answered(answer: Frame) -> Iterable[Order]:
            if wanted or (on_answer is not None and holds(on_answer, answer)):
                self.listener.take(seen(request, _copy(answer, request)))
            return ()

        return (OnAnswer(answered),)

    def _tests(self, frame: Frame) -> tuple[Test | None, Test | None]:
        """What decides on a request of this kind, and on its answer; None: nothing can."""
        key = frame.api.key, frame.version
        if key not in self.tests:
            where = self.where
            self.tests[key] = (_always, None) if where is None else _fitted(where, frame)
        return self.tests[key]


def _fitted(where: Expression, frame: Frame) -> tuple[Test | None, Test | None]:
    api, version = frame.api, frame.version
    return (
        where.on(api, version, "request") if where.fits(api, version, "request") is None else None,
        where.on(api, version, "response") if where.fits(api, version, "response") is None else None,
    )


def _always(frame: Frame) -> bool:
    return True


def _copy(frame: Frame, request: Frame | None = None) -> Frame:
    """What other rules do to a frame is not done to this one."""
    of = frame.api, frame.version, frame.side, frame.body, frame.client_id, frame.peer, frame.arrived_ns
    copy = Frame(*of, request)
    copy.names, copy.read, copy.header_bytes = frame.names, frame.read, frame.header_bytes
    return copy


def _unanswered(request: Frame) -> bool:
    try:
        return not is_answered(request)
    except DecodeError:
        return False


class Exchanges:
    """`logged`: the APIs of the log, None for all."""

    def __init__(
        self, log: Log, metering: Any, logged: frozenset[str] | None, planner: Planner, book: RuleBook
    ):
        self.log, self.metering, self.logged, self.planner, self.book = log, metering, logged, planner, book
        self.wishes: dict[int, ListenerWish] = {}  # by the listener's id
        self.rules: dict[int, str] = {}  # by the listener's id
        self.numbers = count(1)

    def told(self, fields: dict[str, Any], listeners: Listeners) -> None:
        """By a session, of one exchange."""
        if self.logged is None or fields["api"] in self.logged:
            self.log.exchange(fields)
        if listeners:
            one = Seen(time.time(), fields)
            for listener in listeners:
                if not listener.full:  # else it was counted
                    listener.take(one)

    def open(self, listener: Listener, where: Expression | None, bodies: bool) -> None:
        """Tell it from now on. Raises ValueError for an expression that can never hold."""
        keys = frozenset() if where is None else where.apis()
        if not bodies:
            self.wishes[id(listener)] = ListenerWish(where, listener)
            self._wish()
            if where is None:
                return
            keys = frozenset(
                key for key in keys or {api.key for api in API} if not where.by_request(API[key])
            )
            if not keys:
                return
        name = f"watch {next(self.numbers)}"
        self.rules[id(listener)] = name
        self.book.listen(Rule(name, (ShowTo(listener, where),), keys=keys))

    def close(self, listener: Listener) -> None:
        """No more."""
        name = self.rules.pop(id(listener), None)
        if name is not None:
            self.book.unlisten(name)
        if self.wishes.pop(id(listener), None) is not None:
            self._wish()

    def _wish(self) -> None:
        wishes = Wishes(self.metering, self.logged, tuple(self.wishes.values()))
        if wishes != self.planner.wishes:
            self.planner.wish(wishes)
            self.book.engine.revision += 1  # connections look again at what they do


class Ring:
    """The newest exchanges, with their bodies as far as there is room for them."""

    full = False

    def __init__(self, most: int, most_bytes: int, bodies: bool, since: float) -> None:
        self.most_bytes, self.bodies, self.since = most_bytes, bodies, since
        self.kept: deque[tuple[int, Seen]] = deque(maxlen=most)
        self.bodied: deque[tuple[int, int]] = deque()  # (number, bytes) of those that have bodies
        self.bytes = 0
        self.numbers = count(1)

    def take(self, one: Seen) -> None:
        number = next(self.numbers)
        self.kept.append((number, one))
        if one.request is not None:
            self.bodied.append((number, one.size))
            self.bytes += one.size
        first = self.kept[0][0]
        while self.bodied and (self.bytes > self.most_bytes or self.bodied[0][0] < first):
            old, size = self.bodied.popleft()
            self.bytes -= size
            if old >= first:
                self.kept[old - first] = (
                    old,
                    self.kept[old - first][1]._replace(request=None, response=None),
                )

    def missed(self, count: int) -> None:
        """Never: there is always room for the newest."""

    def of(self, number: int) -> Seen | None:
        """The exchange with this number, if it is still there."""
        if not self.kept:
            return None
        place = number - self.kept[0][0]
        return self.kept[place][1] if 0 <= place < len(self.kept) else None
