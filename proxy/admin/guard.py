"""Who may ask the admin server for what: tokens, pages of other sites, a proxy that may not be changed."""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from aiohttp import web

from klamm.proxy.admin.json_bodies import JSON
from klamm.proxy.admin.loopback import is_loopback
from klamm.proxy.admin.routes import Control
from klamm.proxy.control.rule_book import Refused

OPEN = frozenset({"/", "/metrics", "/healthz", "/readyz"})  # for whoever can reach the port
READING = frozenset({"GET", "HEAD"})
LONGEST_NAME = 100  # characters of who is asking, in the log


def guard(control: Control | None, request: web.Request) -> None:
    """Raises Refused for what must not be answered."""
    if request.path in OPEN:
        return
    token = control.token if control is not None else None
    if token is not None:
        _check_token(request, token)
    elif not is_loopback(_host(request)):
        # a name of another site that was made to lead here is no name of this machine
        raise Refused(403, f"{request.host!r} is not this machine: ask 127.0.0.1 or localhost")
    if _foreign(request):
        raise Refused(403, "pages of other sites are not answered")
    if request.method in READING:
        return
    if control is not None and control.read_only:
        raise Refused(403, "klamm runs with --read-only: nothing can be changed")
    if "Content-Type" in request.headers and request.content_type != JSON:
        raise Refused(415, "what is sent must be JSON: Content-Type: application/json")


def who(request: web.Request) -> str:
    """The caller, as far as it says: for the log, and no proof."""
    named = request.headers.get("X-Klamm-User") or request.headers.get("User-Agent") or "unknown"
    text = named.encode("ascii", "backslashreplace").decode()[:LONGEST_NAME]
    return f"{text} ({request.remote})"


def _check_token(request: web.Request, token: str) -> None:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    sent = given.strip().encode("utf-8", "surrogateescape")
    if scheme.lower() != "bearer" or not hmac.compare_digest(sent, token.encode()):
        how = "send Authorization: Bearer TOKEN; klamm's commands take --token-file FILE"
        raise Refused(401, f"the token is missing or wrong: {how}")


def _host(request: web.Request) -> str:
    try:
        return urlsplit(f"//{request.host}").hostname or ""
    except ValueError:
        return ""


def _foreign(request: web.Request) -> bool:
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc.lower() != request.host.lower():
        return True
    return request.headers.get("Sec-Fetch-Site", "none") in ("cross-site", "same-site")
