"""Doubts about certificates that can be loaded: those that have expired, or are not valid yet."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from klamm.proxy.config import Cluster, Config, ListenTls, Tls
from klamm.settings.certificates import validity_of
from klamm.settings.mistakes import Path


def doubts(config: Config, now: datetime) -> Iterator[tuple[Path, str]]:
    """Paths of certificates of klamm's own whose time is not now, or soon over, and the reasons."""
    for path, tls in _identities(config):
        if tls is not None and tls.cert is not None:
            valid = validity_of(tls.cert)
            reason = None if valid is None else valid.doubt(now)
            if reason is not None:
                yield (*path, "cert"), reason


def _identities(config: Config) -> Iterator[tuple[Path, Tls | ListenTls | None]]:
    for index, cluster in enumerate(config.clusters):
        yield from _of_cluster(("clusters", index), cluster)
    yield ("admin", "tls"), config.admin.tls


def _of_cluster(path: Path, cluster: Cluster) -> Iterator[tuple[Path, Tls | ListenTls | None]]:
    yield (*path, "tls"), cluster.tls
    yield (*path, "listen_tls"), cluster.listen_tls
