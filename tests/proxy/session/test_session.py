"""The session against made traffic: whatever the cuts, the same bytes, events and closes."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from klamm.decoders import API, decode
from klamm.decoders.headers import REQUEST, response_header_version
from klamm.proxy.session.effects import Close, Event
from klamm.proxy.session.response_bodies import TAIL_HELD
from klamm.rules.plan import Wishes, bears_addresses
from tests.proxy.traffic import (
    ADVERTISE,
    BROKERS,
    Exchanged,
    api_versions,
    at_random,
    byte_by_byte,
    exchange,
    fetch,
    ground,
    kinds,
    metadata,
    play,
    produce,
    whole,
)

PORTS = {1: 20002, 2: 20003, 1000007: 20008}


def mixed() -> list[Exchanged]:
    """Something of everything, ids that repeat included."""
    made = [
        api_versions(3, [(3, 0, 13), (0, 0, 13), (1, 4, 99)]),
        metadata(12, 2),
        metadata(0, 3),
        metadata(12, 2),
    ]
    made += [
        produce(13, 5),
        produce(9, 5),
        produce(3, 6, acks=0),
        produce(13, 7, endpoints=True),
        produce(7, 8),
    ]
    made += [
        fetch(18, 9),
        fetch(4, 10),
        fetch(17, 11, size=5000, endpoints=True),
        fetch(11, 12, parts=3),
        fetch(18, 13, parts=0),
    ]
    made += [
        exchange(
            "FindCoordinator", 2, {"key": "g"}, {"node_id": 2, "host": "kafka-2.internal", "port": 9092}, 14
        ),
        exchange(
            "FindCoordinator",
            4,
            {"coordinator_keys": ["g"]},
            {"coordinators": [coordinator(2), coordinator(-1)]},
            15,
        ),
        exchange(
            "DescribeCluster", 2, {"endpoint_type": 2}, {"endpoint_type": 2, "brokers": cluster_rows()}, 16
        ),
        exchange("DescribeQuorum", 2, {"topics": []}, {"nodes": [quorum_node(3000)]}, 17),
        exchange("Heartbeat", 4, {"group_id": "g", "member_id": "m"}, {"error_code": 27}, 18, client_id=None),
        exchange("SaslHandshake", 1, {"mechanism": "PLAIN"}, {"mechanisms": ["PLAIN"]}, 19, client_id=""),
    ]
    return made


def coordinator(node_id: int) -> dict[str, object]:
    if node_id < 0:
        return {"key": "h", "node_id": -1, "host": "", "port": -1, "error_code": 15}
    return {"key": "g", "node_id": node_id, "host": "kafka-2.internal", "port": 9092}


def cluster_rows() -> list[dict[str, object]]:
    return [{"broker_id": 3000, "host": "controller.internal", "port": 9090}]


def quorum_node(node_id: int) -> dict[str, object]:
    listener = {"name": "CONTROLLER", "host": "controller.internal", "port": 9090}
    return {"node_id": node_id, "listeners": [listener, {**listener, "name": "OTHER"}]}


def answers(stream: bytes) -> list[bytes]:
    frames = []
    while stream:
        size = int.from_bytes(stream[:4], "big") + 4
        frames.append(stream[:size])
        stream = stream[size:]
    return frames


def body(frame: bytes, name: str, version: int) -> dict[str, Any]:
    start = 9 if response_header_version(API[name], version) else 8
    return decode(frame[start:], name, version, "response")


@pytest.mark.parametrize("metering", ["header", "full"])
@pytest.mark.parametrize("batch", [None, 1, 3])
def test_any_chunking_gives_the_same_bytes_events_and_closes(metering: str, batch: int | None) -> None:
    wishes = Wishes(metering, None if metering == "full" else frozenset())  # type: ignore[arg-type]
    expected = play(mixed(), whole, ground(wishes), batch)
    assert play(mixed(), byte_by_byte, ground(wishes), batch) == expected
    for seed in range(60):
        random = Random(seed)
        assert (
            play(mixed(), at_random(random, random.choice([2, 7, 40, 300, 3000])), ground(wishes), batch)
            == expected
        ), seed


@pytest.mark.long
def test_two_thousand_chunkings_give_the_same_bytes_events_and_closes() -> None:
    wishes = Wishes("full", None)
    expected = play(mixed(), whole, ground(wishes))
    for seed in range(2000):
        random = Random(seed)
        cut = at_random(random, random.choice([2, 3, 7, 20, 40, 300, 3000]))
        assert play(mixed(), cut, ground(wishes)) == expected, seed


def test_requests_go_on_byte_for_byte() -> None:
    assert play(mixed(), whole).broker == b"".join(one.request for one in mixed())


def test_responses_without_addresses_go_on_byte_for_byte() -> None:
    made = [
        produce(13),
        fetch(18, 2),
        fetch(4, 3, size=9000),
        produce(7, 4),
        api_versions(3, [(3, 0, 13)], 5),
    ]
    assert play(made, whole).client == b"".join(one.answer or b"" for one in made)


def test_a_read_of_passing_frames_comes_back_as_the_same_object() -> None:
    from klamm.proxy.session.session import Session

    session = Session(ground(), "1", ADVERTISE)
    data = produce(13, 1).request * 3
    assert session.from_client(data, 0) is data
    answer = (produce(13, 1).answer or b"") * 3
    assert session.from_broker(answer, 0) is answer


def test_a_large_frame_that_nobody_may_change_goes_on_as_it_comes() -> None:
    from klamm.proxy.session.session import Session

    for metering in ("header", "full"):
        session = Session(ground(Wishes(metering, frozenset())), "1", ADVERTISE)
        one = fetch(4, size=2 << 20)
        assert one.answer is not None
        session.from_client(one.request, 0)
        for begin in range(0, len(one.answer), 65536):
            piece = one.answer[begin : begin + 65536]
            assert session.from_broker(piece, 0) is piece


@pytest.mark.parametrize("version", range(14))
def test_metadata_of_every_version_names_only_klamm(version: int) -> None:
    answer = play([metadata(version)], whole).client
    before = body(metadata(version).answer or b"", "Metadata", version)
    after = body(answer, "Metadata", version)

    assert [(row["node_id"], row["host"], row["port"]) for row in after["brokers"]] == [
        (row["node_id"], ADVERTISE, PORTS[row["node_id"]]) for row in BROKERS
    ]
    assert {**after, "brokers": None} == {**before, "brokers": None}


@pytest.mark.parametrize(
    ("name", "version", "made"),
    [("Produce", 10, produce), ("Produce", 13, produce), ("Fetch", 16, fetch), ("Fetch", 18, fetch)],
)
def test_node_endpoints_name_only_klamm(name: str, version: int, made: object) -> None:
    answer = play([made(version, endpoints=True)], whole).client  # type: ignore[operator]
    rows = body(answer, name, version)["node_endpoints"]

    assert [(row["node_id"], row["host"], row["port"], row["rack"]) for row in rows] == [
        (row["node_id"], ADVERTISE, PORTS[row["node_id"]], row["rack"]) for row in BROKERS
    ]


def share(name: str, version: int, size: int) -> Exchanged:
    part = {"partition_index": 0, "error_code": 6} | (
        {"records": bytes(size)} if name == "ShareFetch" else {}
    )
    rows = [{"topic_id": bytes(16), "partitions": [part]}]
    return exchange(
        name, version, {"group_id": "g", "member_id": "m"}, {"responses": rows, "node_endpoints": BROKERS}
    )


@pytest.mark.parametrize("name", ["ShareFetch", "ShareAcknowledge"])
@pytest.mark.parametrize("version", [1, 2])
def test_endpoints_of_share_apis_name_only_klamm(name: str, version: int) -> None:
    rows = body(play([share(name, version, 50)], whole).client, name, version)["node_endpoints"]

    assert {(row["host"], row["port"]) for row in rows} == {(ADVERTISE, port) for port in PORTS.values()}


LARGE = [
    ("Fetch", 18, lambda: fetch(18, size=TAIL_HELD, endpoints=True)),
    ("Fetch", 16, lambda: fetch(16, size=TAIL_HELD // 2, endpoints=True, parts=3)),
    ("ShareFetch", 2, lambda: share("ShareFetch", 2, TAIL_HELD)),
]


@pytest.mark.parametrize(("name", "version", "made"), LARGE)
def test_a_large_answer_flows_and_its_endpoints_are_blanked_at_the_same_length(
    name: str, version: int, made: object
) -> None:
    one: Exchanged = made()  # type: ignore[operator]
    assert one.answer is not None
    expected = None
    for cut in (at_random(Random(1), 70_000), at_random(Random(2), 4_000), at_random(Random(3), 300_000)):
        outcome = play([one, produce(9, 1)], cut)
        kinds = [event.kind for event in outcome.events if isinstance(event, Event)]
        expected = expected or outcome.client
        assert outcome.client == expected
        assert kinds == ["endpoints_blanked"]
        assert len(outcome.client) == len(one.answer) + len(produce(9, 1).answer or b"")
        assert b"kafka-1.internal" not in outcome.client
        first = body(outcome.client[: len(one.answer)], name, version)
        assert first["node_endpoints"] == []
        before = body(one.answer, name, version)
        assert {**first, "node_endpoints": 0, "unknown_tagged_fields": 0} == {
            **before,
            "node_endpoints": 0,
            "unknown_tagged_fields": 0,
        }


def test_a_large_answer_without_endpoints_is_not_changed() -> None:
    one = fetch(18, size=2 * TAIL_HELD, parts=2)
    outcome = play([one], at_random(Random(5), 65536))
    assert outcome.client == one.answer
    assert outcome.events == ()


def test_an_answer_of_acks_0_is_not_waited_for() -> None:
    made = [produce(9, 1, acks=0), produce(9, 2)]
    assert play(made, whole).client == made[1].answer


def test_api_versions_loses_what_klamm_cannot_stand_for() -> None:
    offered = api_versions(3, [(0, 0, 99), (3, 0, 99), (3, 60, 99), (12, 0, 99), (10000, 0, 0), (18, 0, 99)])
    rows = body(play([offered], whole).client, "ApiVersions", 3)["api_keys"]

    kept = [(row["api_key"], row["min_version"], row["max_version"]) for row in rows]
    own = API["ApiVersions"].versions.last
    assert kept == [(0, 0, 13), (3, 0, 13), (12, 0, 99), (18, 0, own)]
    allowed = body(play([offered], whole, ground(allow_unknown_apis=True)).client, "ApiVersions", 3)[
        "api_keys"
    ]
    assert 10000 in [row["api_key"] for row in allowed]


def test_an_api_versions_request_of_an_unknown_version_is_answered_in_its_turn_and_not_passed_on() -> None:
    from klamm.decoders.headers import request_frame

    strange = Exchanged(request_frame(API["ApiVersions"], 9, 2, "app", b"whatever"), None)
    outcome = play([produce(9, 1), strange, produce(9, 3)], whole)
    assert outcome == play([produce(9, 1), strange, produce(9, 3)], byte_by_byte)
    assert outcome.events == ()  # clients negotiate like this: nothing is wrong
    assert outcome.broker == produce(9, 1).request + produce(9, 3).request
    first, second, third = answers(outcome.client)
    assert (first, third) == (produce(9, 1).answer, produce(9, 3).answer)
    assert second[4:8] == b"\0\0\0\2"
    assert decode(second[8:], "ApiVersions", 0, "response") == {
        "error_code": 35,
        "api_keys": [{"api_key": 18, "min_version": 0, "max_version": API["ApiVersions"].versions.last}],
    }


def test_an_unsupported_version_answer_in_v0_layout_passes() -> None:
    rows = [{"api_key": 18, "min_version": 0, "max_version": 2}]
    refused = exchange("ApiVersions", 3, {}, {"error_code": 35, "api_keys": rows}, answer_version=0)
    assert play([refused], byte_by_byte).client == refused.answer


def test_a_new_version_of_an_address_bearing_api_closes_before_the_broker_sees_it() -> None:
    from klamm.decoders.headers import request_frame

    for name in ("Metadata", "Fetch"):
        api = API[name]
        assert bears_addresses(api)
        request = request_frame(api, api.versions.last + 1, 1, "app", b"xxxx")
        outcome = play([Exchanged(request, None)], whole)
        assert outcome.broker == b""
        assert kinds(outcome.events)[-1] == (Close, "unknown_version")


def test_an_unknown_key_and_an_unknown_version_of_another_api_pass() -> None:
    strange = [REQUEST.pack(12, 777, 0, 5) + b"\0\1abc"[:4], REQUEST.pack(12, 12, 99, 6) + b"\0\2ab"]
    answer = b"\0\0\0\6\0\0\0\5zz" + b"\0\0\0\6\0\0\0\6zz"
    outcome = play([Exchanged(b"".join(strange), answer)], byte_by_byte)
    assert (outcome.broker, outcome.client) == (b"".join(strange), answer)
    assert [event.kind for event in outcome.events] == ["unknown_api", "unknown_version"]


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (bytes.fromhex("16030100f5010000f10303") + bytes(20), "tls_from_client"),
        (b"\xff\xff\xff\xff" + bytes(20), "bad_size"),
        (b"ping\n", "bad_size"),
        (b"\x7f\xff\xff\xff" + bytes(20), "bad_size"),
        (REQUEST.pack(60, 3, 99, 2) + bytes(20), "unknown_version"),
        (REQUEST.pack(1 << 20, 18, 99, 2) + bytes(20), "bad_size"),
    ],
)
def test_a_frame_that_cannot_be_closes_with_a_reason_once_earlier_requests_are_answered(
    first: bytes, kind: str
) -> None:
    for cut in (whole, byte_by_byte):
        outcome = play([produce(9, 1), Exchanged(first, None)], cut)
        assert (outcome.broker, outcome.client) == (produce(9, 1).request, produce(9, 1).answer)
        [close] = outcome.events
        assert (type(close), close.kind, close.answered) == (Close, kind, True)


@pytest.mark.parametrize(
    ("version", "rest", "why"),
    [
        (
            3,
            b"\0\1c",
            "2, of a ListGroups v3 request does not decode (tagged_fields at byte 11: cut short or",
        ),
        (3, b"\0\1c", "version 1's layout fits); passed on as it is"),
        (3, b"\2c\0", "2, of a ListGroups v3 request does not decode (client_id at byte 10: a length of 611"),
        (0, b"\0", "1, of a ListGroups v0 request does not decode (it at byte 9: cut short"),
    ],
)
def test_a_header_that_does_not_decode_is_told_with_its_place(version: int, rest: bytes, why: str) -> None:
    request = REQUEST.pack(8 + len(rest), 16, version, 1) + rest
    for cut in (whole, byte_by_byte):
        outcome = play([Exchanged(request, None)], cut)
        assert outcome.broker == request
        assert [(event.kind, why in event.message) for event in outcome.events] == [
            ("undecodable_header", True)
        ]


def test_bytes_in_the_place_of_a_header_are_not_told_where_they_may_be_a_password() -> None:
    token = b"\0" + b"alice" + b"\0" + b"hunter2-secret"
    events = play([Exchanged(len(token).to_bytes(4, "big") + token, None)], whole).events
    [header] = [event.message for event in events if event.kind == "undecodable_header"]
    assert (
        header == "the header of a request of an unknown API or version does not decode; passed on as it is"
    )


@pytest.mark.parametrize("size", range(8))
def test_a_frame_too_short_for_a_request_goes_on_and_so_do_the_requests_around_it(size: int) -> None:
    short = Exchanged(size.to_bytes(4, "big") + bytes(range(size)), None)
    exchanges = [produce(9, 1), short, produce(9, 2), short]
    for cut in (whole, byte_by_byte):
        outcome = play(exchanges, cut)
        assert outcome.broker == b"".join(one.request for one in exchanges)
        assert outcome.client == b"".join(one.answer or b"" for one in exchanges)
        assert kinds(outcome.events) == [(Event, "bad_size")] * 2


def test_a_frame_of_more_than_the_limit_closes_and_one_of_just_so_much_passes() -> None:
    one = produce(9, 1)
    size = len(one.request) - 4
    assert play([one], whole, ground(frame_limit=size)).events == ()
    unanswered = Exchanged(one.request, None)
    assert kinds(play([unanswered], whole, ground(frame_limit=size - 1)).events) == [(Close, "bad_size")]


@pytest.mark.parametrize(
    ("kilobytes", "limit", "closes"),
    [(240, 256 << 10, False), (300, 256 << 10, True), (300, 512 << 10, False), (600, 512 << 10, True)],
)
def test_a_large_held_answer_flows_once_its_addresses_are_there_within_the_limit(
    kilobytes: int, limit: int, closes: bool
) -> None:
    brokers = [{**BROKERS[0], "rack": "r" * 30_000}] * (kilobytes // 30)
    one = exchange("Metadata", 12, {}, {"brokers": brokers, "topics": [{"name": "x" * 200}] * 5000})
    outcome = play([one], at_random(Random(1), 5000), ground(held_limit=limit))
    assert [kind for _, kind in kinds(outcome.events)] == ["unrewritable"] * closes
    assert b"kafka-1.internal" not in outcome.client
    if not closes:
        assert one.answer is not None
        assert body(outcome.client, "Metadata", 12)["topics"] == body(one.answer, "Metadata", 12)["topics"]


@pytest.mark.parametrize(("size", "closes"), [(1 << 20, True), (900 << 10, False)])
def test_the_end_of_an_answer_is_kept_back_up_to_1_mib(size: int, closes: bool) -> None:
    one = fetch(18, size=TAIL_HELD)
    rows = [{**BROKERS[0], "rack": "r" * 1000} for _ in range(size // 1000)]
    values = body(one.answer or b"", "Fetch", 18)
    made = exchange("Fetch", 18, {}, {**values, "node_endpoints": rows})
    outcome = play([Exchanged(one.request, made.answer)], at_random(Random(1), 65536))
    kind = outcome.events[-1].kind
    assert kind == ("unrewritable" if closes else "endpoints_blanked")
    assert b"kafka-1.internal" not in outcome.client


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"\0\0\0\4\0\0\0\7", "correlation_mismatch"),
        (bytes.fromhex("15030300020250") + bytes(9), "tls_from_broker"),
        (b"\xff\xff\xff\xfe" + bytes(8), "bad_size"),
    ],
)
def test_an_answer_that_cannot_be_closes_with_a_reason(answer: bytes, kind: str) -> None:
    for cut in (whole, byte_by_byte):
        outcome = play([Exchanged(produce(9, 1).request, answer)], cut)
        assert outcome.client == b""
        assert kinds(outcome.events) == [(Close, kind)]


def asked(name: str, version: int, correlation: int, **values: Any) -> Exchanged:
    return exchange(name, version, {}, values, correlation)


def reordered(exchanges: list[Exchanged], order: Sequence[int]) -> list[Exchanged]:
    """The requests in their order, all before the answers, which come in another."""
    requests = b"".join(one.request for one in exchanges)
    return [Exchanged(requests, b"".join(exchanges[number].answer or b"" for number in order))]


@pytest.mark.parametrize("order", [(1, 0, 2, 3, 4), (4, 3, 2, 1, 0), (0, 2, 1, 4, 3), (3, 0, 1, 2, 4)])
def test_answers_in_another_order_belong_to_the_requests_with_their_ids(order: tuple[int, ...]) -> None:
    """Equal requests of one read among them, and answers in which addresses are replaced."""
    five = [
        asked("Heartbeat", 4, 1),
        asked("Heartbeat", 4, 2, error_code=27),
        asked("Metadata", 12, 3, brokers=BROKERS),
        asked("Heartbeat", 4, 4),
        asked("ListGroups", 4, 5),
    ]
    expected = {
        number: play([one], whole).client for number, one in enumerate(five)
    }  # each alone gives what it gives among the others
    for cut in (whole, byte_by_byte, at_random(Random(1), 40)):
        outcome = play(reordered(five, order), cut)
        assert outcome.client == b"".join(expected[number] for number in order)
        assert {event.kind for event in outcome.events} == {"out_of_order"}
    messages = [event.message for event in play(reordered(five, (4, 0, 1, 2, 3)), whole).events]
    assert messages == ["an answer to ListGroups came before that to Heartbeat, which was asked before"]


def test_errors_of_answers_in_another_order_are_counted_for_their_api() -> None:
    at = ground()
    two = [asked("Heartbeat", 4, 1, error_code=27), asked("ListGroups", 4, 2, error_code=15)]
    play(reordered(two, (1, 0)), whole, at)
    errors = {key[3]: dict(one.errors) for key, one in at.stats.requests.items()}
    assert errors == {"Heartbeat": {27: 1}, "ListGroups": {15: 1}}


def test_find_coordinator_0_may_be_answered_with_id_0() -> None:
    """As Kafka 0.8.2 does while it has no topic: kafka-python takes it for 0.8.1 without that answer."""
    came = bytes.fromhex("0000001000000000000fffffffff0000ffffffff")
    one = asked("FindCoordinator", 0, 7)
    for cut in (whole, byte_by_byte):
        outcome = play([Exchanged(one.request, came), produce(9, 2)], cut)
        assert outcome.client == came + (produce(9, 2).answer or b"")
        assert outcome.events == ()


@pytest.mark.parametrize(
    ("correlation", "why"), [(9, "which no request has"), (3, "which several requests have")]
)
def test_an_answer_that_could_be_nobodys_or_anybodys_closes_and_both_ids_are_said(
    correlation: int, why: str
) -> None:
    four = [asked("Heartbeat", 4, number) for number in (2, 3, 4, 3)]
    wrong = asked("Heartbeat", 4, correlation)
    outcome = play([Exchanged(b"".join(one.request for one in four), wrong.answer)], whole)
    [closed] = outcome.events
    assert closed.kind == "correlation_mismatch"
    assert f"with correlation id {correlation}, {why}; the oldest is Heartbeat with 2" in closed.message


def test_a_response_nobody_asked_for_closes() -> None:
    outcome = play([Exchanged(b"", b"\0\0\0\4\0\0\0\1")], whole)
    assert kinds(outcome.events) == [(Close, "unexpected_response")]


ODD = [  # API, version, the whole answer, the place and the reason in the log
    ("Heartbeat", 4, "000000060000000100 00", "does not decode"),
    ("ApiVersions", 1, "0000001000000001 0000 00000001 001200000001", "throttle_time_ms at byte 12: needs 4"),
    ("ApiVersions", 2, "0000001000000001 0000 00000001 001200000001", "version 0's layout fits"),
    (
        "ApiVersions",
        0,
        "0000001400000001 0000 00000001 001200000003 00000000",
        "the body at byte 12: 4 bytes left over; the layouts of versions 1, 2 fit",
    ),
    ("ApiVersions", 3, "0000001400000001 0000 02 0012 0000 0003 00 00000000 00 07", "1 byte left over"),
    ("ApiVersions", 3, "0000001200000001 0000 02 0012 0000 0003 00 00000000", "needs 1 bytes, 0 left"),
    ("ApiVersions", 0, "0000000600000001 001d", "api_keys at byte 2: needs 4 bytes, 0 left"),
    ("ApiVersions", 0, "0000000a00000001 0000 ffffffff", "null where null is not allowed"),
    ("FindCoordinator", 0, "0000001000000001 000f ffffffff ffff ffffffff", "host at byte 8: null where"),
    ("Metadata", 1, "0000001000000001 ffffffff 00000001 00000000", "brokers at byte 4: null where"),
    ("Metadata", 12, "000000090000000100 00000000", "brokers at byte 4: needs 1 bytes, 0 left"),
    ("Metadata", 12, "0000000500000001 01", "needs 4 bytes, 0 left"),
    ("Metadata", 12, "0000000900000001 02 09 03 aaaa", "needs 4 bytes, 0 left"),
    ("Fetch", 16, "0000000700000001 01 80 00", "the tagged fields of its header cannot be read"),
    ("Fetch", 16, "0000001000000001 00 00000000 0000 00000000 01", "needs 1 bytes, 0 left"),
    ("Fetch", 16, "0000001400000001 00 00000000 0000 00000000 01 01 00 01 00", "null where null is not"),
    ("ShareFetch", 1, "0000001100000001 00 00000000 0000 00 00000000 01 00", "node_endpoints"),
]


@pytest.mark.parametrize(("api", "version", "answer", "reason"), ODD)
def test_an_answer_without_an_address_goes_on_whether_it_decodes_or_not(
    api: str, version: int, answer: str, reason: str
) -> None:
    came = bytes.fromhex(answer)
    came = (len(came) - 4).to_bytes(4, "big") + came[4:]
    for cut in (whole, byte_by_byte):
        outcome = play([Exchanged(exchange(api, version, {}, None, 1).request, came), produce(9, 2)], cut)
        assert outcome.client == came + (produce(9, 2).answer or b"")
        [event] = outcome.events
        assert (event.kind, event.api) == ("undecodable", api)
        assert reason in event.message


LEFT = [  # API, version, the whole answer, what the log says
    (
        "Heartbeat",
        0,
        "0000000a00000001 000000000 01b",
        "the body at byte 2: 4 bytes left over; the layouts of versions 1, 2, 3 fit",
    ),
    (
        "OffsetCommit",
        2,
        "0000001900000001 00000000 00000001 0001 74 00000001 00000000 0019",
        "the body at byte 4: 17 bytes left over; the layouts of versions 3, 4, 5, 6, 7 fit",
    ),
    (
        "Metadata",
        1,
        "0000004500000001 00000001 00000001 0009 3132372e302e302e31 000053fd ffff 00000001"
        "00000001 0000 0001 74 00 00000001 0000 00000000 00000001 00000001 00000001 00000001",
        "topics[0].partitions[0].isr_nodes",
    ),
]


@pytest.mark.parametrize(("api", "version", "answer", "reason"), LEFT)
def test_an_answer_that_does_not_end_where_its_layout_does_is_counted_each_time(
    api: str, version: int, answer: str, reason: str
) -> None:
    """Though all that metering wants of it can be read."""
    came = bytes.fromhex(answer.replace(" ", ""))
    came = (len(came) - 4).to_bytes(4, "big") + came[4:]
    two = [Exchanged(exchange(api, version, {}, None, number).request, None) for number in (1, 1)]
    for metering in ("header", "full"):
        outcome = play(
            [Exchanged(one.request, came) for one in two], whole, ground(Wishes(metering=metering))
        )
        assert [event.kind for event in outcome.events] == ["undecodable"] * 2
        assert reason in outcome.events[0].message
        if api != "Metadata":
            assert outcome.client == 2 * came


def test_a_request_with_bytes_behind_its_end_goes_on_and_is_no_problem() -> None:
    """Brokers ignore them, and librdkafka's requests for all topics have them in Metadata 13."""
    one = exchange("Heartbeat", 0, {"group_id": "g", "member_id": "m"}, {})
    longer = one.request + bytes(3)
    longer = (len(longer) - 4).to_bytes(4, "big") + longer[4:]
    outcome = play([Exchanged(longer, one.answer)] * 2, whole)
    assert (outcome.broker, outcome.events) == (2 * longer, ())


def test_a_null_host_hides_no_address_that_follows() -> None:
    rows = [{**BROKERS[0], "host": "?"}, BROKERS[0]]
    made = exchange("Metadata", 4, {}, {"brokers": rows, "topics": []})
    assert made.answer is not None
    null = made.answer.replace(b"\0\1?", b"\xff\xff")
    came = (len(null) - 4).to_bytes(4, "big") + null[4:]
    outcome = play([Exchanged(made.request, came)], whole)
    assert [event.kind for event in outcome.events] == ["undecodable"]
    assert b"kafka-1.internal" not in outcome.client
    assert ADVERTISE.encode() in outcome.client


def test_a_body_in_which_addresses_cannot_be_found_closes_with_the_place_and_the_reason() -> None:
    brokers = b"\3" + b"\0\0\0\1" + b"\x80" * 6 + bytes(40)
    bad = Exchanged(metadata(12).request, b"\0\0\0\x40\0\0\0\1\0\0\0\0\0" + brokers + bytes(4))
    outcome = play([bad], whole)
    assert outcome.client == b""
    [closed] = outcome.events
    assert closed.kind == "unrewritable"
    assert "brokers[0].host at byte" in closed.message
    assert "a varint of more than 5 bytes" in closed.message


def token(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize(
    ("mechanism", "tokens"),
    [
        ("PLAIN", [(b"\0User\0pencil", b"")]),
        (
            "SCRAM-SHA-256",
            [(b"n,,n=user,r=abc", b"r=abcdef,s=xyz,i=4096"), (b"c=biws,r=abcdef,p=xx", b"v=rmF9")],
        ),
        ("OAUTHBEARER", [(b"n,,\1auth=Bearer x\1\1", b'{"status":"invalid"}'), (b"\1", b"")]),
        (
            "GSSAPI",
            [(b"\x60\x82\x02\x10" + bytes(30), b"\x60" + bytes(12)), (b"\5\4\4\xff" + bytes(28), None)],
        ),
    ],
)
def test_raw_tokens_after_sasl_handshake_v0_pass_and_end_by_themselves(
    mechanism: str, tokens: list[tuple[bytes, bytes | None]]
) -> None:
    made = [exchange("SaslHandshake", 0, {"mechanism": mechanism}, {"mechanisms": [mechanism]}, 0)]
    made += [Exchanged(token(mine), None if yours is None else token(yours)) for mine, yours in tokens]
    made += [metadata(1, 1), produce(3, 2)]
    for cut in (whole, byte_by_byte, at_random(Random(4), 5)):
        outcome = play(made, cut, batch=1)
        assert outcome.events == ()
        assert outcome.broker == b"".join(one.request for one in made)
        assert outcome.client.startswith(b"".join(one.answer or b"" for one in made[:-2]))
        assert outcome.client.endswith(made[-1].answer or b"")
        assert b"kafka-1.internal" not in outcome.client


def test_a_gssapi_client_of_0_9_sends_its_token_first() -> None:
    made = [
        Exchanged(token(b"\x60\x82\x02\x10" + bytes(40)), token(b"\x60" + bytes(9))),
        Exchanged(token(b"\5\4\4\xff" + bytes(20)), None),
    ]
    made += [metadata(0, 1)]
    for cut in (whole, byte_by_byte):
        outcome = play(made, cut, batch=1)
        assert outcome.broker == b"".join(one.request for one in made)
        assert outcome.events == ()
        assert b"klamm.example" in outcome.client
