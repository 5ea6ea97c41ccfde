"""Logs the nodes of a cluster that came, went or moved."""

from __future__ import annotations

from klamm.proxy.log.events import Events, Level
from klamm.proxy.session.rewriting.topology import Topology


def say_changes(topology: Topology, cluster: str, log: Events) -> None:
    """Log the changes since the last call."""
    changes, more = topology.take_changes()
    for key, change in changes:
        level: Level = "warning" if " moved " in change else "info"  # limits a node that flaps
        log.event("topology", change, level, cluster=cluster, per=key)
    if more:
        said = f"{more} more nodes found or moved: /v1/brokers lists them"
        log.event("topology", said, cluster=cluster, per="more")
