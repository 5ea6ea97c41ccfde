"""The clusters and brokers that a running klamm knows, as rules name them."""

from __future__ import annotations

from collections.abc import Iterable

from klamm.client.types import Cluster, Node
from klamm.rules.file.presence import Known


def known(clusters: Iterable[Cluster], nodes: Iterable[Node]) -> Known:
    """The nodes of each cluster: "2", "controller 1"."""
    found: dict[str, set[str]] = {cluster.name: set() for cluster in clusters}
    for node in nodes:
        label = str(node.node_id) if node.kind == "broker" else f"{node.kind} {node.node_id}"
        found.setdefault(node.cluster, set()).add(label)
    return {name: frozenset(labels) for name, labels in found.items()}
