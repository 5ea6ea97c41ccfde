"""Counts and logs the problems of one cluster's connections."""

from __future__ import annotations

import traceback
from typing import Any

from klamm.proxy.cluster import principals
from klamm.proxy.config_types import Address
from klamm.proxy.edge.link import Link
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.session.rewriting.topology import NodeKey, broker_label

APART = {  # kind -> fields: the log limits lines for each of their values; other kinds: for each api
    "broker_unreachable": ("broker",),
    "closed_unanswered": ("broker", "api", "version"),
    "out_of_order": ("broker",),
    "sasl_refused": ("client_id",),
    "unknown_api": ("key",),
    "unknown_version": ("key", "version"),
}
INFO = {"idle"}  # kinds that no one has to look at


class Problems:
    """`cluster` is its name."""

    def __init__(self, cluster: str, stats: Stats, log: EventLog) -> None:
        self.cluster, self.stats, self.log = cluster, stats, log
        self.refused_any = False

    def count(self, target: NodeKey | None, kind: str) -> None:
        self.stats.problems[self.cluster, broker_label(target), "", kind] += 1

    def say(
        self, link: Link, kind: str, api: str, message: object, more: dict[str, Any] | None = None
    ) -> None:
        """Log a problem of a link, which is counted already."""
        fields = {"cluster": self.cluster, "broker": broker_label(link.target), **(more or {})}
        fields["connection"] = str(Address(*link.client_address))
        principals.name(link, fields)
        if api:
            fields["api"] = api
        if kind == "rule":  # a rule asks for these lines: none is left out as a repetition
            self.log.event(kind, message, per=fields.get("rule"), each=True, **fields)
            return
        per = tuple(fields.get(name) for name in ("cluster", "rule", *APART.get(kind, ("api",))))
        self.log.event(kind, message, "info" if kind in INFO else "warning", per=per, **fields)

    def no_room(self, link: Link, why: str) -> None:
        """Count and log a connection too many."""
        self.count(link.target, "too_many_connections")
        self.say(link, "too_many_connections", "", why)

    def refused(self, target: NodeKey | None, client: tuple[str, int], kind: str, message: str) -> None:
        """Count and log a client that never got to a link."""
        self.refused_any = True
        self.count(target, kind)
        where: dict[str, Any] = {"cluster": self.cluster, "broker": broker_label(target)}
        connection, per = str(Address(*client)), (kind, client[0])
        self.log.event(kind, message, "warning", per=per, connection=connection, **where)

    def failed(self, link: Link, error: Exception) -> None:
        """Count and log a defect of klamm on a link."""
        self.count(link.target, "defect")
        self.defect(error, connection=str(Address(*link.client_address)))

    def defect(self, error: BaseException, **fields: Any) -> None:
        """Log a defect of klamm."""
        where = [line.strip() for line in traceback.format_tb(error.__traceback__)[-3:]]
        message = f"klamm failed: {error!r}; please report it"
        self.log.event("defect", message, "error", cluster=self.cluster, where=where, **fields)
