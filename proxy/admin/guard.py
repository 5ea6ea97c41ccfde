"""Guards the admin server: asks for the caller's role, refuses pages of other sites, and changes by those who
may only read.
"""

from __future__ import annotations

from aiohttp import web

from klamm.proxy.admin.access import Caller
from klamm.proxy.admin.listening.json_bodies import JSON
from klamm.proxy.admin.listening.sites import check_loopback, is_foreign
from klamm.proxy.admin.routes import Control
from klamm.proxy.control.rule_book import Refused

OPEN = frozenset({"/", "/metrics", "/healthz", "/readyz"})  # for everybody who can reach the port
READING = frozenset({"GET", "HEAD"})
LONGEST_NAME = 100  # characters of the caller's name, in the log
CALLER = web.RequestKey("caller", Caller)
MAY_ONLY_READ = (
    "the {name} may only read: the role full is for the token of admin.token_file, and for principals that "
    "admin.principals gives it"
)


def guard(control: Control | None, request: web.Request, local: bool) -> None:
    """Raises Refused if the request must not be answered. `local`: only this machine reaches the listener."""
    if request.path in OPEN:
        check_name(request, local)
        return
    caller = Caller("full")
    if control is not None and control.access.needs_credentials:
        tls = None if request.transport is None else request.transport.get_extra_info("ssl_object")
        caller = control.access.caller(request.headers.get("Authorization"), tls)
    else:
        check_loopback(request)
    request[CALLER] = caller
    if is_foreign(request):
        raise Refused(403, "pages of other sites are not answered")
    if request.method in READING:
        return
    if control is not None and control.read_only:
        raise Refused(403, "klamm runs with --read-only: nothing can be changed")
    check_full(request)
    if "Content-Type" in request.headers and request.content_type != JSON:
        raise Refused(415, "what is sent must be JSON: Content-Type: application/json")


def check_full(request: web.Request) -> None:
    """Raises Refused for a caller whose role is another."""
    caller = request[CALLER]
    if caller.role != "full":
        raise Refused(403, MAY_ONLY_READ.format(name=caller.name))


def check_name(request: web.Request, local: bool) -> None:
    """For what is open to whoever reaches the listener. Where only this machine does, another name was made
    to lead here; elsewhere monitoring may use any name. Some probes name none, browsers do. Raises Refused.
    """
    if local and request.headers.get("Host"):
        check_loopback(request)


def named(request: web.Request) -> str:
    """The name that the caller gives for itself. It proves nothing."""
    name = request.headers.get("X-Klamm-User") or request.headers.get("User-Agent") or "unknown"
    return name.encode("ascii", "backslashreplace").decode()[:LONGEST_NAME]


def who(request: web.Request) -> str:
    """The caller, for the log: its own name for itself, and in brackets what is sure."""
    shown = request[CALLER].name if CALLER in request else None
    sure = request.remote if shown is None else f"{shown}, {request.remote}"
    return f"{named(request)} ({sure})"
