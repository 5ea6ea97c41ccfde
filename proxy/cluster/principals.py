"""The principals of a cluster's clients, as their connections open and end."""

from __future__ import annotations

from typing import Any

from klamm.proxy.edge.accepting.principal import client_principal
from klamm.proxy.edge.link import Link
from klamm.proxy.session.observing.counters import Stats


def opened(link: Link, cluster: str, stats: Stats) -> bool:
    """Note the principal of a link's client, unless it has one by SASL, and count its connection. False if
    its certificate cannot be read: the link has ended then.
    """
    try:
        if link.principal is None:
            link.principal = client_principal(link.client.transport.get_extra_info("ssl_object"))
    except ValueError as error:
        link.failed(error)
        return False
    if link.principal is not None:
        stats.principal(cluster, link.principal, 1)
    return True


def closed(link: Link, cluster: str, stats: Stats) -> None:
    """Count its connection no more."""
    if link.principal is not None:
        stats.principal(cluster, link.principal, -1)


def name(link: Link, fields: dict[str, Any]) -> None:
    """Add it to the fields of an exchange or a problem, if there is one."""
    if link.principal is not None:
        fields["principal"] = link.principal
