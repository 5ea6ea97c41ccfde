"""An exchange for the page: each side as a tree beside its bytes, as it came and as klamm sent it on."""

from __future__ import annotations

from base64 import b64decode, b64encode

from msgspec import Struct, field
from msgspec.structs import replace

from klamm.client.types import Body, Exchange
from klamm.dashboards.web.chosen.batches import BatchRow, batch_rows
from klamm.dashboards.web.chosen.changes import Bodied, Change, changes
from klamm.dashboards.web.chosen.following import Condition, conditions
from klamm.dashboards.web.chosen.nodes import NODES, Forest, Node
from klamm.dashboards.web.frames import Frames, frames_of
from klamm.decoders import API, ERRORS, DecodeError, layout
from klamm.decoders.headers import answered_version
from klamm.decoders.oddity import oddity
from klamm.decoders.schema import Side
from klamm.decoders.shown.inside import look_inside
from klamm.decoders.spans import read
from klamm.rules.frame import Frame

__all__ = ["Node", "OneSide", "Opened", "Shown", "opened"]

SHOWN = 256 << 10  # bytes of a body that a page shows


class Shown(Struct, frozen=True):
    """A body. `raw`: base64; `reason`: where it is not as its layout says, and why there is less than all of
    it; `batches` of its records.
    """

    bytes: int
    raw: str = ""
    reason: str = ""
    tree: list[Node] = field(default_factory=list)
    batches: list[BatchRow] = field(default_factory=list)


class OneSide(Shown, frozen=True):
    """One side of an exchange, as it came. `sent`: as klamm sent it on, where that differs, and the `changes`
    in it. `withheld`: klamm sent nothing of it on.
    """

    sent: Shown | None = None
    changes: list[Change] = field(default_factory=list)
    withheld: bool = False


class Opened(Struct, frozen=True):
    """An exchange for the page; a side is None where there was none, or nothing of it is known. `follow`: the
    conditions by which one follows it; `records`: whether the content of records is in the trees;
    `meanings`: those of its errors, by name.
    """

    exchange: Exchange
    request: OneSide | None
    response: OneSide | None
    follow: list[Condition]
    records: bool
    meanings: dict[str, str]


def opened(one: Exchange, content: bool = False) -> Opened:
    """The exchange, with a tree for each body that is there. `content`: with the records in it."""
    bare, frames = replace(one, request=None, response=None), frames_of(one)
    request = _side(one, "request", one.request, frames, content)
    response = _side(one, "response", one.response, frames, content)
    return Opened(bare, request, response, conditions(one), content, _meanings(one))


def _meanings(one: Exchange) -> dict[str, str]:
    known = {name: ERRORS.get(name) for name in one.errors}
    return {
        name: f"{error.meaning} ({'retriable' if error.retriable else 'not retriable'})"
        for name, error in known.items()
        if error is not None
    }


def _side(one: Exchange, side: Side, body: Body | None, frames: Frames, content: bool) -> OneSide | None:
    if body is None:
        return None
    frame = frames.request if side == "request" else frames.response
    if body.raw is None:
        return OneSide(body.bytes, reason=body.reason, withheld=body.withheld)
    data = b64decode(body.raw)
    if frame is None:
        why = "klamm does not know this API" if one.api not in API else "klamm does not know this version"
        return OneSide(len(data), b64encode(data[:SHOWN]).decode(), why, withheld=body.withheld)
    came, sent = (data if text is None else b64decode(text) for text in (body.came, body.sent))
    before = _shown(frame, came, frames, content)
    if came == sent:
        return OneSide(*_all(before), withheld=body.withheld)
    after = _shown(frame, sent, frames, content)
    found = changes(Bodied(before.tree, came), Bodied(after.tree, sent))
    return OneSide(*_all(before), after, found, body.withheld)


def _all(shown: Shown) -> tuple[int, str, str, list[Node], list[BatchRow]]:
    return shown.bytes, shown.raw, shown.reason, shown.tree, shown.batches


def _shown(frame: Frame, data: bytes, frames: Frames, content: bool) -> Shown:
    api, asked = frame.api, frames.request
    version = answered_version(api.key, frame.version, data) if frame.side == "response" else frame.version
    root, _ = read(layout(api.key, version, frame.side), data, 0, len(data))
    values = None
    if frame.side == "response" and asked is not None:
        try:
            values = asked.values
        except DecodeError:
            values = None
    look_inside(api.name, data, root, values, content, frame.names)
    odd = oddity(data, api.key, version, frame.side)
    reasons = [odd] if odd else []
    if len(data) > SHOWN:
        reasons.append(f"the first {SHOWN >> 10} KiB of {len(data):,} bytes are shown")
    forest = Forest(api.name, frame.names)
    tree, batches = forest.nodes(root.parts), batch_rows(root, frame.names)
    if forest.left <= 0:
        reasons.append(f"the first {NODES:,} fields are shown")
    return Shown(len(data), b64encode(data[:SHOWN]).decode(), "; ".join(reasons), tree, batches)
