"""Answers as lists of parts, written here byte by byte: what a broker sends, and what klamm makes of it.

Nothing of klamm says where an address stands: answers are written with placeholders, which are looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

HELD, PORT = "<<{:04}>>", 1  # host and port of a placeholder


class Address(NamedTuple):
    """Of a node, as its broker tells it: `host` None is a null. `padded`: the varint of its length has
    so many more bytes than it needs, which Kafka accepts.
    """

    node_id: int
    host: str | None
    port: int
    padded: int = 0

    @property
    def leads(self) -> bool:
        """Could a client connect to it?"""
        return bool(self.host) and self.port > 0


class Edited(NamedTuple):
    """Bytes that klamm replaces. `shown`: so many of them tell nothing yet. `counts`: what it adds to
    the number in front of it.
    """

    came: bytes
    goes: bytes
    shown: int
    counts: int


@dataclass
class Total:
    """The number of elements, or of bytes, in front of what it counts. `lies`: how much it is off."""

    value: int
    form: str  # "int32", "array" (a varint, one more than it says) or "size"
    parts: list[Part]
    padded: int = 0
    lies: int = 0

    def written(self, change: int = 0) -> bytes:
        value = self.value + self.lies + change
        if self.form == "int32":
            return value.to_bytes(4, "big", signed=True)
        return uvarint(value + (self.form == "array"), 0 if change else self.padded)


Part = bytes | Edited | Total


@dataclass
class Sent:
    """The bytes that the broker sends (`came`), and those that the client has to get (`goes`). Both end where
    klamm refuses the frame.
    """

    came: bytes = b""
    goes: bytes = b""
    change: int = 0  # of the number in front
    refused: bool = False
    names: bool = False  # has klamm replaced anything in it?


def uvarint(value: int, padded: int = 0) -> bytes:
    """An unsigned varint, with so many bytes more than it needs."""
    digits = [value >> shift & 0x7F for shift in range(0, max(value.bit_length(), 1), 7)]
    digits += [0] * padded
    return bytes([digit | 0x80 for digit in digits[:-1]] + digits[-1:])


def text(value: str | None, compact: bool, padded: int = 0) -> bytes:
    """A string with its length."""
    data = b"" if value is None else value.encode("utf-8", "surrogateescape")
    size = -1 if value is None else len(data)
    return (uvarint(size + 1, padded) if compact else size.to_bytes(2, "big", signed=True)) + data


class Form(NamedTuple):
    """How an API version writes addresses. `port`: bytes of a port."""

    compact: bool
    port: int

    def written(self, address: Address) -> bytes:
        port = address.port % (1 << 8 * self.port)
        return text(address.host, self.compact, address.padded) + port.to_bytes(self.port, "big")

    def edited(self, address: Address, instead: Address) -> Part:
        came = self.written(address)
        if not address.host:
            return came
        goes = self.written(instead) if address.leads else came
        size = len(came) - self.port - len(address.host.encode("utf-8", "surrogateescape"))
        return Edited(came, goes, size, len(goes) - len(came))


def held(number: int) -> dict[str, Any]:
    """The values of an address for which a placeholder is written."""
    return {"host": HELD.format(number), "port": PORT}


def split(body: bytes, form: Form, addresses: list[tuple[Address, Address]]) -> list[Part]:
    """A body with placeholders, with addresses in their places: the broker's, and klamm's."""
    parts: list[Part] = []
    pos = 0
    for number, (address, instead) in enumerate(addresses):
        placeholder = form.written(Address(0, HELD.format(number), PORT))
        at = body.index(placeholder, pos)
        parts += [body[pos:at], form.edited(address, instead)]
        pos = at + len(placeholder)
    return [*parts, body[pos:]]


def size_of(parts: list[Part]) -> int:
    return sum(len(part) if isinstance(part, bytes) else len(part.came) for part in _flat(parts))


def _flat(parts: list[Part]) -> Iterator[bytes | Edited]:
    for part in parts:
        if isinstance(part, Total):
            yield part.written()
            yield from _flat(part.parts)
        else:
            yield part


def sent(parts: list[Part], room: int) -> Sent:
    """The first `room` bytes of what these parts are, and what klamm makes of them."""
    made = Sent()
    for part in parts:
        left = room - len(made.came)
        if made.refused or left <= 0:
            break
        if isinstance(part, Total):
            head, inner = part.written(), sent(part.parts, left - len(part.written()))
            made.came += head[:left] + inner.came
            made.goes += (part.written(inner.change) if inner.change else head[:left]) + inner.goes
            whole = len(inner.came) == size_of(part.parts)
            made.refused = inner.refused or (part.lies != 0 and whole)
            made.names |= inner.names
        elif isinstance(part, bytes):
            made.came += part[:left]
            made.goes += part[:left]
        elif left < len(part.came):
            made.came += part.came[:left]
            made.goes += part.came[:left]
            made.refused = left > part.shown
        else:
            made.came += part.came
            made.goes += part.goes
            made.change += part.counts
            made.names |= part.goes != part.came
    return made
