"""What `klamm run` says once clients may come: what to paste, and which port stands for which node."""

from __future__ import annotations

from collections.abc import Iterator

from klamm.proxy.config import Address, Capture
from klamm.proxy.snapshot import ClusterState


def banner(
    clusters: list[ClusterState], admin: Address | None, rules: str = "", capture: Capture | None = None
) -> str:
    """Lines for people; the addresses are the ones that clients are told."""
    lines = [line for cluster in clusters for line in _cluster(cluster)]
    if admin is not None:
        lines.append(f"metrics and health: http://{admin}/")
    if rules:
        lines.append(rules)
    if capture is not None:
        lines.append(f"captured into {capture.folder}, records: {capture.records}")
    return "\n".join(lines)


def _cluster(cluster: ClusterState) -> Iterator[str]:
    named = f" (id {cluster.cluster_id})" if cluster.cluster_id else ""
    yield f"klamm stands in front of {cluster.name}{named}"
    yield ""
    yield f"  bootstrap.servers={cluster.listening}"
    yield f"  kcat -b {cluster.listening} -L"
    yield ""
    rows = [
        ("node", "the cluster says", "clients are told"),
        ("bootstrap", ", ".join(cluster.bootstrap), cluster.listening),
    ]
    rows += [
        (f"{node.kind} {node.node_id}", node.upstream, node.listening or "no port: see the log")
        for node in cluster.nodes
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if not cluster.nodes:
        yield "  the brokers' ports follow, once a client's answer names them"
    yield ""
