"""The header of a request on the hot path: where its body begins, and who asks."""

from __future__ import annotations

from struct import Struct

from klamm.decoders.compile import skip_tags
from klamm.rules.plan import Plan

CLIENT_ID = Struct(">h").unpack_from


def header(plan: Plan, data: bytes, pos: int, end: int) -> tuple[str | None, int]:
    """(client id, position of the body). Raises one of UNREADABLE when it does not fit before `end`."""
    body, client_id = pos + 12, None
    if plan.has_client_id:
        (length,) = CLIENT_ID(data, body)
        body += 2
        if length >= 0:
            client_id = data[body : body + length].decode("utf-8", "replace")
            body += length
    if plan.request_tags:
        body = skip_tags(data, body + 1, end, data[body])
    if body > end:
        raise IndexError
    return client_id, body
