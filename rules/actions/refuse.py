"""block, deny: errors that policies give; count, log: seen, and left alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from klamm.decoders import ERRORS
from klamm.decoders.schema import GROUP, TOPIC, TOPIC_ID, all_fields
from klamm.rules.actions.refusals import Refusals
from klamm.rules.frame import Frame
from klamm.rules.orders import Cut, Log, Order, Silence
from klamm.rules.quantities import ErrorCode
from klamm.rules.rule import Draw

POLICY_VIOLATION = ErrorCode(ERRORS["POLICY_VIOLATION"].code)
# Subject of a request -> its authorization error, in the order in which they are checked.
UNAUTHORIZED: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"transactional_id"}), "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
    (frozenset({GROUP}), "GROUP_AUTHORIZATION_FAILED"),
    (frozenset({TOPIC, TOPIC_ID}), "TOPIC_AUTHORIZATION_FAILED"),
)
BY_TOPIC = {"Produce", "Fetch", "Metadata", "ListOffsets"}  # though they may name something else first
TRANSACTION = 1  # FindCoordinator's key type; else a group's
OPEN = {"ApiVersions", "SaslHandshake", "SaslAuthenticate"}  # sent before the client is authenticated


def unauthorized(frame: Frame) -> ErrorCode:
    """The authorization error of a request's API."""
    if frame.api.name == "FindCoordinator":
        of = "TRANSACTIONAL_ID" if frame.values.get("key_type") == TRANSACTION else "GROUP"
        return ErrorCode(ERRORS[f"{of}_AUTHORIZATION_FAILED"].code)
    fields = [f for _, f in all_fields(frame.api.request, frame.version)]
    about = {f.name for f in fields} | {f.mark for f in fields}
    if frame.api.name in BY_TOPIC:
        return ErrorCode(ERRORS["TOPIC_AUTHORIZATION_FAILED"].code)
    if frame.values.get("transactional_id", "") is None:  # an idempotent producer: it may write, or not
        return ErrorCode(ERRORS["CLUSTER_AUTHORIZATION_FAILED"].code)
    error = next((error for what, error in UNAUTHORIZED if what & about), "CLUSTER_AUTHORIZATION_FAILED")
    return ErrorCode(ERRORS[error].code)


@dataclass(frozen=True, slots=True)
class Block:
    """Refuse: with the API's authorization error. Most clients then give up; one that asks again and again is
    slowed down: from the sixth refusal in a row on, klamm waits before it reads the next request, at first
    10 ms, then twice as long each time, up to 5 s. Metadata still names the brokers, and none of the topics.
    """

    name: ClassVar[str] = "block"
    sides: ClassVar[Sequence[str]] = ("request",)

    how: Literal["error", "reset", "silent"] = "error"
    """An error, a reset of the connection, or silence."""
    refusals: Refusals = field(default_factory=Refusals, init=False, compare=False, repr=False)

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        if self.how == "reset":
            return [Cut("rst")]
        if self.how == "silent":
            return [Silence()]
        if frame.api.name in OPEN:
            return []
        return self.refusals.refuse(frame, unauthorized(frame))


@dataclass(frozen=True, slots=True)
class Deny:
    """Refuse with an error of your choice. Clients that ask again and again are slowed down as by `block`."""

    name: ClassVar[str] = "deny"
    sides: ClassVar[Sequence[str]] = ("request",)

    error: ErrorCode = POLICY_VIOLATION
    """A name or code of Kafka's errors."""
    refusals: Refusals = field(default_factory=Refusals, init=False, compare=False, repr=False)

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return self.refusals.refuse(frame, self.error)


@dataclass(frozen=True, slots=True)
class Count:
    """Count the frame, under the rule's name, and do nothing else."""

    name: ClassVar[str] = "count"
    sides: ClassVar[Sequence[str]] = ("request", "response")
    observes: ClassVar[bool] = True

    label: str = ""
    """For people; the counters carry the rule's name."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return []


@dataclass(frozen=True, slots=True)
class Say:
    """Write a line to the log."""

    name: ClassVar[str] = "log"
    sides: ClassVar[Sequence[str]] = ("request", "response")
    observes: ClassVar[bool] = True

    message: str = "seen"
    """The message."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [Log(self.message, {"version": frame.version, "client_id": frame.client_id})]
