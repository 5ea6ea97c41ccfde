"""/v1/paused: frames that rules have paused, and decisions about them."""

from __future__ import annotations

from typing import Any

from klamm.client.types import Mistake, PausedFrame, Resolution
from klamm.decoders import DecodeError, EncodeError
from klamm.proxy.admin.routes import Ask, Control, Route
from klamm.proxy.control.exchange import body
from klamm.proxy.control.intercept import Intercepted
from klamm.proxy.control.rule_book import Refused
from klamm.proxy.session.paused import Decision, Refuse, Resume, Undecidable, Withhold
from klamm.rules.file.scalars import error_code
from klamm.rules.frame import Frame
from klamm.rules.json_form import NotThat, from_json


def listed(control: Control, ask: Ask) -> list[PausedFrame]:
    return [_frame(one) for one in control.intercept.waiting.values()]


def one(control: Control, ask: Ask) -> PausedFrame:
    return _frame(_found(control, ask.name), values=True)


def resolve(control: Control, ask: Ask) -> None:
    found = _found(control, ask.name)
    try:
        control.intercept.resolve(found.number, _decision(ask.body, found.paused.frame))
    except (NotThat, EncodeError) as wrong:
        path = f"values.{wrong.path}" if wrong.path and wrong.path != "body" else "values"
        raise Refused(422, "the frame cannot be sent", [Mistake(path, wrong.reason)]) from None
    except DecodeError as wrong:
        raise Refused(422, f"the frame does not decode: {wrong}; resume or drop it") from None
    except Undecidable as wrong:
        raise Refused(422, str(wrong)) from None


def _logged(asked: Resolution) -> dict[str, Any]:
    """The values of a frame are those of clients, and may be secrets: the log has the names of its fields."""
    return {
        "action": asked.action,
        "code": asked.code,
        "values": None if asked.values is None else [*asked.values],
    }


def _decision(asked: Resolution, frame: Frame) -> Decision:
    """Raises Refused, NotThat and DecodeError."""
    given = {key for key in ("values", "code") if getattr(asked, key) is not None}
    for key in given - {{"resume": "values", "error": "code"}.get(asked.action)}:
        raise Refused(422, f"{asked.action} takes no {key}", [Mistake(key, "is for another action")])
    match asked.action:
        case "drop":
            return Withhold()
        case "error":
            return Refuse(_code(asked.code))
    if asked.values is None:
        return Resume()
    fields = frame.api.fields(frame.side)
    return Resume(from_json(fields, frame.version, asked.values, frame.values))


def _code(error: str | int | None) -> int:
    if error is None:
        raise Refused(422, "which error?", [Mistake("code", "a name or number of Kafka's errors is needed")])
    try:
        return error_code(str(error))
    except ValueError as wrong:
        raise Refused(422, str(wrong), [Mistake("code", str(wrong))]) from None


def _found(control: Control, name: str) -> Intercepted:
    number = int(name) if name.isascii() and name.isdigit() and len(name) < 19 else 0
    found = control.intercept.waiting.get(number)
    if found is None:
        raise Refused(404, f"no frame {name!r} is paused (any more)")
    return found


def _frame(one: Intercepted, values: bool = False) -> PausedFrame:
    frame = one.paused.frame
    content = body(frame, raw=False) if values else None
    return PausedFrame(
        id=one.number,
        rule=one.paused.pause.rule,
        side=frame.side,
        api=frame.api.name,
        version=frame.version,
        correlation_id=one.paused.correlation_id,
        client_id=frame.client_id,
        cluster=frame.peer.cluster,
        broker=frame.peer.broker,
        connection=frame.peer.client_address,
        since=round(one.since, 6),
        until=round(one.until, 6),
        bytes=one.paused.size,
        values=None if content is None else content.values,
        reason="" if content is None else content.reason,
        principal=frame.peer.principal,
    )


UNKNOWN = {404: "There is no such frame, or it is no longer paused"}
ROUTES = [
    Route("GET", "/v1/paused", listed, "The paused frames, oldest first", list[PausedFrame]),
    Route("GET", "/v1/paused/{name}", one, "A paused frame, with its values", PausedFrame, refusals=UNKNOWN),
    Route(
        "POST",
        "/v1/paused/{name}",
        resolve,
        "Let it go on, as it is or edited; drop it; or answer with an error",
        status=204,
        body=Resolution,
        logged=_logged,
        refusals=UNKNOWN | {422: "The decision cannot be carried out; the frame is still paused"},
    ),
]
