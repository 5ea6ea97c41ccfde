"""Every payload by name, and where each kind is found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Literal

from klamm.decoders.failures import UnknownApi
from klamm.decoders.payloads import (
    connect,
    consumer_offsets,
    consumer_protocol,
    control_records,
    new_groups,
    principal,
    share_group_state,
    streams,
    transaction_state,
)
from klamm.decoders.payloads.declaration import Payload, Record

Part = Literal["metadata", "assignment"]  # a member's as it joins; the leader's for it

_FAMILIES = (
    consumer_protocol, connect, streams, consumer_offsets, new_groups, transaction_state, share_group_state,
    control_records, principal,
)  # fmt: skip


def _records(*families: object) -> dict[int, Record]:
    found = (each for family in families for each in vars(family).values() if isinstance(each, Record))
    return {each.type: each for each in found}


# The records of Kafka's own topics, by the type that leads their keys.
COORDINATOR_TOPICS: dict[str, dict[int, Record]] = {
    "__consumer_offsets": _records(consumer_offsets, new_groups),
    "__transaction_state": _records(transaction_state),
    "__share_group_state": _records(share_group_state),
}

# By protocol type: in JoinGroup, SyncGroup, DescribeGroups and the records of classic groups.
GROUP_PAYLOADS: dict[tuple[str, Part], Payload] = {
    ("consumer", "metadata"): consumer_protocol.SUBSCRIPTION,
    ("consumer", "assignment"): consumer_protocol.ASSIGNMENT,
    ("connect", "metadata"): connect.SUBSCRIPTION,
    ("connect", "assignment"): connect.ASSIGNMENT,
}

# By the assignor's name, which is the protocol's; Kafka Streams' is "stream".
USER_DATA: dict[tuple[str, Part], Payload] = {
    ("sticky", "metadata"): consumer_protocol.STICKY_USER_DATA,
    ("cooperative-sticky", "metadata"): consumer_protocol.COOPERATIVE_STICKY_USER_DATA,
    ("stream", "metadata"): streams.SUBSCRIPTION_INFO,
    ("stream", "assignment"): streams.ASSIGNMENT_INFO,
}

# By API and field: bytes that are always the same payload, where Kafka's own programs write them.
FIELD_PAYLOADS: dict[tuple[str, str], Payload] = {
    ("Envelope", "request_principal"): principal.DEFAULT_PRINCIPAL,
}


class Payloads:
    """The payloads in the order of their families. Names match in any case, with or without underscores."""

    def __init__(self, payloads: Iterable[Payload]) -> None:
        self._by_name = {_plain(payload.name): payload for payload in payloads}

    def __getitem__(self, name: str) -> Payload:
        """Raises UnknownApi, which tells the nearest names."""
        found = self.get(name)
        if found is None:
            near = [self._by_name[one].name for one in get_close_matches(_plain(name), self._by_name, n=3)]
            hint = f"; nearest: {', '.join(near)}" if near else ""
            raise UnknownApi(f"no payload is named {name!r}{hint}")
        return found

    def get(self, name: str) -> Payload | None:
        return self._by_name.get(_plain(name))

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __iter__(self) -> Iterator[Payload]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)


def _plain(name: str) -> str:
    return name.replace("_", "").casefold()


def _payloads() -> Iterator[Payload]:
    for family in _FAMILIES:
        for each in vars(family).values():
            if isinstance(each, Payload):
                yield each
            elif isinstance(each, Record):
                yield from (each.key, each.value)


PAYLOADS = Payloads(_payloads())
