"""Mistakes in `clusters[].names`: what it needs, what contradicts it, and names of two clusters that meet."""

from __future__ import annotations

from collections.abc import Iterator

from klamm.proxy.config import Cluster, Names
from klamm.proxy.config_types import Address, Listen
from klamm.proxy.session.rewriting.node_names import NodeNames, common_name
from klamm.settings.mistakes import Path

CONTRADICTIONS = {
    "advertise": "means nothing with names, which clients are told: take it out",
    "ports": "means nothing with names: all nodes share one port; take it out",
    "transparent": "clients keep the brokers' addresses, so that none asks for a name: take it out, or names",
}


def cluster_faults(cluster: Cluster) -> Iterator[tuple[Path, str]]:
    """Of one cluster that has names."""
    for key, reason in CONTRADICTIONS.items():
        if getattr(cluster, key):
            yield (key,), reason
    if cluster.listen_tls is None:
        yield ("names",), "clients tell names in TLS only: add listen_tls, with a certificate for these names"
    listen = cluster.listen
    if isinstance(listen, Listen) and listen.last is not None:
        one = Address(listen.host, listen.first)
        yield ("listen",), f"with names all nodes share one port: write {one}"
    names = _names_of(cluster)
    if names is not None and names.node(names.bootstrap) is not None:
        yield ("names", "bootstrap"), f"{names.bootstrap} is the name of a node too ({names.nodes})"


def shared_faults(clusters: list[tuple[int, Cluster]]) -> Iterator[tuple[Path, str]]:
    """Of clusters that share a port."""
    for number, (index, late) in enumerate(clusters):
        for _, early in clusters[:number]:
            if not shares_port(early, late):
                continue
            path: Path = ("clusters", index)
            where = (
                f"cluster {early.name}, which shares {Address(late.listen.host, late.listen.first)} with it"
            )
            if early.proxy_protocol != late.proxy_protocol:
                reason = (
                    f"is not that of {where}: the header comes before the name, so let both have the same"
                )
                yield (*path, "proxy_protocol"), reason
            one, other = _names_of(early), _names_of(late)
            common = None if one is None or other is None else common_name(one, other)
            if common is not None:
                yield (*path, "names"), f"{common} is a name of {where}"


def shares_port(one: Cluster, other: Cluster) -> bool:
    """Do they have names, and the same port?"""
    named = isinstance(one.names, Names) and isinstance(other.names, Names)
    return named and isinstance(one.listen, Listen) and one.listen == other.listen


def _names_of(cluster: Cluster) -> NodeNames | None:
    """None where they could not be read."""
    names = cluster.names
    if not isinstance(names, Names) or not isinstance(names.bootstrap, str):
        return None
    return NodeNames(names.bootstrap, names.nodes, 0) if isinstance(names.nodes, str) else None
