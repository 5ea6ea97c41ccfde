"""Tells requests of pages of other sites, and names of other sites that were made to lead here."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from aiohttp import web

from klamm.proxy.control.rule_book import Refused
from klamm.settings.loopback import is_loopback


def check_loopback(request: web.Request) -> None:
    """A name of another site that was made to lead here is no name of this machine. Raises Refused."""
    named = request.headers.get("Host", "")
    if not is_loopback(_parsed(named).hostname or ""):
        raise Refused(403, f"{named!r} is not this machine: ask 127.0.0.1 or localhost")


def is_foreign(request: web.Request) -> bool:
    """Does a page of another site ask? Its origin that cannot be read is none of klamm's."""
    origin, host = request.headers.get("Origin"), request.headers.get("Host", "")
    if origin is not None and _parsed(origin.partition("://")[2]).netloc.lower() != host.lower():
        return True
    return request.headers.get("Sec-Fetch-Site", "none") in ("cross-site", "same-site")


def _parsed(authority: str) -> SplitResult:
    """Nothing, for what is no host and port."""
    try:
        return urlsplit(f"//{authority}")
    except ValueError:
        return urlsplit("")
