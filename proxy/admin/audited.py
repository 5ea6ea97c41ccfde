"""Tells the audit log of changes over the admin API, of captures that are read, and of refused callers."""

from __future__ import annotations

from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from klamm.proxy.admin.guard import CALLER, OPEN, READING, named
from klamm.proxy.log.audit import SUCCESS, Audit

REFUSED = (401, 403)
LONGEST = 500  # characters of a path
SENT = web.RequestKey("sent", dict)  # what the log tells of the body of a change, or of a route for `full`


def auditing(audit: Audit) -> Middleware:
    """A middleware, which has to be around the one that makes responses of refusals."""

    @web.middleware
    async def audited(request: web.Request, handler: Handler) -> web.StreamResponse:
        changes = request.method not in READING
        try:
            response = await handler(request)
        except BaseException as error:
            if changes or SENT in request:
                _tell(audit, request, type(error).__name__)
            raise
        status = response.status
        if changes or SENT in request or (status in REFUSED and request.path not in OPEN):
            _tell(audit, request, SUCCESS if status < 400 else "refused", status)
        return response

    return audited


def _tell(audit: Audit, request: web.Request, outcome: str, status: int | None = None) -> None:
    caller = request.get(CALLER)
    sent: dict[str, Any] = {"sent": request[SENT]} if SENT in request and outcome == SUCCESS else {}
    audit.event(
        "admin_request",
        outcome,
        address=request.remote,
        principal=None if caller is None else caller.name,
        method=request.method,
        path=request.path[:LONGEST],
        status=status,
        role=None if caller is None else caller.role,
        named=named(request),
        **sent,
    )
