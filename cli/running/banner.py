"""Prints the start of `klamm run`: the settings to paste, and the port of each node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from klamm.decoders.text import printable
from klamm.proxy.metrics.snapshot import ClusterState

if TYPE_CHECKING:
    from klamm.proxy.greeting import Greeting

# Placeholders: kcat would take Kerberos where no mechanism is given.
SASL = " -X sasl.mechanism=MECHANISM -X sasl.username=USER -X sasl.password=PASSWORD"


def banner(greeting: Greeting) -> str:
    """Lines for people, with the addresses that clients get."""
    lines = [line for cluster in greeting.clusters for line in _cluster(cluster)]
    if greeting.first:
        lines += _process(greeting)
    return "\n".join(map(printable, lines))


def _process(greeting: Greeting) -> Iterator[str]:
    if greeting.metrics is not None:
        yield f"metrics and health: {greeting.metrics}"
    if greeting.admin is not None:
        about = "metrics and health" if greeting.metrics is None else "admin API"
        yield f"{about}: {greeting.admin}"
    if greeting.rules:
        yield greeting.rules
    if greeting.capture is not None:
        yield f"captured into {greeting.capture.folder}, records: {greeting.capture.records}"


def _cluster(cluster: ClusterState) -> Iterator[str]:
    named = f" (id {cluster.cluster_id})" if cluster.cluster_id else ""
    yield f"klamm stands in front of {cluster.name}{named}"
    yield ""
    yield from _redirect(cluster) if cluster.transparent else _bootstrap(cluster)
    yield ""
    rows = [
        ("node", "the cluster says", "clients are told"),
        ("bootstrap", ", ".join(cluster.bootstrap), "" if cluster.transparent else cluster.listening),
    ]
    rows += [
        (f"{node.kind} {node.node_id}", node.upstream, node.listening or f"nothing: {node.unbound}")
        for node in cluster.nodes
    ]
    shown = [[*map(printable, row)] for row in rows]  # hosts are what brokers say
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if cluster.controllers_only:
        yield "  these are controllers, for admin tools that take --bootstrap-controller alone;"
        yield "  for producers and consumers give klamm a broker's address, as in its advertised.listeners"
    elif not cluster.nodes:
        bare = cluster.transparent or cluster.one_port
        follow = "the brokers follow" if bare else "the brokers' ports follow"
        yield f"  {follow}, once a client's answer names them"
    yield ""


def _redirect(cluster: ClusterState) -> Iterator[str]:
    """For clients that keep the brokers' addresses: a rule for the ports of the brokers that are known."""
    known = [*cluster.bootstrap, *(node.upstream for node in cluster.nodes if node.kind == "broker")]
    ports = ",".join(map(str, sorted({int(address.rpartition(":")[2]) for address in known})))
    port = cluster.listening.rpartition(":")[2]
    yield "  clients keep the brokers' addresses; a redirect leads them here, and leaves klamm's USER out:"
    yield f"  iptables -t nat -A OUTPUT -p tcp -m multiport --dports {ports} \\"
    yield f"      -m owner ! --uid-owner USER -j REDIRECT --to-ports {port}"


def _protocol(cluster: ClusterState) -> str:
    """The clients' security.protocol; empty where it is that of a client without settings."""
    sasl = cluster.sasl or cluster.ends_sasl
    if cluster.tls:
        return "SASL_SSL" if sasl else "SSL"
    return "SASL_PLAINTEXT" if sasl else ""


def _bootstrap(cluster: ClusterState) -> Iterator[str]:
    protocol = _protocol(cluster)
    if cluster.controllers_only:
        yield f"  bootstrap.controllers={cluster.listening}"
    else:
        yield f"  bootstrap.servers={cluster.listening}"
    if protocol:
        yield f"  security.protocol={protocol}"
    if not cluster.controllers_only:
        more = f" -X security.protocol={protocol}" if protocol else ""
        more += SASL if protocol.startswith("SASL") else ""
        yield f"  kcat -b {cluster.listening}{more} -L"
