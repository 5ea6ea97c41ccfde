"""The declaration of an API that the tables lack, as it would stand in decoders/apis/."""

from collections.abc import Iterator
from typing import Any

from klamm.decoders.schema import NEWEST, NONE
from tools.wire_check.schemas import KINDS, Schema, json_range, snake_case

_KINDS = {"bool": "boolean", "bytes": "bytestring"}  # the functions that declare them
_MARKS = {"topicName": "TOPIC", "groupId": "GROUP", "transactionalId": "TRANSACTIONAL_ID"}
_NAMED = {"error_code": "ERROR", "topic_id": "TOPIC_ID", "partition_index": "PARTITION"}
_NO_DEFAULT = {"", "0", "false"}


def declaration(request: Schema, response: Schema) -> str:
    """Python text; the marks in it are guesses."""
    name = snake_case(request.name).upper()
    flexible = "None" if request.flexible == NONE else f'"{request.flexible}"'
    head = f'{request.key}, "{request.name}", versions="{request.versions}", flexible={flexible}'
    if request.unstable:
        head += f', unstable="{request.versions.last}"'
    sides = [
        line
        for side, schema in (("request", request), ("response", response))
        for line in (f"    {side}=[", *_fields(schema.json["fields"], schema, "0+", 8), "    ],")
    ]
    return "\n".join([f"{name} = api(", f"    {head},", *sides, ")"])


def _fields(fields: list[dict[str, Any]], schema: Schema, outer: str, indent: int) -> Iterator[str]:
    for content in fields:
        when = content.get("versions") or content["taggedVersions"]
        there = json_range(when)
        if there.last < schema.versions.first:
            continue
        everywhere = there.first <= schema.versions.first and there.last in (NEWEST, schema.versions.last)
        element = content["type"].removeprefix("[]")
        is_struct, is_array = element[0].isupper(), content["type"].startswith("[]")
        kind = "array" if is_array else "struct" if is_struct else _KINDS.get(element, element)
        words = [f'"{snake_case(content["name"])}"']
        words += [] if everywhere or when == outer else [f'"{when}"']
        words += list(_options(content))
        margin = " " * indent
        if is_struct:
            inner = content.get("fields") or schema.shared[element]
            yield f"{margin}{kind}({', '.join(words)}, of=["
            yield from _fields(inner, schema, when, indent + 4)
            yield f"{margin}]),"
        else:
            words += [f'of="{KINDS.get(element, element)}"'] if is_array else []
            yield f"{margin}{kind}({', '.join(words)}),"


def _options(content: dict[str, Any]) -> Iterator[str]:
    if (null := content.get("nullableVersions", "none")) != "none":
        yield f'null="{null}"'
    if "tag" in content:
        yield f"tag={content['tag']}"
    if (default := str(content.get("default", ""))).lower() not in _NO_DEFAULT:
        yield f"default={ {'null': 'None', 'true': 'True'}.get(default, default) }"
    mark = _NAMED.get(snake_case(content["name"])) or _MARKS.get(content.get("entityType", ""))
    if mark and not content["type"].removeprefix("[]")[0].isupper():
        yield f"mark={mark}"
