"""The TLS of a cluster, from its settings. Its files are followed: new connections get what is in them."""

from __future__ import annotations

from functools import partial

from klamm.proxy import config
from klamm.proxy.edge.accepting.followed_tls import FollowedTls
from klamm.proxy.edge.accepting.server_tls import Files, server_context
from klamm.proxy.edge.sockets import tls_context


def of_clients(settings: config.ListenTls | None) -> FollowedTls | None:
    """Raises OSError on files that cannot be used."""
    if settings is None:
        return None
    files = Files(settings.cert, settings.key, settings.ca, settings.min_version)
    return FollowedTls("from the clients", files[:3], partial(server_context, files), settings.cert)


def of_brokers(settings: config.Tls | None) -> FollowedTls | None:
    """Raises OSError on files that cannot be used."""
    if settings is None:
        return None
    files = settings.ca, settings.cert, settings.key
    return FollowedTls("to the brokers", files, partial(tls_context, *files, settings.verify), settings.cert)
