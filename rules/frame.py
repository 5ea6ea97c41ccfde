"""One frame and its exchange, as rules see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from klamm.decoders.body import decode_prefix
from klamm.decoders.headers import answered_version
from klamm.decoders.schema import Api, Side
from klamm.decoders.text import TopicName, nameless


class Treatment:
    """The record of rules on a frame: the names of those that acted, and the time for which they held it.
    `changed`: it went on with another body. `withheld`: nothing of it went on.
    """

    __slots__ = ("changed", "delay_ns", "rules", "withheld")

    def __init__(self) -> None:
        self.rules: list[str] = []
        self.delay_ns = 0
        self.changed = self.withheld = False


# One subject of a frame, by its known keys: "topic", "topic_id", "partition", "group".
Part = Mapping[str, Any]


@dataclass(slots=True, eq=False)
class Peer:
    """The two ends of a connection. `key` is the same in every run: cluster, broker, and the number of the
    connection among those from one client host. `number` is that of `klamm connections` and captures.
    `instance_id` is the client's (KIP-1313), once it has sent one; `principal` that of its certificate.
    """

    cluster: str
    broker: str  # "2", "controller 1", or "bootstrap"
    client_address: str  # host:port
    key: str
    number: int = 0
    instance_id: str | None = None
    principal: str | None = None

    @property
    def client_host(self) -> str:
        """The address without its port, and without the brackets of IPv6."""
        return self.client_address.rpartition(":")[0].strip("[]")


class Frame:
    """`body` is what follows the header. `arrived_ns` is monotonic. `request` is that of a response.

    `only` says which parts (topic, partition, group) the rule that acts has selected; None: all. `names`
    tells the names of topic ids. `session_parts`: what a Fetch request is about, its session included.
    `header_bytes` are those before the body, the size field included. `work`: steps of expressions. `came` is
    the body before klamm replaced addresses in it, None where it did not. `sent` is the frame that goes on
    in its place: a copy leads to the one that rules may still change, and shares its `treatment`.
    """

    __slots__ = (
        "api", "arrived_ns", "body", "came", "client_id", "header_bytes", "names", "only", "peer", "read",
        "request", "sent", "session_parts", "side", "treatment", "version", "work",
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
        self.session_parts: tuple[Part, ...] = ()
        self.only: Callable[[Part], bool] | None = None
        self.names: TopicName = nameless
        self.header_bytes = 0
        self.came: bytes | None = None
        self.sent: Frame | None = None
        self.read: dict[str, Any] | None = None
        self.work = 0
        self.treatment = Treatment()

    @property
    def values(self) -> dict[str, Any]:
        """The decoded body, read once: not to be changed in place. Bytes behind it are ignored, as brokers
        and clients do. Raises DecodeError.
        """
        if self.read is None:
            self.read, _ = decode_prefix(self.body, self.api.key, self.version, self.side)
        return self.read

    def copy(self, body: bytes, request: Frame | None = None) -> Frame:
        """A copy with this body, which changes of rules to this frame do not reach; it leads to them."""
        of = self.api, self.version, self.side, body, self.client_id, self.peer, self.arrived_ns
        copy = Frame(*of, request)
        copy.names, copy.header_bytes, copy.treatment = self.names, self.header_bytes, self.treatment
        copy.came, copy.sent, copy.read = self.came, self, self.read if body is self.body else None
        return copy

    @property
    def told(self) -> Frame:
        """The frame as klamm sent it on: `sent` where that has another body, else this one."""
        return self if self.sent is None or self.sent.body == self.body else self.sent

    def become(self, values: dict[str, Any] | None, body: bytes) -> None:
        """Takes the result of an earlier rule."""
        self.read, self.body = values, body
