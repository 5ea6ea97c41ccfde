"""Numbers the connections of each client host: chances follow from the number, in every run alike."""

from __future__ import annotations

from collections import Counter

from klamm.rules.frame import Peer

MOST = 10_000  # client hosts that are remembered; beyond it numbers begin anew


class Peers:
    """One for the engine. `process` tells the connections of several processes apart."""

    def __init__(self, process: str = "") -> None:
        self.process = process
        self.connections: Counter[tuple[str, str, str]] = Counter()  # (cluster, broker, host)

    def peer(
        self, cluster: str, broker: str, client_address: str, number: int = 0, principal: str | None = None
    ) -> Peer:
        """A new connection."""
        of = cluster, broker, client_address.rpartition(":")[0]
        if len(self.connections) >= MOST and of not in self.connections:
            self.connections.clear()
        self.connections[of] += 1
        key = f"{'/'.join(of)}/{self.process}{self.connections[of]}"
        return Peer(cluster, broker, client_address, key, number, principal=principal)
