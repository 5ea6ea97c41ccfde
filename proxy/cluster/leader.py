"""The process that leads this one, where klamm has workers."""

from __future__ import annotations

from typing import Protocol

from klamm.proxy import config
from klamm.proxy.session.rewriting.topology import Topology


class Cluster(Protocol):
    """The settings of a cluster, and its nodes."""

    settings: config.Cluster
    topology: Topology


class Leader(Protocol):
    """The process that accepts connections for this one, and opens the ports (proxy/workers)."""

    def opened(self, cluster: str, number: int, host: str, principal: str | None) -> None:
        """A connection is open; if there is no room for it, `Proxied.no_room` is called soon."""

    def closed(self, number: int) -> None: ...

    async def bind(self, cluster: Cluster) -> None:
        """Open a listening port for every node that has none."""
