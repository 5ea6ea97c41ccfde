"""Finds the group of a client, for APIs that name none (Fetch): learned from the requests that name one."""

from __future__ import annotations

from collections.abc import Callable

from klamm.decoders import DecodeError
from klamm.decoders.schema import GROUP, Api
from klamm.rules.frame import Frame

TELL = frozenset(
    {
        "JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "ConsumerGroupHeartbeat",
        "ShareGroupHeartbeat", "StreamsGroupHeartbeat",
    }
)  # fmt: skip
AMBIGUOUS = 2  # groups of one client; more are not kept
KEPT = 10_000  # clients
KEPT_TEXT = 4 << 20  # characters of their groups


Client = tuple[str | None, str]  # its id and its host


class Groups:
    """(client id, client host) -> its group; two groups of one are ambiguous, and match nothing."""

    def __init__(self) -> None:
        self.wanted = False
        self.known: dict[Client, set[str]] = {}
        self.told: Callable[[Client, str], None] | None = None  # gets what is new
        self.text = 0  # characters of all groups in `known`

    @staticmethod
    def told_by(api: Api) -> bool:
        return api.name in TELL

    def learn(self, frame: Frame) -> None:
        name = next(f.name for f in frame.api.request if f.mark == GROUP)
        try:
            group = frame.values[name]
        except DecodeError:
            return
        if len(self.known) > KEPT or self.text > KEPT_TEXT:
            self.known.clear()
            self.text = 0
        client = _client(frame.client_id, frame.peer.client_address)
        if self.add(client, group) and self.told is not None:
            self.told(client, group)

    def add(self, client: Client, group: str) -> bool:
        """Note a group of a client. True if it is new."""
        groups = self.known.setdefault(client, set())
        if len(groups) >= AMBIGUOUS or group in groups:
            return False
        groups.add(group)
        self.text += len(group)
        return True

    def of(self, client_id: str | None, client_address: str) -> str | None:
        groups = self.known.get(_client(client_id, client_address), set())
        return next(iter(groups)) if len(groups) == 1 else None


def _client(client_id: str | None, address: str) -> Client:
    return client_id, address.rpartition(":")[0]
