"""Types in Spark's words for what the wire tables say: a body as a struct with the fields of all versions.

Fields that a version lacks, or that were left out, are null. Uuids are 16 bytes. Secrets are not there.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

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
# Bytes that hold a payload of Kafka's, decoded as far as they are one: API and field.
ASSIGNMENT = "struct<assigned_partitions: array<struct<topic: string, partitions: array<int>>>>"
PAYLOADS = {("SyncGroup", "assignment"): ASSIGNMENT}


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
        if (self.api, f.name) in PAYLOADS:
            return PAYLOADS[self.api, f.name]
        if f.kind == "struct":
            return self.struct(members(f))
        if f.kind != "array":
            return KINDS[f.kind]
        return f"array<{KINDS[f.of] if isinstance(f.of, str) else self.struct(members(f))}>"
