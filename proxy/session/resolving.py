"""Carries out the decision about a paused frame."""

from __future__ import annotations

from typing import Any

from klamm.decoders import encode
from klamm.proxy.session.connection import Connection
from klamm.proxy.session.effects import Effect, Hold, Piece
from klamm.proxy.session.framed import sized
from klamm.proxy.session.line import Until
from klamm.proxy.session.paused import Decision, Paused, Refuse, Resume, Undecidable, Withhold
from klamm.proxy.session.paused_answers import tell_decided
from klamm.proxy.session.pending import PendingRequests
from klamm.proxy.session.rule_orders import RuleOrders
from klamm.proxy.session.unanswered import tell_at_once
from klamm.rules.errors.answers import NoPlace, edit_answer, error_answer
from klamm.rules.orders import FOREVER
from klamm.rules.plan import PRODUCE


def resolve(rule_orders: RuleOrders, paused: Paused, decision: Decision, now: int) -> None:
    """Fill its place in the line, and tell of its exchange if it is an answer. Raises Undecidable,
    EncodeError and DecodeError before any change.
    """
    frame, codes = paused.frame, None
    match decision:
        case Resume(None):
            paused.place.filled = [sized(paused.head, frame.body)] * paused.times
        case Resume(values):
            assert values is not None
            codes = _go_on(rule_orders.connection, paused, values)
        case Withhold():
            frame.treatment.withheld = frame.side == "response" or paused.answered
            if frame.side == "request":
                if paused.answered:
                    tell_at_once(rule_orders.connection, paused.pending[0], paused.acts)
                _never_sent(rule_orders.connection, paused, _stalled(paused, now))
            paused.place.filled = [] if frame.side == "request" else [Until(FOREVER)]
        case Refuse(code):
            codes = _refuse(rule_orders, paused, code)
    frame.treatment.delay_ns = max(frame.treatment.delay_ns, now - frame.arrived_ns)
    tell_decided(rule_orders.connection, paused, codes)


def _go_on(connection: Connection, paused: Paused, values: dict[str, Any]) -> list[int] | None:
    """Gives the codes of the errors of an answer."""
    frame, codes = paused.frame, None
    body = encode(values, frame.api.key, frame.version, frame.side)
    if frame.side == "response":
        codes = connection.edited(paused.memory, frame.values, values)
        frame.treatment.changed = frame.treatment.changed or body != frame.body
    elif frame.api.key == PRODUCE and (values["acks"] == 0) != (frame.values["acks"] == 0):
        raise Undecidable("acks: 0 says that the client waits for no answer; it cannot become 0, nor another")
    frame.become(values, body)
    paused.place.filled = [sized(paused.head, body)] * paused.times
    return codes


def _refuse(rule_orders: RuleOrders, paused: Paused, code: int) -> list[int] | None:
    frame = paused.frame
    try:
        if frame.side == "response":
            asked = frame.request.values if frame.request is not None else None
            edited = edit_answer(frame.api, frame.version, frame.values, code, None, None, asked)
            return _go_on(rule_orders.connection, paused, edited)
        values = error_answer(frame.api, frame.version, frame.values, code)
    except NoPlace as reason:
        raise Undecidable(str(reason)) from None
    if values is None or not paused.answered:
        raise Undecidable("the client waits for no answer (acks=0)")
    at_once = frame.arrived_ns  # klamm's own answers have the time of their request
    waiting: PendingRequests = paused.pending[0]
    rule_orders.shown = waiting.frame
    made = rule_orders.made(
        paused.memory, waiting.summary, values, paused.correlation_id, paused.acts, frame, at_once
    )
    _never_sent(rule_orders.connection, paused, made)
    paused.place.filled = []
    return None


def _stalled(paused: Paused, now: int) -> PendingRequests | None:
    """Pending requests for an answer that never comes."""
    if not paused.answered:
        return None
    never: tuple[Piece | Effect, ...] = (Hold("client", FOREVER),)
    return PendingRequests(None, paused.pending[0].summary, now, paused.correlation_id, 0, never)


def _never_sent(connection: Connection, paused: Paused, instead: PendingRequests | None) -> None:
    """The broker will not answer: replace the pending requests by `instead`, or remove them."""
    for run in paused.pending:
        connection.pending.replace(run, instead)
        instead = None
    if connection.decides(paused.memory.plan):
        connection.end_handshake(False)
