"""Values as JSON, and back as they were edited."""

import json
from random import Random
from typing import Any

import pytest

from klamm.decoders import API, decode, encode, layout
from klamm.decoders.interpret import Layout
from klamm.rules.json_form import NotThat, from_json, to_json
from tests.decoders.hostile import LAYOUTS, message

METADATA = API["Metadata"].response
ORDERS = {
    "brokers": [{"node_id": 1, "host": "a", "port": 9092}, {"node_id": 2, "host": "b", "port": 9092}],
    "topics": [{"name": "orders", "topic_id": bytes(range(16)), "partitions": [{"leader_id": 1}]}],
}
SASL = API["SaslAuthenticate"].request


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize(
    "hidden", [frozenset[str](), frozenset({"SECRET", "RECORDS"})], ids=["all", "hidden"]
)
def test_what_is_not_edited_is_the_same_in_every_layout(hidden: frozenset[str]) -> None:
    for of in LAYOUTS:
        values = decode(message(of, Random(1)), API[of.api].key, of.version, of.side)
        in_json = through_json(to_json(of.fields, of.version, values, hidden))
        assert from_json(of.fields, of.version, in_json, values, hidden) == values, of


def test_every_value_can_be_written_anew() -> None:
    for of in LAYOUTS:
        values = decode(message(of, Random(2)), API[of.api].key, of.version, of.side)
        in_json = through_json(to_json(of.fields, of.version, values, frozenset()))
        anew = from_json(of.fields, of.version, in_json, {}, frozenset())
        assert through_json(to_json(of.fields, of.version, anew, frozenset())) == in_json, of


def test_an_edited_field_is_changed_and_no_other() -> None:
    in_json = to_json(METADATA, 12, ORDERS)
    in_json["topics"][0]["partitions"][0]["leader_id"] = 2
    found = from_json(METADATA, 12, in_json, ORDERS)
    assert found["topics"][0]["partitions"] == [{"leader_id": 2}]
    assert found["brokers"] == ORDERS["brokers"]
    assert decode(encode(found, 3, 12, "response"), 3, 12, "response")["topics"][0]["name"] == "orders"


def test_what_is_hidden_stays_where_an_element_before_it_is_taken_out() -> None:
    produce = API["Produce"].request
    batches = [b"first", b"second one"]
    partitions = [{"index": index, "records": data} for index, data in enumerate(batches)]
    values = {"topic_data": [{"name": "t", "partition_data": partitions}]}
    in_json = to_json(produce, 9, values)
    assert in_json["topic_data"][0]["partition_data"][1]["records"] == {"bytes": 10}
    del in_json["topic_data"][0]["partition_data"][0]
    found = from_json(produce, 9, in_json, values)
    assert found["topic_data"][0]["partition_data"] == [partitions[1]]


def test_a_secret_is_told_as_its_size_and_can_be_replaced() -> None:
    values = {"auth_bytes": b"\0user\0secret"}
    assert to_json(SASL, 2, values) == {"auth_bytes": {"bytes": 12}}
    assert from_json(SASL, 2, {"auth_bytes": "AHU="}, values) == {"auth_bytes": b"\0u"}
    assert from_json(SASL, 2, {"auth_bytes": {"bytes": 12}}, values) == values


def test_records_are_told_as_their_size_and_can_be_replaced_by_base64() -> None:
    produce = API["Produce"].request
    values = {"topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": b"batch"}]}]}
    in_json = to_json(produce, 9, values)
    assert from_json(produce, 9, in_json, values)["topic_data"] == values["topic_data"]
    in_json["topic_data"][0]["partition_data"][0]["records"] = "b3RoZXI="
    other = {"name": "t", "partition_data": [{"index": 0, "records": b"other"}]}
    assert from_json(produce, 9, in_json, values)["topic_data"] == [other]


@pytest.mark.parametrize(
    ("change", "path", "reason"),
    [
        ({"brokers": 5}, "brokers", "must be an array"),
        ({"brokers": [7]}, "brokers[0]", "must be an object"),
        ({"topics": [{"topic_id": "short"}]}, "topics[0].topic_id", "22 characters"),
        ({"topics": [{"partitions": [{"leader_id": False}]}]}, "topics[0].partitions[0].leader_id", "int32"),
        ({"topics": [{"is_internal": "yes"}]}, "topics[0].is_internal", "true or false"),
        ({"unknown_tagged_fields": [{"tag": 7}]}, "unknown_tagged_fields", "base64"),
        ([], "body", "must be an object"),
    ],
)
def test_what_cannot_be_meant_is_said_with_its_path(change: Any, path: str, reason: str) -> None:
    with pytest.raises(NotThat, match=reason) as wrong:
        from_json(METADATA, 12, change, ORDERS)
    assert wrong.value.path == path


def test_text_that_is_none_survives_unedited() -> None:
    values = {"topics": [{"name": b"\xff".decode("utf-8", "surrogateescape")}]}
    in_json = json.loads(json.dumps(to_json(METADATA, 1, values)).encode())
    assert from_json(METADATA, 1, in_json, values) == values


def test_layouts_are_all_there() -> None:
    assert len(LAYOUTS) == 736
    assert isinstance(layout(3, 12, "response"), Layout)
