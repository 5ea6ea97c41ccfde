"""set: fields get other values."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from klamm.decoders import ERRORS
from klamm.decoders.schema import ERROR, FIXED, Api, Field, Side, all_fields, members
from klamm.rules.actions.leaves import Path, edited
from klamm.rules.expressions import ExpressionError, parse
from klamm.rules.frame import Frame
from klamm.rules.orders import Order
from klamm.rules.quantities import FieldPath
from klamm.rules.rule import Draw
from klamm.settings.nearest import suggestion

TRUTHS = {"true": True, "false": False}
ANSWER: Side = "response"
UUID_SIZE = 16


@dataclass(frozen=True, slots=True)
class Set:
    """Give fields other values: of the request where it has them, else of its answer; in all elements of
    arrays, or, with a topic or partition, in those of its own.
    """

    name: ClassVar[str] = "set"
    sides: ClassVar[Sequence[str]] = ("request", "response")
    entries: ClassVar[str] = "fields"  # its keys in a file are this field's

    fields: Mapping[FieldPath, str]
    """Path of a field -> its value: a constant, `null`, or an expression after `=`."""

    def __hash__(self) -> int:
        return hash(tuple(self.fields.items()))

    def fits(self, api: Api, version: int, side: Side) -> str | None:
        """Why this cannot be done to such frames."""
        for path, text in self.fields.items():
            on = next((each for each in (side, ANSWER) if _find(api.fields(each), version, path)), None)
            if on is None:
                words = [
                    ".".join(known)
                    for each in (side, ANSWER)
                    for known, _ in all_fields(api.fields(each), version)
                ]
                return f"{api.name} v{version} has no field {path}{suggestion(path, words)}"
            try:
                if text.startswith("="):
                    _parsed(text[1:]).value_on(api, version, on)
                else:
                    for field in _find(api.fields(on), version, path).values():
                        constant(text, field, version)
            except (ValueError, ExpressionError) as reason:
                return f"{path}: {reason}"
        return None

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return edited(frame, self._paths, self._value)

    def _paths(self, fields: tuple[Field, ...], version: int) -> list[Path]:
        return [path for dotted in self.fields for path in _find(fields, version, dotted)]

    def _value(self, path: Path, field: Field, before: Any, on: Frame) -> Any:
        text = self.fields[FieldPath(".".join(path))]
        if text.startswith("="):
            return _parsed(text[1:]).value_on(on.api, on.version, on.side)(on)
        return constant(text, field, on.version)


def constant(text: str, field: Field, version: int) -> Any:
    """Converts text to a value of a field's type. Raises ValueError with the valid values."""
    if text == "null":
        if version not in field.null:
            raise ValueError(f"cannot be null in version {version}")
        return None
    if field.kind == "array":
        return _list(text, field)
    if field.kind == "struct":
        raise ValueError("holds other fields: name one of them")
    return _scalar(text, field.kind, field.mark == ERROR)


def _list(text: str, field: Field) -> list[Any]:
    inner = text.removeprefix("[").removesuffix("]").strip()
    if not inner:
        return []
    if members(field):
        raise ValueError("holds other fields: name one of them, or write [] for none")
    assert isinstance(field.of, str)
    return [_scalar(part.strip(), field.of, False) for part in inner.split(",")]


def _scalar(text: str, kind: str, is_error: bool) -> Any:
    match kind:
        case "string":
            return text
        case "bytes" | "records":
            return text.encode()
        case "boolean":
            if text not in TRUTHS:
                raise ValueError(f"{text!r} is neither true nor false")
            return TRUTHS[text]
        case "float64":
            return float(text)
        case "uuid":
            return _uuid(text)
    if is_error and (error := ERRORS.get(text)) is not None:
        return error.code
    return _number(text, kind)


def _number(text: str, kind: str) -> int:
    bits = 8 * FIXED[kind][1]
    least, most = (0, (1 << bits) - 1) if kind.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)
    try:
        number = int(text, 0)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None
    if not least <= number <= most:
        raise ValueError(f"{number} is not from {least} to {most} ({kind})")
    return number


def _uuid(text: str) -> bytes:
    """Reads a uuid as Kafka prints it, or in hexadecimal digits."""
    digits = text.replace("-", "") if len(text) in (32, 36) else ""
    try:
        made = bytes.fromhex(digits) if digits else urlsafe_b64decode(text + "==")
    except ValueError:
        made = b""
    if len(made) != UUID_SIZE:
        raise ValueError(f"{text!r} is not an id: write it as Kafka prints it, in 22 characters")
    return made


def _find(fields: tuple[Field, ...], version: int, dotted: str) -> Mapping[Path, Field]:
    """The field of a path, if this version has it."""
    return {path: field for path, field in all_fields(fields, version) if ".".join(path) == dotted}


_parsed = lru_cache(1024)(parse)
