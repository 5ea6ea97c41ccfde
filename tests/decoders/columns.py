"""The results that `pick`, `walk` and `locate` must have, taken from the values of a full read."""

from collections.abc import Iterator
from typing import Any

from klamm.decoders.interpret import Layout
from klamm.decoders.schema import Field, all_fields, default_of, members, present

Path = tuple[str, ...]


def leaves(of: Layout) -> tuple[Path, ...]:
    return tuple(path for path, f in all_fields(of.fields, of.version) if not members(f))


def absent(f: Field, version: int, value: Any) -> bool:
    """Kafka does not write a tagged field that has its default."""
    return f.tag is not None and value == default_of(f, version)


def column(fields: tuple[Field, ...], version: int, values: dict[str, Any], path: Path) -> Any:
    """None where null or absent, a list per array on the way."""
    f = next(f for f in fields if f.name == path[0] and version in f.versions)
    value = values[f.name]
    if value is None or absent(f, version, value):
        return None
    if len(path) == 1:
        return value
    if f.kind == "array":
        return [column(members(f), version, element, path[1:]) for element in value]
    return column(members(f), version, value, path[1:])


def in_wire_order(
    fields: tuple[Field, ...], version: int, values: dict[str, Any], path: Path = ()
) -> Iterator[tuple[Path, Any]]:
    """Every leaf that is there, with its path."""
    in_place, tagged = present(fields, version)
    for f in [*in_place, *tagged]:
        value, here = values[f.name], (*path, f.name)
        if absent(f, version, value):
            continue
        if not members(f):
            yield here, value
        elif value is not None:
            for element in value if f.kind == "array" else [value]:
                yield from in_wire_order(members(f), version, element, here)
