"""Types in Spark's words for what the wire tables say: a body as a struct with the fields of all versions.

Fields that a version lacks, or that were left out, are null. Uuids are 16 bytes. Secrets are not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from klamm.decoders.payloads.tables import Part
from klamm.decoders.schema import RECORDS, SECRET, TELEMETRY, Api, Field, Side, members

KINDS = {
    "int8": "tinyint",
    "int16": "smallint",
    "uint16": "int",
    "int32": "int",
    "uint32": "bigint",
    "int64": "bigint",
    "float64": "double",
    "boolean": "boolean",
    "string": "string",
    "uuid": "binary",
    "bytes": "binary",
}
HEADERS = (  # of a batch in a records field
    "magic: tinyint, base_offset: bigint, last_offset: bigint, records: int, codec: string, bytes: int, "
    "base_timestamp: timestamp, max_timestamp: timestamp, producer_id: bigint, producer_epoch: smallint, "
    "base_sequence: int, transactional: boolean, control: boolean"
)
CONTENT = "uncompressed_bytes: int, keys: int, top_key_records: int"  # known from its records only


class Held(NamedTuple):
    """A payload of a member of a consumer group in a field of bytes, decoded as far as it is one.

    `lists`: by side, the array whose elements have the field; None: the body has it.
    """

    part: Part
    first: str  # the payload's field behind its version, which is null where it is another one
    type: str
    lists: Mapping[Side, str | None]


HELD = {  # by API and field
    ("JoinGroup", "metadata"): Held(
        "metadata", "topics", "struct<topics: array<string>>", {"request": "protocols", "response": "members"}
    ),
    ("SyncGroup", "assignment"): Held(
        "assignment",
        "assigned_partitions",
        "struct<assigned_partitions: array<struct<topic: string, partitions: array<int>>>>",
        {"request": "assignments", "response": None},
    ),
}


@cache
def body_type(api: Api, side: Side, content: bool = False) -> str:
    """`struct<acks: smallint, ...>`; with `content` the columns of batches that only their records tell."""
    batch = f"{HEADERS}, {CONTENT}" if content else HEADERS
    return _Types(api.name, f"struct<bytes: int, batches: array<struct<{batch}>>>").struct(api.fields(side))


class _Types(NamedTuple):
    api: str
    records: str

    def struct(self, fields: tuple[Field, ...]) -> str:
        named = [f"`{f.name}`: {self.type(f)}" for f in fields if f.mark not in (SECRET, TELEMETRY)]
        return f"struct<{', '.join(named)}>"

    def type(self, f: Field) -> str:
        if f.mark == RECORDS:
            return self.records
        if (self.api, f.name) in HELD:
            return HELD[self.api, f.name].type
        if f.kind == "struct":
            return self.struct(members(f))
        if f.kind != "array":
            return KINDS[f.kind]
        return f"array<{KINDS[f.of] if isinstance(f.of, str) else self.struct(members(f))}>"
