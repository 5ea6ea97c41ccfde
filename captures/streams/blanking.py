"""What a capture keeps of a frame: never its secrets, and of its records what was asked for.

Blanked is, at the same length and with zeros: each field that the tables mark SECRET; a raw SASL token,
whole; the records of Kafka's own metadata, which hold SCRAM credentials and configured values
(`__cluster_metadata`, and snapshots of it); the content of other records, unless they are kept or hashed (see
record_content.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from klamm.captures.streams.cutting import Edit
from klamm.captures.streams.record_content import blanked, hashed

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = bytes(15) + b"\1"


@dataclass(slots=True)
class Keeping:
    """What is kept of records: nothing but batch headers ("blank"), all ("keep"), or hashes under `key`, of
    up to 64 bytes. One for all conversations of a capture, since `held` counts what they hold together: the
    bytes of frames that are not whole, or of which is not known yet what went on.
    """

    records: Literal["blank", "keep", "hash"] = "blank"
    key: bytes = b""
    held: int = 0

    def edits(self, data: bytes, pos: int, end: int, metadata: bool = False) -> list[Edit]:
        """Of a records field. `metadata`: it is of Kafka's own metadata."""
        if self.records == "blank" or metadata:
            return blanked(data, pos, end)
        return hashed(data, pos, end, self.key) if self.records == "hash" else []
