"""Tells in a few lines what klamm would run with its settings."""

from __future__ import annotations

from collections.abc import Iterator

from klamm.proxy.config import Cluster, Config, ListenTls
from klamm.proxy.config_types import Address
from klamm.rules.file.rule_file import RuleFile


def would_run(config: Config, rules: RuleFile | None) -> Iterator[str]:
    """Lines for people, of settings without mistakes."""
    for cluster in config.clusters:
        servers = ",".join(map(str, cluster.bootstrap))
        yield f"cluster {cluster.name}: {servers}{_upstream(cluster)}"
        yield f"  clients come to {_listening(cluster)}{_clients(cluster)}"
    admin, metrics = config.admin, config.metrics.listen
    yield f"admin API, metrics and health: {_admin(admin.listen)}{_callers(config)}"
    if metrics is not None:
        yield f"metrics and health alone: {metrics}"
    if rules is not None:
        yield f"rules: {len(rules.rules)} from {rules.source}"
    if config.capture is not None:
        yield f"captured into {config.capture.folder}, records: {config.capture.records}"


def _listening(cluster: Cluster) -> str:
    listen, told = cluster.listen, f", and are told {cluster.advertise}" if cluster.advertise else ""
    if not listen.first:
        return f"free ports of {listen.host}{told}"
    first = Address(listen.host, listen.first)
    if cluster.names is not None:
        return f"{first}, by the names {cluster.names.bootstrap} and {cluster.names.nodes}"
    if cluster.transparent is not None:
        return f"{first}, by a redirect of the kernel"
    return f"{first}-{listen.ports[-1]}{told}"


def _upstream(cluster: Cluster) -> str:
    sasl = f"SASL {cluster.sasl.mechanism}" if cluster.sasl is not None else ""
    return _with("TLS" if cluster.tls is not None else "", sasl)


def _clients(cluster: Cluster) -> str:
    sasl = f"SASL {', '.join(cluster.listen_sasl.mechanisms)}" if cluster.listen_sasl is not None else ""
    return _with(_tls(cluster.listen_tls), sasl)


def _callers(config: Config) -> str:
    admin = config.admin
    needs = "callers need credentials" if admin.wants_credentials else ""
    return "" if admin.listen is None else _with(_tls(admin.tls), needs)


def _tls(tls: ListenTls | None) -> str:
    if tls is None:
        return ""
    return "TLS" if tls.ca is None else "TLS and client certificates"


def _with(*parts: str) -> str:
    said = ", ".join(part for part in parts if part)
    return f", with {said}" if said else ""


def _admin(listen: Address | None) -> str:
    if listen is None:
        return "none"
    return str(listen) if listen.port else f"a free port of {listen.host}"
