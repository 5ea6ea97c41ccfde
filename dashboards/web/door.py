"""Lets requests in: from this machine without more, from elsewhere after the token was shown."""

from __future__ import annotations

import hmac
import secrets

from aiohttp import web
from aiohttp.typedefs import Handler

from klamm.proxy.admin.listening.json_bodies import JSON
from klamm.proxy.admin.listening.sites import check_loopback, is_foreign
from klamm.proxy.control.rule_book import Refused

COOKIE = "klamm_session"
SESSION, SIGN_IN = "/session", "/sign-in"
VISITED = frozenset({"/", SIGN_IN})
OPEN = frozenset({"/healthz", SIGN_IN, SESSION, "/static/style.css"})
READING = frozenset({"GET", "HEAD"})
FORM = "application/x-www-form-urlencoded"
SESSIONS = 100  # the oldest ends
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Door:
    """`token` None: only this machine reaches the page, and nothing needs to be shown."""

    def __init__(self, token: str | None) -> None:
        self.token = token
        self.sessions: dict[str, None] = {}

    @web.middleware
    async def guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Raises Refused for pages of other sites, and for callers that have not signed in."""
        if self.token is None:
            check_loopback(request)
        if is_foreign(request) and not _is_visit(request):
            raise Refused(403, "pages of other sites are not answered")
        self._check_content(request)
        if self.token is not None and request.path not in OPEN and not self._knows(request):
            if request.path == "/":
                return _to(SIGN_IN)
            raise Refused(401, "sign in first: reload the page")
        return await handler(request)

    async def sign_in(self, request: web.Request) -> web.Response:
        """A form with the token; the answer sets the cookie."""
        given = str((await request.post()).get("token", "")).strip()
        if self.token is None or not hmac.compare_digest(given.encode(), self.token.encode()):
            return _to(f"{SIGN_IN}#wrong")
        session = secrets.token_urlsafe(32)
        self.sessions[session] = None
        if len(self.sessions) > SESSIONS:
            del self.sessions[next(iter(self.sessions))]
        response = _to("/")
        response.set_cookie(COOKIE, session, httponly=True, samesite="Strict", secure=request.secure)
        return response

    def _knows(self, request: web.Request) -> bool:
        given = request.cookies.get(COOKIE, "")
        return any(hmac.compare_digest(given.encode(), one.encode()) for one in self.sessions)

    def _check_content(self, request: web.Request) -> None:
        """A form of another site can send neither JSON nor what has no body but by a method of its own."""
        wanted = FORM if request.path == SESSION else JSON
        if request.method not in READING and request.content_type != wanted:
            raise Refused(415, f"what is sent must be {wanted}")


def _is_visit(request: web.Request) -> bool:
    """Somebody has followed a link: the other site sees nothing of the page, and has it in no frame."""
    wanted = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Origin": None}
    is_page = request.method == "GET" and request.path in VISITED
    return is_page and all(request.headers.get(name) == value for name, value in wanted.items())


def _to(path: str) -> web.Response:
    return web.Response(status=303, headers={"Location": path})


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """No script but the page's own runs in it, no other site embeds it."""
    response.headers.update(HEADERS)
