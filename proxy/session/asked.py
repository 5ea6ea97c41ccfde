"""Which rules concern frames, and what they have decided about a request and its answer."""

from __future__ import annotations

from typing import NamedTuple

from klamm.decoders import DecodeError, decode
from klamm.proxy.session.memory import ApiMemory
from klamm.rules.errors.answers import NoPlace, Values, error_answer
from klamm.rules.frame import Frame
from klamm.rules.orders import Edit, OnAnswer, Order
from klamm.rules.plan import PRODUCE
from klamm.rules.state import CountedRule

Acts = tuple[OnAnswer, ...]


class Asked(NamedTuple):
    """A request that rules act on. `whole`: all its bytes, the `head` and the `body`."""

    memory: ApiMemory
    whole: bytes
    head: bytes
    body: bytes
    correlation_id: int
    now: int


class AnswerOrders(NamedTuple):
    """Decisions about an answer, made when its request came. `request`: None where none of them needs it.
    `swallow`: the client does not get the answer.
    """

    request: Frame | None
    acts: Acts = ()
    swallow: bool = False


class Concern(NamedTuple):
    """The rules for one API version and side on a connection. `learns`: the engine learns the group of the
    client from these frames. `by_header`: no rule reads the body. `unreadable`: a rule that would, of a
    version that klamm does not know.
    """

    counted_rules: tuple[CountedRule, ...]
    learns: bool
    by_header: bool
    unreadable: CountedRule | None = None


def broker_answers(orders: list[Order], frame: Frame, answered: bool) -> bool:
    """Does the broker answer the request it gets? As the client's (`answered`) unless rules edit acks."""
    if frame.api.key != PRODUCE or not any(isinstance(order, Edit) for order in orders):
        return answered
    try:
        return bool(frame.values["acks"] != 0)
    except DecodeError:
        return answered


def acknowledgement(version: int, body: bytes) -> Values:
    """klamm's answer to a Produce with this body, which rules have changed to acks=0."""
    try:
        values = error_answer(PRODUCE, version, decode(body, PRODUCE, version, "request"), 0)
    except NoPlace:  # it names no partition
        return {}
    assert values is not None
    return values
