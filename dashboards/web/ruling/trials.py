"""Tries a rule on exchanges that have ended: those of the list, in the order of their ends."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from klamm.captures.captured import Captured, CapturedConnection
from klamm.captures.summaries.trial import Trial
from klamm.client.types import Body, Exchange, Mistake
from klamm.dashboards.orders import Orders
from klamm.dashboards.web.frames import times_of, topic_names
from klamm.dashboards.web.ruling.forms import checked, read
from klamm.decoders import API
from klamm.decoders.headers import request_frame, response_frame
from klamm.decoders.schema import Api, Side
from klamm.rules.rule import Rule

Found = tuple[str, Exchange]  # with its key


class Tried(Struct, frozen=True):
    """The result for a rule: the keys of the exchanges that it `selects`, and of those among them on which it
    `acts`: not all, where it has `times` or a chance. `would`: what it does, in words. Of `exchanges` that
    were looked at, `unread` have no bodies any more: a rule that reads bodies selects none of these.
    `problems`: why it could not be judged or carried out.
    """

    selects: list[str] = field(default_factory=list)
    acts: list[str] = field(default_factory=list)
    would: list[str] = field(default_factory=list)
    exchanges: int = 0
    unread: int = 0
    problems: list[str] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)


def tried(written: Mapping[str, Any], found: Iterable[Found]) -> Tried:
    """The rule in the form of a rule file, on exchanges with raw bodies."""
    mistakes = checked(written).mistakes
    if mistakes:
        return Tried(mistakes=mistakes)
    return _Trying(read(written).rules[0]).of(found)


class _Trying:
    def __init__(self, rule: Rule) -> None:
        self.orders = Orders()
        self.trial = Trial([rule], 0, lambda _, frame, order: self.orders.take(frame, order))
        self.selects: dict[str, None] = {}
        self.acts: dict[str, None] = {}
        self.exchanges = self.unread = 0

    def of(self, found: Iterable[Found]) -> Tried:
        self.trial.run(self._rows(found))
        failed = dict.fromkeys(reason for _, reason in self.trial.engine.failed)
        would = list(self.orders.lines())
        return Tried([*self.selects], [*self.acts], would, self.exchanges, self.unread, [*failed])

    def _rows(self, found: Iterable[Found]) -> Iterator[Captured]:
        """The trial asks for the next row when it is done with one: what was counted then is of that one."""
        for number, (key, one) in enumerate(found):
            self.exchanges += 1
            self.unread += one.request is None or one.request.raw is None
            self.trial.framing.topics.update(topic_names(one))
            for row in _captured(one, number):
                before = self._counts()
                yield row
                matches, hits = (now - was for now, was in zip(self._counts(), before, strict=True))
                if matches:
                    self.selects[key] = None
                if hits:
                    self.acts[key] = None

    def _counts(self) -> tuple[int, int]:
        counted = self.trial.engine.counted_rules
        return (counted[0].matches, counted[0].hits) if counted else (0, 0)


def _captured(one: Exchange, number: int) -> Iterator[Captured]:
    """The exchange as rows of a capture. A frame without its bytes has none: rules see no more of it."""
    api, of = API.get(one.api), _connection(one)
    if api is None:
        return
    came, answered = times_of(one)
    yield _row(one, api, of, "request", number, came, one.request)
    if one.response_bytes is not None:
        row = _row(one, api, of, "response", number, answered, one.response)
        made = one.origin == "klamm" and (one.request is None or one.request.withheld)
        yield row._replace(fate="made") if made else row


def _connection(one: Exchange) -> CapturedConnection:
    return CapturedConnection("", one.connection_id, one.cluster, one.broker, one.connection, one.principal)


def _row(
    one: Exchange, api: Api, of: CapturedConnection, side: Side, number: int, time_ns: int, body: Body | None
) -> Captured:
    frame, awaits = None, one.response_bytes is not None or one.unanswered != ""
    if body is not None and body.raw is not None:
        data = b64decode(body.raw)
        if side == "request":
            frame = request_frame(api, one.version, 0, one.client_id, data)[4:]
        else:
            frame = response_frame(api, one.version, 0, data)[4:]
    return Captured(
        time_ns, "frame", of, side, api.key, one.version, 0, one.client_id, number,
        0 if frame is None else len(frame), frame, awaits=awaits,
    )  # fmt: skip
