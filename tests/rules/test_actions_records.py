"""corrupt, duplicate, set and require: what is changed, and that all around it stays right."""

from typing import Any

import pytest

from klamm.decoders import API, DecodeError, decode
from klamm.decoders.records import CODECS
from klamm.rules.actions import ACTIONS
from klamm.rules.actions.assign import constant
from klamm.rules.frame import Frame
from klamm.rules.orders import Answer, Edit, Log, OnAnswer, Order, Raw
from tests.rules.acting import (
    acted,
    answers,
    asks,
    batch_of,
    edit,
    fetched,
    on_answer,
    produced,
    produces,
    read,
)

codecs = pytest.mark.parametrize("codec", CODECS[:5])
magics = pytest.mark.parametrize("magic", [0, 1, 2])
VALUES = b"one", b"two", None, b"three" * 50


def corrupted(version: int, *data: bytes, **how: Any) -> list[bytes]:
    frame = produces(version, *data)
    return produced(frame, acted(frame, "corrupt", **how))


# corrupt


@codecs
def test_a_wrong_checksum_is_all_that_is_wrong(codec: str) -> None:
    (data,) = corrupted(9, batch_of(*VALUES, codec=codec), what="crc")
    ((batch, rows),) = read(data)
    assert not batch.crc_ok
    assert [row.value for row in rows] == list(VALUES)


@magics
def test_a_checksum_is_wrong_in_every_format(magic: int) -> None:
    (data,) = corrupted(2, batch_of(b"a", b"b", magic=magic), what="crc")
    assert [batch.crc_ok for batch, _ in read(data)] == [False] * (1 if magic == 2 else 2)


def test_random_bytes_in_records_stand_under_the_old_checksum() -> None:
    before = batch_of(b"x" * 500)
    (data,) = corrupted(9, before, what="records", size=20)
    assert len(data) == len(before)
    assert data[:61] == before[:61]
    assert sum(one != other for one, other in zip(data, before, strict=True)) == 20


@codecs
@pytest.mark.parametrize("version", [9, 13])
def test_random_bytes_are_appended_to_values_under_a_right_checksum(codec: str, version: int) -> None:
    before = batch_of(*VALUES, codec=codec, producer_id=5, producer_epoch=1, base_sequence=9)
    (data,) = corrupted(version, before, what="value", size=7)
    ((batch, rows),) = read(data)
    assert batch.crc_ok
    assert (batch.base_offset, batch.last_offset, batch.codec) == (100, 103, codec)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (5, 1, 9)
    for row, value in zip(rows, VALUES, strict=True):
        assert (row.value and row.value[:-7]) == value
        assert row.key == b"key"
        assert row.headers == (("h", b"1"),)


@pytest.mark.parametrize(
    ("value", "after"),
    [
        (b"\0\0\0\0\7payload", b"\0\0\0\3\xe7payload"),
        (b"payload", b"\0\0\0\3\xe7payload"),
        (b"\0\1", b"\0\0\0\3\xe7"),
    ],
)
def test_another_schema_id_stands_where_the_schemas_does(value: bytes, after: bytes) -> None:
    (data,) = corrupted(9, batch_of(value), what="schema id", schema_id=999)
    ((batch, (row,)),) = read(data)
    assert batch.crc_ok
    assert row.value == after


def test_some_of_the_values_change_as_the_seed_says() -> None:
    batch = batch_of(*[b"v"] * 300)
    (one,), (again,) = (corrupted(9, batch, what="value", share=0.3) for _ in range(2))
    assert one == again
    changed = sum(row.value != b"v" for row in read(one)[0][1])
    assert 60 < changed < 120


def test_what_is_fetched_is_corrupted_in_the_answer_up_to_where_the_broker_cut_it() -> None:
    whole, cut = batch_of(b"a"), batch_of(b"b" * 100)[:80]
    request, answer = fetched(12, whole + cut, b"")
    orders = acted(request, "corrupt", what="value", size=3)
    rows = edit(on_answer(orders, answer), answer)["responses"][0]["partitions"]
    data = rows[0]["records"]
    assert data.endswith(cut)
    assert len(data) == len(whole) + 3 + len(cut)
    assert rows[1]["records"] == b""
    assert edit(acted(answer, "corrupt", what="value", size=3), answer)["responses"][0]["partitions"] == rows


def test_only_the_partitions_in_question_are_corrupted() -> None:
    batch = batch_of(b"a")
    frame = produces(9, batch, batch, only=lambda part: part == {"topic": "orders", "partition": 1})
    first, second = produced(frame, acted(frame, "corrupt"))
    assert first == batch
    assert second != batch


def test_control_batches_and_empty_ones_stay_as_they_are() -> None:
    control = batch_of(b"a", is_control=True)
    frame = produces(9, control, b"")
    assert acted(frame, "corrupt", what="value") == []


def test_a_field_gets_a_random_value_of_its_type() -> None:
    request = asks("Metadata", 9)
    row = {"partition_index": 0, "leader_id": 1, "replica_nodes": [1]}
    answer = answers(request, {"topics": [{"name": "t", "partitions": [row, row]}]})
    for field, was in (("leader_id", 1), ("replica_nodes", [1]), ("leader_epoch", -1)):
        orders = acted(request, "corrupt", what="field", field=f"topics.partitions.{field}")
        rows = edit(on_answer(orders, answer), answer)["topics"][0]["partitions"]
        assert all(found[field] != was for found in rows)


@pytest.mark.parametrize(
    "api", ["Metadata", "Produce", "Fetch", "JoinGroup", "CreateTopics", "DescribeCluster"]
)
@pytest.mark.parametrize("seed", range(5))
def test_any_field_can_be_random(api: str, seed: int) -> None:
    from klamm.decoders.schema import all_fields

    version = API[api].versions.last
    frame = asks(api, version)
    for side, fields in (("request", API[api].request), ("response", API[api].response)):
        on = frame if side == "request" else answers(frame)
        for path, _ in all_fields(fields, version):
            orders = acted(on, "corrupt", what="field", field=".".join(path), seed=seed)
            for order in orders:
                if isinstance(order, Edit):
                    edit([order], on)


def test_bytes_anywhere_change_and_the_end_goes_missing() -> None:
    request = asks("Metadata", 9)
    answer = answers(request, {"cluster_id": "c" * 100})
    ((noise,), (short,)) = (
        on_answer(acted(request, "corrupt", what=what, size=12), answer) for what in ("body", "truncate")
    )
    assert isinstance(noise, Raw)
    assert isinstance(short, Raw)
    assert sum(one != other for one, other in zip(noise.body, answer.body, strict=True)) == 12
    assert short.body == answer.body[:-12]
    with pytest.raises(DecodeError):
        decode(short.body, 3, 9, "response")
    (own,) = acted(request, "corrupt", what="truncate", size=1, of="request")
    assert own == Raw(request.body[:-1])


def test_where_nothing_can_be_corrupted_is_said() -> None:
    corrupt = ACTIONS["corrupt"]
    fits = [
        corrupt(what=what, **more).fits(API[api], 9, "request")  # type: ignore[call-arg, attr-defined]
        for what, api, more in (
            ("crc", "Produce", {}), ("crc", "Fetch", {}), ("body", "Metadata", {}), ("crc", "Metadata", {}),
            ("field", "Metadata", {"field": "topics.partitions.leader_id"}),
            ("field", "Metadata", {"field": "leader"}),
        )
    ]  # fmt: skip
    assert [reason is None for reason in fits] == [True, True, True, False, True, False]
    assert fits[3] == "Metadata v9 carries no records"
    assert fits[5] == "Metadata v9 has no field leader"


# duplicate


@codecs
def test_produced_records_come_twice_at_offsets_of_their_own(codec: str) -> None:
    frame = produces(9, batch_of(b"a", b"b", codec=codec))
    (data,) = produced(frame, acted(frame, "duplicate", records=True))
    ((batch, rows),) = read(data)
    assert batch.crc_ok
    assert [row.value for row in rows] == [b"a", b"a", b"b", b"b"]
    assert [row.offset for row in rows] == [100, 101, 102, 103]
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (100, 103, 4)


def test_an_idempotent_batch_with_duplicates_is_one_of_any_producer_and_a_transactional_one_stays() -> None:
    numbers = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 3}
    idempotent = produces(9, batch_of(b"a", **numbers))
    (data,) = produced(idempotent, acted(idempotent, "duplicate", records=True))
    ((batch, rows),) = read(data)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
    assert len(rows) == 2
    transactional = produces(9, batch_of(b"a", is_transactional=True, **numbers))
    assert acted(transactional, "duplicate", records=True) == []


def test_fetched_records_come_twice_at_their_own_offset() -> None:
    request, answer = fetched(12, batch_of(b"a", b"b"))
    orders = on_answer(acted(request, "duplicate", records=True), answer)
    data = edit(orders, answer)["responses"][0]["partitions"][0]["records"]
    ((batch, rows),) = read(data)
    assert [(row.offset, row.value) for row in rows] == [(100, b"a"), (100, b"a"), (101, b"b"), (101, b"b")]
    assert batch.last_offset == 101
    assert batch.crc_ok


# set


def assigned(frame: Frame, **fields: str) -> list[Order]:
    return acted(frame, "set", {name.replace("__", "."): value for name, value in fields.items()})


def test_a_field_of_the_request_is_set_and_the_lengths_follow() -> None:
    frame = produces(9, batch_of(b"a"))
    values = edit(assigned(frame, acks="1", topic_data__name="elsewhere"), frame)
    assert values["acks"] == 1
    assert values["topic_data"][0]["name"] == "elsewhere"
    assert values["topic_data"][0]["partition_data"][0]["records"] == batch_of(b"a")


def test_fields_of_request_and_answer_are_set_by_one_action() -> None:
    request = asks("Metadata", 9, {"topics": [{"name": "t"}]})
    row = {"partition_index": 0, "leader_id": 1}
    answer = answers(request, {"topics": [{"name": "t", "partitions": [row, row]}]})
    orders = assigned(request, allow_auto_topic_creation="false", topics__partitions__leader_id="-1")
    assert edit(orders, request)["allow_auto_topic_creation"] is False
    rows = edit(on_answer(orders, answer), answer)["topics"][0]["partitions"]
    assert [found["leader_id"] for found in rows] == [-1, -1]


def test_only_the_parts_in_question_are_set_and_what_is_above_them_always() -> None:
    frame = produces(9, b"", b"", only=lambda part: part.get("partition") in (None, 1) and "topic" in part)
    values = edit(assigned(frame, acks="0", topic_data__partition_data__index="9"), frame)
    assert values["acks"] == 0
    assert [row["index"] for row in values["topic_data"][0]["partition_data"]] == [0, 9]


def test_a_value_may_be_an_expression_over_the_frame() -> None:
    frame = asks("Fetch", 12, {"max_bytes": 1000, "max_wait_ms": 500})
    assert edit(assigned(frame, max_bytes="=max_wait_ms * 2 + 1"), frame)["max_bytes"] == 1001


def test_a_field_that_already_is_so_is_no_edit() -> None:
    assert assigned(produces(9, b"", acks=1), acks="1") == []


@pytest.mark.parametrize(
    ("api", "path", "text", "value"),
    [
        ("Produce", "acks", "-1", -1),
        ("Produce", "transactional_id", "null", None),
        ("Produce", "transactional_id", "007", "007"),
        ("Metadata", "allow_auto_topic_creation", "true", True),
        ("DeleteTopics", "topic_names", "[a, b]", ["a", "b"]),
        ("Metadata", "topics", "[]", []),
        ("SaslAuthenticate", "auth_bytes", "secret", b"secret"),
        ("Fetch", "topics.topic_id", "AAECAwQFBgcICQoLDA0ODw", bytes(range(16))),
        ("Fetch", "topics.topic_id", "00010203-0405-0607-0809-0a0b0c0d0e0f", bytes(range(16))),
    ],
)
def test_text_is_read_by_the_type_of_its_field(api: str, path: str, text: str, value: Any) -> None:
    from klamm.decoders.schema import all_fields

    versions = API[api].versions
    found = [
        (field, version)
        for version in range(versions.first, versions.last + 1)
        for at, field in all_fields(API[api].request, version)
        if ".".join(at) == path and (text != "null" or version in field.null)
    ]
    field, version = found[-1]
    assert constant(text, field, version) == value


@pytest.mark.parametrize(
    ("api", "fields", "reason"),
    [
        ("Produce", {"ack": "1"}, "Produce v9 has no field ack; did you mean acks?"),
        ("Produce", {"acks": "99999"}, "acks: 99999 is not from -32768 to 32767 (int16)"),
        ("Produce", {"acks": "one"}, "acks: 'one' is not a whole number"),
        ("Produce", {"acks": "null"}, "acks: cannot be null in version 9"),
        ("Produce", {"topic_data": "x"}, "topic_data: holds other fields: name one"),
        ("Metadata", {"allow_auto_topic_creation": "yes"}, "allow_auto_topic_creation: 'yes' is neither"),
        ("Fetch", {"max_bytes": "=max_byte"}, 'max_bytes: unknown field "max_byte" (column 1)'),
        ("Heartbeat", {"error_code": "REBALANCE_IN_PROGRESS"}, None),
    ],
)  # fmt: skip
def test_what_cannot_be_set_is_said(api: str, fields: dict[str, str], reason: str | None) -> None:
    version = min(9, API[api].versions.last)
    found = ACTIONS["set"](fields).fits(API[api], version, "request")  # type: ignore[call-arg, attr-defined]
    assert found == reason if reason is None else found.startswith(reason)


def test_rules_with_fields_are_equal_and_can_be_told_apart() -> None:
    one, same, other = (ACTIONS["set"](fields) for fields in ({"acks": "1"}, {"acks": "1"}, {"acks": "0"}))  # type: ignore[call-arg]
    assert one == same
    assert hash(one) == hash(same)
    assert one != other


# require


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ({"client_id": ("team-*",)}, "client id 'app', the rule requires team-*"),
        ({"client_id": ("app",)}, None),
        ({"acks": ("all",)}, "acks=1, the rule requires acks=all"),
        ({"acks": ("all", "1")}, None),
        ({"compression": ("zstd", "lz4")}, "compression=gzip, the rule requires compression=zstd or lz4"),
        ({"compression": ("gzip",)}, None),
        ({"max_batch": 50}, "a batch of 110 bytes, the rule allows 50"),
        ({"max_batch": 5000}, None),
        ({"max_request": 20}, "a request of 152 bytes, the rule allows 20"),
        ({"max_request": 2000}, None),
        ({"oldest": 10}, "version 9, the rule requires 10 or newer"),
        ({"oldest": 9}, None),
    ],
)
def test_what_is_not_as_required_is_refused(policy: dict[str, Any], reason: str | None) -> None:
    frame = produces(9, batch_of(b"a" * 500, codec="gzip"), acks=1)
    orders = acted(frame, "require", **policy)
    if reason is None:
        assert orders == []
        return
    log, answer = orders
    assert isinstance(log, Log)
    size = {"110": str(len(batch_of(b"a" * 500, codec="gzip"))), "152": str(len(frame.body))}
    for text, actual in size.items():
        reason = reason.replace(f" {text} bytes", f" {actual} bytes")
    assert log.message == f"refused: {reason}"
    assert isinstance(answer, Answer)
    assert answer.values is not None
    assert answer.values["responses"][0]["partition_responses"][0]["error_code"] == 44


def test_a_requirement_looks_at_the_partitions_in_question_and_not_at_what_says_who_asks() -> None:
    frame = produces(9, b"", batch_of(b"a"), only=lambda part: part.get("partition") == 0)
    assert acted(frame, "require", compression=("gzip",)) == []
    assert acted(asks("ApiVersions", 3), "require", client_id=("x",)) == []


def test_a_requirement_in_part_of_a_request_refuses_that_part() -> None:
    frame = produces(9, batch_of(b"a"), batch_of(b"b"), only=lambda part: part.get("partition") == 1)
    orders = acted(frame, "require", compression=("gzip",))
    assert [type(order) for order in orders] == [Log, Edit, OnAnswer]
