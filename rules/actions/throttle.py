"""throttle and rate: clients have to wait, as with a broker's quotas."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from klamm.rules.actions.answers import is_answered
from klamm.rules.actions.quota import Quotas
from klamm.rules.frame import Frame, Part
from klamm.rules.orders import Edit, MuteChannel, OnAnswer, Order
from klamm.rules.parts import parts
from klamm.rules.quantities import Bytes, Duration
from klamm.rules.rule import Draw

MS, S = 1_000_000, 1_000_000_000
FETCHING = frozenset({"Fetch", "ShareFetch"})
FIELD = "throttle_time_ms"


def announced(answer: Frame, ns: int) -> list[Order]:
    """The answer with this throttle time, where its version has room for one."""
    if FIELD not in answer.values:
        return []
    return [Edit({**answer.values, FIELD: max(answer.values[FIELD], -(-ns // MS))})]


def throttled(frame: Frame, ns: int) -> list[Order]:
    """Orders that make the client wait, and that delay reading its next request on the connection until
    then.
    """
    if frame.side == "response":
        return [MuteChannel(ns), *announced(frame, ns)]
    if not is_answered(frame):
        return [MuteChannel(ns)]
    return [MuteChannel(ns), OnAnswer(lambda answer: throttled(answer, ns), needs_request=False)]


@dataclass(frozen=True, slots=True)
class Throttle:
    """Tell the client to wait, and hold its next requests on the connection for as long, as brokers do
    (KIP-219): clients that do not heed the throttle time are slowed too.
    """

    name: ClassVar[str] = "throttle"
    sides: ClassVar[Sequence[str]] = ("request", "response")

    time: Duration
    """The throttle_time_ms of the answer."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return throttled(frame, self.time)


@dataclass(frozen=True, slots=True)
class Rate:
    """A limit in requests or bytes a second. A client that exceeds it is throttled as by a broker's quota:
    answers tell it how long to wait, and its next request on the connection waits so long.
    """

    name: ClassVar[str] = "rate"
    sides: ClassVar[Sequence[str]] = ("request",)

    requests: float = 0
    """Requests a second; 0: no limit."""
    bytes: Bytes = Bytes(0)
    """Bytes a second, of requests, or of the answers to Fetch and ShareFetch; 0: no limit."""
    per: Literal["client", "connection", "topic", "group", "rule"] = "client"
    """Each of these has the limit for itself, at each broker, as with Kafka's quotas: client ids,
    connections, the topics or groups that a request names. With `rule` all clients and brokers share it."""
    window: Duration = Duration(10 * S)
    """The time over which the rate is measured. After a pause a client may use the limit of a whole window at
    once. 10s is a broker's default (quota.window.num=11, quota.window.size.seconds=1)."""
    quotas: Quotas = field(default_factory=Quotas, init=False, compare=False, repr=False)

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        said: list[Order] = []
        wait = self._wait(frame, "requests", self.requests, 1, frame.arrived_ns)
        if frame.api.name not in FETCHING:
            wait = max(wait, self._wait(frame, "bytes", self.bytes, _size(frame), frame.arrived_ns))
        elif self.bytes:
            said.append(OnAnswer(lambda answer: self._answered(frame, answer)))
        return said + throttled(frame, wait) if wait else said

    def _answered(self, request: Frame, answer: Frame) -> list[Order]:
        wait = self._wait(request, "bytes", self.bytes, len(answer.body), answer.arrived_ns)
        return throttled(answer, wait) if wait else []

    def _wait(self, frame: Frame, what: str, limit: float, taken: float, now: int) -> int:
        """The throttle time (ns) of a frame; several topics or groups share the amount that it takes."""
        if not limit:
            return 0
        who = self._who(frame)
        at = None if self.per == "rule" else (frame.peer.cluster, frame.peer.broker)
        share = taken / len(who) if what == "bytes" else taken
        return max(self.quotas.take((what, at, each), limit, self.window, share, now) for each in who)

    def _who(self, frame: Frame) -> set[Hashable]:
        if self.per == "rule":
            return {None}
        if self.per == "connection":
            return {frame.peer.key}
        if self.per == "client":
            return {frame.client_id}
        named = parts(frame.api.request, frame.version, frame.values, frame.names)
        keys = ("topic", "topic_id") if self.per == "topic" else ("group",)
        found = {_key(part, keys) for part in named if frame.only is None or frame.only(part)}
        return found - {None} or {frame.client_id}


def _key(part: Part, keys: tuple[str, ...]) -> Hashable:
    return next((part[key] for key in keys if part.get(key)), None)


def _size(request: Frame) -> int:
    """The bytes that a broker counts of a request: all but the size field."""
    return max(0, request.header_bytes - 4) + len(request.body)
