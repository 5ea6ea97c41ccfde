"""Logs the nodes of a cluster that came, went or moved, and a cluster that is another."""

from __future__ import annotations

from klamm.proxy.log.events import Events
from klamm.proxy.session.rewriting.topology import Topology

MOST_LINES = 200  # of one cluster in a minute: all nodes together


def say_changes(topology: Topology, cluster: str, log: Events) -> None:
    """Log the changes since the last call: for each node that moved a line in a minute, and of all others
    MOST_LINES.
    """
    changes, more = topology.take_changes()
    for key, change in changes:
        if " moved " in change:
            log.event("topology", change, "warning", cluster=cluster, per=key)
        else:
            log.event("topology", change, cluster=cluster, most=MOST_LINES)
    if more:
        said = f"{more} more nodes found or moved: /v1/brokers lists them"
        log.event("topology", said, cluster=cluster, most=MOST_LINES)


def say_other_cluster(before: str | None, now: str | None, cluster: str, log: Events) -> None:
    """Log that the bootstrap servers lead to another cluster, if they do. None: an id that is not known."""
    if None not in (before, now) and before != now:
        message = f"the bootstrap servers lead to cluster {now}; before it was {before}"
        log.event("cluster_changed", message, "error", cluster=cluster)
