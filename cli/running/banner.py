"""What `klamm run` says once clients may come: what to paste, and which port stands for which node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from klamm.proxy.metrics.snapshot import ClusterState

if TYPE_CHECKING:
    from klamm.proxy.serve import Greeting


def banner(greeting: Greeting) -> str:
    """Lines for people; the addresses are the ones that clients are told."""
    lines = [line for cluster in greeting.clusters for line in _cluster(cluster)]
    if greeting.first:
        lines += _process(greeting)
    return "\n".join(lines)


def _process(greeting: Greeting) -> Iterator[str]:
    if greeting.metrics is not None:
        yield f"metrics and health: http://{greeting.metrics}/"
    if greeting.admin is not None:
        about = "metrics and health" if greeting.metrics is None else "admin API"
        yield f"{about}: http://{greeting.admin}/"
    if greeting.rules:
        yield greeting.rules
    if greeting.capture is not None:
        yield f"captured into {greeting.capture.folder}, records: {greeting.capture.records}"


def _cluster(cluster: ClusterState) -> Iterator[str]:
    named = f" (id {cluster.cluster_id})" if cluster.cluster_id else ""
    yield f"klamm stands in front of {cluster.name}{named}"
    yield ""
    if cluster.controllers_only:
        yield f"  bootstrap.controllers={cluster.listening}"
    else:
        yield f"  bootstrap.servers={cluster.listening}"
        yield f"  kcat -b {cluster.listening} -L"
    yield ""
    rows = [
        ("node", "the cluster says", "clients are told"),
        ("bootstrap", ", ".join(cluster.bootstrap), cluster.listening),
    ]
    rows += [
        (f"{node.kind} {node.node_id}", node.upstream, node.listening or f"nothing: {node.unbound}")
        for node in cluster.nodes
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if cluster.controllers_only:
        yield "  these are controllers, for admin tools that take --bootstrap-controller alone;"
        yield "  for producers and consumers give klamm a broker's address, as in its advertised.listeners"
    elif not cluster.nodes:
        yield "  the brokers' ports follow, once a client's answer names them"
    yield ""
