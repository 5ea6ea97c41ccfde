"""How many clients may be connected at one time, in all, from one address, and with one principal."""

from __future__ import annotations

from collections import Counter

from klamm.proxy.log.event_log import EventLog

MORE_ROOM = "each takes two open files: raise limits.connections, or the limit of the system (ulimit -n)"
LOW_LIMIT = "each takes two open files: raise the limit of the system (ulimit -n)"
FEW = 100  # connections: a client has one to each broker, and often one more


class Room:
    """One for the process. `most` of all, `each` from one address, `each_principal` with one certificate's
    principal; 0: as many as come.
    """

    def __init__(self, most: int, each: int, each_principal: int = 0) -> None:
        self.most, self.each, self.each_principal = most, each, each_principal
        self.total = 0
        self.by_address: Counter[str] = Counter()
        self.by_principal: Counter[str] = Counter()

    def enter(self, host: str, principal: str | None = None) -> str | None:
        """Count a connection. Gives the reason if there is no room for it; `leave` is due all the same."""
        self.total += 1
        self.by_address[host] += 1
        if principal is not None:
            self.by_principal[principal] += 1
        if self.most and self.total > self.most:
            return f"no room for more than {self.most} at once; {MORE_ROOM}"
        if self.each and self.by_address[host] > self.each:
            return f"no room for more than {self.each} at once from {host} (limits.connections_per_address)"
        if self.each_principal and principal and self.by_principal[principal] > self.each_principal:
            most = f"no room for more than {self.each_principal} at once"
            return f"{most} with the principal {principal} (limits.connections_per_principal)"
        return None

    def bound(self, possible: int, cluster: str, log: EventLog) -> None:
        """Open files allow no more connections than `possible`: warn if they are few."""
        if possible < FEW and possible <= self.most:
            message = f"there is room for {possible} connections at once; {LOW_LIMIT}"
            log.event("few_connections", message, "warning", cluster=cluster)
        self.most = min(self.most, possible)

    def leave(self, host: str, principal: str | None = None) -> None:
        """Count it no more."""
        self.total -= 1
        _count_down(self.by_address, host)
        if principal is not None:
            _count_down(self.by_principal, principal)


def _count_down(counts: Counter[str], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
