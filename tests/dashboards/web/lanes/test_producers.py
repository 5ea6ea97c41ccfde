"""Producers: epochs, transactions, who fenced whom, and sequence numbers."""

from __future__ import annotations

from typing import Any

import pytest

from klamm.client.types import Exchange
from klamm.dashboards.web.lanes.producers import Sending
from klamm.decoders.records import Batch, Record, write
from tests.dashboards.web.lanes.made import Client, Sheet, at

A, B = Client("app-a", 1), Client("app-b", 2, host="10.0.0.8")
OLD_EPOCH, CONCURRENT, NOT_LEADER, OUT_OF_ORDER = 47, 51, 6, 45


def init(
    who: Client, when: float, number: int, epoch: int, error: int = 0, name: str | None = "t", **request: Any
) -> Exchange:
    sent = {"transactional_id": name, "transaction_timeout_ms": 60_000, **request}
    answer = {"error_code": error, "producer_id": number, "producer_epoch": epoch}
    return who.asks(when, "InitProducerId", 4, sent, answer)


def add(who: Client, when: float, number: int, epoch: int, error: int = 0) -> Exchange:
    prefix = "v3_and_below_"
    request = {
        f"{prefix}transactional_id": "t", f"{prefix}producer_id": number, f"{prefix}producer_epoch": epoch,
        f"{prefix}topics": [{"name": "orders", "partitions": [0, 1]}],
    }  # fmt: skip
    results = [{"partition_index": each, "partition_error_code": error} for each in (0, 1)]
    answer = {"results_by_topic_v3_and_below": [{"name": "orders", "results_by_partition": results}]}
    return who.asks(when, "AddPartitionsToTxn", 3, request, answer)


def end(who: Client, when: float, number: int, epoch: int, committed: bool = True, **answer: Any) -> Exchange:
    request = {
        "transactional_id": "t",
        "producer_id": number,
        "producer_epoch": epoch,
        "committed": committed,
    }
    return who.asks(when, "EndTxn", 5 if answer else 3, request, {"error_code": 0, **answer})


def batch(number: int, epoch: int, sequence: int, count: int = 5, **more: Any) -> bytes:
    head = Batch(producer_id=number, producer_epoch=epoch, base_sequence=sequence, **more)
    return write(head, [Record(offset=each) for each in range(count)])


def produce(
    who: Client, when: float, records: bytes | None, error: int = 0, name: str | None = None, part: int = 0
) -> Exchange:
    data = [{"name": "orders", "partition_data": [{"index": part, "records": records}]}]
    request = {"transactional_id": name, "acks": -1, "timeout_ms": 1000, "topic_data": data}
    told = [{"name": "orders", "partition_responses": [{"index": part, "error_code": error}]}]
    return who.asks(when, "Produce", 9, request, {"responses": told})


def test_a_transaction_is_a_bar_from_its_first_request_to_its_end() -> None:
    offsets = {"transactional_id": "t", "producer_id": 7, "producer_epoch": 0, "group_id": "g"}
    part = {"partition_index": 0, "committed_offset": 12, "committed_metadata": ""}
    commit = {**offsets, "topics": [{"name": "orders", "partitions": [part]}]}
    done = {"topics": [{"name": "orders", "partitions": [{"partition_index": 0, "error_code": 0}]}]}
    sheet = Sheet(
        Sending(),
        [
            init(A, 0.0, 7, 0),
            add(A, 1.0, 7, 0),
            produce(A, 2.0, batch(7, 0, 0, is_transactional=True), name="t"),
            A.asks(3.0, "AddOffsetsToTxn", 3, offsets, {"error_code": 0}),
            A.asks(4.0, "TxnOffsetCommit", 3, commit, done),
            end(A, 5.0, 7, 0),
            add(A, 6.0, 7, 0),
            end(A, 7.0, 7, 0, committed=False),
        ],
    )
    first, second = sheet.of("transaction")
    assert (first.begin, first.end, first.open) == (at(1.0), at(5.0), False)
    assert first.text == "transaction, committed after 4.0 s: 1 batch, 2 partitions, offsets of g"
    assert second.text == "transaction, aborted after 1.0 s: 2 partitions"
    assert sheet.one("commit").text == "offsets of group g: orders [0] at 12"
    (lane,) = (lane for lane in sheet.lanes.values() if lane.member)
    assert (lane.label, lane.group) == ("app-a · 7/0", "kafka/id/t")
    assert lane.where == (
        'client_id == "app-a" and client == "10.0.0.7" and api in '
        "(InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn, Produce)"
    )
    assert sheet.lanes["kafka/id/t", ""].where == 'transactional_id == "t"'


def test_a_transaction_that_is_open_stays_open() -> None:
    one = Sheet(Sending(), [init(A, 0.0, 7, 0), add(A, 1.0, 7, 0)]).one("transaction")
    assert (one.open, one.text) == (True, "transaction, open")


def test_a_producer_is_fenced_by_the_next_one_of_its_transactional_id() -> None:
    sheet = Sheet(
        Sending(),
        [
            init(A, 0.0, 7, 0),
            add(A, 1.0, 7, 0),
            init(B, 2.0, 7, 1),
            end(B, 3.0, 7, 1),
            add(A, 4.5, 7, 0, OLD_EPOCH),
        ],
    )
    old, new = (member for _, member in sheet.lanes if member)
    fenced = sheet.one("fenced")
    assert (fenced.member, fenced.key) == (old, "k2")
    assert fenced.text == (
        "fenced by app-b at 10.0.0.8 with epoch 1; this one has epoch 0; its open transaction was aborted"
    )
    assert "; fences app-a at 10.0.0.7" in next(mark.text for mark in sheet.of("init") if mark.member == new)
    assert sheet.one("transaction").text == (
        "transaction, aborted, for app-b at 10.0.0.8 took its place after 1.0 s: 2 partitions"
    )
    refused = sheet.of("add")[1]
    assert (refused.member, refused.error) == (old, "INVALID_PRODUCER_EPOCH")
    assert refused.text.endswith(
        "INVALID_PRODUCER_EPOCH: fenced by app-b at 10.0.0.8 with epoch 1 2.5 s before"
    )


def test_a_producer_without_an_open_transaction_is_replaced() -> None:
    sheet = Sheet(Sending(), [init(A, 0.0, 7, 0), init(B, 2.0, 7, 1)])
    assert (sheet.of("fenced"), len(sheet.of("replaced"))) == ([], 1)
    epochs = sheet.of("epoch")
    assert [(mark.epoch, mark.open) for mark in epochs] == [(0, False), (1, True)]


def test_a_producer_that_takes_its_next_epoch_is_the_same_one() -> None:
    sheet = Sheet(Sending(), [init(A, 0.0, 7, 0), init(A, 1.0, 7, 1, producer_id=7, producer_epoch=0)])
    assert len([member for _, member in sheet.lanes if member]) == 1
    assert sheet.one("epoch").text == "producer id 7, epochs 0 to 1"
    assert sheet.of("fenced") + sheet.of("replaced") == []


def test_the_epoch_that_a_transaction_ends_with_is_of_the_same_producer() -> None:
    sheet = Sheet(
        Sending(),
        [
            init(A, 0.0, 7, 0),
            add(A, 1.0, 7, 0),
            end(A, 2.0, 7, 0, producer_id=7, producer_epoch=1),
            add(A, 3.0, 7, 1),
        ],
    )
    assert len([member for _, member in sheet.lanes if member]) == 1
    assert len(sheet.of("transaction")) == 2


def test_a_transaction_that_took_too_long_explains_the_old_epoch() -> None:
    sheet = Sheet(
        Sending(), [init(A, 0.0, 7, 0), add(A, 1.0, 7, 0), add(A, 70.0, 7, 0, OLD_EPOCH), end(A, 71.0, 7, 0)]
    )
    why = "its transaction was open for 69 s, transaction.timeout.ms is 60 s: the coordinator has aborted it"
    assert sheet.of("add")[1].text.endswith(why)
    assert sheet.one("transaction").error == "INVALID_PRODUCER_EPOCH"


def test_who_waits_for_its_own_last_transaction_has_no_error() -> None:
    sheet = Sheet(Sending(), [init(A, 0.0, 7, 0), add(A, 1.0, 7, 0, CONCURRENT)])
    assert (sheet.one("waits").error, sheet.of("transaction")) == ("", [])


def test_attempts_to_get_a_producer_id_are_on_the_lane_that_gets_it() -> None:
    sheet = Sheet(Sending(), [init(A, 0.0, -1, -1, CONCURRENT), init(A, 1.0, -1, -1, 14), init(A, 2.0, 7, 0)])
    assert len([member for _, member in sheet.lanes if member]) == 1
    assert [mark.error for mark in sheet.of("init")] == ["COORDINATOR_LOAD_IN_PROGRESS", ""]


def test_sequences_are_followed_for_each_partition() -> None:
    sheet = Sheet(
        Sending(),
        [
            produce(A, 0.0, batch(9, 0, 0)),
            produce(A, 1.0, batch(9, 0, 5), NOT_LEADER),
            produce(A, 2.0, batch(9, 0, 5)),
            produce(A, 3.0, batch(9, 0, 12), OUT_OF_ORDER),
            produce(A, 4.0, batch(9, 0, 3)),
            produce(A, 5.0, batch(9, 1, 0)),
            produce(A, 6.0, batch(9, 0, 0), part=1),
        ],
    )
    assert sheet.texts("produce") == [
        "produced orders [0] sequence 0, 5 records",
        "produced orders [0] sequence 5, 5 records: NOT_LEADER_OR_FOLLOWER",
        "produced orders [0] sequence 0, 5 records",
        "produced orders [1] sequence 0, 5 records",
    ]
    assert sheet.texts("retry") == ["produced orders [0] sequence 5 once more, 5 records"]
    gap, back = sheet.of("sequence")
    assert gap.error == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert "sequence 12 where 10 was due: 2 records missing" in gap.text
    assert "sequence 3 after 16: out of order" in back.text
    assert sheet.lanes["kafka/none", ""].label == "no transactional id"


def test_sequences_begin_again_after_the_last_number() -> None:
    most = 2**31 - 1
    sheet = Sheet(
        Sending(),
        [produce(A, 0.0, batch(9, 0, most - 4)), produce(A, 1.0, batch(9, 0, 0))],
    )
    assert len(sheet.of("produce")) == 2


def test_producers_without_ids_and_records_that_are_none_have_no_marks() -> None:
    sheet = Sheet(
        Sending(),
        [
            produce(A, 0.0, batch(-1, -1, -1)),
            produce(A, 0.0, None),
            produce(A, 0.0, b"\xff" * 70),
        ],
    )
    assert sheet.marks == []


def test_requests_of_brokers_are_left_alone() -> None:
    one = {"transactional_id": "t", "producer_id": 1, "producer_epoch": 0, "verify_only": True, "topics": []}
    assert Sheet(Sending(), [A.asks(0.0, "AddPartitionsToTxn", 4, {"transactions": [one]}, {})]).marks == []


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klamm.dashboards.web.lanes.transactions.PRODUCERS", 10)
    monkeypatch.setattr("klamm.dashboards.web.lanes.transactions.IDS", 3)
    monkeypatch.setattr("klamm.dashboards.web.lanes.sequences.PARTITIONS", 10)
    sending = Sending()
    for number in range(100):
        sending.read("k", init(A, float(number), number, 0, name=f"t{number}"))
        sending.read("k", init(Client(number=number), float(number), -1, -1, 14, name=f"u{number}"))
        sending.read("k", produce(A, float(number), batch(number, 0, 0), name=f"t{number}"))
    assert len(sending.known.ids.kept) <= 3
    assert len(sending.known.by_epoch.kept) <= 10
    assert len(sending.known.nameless.kept) <= 10
    assert len(sending.sequences.sent.kept) <= 10
