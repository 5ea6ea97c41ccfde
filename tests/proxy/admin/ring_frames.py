"""Exchanges of any size."""

from klamm.decoders import API
from klamm.proxy.control.exchange import Seen, seen
from klamm.rules.frame import Frame, Peer

PEER = Peer("kafka", "1", "10.0.0.7:5000", "")


def framed(size: int) -> Seen:
    """With a body of so many bytes, on either side half of them."""
    request = Frame(API["Heartbeat"], 3, "request", bytes(size // 2), "app", PEER, 0)
    return seen(request, Frame(API["Heartbeat"], 3, "response", bytes(size // 2), "app", PEER, 1, request))
