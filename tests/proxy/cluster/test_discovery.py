"""klamm asks brokers of every kind who their cluster is; what fails names the option that helps."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from klamm.decoders import API, encode
from klamm.decoders.headers import response_frame
from klamm.proxy.cluster.conversation import Unanswered, Way
from klamm.proxy.cluster.own_requests.discovery import Found, discover, greet
from klamm.proxy.config_types import Address
from klamm.proxy.edge.sockets import tls_context
from klamm.proxy.session.rewriting.topology import NodeKey
from tests.fakes import tls
from tests.fakes.broker import Broker, Cluster, Connection, Request, api_versions, closes, framed, resets
from tests.fakes.waiting import on_uvloop

PLAIN = Way(5.0)


def trusting(ca: str | None) -> Way:
    return Way(5.0, tls_context(ca, None, None, True))


def address_of(broker: Broker) -> Address:
    return Address(broker.host, broker.port)


async def refusal(address: Address, way: Way = PLAIN) -> str:
    with pytest.raises(Unanswered) as refused:
        await discover(address, way)
    return str(refused.value)


@on_uvloop
async def test_brokers_and_controllers_are_found_with_the_cluster_id() -> None:
    cluster = Cluster(controllers={3000: ("controller", 9090), 1: ("kafka-1", 9093)})
    async with Broker(cluster, 1).listening() as broker:
        cluster.nodes[2] = ("kafka-2", 9092)
        found = await discover(address_of(broker), PLAIN)
        assert found.cluster_id == "fake-cluster"
        assert found.nodes == {
            NodeKey("broker", 1): (broker.host, broker.port),
            NodeKey("broker", 2): ("kafka-2", 9092),
            NodeKey("controller", 3000): ("controller", 9090),
            NodeKey("controller", 1): ("kafka-1", 9093),
        }
        await broker.until(lambda: broker.connections[-1].lost)


@on_uvloop
async def test_metadata_is_asked_without_topics() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        await discover(address_of(broker), PLAIN)
        [request] = broker.requests("Metadata")
        assert (request.client_id, request.values["topics"]) == ("klamm", [])


@pytest.mark.parametrize("newest", [0, 1, 5, 8, 9, 13, 99])
@on_uvloop
async def test_metadata_is_asked_in_a_version_that_both_know(newest: int) -> None:
    async with Broker(
        Cluster(versions={"Metadata": (0, newest), "ApiVersions": (0, 2)}), 1
    ).listening() as broker:
        found = await discover(address_of(broker), PLAIN)
        assert list(found.nodes) == [NodeKey("broker", 1)]
        assert broker.requests("Metadata")[0].version == min(newest, 12)
        assert [request.version for request in broker.requests("ApiVersions")] == [3, 0]


@pytest.mark.parametrize(("first", "last"), [(1, 2), (2, 2), (1, 1), (2, 3)])
@on_uvloop
async def test_a_broker_that_knows_only_some_versions_of_api_versions_is_found(first: int, last: int) -> None:
    versions = [{"api_key": 18, "min_version": first, "max_version": last}]
    refusal = encode({"error_code": 35, "api_keys": versions}, "ApiVersions", 0, "response")

    def answer(connection: Connection, request: Request) -> Any:
        if first <= request.version <= last:
            return api_versions(connection, request)
        return response_frame(API["ApiVersions"], 0, request.correlation_id, refusal)

    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers["ApiVersions"] = answer
        assert list((await discover(address_of(broker), PLAIN)).nodes) == [NodeKey("broker", 1)]


@on_uvloop
async def test_brokers_without_an_address_are_none() -> None:
    """Clients get them as they are: no port of klamm's leads there."""
    cluster = Cluster(nodes={2: ("", 9092), 3: ("kafka-3", 0), 4: ("kafka-4", -1), 5: ("kafka-5", 9092)})
    async with Broker(cluster, 1).listening() as broker:
        found = await discover(address_of(broker), PLAIN)
        assert sorted(key.node_id for key in found.nodes) == [1, 5]


@on_uvloop
async def test_a_controller_names_controllers() -> None:
    cluster = Cluster(hidden={"Metadata"}, controllers={3000: ("controller", 9090)})
    async with Broker(cluster, 3000).listening() as broker:
        found = await discover(address_of(broker), PLAIN)
        assert found.nodes == {NodeKey("controller", 3000): ("controller", 9090)}


@pytest.mark.parametrize("end", [closes, resets])
@on_uvloop
async def test_a_broker_that_closes_on_api_versions_is_asked_in_metadata_0(
    end: Callable[[Connection, Request], None],
) -> None:
    async with Broker(Cluster(), 7).listening() as broker:
        broker.answers["ApiVersions"] = end
        found = await discover(address_of(broker), PLAIN)
        where = Address(broker.host, broker.port)
        assert found == Found({NodeKey("broker", 7): where}, api_versions=None)
        assert [request.version for request in broker.requests("Metadata")] == [0]


def answering(*versions: int) -> Callable[[Connection, Request], Any]:
    """ApiVersions in these versions, and nothing to others."""
    return lambda connection, request: (
        api_versions(connection, request) if request.version in versions else None
    )


@on_uvloop
async def test_a_node_that_is_silent_to_api_versions_3_is_asked_with_version_0() -> None:
    async with Broker(Cluster(), 7).listening() as broker:
        broker.answers["ApiVersions"] = answering(0, 1, 2)
        found = await discover(address_of(broker), Way(2.0))
        assert (list(found.nodes), found.cluster_id) == ([NodeKey("broker", 7)], "fake-cluster")
        assert (found.api_versions, found.silent_to) == (0, ("ApiVersions 3",))
        assert [request.version for request in broker.requests("ApiVersions")] == [3, 0]
        await broker.until(lambda: all(connection.lost for connection in broker.connections))


@on_uvloop
async def test_a_node_that_is_silent_to_api_versions_is_asked_for_metadata_0() -> None:
    async with Broker(Cluster(), 7).listening() as broker:
        broker.answers["ApiVersions"] = answering()
        found = await discover(address_of(broker), Way(2.0))
        where = Address(broker.host, broker.port)
        silent_to = ("ApiVersions 3", "ApiVersions 0")
        assert found == Found({NodeKey("broker", 7): where}, api_versions=None, silent_to=silent_to)
        await greet(address_of(broker), Way(2.0))
        await broker.until(lambda: all(connection.lost for connection in broker.connections))


@on_uvloop
async def test_a_node_that_is_only_slow_is_asked_in_vain_for_nothing() -> None:
    async with Broker(Cluster(), 7).listening() as broker:
        held: list[Callable[[], None]] = []

        def slow(connection: Connection, request: Request) -> None:
            if request.version == 3:
                held.append(lambda: connection.answer(request))

        broker.answers["ApiVersions"] = slow
        finding = asyncio.create_task(discover(address_of(broker), Way(2.0)))
        await broker.asked("ApiVersions", 2)
        broker.answers["ApiVersions"] = api_versions
        held[0]()
        found = await finding
        assert (found.api_versions, found.silent_to) == (3, ())
        await broker.until(lambda: all(connection.lost for connection in broker.connections))


def handshake(error: int, *mechanisms: str) -> Callable[[Connection, Request], dict[str, Any]]:
    return lambda connection, request: {"error_code": error, "mechanisms": list(mechanisms)}


@on_uvloop
async def test_a_broker_that_wants_sasl_says_which() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers["Metadata"] = closes
        broker.answers["SaslHandshake"] = handshake(33, "GSSAPI", "PLAIN")
        found = await discover(address_of(broker), PLAIN)
        assert (found.asks_sasl, found.mechanisms, found.nodes) == (True, ("GSSAPI", "PLAIN"), {})


@on_uvloop
async def test_a_broker_that_closes_on_every_question_may_want_sasl() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers["Metadata"] = broker.answers["SaslHandshake"] = closes
        assert (await discover(address_of(broker), PLAIN)).asks_sasl


@on_uvloop
async def test_a_broker_without_sasl_that_closes_was_only_stopped() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers["Metadata"] = closes
        broker.answers["SaslHandshake"] = handshake(34)
        assert "closes the connection when it is asked for Metadata" in await refusal(address_of(broker))


@on_uvloop
async def test_a_port_where_nobody_listens_refuses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address(*server.getsockname())
    assert await refusal(address) == f"{address} refuses connections"


@on_uvloop
async def test_a_name_that_leads_nowhere_names_the_map_option() -> None:
    reason = await refusal(Address("kafka-1.invalid", 9092))
    assert reason.startswith("kafka-1.invalid:9092 cannot be reached (")
    assert reason.endswith("if klamm reaches it elsewhere, say --map kafka-1.invalid:9092=HOST:PORT")


@pytest.mark.parametrize(
    "address",
    [("", 9092), ("a..b", 9092), ("x" * 300, 9092), ("h\0", 1), ("127.0.0.1", 65537), ("\udc80", 1)],
)
@on_uvloop
async def test_nonsense_for_an_address_is_one_line_too(address: tuple[str, int]) -> None:
    reason = await refusal(Address(*address), Way(1.0))
    assert "--map" in reason or "refuses connections" in reason


@on_uvloop
async def test_a_node_that_does_not_answer_is_given_up() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers.clear()
        reason = await refusal(address_of(broker), Way(0.05))
        assert reason == f"{address_of(broker)} accepts connections and does not answer within 0.1 s"
        await broker.until(lambda: broker.connections[-1].lost)


@on_uvloop
async def test_a_plain_klamm_at_a_tls_broker_names_the_tls_option(context: ssl.SSLContext) -> None:
    async with Broker(Cluster(), 1).listening(tls=context) as broker:
        assert "--upstream-tls" in await refusal(address_of(broker))


@on_uvloop
async def test_a_tls_alert_names_the_tls_option() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers["ApiVersions"] = lambda *_: bytes.fromhex("15030300020250")
        reason = await refusal(address_of(broker))
        assert (
            reason == f"{address_of(broker)}: the broker speaks TLS (alert): start klamm with --upstream-tls"
        )


@pytest.mark.parametrize("end", [Connection.close, Connection.reset])
@on_uvloop
async def test_tls_at_a_plain_broker_names_the_tls_option(
    end: Callable[[Connection], None], context: ssl.SSLContext, certificates: Path
) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.on_data = lambda connection, data: end(connection)  # Kafka: the size is beyond its limit
        reason = await refusal(address_of(broker), trusting(str(certificates / "ca.pem")))
        assert reason.endswith("start klamm without --upstream-tls (clusters[].tls) if it is a plain port")


@on_uvloop
async def test_tls_at_a_server_of_another_kind_names_the_tls_option(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.on_data = lambda connection, data: connection.transport.write(
            b"HTTP/1.1 400 Bad Request\r\n\r\n"
        )
        reason = await refusal(address_of(broker), trusting(str(certificates / "ca.pem")))
        assert reason.endswith("start klamm without --upstream-tls (clusters[].tls) if it is a plain port")


@on_uvloop
async def test_a_certificate_that_is_not_trusted_names_the_ca_option(context: ssl.SSLContext) -> None:
    async with Broker(Cluster(), 1).listening(tls=context) as broker:
        reason = await refusal(address_of(broker), trusting(None))
        assert "its certificate is not trusted (" in reason
        assert reason.endswith("name the authority with --upstream-ca (clusters[].tls.ca)")


@pytest.mark.parametrize(
    ("valid", "why"), [((-3, -1), "certificate has expired"), ((1, 3), "certificate is not yet valid")]
)
@on_uvloop
async def test_a_certificate_out_of_its_time_says_so_and_no_authority_is_asked_for(
    valid: tuple[int, int], why: str, tmp_path: Path
) -> None:
    async with Broker(Cluster(), 1).listening(tls=tls.of_days(tmp_path, valid)) as broker:
        reason = await refusal(address_of(broker), trusting(str(tmp_path / "broker.pem")))
        assert reason == (
            f"{address_of(broker)}: {why}: the broker needs another one, or klamm's machine has the wrong "
            "time"
        )


@on_uvloop
async def test_a_certificate_for_another_name_says_so(context: ssl.SSLContext, certificates: Path) -> None:
    async with Broker(Cluster(), 1).listening(tls=context) as broker:
        way = trusting(str(certificates / "ca.pem"))._replace(server_name="kafka.example")
        reason = await refusal(address_of(broker), way)
        assert "kafka.example" in reason
        assert "server_name" in reason


@on_uvloop
async def test_a_tls_broker_is_asked_over_tls(context: ssl.SSLContext, certificates: Path) -> None:
    async with Broker(Cluster(), 1).listening(tls=context) as broker:
        found = await discover(address_of(broker), trusting(str(certificates / "ca.pem")))
        assert list(found.nodes) == [NodeKey("broker", 1)]


def raw(data: bytes) -> Callable[[Connection, Request], bytes]:
    return lambda connection, request: data


STRANGE = [
    ("ApiVersions", raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
    ("ApiVersions", raw(b"\xff\xff\xff\xff")),
    ("ApiVersions", raw(b"\0\0\0\4\0\0\0\7")),
    ("Metadata", raw(b"\0\0\0\4\0\0\0\2")),
    ("Metadata", raw(b"\0\0\0\x0a\0\0\0\2\0\xff\xff\xff\xff\xff")),
    ("Metadata", raw(response_frame(API[3], 12, 2, bytes(3)))),
    ("DescribeQuorum", raw(b"\0\0\0\5\0\0\0\3\0")),
]


@pytest.mark.parametrize(("name", "answer"), STRANGE)
@on_uvloop
async def test_a_strange_answer_is_one_line_that_names_the_address(name: str, answer: Any) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers[name] = answer
        reason = await refusal(address_of(broker))
        assert str(address_of(broker)) in reason
        assert "\n" not in reason


NOTHING_OFFERED = [
    raw(b"\0\0\0\4\0\0\0\1"),
    raw(response_frame(API[18], 0, 1, b"\0\0\0")),
    raw(response_frame(API[18], 0, 1, b"\0\x1d")),
    raw(response_frame(API[18], 0, 1, bytes(7))),
    lambda *_: {"api_keys": []},
    lambda *_: {"api_keys": [{"api_key": 3, "min_version": 50, "max_version": 60}]},
    lambda *_: {"api_keys": [{"api_key": 3, "min_version": -1, "max_version": -1}]},
]


@pytest.mark.parametrize("answer", NOTHING_OFFERED)
@on_uvloop
async def test_a_broker_that_offers_nothing_is_asked_for_metadata_0(answer: Any) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers["ApiVersions"] = answer
        found = await discover(address_of(broker), PLAIN)
        assert list(found.nodes) == [NodeKey("broker", 1)]
        [asked] = broker.requests("Metadata")
        assert asked.version == 0
        for unknown in (closes, raw(response_frame(API[3], 0, 1, b"\0"))):
            broker.answers["Metadata"] = unknown
            assert "offers neither Metadata nor DescribeCluster" in await refusal(address_of(broker))


@pytest.mark.parametrize("behind", [b"\0", bytes(5)])
@on_uvloop
async def test_what_stands_behind_an_answer_to_api_versions_hides_nothing(behind: bytes) -> None:
    async with Broker(Cluster(), 1).listening() as broker:

        def longer(connection: Connection, request: Request) -> bytes:
            values = api_versions(connection, request)
            assert isinstance(values, dict)
            return response_frame(
                API[18], request.version, 1, encode(values, 18, request.version, "response") + behind
            )

        broker.answers["ApiVersions"] = longer
        found = await discover(address_of(broker), PLAIN)
        assert (list(found.nodes), found.api_versions) == ([NodeKey("broker", 1)], 3)


@on_uvloop
async def test_answers_that_come_byte_by_byte_are_read() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        whole = broker.answers["Metadata"]

        async def slowly(connection: Connection, data: bytes) -> None:
            for byte in data:
                connection.transport.write(bytes([byte]))
                await asyncio.sleep(0)

        def answer(connection: Connection, request: Request) -> None:
            values = whole(connection, request)
            assert isinstance(values, dict)
            tasks.append(asyncio.ensure_future(slowly(connection, framed(request, values))))

        tasks: list[asyncio.Future[None]] = []
        broker.answers["Metadata"] = answer
        assert (await discover(address_of(broker), PLAIN)).cluster_id == "fake-cluster"
        await asyncio.gather(*tasks)
