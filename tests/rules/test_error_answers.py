"""Kafka's own classes judge the answers that refuse, at every place of every version."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from klamm.decoders import API, decode, encode
from klamm.decoders.schema import ERROR, Api, marked
from klamm.rules.errors.answers import NoPlace, Place, Values, edit_answer, error_answer, places
from klamm.rules.errors.documents import documented
from tests.oracle.errors import Refusal, Report, refusals, reports
from tests.oracle.messages import NEWEST_FIRST, Message, values_of, written
from tests.rules.conftest import Injected
from tests.rules.telling import answered, codes_at, request_of, response_of, told_parts, versions

SEED = 5
CODES = (-1, 29, 133, 32767)  # unknown, one with a text, the newest, one that nobody knows

# Where Kafka's own refusal is not what is made here, by API and versions.
DIFFERENT = {
    (
        "DescribeLogDirs",
        (0, 1, 2),
    ): "has no code but one per directory, and Kafka answers with no directories",
    ("ListPartitionReassignments", (0,)): "Kafka names the partitions too, though they have no codes",
    ("DescribeUserScramCredentials", (0,)): "Kafka leaves out the users' names",
    ("Fetch", (0, 1, 2, 3)): "Kafka 3.9 has null for no records; 4.x has empty ones, as here",
    ("UpdateMetadata", (1, 2)): "Kafka 3.9 cannot read a made-up security protocol",
}

# Codes that are in the message that Kafka's response class read, but that its errorCounts() leaves out.
NOT_COUNTED = {
    ("Metadata", "error_code"),
    ("CreateTopics", "topics.topic_config_error_code"),
    ("DeleteAcls", "filter_results.matching_acls.error_code"),
    ("DescribeUserScramCredentials", "error_code"),
    ("AssignReplicasToDirs", "directories.topics.partitions.error_code"),
    ("ShareFetch", "responses.partitions.acknowledge_error_code"),
}

# Places where no error can be injected, with the reason.
LEFT_OUT: dict[tuple[str, str], str] = {}

every_api = pytest.mark.parametrize("api", API, ids=lambda api: api.name)
Layout = tuple[str, int]


@cache
def requests_of_kafka() -> dict[Layout, list[Message]]:
    """Requests that Kafka's classes made at random, by the newest Kafka that has the version."""
    return {
        (API[key].name, version): messages
        for (key, side, version), messages in written(SEED, 4).items()
        if side == "request"
    }


def known_to(name: str, version: int) -> str:
    return requests_of_kafka()[name, version][0].kafka


@cache
def refused_by_kafka() -> dict[Layout, list[tuple[bytes, Refusal]]]:
    """Of each version a telling request, and random ones, and what Kafka answers when it refuses them."""
    found: dict[Layout, list[tuple[bytes, Refusal]]] = {of: [] for of in requests_of_kafka()}
    for kafka in NEWEST_FIRST:
        asked = [
            (*of, 29, data)
            for of, messages in requests_of_kafka().items()
            if known_to(*of) == kafka
            for data in [encode(request_of(*of), *of, "request"), *(message.data for message in messages)]
        ]
        for (name, version, _, data), refusal in zip(asked, refusals(kafka, asked), strict=True):
            found[name, version].append((data, refusal))
    return found


@pytest.mark.sampled(40)
@every_api
def test_a_request_is_refused_as_kafka_refuses_it(api: Api) -> None:
    different = {v for (name, numbers) in DIFFERENT for v in numbers if name == api.name}
    for version in versions(api):
        _, kafka = refused_by_kafka()[api.name, version][0]
        try:
            answer = error_answer(api, version, request_of(api, version), 29)
        except NoPlace:
            answer = None
        theirs = None if kafka.data is None else decode(kafka.data, api.key, version, "response")
        assert (in_any_order(answer) == in_any_order(theirs)) == (version not in different), version


@every_api
def test_the_parts_of_any_request_get_the_code_where_kafka_puts_it(api: Api) -> None:
    for version in versions(api):
        for data, kafka in refused_by_kafka()[api.name, version]:
            request = decode(data, api.key, version, "request")
            if kafka.data is None or api.name == "DescribeUserScramCredentials":
                continue  # no answer to acks 0; an enumeration that Kafka does not know; DIFFERENT
            theirs = told_parts(api, version, decode(kafka.data, api.key, version, "response"))
            if any(code for *_, code in theirs):
                assert told_parts(api, version, answered(api, version, request, 29)) == theirs, version
            else:
                with pytest.raises(NoPlace):
                    error_answer(api, version, request, 29)


def in_any_order(value: Any) -> Any:
    """Kafka keeps many parts in hash maps; its texts are its own."""
    if isinstance(value, dict):
        return {k: bool(v) if k == "error_message" else in_any_order(v) for k, v in value.items()}
    return sorted(map(in_any_order, value), key=repr) if isinstance(value, list) else value


Cell = tuple[Api, int, Place, int, str]


def cells() -> Iterator[tuple[Cell, Values]]:
    """Every answer that is made, and every answer that is edited: API, version, place, code, how."""
    for api in API:
        for version in versions(api):
            for place in places(api, version):
                if (api.name, str(place)) in LEFT_OUT:
                    continue
                request, response = request_of(api, version), response_of(api, version)
                for code in CODES:
                    cell = (api, version, place, code, "edited")
                    yield cell, edit_answer(api, version, response, code, place)
                    if place.asked:
                        yield (
                            (api, version, place, code, "made"),
                            answered(api, version, request, code, place),
                        )


@cache
def reported() -> list[tuple[Cell, Values, Report]]:
    found: list[tuple[Cell, Values, Report]] = []
    for kafka in NEWEST_FIRST:
        here = [(cell, answer) for cell, answer in cells() if known_to(cell[0].name, cell[1]) == kafka]
        bodies = [
            (api.name, version, code, encode(answer, api.key, version, "response"))
            for (api, version, _, code, _), answer in here
        ]
        found += [(*made, report) for made, report in zip(here, reports(kafka, bodies), strict=True)]
    return found


def test_kafka_reads_every_error_at_its_place_and_no_other(injected: Injected) -> None:
    for (api, version, place, code, how), answer, report in reported():
        where = (api.name, version, str(place), code, how)
        assert not report.error, (where, report.error)
        values = values_of(api.response, version, report.values)
        for other in places(api, version):
            expected = {code} if other.path == place.path else {0}
            assert set(codes_at(values, other.path)) <= expected, where
        assert codes_at(values, place.path), where
        assert len(codes_at(answer, place.path)) == len(codes_at(values, place.path)), where
        counted = (api.name, str(place)) not in NOT_COUNTED
        assert (report.code in report.counted) == counted, (where, report.counted)
        if code == CODES[0] and how == "edited":
            injected.places[api.name, version] = injected.places.get((api.name, version), 0) + 1
    injected.left_out += [f"{name} {place} ({reason})" for (name, place), reason in LEFT_OUT.items()]
    assert sum(injected.places.values()) == every_place() - left_out()


def every_place() -> int:
    """As the tables mark them, which Kafka's schemas judge."""
    return sum(len(marked(api.response, v, frozenset({ERROR}))) for api in API for v in versions(api))


def left_out() -> int:
    return sum(
        (api.name, str(place)) in LEFT_OUT for api in API for v in versions(api) for place in places(api, v)
    )


def test_a_produce_that_wants_no_answer_gets_none() -> None:
    assert error_answer("Produce", 9, request_of("Produce", 9) | {"acks": 0}, 6) is None


@pytest.mark.parametrize(
    ("name", "version", "change"),
    [
        ("Metadata", 12, {"topics": None}),
        ("Fetch", 6, {"topics": []}),
        ("OffsetFetch", 1, {"topics": []}),
        ("ElectLeaders", 0, {"topic_partitions": None}),
    ],
)
def test_a_request_that_names_no_part_cannot_be_refused_part_by_part(
    name: str, version: int, change: Values
) -> None:
    with pytest.raises(NoPlace, match="the request names none of these parts") as caught:
        error_answer(name, version, request_of(name, version) | change, 29)
    assert caught.value.edit


def test_a_fetch_in_a_session_can_only_be_refused_as_a_whole() -> None:
    request = request_of("Fetch", 12) | {"session_epoch": 4, "topics": []}
    answer = answered("Fetch", 12, request, 70)
    assert (answer["error_code"], answer["responses"]) == (70, [])
    assert answer["session_id"] == request["session_id"]
    with pytest.raises(NoPlace, match="a session holds these parts"):
        error_answer("Fetch", 12, request, 1, ("responses", "partitions", "error_code"))


def test_what_only_the_broker_knows_is_edited() -> None:
    with pytest.raises(NoPlace, match="only the broker knows") as caught:
        error_answer("Metadata", 12, request_of("Metadata", 12), 5, ("topics", "partitions", "error_code"))
    assert caught.value.edit


def test_a_place_that_a_version_lacks_is_refused_with_those_that_it_has() -> None:
    with pytest.raises(
        NoPlace, match=r"Fetch v6 has no error_code; it has responses\.partitions\.error_code"
    ) as caught:
        error_answer("Fetch", 6, request_of("Fetch", 6), 1, ("error_code",))
    assert not caught.value.edit


def test_only_the_parts_in_question_are_in_the_answer() -> None:
    request = request_of("Fetch", 12) | {"session_epoch": 0}
    topic = request["topics"][1]["topic"]
    partition = request["topics"][1]["partitions"][0]["partition"]
    answer = answered("Fetch", 12, request, 1, only=lambda part: part["partition"] == partition)
    assert answer["error_code"] == 0
    assert told_parts(API["Fetch"], 12, answer) == {
        ("error_code", (), 0),
        ("responses.partitions.error_code", (topic, str(partition)), 1),
    }


def test_an_edited_answer_changes_just_the_parts_in_question() -> None:
    api, version = API["Fetch"], 12
    response = response_of(api, version)
    wanted = response["responses"][0]["partitions"][1]
    edited = edit_answer(
        api, version, response, 6, only=lambda p: p["partition"] == wanted["partition_index"]
    )
    changed = edited["responses"][0]["partitions"][1]
    assert changed == wanted | {
        "error_code": 6, "high_watermark": -1, "last_stable_offset": -1, "log_start_offset": -1,
        "records": b"", "aborted_transactions": [], "preferred_read_replica": -1,
        "diverging_epoch": {"epoch": -1, "end_offset": -1}, "snapshot_id": {"end_offset": -1, "epoch": -1},
        "current_leader": {"leader_id": -1, "leader_epoch": -1},
    }  # fmt: skip
    assert edited["responses"][1] is response["responses"][1]
    assert wanted["error_code"] == 0
    assert edited["throttle_time_ms"] == response["throttle_time_ms"]


def test_an_edited_partition_of_metadata_loses_its_leader_and_keeps_its_replicas() -> None:
    response = response_of(API["Metadata"], 12)
    edited = edit_answer("Metadata", 12, response, 5, ("topics", "partitions", "error_code"))
    before, after = response["topics"][0]["partitions"][0], edited["topics"][0]["partitions"][0]
    assert after == before | {"error_code": 5, "leader_id": -1, "leader_epoch": -1}
    assert edited["brokers"] == response["brokers"]


def test_an_answer_in_which_nothing_matches_is_the_same_object() -> None:
    response = response_of(API["ListOffsets"], 7)
    assert edit_answer("ListOffsets", 7, response, 6, only=lambda part: False) is response


def test_an_error_of_a_side_matter_leaves_the_rest_of_its_part() -> None:
    response = response_of(API["ShareFetch"], 1)
    place = ("responses", "partitions", "acknowledge_error_code")
    edited = edit_answer("ShareFetch", 1, response, 121, place)
    before, after = response["responses"][0]["partitions"][0], edited["responses"][0]["partitions"][0]
    assert after == before | {"acknowledge_error_code": 121}


def test_places_say_what_they_are_of() -> None:
    of = {(name, v): [place.of for place in places(name, v)] for name, v in OF}
    assert of == OF


OF = {
    ("Produce", 13): ["partition"],
    ("Metadata", 13): ["topic", "partition", "response"],
    ("OffsetFetch", 8): ["partition", "group"],
    ("LeaveGroup", 5): ["response", "member"],
    ("DescribeConfigs", 4): ["resource"],
    ("DescribeTransactions", 0): ["transaction"],
    ("FindCoordinator", 6): ["key"],
    ("CreateAcls", 3): ["results"],
    ("AlterUserScramCredentials", 0): ["user"],
    ("DescribeLogDirs", 4): ["response", "log_dir"],
}


def test_an_error_that_kafka_does_not_name_for_an_api_is_known() -> None:
    named = [documented("Produce", 6), documented("Offsets", 78), documented("Heartbeat", 27)]
    assert all(named)
    assert not any([documented("Produce", 27), documented("Heartbeat", 1)])
    assert documented("Vote", 27)  # nothing is said of APIs between brokers


def test_an_edit_of_topics_puts_the_code_where_the_request_names_them() -> None:
    response = response_of(API["Metadata"], 12)
    name = response["topics"][0]["name"]
    edited = edit_answer("Metadata", 12, response, 29, only=lambda part: part["topic"] == name)
    assert [topic["error_code"] for topic in edited["topics"]] == [29, 0]
    assert edited["topics"][0]["partitions"] == []
    assert edited["topics"][1] is response["topics"][1]
