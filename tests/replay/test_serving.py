"""A capture as the broker, asked over real connections."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

import pytest

from klamm.proxy.config_types import Address
from klamm.proxy.session.rewriting.topology import NodeKey
from klamm.replay.serving.serving import CannotServe, Serving, load, served, warnings
from tests.captures.rows import TOPIC_ID, Talk, connection, in_time
from tests.fakes.waiting import on_uvloop
from tests.replay.played import RANGES, Values, batch, described, fetched, metadata, playing, session


@on_uvloop
async def test_every_node_listens_and_is_named_with_its_own_address_at_any_of_them() -> None:
    async with playing(session().rows) as played:
        addresses = {str(key): address for key, address in played.serving.addresses.items()}
        assert list(addresses) == ["1", "2"]
        for node in (0, 1):
            client = await played.client(node)
            answer = await client.ask("Metadata", 12, {"topics": [{"name": "orders"}]})
            addresses_there = {str(row["node_id"]): (row["host"], row["port"]) for row in answer["brokers"]}
            assert addresses_there == addresses
            assert answer["topics"] == [described_in(answer)]


def described_in(answer: Values) -> Values:
    topic: Values = answer["topics"][0]
    assert (topic["name"], topic["topic_id"], len(topic["partitions"])) == ("orders", TOPIC_ID, 2)
    return topic


@on_uvloop
async def test_versions_are_the_brokers_cut_to_what_can_be_answered() -> None:
    async with playing(session().rows) as played:
        answer = await (await played.client()).ask("ApiVersions", 3)
        versions = {row["api_key"]: (row["min_version"], row["max_version"]) for row in answer["api_keys"]}
        assert versions == RANGES


@on_uvloop
async def test_an_unknown_version_of_api_versions_is_answered_in_the_first_one() -> None:
    async with playing(session().rows) as played:
        client = await played.client()
        client.transport.write(bytes.fromhex("0000000b 0012 0063 00000005 ffff 00".replace(" ", "")))
        assert (await client.frame())[4:10] == bytes.fromhex("000000050023")


@on_uvloop
async def test_a_response_of_another_version_is_told_in_the_one_asked_for() -> None:
    async with playing(session().rows) as played:
        client = await played.client()
        for version in (0, 1, 4, 9, 13):
            answer = await client.ask("Metadata", version, {"topics": [{"name": "orders"}]})
            assert [len(topic["partitions"]) for topic in answer["topics"]] == [2]
            assert {row["host"] for row in answer["brokers"]} == {"127.0.0.1"}


@on_uvloop
async def test_topics_that_nobody_asked_for_together_are_told_together() -> None:
    talk = metadata(Talk(), ["orders"], described("orders", 0, 1))
    metadata(talk, ["bills"], described("bills", 0, topic_id=bytes(15) + b"\7"))
    async with playing(talk.rows) as played:
        client = await played.client()
        names = [{"name": name} for name in ("bills", "orders")]
        answer = await client.ask("Metadata", 12, {"topics": names})
        assert [(t["name"], len(t["partitions"])) for t in answer["topics"]] == [("bills", 1), ("orders", 2)]
        assert len((await client.ask("Metadata", 12, {"topics": []}))["brokers"]) == 2
        every = await client.ask("Metadata", 9, {"topics": None})
        assert sorted(topic["name"] for topic in every["topics"]) == ["bills", "orders"]
        assert not played.log_lines


@on_uvloop
async def test_what_nothing_recorded_answers_is_refused_counted_and_said_once() -> None:
    async with playing(session().rows) as played:
        client = await played.client()
        for _ in range(2):
            answer = await client.ask("Metadata", 12, {"topics": [{"name": "order"}, {"name": "orders"}]})
            assert [(t["name"], t["error_code"]) for t in answer["topics"]] == [("order", 3), ("orders", 0)]
        assert played.log_lines == [
            "nothing recorded answers Metadata v12 for topic order; did you mean orders?"
        ]
        assert played.serving.unanswered == {"Metadata": 2}
        answer = await client.ask("DescribeGroups", 5, {"groups": ["g"]})
        assert [(g["group_id"], g["error_code"]) for g in answer["groups"]] == [("g", -1)]
        assert played.log_lines[1:] == [
            "nothing recorded answers DescribeGroups v5 for groups=g; the recording has no DescribeGroups"
        ]


@on_uvloop
async def test_the_nearest_of_what_was_recorded_is_named() -> None:
    talk = session()
    for group in ("billing", "shipping"):
        talk.exchange("DescribeGroups", 5, {"groups": [group]}, {"groups": [group_row(group)]})
    async with playing(talk.rows) as played:
        client = await played.client()
        answer = await client.ask("DescribeGroups", 5, {"groups": ["billing", "other"]})
        assert [row["error_code"] for row in answer["groups"]] == [0, -1]
        assert played.log_lines == [
            "nothing recorded answers DescribeGroups v5 for groups=billing, groups=other;"
            " nearest is groups=billing"
        ]


def group_row(group: str) -> Values:
    row = {"error_code": 0, "group_id": group, "group_state": "Stable", "protocol_type": "consumer"}
    return {**row, "protocol_data": "", "members": []}


@on_uvloop
async def test_strict_closes_where_an_error_would_be_answered() -> None:
    async with playing(session().rows, strict=True) as played:
        client = await played.client()
        client.send("DescribeGroups", 5, {"groups": ["g"]})
        assert await client.ended()
        assert "nothing recorded answers DescribeGroups" in played.log_lines[0]
        again = await played.client()
        assert (await again.ask("ApiVersions", 3))["error_code"] == 0


@on_uvloop
async def test_any_key_has_a_coordinator_and_a_recorded_one_its_own() -> None:
    talk = session()
    found = {"key": "g", "node_id": 2, "host": "kafka-2.internal", "port": 9092, "error_code": 0}
    response = {"coordinators": [{**found, "error_message": None}]}
    talk.exchange("FindCoordinator", 4, {"key_type": 0, "coordinator_keys": ["g"]}, response)
    async with playing(talk.rows) as played:
        client = await played.client()
        ports = [address.port for _, address in sorted(played.serving.addresses.items())]
        old = [await client.ask("FindCoordinator", 2, {"key": key, "key_type": 0}) for key in ("g", "other")]
        assert [(one["node_id"], one["port"]) for one in old] == [(2, ports[1]), (1, ports[0])]
        new = await client.ask("FindCoordinator", 6, {"key_type": 0, "coordinator_keys": ["g"]})
        assert [(one["key"], one["port"]) for one in new["coordinators"]] == [("g", ports[1])]


@on_uvloop
async def test_each_node_tells_its_own_groups() -> None:
    talks = [session()]
    for number, (broker, group) in enumerate((("1", "a"), ("2", "b"))):
        row = {
            "group_id": group,
            "protocol_type": "consumer",
            "group_state": "Stable",
        }
        talk = Talk(connection(number + 7, broker=broker), now_ms=100 * number)
        talks.append(talk.exchange("ListGroups", 4, {}, {"error_code": 0, "groups": [row]}))
    async with playing(in_time(*talks)) as played:
        groups = []
        for node in (1, 0):
            answer = await (await played.client(node)).ask("ListGroups", 5, {})
            groups.append([row["group_id"] for row in answer["groups"]])
        assert groups == [["b"], ["a"]]


@on_uvloop
async def test_whoever_authenticates_is_let_in() -> None:
    talk = session()
    response = {"error_code": 0, "mechanisms": ["PLAIN", "SCRAM-SHA-256"]}
    talk.exchange("SaslHandshake", 1, {"mechanism": "PLAIN"}, response)
    async with playing(talk.rows) as played:
        client = await played.client()
        answer = await client.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
        assert answer == response
        answer = await client.ask("SaslAuthenticate", 2, {"auth_bytes": b"\0a\0wrong"})
        assert (answer["error_code"], answer["auth_bytes"]) == (0, b"")  # no proof of knowing the password
        old = await played.client()
        await old.ask("SaslHandshake", 0, {"mechanism": "PLAIN"})
        old.transport.write(b"\0\0\0\x08\0user\0pw")
        await old.changed.until(lambda: old.received == bytes(4))
        old.received = b""
        assert (await old.ask("ApiVersions", 3))["error_code"] == 0


@on_uvloop
async def test_bytes_that_are_no_request_close_their_connection_with_a_reason() -> None:
    async with playing(session().rows) as played:
        for sent, reason in (
            (bytes.fromhex("1603010200"), "speaks TLS"),
            (b"\0\0\0\x0a\x03\xe7\0\0\0\0\0\1\xff\xff", "no API has the key 999"),
            (b"\0\0\0\x0a\0\3\0\x63\0\0\0\1\xff\xff", "Metadata has versions 0-13, not 99"),
            (b"\0\0\0\x0b\0\3\0\5\0\0\0\1\xff\xff\x01", "cannot be read"),
        ):
            client = await played.client()
            client.transport.write(sent)
            assert await client.ended()
            assert reason in played.log_lines[-1]
        assert all(line.startswith("a connection is closed: ") for line in played.log_lines)


@on_uvloop
async def test_a_capture_without_metadata_is_described_from_its_logs() -> None:
    talk = fetched(Talk(), "orders", 1, batch(0, "a"))
    async with playing(talk.rows) as played:
        client = await played.client()
        answer = await client.ask("Metadata", 12, {"topics": [{"name": "orders"}]})
        assert [row["node_id"] for row in answer["brokers"]] == [1]
        assert (await client.ask("Metadata", 13, {"topics": []}))["brokers"] == answer["brokers"]
        assert [(p["partition_index"], p["leader_id"]) for p in answer["topics"][0]["partitions"]] == [(1, 1)]


def test_a_capture_of_nothing_or_of_two_clusters_cannot_be_served() -> None:
    with pytest.raises(CannotServe, match="no exchange that can be served"):
        load([])
    other = Talk(connection(2)._replace(cluster="other"))
    with pytest.raises(CannotServe, match=r"several clusters \(main, other\)"):
        load([*session().rows, *metadata(other, None).rows])


def test_what_was_not_kept_is_said() -> None:
    talk = session()
    talk.exchange("ListGroups", 4, {}, {"error_code": 0, "groups": []})
    talk.rows[-1] = talk.rows[-1]._replace(frame=None)
    assert warnings(load(talk.rows)) == ["1 responses were kept as their size only: they are not served"]


@on_uvloop
async def test_a_port_that_is_taken_is_said() -> None:
    async with playing(session().rows) as played:
        taken = played.serving.bootstrap
        with pytest.raises(CannotServe, match=f"cannot listen at {taken}"):
            async with served(load(session().rows), taken, print):
                pass


@on_uvloop
async def test_after_a_change_comes_what_was_recorded_after_it_however_often_was_asked() -> None:
    talk, topic = session(), {"name": "new", "num_partitions": 1, "replication_factor": 1}
    unknown = described("new", topic_id=bytes(16)) | {"error_code": 3}
    known = described("new", 0, topic_id=bytes(15) + b"\1")
    for _ in range(3):
        metadata(talk, ["new"], unknown)
    made = {"topics": [{"name": "new", "error_code": 0}]}
    talk.exchange("CreateTopics", 4, {"topics": [topic], "timeout_ms": 9}, made)
    for expected in (unknown, known, known):
        metadata(talk, ["new"], expected)
    talk.exchange("DeleteTopics", 3, {"topic_names": ["new"]}, {"responses": made["topics"]})
    metadata(talk, ["new"], unknown)
    async with playing(talk.rows) as played:
        client = await played.client()

        async def codes(count: int) -> list[int]:
            asked = {"topics": [{"name": "new"}]}
            expected = [await client.ask("Metadata", 12, asked) for _ in range(count)]
            return [answer["topics"][0]["error_code"] for answer in expected]

        assert await codes(1) == [3]
        for _ in range(9):
            await client.ask("Metadata", 12, {"topics": [{"name": "orders"}]})
        await client.ask("CreateTopics", 4, {"topics": [topic], "timeout_ms": 5})
        assert await codes(3) == [3, 0, 0]
        await client.ask("DeleteTopics", 1, {"topic_names": ["new"]})
        assert await codes(2) == [3, 3]


def test_blank_records_are_said() -> None:
    whole = batch(0, "a", "b")
    blank = whole[:61] + bytes(len(whole) - 61)
    assert warnings(load(fetched(session(), "orders", 1, whole[:0]).rows)) == []
    recording = load(fetched(session(), "bills", 0, blank).rows)
    assert warnings(recording) == [
        "1 batches are blank in the capture: clients get as many records, of zeros"
    ]
    assert recording.partitions["bills", 0].end == 2


@on_uvloop
async def test_the_other_nodes_listen_on_the_ports_after_the_first() -> None:
    wanted: list[Address] = []

    async def bind(serving: Serving, key: NodeKey, address: Address) -> asyncio.Server:
        wanted.append(address)
        serving.addresses[key] = address
        return await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)

    with patch("klamm.replay.serving.serving._bind", bind):
        async with served(load(session().rows), Address("127.0.0.1", 19092), print):
            pass
    assert wanted == [Address("127.0.0.1", 19092), Address("127.0.0.1", 19093)]


@on_uvloop
async def test_an_answer_that_clients_did_not_get_is_not_served_and_a_changed_one_as_it_went_out() -> None:
    talk = session()
    for name, error in (("withheld", 0), ("rewritten", 7)):
        talk.exchange("DescribeGroups", 5, {"groups": [name]}, {"groups": [group_row(name)]})
        response = {"groups": [group_row(name) | {"error_code": error}]}
        sent = Talk().exchange("DescribeGroups", 5, {}, response).rows[1].frame
        assert sent is not None
        number = talk.rows[-1].correlation_id.to_bytes(4, "big")
        forwarded = number + sent[4:] if name == "rewritten" else None
        fate: Any = name
        talk.rows[-1] = talk.rows[-1]._replace(fate=fate, forwarded=forwarded)
    async with playing(talk.rows) as played:
        client = await played.client()
        for name, error in (("withheld", -1), ("rewritten", 7)):
            answer = await client.ask("DescribeGroups", 5, {"groups": [name]})
            assert [row["error_code"] for row in answer["groups"]] == [error]
