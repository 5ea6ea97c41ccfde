"""Rules at the sockets: what is cut, stalled and muted, and that nothing of it stays behind."""

from klamm.proxy.session.line import FULL
from tests.fakes.waiting import eventually, on_uvloop, turns
from tests.proxy.faulty import FETCH, beat, produced, serves, under

LARGE = 3_000_000


@on_uvloop
async def test_a_stalled_connection_leads_nowhere_and_ends_with_its_client() -> None:
    async with under("    - {event: connect, stall: true}") as (edge, client, broker):
        before = len(broker.connections)
        client.send("Heartbeat", 4, {"group_id": "g"})
        await turns()
        await edge.links(1)
        assert (client.received, client.ending, len(broker.connections)) == (b"", "", before)
        client.close()
        await edge.empty()


@on_uvloop
async def test_a_stalled_connection_is_closed_when_its_time_is_over() -> None:
    async with under("    - {event: connect, stall: 30ms}") as (edge, client, _):
        assert await client.ended() == "FIN"
        await edge.empty()


@on_uvloop
async def test_a_refused_connection_may_be_closed_instead_of_reset() -> None:
    async with under("    - {event: connect, refuse: fin}") as (edge, client, _):
        assert await client.ended() == "FIN"
        await edge.empty()


@on_uvloop
async def test_a_reset_behind_a_large_answer_leaves_it_whole() -> None:
    async with under("    - {api: Fetch, disconnect: answered}") as (edge, client, broker):
        serves(broker, bytes(LARGE))
        client.send("Fetch", 12, FETCH)
        assert await client.ended() == "RST"
        assert len(client.received) > LARGE
        await edge.empty()


@on_uvloop
async def test_a_client_that_does_not_read_is_cut_all_the_same() -> None:
    async with under("    - {api: Fetch, disconnect: answered}") as (edge, client, broker):
        serves(broker, bytes(3 * LARGE))
        client.transport.pause_reading()
        client.send("Fetch", 12, FETCH)
        await edge.empty()


@on_uvloop
async def test_answers_behind_a_dropped_one_wait_in_bounds() -> None:
    async with under("    - {api: Heartbeat, drop: true}") as (edge, client, broker):
        serves(broker, bytes(FULL // 2))
        client.send("Heartbeat", 4, {"group_id": "g"})
        for _ in range(60):
            client.send("Fetch", 12, FETCH)
        (link,) = await edge.links(1)
        await eventually(lambda: link.broker is not None and "line" in link.broker.paused_for)
        assert link.lines["client"].size < 3 * FULL
        assert client.received == b""
        client.close()
        await edge.empty()


@on_uvloop
async def test_a_muted_client_leaves_nothing_that_grows() -> None:
    async with under("    - {api: Heartbeat, blackhole: true}") as (edge, client, broker):
        client.send("Heartbeat", 4, {"group_id": "g"})
        for _ in range(1000):
            client.send("Produce", 9, produced())
        (link,) = await edge.links(1)
        await turns(50)
        assert link.session.pending() == 0
        assert broker.requests("Produce") == []
        client.reset()
        await edge.empty()


@on_uvloop
async def test_a_delayed_answer_holds_those_behind_it_on_its_connection_only() -> None:
    async with under("    - {api: Heartbeat, delay: 80ms, times: 1}") as (edge, client, _):
        other = await edge.client(1)
        client.send("Heartbeat", 4, {"group_id": "g"})
        client.send("Heartbeat", 4, {"group_id": "g"})
        assert await beat(other) == "NONE"
        assert client.received == b""
        assert [(await client.frame())[4:8] for _ in range(2)] == [b"\0\0\0\1", b"\0\0\0\2"]


@on_uvloop
async def test_a_connection_is_on_the_fast_path_again_when_nothing_waits() -> None:
    async with under("    - {api: Heartbeat, delay: 30ms, times: 1}") as (edge, client, _):
        assert await beat(client) == "NONE"
        (link,) = await edge.links(1)
        assert link.lines == {}
        assert link.broker is not None
        assert link.broker.direct
        assert await beat(client) == "NONE"


@on_uvloop
async def test_a_shape_stays_when_nothing_waits() -> None:
    async with under("    - {api: Heartbeat, bandwidth: 1MB, times: 1}") as (edge, client, _):
        for _ in range(2):
            assert await beat(client) == "NONE"
            (link,) = await edge.links(1)
            assert list(link.lines) == ["client"]
