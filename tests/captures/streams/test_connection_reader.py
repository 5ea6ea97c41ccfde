"""Bytes of a connection as rows: frames, their requests and their answers."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from klamm.captures.captured import Captured
from klamm.captures.streams import connection_reader, framing
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.cutting import filled
from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from tests.captures.made_traffic import (
    CODECS,
    CONNECTION,
    Step,
    batch,
    exchange_steps,
    frames,
    of_any_api,
    play,
)
from tests.proxy.traffic import (
    Exchanged,
    api_versions,
    at_random,
    exchange,
    fetch,
    metadata,
    produce,
)

HEARTBEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}


def heartbeat(correlation_id: int = 1) -> Exchanged:
    return exchange("Heartbeat", 4, HEARTBEAT, {}, correlation_id)


def of_frames(rows: list[Captured]) -> list[Captured]:
    return [row for row in rows if row.kind == "frame"]


def cells(rows: list[Captured], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(row, column) for column in columns) for row in of_frames(rows)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("records", ["blank", "keep", "hash"])
def test_however_a_stream_is_cut_its_rows_are_the_same(records: Any, seed: int) -> None:
    random = Random(seed)
    steps = of_any_api(random, 30)
    rows = play(steps, keeping=Keeping(records, b"key"))
    for most in (3, 100, 5000):
        assert play(steps, at_random(random, most), Keeping(records, b"key")) == rows


@pytest.mark.parametrize("seed", range(12))
def test_every_frame_is_there_once_and_byte_for_byte_but_for_its_secrets(seed: int) -> None:
    steps = of_any_api(Random(seed), 60)
    rows = play(steps)
    for side in ("request", "response"):
        sent = [step.data[4:] for step in steps if step.side == side]
        there = [row for row in rows if row.side == side]
        assert [row.size for row in there] == [len(frame) for frame in sent]
        for row, frame in zip(there, sent, strict=True):
            assert row.frame is not None
            assert filled(row.frame, row.blanks) == _blanked(frame, row.blanks)


def _blanked(frame: bytes, blanks: tuple[tuple[int, int], ...]) -> bytes:
    for at, size in blanks:
        frame = frame[:at] + bytes(size) + frame[at + size :]
    return frame


@pytest.mark.parametrize("seed", range(6))
def test_an_exchange_of_any_api_is_its_request_and_its_answer(seed: int) -> None:
    steps = of_any_api(Random(seed), 60)
    rows = play(steps)
    asked = {row.exchange: row for row in rows if row.side == "request"}
    assert list(asked) == list(range(60))
    answers = [row for row in rows if row.side == "response"]
    assert {row.exchange for row in answers} == {row.exchange for row in asked.values() if row.awaits}
    for row in answers:
        request = asked[row.exchange]
        assert (row.api_key, row.api_version, row.client_id, row.correlation_id) == (
            request.api_key, request.api_version, request.client_id, request.correlation_id,
        )  # fmt: skip


def test_the_columns_of_a_frame_are_those_of_its_header() -> None:
    rows = play(exchange_steps(metadata(12, correlation_id=7)))
    columns = ("side", "api_key", "api_version", "correlation_id", "client_id", "exchange", "fate", "awaits")
    assert cells(rows, *columns) == [
        ("request", 3, 12, 7, "app", 0, "passed", True),
        ("response", 3, 12, 7, "app", 0, "passed", True),
    ]
    assert {row.connection for row in rows} == {CONNECTION}


def test_a_client_id_that_is_no_utf_8_is_told_by_its_size() -> None:
    request = request_frame(API["Heartbeat"], 4, 1, "\udcff", encode(HEARTBEAT, 12, 4, "request"))
    assert cells(play([Step("request", request)]), "client_id") == [("<1 bytes>",)]


@pytest.mark.parametrize("version", [0, 3, 9, 13])
def test_a_produce_with_acks_0_awaits_nothing(version: int) -> None:
    steps = exchange_steps(
        produce(version, 1, acks=0), metadata(1, 2), *[produce(version, n, acks=0) for n in range(3, 12)]
    )
    rows = play(steps)
    asked = [row for row in rows if row.side == "request"]
    assert [row.awaits for row in asked] == [False, True] + [False] * 9
    assert [row.exchange for row in rows if row.side == "response"] == [1]


def test_acks_are_read_of_each_produce_however_alike_they_are() -> None:
    rows = play(exchange_steps(*[produce(9, n, acks=0 if n % 3 == 0 else 1) for n in range(30)]))
    assert [row.awaits for row in rows if row.side == "request"] == [n % 3 != 0 for n in range(30)]
    assert [row.exchange for row in rows if row.side == "response"] == [n for n in range(30) if n % 3]


def test_correlation_ids_may_repeat() -> None:
    first, second = metadata(1, correlation_id=5), heartbeat(5)
    steps = [
        Step("request", first.request + second.request),
        Step("response", (first.answer or b"") + (second.answer or b"")),
    ]
    assert cells(play(steps), "side", "api_key", "exchange") == [
        ("request", 3, 0), ("request", 12, 1), ("response", 3, 0), ("response", 12, 1),
    ]  # fmt: skip


def test_a_response_that_answers_no_request_is_its_size() -> None:
    rows = play([Step("response", heartbeat(9).answer or b""), *exchange_steps(heartbeat(1))])
    assert cells(rows, "side", "api_key", "exchange", "correlation_id", "size", "frame") == [
        ("response", -1, -1, 9, 12, None),
        *cells(
            play(exchange_steps(heartbeat(1))),
            "side",
            "api_key",
            "exchange",
            "correlation_id",
            "size",
            "frame",
        ),
    ]


@pytest.mark.parametrize(
    ("name", "version", "client_id"),
    [
        ("ControlledShutdown", 0, None),
        ("ControlledShutdown", 1, "app"),
        ("Metadata", 8, "app"),
        ("Metadata", 9, "app"),
    ],
)
def test_request_headers_of_all_versions_are_read(name: str, version: int, client_id: str | None) -> None:
    rows = play(exchange_steps(exchange(name, version, {}, {}, client_id="app" if client_id else None)))
    assert [row.client_id for row in of_frames(rows)] == [client_id, client_id]
    assert all(row.frame is not None for row in of_frames(rows))


def test_an_api_versions_request_that_is_refused_is_answered_in_layout_0() -> None:
    refused = exchange("ApiVersions", 4, {}, {"error_code": 35}, answer_version=0)
    rows = play(exchange_steps(refused, api_versions(3, [(0, 0, 9)], 2)))
    assert frames(rows, "response")[0] == (refused.answer or b"")[4:]
    assert cells(rows, "api_version", "exchange") == [(4, 0), (4, 0), (3, 1), (3, 1)]


def test_the_refusal_of_an_api_versions_version_that_klamm_does_not_know_is_kept() -> None:
    refused = exchange("ApiVersions", 4, {}, {"error_code": 35}, answer_version=0)
    newer = refused.request[:6] + (5).to_bytes(2, "big") + refused.request[8:]
    rows = play([Step("request", newer), Step("response", refused.answer or b"")])
    assert frames(rows, "request") == [None]
    assert frames(rows, "response") == [(refused.answer or b"")[4:]]


@pytest.mark.parametrize(
    ("key_and_version", "told"),
    [
        (b"\x00\x03\x00\x0e", (3, 14, "app", 0)),
        (b"\x7f\xff\x00\x01", (32767, 1, "<3 bytes>", 0)),
        (b"\x00\x03\x03\xe7", (-1, -1, None, -1)),
        (b"\xff\xff\xff\xff", (-1, -1, None, -1)),
    ],
)
def test_of_an_api_or_version_that_nobody_knows_only_the_sizes_are_kept(
    key_and_version: bytes, told: tuple[int, int, str | None, int]
) -> None:
    body = key_and_version + b"\0\0\0\7" + b"\0\3app" + b"password"
    request = len(body).to_bytes(4, "big") + body
    answer = b"\0\0\0\x0c\0\0\0\7password"
    rows = play([Step("request", request), Step("response", answer), *exchange_steps(heartbeat(8))])
    columns = "api_key", "api_version", "client_id", "exchange", "frame", "size"
    assert cells(rows, *columns)[:2] == [(*told, None, len(body)), (*told, None, 12)]
    assert of_frames(rows)[2].exchange == told[-1] + 1


def test_of_a_body_that_does_not_decode_only_its_size_is_kept() -> None:
    good = heartbeat()
    request = good.request[:3] + bytes([good.request[3] + 8]) + good.request[4:] + b"password"
    rows = play([Step("request", request), Step("response", good.answer or b"")])
    assert cells(rows, "api_key", "client_id", "frame", "size")[0] == (
        12,
        "<3 bytes>",
        None,
        len(request) - 4,
    )
    assert of_frames(rows)[1].frame == (good.answer or b"")[4:]


def cut_answer(one: Exchanged) -> Exchanged:
    """Without its last byte."""
    answer = one.answer or b""
    return Exchanged(one.request, (len(answer) - 5).to_bytes(4, "big") + answer[4:-1])


@pytest.mark.parametrize("records", ["blank", "hash", "keep"])
def test_a_body_that_does_not_decode_is_kept_where_all_records_are(records: Any) -> None:
    one = cut_answer(metadata(9))
    rows = play(exchange_steps(one), keeping=Keeping(records, b"key"))
    kept = (one.answer or b"")[4:] if records == "keep" else None
    assert frames(rows, "response") == [kept]
    assert cells(rows, "size")[1] == (len(one.answer or b"") - 4,)


SECRETIVE = (
    exchange("SaslAuthenticate", 2, {"auth_bytes": b"hush"}, {"auth_bytes": b"hush"}),
    exchange(
        "Metadata", 9, {}, {"brokers": [], "topics": [{"name": "__cluster_metadata", "partitions": []}]}
    ),
)


@pytest.mark.parametrize("one", SECRETIVE, ids=["a secret", "Kafka's metadata"])
def test_neither_secrets_nor_kafka_s_own_metadata_are_kept_where_a_body_does_not_decode(
    one: Exchanged,
) -> None:
    assert frames(play(exchange_steps(cut_answer(one)), keeping=Keeping("keep")), "response") == [None]


def left_over(one: Exchanged, data: bytes) -> Exchanged:
    size = int.from_bytes(one.request[:4], "big") + len(data)
    return Exchanged(size.to_bytes(4, "big") + one.request[4:] + data, one.answer)


def test_a_few_bytes_behind_a_body_that_nobody_reads_are_kept_where_there_are_no_secrets_or_records() -> None:
    as_librdkafka_does = left_over(metadata(13), b"\1\0\0")
    rows = play(exchange_steps(*[as_librdkafka_does] * 9), keeping=Keeping("blank"))
    assert frames(rows, "request") == [as_librdkafka_does.request[4:]] * 9
    rows = play(exchange_steps(*[left_over(produce(9, size=0), b"hush")] * 9))
    assert frames(rows, "request") == [left_over(produce(9, size=0), bytes(4)).request[4:]] * 9


def test_of_a_frame_that_is_too_large_only_the_size_is_kept() -> None:
    size = framing.MOST_KEPT
    large = [produce(9, 1, acks=0, size=size), fetch(12, 2, size=size), produce(9, 3, size=size)]
    steps = exchange_steps(*large, heartbeat(4))
    rows = play(steps)
    assert [row.size for row in rows if row.kind == "frame"] == [len(step.data) - 4 for step in steps]
    assert [row.frame is None for row in rows if row.kind == "frame"] == [
        True, False, True, True, False, False, False,
    ]  # fmt: skip
    assert cells(rows, "api_key", "exchange", "client_id", "awaits")[:2] == [
        (0, 0, "app", False),
        (1, 1, "app", True),
    ]
    assert play(steps, at_random(Random(1), 1 << 20)) == rows


def test_frames_that_are_not_whole_take_no_more_memory_than_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(framing, "MOST_BUFFERED", 300_000)
    keeping = Keeping("keep")
    talks = [connection_reader.ConnectionReader(CONNECTION, keeping) for _ in range(10)]
    request = produce(9, 1, size=200_000).request
    most = 0
    for start in range(0, len(request), 10_000):
        for talk in talks:
            rows = talk.feed("request", request[start : start + 10_000], 0)
            most = max(most, keeping.buffered_bytes)
    assert most <= 310_000
    assert (rows[0].size, rows[0].api_key) == (len(request) - 4, 0)
    assert keeping.buffered_bytes == 0


def test_rows_have_the_time_of_their_first_byte() -> None:
    talk = connection_reader.ConnectionReader(CONNECTION, Keeping())
    asked = heartbeat()
    assert talk.feed("request", asked.request[:2], 5) == talk.feed("request", asked.request[2:9], 6) == []
    rows = talk.feed("request", asked.request[9:] + asked.request, 7)
    assert [row.time_ns for row in rows] == [5, 7]


def test_a_connection_ends_with_why_and_with_what_was_cut_short() -> None:
    asked = heartbeat()
    *rest, lost, closed = play([*exchange_steps(asked), Step("request", asked.request[:10])])
    assert [row.kind for row in rest] == ["frame", "frame"]
    missing = len(asked.request) - 10
    assert lost[:4] == (0, "lost", CONNECTION, "request")
    assert lost.text == f"the connection ended in the middle of a request: 10 bytes, {missing} bytes missing"
    assert closed == Captured(0, "closed", CONNECTION, text="over")


def test_bytes_that_are_no_kafka_are_counted() -> None:
    other = b"\xff\x03\x01\x02\x00" + bytes(range(256)) * 2
    rows = play([Step("request", other), Step("response", other)])
    assert [(row.kind, row.side, row.size) for row in rows[:-1]] == [
        ("lost", "request", len(other)), ("lost", "response", len(other)),
    ]  # fmt: skip
    assert rows[0].text == f"{len(other)} bytes of requests in which no frame begins"


@pytest.mark.parametrize("size", [517, 3 << 20])
@pytest.mark.parametrize("cut", [1, 3, 5])
def test_bytes_that_are_tls_are_called_so(size: int, cut: int) -> None:
    tls, alert = b"\x16\x03\x01\x02\x00" + Random(1).randbytes(size), b"\x15\x03\x01\x00\x02\x02\x28"
    rows = play([Step("request", tls[:cut]), Step("request", tls[cut:]), Step("response", alert)])
    assert [row.text for row in rows[:-1]] == [
        f"{len(tls):,} bytes of requests that are TLS, which klamm cannot read here",
        "7 bytes of responses that are TLS, which klamm cannot read here",
    ]


def test_requests_that_are_never_answered_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_reader, "MOST_PENDING", 10)
    talk = connection_reader.ConnectionReader(CONNECTION, Keeping())
    for number in range(50):
        talk.feed("request", heartbeat(number).request, 0)
    assert [asked[0] for asked in talk.pending] == list(range(40, 50))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("records", ["blank", "keep", "hash"])
def test_like_frames_read_by_their_form_give_the_rows_of_frames_read_whole(
    records: Any, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    for number in range(40):
        held = batch(codec, 1 + number % 3, b"x" * (1 + number * 7 % 90))
        asked = {
            "acks": -1,
            "topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": held}] * 2}],
        }
        rows = [
            {"partition_index": n, "high_watermark": number, "records": held * (number % 4)} for n in range(2)
        ]
        steps += exchange_steps(
            exchange("Produce", 9, asked, {"responses": []}, number),
            exchange("Produce", 8, asked, {"responses": []}, number),
            exchange("Fetch", 12, {}, {"responses": [{"topic": "t", "partitions": rows[:1]}]}, number),
            exchange("Fetch", 11, {}, {"responses": [{"topic": "t", "partitions": rows}]}, number),
        )
    by_form = play(steps, keeping=Keeping(records, b"key"))
    monkeypatch.setattr("klamm.captures.streams.forms.FIRST_WAIT", 10**9)
    assert play(steps, keeping=Keeping(records, b"key")) == by_form


def test_a_form_is_of_frames_that_decode_only() -> None:
    good = [produce(9, n, size=90) for n in range(20)]
    other = [left_over(good[0], b"password"), Exchanged(good[0].request[:-1] + b"\1", None)]
    rows = play(exchange_steps(*good, *other), keeping=Keeping("blank"))
    assert [frame is None for frame in frames(rows, "request")] == [False] * 20 + [True, True]
