"""Listeners of exchanges. If the request alone decides whether a listener wants an exchange, sessions give
it the exchange; if the response decides, or bodies are wanted, a rule without effects does.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar, Protocol

from klamm.decoders import API, DecodeError, UnknownApi
from klamm.proxy.control.exchange import Seen, is_known, seen
from klamm.proxy.control.rule_book import RuleBook
from klamm.proxy.session.observing.listeners import Listener, Listeners, holds
from klamm.rules.actions.answers import is_answered
from klamm.rules.expressions import SIDES, Expression
from klamm.rules.frame import Frame
from klamm.rules.orders import Afterwards, OnAnswer, Order
from klamm.rules.plan import ListenerWish, Planner, Wishes
from klamm.rules.rule import Draw, Rule, When

Test = Callable[[Frame], bool | None]


class Log(Protocol):
    """The log, to which the exchanges of sessions are written."""

    def exchange(self, fields: Mapping[str, Any]) -> None: ...


class ShowTo:
    """An action of klamm's own: gives `listener` each exchange for which `where` holds, for the answer as it
    came or as rules have changed it.
    """

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
        request = frame.copy(frame.body)
        if _unanswered(frame):
            if wanted:
                self.listener.take(seen(request, None))
            return ()

        def answered(answer: Frame) -> Iterable[Order]:
            came, chosen = answer.body, wanted or (on_answer is not None and holds(on_answer, answer))

            def goes_on(sent: Frame) -> None:
                changed = sent.body != came
                if chosen or (on_answer is not None and changed and holds(on_answer, sent)):
                    self.listener.take(seen(request, sent.copy(came, request)))

            return (Afterwards(goes_on),)

        def never(reason: str | None, waited_ns: int) -> None:
            if wanted and reason is None:
                self.listener.missed(1)
            elif wanted:
                self.listener.take(seen(request, None, reason or "", waited_ns))

        return (OnAnswer(answered, never=never),)

    def _tests(self, frame: Frame) -> tuple[Test | None, Test | None]:
        """The tests of a request of this API version and of its answer; None: `where` cannot decide it."""
        key = frame.api.key, frame.version
        if key not in self.tests:
            where = self.where
            self.tests[key] = (_always, None) if where is None else _fitted(where, frame)
        return self.tests[key]


def _fitted(where: Expression, frame: Frame) -> tuple[Test | None, Test | None]:
    api, version = frame.api, frame.version
    tests = [
        where.on(api, version, side) if where.fits(api, version, side) is None else None for side in SIDES
    ]
    on_request, on_answer = tests if is_known(frame) else map(_unless_unknown, tests)
    return on_request, on_answer


def _unless_unknown(test: Test | None) -> Test | None:
    """It does not hold where it reads the body of a version that klamm does not know."""

    def tested(frame: Frame) -> bool | None:
        assert test is not None
        try:
            return test(frame)
        except UnknownApi:
            return None

    return test and tested


def _always(frame: Frame) -> bool:
    return True


def _unanswered(request: Frame) -> bool:
    try:
        return not is_answered(request)
    except (DecodeError, UnknownApi):
        return False


class Exchanges:
    """All listeners, and the log. `logged`: the APIs whose exchanges are logged, None for all."""

    def __init__(
        self, log: Log, metering: Any, logged: frozenset[str] | None, planner: Planner, book: RuleBook
    ):
        self.log, self.metering, self.logged, self.planner, self.book = log, metering, logged, planner, book
        self.wishes: dict[int, ListenerWish] = {}  # by the listener's id
        self.rules: dict[int, str] = {}  # by the listener's id
        self.numbers = count(1)

    def observe(self, metering: Any, logged: frozenset[str] | None) -> None:
        """Other settings of metrics and the log."""
        self.metering, self.logged = metering, logged
        self._wish()

    def show(self, fields: dict[str, Any], listeners: Listeners) -> None:
        """Give an exchange of a session to the log and to its listeners."""
        frames = fields.pop("frames", (None, None))
        if self.logged is None or fields["api"] in self.logged:
            self.log.exchange(fields)
        if listeners:
            now = time.time()
            one, bodied = Seen(now, fields), Seen(now, fields, *frames)
            for listener in listeners:
                if listener.full:
                    listener.missed(1)
                else:
                    listener.take(bodied if listener.bodies else one)

    def open(self, listener: Listener, where: Expression | None, chance: float | None = None) -> None:
        """Give it exchanges from now on. With a `chance` of each a rule chooses them, else the session where
        the request decides. Raises ValueError for an expression that can never hold.
        """
        keys = frozenset() if where is None else where.apis()
        if chance is None:
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
        self.book.listen(
            Rule(
                name,
                (ShowTo(listener, where),),
                keys=keys,
                when=When(chance=1.0 if chance is None else chance),
            )
        )

    def close(self, listener: Listener) -> None:
        """Give it no more exchanges."""
        name = self.rules.pop(id(listener), None)
        if name is not None:
            self.book.unlisten(name)
        if self.wishes.pop(id(listener), None) is not None:
            self._wish()

    def _wish(self) -> None:
        wishes = Wishes(self.metering, self.logged, tuple(self.wishes.values()))
        if wishes != self.planner.wishes:
            self.planner.wish(wishes)
            self.book.engine.changed()


class Ring:
    """A listener that keeps the newest exchanges: as many as there is room for, with bodies while there is
    room for these.
    """

    full = False

    def __init__(self, most: int, most_bytes: int, bodies: bool, since: float) -> None:
        self.most, self.most_bytes, self.bodies, self.since = most, most_bytes, bodies, since
        self.kept: deque[tuple[int, Seen]] = deque()
        self.told = 0  # bytes of the fields of `kept`
        self.bodied: deque[tuple[int, int]] = deque()  # (number, bytes) of those that have bodies
        self.bytes = 0
        self.numbers = count(1)

    def take(self, one: Seen) -> None:
        number = next(self.numbers)
        self.kept.append((number, one))
        self.told += one.told
        while len(self.kept) > 1 and (len(self.kept) > self.most or self.told > self.most_bytes):
            self.told -= self.kept.popleft()[1].told
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
        """It is never full: these are those of a connection that were too many to be told when it ended."""

    def of(self, number: int) -> Seen | None:
        """The exchange with this number, if it is still there."""
        if not self.kept:
            return None
        place = number - self.kept[0][0]
        return self.kept[place][1] if 0 <= place < len(self.kept) else None
