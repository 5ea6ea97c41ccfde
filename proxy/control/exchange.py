"""An exchange, a request and its response, in the form that listeners get."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from klamm.client.types import Body, Exchange, Payload
from klamm.decoders import API, DecodeError, UnknownApi, layout, spans
from klamm.decoders.apis import why_unknown
from klamm.decoders.error_codes import error_name
from klamm.decoders.oddity import odd_end
from klamm.decoders.schema import SECRET, Api, Side, marked
from klamm.decoders.shown.inside import GROUP_APIS, Inside, look_inside
from klamm.proxy.config_types import Address
from klamm.proxy.log.treated import UNTREATED, Treatments, delays_of, fates_of, rules_of
from klamm.proxy.session.rewriting.topology import broker_label
from klamm.rules.expressions import Expression
from klamm.rules.frame import Frame, Treatment
from klamm.rules.json_form import to_json
from klamm.rules.subjects import subjects

if TYPE_CHECKING:
    from klamm.proxy.edge.link import Link

TOPIC_BYTES = 200  # of a topic or an error in the fields of an exchange
Bodies = Literal["none", "values", "raw"]


class Seen(NamedTuple):
    """An exchange that a listener got: the fields of the log, and the frames if it wants bodies."""

    time: float
    fields: Mapping[str, Any]
    request: Frame | None = None
    response: Frame | None = None

    @property
    def size(self) -> int:
        """Bytes of the bodies; those that rules have changed count once."""
        frames = (self.request, self.response)
        return sum(len(frame.body) + len(frame.came or b"") for frame in frames if frame is not None)

    @property
    def told(self) -> int:
        """Bytes of the topics, partitions and errors in its fields, roughly."""
        topics, errors = self.fields.get("topics", {}), self.fields.get("errors", ())
        named = sum([TOPIC_BYTES + len(name) + 8 * len(parts) for name, parts in topics.items()])
        return named + TOPIC_BYTES * len(errors)


def seen(request: Frame, response: Frame | None, unanswered: str = "", waited_ns: int = 0) -> Seen:
    """An exchange of two frames. Their bodies are not read yet. `unanswered`: why the connection ended before
    the answer came; the request had waited so long.
    """
    own = response is not None and response.arrived_ns == request.arrived_ns
    fields = {
        "api": request.api.name,
        "version": request.version,
        "client_id": request.client_id,
        "cluster": request.peer.cluster,
        "broker": request.peer.broker,
        "connection": request.peer.client_address,
        "connection_id": request.peer.number,
        "origin": "klamm" if own else "broker",
        "request_bytes": _size(request),
        "response_bytes": None if response is None else _size(response),
        "latency_ns": None if response is None else response.arrived_ns - request.arrived_ns,
    }
    if unanswered:
        fields |= {"unanswered": unanswered, "waited_ns": waited_ns}
    if request.peer.principal is not None:
        fields["principal"] = request.peer.principal
    return Seen(time.time(), fields, request, response)


def place(fields: dict[str, Any], link: Link, cluster: str) -> None:
    """Add where an exchange took place, and whether its answer waits behind one that never goes."""
    line = link.lines.get("client")
    fields |= {
        "cluster": cluster,
        "broker": broker_label(link.target),
        "connection": str(Address(*link.client_address)),
        "connection_id": link.number,
        "withheld": line is not None and line.stuck() and fields["response_bytes"] is not None,
    }


def treatments_of(one: Seen) -> Treatments:
    """The treatments of the request and of the response by rules; None for a frame without one."""
    if one.request is None:
        found: Treatments = one.fields.get("treatments", UNTREATED)
        return found
    return one.request.treatment, None if one.response is None else one.response.treatment


def _other(data: bytes | None, body: bytes) -> str | None:
    """In base64, where it is not the same."""
    return None if data is None or data == body else b64encode(data).decode()


def _size(frame: Frame) -> int:
    """Bytes on the wire, the size field included."""
    return frame.header_bytes + len(frame.body)


def exchange_of(
    one: Seen, number: int = 0, request: Body | None = None, response: Body | None = None
) -> Exchange:
    """The exchange as the admin API gives it. Reads the bodies, if it has them, for topics and errors."""
    fields, treatments = one.fields, treatments_of(one)
    latency_ns, more = fields.get("latency_ns"), _read(one)
    changed = _is_changed(one, treatments[1])
    errors: dict[str, int] = {}
    for _, code in more.get("errors", fields.get("errors", ())):
        errors[error_name(code)] = errors.get(error_name(code), 0) + 1
    return Exchange(
        time=round(one.time, 6),
        cluster=fields["cluster"],
        broker=fields["broker"],
        connection=fields["connection"],
        connection_id=fields.get("connection_id", 0),
        api=fields["api"],
        version=fields["version"],
        client_id=fields["client_id"],
        origin="klamm" if changed else fields["origin"],
        changed=changed,
        request_bytes=fields["request_bytes"],
        response_bytes=fields["response_bytes"],
        latency_ms=None if latency_ns is None else round(latency_ns / 1e6, 3),
        id=number,
        correlation_id=fields.get("correlation_id"),
        principal=fields.get("principal"),
        topics=more.get("topics", fields.get("topics", {})),
        group=more.get("group", fields.get("group")),
        transactional_id=more.get("transactional_id", fields.get("transactional_id")),
        errors=errors,
        unanswered=fields.get("unanswered", ""),
        waited_ms=round(fields.get("waited_ns", 0) / 1e6, 3),
        undecodable=_undecodable(one),
        rules=rules_of(treatments),
        fates=fields.get("fates") or fates_of(fields, changed, treatments),
        request=request,
        response=response,
        **delays_of(treatments),
    )


def _is_changed(one: Seen, treatment: Treatment | None) -> bool:
    """Whether rules, or a decision about a paused answer, changed the answer of the broker."""
    edited = one.response is not None and one.response.told is not one.response
    return one.fields.get("changed", edited) or (treatment is not None and treatment.changed)


def shown(one: Seen, number: int = 0, bodies: Bodies = "none") -> Exchange:
    """The exchange as the admin API gives it, with its bodies if they are wanted. One that klamm fails to
    show comes without what its bodies say, and with the failure: the reader still gets all others.
    """
    try:
        sides = [
            None if frame is None or bodies == "none" else body(frame, bodies == "raw")
            for frame in (one.request, one.response)
        ]
        return exchange_of(one, number, *sides)
    except Exception as wrong:  # an error in klamm
        rest = exchange_of(one._replace(request=None, response=None), number)
        return msgspec.structs.replace(rest, undecodable={"request": f"klamm failed to show it: {wrong!r}"})


def _read(one: Seen) -> dict[str, Any]:
    """Topics, group, transactional id and errors, named as in the log; nothing where the session has read
    them already. The errors are those that klamm sent on.
    """
    if one.request is None or "errors" in one.fields:
        return {}
    about = subjects(*(frame if is_known(frame) else None for frame in (one.request, one.response)))
    errors = [(None, code) for code, count in about.errors.items() for _ in range(count)]
    group, transactional_id = (",".join(ids) or None for ids in (about.groups, about.transactional_ids))
    return {"topics": about.topics, "errors": errors, "group": group, "transactional_id": transactional_id}


def _undecodable(one: Seen) -> dict[str, str]:
    frames = (frame for frame in (one.request, one.response) if frame is not None)
    return {frame.side: reason for frame in frames if (reason := _oddity(frame))}


def is_known(frame: Frame | None) -> bool:
    """Does klamm know its version? The body of another cannot be read."""
    return frame is not None and frame.version in frame.api.versions


def holds(where: Expression, one: Seen) -> bool:
    """Does it hold for any of the frames? Not where it reads a body of a version that klamm does not know."""
    for frame in (one.request, one.response):
        with suppress(UnknownApi):
            if where.holds(frame):
                return True
    return False


def _oddity(frame: Frame) -> str:
    """The place and the reason where its body does not end as its layout does; "" where it does."""
    unknown = why_unknown(frame.api, frame.version)
    return unknown if unknown is not None else odd_end(frame.body, frame.api.key, frame.version, frame.side)


def body(frame: Frame, raw: bool) -> Body:
    """The body of one side. It never has secrets; it has the bytes of records only if `raw`. One that could
    have secrets comes as values in any case, and one that cannot be read as its size, with the reason.
    """
    size, withheld, known = len(frame.body), frame.treatment.withheld, is_known(frame)
    of = frame.version if known else frame.api.versions.last
    secret = raw and (frame.api.key not in API or _has_secrets(frame.api, of, frame.side))
    if raw and not secret:
        came, sent = (
            _other(one, frame.body) for one in (frame.came, None if frame.sent is None else frame.sent.body)
        )
        return Body(size, raw=b64encode(frame.body).decode(), came=came, sent=sent, withheld=withheld)
    reason = _oddity(frame)
    try:
        values = to_json(frame.api.fields(frame.side), frame.version, frame.values)
    except (DecodeError, UnknownApi):
        return Body(size, reason=reason, withheld=withheld)
    if secret:
        reason = f"a {frame.api.name} {frame.side} carries secrets"
    return Body(size, values=values, reason=reason, withheld=withheld, payloads=_payloads(frame))


def _payloads(frame: Frame) -> dict[str, Payload]:
    """The payloads of group members in a frame that decodes, by the paths of their fields."""
    if frame.api.name not in GROUP_APIS:
        return {}
    of = layout(frame.api.key, frame.version, frame.side)
    root, _ = spans.read(of, frame.body, 0, len(frame.body))
    asked = None
    if frame.request is not None:
        with suppress(DecodeError, UnknownApi):
            asked = frame.request.values
    found = look_inside(frame.api.name, frame.body, root, asked).values()
    return {one.path: _payload(one) for one in found if isinstance(one, Inside)}


def _payload(one: Inside) -> Payload:
    values = to_json(one.layout.fields, one.layout.version, spans.values(one.tree))
    return Payload(one.name, one.layout.version, values, one.reason)


@lru_cache(4096)  # clients may make up versions
def _has_secrets(api: Api, version: int, side: Side) -> bool:
    return any(marked(api.fields(side), version, frozenset({SECRET})))
