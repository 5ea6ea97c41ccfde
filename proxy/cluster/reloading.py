"""A cluster takes other settings while it runs: new connections follow them, open ones stay as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from klamm.proxy import config
from klamm.proxy.cluster.client_ports.named_ports import NamedPorts
from klamm.proxy.cluster.client_ports.tls_files import of_brokers, of_clients
from klamm.proxy.cluster.client_sasl import ClientSasl, sasl_of
from klamm.proxy.cluster.cluster import Proxied
from klamm.proxy.cluster.conversation import Way
from klamm.proxy.cluster.own_sasl.credentials import credentials_of, say_open
from klamm.proxy.edge.accepting.entrance import Entrance
from klamm.proxy.edge.accepting.followed_tls import FollowedTls
from klamm.proxy.edge.accepting.listener import Listener


class Prepared(NamedTuple):
    """Settings whose files have been read."""

    cluster: Proxied
    settings: config.Cluster
    upstream_tls: FollowedTls | None
    tls: FollowedTls | None
    sasl: ClientSasl | None


def prepare(cluster: Proxied, settings: config.Cluster) -> Prepared:
    """Read the files that the cluster does not have yet. Raises OSError."""
    before = cluster.settings
    upstream = cluster.upstream_tls if settings.tls == before.tls else of_brokers(settings.tls)
    tls = cluster.tls if settings.listen_tls == before.listen_tls else of_clients(settings.listen_tls)
    same = settings.listen_sasl == before.listen_sasl
    return Prepared(cluster, settings, upstream, tls, cluster.sasl if same else sasl_of(settings.listen_sasl))


def take(prepared: Prepared) -> None:
    """Use them from now on."""
    cluster, settings, upstream, tls, sasl = prepared
    before, cluster.settings = cluster.settings, settings
    cluster.ports.settings = cluster.leading.settings = settings
    cluster.upstream_tls, cluster.tls, cluster.ports.tls, cluster.sasl = upstream, tls, tls, sasl
    dialler, kept = cluster.dialler, cluster.dialler.way.credentials
    dialler.way = Way(
        settings.connect_timeout_s,
        None if upstream is None else upstream.context,
        None if settings.tls is None else settings.tls.server_name,
        kept if settings.sasl == before.sasl else credentials_of(settings, cluster.log),
    )
    dialler.reached_at = settings.map
    if upstream is not None:
        upstream.taken = dialler.take_tls
    if tls is not None:
        for port in cluster.ports.by_port.values():
            if isinstance(port.server, Listener) and isinstance(port.server.entrance, Entrance):
                port.server.entrance = replace(port.server.entrance, tls=tls)
    if isinstance(cluster.ports, NamedPorts) and settings.names != before.names:
        cluster.ports.take_names()
    if cluster.asking.answered not in settings.bootstrap and settings.bootstrap != before.bootstrap:
        cluster.asking.answered = None
    if (settings.sasl, settings.listen_sasl) != (before.sasl, before.listen_sasl):
        say_open(settings, cluster.log)
    cluster.context.allow_unknown_apis = settings.allow_unknown_apis
    cluster.context.changed()


def limit(cluster: Proxied, limits: config.Limits) -> None:
    """Use these limits for connections that come from now on."""
    context = cluster.context
    context.frame_limit, context.held_limit = limits.frame_bytes, limits.held_frame_bytes
    context.unruled = limits.unruled
    cluster.leaving.limits = limits
    cluster.ports.keep_pace()


def release(cluster: Proxied) -> None:
    """It is over, or was never used: rules need not tell it of changes any more."""
    if cluster.context.engine is not None:
        cluster.context.engine.on_change.remove(cluster.context.changed)
