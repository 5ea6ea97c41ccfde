"""A broker that ends a connection instead of answering is named in the log, with what it was asked."""

from __future__ import annotations

import pytest

from klamm.decoders.framing import SIZE
from klamm.proxy.session.unanswered import NEVER_ANSWERED
from tests.fakes.broker import Broker, Cluster, Connection, Request, closes, resets
from tests.fakes.client import Client
from tests.fakes.edge import Edge, Line, cluster, edge
from tests.fakes.waiting import on_uvloop

BEAT = {"group_id": "g", "member_id": "m"}


def said(klamm: Edge) -> list[Line]:
    counted = sum(count for (*_, kind), count in klamm.stats.problems.items() if kind == "closed_unanswered")
    lines = klamm.log.of("closed_unanswered")
    assert counted == len(lines)
    return lines


async def over(klamm: Edge, client: Client) -> None:
    await client.ended()
    client.close()
    await klamm.empty()


@on_uvloop
async def test_a_version_that_the_broker_never_answers() -> None:
    async with cluster() as (klamm, [broker]):
        broker.answers["Heartbeat"] = closes
        client = await klamm.client(1)
        client.send("Heartbeat", 0, BEAT)
        await over(klamm, client)
        [line] = said(klamm)
        assert line.level == "warning"
        assert line.message.startswith(
            "the broker closed the connection instead of answering Heartbeat v0: it has answered no such "
            "request of this client; brokers close the connection on a version that they do not take"
        )
        assert line.message.endswith(
            "they close connections too when they stop, and where an answer takes longer than "
            "connections.max.idle.ms"
        )
        names = ("cluster", "broker", "api", "version", "client_id")
        assert [line.fields[name] for name in names] == ["kafka", "1", "Heartbeat", 0, "app"]
        assert line.fields["connection"].startswith("127.0.0.1:")


@pytest.mark.parametrize("asks", [0, 3, 4])
@pytest.mark.parametrize(
    ("version", "says"),
    [
        (0, "it takes Heartbeat v1 to v3: the client is too old for it"),
        (
            4,
            "it takes Heartbeat v1 to v3: the client goes by a setting (broker.version.fallback, "
            "api_version), or by the versions of another broker",
        ),
        (3, NEVER_ANSWERED),
    ],
)
@on_uvloop
async def test_a_version_that_the_broker_has_not_offered(version: int, says: str, asks: int) -> None:
    """`asks`: the version of ApiVersions with which another client asked before."""
    async with cluster() as (klamm, [broker]):
        broker.cluster.versions["Heartbeat"] = 1, 3
        other = await klamm.client(1)
        software = {"client_software_name": "a", "client_software_version": "1"}
        await other.ask("ApiVersions", asks, software if asks >= 3 else {})
        other.close()
        broker.answers["Heartbeat"] = closes
        client = await klamm.client(1)
        client.send("Heartbeat", version, BEAT)
        await over(klamm, client)
        [line] = said(klamm)
        asked = f"the broker closed the connection instead of answering Heartbeat v{version}: "
        assert line.message == asked + says


@on_uvloop
async def test_a_broker_that_stops_with_requests_that_wait() -> None:
    async with cluster() as (klamm, [broker]):
        client = await klamm.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        broker.answers["Heartbeat"] = lambda connection, request: None
        client.send("Heartbeat", 4, BEAT)
        client.send("Heartbeat", 4, BEAT)
        broker.answers["Metadata"] = resets
        client.send("Metadata", 12, {"topics": []})
        await over(klamm, client)
        [line] = said(klamm)
        assert line.message == (
            "the broker reset the connection instead of answering Heartbeat v4 and 2 more: it has answered "
            "such requests before; brokers close their connections when they stop, and one on which an "
            "answer takes longer than connections.max.idle.ms"
        )


@on_uvloop
async def test_nothing_is_said_where_the_client_or_a_rule_ends_the_connection_or_nothing_is_due() -> None:
    async with cluster() as (klamm, [broker]):
        client = await klamm.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        broker.connections[-1].close()
        await over(klamm, client)
        broker.answers["Heartbeat"] = lambda connection, request: None
        client = await klamm.client(1)
        client.send("Heartbeat", 4, BEAT)
        await broker.asked("Heartbeat", 2)
        client.close()
        await klamm.empty()
        klamm.rule("  - {api: Heartbeat, disconnect: {when: before}}")
        client = await klamm.client(1)
        client.send("Heartbeat", 4, BEAT)
        await over(klamm, client)
        assert said(klamm) == []


@on_uvloop
async def test_nothing_is_said_of_an_answer_that_is_cut_short() -> None:
    def half(connection: Connection, request: Request) -> None:
        connection.transport.write(SIZE.pack(100) + SIZE.pack(request.correlation_id) + bytes(10))
        connection.close()

    async with cluster() as (klamm, [broker]):
        for api, version, values in (("Heartbeat", 4, BEAT), ("Metadata", 12, {"topics": []})):
            client = await klamm.client(1)
            broker.answers[api] = half
            client.send(api, version, values)
            await over(klamm, client)
        assert len(klamm.log.of("truncated")) == 2
        assert said(klamm) == []


def tokens(broker: Broker, connection: Connection, data: bytes) -> None:
    """Answers SaslHandshake 0, and ends the connection on the token that follows it."""
    if connection.requests:
        connection.close()
    else:
        connection._take(data[4:])


@on_uvloop
async def test_credentials_that_a_broker_refuses_without_a_word() -> None:
    async with cluster() as (klamm, [broker]):
        broker.answers["SaslHandshake"] = lambda connection, request: {
            "error_code": 0,
            "mechanisms": ["PLAIN"],
        }
        broker.on_data = lambda connection, data: tokens(broker, connection, data)
        client = await klamm.client(1)
        await client.ask("SaslHandshake", 0, {"mechanism": "PLAIN"})
        secret = b"\0app\0secret"
        client.transport.write(SIZE.pack(len(secret)) + secret)
        await over(klamm, client)
        [line] = said(klamm)
        assert line.message == (
            "the broker closed the connection instead of answering a SASL token: Kafka does so where it "
            "refuses the credentials of a client that begins with SaslHandshake 0"
        )
        assert line.fields["api"] == "SaslHandshake"


@on_uvloop
async def test_a_client_without_sasl_where_the_cluster_wants_it_is_told_the_setting() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers["Metadata"] = closes
        broker.answers["SaslHandshake"] = lambda *_: {"error_code": 0, "mechanisms": ["PLAIN"]}
        async with edge(broker) as klamm:
            client = await klamm.client()
            client.send("Metadata", 12, {"topics": []})
            await over(klamm, client)
            client = await klamm.client()
            await client.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
            client.send("Metadata", 11, {"topics": []})
            await over(klamm, client)
            plain, begun = said(klamm)
    assert plain.message == (
        "the broker closed the connection instead of answering Metadata v12: the cluster wants SASL, and the "
        "client has not sent SaslHandshake: set its security.protocol to SASL_PLAINTEXT or SASL_SSL, and its "
        "sasl.mechanism"
    )
    assert "it has answered no such request of this client" in begun.message
