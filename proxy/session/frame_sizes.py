"""Sizes that a client announces, and that no request has."""

from __future__ import annotations

from klamm.decoders.framing import tls_or_size
from klamm.decoders.sasl_tokens import HEADERS
from klamm.proxy.session.connection import Connection
from klamm.proxy.session.memory import int32
from klamm.proxy.session.steps import CLOSED, COUNT, PASSED, Step

LEAST = HEADERS["request"]


def judge_size(connection: Connection, length: int, limit: int) -> Step:
    """COUNT, or how the frame goes on: brokers up to 0.10 skip an empty one and go on, so short ones pass."""
    if 0 <= length < LEAST:
        message = f"the client sends a frame of {length} bytes, which is no request; passed on as it is"
        connection.problem("bad_size", "", message)
        return PASSED
    wrong = tls_or_size(length, "client", limit)
    if wrong is None:
        return COUNT
    connection.close("request", wrong[0], "", wrong[1])
    return CLOSED


def skip_short(connection: Connection, data: bytes, pos: int, limit: int) -> int:
    """The position behind the frames from `pos` on that are too short for a header, tokens of SASL where they
    are due. The last may not be whole yet. Closes for a size that cannot be.
    """
    if connection.tokens is not None:
        return connection.tokens.skip_short(data, pos, "request")
    while len(data) - pos >= 4 and judge_size(connection, int32(data, pos), limit) == PASSED:
        pos += 4 + int32(data, pos)
    return pos
