"""Whether a request is one that is answered."""

from __future__ import annotations

from klamm.rules.frame import Frame


def is_answered(request: Frame) -> bool:
    """Whether the request gets an answer: all do but Produce with acks=0. Raises DecodeError."""
    return request.api.name != "Produce" or request.values["acks"] != 0
