"""An exchange opened for the page: trees, batches and records, what klamm changed, and differences."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from klamm.client.types import Body, Exchange
from klamm.dashboards.web.chosen.differences import NoVersion, differences, versions
from klamm.dashboards.web.chosen.trees import Node, OneSide, opened
from klamm.decoders import encode
from klamm.decoders.records import MissingCodec
from tests.dashboards.web.exchanges import exchange, fetch, heartbeat, produce, raw, records
from tests.dashboards.web.test_captures import flat, named


def metadata(host: str, port: int) -> dict[str, Any]:
    broker = {"node_id": 1, "host": host, "port": port, "rack": None}
    return {"brokers": [broker], "cluster_id": "c", "controller_id": 1, "topics": []}


def rewritten(**of_body: Any) -> Exchange:
    """A Metadata exchange whose address klamm has replaced."""
    one = exchange("Metadata", 9, {"topics": []}, metadata("klamm", 19094))
    assert one.response is not None
    came = raw(metadata("kafka-1", 9092), "Metadata", 9, "response")
    return replace(one, response=replace(one.response, came=came, **of_body))


def sides(one: Exchange, content: bool = False) -> tuple[OneSide, OneSide]:
    found = opened(one, content)
    assert found.request is not None
    assert found.response is not None
    return found.request, found.response


def texts(nodes: Iterable[Node], name: str) -> list[str]:
    return [node.text for node in flat(nodes) if node.name == name]


def test_numbers_with_a_meaning_have_it_beside_them() -> None:
    request, response = sides(produce())
    assert named(request.tree, "acks").text == "-1 all in sync"
    assert named(response.tree, "error_code").text == "0 NONE"


def test_a_text_without_letters_can_be_told_from_none() -> None:
    asked = {"group_id": "g", "generation_id": 1, "member_id": "", "group_instance_id": None}
    request, _ = sides(exchange("Heartbeat", 4, asked, {"error_code": 0}))
    assert named(request.tree, "member_id").text == '""'
    assert named(request.tree, "group_instance_id").text == "null"
    joined = {"error_code": 0, "protocol_type": None, "protocol_name": None, "assignment": b""}
    asked = {"group_id": "g", "generation_id": 1, "member_id": "m", "assignments": []}
    _, response = sides(exchange("SyncGroup", 5, asked, joined))
    assert named(response.tree, "assignment").text == "empty"


def test_a_topic_id_has_its_name_beside_it() -> None:
    request, _ = sides(fetch(None))
    assert named(request.tree, "topic_id").text == "AAECAwQFBgcICQoLDA0ODw orders"


def test_a_refused_version_is_read_in_the_layout_that_the_broker_used() -> None:
    refused = encode({"error_code": 35, "api_keys": []}, "ApiVersions", 0, "response")
    one = exchange("ApiVersions", 4, {"client_software_name": "a", "client_software_version": "1"}, {})
    body = Body(len(refused), raw=raw({"error_code": 35, "api_keys": []}, "ApiVersions", 0, "response"))
    _, response = sides(replace(one, response=body))
    assert (response.reason, named(response.tree, "error_code").text) == ("", "35 UNSUPPORTED_VERSION")


def test_an_answer_in_another_version_s_layout_says_which() -> None:
    """Of Heartbeat 0, with the throttle time that version 1 has before the error."""
    answer = bytes.fromhex("00000000 001b")
    one = exchange("Heartbeat", 0, {"group_id": "g", "generation_id": 1, "member_id": "m"}, {"error_code": 0})
    _, response = sides(replace(one, response=Body(len(answer), raw=b64encode(answer).decode())))
    assert response.reason == "the body at byte 2: 4 bytes left over; the layouts of versions 1, 2, 3 fit"


def test_batches_are_a_table_with_all_that_their_headers_tell() -> None:
    data = records(b"tea", b"cake", codec="gzip", producer_id=5, producer_epoch=1, base_sequence=7)
    request, _ = sides(produce(data))
    (batch,) = request.batches
    assert (batch.topic, batch.partition, batch.offsets, batch.records) == ("orders", 3, "0-1", 2)
    assert (batch.codec, batch.bytes, batch.blank) == ("gzip", len(data), False)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (5, 1, 7)
    assert batch.first == batch.last == "2023-11-14 22:13:20.000Z"


def test_batches_of_a_topic_id_have_the_name_of_the_topic() -> None:
    _, response = sides(fetch(records(b"tea")))
    assert [(one.topic, one.partition) for one in response.batches] == [("orders", 3)]


def test_records_are_in_the_tree_only_where_they_are_asked_for() -> None:
    without, _ = sides(produce(records(b"tea")))
    assert texts(without.tree, "value") == []
    whole, _ = sides(produce(records(b"tea", b"cake")), content=True)
    assert texts(whole.tree, "value") == ['"tea"', '"cake"']
    assert texts(whole.tree, "key") == ['"k"', '"k"']
    assert texts(whole.tree, "header h") == ['"x"', '"x"']
    assert whole.batches


def test_records_that_a_capture_has_blanked_are_told_so() -> None:
    data = records(b"tea")
    header = 61
    request, _ = sides(produce(data[:header] + bytes(len(data) - header)), content=True)
    assert [batch.blank for batch in request.batches] == [True]
    assert [batch.records for batch in request.batches] == [1]


def test_a_codec_that_is_not_installed_is_told_in_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> Any:
        raise MissingCodec("zstd needs pip install zstandard")

    monkeypatch.setattr("klamm.decoders.shown.records.records", missing)
    request, _ = sides(produce(records(b"tea")), content=True)
    assert "zstd" in named(request.tree, "damaged").text


def test_addresses_are_shown_as_they_came_and_as_klamm_sent_them() -> None:
    request, response = sides(rewritten())
    assert (request.sent, request.changes) == (None, [])
    told = {change.path: (change.before, change.after) for change in response.changes}
    assert told == {"brokers[0].host": ("kafka-1", "klamm"), "brokers[0].port": ("9092", "19094")}
    assert response.sent is not None
    assert [named(one.tree, "host").text for one in (response, response.sent)] == ["kafka-1", "klamm"]


def test_what_rules_made_of_a_body_is_what_klamm_sent() -> None:
    sent = raw(metadata("klamm", 1), "Metadata", 9, "response")
    _, response = sides(rewritten(sent=sent))
    assert [change.after for change in response.changes] == ["klamm", "1"]


def test_bytes_that_differ_under_the_same_text_are_a_change() -> None:
    one = produce(records(b"tea"))
    assert one.request is not None
    damaged = records(b"tea")[:-1] + b"?"
    sent = produce(damaged).request
    assert sent is not None
    request, _ = sides(replace(one, request=replace(one.request, sent=sent.raw)))
    assert request.changes
    assert all("records" in change.path for change in request.changes)


def test_fields_that_are_new_or_gone_are_told_as_such() -> None:
    found = differences(produce(), heartbeat())
    paths = {change.path: (change.before, change.after) for change in found.request}
    assert paths["acks"] == ("-1 all in sync", None)
    assert paths["group_id"] == (None, "billing")


def test_two_exchanges_differ_in_facts_and_fields() -> None:
    found = differences(produce(acks=1), produce(acks=-1, latency_ms=7.5))
    assert [(one.path, one.before, one.after) for one in found.facts] == [("latency_ms", "2.0", "7.5")]
    assert [(one.path, one.before, one.after) for one in found.request] == [
        ("acks", "1 the leader", "-1 all in sync")
    ]
    assert (found.response, found.unknown) == ([], [])


def test_a_side_without_bytes_cannot_be_compared_and_says_why() -> None:
    bare = replace(produce(), request=Body(9, reason="only the newest are kept"))
    found = differences(bare, produce())
    assert found.unknown == ["the requests cannot be compared: only the newest are kept"]


def test_another_version_of_the_api_has_other_fields() -> None:
    found = versions(produce(), 13)
    changed = {(one.what, one.path) for one in found.request}
    assert ("added", "topic_data[].topic_id") in changed
    assert ("removed", "topic_data[].name") in changed
    assert (found.version, found.to) == (9, 13)


def test_the_other_version_is_the_newest_unless_one_is_named() -> None:
    assert versions(produce(), None).to == versions(produce(), None).last
    with pytest.raises(NoVersion, match="Produce has versions"):
        versions(produce(), 99)


def test_a_side_that_klamm_withheld_says_so() -> None:
    one = heartbeat()
    assert one.request is not None
    request, response = sides(replace(one, request=replace(one.request, withheld=True)))
    assert (request.withheld, response.withheld) == (True, False)
