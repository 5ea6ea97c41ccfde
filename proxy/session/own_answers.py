"""Answers ApiVersions requests of unknown versions, in place of the broker."""

from __future__ import annotations

from klamm.decoders.framing import SIZE
from klamm.proxy.session.connection import Connection
from klamm.proxy.session.effects import Effect
from klamm.proxy.session.observing.summaries import EMPTY
from klamm.proxy.session.pending import PendingRequests
from klamm.proxy.session.rewriting.api_versions import unsupported
from klamm.rules.plan import Plan

ANSWERED_LIMIT = 64 * 1024  # largest request that klamm answers because of its version


def refusal(connection: Connection, plan: Plan, correlation: int, size: int) -> list[Effect]:
    """The effects of the answer UNSUPPORTED_VERSION, which names the versions that klamm knows. Closes the
    connection where the request of `size` bytes is too large for that.
    """
    if size > ANSWERED_LIMIT:
        request = f"a {plan.name} v{plan.version} request of {size} bytes"
        reason = f"{request}: klamm answers up to {ANSWERED_LIMIT}"
        connection.close("request", "bad_size", plan.name, reason, plan.numbers())
        return []
    body = unsupported()
    answer = SIZE.pack(4 + len(body)) + SIZE.pack(correlation) + body
    return connection.in_turn(PendingRequests(None, EMPTY, 0, correlation, 0, (answer,)))
