"""What a rule sees: one frame, and the exchange it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from klamm.decoders.body import decode_prefix
from klamm.decoders.headers import answered_version
from klamm.decoders.schema import Api, Side

# One of the things that a frame is about, as far as it tells: "topic", "topic_id", "partition", "group".
Part = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the two ends of a connection. `key` names it the same in every run: cluster, broker, and
    which of the connections from one client host it is. `number` is that of `klamm connections` and captures.
    """

    cluster: str
    broker: str  # "2", "controller 1", or "bootstrap"
    client_address: str  # host:port
    key: str
    number: int = 0

    @property
    def client_host(self) -> str:
        """The address without its port, and without the brackets of IPv6."""
        return self.client_address.rpartition(":")[0].strip("[]")


class Frame:
    """`body` is what follows the header. `arrived_ns` is monotonic. `request` is that of a response.

    `only` says which parts (topic, partition, group) the rule that acts has selected; None: all. `names`
    tells the names of topic ids. `held`: what a Fetch request is about, its session included.
    `header_bytes` are those before the body, the size field included.
    """

    __slots__ = (
        "api", "arrived_ns", "body", "client_id", "header_bytes", "held", "names", "only", "peer", "read",
        "request", "side", "version",
    )  # fmt: skip

    def __init__(
        self,
        api: Api,
        version: int,
        side: Side,
        body: bytes,
        client_id: str | None,
        peer: Peer,
        arrived_ns: int,
        request: Frame | None = None,
    ) -> None:
        if side == "response":
            version = answered_version(api.key, version, body)
        self.api, self.version, self.side, self.body = api, version, side, body
        self.client_id, self.peer, self.arrived_ns, self.request = client_id, peer, arrived_ns, request
        self.held: tuple[Part, ...] = ()
        self.only: Callable[[Part], bool] | None = None
        self.names: Callable[[bytes], str | None] = _unnamed
        self.header_bytes = 0
        self.read: dict[str, Any] | None = None

    @property
    def values(self) -> dict[str, Any]:
        """The decoded body, read once: not to be changed in place. Bytes behind it are ignored, as brokers
        and clients do. Raises DecodeError.
        """
        if self.read is None:
            self.read, _ = decode_prefix(self.body, self.api.key, self.version, self.side)
        return self.read

    def become(self, values: dict[str, Any] | None, body: bytes) -> None:
        """What an earlier rule has made of it."""
        self.read, self.body = values, body


def _unnamed(topic_id: bytes) -> None:
    return None
