"""Hundreds of hostile connections at once, and frames of very many elements."""

from __future__ import annotations

import asyncio
import itertools
import struct
from types import SimpleNamespace
from typing import Any, cast

import pytest

from klamm.captures.captured import CapturedConnection
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.connection_reader import ALL_PENDING, LEAST_PENDING, ConnectionReader
from klamm.decoders import API, encode
from klamm.decoders.compile import beyond, pick
from klamm.decoders.interpret import Layout
from klamm.proxy.admin.api.clusters import _tcp_bytes
from klamm.proxy.admin.api.live import Reader
from klamm.proxy.control.exchange import Seen
from klamm.proxy.control.listeners import Ring
from klamm.proxy.edge.rounds import MOST as A_PASS
from klamm.proxy.edge.rounds import Rounds
from klamm.proxy.session.effects import ReadClient, Send
from klamm.proxy.session.observing.summaries import MOST_NAMED
from klamm.proxy.session.pending import ALL, LEAST
from klamm.proxy.session.pending import MOST as MOST_PENDING
from klamm.proxy.session.requests import LONG_HEADER
from klamm.proxy.session.session import Session
from klamm.proxy.session.turns import MANY, MOST, SHORT
from klamm.rules.engine import MOST_UNREAD
from klamm.rules.frame import Frame, Peer
from klamm.rules.glob import Glob
from klamm.rules.groups import KEPT_TEXT, Groups
from klamm.rules.plan import MOST_ELEMENTS, MOST_RULED
from klamm.rules.rule import When
from tests.fakes.edge import cluster
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.faulty import under
from tests.proxy.ruling.ruled import act, rule, ruled
from tests.proxy.traffic import ADVERTISE, exchange, ground

MS = 1_000_000


def heartbeats(count: int) -> bytes:
    """Requests of different groups."""
    asked = ({"group_id": f"g{i}", "member_id": "m"} for i in range(count))
    return b"".join(exchange("Heartbeat", 4, each, None, i).request for i, each in enumerate(asked))


def test_where_many_connections_are_busy_they_share_the_turns_of_few() -> None:
    at, data = ground(), heartbeats(3000)
    last = heartbeats(1)
    sessions = [Session(at, "1", ADVERTISE, "", number) for number in range(8 * MANY)]
    passed = []
    for number, session in enumerate(sessions):
        session.from_client(data, number * 3 * MS)
    for number, session in enumerate(sessions):
        before = session.pending()
        session.unmute((100 + number) * MS)
        passed.append(session.pending() - before)
    assert max(passed[-MANY:]) <= 2 * MOST * MANY // len(sessions)
    quiet = Session(at, "1", ADVERTISE, "", 1000)
    assert quiet.from_client(last, 200 * MS) is last  # needs no second turn: nothing waits


def test_a_connection_that_is_busy_alone_has_long_turns() -> None:
    session, data = Session(ground(), "1", ADVERTISE), heartbeats(3000)
    session.from_client(data, 1)
    before = session.pending()
    session.unmute(5 * MS)
    assert session.pending() - before > 5 * SHORT


def test_connections_whose_turn_is_over_go_on_a_few_in_a_pass() -> None:
    async def run() -> list[list[int]]:
        rounds, went, passes = Rounds(), list[int](), list[list[int]]()
        for number in range(3 * A_PASS):
            rounds.wait(lambda number=number: went.append(number))
        while sum(map(len, passes)) < 3 * A_PASS:  # a pass ends early where the machine is busy
            await asyncio.sleep(0)
            passes.append(list(went))
            went.clear()
        return passes

    passes = asyncio.run(asyncio.wait_for(run(), 30))
    assert list(itertools.chain.from_iterable(passes)) == list(range(3 * A_PASS))
    assert max(map(len, passes)) <= A_PASS


def test_a_connection_that_fails_as_it_goes_on_does_not_stop_the_others() -> None:
    def fails() -> None:
        raise RuntimeError("a defect")

    async def run() -> list[int]:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        rounds, went = Rounds(), list[int]()
        for go_on in (fails, lambda: went.append(1)):
            rounds.wait(go_on)
        for _ in range(4):
            await asyncio.sleep(0)
        return went

    assert asyncio.run(run()) == [1]


def test_connections_go_on_though_the_process_waits_for_the_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = itertools.count(0, 10**9)  # a second passes between two looks at the clock
    monkeypatch.setattr("klamm.proxy.edge.rounds.monotonic_ns", lambda: next(times))

    async def run() -> list[int]:
        rounds, went = Rounds(), list[int]()
        for number in range(3):
            rounds.wait(lambda number=number: went.append(number))
        for _ in range(5):
            await asyncio.sleep(0)
        return went

    assert asyncio.run(run()) == [0, 1, 2]


@pytest.mark.parametrize("failure", [ValueError("negative file descriptor"), OSError(9, "closed")])
def test_a_connection_that_closes_is_listed_without_its_bytes(failure: Exception) -> None:
    def getsockopt(*_: int) -> Any:
        raise failure

    sock = SimpleNamespace(getsockopt=getsockopt)
    transport = SimpleNamespace(get_extra_info=lambda _: sock)
    link = SimpleNamespace(client=SimpleNamespace(transport=transport))
    assert _tcp_bytes(cast(Any, link)) == (None, None)


def naming(topics: int) -> bytes:
    """A Produce request without an answer that names so many topics."""
    rows = [{"name": f"t{i}", "partition_data": []} for i in range(topics)]
    return exchange("Produce", 7, {"acks": 0, "topic_data": rows}, None).request


@pytest.mark.parametrize("cut", [1 << 30, 60_000])
def test_a_request_of_very_many_topics_is_counted_without_them(cut: int) -> None:
    at = ground()
    session, data = Session(at, "1", ADVERTISE), naming(MOST_ELEMENTS + 1)
    for start in range(0, len(data), cut):
        piece = data[start : start + cut]
        assert session.from_client(piece, 1) == piece
    (counters,) = at.stats.requests.values()
    assert (counters.requests, counters.one_way, at.stats.topics) == (1, 1, {})
    assert session.pending() == 0
    assert session.from_client(naming(3), 2) == naming(3)  # the next one is read as any
    assert [topic.requests for topic in at.stats.topics.values()] == [1, 1, 1]


def test_the_first_thousand_topics_of_a_request_are_named() -> None:
    at = ground()
    session = Session(at, "1", ADVERTISE)
    session.from_client(naming(MOST_ELEMENTS), 1)
    assert len(session.requests.met.summary.topics) == MOST_NAMED
    assert session.requests.turns.left < 0  # naming them is work of its turn


def test_an_answer_of_very_many_errors_counts_the_first_thousand_and_is_not_kept() -> None:
    at = ground()
    session = Session(at, "1", ADVERTISE)
    rows = [{"partition_index": i, "error_code": 3} for i in range(20_000)]
    asked = {"group_id": "g", "generation_id_or_member_epoch": 1, "member_id": "m", "topics": []}
    answered = {"topics": [{"name": "t", "partitions": rows}]}
    one = exchange("OffsetCommit", 2, asked, answered)
    assert one.answer is not None
    session.from_client(one.request, 1)
    assert session.from_broker(one.answer, 2) == one.answer
    (counters,) = at.stats.requests.values()
    assert counters.errors == {3: MOST_NAMED}
    assert session.requests.met.answer_columns is None


def test_text_takes_room_by_its_length() -> None:
    of = Layout("Metadata", 1, "request", False, API["Metadata"].request)
    body = encode({"topics": [{"name": "x" * 25_600} for _ in range(100)]}, 3, 1, "request")
    found, at = pick(of, (("topics", "name"),), most=1000)(body, 0, len(body))
    assert (len(found), at) == ((1000 - 100) // 100, len(body))


def test_a_connection_keeps_one_answer_that_was_rewritten() -> None:
    at = ground()
    session = Session(at, "1", ADVERTISE)
    for version in (1, 4, 7):
        for number in (1, 2):
            one = exchange("Metadata", version, {"topics": []}, {"brokers": [], "topics": []}, number)
            assert one.answer is not None
            session.from_client(one.request, number)
            session.from_broker(one.answer, number)
    kept = [memory.plan.version for memory in session.requests.known.values() if memory.held is not None]
    assert kept == [7]


def test_a_connection_remembers_one_long_header() -> None:
    session = Session(ground(), "1", ADVERTISE)
    for version in range(5):
        asked = {"group_id": "g", "member_id": "m"}
        session.from_client(
            exchange("Heartbeat", version, asked, None, client_id="x" * LONG_HEADER).request, 1
        )
    assert len(session.requests.known) == 1
    assert session.pending() == 5


def test_where_clients_are_many_each_has_fewer_pending_requests() -> None:
    at = ground()
    at.crowd.connected(2 * ALL // LEAST)
    session = Session(at, "1", ADVERTISE)
    session.from_client(heartbeats(1500), 1)
    assert ReadClient(False) in session.unmute(2)


@on_uvloop
async def test_connections_that_end_give_the_others_room() -> None:
    async with cluster(1) as (edge, _):
        crowd = edge.proxied.context.crowd
        crowd.connected(10_000)
        client = await edge.client()
        await client.ask("Heartbeat", 4, {"group_id": "g"})
        assert crowd.pending == MOST_PENDING


@on_uvloop
async def test_delayed_frames_count_as_held_until_their_connection_ends() -> None:
    async with under("    - {api: Produce, delay: 1h}") as (edge, client, _):
        held = edge.proxied.context.held
        client.transport.write(naming(1000))
        await eventually(lambda: held.now >= len(naming(1000)))
        client.reset()
        await edge.empty()
        assert held.now == 0


def heartbeat_of(group: str) -> Frame:
    body = encode({"group_id": group, "member_id": "m"}, 12, 4, "request")
    return Frame(API["Heartbeat"], 4, "request", body, "app", Peer("kafka", "1", "10.0.0.1:1", ""), 0)


def test_a_client_of_very_many_groups_takes_no_memory() -> None:
    groups = Groups()
    for number in range(1000):
        groups.learn(heartbeat_of(f"{number}"))
    assert max(map(len, groups.known.values())) == 2
    assert groups.of("app", "10.0.0.1:2") is None


def test_long_names_of_groups_are_forgotten_before_they_take_much_memory() -> None:
    groups, most = Groups(), 0
    for number in range(2 * KEPT_TEXT // 30_000):
        frame = heartbeat_of(f"{number}".zfill(30_000))
        frame.client_id = f"app-{number}"
        groups.learn(frame)
        most = max(most, sum(len(each) for known in groups.known.values() for each in known))
    assert KEPT_TEXT - 30_000 < most <= KEPT_TEXT + 30_000


def test_what_a_rule_counts_per_topic_and_group_is_small() -> None:
    for per in ("topic", "group"):
        at = ruled(
            rule(act("error", code="REBALANCE_IN_PROGRESS"), api="Heartbeat", when=When(per=per, every=1000))
        )
        session = Session(at, "1", ADVERTISE)
        session.from_client(
            exchange("Heartbeat", 4, {"group_id": "g" * 30_000, "member_id": "m"}, None).request, 1
        )
        (counted,) = at.engine.counted_rules if at.engine is not None else ()
        assert [type(key) for key in counted.matches_per] == [int]


def test_versions_that_a_rule_cannot_read_are_reported_a_thousand_times_at_most() -> None:
    at = ruled(rule(act("delay", 1), api="Heartbeat", group=Glob("billing")))
    session = Session(at, "1", ADVERTISE)
    for version in range(100, 100 + 2 * MOST_UNREAD):
        session.from_client(struct.pack(">ihhihi", 12, 12, version, version, -1, 0)[:16], 1)
    assert at.engine is not None
    assert len(at.engine.unread) == MOST_UNREAD


def test_the_ring_has_room_for_few_exchanges_of_very_many_topics() -> None:
    ring = Ring(1000, 1 << 20, False, 0.0)
    for number in range(100):
        ring.take(Seen(0.0, {"topics": {f"t{number}-{i}": [0] for i in range(1000)}}))
    assert 1 <= len(ring.kept) <= 5
    (first, _), *_ = ring.kept
    assert ring.of(100) is not None
    assert ring.of(first - 1) is None


def test_a_live_reader_has_room_for_few_exchanges_of_very_many_topics() -> None:
    reader = Reader()
    for number in range(100):
        reader.take(Seen(0.0, {"topics": {f"t{number}-{i}": [0] for i in range(1000)}}))
    assert reader.full
    assert len(reader.waiting) < 30
    reader.batch()
    assert reader.bytes == 0


@pytest.mark.parametrize("unruled", ["pass", "close"])
def test_a_request_of_very_many_elements_is_not_read_for_rules(unruled: str) -> None:
    delay = rule(act("log", "seen"), api="Produce", topic=Glob("t*"))
    at = ruled(delay, unruled=unruled)
    session = Session(at, "1", ADVERTISE)
    few, many = naming(MOST_RULED), naming(MOST_RULED + 1)
    session.from_client(few, 1)
    assert at.engine is not None
    assert at.engine.counted_rules[0].hits == 1
    if session.muted:  # its turn is over
        session.unmute(2)
    got = session.from_client(many, 2)
    sent = got if isinstance(got, bytes) else b"".join(each.data for each in got if isinstance(each, Send))
    assert sent == (many if unruled == "pass" else b"")
    assert at.stats.problems["test", "1", "Produce", "too_large_for_rules"] == 1
    assert at.engine.counted_rules[0].hits == 1


def test_numbers_in_arrays_count_as_elements_too() -> None:
    of = Layout("OffsetFetch", 1, "request", False, API["OffsetFetch"].request)
    more_than_100 = beyond(of, 100)
    for count, expected in ((99, False), (100, True)):  # and the topic
        asked = {"group_id": "g", "topics": [{"name": "t", "partition_indexes": list(range(count))}]}
        body = encode(asked, 9, 1, "request")
        assert more_than_100(body, 0, len(body)) is expected


def test_where_captured_connections_are_many_each_has_fewer_pending_requests() -> None:
    keeping = Keeping()
    readers = [
        ConnectionReader(CapturedConnection("c", number, "kafka", "1", "10.0.0.1:1"), keeping)
        for number in range(2 * ALL_PENDING // LEAST_PENDING)
    ]
    readers[0].feed("request", heartbeats(2 * LEAST_PENDING), 1)
    assert len(readers[0].pending) == LEAST_PENDING
    for reader in readers:
        reader.end(2, "closed by client")
    assert keeping.readers == 0
