"""Shortcuts for reading bodies, judged by a walk over all decoded values."""

import json
from collections import Counter
from random import Random
from typing import Any

import pytest

import klamm.pipeline.bodies.as_json
from klamm.decoders import API, encode
from klamm.decoders.error_codes import error_name
from klamm.decoders.headers import request_frame, response_frame
from klamm.decoders.interpret import Layout, read
from klamm.decoders.schema import UNKNOWN_TAGS, Api, Side
from klamm.decoders.text import valid_text
from klamm.pipeline.bodies.as_json import body_json
from klamm.pipeline.bodies.naming import naming
from klamm.pipeline.bodies.one_by_one import Bodies
from klamm.rules.json_form import to_json, uuid_text
from klamm.rules.parts import NIL, parts
from klamm.rules.subjects import error_codes
from tests.decoders.hostile import layouts, message

every_api = pytest.mark.parametrize("api", API, ids=lambda api: api.name)


def bodies(of: Layout) -> list[bytes]:
    random = Random(f"{of.api} {of.version} {of.side}")
    return [message(of, random, alike) for alike in (False, True, False)]


@every_api
def test_names_are_those_of_all_parts(api: Api) -> None:
    for of in layouts(api):
        for body in bodies(of):
            found = naming(api.key, of.version, of.side)(body)
            values, _ = read(of, body)
            named = list(parts(of.fields, of.version, values, lambda topic_id: None))
            ids = [one.get("topic_id", NIL) for one in named if not one.get("topic")]
            codes = Counter(error_codes(of.fields, of.version, values) if of.side == "response" else ())
            assert set(found.topics) == {valid_text(one["topic"]) for one in named if one.get("topic")}
            assert set(found.topic_ids) == {uuid_text(one) for one in ids if one != NIL}
            assert set(found.groups) == {valid_text(one["group"]) for one in named if "group" in one}
            assert sorted(found.errors) == sorted((code, error_name(code), n) for code, n in codes.items())
            assert all(len(set(column)) == len(column) for column in found)


@every_api
def test_json_is_that_of_the_walk(api: Api) -> None:
    for of in layouts(api):
        for body in bodies(of):
            values, _ = read(of, body)
            walked = to_json(of.fields, of.version, values)
            assert json.loads(body_json(api.key, of.version, of.side)(body)) == walked


def test_json_has_tags_that_klamm_does_not_know() -> None:
    of = next(of for of in layouts(API["Heartbeat"]) if (of.version, of.side) == (4, "request"))
    body = message(of, Random(1), alike=True)[:-1] + b"\1\x7f\2ab"
    document = json.loads(body_json(API["Heartbeat"].key, 4, "request")(body))
    assert document[UNKNOWN_TAGS] == [{"tag": 0x7F, "data": "YWI="}]


def test_json_is_the_same_without_msgspec(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an executor with nothing but pyarrow."""
    key, of = API["Produce"].key, next(layouts(API["Produce"]))
    quickly = [json.loads(body_json(key, of.version, of.side)(body)) for body in bodies(of)]
    monkeypatch.setattr(klamm.pipeline.bodies.as_json, "encode", None)
    body_json.cache_clear()
    slowly = [json.loads(body_json(key, of.version, of.side)(body)) for body in bodies(of)]
    body_json.cache_clear()
    assert slowly == quickly


def test_the_refusal_of_a_version_that_klamm_does_not_know_is_read_in_layout_0() -> None:
    body = encode({"error_code": 35, "api_keys": []}, 18, 0, "response")
    frame = response_frame(API["ApiVersions"], 0, 5, body)[4:]
    columns = Bodies(frozenset({"body"}), typed=False).columns([("frame", 18, 5, "response", frame, ())])
    assert b'"error_code":35' in columns["body"][0]


TOLD = b"\0\1" + b"\0\0\0\1" + b"\0\6orders"  # version 1, topics, and no more
GIVEN = TOLD + b"\0\0\0\2" + b"\0\0\0\0" + b"\0\0\0\3"
CONNECT = b"\0\0" + b"\0\7http://" + bytes(8)


@pytest.mark.parametrize(
    ("api", "version", "side", "values", "path", "found"),
    [
        (
            "JoinGroup", 2, "request",
            {"protocol_type": "consumer", "protocols": [{"name": "range", "metadata": TOLD}]},
            ("protocols", 0, "metadata"), {"version": 1, "topics": ["orders"]},
        ),
        (
            "JoinGroup", 2, "response", {"members": [{"member_id": "m", "metadata": TOLD}]},
            ("members", 0, "metadata"), {"version": 1, "topics": ["orders"]},
        ),
        (
            "JoinGroup", 2, "request",
            {"protocol_type": "connect", "protocols": [{"name": "compatible", "metadata": CONNECT}]},
            ("protocols", 0, "metadata"), None,
        ),
        ("JoinGroup", 2, "response", {"members": [{"metadata": CONNECT}]}, ("members", 0, "metadata"), None),
        (
            "SyncGroup", 3, "response", {"assignment": GIVEN}, ("assignment",),
            {"version": 1, "assigned_partitions": [{"topic": "orders", "partitions": [0, 3]}]},
        ),
        ("SyncGroup", 3, "response", {"assignment": b""}, ("assignment",), None),
        (
            "SyncGroup", 3, "request", {"assignments": [{"member_id": "m", "assignment": GIVEN[:-1]}]},
            ("assignments", 0, "assignment"), None,
        ),
        (
            "SyncGroup", 5, "request",
            {"protocol_type": "consumer", "assignments": [{"assignment": GIVEN + bytes(3)}]},
            ("assignments", 0, "assignment"),
            {"version": 1, "assigned_partitions": [{"topic": "orders", "partitions": [0, 3]}]},
        ),
    ],
)  # fmt: skip
def test_what_members_tell_each_other_is_typed_as_far_as_it_can_be_read(
    api: str, version: int, side: Side, values: dict[str, Any], path: tuple[str | int, ...], found: Any
) -> None:
    body = encode(values, api, version, side)
    frame = (
        request_frame(API[api], version, 7, "app", body)
        if side == "request"
        else response_frame(API[api], version, 7, body)
    )
    row: Any = ("frame", API[api].key, version, side, frame[4:], ())
    (value,) = Bodies(frozenset({"body"}), typed=True).columns([row])["body"]
    for step in path:
        value = value[step]
    assert value == found
