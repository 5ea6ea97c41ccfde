"""/v1/clusters, /v1/brokers and /v1/connections: clusters, their nodes and clients."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

from klamm.client.types import Cluster, Connection, Node
from klamm.proxy.admin.routes import Ask, Control, Route
from klamm.proxy.cluster.cluster import Proxied
from klamm.proxy.config_types import Address
from klamm.proxy.control.rule_book import Refused
from klamm.proxy.edge.link import Link
from klamm.proxy.session.rewriting.topology import broker_label

BYTES = struct.Struct("=QQ")  # in Linux' tcp_info: acknowledged by the other end, received from it
BYTES_AT = 120


def clusters(control: Control, ask: Ask) -> list[Cluster]:
    return [
        Cluster(
            state.name,
            state.cluster_id,
            list(state.bootstrap),
            state.listening,
            state.ready,
            state.reason,
            len(state.nodes),
            state.sasl,
            state.state,
        )
        for state in control.state.clusters()
    ]


def brokers(control: Control, ask: Ask) -> list[Node]:
    return [
        Node(state.name, node.kind, node.node_id, node.upstream, node.listening)
        for state in control.state.clusters()
        for node in state.nodes
    ]


def connections(control: Control, ask: Ask) -> list[Connection]:
    return [_connection(proxied, link) for proxied, link in _links(control)]


def close(control: Control, ask: Ask) -> None:
    for proxied, link in _links(control):
        if str(proxied.links[link].number) == ask.name:
            link.finish("closed by hand", reset=True)
            return
    raise Refused(404, f"there is no connection {ask.name!r}")


def _links(control: Control) -> Iterator[tuple[Proxied, Link]]:
    for proxied in control.proxied:
        for link in list(proxied.links):
            yield proxied, link


def _connection(proxied: Proxied, link: Link) -> Connection:
    opened = proxied.links[link]
    sent, received = _tcp_bytes(link)
    session = link.session if link.broker is not None else None
    memories = session.requests.known.values() if session else ()
    client_ids = [memory.client_id for memory in memories if memory.client_id]
    return Connection(
        id=opened.number,
        cluster=proxied.settings.name,
        broker=broker_label(link.target),
        client=str(Address(*link.client_address)),
        client_id=client_ids[-1] if client_ids else None,
        since=opened.since,
        in_flight=link.in_flight(),
        from_client_bytes=received,
        to_client_bytes=sent,
        principal=link.principal,
        software=(session.connection.software if session else None) or link.software,
    )


def _tcp_bytes(link: Link) -> tuple[int | None, int | None]:
    """Bytes sent to the client, and received from it. The kernel counts them."""
    try:
        sock = link.client.transport.get_extra_info("socket")
        tcp_info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES_AT + BYTES.size)
        return BYTES.unpack_from(tcp_info, BYTES_AT)
    except (AttributeError, OSError, ValueError, struct.error):  # it may be closed by now
        return None, None


ROUTES = [
    Route("GET", "/v1/clusters", clusters, "The clusters, and whether they answer", list[Cluster]),
    Route("GET", "/v1/brokers", brokers, "Brokers and controllers, with klamm's listeners", list[Node]),
    Route("GET", "/v1/connections", connections, "The connections of clients", list[Connection]),
    Route(
        "DELETE",
        "/v1/connections/{name}",
        close,
        "Reset a connection",
        status=204,
        refusals={404: "There is no such connection"},
    ),
]
