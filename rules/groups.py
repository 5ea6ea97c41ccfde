"""Which group a client belongs to, for APIs that name none (Fetch): learned from the requests that do."""

from __future__ import annotations

from klamm.decoders import DecodeError
from klamm.decoders.schema import GROUP, Api
from klamm.rules.frame import Frame

TELL = frozenset(
    {
        "JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "ConsumerGroupHeartbeat",
        "ShareGroupHeartbeat", "StreamsGroupHeartbeat",
    }
)  # fmt: skip
KEPT = 10_000  # clients


class Groups:
    """(client id, client host) -> its group; two groups of one are ambiguous, and match nothing."""

    def __init__(self) -> None:
        self.wanted = False
        self.known: dict[tuple[str | None, str], set[str]] = {}

    @staticmethod
    def told_by(api: Api) -> bool:
        return api.name in TELL

    def learn(self, frame: Frame) -> None:
        name = next(f.name for f in frame.api.request if f.mark == GROUP)
        try:
            group = frame.values[name]
        except DecodeError:
            return
        if len(self.known) > KEPT:
            self.known.clear()
        self.known.setdefault(_client(frame.client_id, frame.peer.client_address), set()).add(group)

    def of(self, client_id: str | None, client_address: str) -> str | None:
        groups = self.known.get(_client(client_id, client_address), set())
        return next(iter(groups)) if len(groups) == 1 else None

    def ambiguous(self) -> list[tuple[str | None, str]]:
        """Clients that are in several groups."""
        return [client for client, groups in self.known.items() if len(groups) > 1]


def _client(client_id: str | None, address: str) -> tuple[str | None, str]:
    return client_id, address.rpartition(":")[0]
