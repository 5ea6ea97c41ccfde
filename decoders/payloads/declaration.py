"""Declares payloads: a table of fields as of an API, with the version or type that leads it."""

from __future__ import annotations

from dataclasses import dataclass

from klamm.decoders.schema import Field, Versions, int16, version_range


@dataclass(frozen=True, slots=True, eq=False)
class Payload:
    """One payload: all its bytes in wire order.

    The first field, if it is called `version`, tells the layout; if it is called `type`, it is a record's
    type, and there is but one layout. Otherwise the bytes do not tell, and the newest layout that fits holds.
    `newer_as_newest`: versions to come are read as the newest known, and what they added is left over.
    """

    name: str
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]
    newer_as_newest: bool = False

    @property
    def leads(self) -> Field | None:
        """The field that tells the layout."""
        first = self.fields[0]
        return first if first.name in ("version", "type") else None


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """Key and value of one type of record in a topic of Kafka's own."""

    type: int
    key: Payload
    value: Payload


VERSION = int16("version")


def payload(
    name: str, *, versions: str, flexible: str | None, fields: list[Field], newer_as_newest: bool = False
) -> Payload:
    """Declare one payload. Ranges are written as in `schema.api`."""
    return Payload(name, version_range(versions), version_range(flexible), tuple(fields), newer_as_newest)


def record(
    type: int,
    name: str,
    *,
    key: list[Field],
    value: list[Field],
    versions: str = "0",
    flexible: str | None = "0+",
) -> Record:
    """Declare key and value of a record. The type leads the key; `versions` are the value's, and lead it."""
    lead = int16("type", default=type)
    return Record(
        type,
        payload(f"{name}Key", versions="0", flexible=None, fields=[lead, *key]),
        payload(f"{name}Value", versions=versions, flexible=flexible, fields=[VERSION, *value]),
    )
