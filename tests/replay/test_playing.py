"""Requests go to another cluster in the recorded order of cause and effect, with its own ids in them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from unittest.mock import patch

import pytest

from klamm.captures.captured import Captured
from klamm.decoders import API
from klamm.decoders.records import Batch, Record, batches, write
from klamm.proxy.cluster.conversation import Unanswered
from klamm.proxy.config_types import Address
from klamm.replay.client_config import access
from klamm.replay.cluster import Cluster
from klamm.replay.comparing import Differences
from klamm.replay.playing import Pace, Player
from klamm.replay.survey import survey
from tests.captures.rows import TOPIC_ID, Talk, connection, in_time
from tests.fakes import broker as fake
from tests.fakes.waiting import on_uvloop

Values = dict[str, Any]
NEW_ID = bytes(range(50, 66))
FAST = Pace(None, 0.2)
DATA = write(Batch(producer_id=7, producer_epoch=1, base_sequence=0), [Record(value=b"v")])


def everything(connection: fake.Connection, request: fake.Request) -> Values:
    rows = [
        {"api_key": api.key, "min_version": api.versions.first, "max_version": api.versions.last}
        for api in API
    ]
    return {"api_keys": rows}


class Brokers:
    """Nodes 11 and 12. Partition n of "orders" is led by 11 or 12, in turn."""

    def __init__(self) -> None:
        self.cluster = fake.Cluster()
        self.brokers = {node: fake.Broker(self.cluster, node) for node in (11, 12)}
        self.order: list[tuple[int, str, Values]] = []
        for node, broker in self.brokers.items():
            broker.answers |= {"ApiVersions": everything, "Metadata": self.metadata}
            for name in ("Produce", "Fetch", "Heartbeat", "FindCoordinator", "CreateTopics"):
                self.answers(name, broker.answers.get(name, lambda *_: {"topics": []}), node)

    def answers(self, name: str, answer: fake.Answer | Values, *nodes: int) -> None:
        """Set the answer of these brokers to an API; they note the requests."""
        for node in nodes or self.brokers:

            def noted(connection: fake.Connection, request: fake.Request, node: int = node) -> Any:
                if request.client_id == "app":
                    self.order.append((node, request.name, request.values))
                return answer if isinstance(answer, dict) else answer(connection, request)

            self.brokers[node].answers[name] = noted

    def metadata(self, connection: fake.Connection, request: fake.Request) -> Values:
        if request.client_id == "app":
            return {"brokers": [], "topics": [{"name": "orders", "topic_id": NEW_ID, "partitions": []}]}
        answer = fake.metadata(connection, request)
        parts = [{"partition_index": n, "leader_id": 11 + n % 2, "leader_epoch": 0} for n in range(4)]
        return answer | {"topics": [{"name": "orders", "topic_id": NEW_ID, "partitions": parts}]}

    @asynccontextmanager
    async def up(self) -> AsyncIterator["Brokers"]:
        async with AsyncExitStack() as stack:
            for broker in self.brokers.values():
                await stack.enter_async_context(broker.listening())
            yield self

    async def played(
        self,
        rows: Iterable[Captured],
        pace: Pace = FAST,
        properties: Mapping[str, str] | None = None,
        **also: Any,
    ) -> tuple[Player, dict[tuple[str, str], tuple[str, str, int]]]:
        """The player, and (API, path) -> recorded, now, times."""
        found, captured = Differences(), list(rows)
        address = Address("127.0.0.1", self.brokers[11].port)
        cluster = Cluster((address,), access(dict(properties or {})))
        await cluster.open()
        player = Player(cluster, survey(captured), found, pace, **also)
        async with asyncio.timeout(20):
            await player.play(captured)
        cluster.close()
        return player, {key: (one.recorded, one.now, one.count) for key, one in found.found.items()}

    def asked(self, name: str) -> list[tuple[int, Values]]:
        return [(node, values) for node, asked, values in self.order if asked == name]


def on(brokers: Callable[[Brokers], Any]) -> Callable[[], None]:
    @on_uvloop
    async def test() -> None:
        async with Brokers().up() as running:
            await brokers(running)

    test.__name__, test.__doc__ = brokers.__name__, brokers.__doc__
    return test


@on
async def test_the_same_answers_are_no_differences(brokers: Brokers) -> None:
    player, found = await brokers.played(Talk().heartbeat().heartbeat().closed().rows)
    assert (player.sent, player.answered, found) == (2, 2, {})
    brokers.answers("Heartbeat", {"error_code": 25})
    _, found = await brokers.played(Talk().heartbeat().heartbeat().rows)
    assert found == {("Heartbeat", "error_code"): ("NONE", "UNKNOWN_MEMBER_ID", 2)}


@on
async def test_a_request_has_the_ids_of_the_answers_before_it(brokers: Brokers) -> None:
    brokers.answers("InitProducerId", {"error_code": 0, "producer_id": 900, "producer_epoch": 4})
    talk = Talk().exchange(
        "InitProducerId",
        4,
        {"transactional_id": None, "transaction_timeout_ms": 1},
        {"error_code": 0, "producer_id": 7, "producer_epoch": 1},
    )
    _, found = await brokers.played(talk.metadata().produce(records=DATA).fetch().rows)
    ((_, produced),) = brokers.asked("Produce")
    (batch,) = batches(produced["topic_data"][0]["partition_data"][0]["records"])
    assert (batch.producer_id, batch.producer_epoch, batch.crc_ok) == (900, 4, True)
    ((_, fetched),) = brokers.asked("Fetch")
    assert fetched["topics"][0]["topic_id"] == NEW_ID
    assert found == {}


@on
async def test_an_id_is_only_that_of_a_topic_of_the_same_name(brokers: Brokers) -> None:
    """Other topics of the cluster do not stand in for one that it lacks."""
    _, found = await brokers.played(Talk().metadata("lacking").fetch().rows)
    ((_, fetched),) = brokers.asked("Fetch")
    assert fetched["topics"][0]["topic_id"] == TOPIC_ID
    assert found == {("Metadata", "topics[]"): ("lacking", "absent", 2)}


@on
async def test_partitions_are_asked_of_those_who_lead_them(brokers: Brokers) -> None:
    rows = [{"index": n, "records": b""} for n in range(3)]
    partitions = [{"index": n, "error_code": 0} for n in range(3)]
    talk = Talk().exchange(
        "Produce",
        9,
        {"acks": -1, "timeout_ms": 1, "topic_data": [{"name": "orders", "partition_data": rows}]},
        {"responses": [{"name": "orders", "partition_responses": partitions}]},
    )
    _, found = await brokers.played(talk.rows)
    asked = {
        node: [part["index"] for part in values["topic_data"][0]["partition_data"]]
        for node, values in brokers.asked("Produce")
    }
    assert asked == {11: [0, 2], 12: [1]}
    assert found == {}


@on
async def test_a_group_is_asked_for_at_its_coordinator(brokers: Brokers) -> None:
    host, port = "127.0.0.1", brokers.brokers[12].port
    brokers.answers(
        "FindCoordinator",
        lambda _, request: {
            "coordinators": [
                {"key": key, "node_id": 12, "host": host, "port": port}
                for key in request.values["coordinator_keys"]
            ]
        },
    )
    _, found = await brokers.played(Talk(connection(broker="11")).heartbeat().rows)
    assert [node for node, _ in brokers.asked("Heartbeat")] == [12]
    assert found == {}


@on
async def test_what_was_answered_before_a_request_began_is_answered_before_it_is_sent(
    brokers: Brokers,
) -> None:
    """A slow answer on one connection holds another connection's later request back, and no earlier one."""
    loop = asyncio.get_running_loop()

    def slowly(connection: fake.Connection, request: fake.Request) -> None:
        answer = fake.framed(request, {"error_code": 0})

        def say() -> None:
            brokers.order.append((0, "answered", {}))
            connection.transport.write(answer)

        loop.call_later(0.2, say)

    brokers.answers("Heartbeat", slowly)
    first = Talk(connection(1)).heartbeat(took_ms=50)
    meanwhile, after = Talk(connection(2), now_ms=20).produce(), Talk(connection(3), now_ms=60).produce()
    await brokers.played(in_time(first, meanwhile, after))
    assert [name for _, name, _ in brokers.order] == ["Heartbeat", "Produce", "answered", "Produce"]


@on
async def test_requests_that_were_under_way_together_are_so_again(brokers: Brokers) -> None:
    """A join that waits for another member's does not keep it from being sent."""
    waiting: list[Callable[[], None]] = []

    def joined(connection: fake.Connection, request: fake.Request) -> None:
        answer = fake.framed(
            request, {"error_code": 0, "generation_id": 1, "member_id": request.values["member_id"]}
        )
        waiting.append(lambda: connection.transport.write(answer))
        if len(waiting) == 2:
            for say in waiting:
                say()

    brokers.answers("JoinGroup", joined)
    talks = [Talk(connection(number), now_ms=number) for number in (1, 2)]
    for talk, member in zip(talks, "ab", strict=True):
        asked = {"group_id": "g", "member_id": member}
        talk.exchange("JoinGroup", 5, asked, {"generation_id": 1, "member_id": member}, took_ms=100)
    player, found = await brokers.played(in_time(*talks))
    assert (player.answered, found) == (2, {})


@on
async def test_pauses_are_kept_and_scaled(brokers: Brokers) -> None:
    loop, times = asyncio.get_running_loop(), []

    def beaten(connection: fake.Connection, request: fake.Request) -> Values:
        times.append(loop.time())
        return {"error_code": 0}

    brokers.answers("Heartbeat", beaten)
    talk = Talk().heartbeat()
    talk.now_ms = 1000
    await brokers.played(talk.heartbeat().rows, Pace(4.0))
    assert times[1] - times[0] > 0.2
    times.clear()
    talk.rows[2:] = [row._replace(time_ns=row.time_ns + 3600 * 10**9) for row in talk.rows[2:]]
    await brokers.played(talk.rows)
    assert len(times) == 2


@on
async def test_what_is_not_there_yet_is_asked_for_again(brokers: Brokers) -> None:
    brokers.answers("Heartbeat", lambda *_: {"error_code": 14 if len(brokers.asked("Heartbeat")) < 3 else 0})
    _, found = await brokers.played(Talk().heartbeat().rows, Pace(None, 20.0))
    assert (len(brokers.asked("Heartbeat")), found) == (3, {})
    brokers.answers("Heartbeat", {"error_code": 14})
    _, found = await brokers.played(Talk().heartbeat().rows)
    assert found == {("Heartbeat", "error_code"): ("NONE", "COORDINATOR_LOAD_IN_PROGRESS", 1)}


@on
async def test_a_part_that_was_not_there_in_time_is_not_waited_for_again(brokers: Brokers) -> None:
    brokers.answers("Heartbeat", {"error_code": 14})
    talk = Talk().heartbeat().heartbeat(group="other").heartbeat()
    _, found = await brokers.played(talk.rows)
    groups = [values["group_id"] for _, values in brokers.asked("Heartbeat")]
    assert groups.count("other") > 1
    assert groups[groups.index("other") :].count("billing") == 1
    assert found == {("Heartbeat", "error_code"): ("NONE", "COORDINATOR_LOAD_IN_PROGRESS", 3)}


@on
async def test_a_fetch_waits_as_long_as_its_client_said_whatever_the_pace(brokers: Brokers) -> None:
    await brokers.played(Talk().metadata().fetch(max_wait_ms=4321).rows, FAST)
    ((_, asked),) = brokers.asked("Fetch")
    assert asked["max_wait_ms"] == 4321


@on
async def test_what_was_sent_to_a_controller_goes_to_a_bootstrap_server(brokers: Brokers) -> None:
    brokers.answers("ListGroups", {"error_code": 0, "groups": []})
    homes = ("12", "controller 12", "bootstrap")
    talks = [Talk(connection(number, broker=home), now_ms=number) for number, home in enumerate(homes, 1)]
    for talk in talks:
        talk.exchange("ListGroups", 2, {}, {"error_code": 0, "groups": []})
    await brokers.played(in_time(*talks))
    assert [node for node, _ in brokers.asked("ListGroups")] == [12, 11, 11]


@on
async def test_all_requests_are_made_by_one_user(brokers: Brokers) -> None:
    tokens: list[bytes] = []

    def authenticated(connection: fake.Connection, request: fake.Request) -> Values:
        tokens.append(request.values["auth_bytes"])
        return {"error_code": 0, "auth_bytes": b""}

    for broker in brokers.brokers.values():
        broker.answers["SaslHandshake"] = lambda *_: {"error_code": 0, "mechanisms": ["PLAIN"]}
        broker.answers["SaslAuthenticate"] = authenticated
    user = {"sasl.username": "alice", "sasl.password": "secret", "sasl.mechanism": "PLAIN"}
    talks = [Talk(connection(number), client_id=name, now_ms=number) for number, name in enumerate("ab", 1)]
    for talk in talks:
        talk.heartbeat()
    await brokers.played(in_time(*talks), properties={"security.protocol": "SASL_PLAINTEXT", **user})
    assert len(tokens) >= 3  # klamm's own connection, and one for each client
    assert set(tokens) == {b"\0alice\0secret"}


@on
async def test_only_what_failed_of_a_request_is_sent_again(brokers: Brokers) -> None:
    def once(connection: fake.Connection, request: fake.Request) -> Values:
        answer = fake.produce(connection, request)
        assert answer is not None
        for part in answer["responses"][0]["partition_responses"]:
            part["error_code"] = 6 * (part["index"] == 2 and len(brokers.asked("Produce")) == 1)
        return answer

    brokers.answers("Produce", once)
    rows = [{"index": n, "records": b""} for n in (0, 2)]
    partitions = [{"index": n, "error_code": 0} for n in (0, 2)]
    talk = Talk().exchange(
        "Produce",
        9,
        {"acks": -1, "timeout_ms": 1, "topic_data": [{"name": "orders", "partition_data": rows}]},
        {"responses": [{"name": "orders", "partition_responses": partitions}]},
    )
    _, found = await brokers.played(talk.rows, Pace(None, 20.0))
    asked = [values["topic_data"][0]["partition_data"] for _, values in brokers.asked("Produce")]
    assert [[part["index"] for part in parts] for parts in asked] == [[0, 2], [2]]
    assert found == {}


@on
async def test_records_that_were_fetched_are_waited_for(brokers: Brokers) -> None:
    def fetched(connection: fake.Connection, request: fake.Request) -> Values:
        records = DATA if len(brokers.asked("Fetch")) > 2 else b""
        part = {"partition_index": 3, "error_code": 0, "high_watermark": 1, "records": records}
        return {"responses": [{"topic_id": NEW_ID, "partitions": [part]}]}

    brokers.answers("Fetch", fetched)
    _, found = await brokers.played(Talk().metadata().fetch(records=DATA).rows, Pace(None, 20.0))
    assert (len(brokers.asked("Fetch")), found) == (3, {})


@on
async def test_a_client_that_was_told_to_wait_and_is_not_now_is_no_difference(brokers: Brokers) -> None:
    player, found = await brokers.played(Talk().heartbeat(error_code=14).heartbeat(error_code=25).rows)
    assert found == {("Heartbeat", "error_code"): ("UNKNOWN_MEMBER_ID", "NONE", 1)}
    assert player.differences.passed == {("Heartbeat", "COORDINATOR_LOAD_IN_PROGRESS"): 1}


@on
async def test_a_connection_that_ends_is_a_difference_and_the_next_request_has_another(
    brokers: Brokers,
) -> None:
    brokers.answers("Heartbeat", fake.closes)
    player, found = await brokers.played(Talk().heartbeat().produce().rows)
    expected = ("answered", "the broker closed the connection", 1)
    assert found == {("Heartbeat", "(answer)"): expected}
    assert player.answered == 1


@on
async def test_partitions_that_a_heartbeat_brought_are_waited_for(brokers: Brokers) -> None:
    def answer(there: bool) -> Values:
        topics = [{"topic_id": TOPIC_ID, "partitions": [0]}]
        return {
            "member_id": "m",
            "member_epoch": 1,
            "assignment": {"topic_partitions": topics} if there else None,
        }

    name = "ConsumerGroupHeartbeat"
    brokers.answers(name, lambda *_: answer(len(brokers.asked(name)) == 3))
    talk = Talk().exchange(name, 0, {"group_id": "g", "member_id": "m"}, answer(True))
    _, found = await brokers.played(talk.rows, Pace(None, 20.0))
    assert (len(brokers.asked(name)), found) == (3, {})


@on
async def test_a_cluster_that_closes_instead_of_answering_is_told_with_what_may_help(
    brokers: Brokers,
) -> None:
    for broker in brokers.brokers.values():
        broker.answers["Metadata"] = fake.closes
    with pytest.raises(Unanswered, match=r"closes the connection when asked for Metadata: .*--client-config"):
        await brokers.played(Talk().heartbeat().rows)


@on
async def test_an_answer_to_another_request_ends_the_connection(brokers: Brokers) -> None:
    brokers.answers("Heartbeat", lambda _, request: fake.framed(request._replace(correlation_id=77), {}))
    _, found = await brokers.played(Talk().heartbeat().rows)
    expected = ("answered", "the broker answers request 77, and not 0", 1)
    assert found == {("Heartbeat", "(answer)"): expected}


@on
async def test_apis_that_klamm_does_not_know_are_sent_as_they_were(brokers: Brokers) -> None:
    """In Kafka 0.8's way: a cluster that does not tell what it offers is asked all the same."""
    received: list[bytes] = []
    for broker in brokers.brokers.values():
        broker.answers["ApiVersions"] = fake.closes
        broker.answers["Metadata"] = lambda connection, request: fake.metadata(connection, request)
    row = Talk().heartbeat().rows[0]
    frame = bytes.fromhex("03e7 0000 00000005 0003") + b"app" + b"anything"
    unknown = row._replace(api_key=999, api_version=0, correlation_id=5, frame=frame, size=len(frame))
    take = fake.Connection._take

    def taken(connection: fake.Connection, data: bytes) -> None:
        if data[:2] != frame[:2]:
            return take(connection, data)
        received.append(data)
        connection.transport.write(bytes.fromhex("00000006 00000005 abcd"))
        return None

    with patch.object(fake.Connection, "_take", taken):
        answer = row._replace(side="response", time_ns=row.time_ns + 1, api_key=999, frame=b"\0\0\0\5xy")
        player, found = await brokers.played([unknown, answer])
    assert (received, player.answered, found) == ([frame], 1, {})


@on
async def test_a_version_that_the_cluster_does_not_offer_is_not_sent(brokers: Brokers) -> None:
    for broker in brokers.brokers.values():
        broker.answers["ApiVersions"] = lambda *_: {
            "api_keys": [
                {"api_key": key, "min_version": 0, "max_version": most}
                for key, most in ((3, 12), (10, 3), (12, 3), (18, 3))
            ]
        }
    _, found = await brokers.played(Talk().heartbeat().produce().rows)
    assert found == {
        ("Heartbeat", "(version)"): ("v4", "v0-3 are offered", 1),
        ("Produce", "(version)"): ("v9", "the cluster has no such API", 1),
    }


@on
async def test_requests_without_an_answer_are_not_waited_for(brokers: Brokers) -> None:
    talk = Talk().produce(acks=0)
    talk.rows[-1] = talk.rows[-1]._replace(awaits=False)
    lonely = talk.heartbeat().rows[:-1]  # its answer is not in the capture
    player, found = await brokers.played([*lonely, *talk.closed().rows[-1:]])
    assert (player.sent, player.answered, found) == (2, 0, {})
    await brokers.brokers[12].until(lambda: len(brokers.asked("Produce")) == 1)


@on
async def test_what_cannot_be_sent_again_is_left_out(brokers: Brokers) -> None:
    blank = Talk().exchange("SaslHandshake", 1, {"mechanism": "PLAIN"}, {"error_code": 0, "mechanisms": []})
    blank.exchange("AlterConfigs", 0, {"resources": [], "validate_only": False}, {"responses": []})
    blank.rows[2] = blank.rows[2]._replace(blanks=((12, 4),))
    blank.heartbeat()
    blank.rows[4] = blank.rows[4]._replace(frame=None)
    found = survey(blank.heartbeat().produce().rows, without=frozenset({"Produce"}))
    assert found.requests == 1
    assert sorted(found.left_out.values()) == [1, 1, 1, 1]
    player, differences = await brokers.played(blank.rows[:-2])
    assert (player.sent, differences) == (1, {})


@on
async def test_topics_have_as_many_replicas_as_there_are_brokers_and_no_blank_settings(
    brokers: Brokers,
) -> None:
    settings = [{"name": "a", "value": "\0\0"}, {"name": "b", "value": None}]
    topic = {"name": "orders", "num_partitions": 1, "replication_factor": 3, "configs": settings}
    talk = Talk().exchange("CreateTopics", 2, {"topics": [topic]}, {"topics": []})
    talk.rows[0] = talk.rows[0]._replace(blanks=((30, 2),))
    await brokers.played(talk.rows)
    ((_, asked),) = brokers.asked("CreateTopics")
    (made,) = asked["topics"]
    assert (made["replication_factor"], made["configs"]) == (2, settings[1:])


@on
async def test_how_many_were_sent_is_told_as_it_goes(brokers: Brokers) -> None:
    counts: list[int] = []
    await brokers.played(Talk().heartbeat().heartbeat().rows, progress=counts.append)
    assert counts == [1, 2]
