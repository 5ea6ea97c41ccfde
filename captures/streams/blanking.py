"""Decides which bytes of a frame a capture keeps: never secrets, and of records as much as was asked for.

Blanked is, at the same length and with zeros: each field that the tables mark SECRET; a raw SASL token,
whole; tags of headers that nobody knows; the records of Kafka's own metadata, which hold SCRAM credentials
and configured values (`__cluster_metadata`, and snapshots of it); metrics of clients, unless records are
kept; the content of other records, unless they are kept or hashed (see record_content.py).
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
    """`records`: only batch headers ("blank"), all ("keep"), or hashes under `key`, of up to 64 bytes. All
    readers of a capture share one, since `buffered_bytes` counts their memory together: the bytes of frames
    that are not whole, or of which it is not known yet how they were forwarded (`unmatched`: the number of
    these). `readers`: their number.
    """

    records: Literal["blank", "keep", "hash"] = "blank"
    key: bytes = b""
    buffered_bytes: int = 0
    unmatched: int = 0
    readers: int = 0

    def edits(self, data: bytes, pos: int, end: int, metadata: bool = False) -> list[Edit]:
        """The edits of a records field. `metadata`: it is of Kafka's own metadata."""
        if self.records == "blank" or metadata:
            return blanked(data, pos, end)
        return hashed(data, pos, end, self.key) if self.records == "hash" else []
