"""A JSON Schema of rule files for editors, from the same types that read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, NewType, Union, get_args, get_origin

from klamm.decoders import API, ERRORS
from klamm.decoders.schema import Versions
from klamm.rules.actions import ACTIONS
from klamm.rules.file.scalars import PATH, TIMES, ApiPattern
from klamm.rules.file.written import Actions, described, file_type
from klamm.rules.quantities import ApiName, Bytes, Duration, ErrorCode, FieldPath, Number, Ordinal, Share
from klamm.rules.rule import Moment
from klamm.settings.amounts import SIZES
from klamm.settings.typed_yaml import keys

Schema = dict[str, Any]

TEXT: Schema = {"type": ["string", "number", "boolean"]}  # 0123 and on are text here
AMOUNT = r"^\d+(\.\d+)? ?({})$"
LENGTH: Schema = {
    "anyOf": [{"type": "string", "pattern": AMOUNT.format("|".join(TIMES))}, {"const": 0}, {"const": "0"}]
}
API_NAMES = [name for api in API for name in (api.name, *api.aliases)]
ERROR_NAMES = ERRORS.names()

SCALARS: dict[Any, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: TEXT,
    Number: {"type": "integer", "minimum": 0},
    Ordinal: {"type": "integer", "minimum": 1},
    Share: {
        "anyOf": [
            {"type": "number", "minimum": 0, "maximum": 1},
            {"type": "string", "pattern": r"^[\d.]+ ?%$"},
        ]
    },
    Duration: LENGTH,
    Moment: {"anyOf": [*LENGTH["anyOf"], {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d[T ]"}]},
    Bytes: {
        "anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": AMOUNT.format("|".join(SIZES).removeprefix("|"))},
        ]
    },
    Versions: {
        "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": r"^\d+(\+|-\d+)?$"}]
    },
    ErrorCode: {
        "anyOf": [{"enum": ERROR_NAMES}, {"type": "integer", "enum": [error.code for error in ERRORS]}]
    },
    ApiName: {"enum": API_NAMES},
    ApiPattern: {"anyOf": [{"enum": API_NAMES}, {"type": "string", "pattern": r"[*?\[,]"}]},
    FieldPath: {"type": "string", "pattern": f"^{PATH.pattern}$"},
}


def json_schema(actions: Actions = ACTIONS) -> Schema:
    """The schema of a file in which these actions may stand."""
    made = _Schemas(actions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "klamm rules",
        **made.mapping(file_type(actions)),
        "$defs": {name: made.action(kind) for name, kind in actions.items()},
    }


class _Schemas:
    def __init__(self, actions: Actions) -> None:
        self.names: Mapping[Any, str] = {kind: name for name, kind in actions.items()}

    def of(self, hint: Any) -> Schema:
        if hint in self.names:
            return {"$ref": f"#/$defs/{self.names[hint]}"}
        if hint in SCALARS:
            return SCALARS[hint]
        if isinstance(hint, NewType):
            return self.of(hint.__supertype__)
        options = [option for option in get_args(hint) if option is not NoneType]
        if get_origin(hint) in (Union, UnionType):
            return self.of(options[0])
        if get_origin(hint) is Literal:
            return {"enum": options}
        if get_origin(hint) is tuple:
            many = {"type": "array", "items": self.of(options[0])}
            if is_dataclass(options[0]):
                return many
            return {"anyOf": [self.of(options[0]), {"type": "string", "pattern": ","}, many]}
        if is_dataclass(hint):
            return self.mapping(hint)
        return {}

    def mapping(self, kind: Any) -> Schema:
        lines, hints = described(kind), keys(kind)
        needed = [
            f.name for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING
        ]
        properties = {
            key: {**self.of(hint), **({"description": lines[key]} if lines.get(key) else {})}
            for key, hint in hints.items()
        }
        found: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        return {**found, "required": needed} if needed else found

    def action(self, kind: Any) -> Schema:
        """The schema of an action, in its short form or in full."""
        if getattr(kind, "entries", ""):
            return {"description": _text(kind), "type": "object", "additionalProperties": TEXT}
        whole = self.mapping(kind)
        needed = whole.get("required", [])
        forms: list[Schema] = [] if needed else [{"const": True}]
        first = next(iter(whole["properties"]), None)
        if first is not None and not set(needed) - {first}:
            forms.append(whole["properties"][first])
        return {"description": _text(kind), "anyOf": [*forms, whole]}


def _text(kind: Any) -> str:
    return " ".join((kind.__doc__ or "").split())
