"""What becomes of a frame that was held, once that is decided."""

from __future__ import annotations

from typing import Any

from klamm.decoders import encode
from klamm.proxy.connection import Connection, Run
from klamm.proxy.held import Decision, Held, Refuse, Resume, Undecidable, Withhold
from klamm.proxy.line import Hold
from klamm.proxy.ruling import Ruling, sized
from klamm.rules.error_answers import NoPlace, edit_answer, error_answer
from klamm.rules.plan import PRODUCE
from klamm.rules.verdict import FOREVER


def resolve(ruling: Ruling, held: Held, decision: Decision, now: int) -> None:
    """Fill its gap. Raises Undecidable, EncodeError and DecodeError; then nothing has changed."""
    frame = held.frame
    match decision:
        case Resume(None):
            held.gap.filled = [sized(held.head, frame.body)] * held.times
        case Resume(values):
            assert values is not None
            _go_on(ruling.connection, held, values)
        case Withhold():
            if frame.side == "request":
                _never_sent(ruling.connection, held, _stalled(held, now))
            held.gap.filled = [] if frame.side == "request" else [Hold(FOREVER)]
        case Refuse(code):
            _refuse(ruling, held, code)


def _go_on(connection: Connection, held: Held, values: dict[str, Any]) -> None:
    frame = held.frame
    body = encode(values, frame.api.key, frame.version, frame.side)
    if frame.side == "response":
        connection.edited(held.flow, frame.values, values)
    elif frame.api.key == PRODUCE and (values["acks"] == 0) != (frame.values["acks"] == 0):
        raise Undecidable("acks: 0 says that the client waits for no answer; it cannot become 0, nor another")
    held.gap.filled = [sized(held.head, body)] * held.times


def _refuse(ruling: Ruling, held: Held, code: int) -> None:
    frame = held.frame
    try:
        if frame.side == "response":
            asked = frame.request.values if frame.request is not None else None
            _go_on(
                ruling.connection,
                held,
                edit_answer(frame.api, frame.version, frame.values, code, None, None, asked),
            )
            return
        values = error_answer(frame.api, frame.version, frame.values, code)
    except NoPlace as reason:
        raise Undecidable(str(reason)) from None
    if values is None or not held.answered:
        raise Undecidable("the client waits for no answer (acks=0)")
    at_once = frame.arrived_ns  # as all of klamm's own answers: this tells them from the broker's
    made = ruling.made(held.flow, values, held.correlation_id, list(held.acts), frame, at_once)
    _never_sent(ruling.connection, held, made)
    held.gap.filled = []


def _stalled(held: Held, now: int) -> Run | None:
    """In the place of an answer that never comes."""
    if not held.answered:
        return None
    return Run(None, held.flow.note, now, [held.correlation_id], 0, (("hold", "client", FOREVER),))


def _never_sent(connection: Connection, held: Held, instead: Run | None) -> None:
    """The broker will not answer: what waits for that is taken out, and something else takes its turn."""
    in_flight = connection.in_flight
    for run in held.runs:
        place = next(index for index, each in enumerate(in_flight) if each is run)
        if instead is None:
            del in_flight[place]
        else:
            in_flight[place], instead = instead, None
