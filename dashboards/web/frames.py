"""The frames of an exchange with raw bodies: the form that rules, expressions and picks take."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from klamm.client.types import Body, Exchange
from klamm.decoders import API, DecodeError
from klamm.decoders.schema import TOPIC, TOPIC_ID, Side, marked
from klamm.decoders.text import valid_text
from klamm.rules.frame import Frame, Peer
from klamm.rules.subjects import at

NIL = bytes(16)


class Frames(NamedTuple):
    """A side is None where its bytes are not there, or klamm does not know its API and version."""

    request: Frame | None
    response: Frame | None


def frames_of(one: Exchange, peer: Peer | None = None) -> Frames:
    """The frames, whose times are of the exchange's (ns since 1970). Topic ids have the names that klamm
    told with the exchange.
    """
    own = peer or Peer(one.cluster, one.broker, one.connection, "", one.connection_id, None, one.principal)
    came, answered = times_of(one)
    request = _frame(one, one.request, "request", own, came)
    response = _frame(one, one.response, "response", own, answered, request)
    if response is not None and one.response is not None and one.response.sent is not None:
        sent = replace(one.response, raw=one.response.sent)
        response.sent = _frame(one, sent, "response", own, answered, request)
    frames = [frame for frame in (request, response) if frame is not None]
    names: dict[bytes, str] | None = None

    def name(topic_id: bytes) -> str | None:
        nonlocal names
        names = _names(one, frames) if names is None else names
        return names.get(topic_id)

    for frame in frames:
        frame.names = name
    return Frames(request, response)


def times_of(one: Exchange) -> tuple[int, int]:
    """When its request came; and when its answer did, or the connection ended without one (ns since 1970)."""
    ended = round(one.time * 1e9)
    return ended - round((one.latency_ms or one.waited_ms) * 1e6), ended


def topic_names(one: Exchange) -> dict[bytes, str]:
    """The names of the topic ids in its bodies, as far as klamm told them."""
    return _names(one, [frame for frame in frames_of(one) if frame is not None])


def _frame(
    one: Exchange, body: Body | None, side: Side, peer: Peer, time_ns: int, request: Frame | None = None
) -> Frame | None:
    api = API.get(one.api)
    if body is None or body.raw is None or api is None or one.version not in api.versions:
        return None
    return Frame(api, one.version, side, b64decode(body.raw), one.client_id, peer, time_ns, request)


def _names(one: Exchange, frames: Iterable[Frame]) -> dict[bytes, str]:
    """By topic id. klamm told the topics in the order of the bodies, so ids and names that are as many belong
    together; a topic without a name is told as `id:...`.
    """
    told = [name for name in one.topics if not name.startswith("id:")]
    named: dict[str, None] = {}
    ids: dict[bytes, None] = {}
    for frame in frames:
        fields = frame.api.fields(frame.side)
        try:
            for path in marked(fields, frame.version, frozenset({TOPIC})):
                named |= dict.fromkeys(map(valid_text, at(frame.values, path)))
            for path in marked(fields, frame.version, frozenset({TOPIC_ID})):
                ids |= dict.fromkeys(id_ for id_ in at(frame.values, path) if id_ != NIL)
        except DecodeError:
            continue
    unnamed = [name for name in told if name not in named]
    return dict(zip(ids, unnamed, strict=True)) if len(ids) == len(unnamed) else {}
