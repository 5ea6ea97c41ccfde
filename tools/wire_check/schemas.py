"""The message schemas inside a kafka-clients jar, in the terms of klamm's tables.

Kafka ships them as JSON with comments (`common/message/*.json`, from 2.4 on); `schema_layout` gives one
version of one of them as a `Layout`, with the names in snake_case.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from zipfile import ZipFile

from klamm.decoders.interpret import Layout
from klamm.decoders.schema import ALL, NONE, Field, Side, Versions, version_range

_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*')
KINDS = {"bool": "boolean"}
_ZERO: dict[str, Any] = {"string": "", "bytes": b"", "records": None, "uuid": bytes(16), "boolean": False}
_NUMBERS = frozenset({"int8", "int16", "int32", "int64", "uint16", "uint32", "float64"})


@dataclass(frozen=True, slots=True)
class Schema:
    """One JSON file: a request, a response or a header, at all versions that one Kafka knows."""

    name: str  # of the API, or RequestHeader, ResponseHeader
    key: int  # -1 for a header
    type: Literal["request", "response", "header"]
    versions: Versions
    unstable: bool  # the last of the versions is not released
    flexible: Versions
    json: dict[str, Any]

    @property
    def side(self) -> Side:
        if self.type == "header":
            return "request" if self.name == "RequestHeader" else "response"
        return self.type

    @property
    def shared(self) -> dict[str, list[dict[str, Any]]]:
        """The fields of structs that are declared once and named in several places."""
        return {struct["name"]: struct["fields"] for struct in self.json.get("commonStructs", ())}


def read_schemas(jar: Path) -> list[Schema]:
    """The schemas of requests, responses and headers, in order of keys; LookupError if the jar has none."""
    with ZipFile(jar) as files:
        names = [n for n in files.namelist() if n.startswith("common/message/") and n.endswith(".json")]
        texts = [_COMMENT.sub(r"\1", files.read(name).decode()) for name in sorted(names)]
    # Some files of older Kafka have a brace too many at their end, which Kafka's reader takes no notice of.
    found = [_schema(json.JSONDecoder().raw_decode(text.lstrip())[0]) for text in texts]
    if not found:
        raise LookupError(f"{jar.name} holds no message schemas: Kafka has them from 2.4 on")
    there = [schema for schema in found if schema.type in ("request", "response", "header")]
    return sorted(there, key=lambda schema: (schema.key, schema.type))


def _schema(content: dict[str, Any]) -> Schema:
    kind = content["type"]
    name = content["name"] if kind == "header" else content["name"].removesuffix(kind.capitalize())
    unstable = content.get("latestVersionUnstable", False)
    versions = json_range(content["validVersions"])
    flexible = json_range(content.get("flexibleVersions", "none"))
    return Schema(name, content.get("apiKey", -1), kind, versions, unstable, flexible, content)


def json_range(text: str) -> Versions:
    """A range as the schemas have it: like the tables', or "none"."""
    return NONE if text == "none" else version_range(text)


def schema_layout(schema: Schema, version: int) -> Layout:
    """One version of a schema; its fields have no version ranges of their own any more."""
    fields = tuple(_fields(schema.json["fields"], version, schema))
    return Layout(schema.name, version, schema.side, version in schema.flexible, fields)


def _fields(fields: list[dict[str, Any]], version: int, schema: Schema) -> Iterator[Field]:
    for content in fields:
        if version in json_range(content.get("versions") or content["taggedVersions"]):
            yield _field(content, version, schema)


def _field(content: dict[str, Any], version: int, schema: Schema) -> Field:
    text = content["type"]
    element = text.removeprefix("[]")
    of: str | tuple[Field, ...] = ""
    if element[0].isupper():
        kind, members = "struct", content.get("fields") or schema.shared[element]
        of = tuple(_fields(members, version, schema))
    else:
        kind = KINDS.get(element, element)
    if text.startswith("[]"):
        kind, of = "array", of or kind
    null = ALL if version in json_range(content.get("nullableVersions", "none")) else NONE
    tag = int(content["tag"]) if version in json_range(content.get("taggedVersions", "none")) else None
    default = _default("array" if text.startswith("[]") else kind, content.get("default", ""))
    # A field that stays classic in a flexible version has a kind that no table knows.
    own = content.get("flexibleVersions", "0+")
    if version in schema.flexible and version not in json_range(own):
        kind = f"classic {kind}"
    return Field(kind, snake_case(content["name"]), ALL, null, tag, default, None, of)


def _default(kind: str, written: Any) -> Any:
    text = str(written)
    if text == "null":
        return None
    if kind in ("array", "struct"):
        return ()
    if kind in _NUMBERS:
        return float(text or 0) if kind == "float64" else int(text or "0", 0)
    if kind == "boolean":
        return text.lower() == "true"
    return text if kind == "string" else _ZERO.get(kind)


def snake_case(name: str) -> str:
    """A field's name in Kafka's JSON as the tables write it: Enable2Pc -> enable_2pc."""
    words = name.replace("2Pc", "_2pc").replace("KRaft", "Kraft").replace("kRaft", "kraft")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", words).lower()
