"""The admin listener: its TLS, and explanations for callers whose connections fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from klamm.client.types import Problem
from klamm.proxy.admin.listening.json_bodies import encoded
from klamm.proxy.config import AdminTls
from klamm.proxy.config_types import Address
from klamm.proxy.edge.accepting.entrance import Entrance, NotTls
from klamm.proxy.edge.accepting.followed_tls import FollowedTls
from klamm.proxy.edge.accepting.listener import Listener, bound
from klamm.proxy.edge.accepting.server_tls import Advice, Files, server_context
from klamm.proxy.log.events import Events

BACKLOG = 128
METHODS = frozenset((b"GET ", b"HEAD", b"POST", b"PUT ", b"PATC", b"DELE", b"OPTI"))  # in four bytes
HTTP_TO_HTTPS = "this port speaks TLS: write https:// before its address"
NO_HTTP = "a caller of the admin API speaks neither TLS nor HTTP"
CALLERS = Advice(
    distrusts="the caller does not trust klamm's certificate (admin.tls.cert): its authority is for "
    "--admin-ca of klamm's commands, --cacert of curl, ca_file of Prometheus; and the host that the caller "
    "asks has to be among its names",
    expired="klamm's certificate (admin.tls.cert) has expired, says the caller",
    untrusted="the caller's certificate is not of an authority in admin.tls.ca",
)


def tls_of(settings: AdminTls | None) -> FollowedTls | None:
    """Raises OSError on files that cannot be used."""
    if settings is None:
        return None
    files = Files(settings.cert, settings.key, settings.ca, settings.min_version, optional=True)
    made = partial(server_context, files)
    return FollowedTls("from callers of the admin API", files[:3], made, settings.cert)


async def listen_for_callers(
    at: Address, tls: FollowedTls | None, accept: Callable[[], asyncio.Protocol], log: Events | None
) -> Listener:
    """`accept` gives the protocol of a caller whose connection is made; `tls` None: in plain text.
    Raises OSError.
    """
    sockets = await bound(at.host, at.port, BACKLOG)
    refused = partial(_refused, log)
    entrance = Entrance(make=lambda _: accept(), refused=refused, tls=tls, advice=CALLERS, plain=_plain)
    return Listener(sockets, entrance)


def _refused(log: Events | None, caller: tuple[str, int], kind: str, why: str) -> None:
    if log is not None:
        address = str(Address(*caller)) if caller[0] else ""
        name = {"client_tls_failed": "admin_tls_failed", "plain_from_client": "admin_without_tls"}.get(
            kind, kind
        )
        log.event(name, why, "warning", per=(name, caller[0]), connection=address)


def _plain(first: bytes) -> NotTls:
    """For callers whose first bytes are no TLS: those of HTTP get an answer."""
    if first in METHODS:
        return f"a caller of the admin API speaks plain HTTP: {HTTP_TO_HTTPS}", _ANSWER
    return (NO_HTTP if first else ""), b""


_BODY = encoded(Problem(HTTP_TO_HTTPS, []))
_ANSWER = (
    "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
    f"Connection: close\r\nContent-Length: {len(_BODY)}\r\n\r\n"
).encode() + _BODY
