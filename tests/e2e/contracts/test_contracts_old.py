"""The promises in the guides of Kafka 0.8 to 0.10, through klamm, from brokers of that time."""

import gzip
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from klamm.decoders import API
from tests.brokers.namespace import Namespace
from tests.brokers.processes import wait_for
from tests.brokers.zookeeper import OldCluster
from tests.e2e.contracts.contracts import (
    GZIP,
    Address,
    Talk,
    Values,
    ask,
    fetch,
    fetched,
    list_offsets,
    listed,
    message_set,
    messages,
    produce,
    produced,
    wrapped,
)
from tests.e2e.klamm_process import klamm_in_front_of

pytestmark = pytest.mark.brokers

TOPIC = "contracts-old"
LEADER_NOT_AVAILABLE, NOT_COORDINATOR_YET, STALE_CONTROLLER, NOT_ENOUGH, BAD_ACKS = 5, 15, 11, 19, 21
REQUEST_TIMED_OUT = 7
CORRUPT, UNKNOWN_PARTITION, BROKER_NOT_AVAILABLE, UNSUPPORTED_VERSION, NOT_CONTROLLER = 2, 3, 8, 35, 41
MAGIC = {"0.8.2.2": 0, "0.10.1.1": 1}
NEWEST = {"0.8.2.2": {"Produce": 0, "Fetch": 0}, "0.10.1.1": {"Produce": 2, "Fetch": 3}}


class Old(NamedTuple):
    """An old cluster through klamm: where to bootstrap, its brokers, which one leads partition 0 of TOPIC."""

    version: str
    address: Address
    brokers: dict[int, Address]
    leader: int

    def ask_leader(self, api: str, version: int, values: Values) -> Values:
        return ask(self.brokers[self.leader], api, version, values)

    def produce(self, data: bytes, version: int | None = None, **more: int) -> Values:
        version = NEWEST[self.version]["Produce"] if version is None else version
        return produced(self.ask_leader("Produce", version, produce(TOPIC, data, **more)))

    def read(self, offset: int, version: int = 0, size: int = 1 << 20, **more: int) -> Values:
        values = fetch(TOPIC, offset, size=size, replica_id=-1)
        del values["session_epoch"], values["max_bytes"]
        return fetched(self.ask_leader("Fetch", version, {**values, **more}))


def _led(address: Address) -> Values | None:
    """Metadata of TOPIC, once its partitions have leaders."""
    answer = ask(address, "Metadata", 0, {"topics": [{"name": TOPIC}]})
    (topic,) = answer["topics"]
    return answer if topic["partitions"] and not topic["error_code"] else None


@pytest.fixture(scope="module")
def old(old_kafka: OldCluster, inside: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Old]:
    """TOPIC is made by being asked for."""
    log = tmp_path_factory.mktemp(f"contracts-{old_kafka.version}") / "klamm.log"
    with klamm_in_front_of(old_kafka.bootstrap(), inside.host, log) as klamm:
        first = ask(klamm.address, "Metadata", 0, {"topics": [{"name": TOPIC}]})["topics"][0]
        assert (first["error_code"], first["partitions"]) == (LEADER_NOT_AVAILABLE, [])
        metadata = wait_for(lambda: _led(klamm.address), "the topic")
        brokers = {node["node_id"]: (node["host"], node["port"]) for node in metadata["brokers"]}
        leaders = {one["partition_index"]: one["leader_id"] for one in metadata["topics"][0]["partitions"]}
        made = Old(old_kafka.version, klamm.address, brokers, leaders[0])
        wait_for(lambda: made.produce(message_set([b"first"], 0), 0)["error_code"] == 0, "the leader")
        yield made


def test_a_topic_that_is_asked_for_is_made_and_led_soon(old: Old) -> None:
    topics = ask(old.address, "Metadata", 0, {"topics": []})["topics"]
    assert TOPIC in {topic["name"] for topic in topics}
    assert {host for host, _ in old.brokers.values()} == {old.address[0]}


def test_messages_are_kept_whole_and_get_the_offsets_of_the_log(old: Old) -> None:
    values = [b"one", b"", b"three"]
    base = old.produce(message_set(values, 0, offset=77), 0)["base_offset"]
    read = messages(old.read(base)["records"])
    assert [(offset, value) for offset, _, _, value in read] == [
        (base + index, value) for index, value in enumerate(values)
    ]


def test_the_messages_inside_a_compressed_one_have_absolute_offsets_in_format_0_and_relative_in_1(
    old: Old,
) -> None:
    magic, newest = MAGIC[old.version], NEWEST[old.version]["Fetch"]
    base = old.produce(wrapped([b"a", b"b", b"c"], magic))["base_offset"]
    more = {"max_bytes": 1 << 20} if newest >= 3 else {}
    (wrapper,) = messages(old.read(base, newest, **more)["records"])
    assert wrapper[:3] == (base + 2, magic, GZIP)
    inner = messages(gzip.decompress(wrapper[3]))
    start = 0 if magic else base
    assert inner == [(start, magic, 0, b"a"), (start + 1, magic, 0, b"b"), (start + 2, magic, 0, b"c")]


def test_a_fetch_cuts_its_last_message_at_the_size_that_it_was_given(old: Old) -> None:
    magic, newest = MAGIC[old.version], min(NEWEST[old.version]["Fetch"], 2)
    base = old.produce(message_set([b"one", b"two", b"three"], magic))["base_offset"]
    whole = old.read(base, newest)["records"]
    size = len(message_set([b"one"], magic)) + 20
    cut = old.read(base, newest, size)["records"]
    assert (cut, len(cut)) == (whole[:size], size)
    assert [value for *_, value in messages(cut)] == [b"one"]
    assert messages(old.read(base, newest, 5)["records"]) == []


def test_a_message_with_a_wrong_crc_is_refused(old: Old) -> None:
    damaged = bytearray(message_set([b"value"], 0))
    damaged[-1] ^= 1
    assert old.produce(bytes(damaged), 0)["error_code"] == CORRUPT


def test_a_broker_that_does_not_hold_a_partition_refuses_it(old: Old) -> None:
    (other,) = old.brokers.keys() - {old.leader}
    answer = produced(ask(old.brokers[other], "Produce", 0, produce(TOPIC, message_set([b"x"], 0))))
    assert answer["error_code"] == UNKNOWN_PARTITION


def test_acks_0_is_not_answered_by_old_brokers_either(old: Old) -> None:
    with Talk(old.brokers[old.leader]) as talk:
        talk.send("Produce", 0, produce(TOPIC, message_set([b"unanswered"], 0), acks=0))
        answer = produced(talk.ask("Produce", 0, produce(TOPIC, message_set([b"x"], 0), acks=1)))
        read = messages(old.read(answer["base_offset"] - 1)["records"])
    assert [value for *_, value in read] == [b"unanswered", b"x"]


def test_a_fetch_of_version_0_waits_and_is_answered_when_data_comes(old: Old) -> None:
    end = old.produce(message_set([b"before"], 0), 0)["base_offset"] + 1
    assert old.read(end, max_wait_ms=100, min_bytes=1)["records"] == b""
    values = fetch(TOPIC, end, replica_id=-1, max_wait_ms=25_000, min_bytes=1)
    del values["session_epoch"], values["max_bytes"]
    with Talk(old.brokers[old.leader]) as talk:
        talk.send("Fetch", 0, values)
        assert talk.silent(0.2)
        old.produce(message_set([b"news"], 0), 0)
        answer = fetched(talk.answer("Fetch", 0))
    assert [value for *_, value in messages(answer["records"])] == [b"news"]


def test_offsets_of_version_0_come_as_a_list_newest_first(old: Old) -> None:
    base = old.produce(message_set([b"x"], 0), 0)["base_offset"]
    (topic,) = (values := list_offsets(TOPIC, -1))["topics"]
    topic["partitions"][0]["max_num_offsets"] = 10
    latest = listed(old.ask_leader("ListOffsets", 0, values))["old_style_offsets"]
    assert (latest[0], latest[-1]) == (base + 1, 0)
    earliest = listed(old.ask_leader("ListOffsets", 0, list_offsets(TOPIC, -2)))
    assert earliest["old_style_offsets"] == [0]


def test_a_coordinator_that_is_not_there_yet_has_node_minus_1_and_then_comes_with_the_address_of_klamm(
    old: Old,
) -> None:
    """Unless another test has asked before: the first question makes the topic of the offsets."""
    first = ask(old.address, "GroupCoordinator", 0, {"key": "contracts"})
    if first["error_code"]:
        assert (first["error_code"], first["node_id"]) == (NOT_COORDINATOR_YET, -1)
        assert (first["host"], first["port"]) == ("", -1)
    found = _coordinator(old)
    assert found in old.brokers.values()


def _coordinator(old: Old) -> Address:
    def found() -> Address | None:
        answer = ask(old.address, "ConsumerMetadata", 0, {"key": "contracts"})
        if answer["error_code"]:
            return None
        address = answer["host"], answer["port"]
        fetched = ask(address, "OffsetFetch", 1, {"group_id": "contracts", "topics": []})
        return address if fetched["topics"] == [] else None

    return wait_for(found, "the coordinator")


def test_offsets_committed_with_version_0_are_kept_apart_from_those_of_later_versions(old: Old) -> None:
    """Version 0 commits to ZooKeeper, 1 and 2 to a topic."""
    address = _coordinator(old)

    def commit(version: int, offset: int) -> int:
        partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": "note"}
        values: Values = {"group_id": "contracts", "topics": [{"name": TOPIC, "partitions": [partition]}]}
        if version:
            values |= {"generation_id_or_member_epoch": -1, "member_id": ""}
        answer = ask(address, "OffsetCommit", version, values)
        return int(answer["topics"][0]["partitions"][0]["error_code"])

    def committed(version: int) -> int:
        wanted = {"group_id": "contracts", "topics": [{"name": TOPIC, "partition_indexes": [0]}]}
        answer = ask(address, "OffsetFetch", version, wanted)
        return int(answer["topics"][0]["partitions"][0]["committed_offset"])

    wait_for(lambda: commit(1, 20) == 0, "the coordinator to have loaded its offsets", timeout_s=20)
    assert commit(0, 10) == 0
    assert (committed(0), committed(1)) == (10, 20)
    if old.version == "0.10.1.1":
        assert commit(2, 30) == 0
        assert (committed(0), committed(1)) == (10, 30)


def test_brokers_before_0_10_close_on_api_versions_and_later_ones_answer_in_layout_0(old: Old) -> None:
    with Talk(old.address) as talk:
        talk.send("ApiVersions", 3, {"client_software_name": "a", "client_software_version": "1"})
        if old.version == "0.8.2.2":
            assert talk.closed()
            return
        assert talk.frame()[4:] == UNSUPPORTED_VERSION.to_bytes(2, "big") + bytes(4)
        ranges = talk.ask("ApiVersions", 0)["api_keys"]
        assert {key["api_key"] for key in ranges} == set(range(21))


SPOKEN_BY_0_10 = {
    "Produce": 2, "Fetch": 3, "Offsets": 1, "Metadata": 2, "LeaderAndIsr": 0, "StopReplica": 0,
    "UpdateMetadata": 2, "ControlledShutdown": 1, "OffsetCommit": 2, "OffsetFetch": 1, "GroupCoordinator": 0,
    "JoinGroup": 1, "Heartbeat": 0, "LeaveGroup": 0, "SyncGroup": 0, "DescribeGroups": 0, "ListGroups": 0,
    "SaslHandshake": 0, "ApiVersions": 0, "CreateTopics": 0, "DeleteTopics": 0,
}  # fmt: skip
CONTROLLER = {"controller_id": 0, "controller_epoch": 0}
OF_CONTROLLERS = [
    ("LeaderAndIsr", 0, CONTROLLER, STALE_CONTROLLER),
    ("StopReplica", 0, CONTROLLER, STALE_CONTROLLER),
    ("UpdateMetadata", 0, CONTROLLER, STALE_CONTROLLER),
    ("UpdateMetadata", 1, CONTROLLER, STALE_CONTROLLER),
    ("UpdateMetadata", 2, CONTROLLER, STALE_CONTROLLER),
    ("ControlledShutdown", 0, {"broker_id": 77}, BROKER_NOT_AVAILABLE),
    ("ControlledShutdown", 1, {"broker_id": 77}, BROKER_NOT_AVAILABLE),
]


def test_what_controllers_say_passes_and_a_stale_one_is_refused(old: Old) -> None:
    """0.8.2.2 writes UNKNOWN (-1) where it fails otherwise."""
    for api, version, values, error in OF_CONTROLLERS:
        answers = {ask(address, api, version, values)["error_code"] for address in old.brokers.values()}
        assert answers <= {error, STALE_CONTROLLER, -1 if old.version == "0.8.2.2" else error}, (api, version)


SPOKEN_BY_0_8 = {"Produce": 0, "Fetch": 0, "Offsets": 0, "Metadata": 0, "OffsetCommit": 1, "OffsetFetch": 1}


def test_every_version_that_a_broker_of_the_guide_speaks_is_answered(old: Old) -> None:
    if old.version == "0.8.2.2":
        newest = {API[name].key: version for name, version in SPOKEN_BY_0_8.items()}
    else:
        versions = ask(old.address, "ApiVersions", 0)["api_keys"]
        newest = {key["api_key"]: key["max_version"] for key in versions}
        assert newest == {API[name].key: version for name, version in SPOKEN_BY_0_10.items()}
    for key in newest.keys() - {API[name].key for name, *_ in OF_CONTROLLERS}:
        for version in range(newest[key] + 1):
            values = {"acks": 1} if API[key].name == "Produce" else {}
            assert ask(old.address, API[key].name, version, values) is not None


def test_acks_all_needs_min_insync_replicas_and_acks_1_does_not(old: Old) -> None:
    """Only a controller makes topics, and 0.8 cannot be asked to; it takes acks for a number of replicas."""
    if old.version == "0.8.2.2":
        assert old.produce(message_set([b"x"], 0), acks=-1)["error_code"] == 0
        too_many = old.produce(message_set([b"x"], 0), acks=2, timeout_ms=100)
        assert too_many["error_code"] == REQUEST_TIMED_OUT
        return
    settings = [{"name": "min.insync.replicas", "value": "2"}]
    topic = {"name": "contracts-strict", "num_partitions": 1, "replication_factor": 1, "configs": settings}
    making = {"topics": [topic], "timeout_ms": 10_000}
    answers = [ask(address, "CreateTopics", 0, making) for address in old.brokers.values()]
    assert sorted(answer["topics"][0]["error_code"] for answer in answers) == [0, NOT_CONTROLLER]

    def outcomes(acks: int) -> set[int]:
        values = produce("contracts-strict", message_set([b"x"], 1), acks=acks)
        return {produced(ask(node, "Produce", 2, values))["error_code"] for node in old.brokers.values()}

    wait_for(lambda: 0 in outcomes(1), "the topic", timeout_s=10)
    assert NOT_ENOUGH in outcomes(-1)
    assert BAD_ACKS in outcomes(2)
