"""klamm authenticates itself again on a connection in use, and its client notices nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from klamm.proxy.cluster import own_sessions, reloading
from klamm.proxy.config_types import Text
from klamm.proxy.edge.renewing import Renewing
from tests.fakes.broker import Broker, Connection, Waiting
from tests.fakes.client import Client
from tests.fakes.edge import Edge
from tests.fakes.guarded import Guarded, guarded, sasl
from tests.fakes.waiting import eventually, on_uvloop, turns

BEAT = {"group_id": "g", "member_id": "m"}
SHORT_MS = 500
LONG_MS = 3_600_000


@pytest.fixture(autouse=True)
def _short_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_sessions, "LEAST_S", 0.0)


@asynccontextmanager
async def in_use(tmp_path: Path, lifetime_ms: int = SHORT_MS) -> AsyncIterator[tuple[Edge, Broker, Guarded]]:
    async with guarded(sasl(tmp_path), lifetime_ms=lifetime_ms) as made:
        yield made


def renewed(klamm: Edge) -> int:
    return sum(klamm.stats.reauthentications.values())


async def beats(client: Client, count: int) -> None:
    for _ in range(count):
        assert (await client.ask("Heartbeat", 4, BEAT))["error_code"] == 0


def beating(broker: Broker) -> Connection:
    """The one connection on which heartbeats came: klamm has others of its own, and opens more in time."""
    [found] = [one for one in broker.connections if any(each.name == "Heartbeat" for each in one.requests)]
    return found


async def renewing(klamm: Edge) -> None:
    """A connection waits for its renewal, or is in it."""
    [link] = await klamm.links(1)
    await eventually(lambda: isinstance(link.draining, Renewing))


@on_uvloop
async def test_sessions_are_renewed_on_the_same_connection_while_its_client_goes_on(tmp_path: Path) -> None:
    async with in_use(tmp_path) as (klamm, broker, guard):
        client = await klamm.client(1)
        await beats(client, 1)
        while renewed(klamm) < 3:
            await beats(client, 1)
        assert beating(broker)
        assert set(guard.tokens) == {b"\0alice\0secret"}
        assert klamm.stats.reauthentications == {(klamm.proxied.settings.name, "1"): 3}
        await beats(client, 1)
        assert klamm.log.bad() == []
        asked = {key[3] for key in klamm.stats.requests}
        assert asked == {"Heartbeat"}  # klamm's own requests are none of a client


@on_uvloop
async def test_requests_wait_until_the_authentication_is_over(tmp_path: Path) -> None:
    async with in_use(tmp_path) as (klamm, broker, guard):
        client = await klamm.client(1)
        await beats(client, 1)
        waiting, connection = Waiting(broker, "SaslAuthenticate"), beating(broker)
        await waiting.came()
        before = len(connection.requests)
        guard.lifetime_ms = LONG_MS
        for _ in range(3):
            client.send("Heartbeat", 4, BEAT)
        await turns()
        assert len(connection.requests) == before
        waiting.release()
        for _ in range(3):
            assert (await client.answer("Heartbeat", 4))["error_code"] == 0
        asked = [request.name for request in connection.requests[-5:]]
        assert asked == ["SaslHandshake", "SaslAuthenticate", *["Heartbeat"] * 3]


@on_uvloop
async def test_answers_that_are_due_come_first_and_later_requests_follow(tmp_path: Path) -> None:
    async with in_use(tmp_path) as (klamm, broker, guard):
        client = await klamm.client(1)
        await beats(client, 1)
        waiting, connection = Waiting(broker, "Heartbeat"), beating(broker)
        client.send("Heartbeat", 4, BEAT)
        await waiting.came()
        await renewing(klamm)
        guard.lifetime_ms = LONG_MS
        client.send("Metadata", 12, {"topics": []})
        await turns()
        assert connection.requests[-1].name == "Heartbeat"
        waiting.release()
        assert (await client.answer("Heartbeat", 4))["error_code"] == 0
        assert (await client.answer("Metadata", 12))["brokers"]
        asked = [request.name for request in connection.requests[-4:]]
        assert asked == ["Heartbeat", "SaslHandshake", "SaslAuthenticate", "Metadata"]


@on_uvloop
async def test_a_request_that_has_begun_goes_on_whole_before(tmp_path: Path) -> None:
    async with in_use(tmp_path) as (klamm, broker, guard):
        client = await klamm.client(1)
        await beats(client, 1)
        beat = API["Heartbeat"]
        frame = request_frame(beat, 4, 2, "app", encode(BEAT, beat.key, 4, "request"))
        client.correlation_id = 2
        client.transport.write(frame[:-1])
        await renewing(klamm)
        await turns()
        connection = beating(broker)
        assert [request.name for request in connection.requests].count("SaslHandshake") == 1
        assert connection.rest == frame[:-1]
        guard.lifetime_ms = LONG_MS
        client.transport.write(frame[-1:] + frame)
        for _ in range(2):
            assert (await client.answer("Heartbeat", 4))["error_code"] == 0
        asked = [request.name for request in beating(broker).requests[-4:]]
        assert asked == ["Heartbeat", "SaslHandshake", "SaslAuthenticate", "Heartbeat"]


@on_uvloop
async def test_a_changed_password_is_used_and_one_that_is_refused_ends_the_connection_between_exchanges(
    tmp_path: Path,
) -> None:
    async with in_use(tmp_path) as (klamm, _, guard):
        client = await klamm.client(1)
        await beats(client, 1)
        (tmp_path / "password").write_text("newer")
        guard.token = b"\0alice\0newer"
        await eventually(lambda: renewed(klamm) >= 1)
        await beats(client, 1)
        guard.token = b"\0alice\0other"
        assert await client.ended() == "FIN"
        [line] = await klamm.logged("reauthentication_failed")
        assert "refuses alice: Authentication failed" in line.message
        assert "newer" not in line.message
        assert klamm.problems()["reauthentication_failed"] == 1
        client.close()
        await eventually(lambda: klamm.closed() == {"its SASL session ends": 1})


@on_uvloop
async def test_a_password_that_cannot_be_read_is_asked_for_again_before_the_session_ends(
    tmp_path: Path,
) -> None:
    async with in_use(tmp_path, 2000) as (klamm, _, guard):
        client = await klamm.client(1)
        await beats(client, 1)
        (tmp_path / "password").write_text("")
        [line] = await klamm.logged("reauthentication_failed")
        assert "is empty" in line.message
        (tmp_path / "password").write_text("secret")
        guard.lifetime_ms = LONG_MS
        await eventually(lambda: renewed(klamm) == 1)
        await beats(client, 1)
        assert klamm.closed() == {}


@on_uvloop
async def test_a_connection_ends_politely_where_there_are_no_credentials_any_more(tmp_path: Path) -> None:
    async with in_use(tmp_path) as (klamm, _, _):
        client = await klamm.client(1)
        await beats(client, 1)
        (tmp_path / "password").unlink()
        assert await client.ended() == "FIN"
        client.close()
        await eventually(lambda: klamm.closed() == {"its SASL session ends": 1})


@on_uvloop
async def test_another_user_needs_another_connection(tmp_path: Path) -> None:
    async with in_use(tmp_path) as (klamm, _, guard):
        client = await klamm.client(1)
        await beats(client, 1)
        other = replace(sasl(tmp_path), username=Text("bob"))
        reloading.take(reloading.prepare(klamm.proxied, replace(klamm.proxied.settings, sasl=other)))
        assert await client.ended() == "FIN"
        assert b"\0bob\0secret" not in guard.tokens
        assert klamm.log.of("reauthentication_failed") == []


@pytest.mark.parametrize("api", ["SaslHandshake", "SaslAuthenticate"])
@on_uvloop
async def test_a_broker_that_closes_in_the_middle_ends_the_connection_of_the_client(
    tmp_path: Path, api: str
) -> None:
    async with in_use(tmp_path) as (klamm, broker, _):
        client = await klamm.client(1)
        await beats(client, 1)
        waiting = Waiting(broker, api)
        await waiting.came()
        client.send("Heartbeat", 4, BEAT)
        waiting.asked[0][0].close()
        assert await client.ended() in ("FIN", "RST")
        await klamm.logged("reauthentication_failed")
        await klamm.empty()


@on_uvloop
async def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    async with in_use(tmp_path) as (klamm, broker, _):
        client = await klamm.client(1)
        await beats(client, 1)
        waiting = Waiting(broker, "SaslAuthenticate")
        await waiting.came()
        client.close()
        waiting.release()
        await klamm.empty()
        assert klamm.log.of("reauthentication_failed") == []
        assert klamm.closed() == {"closed by client": 1}


@pytest.mark.parametrize("api", ["Heartbeat", "SaslAuthenticate"])
@on_uvloop
async def test_a_drain_in_the_middle_ends_the_connection(tmp_path: Path, api: str) -> None:
    async with in_use(tmp_path) as (klamm, broker, _):
        client = await klamm.client(1)
        await beats(client, 1)
        waiting = Waiting(broker, api)
        client.send("Heartbeat", 4, BEAT)
        await waiting.came()
        await renewing(klamm)
        [link] = klamm.proxied.links
        link.drain("klamm drains", 5.0)
        waiting.release()
        assert (await client.answer("Heartbeat", 4))["error_code"] == 0
        assert await client.ended() == "FIN"
        assert klamm.log.of("reauthentication_failed") == []


@on_uvloop
async def test_a_request_that_rules_delay_goes_to_the_broker_before(tmp_path: Path) -> None:
    async with in_use(tmp_path) as (klamm, broker, guard):
        klamm.rule("  - {api: Heartbeat, side: request, delay: 900ms, times: 1}")
        client = await klamm.client(1)
        client.send("Heartbeat", 4, BEAT)
        await renewing(klamm)
        guard.lifetime_ms = LONG_MS
        client.send("Heartbeat", 4, BEAT)
        for _ in range(2):
            assert (await client.answer("Heartbeat", 4))["error_code"] == 0
        asked = [request.name for request in beating(broker).requests]
        first = asked.index("Heartbeat")
        between = asked[first + 1 : asked.index("Heartbeat", first + 1)]
        renewals = max(1, len(between) // 2)  # more of them until the lifetime has grown
        assert between == ["SaslHandshake", "SaslAuthenticate"] * renewals


@on_uvloop
async def test_a_throttled_client_stays_throttled(tmp_path: Path) -> None:
    async with in_use(tmp_path, 100) as (klamm, _, guard):
        klamm.rule("  - {api: Heartbeat, throttle: 600ms, times: 1}")
        client = await klamm.client(1)
        await beats(client, 1)
        await eventually(lambda: renewed(klamm) >= 1)
        guard.lifetime_ms = LONG_MS
        [link] = klamm.proxied.links
        assert link.session.muted
        await beats(client, 1)


@on_uvloop
async def test_produce_requests_that_nobody_answers_go_before(tmp_path: Path) -> None:
    produce: dict[str, Any] = {"acks": 0, "timeout_ms": 1000, "topic_data": []}
    async with in_use(tmp_path) as (klamm, broker, guard):
        client = await klamm.client(1)
        await beats(client, 1)
        waiting = Waiting(broker, "SaslHandshake")
        client.send("Produce", 9, produce)
        await waiting.came()
        client.send("Produce", 9, produce)
        guard.lifetime_ms = LONG_MS
        waiting.release()
        await beats(client, 1)
        asked = [request.name for request in beating(broker).requests]
        assert asked[4:] == ["Produce", "SaslHandshake", "SaslAuthenticate", "Produce", "Heartbeat"]


@on_uvloop
async def test_pipelined_requests_of_all_sizes_keep_their_order_over_many_sessions(tmp_path: Path) -> None:
    """Large ones are cut by the socket, so sessions are due in the middle of them too."""
    async with in_use(tmp_path, 20) as (klamm, broker, guard):
        client, sizes, flying, sent = await klamm.client(1), (1, 20_000, 300, 8_000), 16, 0
        answered = 0
        while renewed(klamm) < 20 or answered < sent:
            while sent - answered < flying and renewed(klamm) < 20:
                client.send("Heartbeat", 4, {**BEAT, "group_id": "g" * sizes[sent % len(sizes)]})
                sent += 1
            frame = await client.frame()
            answered += 1
            assert int.from_bytes(frame[4:8], "big") == answered
        guard.lifetime_ms = LONG_MS
        asked = [request for request in beating(broker).requests if request.name == "Heartbeat"]
        assert [request.correlation_id for request in asked] == list(range(1, sent + 1))
        assert [len(request.values["group_id"]) for request in asked[:4]] == list(sizes)
        assert klamm.log.bad() == []


ANSWERS: dict[str, tuple[bytes, str]] = {
    "of another request": (b"\0\0\0\x06\x7f\xff\xff\xff\0\0", "answers what was not asked"),
    "cut off": (b"\0\0\0\x05\0\0\0\x01\0", "cannot be read"),
    "too large": (b"\x7f\xff\xff\xff", "a frame of 2147483647 bytes"),
}


@pytest.mark.parametrize("case", ANSWERS)
@on_uvloop
async def test_an_answer_that_is_none_ends_the_connection_and_is_told(tmp_path: Path, case: str) -> None:
    answer, says = ANSWERS[case]
    async with in_use(tmp_path) as (klamm, broker, _):
        client = await klamm.client(1)
        await beats(client, 1)
        broker.answers["SaslHandshake"] = lambda *_: answer
        client.send("Heartbeat", 4, BEAT)
        assert (await client.answer("Heartbeat", 4))["error_code"] == 0
        assert await client.ended() == "FIN"
        [line] = await klamm.logged("reauthentication_failed")
        assert says in line.message
        assert client.received == b""  # nothing of klamm's own got to the client


@on_uvloop
async def test_a_broker_that_is_silent_has_so_much_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_sessions, "PATIENCE_S", 0.1)
    async with guarded(sasl(tmp_path), lifetime_ms=SHORT_MS) as (klamm, broker, _):
        klamm.proxied.dialler.way = klamm.proxied.dialler.way._replace(timeout_s=0.1)
        client = await klamm.client(1)
        await beats(client, 1)
        Waiting(broker, "SaslAuthenticate")
        assert await client.ended() == "FIN"
        [line] = await klamm.logged("reauthentication_failed")
        assert "does not answer within 0.2 s" in line.message
