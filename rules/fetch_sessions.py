"""The contents of the fetch sessions of a connection (KIP-227): a steady request names no topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from klamm.rules.frame import Frame, Part

Key = tuple[str | None, bytes | None, int]


class FetchSessions:
    """Session id -> partitions. A session is made by an answer to a request with epoch 0, and lives on one
    connection.
    """

    def __init__(self) -> None:
        self.by_id: dict[int, set[Key]] = {}
        self.asked: set[Key] = set()

    def unknown(self, frame: Frame) -> bool:
        """Whether a request continues a session whose beginning klamm has not read."""
        values = frame.values
        return values.get("session_epoch", -1) > 0 and values.get("session_id", 0) not in self.by_id

    def parts(self, frame: Frame) -> Iterator[Part]:
        """The partitions of a request: those of its session, with the added and without the forgotten
        ones.
        """
        values = frame.values
        now = set(self.by_id.get(values.get("session_id", 0), ()))
        now |= set(_partitions(values["topics"]))
        now -= set(_partitions(values.get("forgotten_topics_data") or []))
        for topic, topic_id, partition in now:
            yield {"topic": topic, "topic_id": topic_id, "partition": partition}

    def asks(self, frame: Frame) -> None:
        """A request that goes on to the broker."""
        values = frame.values
        epoch, session = values.get("session_epoch", -1), values.get("session_id", 0)
        if epoch == -1:
            self.by_id.pop(session, None)
        self.asked = {(p["topic"], p["topic_id"], p["partition"]) for p in self.parts(frame)}
        if epoch > 0 and session in self.by_id:
            self.by_id[session] = self.asked

    def answers(self, frame: Frame) -> None:
        """Takes the answer: the session now holds the requested partitions."""
        session = frame.values.get("session_id", 0)
        if session and frame.request is not None and frame.request.values.get("session_epoch") == 0:
            values: dict[str, Any] = frame.request.values
            self.by_id[session] = set(_partitions(values["topics"]))


def _partitions(topics: list[dict[str, Any]]) -> Iterator[Key]:
    for topic in topics:
        for row in topic["partitions"]:
            partition = row["partition"] if isinstance(row, dict) else row
            yield topic.get("topic"), topic.get("topic_id"), partition
