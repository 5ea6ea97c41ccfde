"""Reads pasted bytes: hex, dumps with offsets, base64, literals and arrays of code, raw bytes."""

from __future__ import annotations

import ast
import base64
import binascii
import re
from collections.abc import Iterator
from typing import NamedTuple

MOST = 2**27  # bytes that a dump may leave out with a `*`

CAPTURES = {
    b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x0a\x0d\x0d\x0a",
}  # fmt: skip
ARCHIVES = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}

TEXT = frozenset(b"\t\n\r\f" + bytes(range(0x20, 0x7F)))
HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
NOISE = re.compile(r"0[xX]|\\x|[\s:,;{}|\[\]()-]+")
ADDRESS = re.compile(r"\s*(?:0x)?([0-9a-fA-F]{3,16})(:\s+|\s{2,}|\s)(?=\S)(.*)")
END = re.compile(r"[0-9a-fA-F]{6,8}")
WORDS = re.compile(r"(?:[0-9a-fA-F]{2})+(?=\s|$)")
LITERAL = re.compile(r"""[bB](?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""", re.DOTALL)
DECIMALS = re.compile(r"\[\s*-?\d{1,3}(?:\s*,\s*-?\d{1,3})*\s*\]")
PLAIN = r"(?:0|[1-9]\d{0,2})"
PRINTED = re.compile(rf"\[(?=.*\b\d\b){PLAIN}(?: {PLAIN})+\]")  # by Go's fmt: one digit is no hex
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
BRACES = re.compile(r"[^{}]*\{([^{}]*,[^{}]*)\}[^{}]*")
CAST = re.compile(r"\(\s*byte\s*\)\s*")
NUMBER = re.compile(rf"-?(?:0[xX][0-9a-fA-F]{{1,2}}|{PLAIN})")
BUFFER = re.compile(
    r"""<Buffer ([0-9a-f ]+)>|\{\s*"type"\s*:\s*"Buffer"\s*,\s*"data"\s*:\s*(\[[^\]]*\])\s*\}"""
)
QUOTED = re.compile(r"""(["'])([0-9a-fA-F]+)\1""")


class Found(NamedTuple):
    """Bytes, and the notation they were written in."""

    form: str
    data: bytes


class NoBytes(ValueError):
    """Text, or a file, in which there are no frames to be had."""


def bytes_of(data: bytes) -> Found:
    """The bytes that a file stands for: those it spells if it is text, else its own. Raises NoBytes."""
    if data[:4] in CAPTURES:
        reason = "a packet capture: copy the TCP payload out of it (in Wireshark: Copy, as a Hex Stream)"
        raise NoBytes(reason)
    if not data:
        raise NoBytes("the input is empty")
    for start, name in ARCHIVES.items():
        if data.startswith(start):
            raise NoBytes(f"a {name} file: unpack it first")
    if data and TEXT.issuperset(data.removeprefix(b"\xef\xbb\xbf")):
        return spelled(data.removeprefix(b"\xef\xbb\xbf").decode("ascii"))
    return Found("raw bytes", data)


def spelled(text: str) -> Found:
    """The bytes that a text spells. Raises NoBytes."""
    text = text.strip()
    if not text:
        raise NoBytes("the input is empty")
    if LITERAL.fullmatch(text):
        try:
            return Found("a bytes literal", ast.literal_eval(text))
        except (SyntaxError, ValueError):
            raise NoBytes(f"a bytes literal that Python does not take: {_cut(text)}") from None
    if DECIMALS.fullmatch(text) and "," in text:
        return _decimals(text)
    if PRINTED.fullmatch(text):
        return _decimals(text.replace(" ", ","))
    if found := BUFFER.fullmatch(text):
        return spelled(found[1] or found[2])
    if found := QUOTED.fullmatch(text):
        return spelled(found[2])
    array = _array(text)
    if array is not None:
        return array
    dump = _dump(text.splitlines())
    if dump is not None:
        return dump
    digits = NOISE.sub("", text)
    if digits and HEX.fullmatch(digits):
        return Found("hex", bytes.fromhex(digits))
    if digits and HEX.fullmatch(digits + "0"):
        raise NoBytes(f"hex with an odd number of digits ({len(digits)}): one is missing")
    coded = _base64(text)
    if coded is not None:
        return Found("base64", coded)
    raise NoBytes(f"neither hex nor base64: {_cut(text)}")


def _decimals(text: str) -> Found:
    numbers = [int(number) for number in text.strip("[] \n").split(",")]
    if min(numbers) < -128 or max(numbers) > 255:
        raise NoBytes(f"a list of numbers that are no bytes: {_cut(text)}")
    return Found("a list of numbers", bytes(number & 0xFF for number in numbers))


def _array(text: str) -> Found | None:
    """Bytes as source code has them, each a number of its own: `{ 0x0, 42 }`, or `0x0 0x2a`."""
    code = COMMENT.sub(" ", text)
    braces = BRACES.fullmatch(code)
    if braces is None and "0x" not in code:
        return None
    inner = CAST.sub("", code if braces is None else braces[1])
    numbers = inner.replace(",", " ").split()
    if len(numbers) < 2 or not all(NUMBER.fullmatch(number) for number in numbers):
        return None
    return _decimals("[" + ",".join(str(int(number, 0)) for number in numbers) + "]")


def _base64(text: str) -> bytes | None:
    packed = "".join(text.split()).replace("-", "+").replace("_", "/")
    packed = packed.rstrip("=")
    if len(packed) < 4 or len(packed) % 4 == 1:
        return None
    try:
        return base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except binascii.Error:
        return None


def _dump(lines: list[str]) -> Found | None:
    """Lines that begin with their offsets, as xxd, hexdump, od, tcpdump and Wireshark write them."""
    lines = [line for line in lines if line.strip()]
    last = lines.pop().strip() if len(lines) > 1 and END.fullmatch(lines[-1].strip()) else None
    stars = {index for index, line in enumerate(lines) if line.strip() == "*"}
    rows = [_row(line) for index, line in enumerate(lines) if index not in stars]
    repeated = {index - before for before, index in enumerate(sorted(stars))}  # rows after a star
    if None in rows or not rows:
        return None
    found = [row for row in rows if row is not None]
    if len(found) == 1 and last is None and not found[0].alone:
        return None
    for radix in (16, 8):
        data = _joined(found, last, radix, repeated)
        if data is not None:
            return Found("a hex dump", data)
    return None


class _Row(NamedTuple):
    address: str
    alone: bool  # it cannot be but a dump: a long address, and a colon or two spaces after it
    readings: tuple[bytes, ...]  # as they stand; as 16-bit words of a little-endian machine


def _row(line: str) -> _Row | None:
    found = ADDRESS.match(line)
    if found is None:
        return None
    address, gap, rest = found.groups()
    readings = tuple(_readings(rest))
    return _Row(address, len(address) >= 4 and gap != " ", readings) if readings else None


def _readings(rest: str) -> Iterator[bytes]:
    """The bytes of a line, first without the text column that repeats them."""
    data, pos = b"", 0
    little = re.match(r"[0-9a-fA-F]{4}(?: [0-9a-fA-F]{4})*\s*$", rest) is not None
    while word := WORDS.match(rest, pos):
        data += bytes.fromhex(word.group())
        pos = word.end()
        beside = rest[pos:].strip()
        if _repeats(beside, data):
            yield data
            return
        while pos < len(rest) and rest[pos].isspace():
            pos += 1
    if data and (pos == len(rest) or rest[pos] in "|>" or _repeats(rest[pos:].strip(), data)):
        yield data
        if little:  # `hexdump` and `od -x` print 16-bit words of the machine
            yield b"".join(data[at : at + 2][::-1] for at in range(0, len(data), 2))


def _repeats(text: str, data: bytes) -> bool:
    """Whether a column of text shows these bytes: printable ones as they are, dots for the others."""
    if not 0 < len(text) <= len(data) + 2:
        return False
    printable = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data).strip()
    return text.replace("·", ".") in (printable, f"|{printable}|", f">{printable}<")


def _joined(rows: list[_Row], last: str | None, radix: int, repeated: set[int]) -> bytes | None:
    """The rows' bytes, if the addresses count them; before some the row above is repeated."""
    try:
        places = [int(row.address, radix) - int(rows[0].address, radix) for row in rows]
        end = None if last is None else int(last, radix) - int(rows[0].address, radix)
    except ValueError:
        return None
    reading = -1 if len(rows[0].address) == 7 else 0
    data = bytearray()
    for index, (row, place) in enumerate(zip(rows, places, strict=True)):
        if index in repeated:
            _fill(data, place)
        if len(data) != place:
            return None
        data += row.readings[reading]
    if end is None:
        return bytes(data)
    if len(rows) in repeated:
        _fill(data, end)
    odd = len(rows[-1].readings) == 2 and len(data) == end + 1
    return bytes(data[:end]) if odd or len(data) == end else None


def _fill(data: bytearray, size: int) -> None:
    if len(data) < size < MOST:
        data += data[-16:] * ((size - len(data)) // 16)


def _cut(text: str, most: int = 40) -> str:
    return repr(text if len(text) <= most else text[:most] + "...")
