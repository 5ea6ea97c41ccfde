"""Words of marks: topics with their partitions, times, names from the wire. All of bounded length."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from klamm.decoders.text import printable, valid_text
from klamm.settings.listing import some

NAME = 80  # characters of a name in a text
IDENTITY = 256  # characters of a name that is kept whole
TOPICS, RANGES, PARTS = 6, 12, 12  # named in a text; of others the number is told
BASE64 = re.compile(r"[A-Za-z0-9+/_-]{22}")  # a UUID as Kafka prints it
UUID = re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


def shown(text: str, most: int = NAME) -> str:
    """A name from the wire, printable and not too long."""
    cut = printable(text[:most])
    return cut if len(text) <= most else f"{cut}…"


def identity(text: str) -> str:
    """The name by which something is remembered: other names have other ones."""
    text = valid_text(text)
    if len(text) <= IDENTITY:
        return text
    return f"{text[:NAME]}…{blake2b(text.encode(), digest_size=16).hexdigest()}"


def short(member: str) -> str:
    """A member id with 8 letters of its UUID."""
    if BASE64.fullmatch(member):
        return f"{member[:8]}…"
    return shown(UUID.sub(r"\1…", member[:IDENTITY]), 60)


def quoted(text: str) -> str:
    """As it is written in an expression."""
    return json.dumps(text, ensure_ascii=False)


def condition(**names: str | None) -> str:
    """An expression: each of these names has its text. "" where one cannot stand in an expression: too long,
    or no UTF-8.
    """
    if any(
        text is not None and (len(text) > IDENTITY or valid_text(text) != text) for text in names.values()
    ):
        return ""
    parts = [
        f"{name} is None" if text is None else f"{name} == {quoted(text)}" for name, text in names.items()
    ]
    return " and ".join(parts)


def seconds(value: float) -> str:
    """A duration, with two or three digits."""
    if value < 0.9995:
        return f"{value * 1000:.3g} ms"
    if value < 9.95:
        return f"{value:.1f} s"
    return f"{value:.0f} s" if value < 600 else f"{value / 60:.0f} min"


def setting(milliseconds: int) -> str:
    """The value of a setting."""
    return f"{milliseconds / 1000:g} s" if milliseconds >= 1000 else f"{milliseconds} ms"


def counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listed(parts: Sequence[str], most: int = PARTS) -> str:
    """With commas, and the number of those that are left out."""
    return some(parts, most)


def numbers(values: Iterable[int]) -> str:
    """Ranges of numbers: 0-3, 7."""
    ranges: list[list[int]] = []
    for value in sorted(set(values)):
        if ranges and value == ranges[-1][1] + 1:
            ranges[-1][1] = value
        else:
            ranges.append([value, value])
    return listed([f"{a}" if a == b else f"{a}-{b}" for a, b in ranges], RANGES)


def partitions(topics: Mapping[str, Iterable[int]]) -> str:
    """Topics with their partitions; "nothing" for none."""
    named = [f"{shown(topic)} [{numbers(parts)}]" for topic, parts in topics.items()]
    return listed(named, TOPICS) or "nothing"
