"""Bad input on one connection: a line, a count, the policy, and nobody else notices."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from klamm.decoders.framing import SIZE, tls_or_size
from tests.fakes.broker import Connection, Request, framed, metadata
from tests.fakes.client import Client
from tests.fakes.edge import cluster
from tests.fakes.waiting import eventually, on_uvloop

BEAT = {"group_id": "g", "member_id": "m"}
TLS_HELLO = bytes.fromhex("16030100f5010000f10303") + bytes(240)
NEGATIVE = b"\xff\xff\xff\xff" + bytes(60)
ABSURD = b"\x7f\xff\xff\xff" + bytes(60)
TEXT = b"GET / HTTP/1.1\r\nHost: klamm\r\n\r\n"

CLOSED_WITH_A_REASON = [
    (TLS_HELLO, "tls_from_client", "security.protocol"),
    (NEGATIVE, "bad_size", "-1 bytes"),
    (ABSURD, "bad_size", "2147483647 bytes"),
    (TEXT, "bad_size", "does not speak Kafka but HTTP: metrics and health are at --admin or --metrics"),
    (b"PROXY TCP4 10.0.0.1 10.0.0.2 1 9092\r\n", "bad_size", "is not in clusters[].proxy_protocol.from"),
]


async def beats(client: Client, times: int) -> None:
    for _ in range(times):
        assert (await client.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        await asyncio.sleep(0)


def test_a_web_server_in_the_place_of_a_broker_is_called_one() -> None:
    (length,) = SIZE.unpack(b"HTTP")
    why = "the broker does not speak Kafka but HTTP: name the port of a broker"
    assert tls_or_size(length, "broker", 1 << 30) == ("bad_size", why)
    assert tls_or_size(length, "client", 1 << 30) != ("bad_size", why)


@pytest.mark.parametrize(("data", "kind", "message"), CLOSED_WITH_A_REASON)
@on_uvloop
async def test_what_cannot_be_a_frame_closes_its_connection_and_no_other(
    data: bytes, kind: str, message: str
) -> None:
    async with cluster() as (klamm, [broker]):
        good = await klamm.client(1)
        traffic = asyncio.create_task(beats(good, 200))
        bad = await klamm.client(1)
        bad.transport.write(data)
        assert await bad.ended() in ("FIN", "RST")
        await traffic
        [line] = klamm.log.bad()
        assert (line.kind, line.fields["broker"], line.fields["cluster"]) == (kind, "1", "kafka")
        assert message in line.message
        host, port = bad.transport.get_extra_info("sockname")
        assert line.fields["connection"] == f"{host}:{port}"
        assert klamm.problems() == {kind: 1}
        bad.close()
        await eventually(lambda: klamm.closed() == {kind: 1})
        assert b"".join(connection.rest for connection in broker.connections) == b""


@on_uvloop
async def test_random_bytes_never_touch_another_connection() -> None:
    draw = random.Random(7)
    async with cluster() as (klamm, [broker]):
        broker.on_connect = lambda connection: None
        good = await klamm.client(1)
        traffic = asyncio.create_task(beats(good, 100))
        for _ in range(60):
            bad = await klamm.client(draw.choice([None, 1]))
            bad.transport.write(draw.randbytes(draw.randint(1, 4000)))
            bad.transport.write_eof()
            await bad.ended()
            bad.close()
        await traffic
        good.close()
        await klamm.empty()
        assert sum(klamm.problems().values()) >= 50
        assert not klamm.log.of("defect")


@on_uvloop
async def test_a_request_cut_short_by_fin_goes_on_as_far_as_it_came() -> None:
    async with cluster() as (klamm, [broker]):
        received = bytearray()
        broker.on_data = lambda _, data: received.extend(data)
        for sent, missing in ((b"\0\0\0\x20\0\x0c\0\4", "some"), (b"\0\0\0\x40\0\x0c\0\4" + bytes(12), "48")):
            received.clear()
            client = await klamm.client(1)
            client.transport.write(sent)
            client.send_fin()
            assert await client.ended() == "FIN"
            assert received == sent
            line = klamm.log.of("truncated")[-1]
            assert f"the client closed in the middle of a request, {missing} bytes missing" in line.message
            client.close()
        await klamm.empty()
        assert klamm.problems() == {"truncated": 2}


@on_uvloop
async def test_a_response_cut_short_by_fin_goes_on_as_far_as_it_came() -> None:
    async with cluster() as (klamm, [broker]):
        whole = b""

        def cut(connection: Connection, request: Request) -> None:
            nonlocal whole
            whole = framed(request, {"error_code": 0, "records": b""} if request.name == "Fetch" else {})
            connection.transport.write(whole[:-1])
            connection.close()

        broker.answers["Heartbeat"] = cut
        client = await klamm.client(1)
        client.send("Heartbeat", 4, BEAT)
        assert await client.ended() == "FIN"
        assert client.received == whole[:-1]
        [line] = klamm.log.of("truncated")
        assert line.message == "the broker closed in the middle of a response, 1 bytes missing"


@on_uvloop
async def test_of_an_answer_with_addresses_that_is_cut_short_nothing_goes_on() -> None:
    async with cluster() as (klamm, [broker]):

        def cut(connection: Connection, request: Request) -> None:
            answer = metadata(connection, request)
            assert answer is not None
            connection.transport.write(framed(request, answer)[:-1])
            connection.close()

        broker.answers["Metadata"] = cut
        client = await klamm.client(1)
        client.send("Metadata", 12, {"topics": []})
        assert await client.ended() == "FIN"
        assert client.received == b""
        assert klamm.problems() == {"truncated": 1}


def unasked(connection: Connection, request: Request) -> bytes:
    return framed(request, {}) * 2


def misnumbered(connection: Connection, request: Request) -> bytes:
    return framed(request._replace(correlation_id=77), {})


def huge(connection: Connection, request: Request) -> bytes:
    return b"\x7f\xff\xff\xff" + bytes(8)


def alert(connection: Connection, request: Request) -> bytes:
    return bytes.fromhex("15030300020250") + bytes(9)


def whole_alert(connection: Connection, request: Request) -> None:
    """All that a TLS port says to a client that speaks none."""
    connection.transport.write(bytes.fromhex("15030300020246"))
    connection.close()


@pytest.mark.parametrize(
    ("answer", "kind", "api"),
    [
        (unasked, "unexpected_response", ""),
        (misnumbered, "correlation_mismatch", "Heartbeat"),
        (huge, "bad_size", ""),
        (alert, "tls_from_broker", ""),
        (whole_alert, "tls_from_broker", ""),
    ],
)
@on_uvloop
async def test_an_answer_that_cannot_be_closes_its_connection_and_no_other(
    answer: Callable[[Connection, Request], bytes | None], kind: str, api: str
) -> None:
    async with cluster() as (klamm, [broker]):
        good = await klamm.client(1)
        await beats(good, 1)
        broker.answers["Heartbeat"] = answer
        bad = await klamm.client(1)
        bad.send("Heartbeat", 4, BEAT)
        assert await bad.ended() == "FIN"
        await broker.until(lambda: broker.connections[-1].lost)
        del broker.answers["Heartbeat"]
        good.send("Heartbeat", 4, BEAT)
        await broker.asked("Heartbeat", 3)
        assert good.ending == ""
        [line] = klamm.log.bad()
        assert (line.kind, line.fields.get("api", "")) == (kind, api)
        assert klamm.problems() == {kind: 1}


@on_uvloop
async def test_a_defect_of_klamm_ends_one_connection_and_is_said() -> None:
    async with cluster() as (klamm, [_broker]):
        good, bad = await klamm.client(1), await klamm.client(1)
        await beats(good, 1)
        await beats(bad, 1)
        port = bad.transport.get_extra_info("sockname")[1]
        [link] = [link for link in klamm.proxied.links if link.client_address[1] == port]
        del link.client.session  # as a defect would leave it
        bad.send("Heartbeat", 4, BEAT)
        assert await bad.ended() == "RST"
        await beats(good, 1)
        [line] = klamm.log.of("defect")
        assert "AttributeError" in line.message
        assert klamm.closed() == {"defect": 1}
        assert klamm.problems() == {"defect": 1}
