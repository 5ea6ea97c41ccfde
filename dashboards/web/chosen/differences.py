"""Two exchanges side by side, and two versions of an API."""

from __future__ import annotations

from base64 import b64decode

from msgspec import Struct

from klamm.client.types import Exchange
from klamm.dashboards.web.chosen.changes import Bodied, Change, changes
from klamm.dashboards.web.chosen.trees import Opened, Shown, opened
from klamm.decoders import API, layout
from klamm.decoders.schema import Side
from klamm.decoders.shown.layouts import changes as layout_changes

FACTS = (
    "api", "version", "client_id", "connection", "cluster", "broker", "principal", "origin", "latency_ms",
    "request_bytes", "response_bytes", "topics", "group", "errors", "rules",
)  # fmt: skip
SIDES: tuple[Side, Side] = ("request", "response")


class Differences(Struct, frozen=True):
    """The differences of two exchanges: in the facts about them, and in the fields of their bodies. A side
    that one of them lacks, or whose bytes are gone, has a reason in `unknown`.
    """

    facts: list[Change]
    request: list[Change]
    response: list[Change]
    unknown: list[str]


class LayoutChange(Struct, frozen=True):
    """A field of the other version: `what` is added, removed or changed; `before` and `after` describe it."""

    what: str
    path: str
    before: str
    after: str


class Versions(Struct, frozen=True):
    """The changes of the layout from `version` to version `to`; klamm knows versions `first` to `last`."""

    version: int
    to: int
    first: int
    last: int
    request: list[LayoutChange]
    response: list[LayoutChange]


class NoVersion(Exception):
    """The API has no such version; the text says which there are."""


def differences(one: Exchange, other: Exchange) -> Differences:
    """From one to the other."""
    facts = [
        Change(name, *texts)
        for name in FACTS
        if len(set(texts := tuple(_text(getattr(each, name)) for each in (one, other)))) > 1
    ]
    before, after, unknown = opened(one), opened(other), list[str]()
    request = _between("request", before, after, unknown)
    return Differences(facts, request, _between("response", before, after, unknown), unknown)


def _between(side: Side, before: Opened, after: Opened, unknown: list[str]) -> list[Change]:
    shown: list[Shown | None] = [getattr(each, side) for each in (before, after)]
    bodies = [Bodied(one.tree, b64decode(one.raw)) for one in shown if one is not None and one.tree]
    if len(bodies) == 2:
        return changes(*bodies)
    if any(one is not None and one.bytes for one in shown):
        reasons = dict.fromkeys(one.reason for one in shown if one is not None and one.reason)
        why = "; ".join(reasons) or "one of them has none"
        unknown.append(f"the {side}s cannot be compared: {why}")
    return []


def _text(value: object) -> str | None:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return None if value is None else str(value)


def versions(one: Exchange, to: int | None) -> Versions:
    """From the version of the exchange to another: by default the newest, or the one before it. Raises
    NoVersion.
    """
    api = API.get(one.api)
    if api is None or one.version not in api.versions:
        raise NoVersion("klamm does not know this API and version")
    first, last = api.versions
    if to is None:
        to = last if one.version != last else max(first, last - 1)
    if to not in api.versions:
        raise NoVersion(f"{api.name} has versions {api.versions}, not {to}")
    request, response = (_layouts(api.key, one.version, to, side) for side in SIDES)
    return Versions(one.version, to, first, last, request, response)


def _layouts(key: int, version: int, to: int, side: Side) -> list[LayoutChange]:
    found = layout_changes(layout(key, version, side), layout(key, to, side))
    return [LayoutChange(*change) for change in found]
