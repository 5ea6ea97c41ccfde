"""Records and their offsets, as a served capture tells them."""

from __future__ import annotations

from unittest.mock import patch

from tests.captures.rows import Talk
from tests.fakes.waiting import on_uvloop
from tests.replay.played import (
    Values,
    batch,
    described,
    fetch,
    fetched,
    first_row,
    metadata,
    playing,
    session,
)


@on_uvloop
async def test_an_old_recording_gives_newer_clients_topic_ids_that_they_can_fetch_by() -> None:
    talk = metadata(Talk(), ["orders"], described("orders", 0), version=5)
    async with playing(fetched(talk, "orders", 0, batch(0, "a"), version=6).rows) as played:
        client = await played.client()
        answer = await client.ask("Metadata", 12, {"topics": [{"name": "orders"}]})
        topic_id = answer["topics"][0]["topic_id"]
        assert any(topic_id)
        asked = fetch("orders", 0, 0, version=13)
        asked["topics"][0]["topic_id"] = topic_id
        assert first_row(await client.ask("Fetch", 13, asked))["records"] == batch(0, "a")


@on_uvloop
async def test_records_are_fetched_by_offset_at_any_version_and_by_topic_id() -> None:
    async with playing(session().rows) as played:
        client = await played.client()
        for version in (4, 11, 12, 13, 17):
            row = first_row(await client.ask("Fetch", version, fetch("orders", 0, 1, version)))
            assert (row["error_code"], row["high_watermark"]) == (0, 3)
            assert row["records"] == batch(0, "a", "b") + batch(2, "c")
        small = fetch("orders", 0, 0, max_bytes=1)
        assert first_row(await client.ask("Fetch", 12, small))["records"] == batch(0, "a", "b")
        at_end = first_row(await client.ask("Fetch", 12, fetch("orders", 0, 3)))
        assert (at_end["error_code"], at_end["records"]) == (0, b"")


@on_uvloop
async def test_there_are_no_fetch_sessions_and_no_offsets_beyond_the_end() -> None:
    async with playing(session().rows) as played:
        client = await played.client()
        begun = await client.ask("Fetch", 12, fetch("orders", 0, 0, session_epoch=0))
        assert (begun["error_code"], begun["session_id"]) == (0, 0)
        assert (await client.ask("Fetch", 12, fetch("orders", 0, 0, session_epoch=3)))["error_code"] == 70
        assert first_row(await client.ask("Fetch", 12, fetch("orders", 0, 50)))["error_code"] == 1
        assert first_row(await client.ask("Fetch", 12, fetch("other", 0, 0)))["error_code"] == 3
        stranger = fetch("", 0, 0, version=13)
        stranger["topics"][0]["topic_id"] = b"\xff" * 16
        assert first_row(await client.ask("Fetch", 13, stranger))["error_code"] == 100


@on_uvloop
async def test_offsets_are_listed_as_recorded_else_from_the_log() -> None:
    talk = session()
    row = {"partition_index": 0, "timestamp": -1}
    found = {"partition_index": 0, "error_code": 0, "timestamp": -1, "offset": 1, "leader_epoch": 4}
    name = {"name": "orders"}
    asked = {"replica_id": -1, "topics": [{**name, "partitions": [row]}]}
    talk.exchange("ListOffsets", 5, asked, {"topics": [{**name, "partitions": [found]}]})
    async with playing(talk.rows) as played:
        client = await played.client()

        async def listed(index: int, timestamp: int, version: int = 7) -> Values:
            rows = [{"partition_index": index, "timestamp": timestamp}]
            values = {"replica_id": -1, "topics": [{**name, "partitions": rows}]}
            answer = await client.ask("ListOffsets", version, values)
            partition_row: Values = answer["topics"][0]["partitions"][0]
            return partition_row

        assert ((await listed(0, -1))["offset"], (await listed(0, -1))["leader_epoch"]) == (1, 4)
        assert [(await listed(1, at))["offset"] for at in (-1, -2, 1000, 5000, -3)] == [1, 0, 0, -1, 0]
        assert (await listed(1, -1, version=0))["old_style_offsets"] == [1]


@on_uvloop
async def test_producing_is_answered_with_recorded_offsets_and_those_after_them() -> None:
    talk = session()
    topic = {"name": "orders"}
    part: Values = {"index": 0, "records": None}
    sent = {"acks": -1, "timeout_ms": 9, "topic_data": [{**topic, "partition_data": [part]}]}
    for code, offset in ((6, -1), (0, 40)):
        partition_row = {"index": 0, "error_code": code, "base_offset": offset}
        talk.exchange("Produce", 9, sent, {"responses": [{**topic, "partition_responses": [partition_row]}]})
    async with playing(talk.rows) as played:
        client = await played.client()
        part["records"] = batch(0, "x", "y")
        answers = []
        for _ in range(4):
            answer = await client.ask("Produce", 9, sent)
            row = answer["responses"][0]["partition_responses"][0]
            answers.append((row["error_code"], row["base_offset"]))
        assert answers == [(6, -1), (0, 40), (0, 42), (0, 44)]
        at_end = first_row(await client.ask("Fetch", 12, fetch("orders", 0, 3)))
        assert (at_end["high_watermark"], at_end["records"]) == (3, b"")  # sent records are not kept
        client.send("Produce", 9, sent | {"acks": 0})
        assert (await client.ask("ApiVersions", 3))["error_code"] == 0  # nothing came before it


@on_uvloop
async def test_what_is_committed_in_a_transaction_is_not_kept() -> None:
    talk = session()
    row = {"partition_index": 0, "committed_offset": 2, "committed_metadata": ""}
    of = {"transactional_id": "t", "group_id": "g", "producer_id": 7, "producer_epoch": 0}
    sent = {**of, "topics": [{"name": "orders", "partitions": [row]}]}
    done = [{"name": "orders", "partitions": [{"partition_index": 0, "error_code": 0}]}]
    talk.exchange("TxnOffsetCommit", 2, sent, {"topics": done})
    async with playing(talk.rows) as played:
        client = await played.client()
        assert (await client.ask("TxnOffsetCommit", 2, sent))["topics"] == done
        asked = {"group_id": "g", "topics": [{"name": "orders", "partition_indexes": [0]}]}
        [found] = (await client.ask("OffsetFetch", 5, asked))["topics"][0]["partitions"]
        assert found["committed_offset"] == -1


@on_uvloop
async def test_what_a_group_commits_is_what_it_finds_again() -> None:
    talk = session()
    partition_row = {"partition_index": 0, "committed_offset": 2, "metadata": "", "error_code": 0}
    asked = {"group_id": "g", "topics": [{"name": "orders", "partition_indexes": [0]}]}
    talk.exchange("OffsetFetch", 6, asked, {"topics": [{"name": "orders", "partitions": [partition_row]}]})
    async with playing(talk.rows) as played:
        client = await played.client()

        async def committed(group: str) -> list[int]:
            rows = [{"name": "orders", "partition_indexes": [0, 1]}]
            answer = await client.ask("OffsetFetch", 8, {"groups": [{"group_id": group, "topics": rows}]})
            return [row["committed_offset"] for row in answer["groups"][0]["topics"][0]["partitions"]]

        assert await committed("g") == [2, -1]
        assert await committed("other") == [-1, -1]
        row = {"partition_index": 1, "committed_offset": 1, "committed_metadata": None}
        commit = {"group_id": "g", "topics": [{"name": "orders", "partitions": [row]}]}
        answer = await client.ask("OffsetCommit", 8, commit)
        assert answer["topics"][0]["partitions"] == [{"partition_index": 1, "error_code": 0}]
        assert await committed("g") == [2, 1]
        every = await client.ask("OffsetFetch", 5, {"group_id": "g", "topics": None})
        rows = every["topics"][0]["partitions"]
        assert [(row["partition_index"], row["committed_offset"]) for row in rows] == [(0, 2), (1, 1)]


@on_uvloop
async def test_an_empty_answer_is_given_when_the_client_would_not_wait_longer() -> None:
    waits: list[int] = []

    async def waited(delay_ms: int, response: Values) -> Values:
        waits.append(delay_ms)
        return response

    with patch("klamm.replay.serving.records.waited", waited):
        async with playing(session().rows) as played:
            client = await played.client()
            await client.ask("Fetch", 12, fetch("orders", 0, 0, max_wait_ms=700))
            assert waits == []
            await client.ask("Fetch", 12, fetch("orders", 0, 3, max_wait_ms=700))
            assert waits == [700]


@on_uvloop
async def test_every_epoch_ends_where_the_log_ends() -> None:
    async with playing(session().rows) as played:
        client = await played.client()
        for epoch in (0, 5):
            rows = [{"partition": 0, "leader_epoch": epoch}]
            asked = {"replica_id": -1, "topics": [{"topic": "orders", "partitions": rows}]}
            answer = await client.ask("OffsetForLeaderEpoch", 3, asked)
            (row,) = answer["topics"][0]["partitions"]
            assert (row["error_code"], row["end_offset"]) == (0, 3)


@on_uvloop
async def test_producers_have_the_recorded_ids_and_then_new_ones() -> None:
    asked = {"transactional_id": None, "transaction_timeout_ms": 9}
    response = {"error_code": 0, "producer_id": 7, "producer_epoch": 0}
    async with playing(session().exchange("InitProducerId", 4, asked, response).rows) as played:
        client = await played.client()
        first, second, third = [
            (await client.ask("InitProducerId", 4, asked))["producer_id"] for _ in range(3)
        ]
        assert first == 7
        assert len({first, second, third}) == 3
