"""Doubts about certificates that can be loaded: those that have expired, or are not valid yet."""

from __future__ import annotations

import _ssl
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime

from klamm.proxy.config import Cluster, Config, ListenTls, Tls
from klamm.settings.typed_yaml import Path

SOON_DAYS = 14


def doubts(config: Config, now: datetime) -> Iterator[tuple[Path, str]]:
    """Paths of certificates of klamm's own whose time is not now, or soon over, and the reasons."""
    for path, tls in _identities(config):
        if tls is not None and tls.cert is not None:
            reason = _doubt(tls.cert, now)
            if reason is not None:
                yield (*path, "cert"), reason


def _identities(config: Config) -> Iterator[tuple[Path, Tls | ListenTls | None]]:
    for index, cluster in enumerate(config.clusters):
        yield from _of_cluster(("clusters", index), cluster)
    yield ("admin", "tls"), config.admin.tls


def _of_cluster(path: Path, cluster: Cluster) -> Iterator[tuple[Path, Tls | ListenTls | None]]:
    yield (*path, "tls"), cluster.tls
    yield (*path, "listen_tls"), cluster.listen_tls


def _doubt(cert: str, now: datetime) -> str | None:
    read = vars(_ssl)["_test_decode_cert"](cert)  # of the file's first certificate, which is klamm's
    begin, end = (_time(read[key]) for key in ("notBefore", "notAfter"))
    if now < begin:
        return f"the certificate in {cert} is valid from {begin:%Y-%m-%d %H:%M} UTC on, which is not yet"
    if now > end:
        return f"the certificate in {cert} has expired at {end:%Y-%m-%d %H:%M} UTC: put a new one there"
    if (end - now).days < SOON_DAYS:
        return f"the certificate in {cert} expires at {end:%Y-%m-%d %H:%M} UTC"
    return None


def _time(text: str) -> datetime:
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC)
