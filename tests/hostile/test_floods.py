"""One client that sends too much, or reads nothing: it is held up, and nobody else is."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from klamm.decoders import API, encode
from klamm.decoders.headers import REQUEST, request_frame
from klamm.proxy.config import Tls
from klamm.proxy.config_types import InputFile
from klamm.proxy.session.connection import ClusterContext, HeldBytes
from klamm.proxy.session.effects import Close, Effect, Event, ReadClient, Send, Turn
from klamm.proxy.session.observing.counters import MOST_ROWS, Stats
from klamm.proxy.session.own_answers import ANSWERED_LIMIT
from klamm.proxy.session.pending import MOST as MOST_PENDING
from klamm.proxy.session.session import Session
from klamm.proxy.session.turns import MOST as A_TURN
from klamm.rules.expressions import parse
from klamm.rules.glob import Glob
from klamm.rules.plan import Planner, Wishes
from tests.fakes.broker import Broker, Cluster, Connection
from tests.fakes.edge import cluster, edge
from tests.fakes.tls import make
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.ruling.ruled import act, rule, ruled
from tests.proxy.traffic import exchange, ground, produce

MIB = 1 << 20
BEAT = {"group_id": "g", "member_id": "m"}


def session(at: ClusterContext) -> Session:
    return Session(at, "1", "klamm.example", "10.0.0.7:50000")


def of(effects: bytes | list[Effect], kind: type) -> list[Any]:
    assert not isinstance(effects, bytes)
    return [each for each in effects if isinstance(each, kind)]


def api_versions(size: int) -> bytes:
    """The start of a request that klamm answers itself: a version that nobody knows."""
    return REQUEST.pack(size, 18, 99, 1) + b"\0\1a\0"


def heartbeats(count: int, first: int = 1) -> bytes:
    body = encode(BEAT, 12, 4, "request")
    return b"".join(request_frame(API[12], 4, first + n, "app", body) for n in range(count))


def answers(count: int, first: int = 1) -> bytes:
    made = [exchange("Heartbeat", 4, BEAT, {"error_code": 0}, first + n).answer for n in range(count)]
    return b"".join(filter(None, made))


def test_a_request_that_klamm_answers_is_refused_where_it_announces_too_much() -> None:
    at = ground()
    [close] = of(session(at).from_client(api_versions(1 << 29), 1), Close)
    assert close.kind == "bad_size"
    assert str(4 + (1 << 29)) in close.message
    one = session(at)
    assert one.from_client(api_versions(ANSWERED_LIMIT - 4), 1) == []
    rest = bytes(ANSWERED_LIMIT - 16)
    assert one.from_client(rest[:-1], 1) == []
    assert not one.connection.closing
    [answer] = of(one.from_client(rest[-1:], 1), Send)
    assert answer.to == "client"


def test_a_header_that_comes_in_pieces_is_looked_at_less_and_less_often() -> None:
    one = session(ground())
    start = REQUEST.pack(60_000, 12, 4, 1) + (30_000).to_bytes(2, "big")
    one.from_client(start, 1)
    looks = []
    for _ in range(29_000):
        assert one.from_client(b"k", 1) == []
        if not looks or one.requests.need != looks[-1]:
            looks.append(one.requests.need)
    assert len(looks) < 15
    assert looks == sorted(looks)


def test_a_read_with_thousands_of_requests_takes_turns() -> None:
    at = ground()
    one, flood = session(at), heartbeats(4000)
    effects = one.from_client(flood, 1)
    [turn] = of(effects, Turn)
    assert turn.side == "request"
    passed = len(_bytes(effects))
    assert 0 < passed <= (A_TURN + 32) * len(heartbeats(1))
    turns = 1
    while of(effects, Turn):
        effects = one.unmute(1)
        passed += len(_bytes(effects))
        turns += 1
    assert passed == len(flood)
    assert turns >= 4
    assert one.pending() == 4000


def test_a_read_with_thousands_of_answers_takes_turns() -> None:
    at = ground()
    one = session(at)
    effects = one.from_client(heartbeats(4000), 1)
    while of(effects, Turn):
        effects = one.unmute(1)
    flood = answers(4000)
    got = one.from_broker(flood, 10**9)
    passed, turns = len(_bytes(got)), 1
    assert passed < len(flood)
    while of(got, Turn):
        got = one.responses.bound(10**9)
        passed += len(_bytes(got))
        turns += 1
    assert (passed, one.pending()) == (len(flood), 0)
    assert turns >= 4


def test_a_client_with_too_many_requests_on_their_way_is_read_no_more() -> None:
    one, sent, now = session(ground()), 0, 0
    effects: bytes | list[Effect] = []
    while isinstance(effects, bytes) or not of(effects, ReadClient):
        now += 10**9
        effects = one.from_client(heartbeats(1000, sent + 1), now)
        sent += 1000
        assert sent < MOST_PENDING // 50
    assert of(effects, ReadClient) == [ReadClient(False)]
    assert one.connection.pending.weight < MOST_PENDING + 200_000
    resumed: list[ReadClient] = []
    for first in range(1, sent + 1, 500):
        now += 10**9
        got = one.from_broker(answers(500, first), now)
        resumed += [] if isinstance(got, bytes) else of(got, ReadClient)
    assert resumed == [ReadClient(True)]
    assert (one.pending(), one.connection.pending.weight) == (0, 0)


def test_answers_of_klamm_that_wait_behind_another_are_bounded_too() -> None:
    at = ruled(rule(act("error", 27), api="Heartbeat"))
    one, sent = session(at), 1
    effects: bytes | list[Effect] = []
    one.from_client(exchange("Metadata", 1, {"topics": []}, {}).request, 1)
    while isinstance(effects, bytes) or not of(effects, ReadClient):
        effects = one.from_client(heartbeats(30, sent), sent * 10**9)
        sent += 30
        assert sent < MOST_PENDING // 50
    assert one.connection.pending.weight < MOST_PENDING + 10_000


@on_uvloop
async def test_a_client_that_reads_no_answer_of_klamm_is_read_no_more() -> None:
    async with cluster() as (klamm, _):
        klamm.rule("- {api: Produce, error: NOT_LEADER_OR_FOLLOWER}")
        client, other = await klamm.client(1), await klamm.client(1)
        client.transport.pause_reading()
        client.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        partitions = [{"index": number, "records": b""} for number in range(2000)]
        asked = {"acks": 1, "topic_data": [{"name": "orders", "partition_data": partitions}]}
        request, many = exchange("Produce", 9, asked, None).request, 120
        client.transport.write(request * many)
        link = (await klamm.links(2))[0]
        await eventually(lambda: "unread" in link.client.paused_for)
        assert link.client.transport.get_write_buffer_size() < 3 * MIB
        for _ in range(20):
            assert (await other.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        assert sum(row.own_answers for row in klamm.stats.requests.values()) < many
        client.transport.resume_reading()
        answer = await client.frame()
        await client.changed.until(lambda: len(client.received) == (many - 1) * len(answer))


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_what_waits_for_its_turn_arrives_though_its_sender_has_ended(tls: bool, tmp_path: Path) -> None:
    @on_uvloop
    async def ends_at_once() -> None:
        many, asked, given = 4000, heartbeats(4000), answers(4000)
        received = bytearray()

        def answer_all(connection: Connection, data: bytes) -> None:
            received.extend(data)
            if len(received) == len(asked):
                connection.transport.write(given)
                connection.close()

        nodes = Cluster()
        listening = {"tls": make(tmp_path)} if tls else {}
        upstream = {"tls": Tls(ca=InputFile(str(tmp_path / "ca.pem")), verify=False)} if tls else {}
        async with Broker(nodes, 1).listening(**listening) as broker, edge(broker, **upstream) as klamm:
            client = await klamm.client(1)
            broker.on_data = answer_all
            client.transport.write(asked)
            client.send_fin()
            assert await client.ended() == "FIN"
            assert len(client.received) == len(given), many

    ends_at_once()


@on_uvloop
async def test_others_have_their_turn_while_one_client_floods() -> None:
    async with cluster() as (klamm, [broker]):
        client, other = await klamm.client(1), await klamm.client(1)
        many = 40_000
        client.transport.write(heartbeats(many))
        assert (await other.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        assert sum(row.requests for row in klamm.stats.requests.values()) < many // 2
        await broker.until(lambda: len(broker.requests("Heartbeat")) == many + 1)


def test_made_up_versions_do_not_throw_out_the_plans_of_others() -> None:
    planner = Planner(Wishes())
    known = planner.plan(3, 12)
    made_up = [planner.plan(key, version) for key in range(500, 600) for version in range(40)]
    assert len(made_up) == 4000
    assert planner.plan(3, 12) is known
    assert planner.plan(500, 0) is not made_up[0]


def test_rows_of_requests_are_bounded_and_the_rest_counts_as_other() -> None:
    stats = Stats()
    for client in range(200):
        for version in range(60):
            stats.of_requests("main", "1", f"client-{client}", "Fetch", version).requests += 1
    assert len(stats.requests) <= MOST_ROWS + 60
    assert sum(row.requests for row in stats.requests.values()) == 12_000
    assert stats.requests["main", "1", "other", "Fetch", 59].requests > 0


def test_a_rule_finds_the_201st_client_which_the_metrics_call_other() -> None:
    at = ruled(rule(act("error", 27), api="Heartbeat", client=Glob("client-200")))
    for number in range(201):
        one = session(at)
        effects = one.from_client(
            exchange("Heartbeat", 4, BEAT, None, client_id=f"client-{number}").request, 1
        )
        assert isinstance(effects, bytes) == (number < 200)
    assert at.stats.requests["test", "1", "other", "Heartbeat", 4].requests == 1


def kept(at: ClusterContext, size: int, there: int) -> tuple[Session, list[Effect]]:
    """A Produce of `size` bytes of records of which `there` bytes have come, under rules."""
    one, request = session(at), produce(9, 1, size=size).request
    effects = one.from_client(request[:there], 1)
    return one, [Send("broker", effects)] if isinstance(effects, bytes) else effects


READS_ALL = rule(act("error", 6), api="Produce", where=parse("len(topic_data) > 5"))


def test_beyond_the_bytes_that_all_may_hold_requests_pass_without_rules() -> None:
    at = ruled(READS_ALL, held=HeldBytes(MIB))
    sessions = [kept(at, 300_000, 200_000) for _ in range(12)]
    held = [one for one, effects in sessions if not of(effects, Send)]
    passed = [of(effects, Event) for _, effects in sessions if of(effects, Send)]
    assert len(held) == 4
    assert at.held.now == 800_000
    assert {event.kind for events in passed for event in events} == {"too_much_for_rules"}
    assert "held" in passed[0][0].message
    for one, _ in sessions:
        one.over("closed by client", 2)
    assert at.held.now == 0


def test_a_connection_that_holds_when_the_bytes_are_used_up_passes_too() -> None:
    at = ruled(READS_ALL, held=HeldBytes(MIB))
    one, _ = kept(at, 900_000, 100_000)
    at.held.now += MIB
    effects = one.from_client(bytes(1000), 2)
    assert [event.kind for event in of(effects, Event)] == ["too_much_for_rules"]
    assert len(_bytes(effects)) == 101_000


def test_connections_that_hold_all_they_can_leave_an_equal_share_for_the_next_one() -> None:
    at = ruled(READS_ALL, held=HeldBytes(4 * MIB))
    request = produce(9, 1, size=3 * MIB).request
    sessions = [session(at) for _ in range(10)]
    for begin in range(0, 2 * MIB, 10_000):
        for one in sessions:
            one.from_client(request[begin : begin + 10_000], 1)
    assert at.held.now < 4 * MIB
    share = 4 * MIB // (len(sessions) + 1)
    _, effects = kept(at, 2 * share, share // 2)
    assert effects == []


def test_such_requests_close_their_connection_where_the_settings_say_so() -> None:
    at = ruled(READS_ALL, held=HeldBytes(500_000), unruled="close")
    _, effects = kept(at, 300_000, 200_000)
    assert of(effects, Close) == []
    _, effects = kept(at, 300_000, 200_000)
    assert [close.kind for close in of(effects, Close)] == ["too_much_for_rules"]
    large = ruled(READS_ALL, held_limit=1000, unruled="close")
    _, effects = kept(large, 300_000, 2_000)
    assert [close.kind for close in of(effects, Close)] == ["too_large_for_rules"]


def test_a_response_with_addresses_is_held_all_the_same() -> None:
    at = ground(held=HeldBytes(10))
    at.held.now = MIB
    one = session(at)
    brokers = [{"node_id": 1, "host": "broker-1", "port": 9092}]
    asked = exchange("Metadata", 1, {"topics": []}, {"brokers": brokers, "controller_id": 1, "topics": []})
    one.from_client(asked.request, 1)
    assert asked.answer is not None
    assert one.from_broker(asked.answer[:-3], 1) == []
    assert not of(one.from_broker(asked.answer[-3:], 1), Close)


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_short_token_of_the_broker_arrives_however_it_is_cut(cut: int) -> None:
    one, token = sasl()
    assert b"".join(_bytes(one.from_broker(part, 1)) for part in (token[:cut], token[cut:])) == token


@pytest.mark.parametrize("cut", range(7))
def test_an_answer_of_klamm_s_own_does_not_overtake_a_token(cut: int) -> None:
    one, token = sasl(act("error", 27))
    assert not [each for each in of(one.from_client(heartbeats(1), 1), Send) if each.to == "client"]
    got = b"".join(_bytes(one.from_broker(part, 1)) for part in (token[:cut], token[cut:]) if part)
    assert got.startswith(token)
    assert len(got) > len(token)


def sasl(*actions: Any) -> tuple[Session, bytes]:
    """A session that expects the broker's token, of 6 bytes, behind a SaslHandshake v0 for PLAIN."""
    one = session(ruled(*[rule(action, api="Heartbeat") for action in actions]) if actions else ground())
    shake = exchange("SaslHandshake", 0, {"mechanism": "PLAIN"}, {"error_code": 0, "mechanisms": []})
    one.from_client(shake.request, 1)
    assert shake.answer is not None
    one.from_broker(shake.answer, 1)
    one.unmute(1)
    one.from_client(b"\0\0\0\x09\0user\0pas", 1)
    return one, b"\0\0\0\2ok"


def _bytes(effects: bytes | list[Effect]) -> bytes:
    """All that goes on."""
    if isinstance(effects, bytes):
        return effects
    return b"".join(bytes(each.data) for each in effects if isinstance(each, Send))
