"""Conditions by which one follows an exchange: its connection, client, group, member, transactional id."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache

from msgspec import Struct

from klamm.client.types import Exchange
from klamm.dashboards.web.frames import frames_of
from klamm.decoders import API, DecodeError
from klamm.decoders.compile import Path
from klamm.decoders.schema import Api, Side, all_fields
from klamm.rules.frame import Frame
from klamm.rules.subjects import at

MOST = 3  # values of one kind
# Fields of bodies, and the paths at which they stand: an expression has the field at the top of the body.
FIELDS = {
    "member": ("member_id", ("member_id", "members.member_id", "assignments.member_id")),
    "transactional id": (
        "transactional_id",
        ("transactional_id", "v3_and_below_transactional_id", "transactions.transactional_id"),
    ),
}


class Condition(Struct, frozen=True):
    """`name` says what it follows, for people; `where` is an expression."""

    name: str
    where: str


def conditions(one: Exchange) -> list[Condition]:
    """From the connection on, which is the narrowest."""
    return [Condition("connection", f"connection == {one.connection_id}"), *_subjects(one), *_of_fields(one)]


def alike(one: Exchange) -> str:
    """The expression for exchanges like this one: of its client, API, topics and group."""
    return " and ".join(condition.where for condition in _subjects(one))


def quoted(text: str) -> str:
    """A text as it is written in an expression."""
    return json.dumps(text, ensure_ascii=False)


def _subjects(one: Exchange) -> Iterator[Condition]:
    if one.client_id is not None:
        yield Condition("client", f"client_id == {quoted(one.client_id)}")
    if one.api in API:
        yield Condition("API", f"api == {one.api}")
    for topic in list(one.topics)[:MOST]:
        if not topic.startswith("id:"):
            yield Condition("topic", f"topic == {quoted(topic)}")
    for group in (one.group or "").split(",")[:MOST]:
        if group:
            yield Condition("group", f"group == {quoted(group)}")


def _of_fields(one: Exchange) -> Iterator[Condition]:
    frames = [frame for frame in frames_of(one) if frame is not None]
    for name, (field, paths) in FIELDS.items():
        found = dict.fromkeys(value for frame in frames for value in _values(frame, paths) if value)
        for value in list(found)[:MOST]:
            yield Condition(name, f"{field} == {quoted(value)}")


def _values(frame: Frame, paths: Iterable[str]) -> Iterator[str]:
    known = _paths(frame.api, frame.version, frame.side)
    for path in paths:
        if (parts := tuple(path.split("."))) in known:
            try:
                yield from at(frame.values, parts)
            except DecodeError:
                return


@cache
def _paths(api: Api, version: int, side: Side) -> frozenset[Path]:
    return frozenset(path for path, _ in all_fields(api.fields(side), version))
