"""Expressions on frames: names, kinds, unknowns, records."""

import re
from pathlib import Path
from typing import Any

import pytest

from klamm.decoders import API, DecodeError, encode
from klamm.decoders.records import Batch, MissingCodec, Record, write
from klamm.decoders.schema import Side
from klamm.rules.expressions import ExpressionError, parse
from klamm.rules.expressions.work import OFFLINE
from klamm.rules.frame import Frame, Peer

PEER = Peer("blue", "2", "10.0.0.1:5555", "k", 12)
NAMES = {b"\1" * 16: "payments"}


def frame(
    api: str, version: int, side: Side, values: dict[str, Any], request: Frame | None = None, at_ms: int = 0
) -> Frame:
    made = Frame(
        API[api], version, side, encode(values, api, version, side), "app", PEER, at_ms * 10**6, request
    )
    made.names = NAMES.get
    return made


def says(text: str, of: Frame) -> Any:
    return parse(text).on(of.api, of.version, of.side)(of)


ASKED = frame(
    "Metadata", 12, "request", {"topics": [{"name": "orders-1"}, {"name": None, "topic_id": b"\1" * 16}]}
)
ANSWER = frame("Metadata", 12, "response", {
    "controller_id": 1, "cluster_id": "x-17",
    "brokers": [{"node_id": 5, "host": "a", "port": 1, "rack": "r"}, {"node_id": 6, "host": "b", "port": 1}],
    "topics": [{
        "name": "orders-1", "topic_id": b"\2" * 16, "error_code": 0,
        "partitions": [
            {"partition_index": 0, "error_code": 6, "replica_nodes": [1, 2, 3], "isr_nodes": [1, 2]},
            {"partition_index": 1, "error_code": 0, "replica_nodes": [1, 2], "isr_nodes": [1, 2]},
        ],
    }],
}, ASKED, 250)  # fmt: skip
ALL_TOPICS = frame("Metadata", 12, "request", {"topics": None})
CUSTOMER = b'{"customer": {"id": 7, "vip": true, "tags": ["new"]}}'
RECORDS = write(Batch(codec="gzip"), [
    Record(0, 1000, b"k", CUSTOMER, (("h", b"0"), ("h", b"1"))),
    Record(1, 2000, None, b"plain"),
])  # fmt: skip


def produce(acks: int, *records: bytes | None) -> Frame:
    data = [{"index": 4 + n, "records": each} for n, each in enumerate(records)]
    return frame(
        "Produce", 9, "request", {"acks": acks, "topic_data": [{"name": "o", "partition_data": data}]}
    )


FIELDS = {
    'controller_id == 1 and cluster_id == "x-17"': True,
    "controller_id * 2 + 1 == 3": True,
    "0 < controller_id <= 1 != 2": True,
    "0 < controller_id < 1": False,
    "controller_id in (1, 2)": True,
    "controller_id not in [1, 2]": False,
    'cluster_id in ["x-17", "y"]': True,
    '"-1" in cluster_id': True,
    'matches(cluster_id, "-[0-9]+$")': True,
    r'matches(cluster_id, "^\d")': False,
    'glob(cluster_id, "x-*", "!x-17")': False,
    'cluster_id.lower().startswith("x") and endswith(cluster_id, "7")': True,
    "len(cluster_id) == 4": True,
    r'matches(cluster_id, r"-\d+$")': True,
    r'matches(cluster_id, r"-\\d+$")': False,
    "body.controller_id == 1": True,
    "any(b.node_id == 5 for b in brokers)": True,
    "all(b.node_id == 5 for b in brokers)": False,
    "all(b.node_id == 5 for b in brokers if b.node_id < 6)": True,
    "any(p.partition_index == 1 for t in topics for p in t.partitions if t.name == 'orders-1')": True,
    "any(len(p.isr_nodes) < len(p.replica_nodes) for t in topics for p in t.partitions)": True,
    "any(any(n == 3 for n in p.replica_nodes) for t in topics for p in t.partitions)": True,
    "any(3 in p.replica_nodes for t in topics for p in t.partitions)": True,
    "any(t.topic_id == 'AgICAgICAgICAgICAgICAg' for t in topics)": True,
    "any(t.is_internal for t in topics)": False,
    "any(b.node_id == t.error_code + 5 for b in brokers for t in topics)": True,
    "len(topics) == 1 and len(brokers) == 2": True,
}  # fmt: skip

UNKNOWN = {
    "cluster_authorized_operations == 1": None,  # 8-10
    "not cluster_authorized_operations == 1": None,
    "cluster_authorized_operations is None": True,
    "cluster_authorized_operations == 1 or controller_id == 1": True,
    "cluster_authorized_operations == 1 and controller_id == 1": None,
    "cluster_authorized_operations == 1 and controller_id == 2": False,
    "error_code == 0": None,  # 13+
    "any(b.rack == 'r' for b in brokers)": True,
    "any(b.rack == 's' for b in brokers)": None,
    "all(b.rack == 'r' for b in brokers)": None,
    "all(b.rack == 's' for b in brokers)": False,
    "any(b.rack is None for b in brokers)": True,
    "controller_id / 0 == 1": None,
    "principal == 'User:a'": None,
    "principal is None": True,
}  # fmt: skip

EXCHANGE = {
    'api == "Metadata" and api == Metadata and api in (TopicMetadata, Fetch)': True,
    'version == 12 and side == "response"': True,
    'client_id == "app" and client == "10.0.0.1" and broker == "2" and cluster == "blue"': True,
    f"size == {len(ANSWER.body)} and response_size == size and request_size == {len(ASKED.body)}": True,
    "latency_ms == 250": True,
    "duration == 250 and not duration != latency_ms": True,
    "connection == 12 and client_port == 5555": True,
    "connection in [1, 2] or client_port < 1024": False,
    "any(t.name == 'orders-1' for t in request.topics)": True,
    "error == NOT_LEADER_OR_FOLLOWER": True,
    "error == NotLeaderForPartitionCode": True,
    "error != NONE": True,
    "error in (LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION)": False,
    "not error == LEADER_NOT_AVAILABLE": True,
    "topic == 'orders-1' and partition == 1": True,
    "glob(topic, 'orders-*')": True,
    "partition > 1": False,
    "all(p.error_code == NONE for t in topics for p in t.partitions)": False,
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), (FIELDS | UNKNOWN | EXCHANGE).items())
def test_a_metadata_answer_is_asked(text: str, expected: bool | None) -> None:
    assert says(text, ANSWER) is expected


@pytest.mark.parametrize(("text", "expected"), {
    "topic == 'orders-1'": True,
    "topic == 'payments'": True,
    "topic == 'other'": False,
    "request.topics is not None": True,
    "len(topics) == 2 and request_size == size": True,
}.items())  # fmt: skip
def test_a_request_is_asked_and_topic_ids_have_their_names(text: str, expected: bool) -> None:
    assert says(text, ASKED) is expected


def test_a_topic_id_that_nobody_has_named_is_unknown() -> None:
    request = frame("Metadata", 12, "request", {"topics": [{"name": None, "topic_id": b"\7" * 16}]})
    assert says("topic == 'orders-1'", request) is None
    assert says("any(t.topic_id != 'AAAAAAAAAAAAAAAAAAAAAA' for t in topics)", request) is True


@pytest.mark.parametrize("text", ["topic == 'a'", "any(t.name == 'a' for t in topics)", "len(topics) == 0"])
def test_a_null_array_is_unknown(text: str) -> None:
    assert says(text, ALL_TOPICS) is None
    assert says("topics is None", ALL_TOPICS) is True


def test_an_answer_that_names_no_group_is_about_that_of_its_request() -> None:
    request = frame("Heartbeat", 4, "request", {"group_id": "billing", "member_id": "m"})
    answer = frame("Heartbeat", 4, "response", {"error_code": 27}, request)
    assert says("group == 'billing' and error == REBALANCE_IN_PROGRESS", answer) is True


def test_what_is_asked_of_a_request_that_is_not_there_is_unknown() -> None:
    answer = frame("Heartbeat", 4, "response", {"error_code": 27})
    for text in ("group == 'billing'", "request.generation_id == 1", "latency_ms > 1", "request_size > 1"):
        assert says(text, answer) is None


def test_the_topics_that_leave_a_fetch_session_are_not_those_of_the_request() -> None:
    request = frame("Fetch", 12, "request", {"forgotten_topics_data": [{"topic": "gone", "partitions": [0]}]})
    assert says("topic == 'gone'", request) is False


def test_a_tagged_field_that_is_not_there_has_its_default() -> None:
    answer = frame(
        "Produce", 10, "response", {"responses": [{"name": "a", "partition_responses": [{"index": 0}]}]}
    )
    path = "p.current_leader.leader_id == -1 for r in responses for p in r.partition_responses"
    assert says(f"any({path})", answer) is True
    assert says("len(node_endpoints) == 0", answer) is True


def test_a_variable_may_have_the_name_of_anything() -> None:
    assert says("any(topic.name == 'orders-1' for topic in topics)", ANSWER) is True
    assert says("any(record.node_id == 5 for record in brokers)", ANSWER) is True


def test_two_comparisons_look_at_several_values_independently() -> None:
    topics = [
        {"name": "a", "partition_data": [{"index": 0}]},
        {"name": "b", "partition_data": [{"index": 3}]},
    ]
    asked = frame("Produce", 9, "request", {"topic_data": topics})
    assert says("topic == 'a' and partition == 3", asked) is True
    of_one = "any(t.name == {!r} and p.index == 3 for t in topic_data for p in t.partition_data)"
    assert says(of_one.format("a"), asked) is False
    assert says(of_one.format("b"), asked) is True


def test_nothing_holds_for_any_of_an_empty_array_and_everything_for_all() -> None:
    none = frame("Metadata", 12, "response", {"topics": [], "brokers": []})
    assert says("any(b.node_id == 5 for b in brokers)", none) is False
    assert says("all(b.node_id == 5 for b in brokers)", none) is True
    assert says("error != NONE", none) is False


def test_record_batches_are_compared_with_nothing_but_their_size_and_absence() -> None:
    of = "any({} for t in topic_data for p in t.partition_data)"
    asked = produce(-1, None, RECORDS)
    assert says(of.format("p.records is None"), asked) is True
    assert says(of.format(f"len(p.records) == {len(RECORDS)}"), asked) is True
    with pytest.raises(ExpressionError, match="record batches"):
        parse(of.format("p.records == b'x'")).on(asked.api, 9, "request")


def test_markers_of_transactions_are_no_records() -> None:
    marker = write(Batch(is_control=True), [Record(key=b"k")])
    assert says("record.key == 'k'", produce(-1, marker)) is False
    assert says("record.key == 'k'", produce(-1, marker, RECORDS)) is True


def test_records_of_a_codec_that_is_not_installed_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise MissingCodec("not installed")

    monkeypatch.setattr("klamm.rules.expressions.content.records", missing)
    assert says("record.key == 'k'", produce(-1, RECORDS)) is None


def test_strings_that_are_not_utf_8_match_what_they_can() -> None:
    answer = frame("Metadata", 12, "response", {"cluster_id": "k\udcff"})
    assert says('matches(cluster_id, "^k")', answer) is True
    assert says('cluster_id == "k"', answer) is False


OF_RECORDS = {
    "record.key == 'k'": True,
    "record.key == b'k' and record.offset == 0 and record.timestamp == 1000": True,
    "record.key == 'k' and record.value == 'plain'": None,  # the second has no key
    "record.key == 'k' and record.offset == 1": None,
    "record.key == 'k' and record.offset == 2": False,
    "record.key is None and record.value == 'plain'": True,
    "record.headers['h'] == '1'": True,
    "record.headers['h'] == '0'": None,
    "record.headers['other'] is None": True,
    "json(record.value).customer.id == 7": True,
    "json(record.value)['customer']['tags'][0] == 'new'": True,
    "json(record.value).customer.id in [7, 8] and json(record.value).customer.vip": True,
    "'new' in json(record.value).customer.tags": True,
    "json(record.value).customer.id + 1 == 8": True,
    "json(record.value).customer.id == '7'": None,
    "json(record.value).customer.id.deeper.still == 7": None,
    "json(record.value).customer is None": True,
    "matches(record.value, '^pl') and len(record.value) == 5": True,
    "acks == 1 and record.key == 'k'": False,
    "acks == -1 and record.key == 'k'": True,
    "not record.key == 'k'": None,
    "not record.value == 'plain'": True,
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), OF_RECORDS.items())
def test_records_are_asked_and_any_is_enough(text: str, expected: bool | None) -> None:
    assert says(text, produce(-1, None, RECORDS)) is expected


def test_without_records_nothing_holds_for_any() -> None:
    assert says("record.key == 'k'", produce(-1, None)) is False
    assert says("acks == -1 or record.key == 'k'", produce(-1, None)) is False


def test_records_that_cannot_be_read_are_unknown_but_for_those_before() -> None:
    broken = RECORDS[:-3] + b"xxx"
    assert says("record.key == 'k'", produce(-1, broken)) is None
    assert says("record.key == 'k'", produce(-1, RECORDS, broken)) is True


def test_records_are_not_read_where_the_rest_is_false() -> None:
    assert says("acks == 1 and record.key == 'k'", produce(-1, b"\xff" * 80)) is False


def test_records_that_decompress_to_too_much_are_unknown() -> None:
    of = produce(-1, write(Batch(codec="gzip"), [Record(key=b"k", value=bytes(17 << 20))]))
    assert parse("record.key == 'k'", OFFLINE).on(of.api, of.version, of.side)(of) is None


def test_values_are_reckoned_too() -> None:
    for text, value in {
        "controller_id + 1": 2,
        "'a'": "a",
        "cluster_id": "x-17",
        "True": True,
        "-1.5": -1.5,
    }.items():
        assert parse(text).value_on(ANSWER.api, 12, "response")(ANSWER) == value


def test_only_what_is_asked_is_picked() -> None:
    metadata = API["Metadata"]
    expression = parse("controller_id == 1 and any(b.port > 1 for b in brokers) and request.topics is None")
    assert expression.paths(metadata, 12, "response") == (("controller_id",), ("brokers", "port"))
    asked = parse("acks == 1 and any(p.index > 3 for t in topic_data for p in t.partition_data)")
    assert asked.paths(API["Produce"], 9, "request") == (("acks",), ("topic_data", "partition_data", "index"))


def test_the_sides_of_an_expression_are_those_where_all_of_it_is_there() -> None:
    metadata = API["Metadata"]
    assert parse("controller_id == 1").sides(metadata, 12) == ("response",)
    assert parse("controller_id == 1").sides(metadata, 0) == ()
    assert parse("topic == 'a'").sides(metadata, 12) == ("request", "response")
    assert parse("latency_ms > 5").sides(metadata, 12) == ("response",)
    assert parse("allow_auto_topic_creation").sides(metadata, 12) == ("request",)


def test_a_body_that_cannot_be_read_is_a_decode_error() -> None:
    broken = Frame(API["Metadata"], 12, "response", b"\0\0\0", None, PEER, 0)
    with pytest.raises(DecodeError):
        says("controller_id == 1", broken)
    assert says("version == 12", broken) is True


def test_expressions_are_values() -> None:
    one, other = parse("acks==1   and (size>2)"), parse("acks == 1 and size > 2")
    assert one == other
    assert hash(one) == hash(other)
    assert str(one) == "acks == 1 and size > 2"
    assert parse("acks == 1") != parse("acks == True")


@pytest.mark.parametrize("text", [
    "not (a and b) or c", "not a and b", "(a or b) and c", "a - (b - c) - d > -(a + b) * -2", "not (not a)",
    "-1 * (2 + 3) == a", "(a == b) == True", "(a is None) == b", "a // b % c / d == 1",
    "any(x.b for x in a)", "all(x for y in a if y or z for x in y.b)", "a.b['c d'][0] is not None",
    "'\\'\"\\n' in [1, -2, 'ä', b'\\xff', True, 1.5, NONE, Fetch]", "matches(lower(a), '\\\\d+')",
])  # fmt: skip
def test_the_text_of_a_tree_parses_to_the_same_tree(text: str) -> None:
    tree = parse(text)
    assert parse(str(tree)) == tree
    assert str(parse(str(tree))) == str(tree)


GUIDE = (Path(__file__).parents[3] / "docs" / "expressions.md").read_text()
EXAMPLES = re.findall(r"^\| `([^`]+)` \|", GUIDE.split("## Examples")[1].split("##")[0], re.MULTILINE)


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_of_the_guide_fit_some_api(text: str) -> None:
    expression = parse(text)
    assert any(expression.sides(api, api.versions.last) for api in API)


def test_the_guide_has_examples() -> None:
    assert len(EXAMPLES) > 5
