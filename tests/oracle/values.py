"""Random values for any layout, as `encode` takes them."""

from random import Random
from typing import Any

from klamm.decoders.interpret import Layout
from klamm.decoders.schema import FIXED, UNKNOWN_TAGS, Field, default_of, members, present

TEXTS = ("", "a", "orders", "Grüße", "主题", "🦓", "\0", 'a"b\\c\n')
LONGEST_STRING = 32767


def random_values(of: Layout, random: Random) -> dict[str, Any]:
    """Some fields are left out, and so have their defaults; flexible structs may carry unknown tags."""
    return _struct(of.fields, of, random)


def _struct(fields: tuple[Field, ...], of: Layout, random: Random) -> dict[str, Any]:
    in_place, tagged = present(fields, of.version)
    values = {f.name: _value(f, of, random) for f in [*in_place, *tagged] if not _left_out(f, of, random)}
    if of.flexible and random.randrange(4) == 0:
        # Kafka refuses a tag that it knows from another version.
        first = 1 + max((f.tag for f in fields if f.tag is not None), default=-1)
        tags = sorted(random.sample([*range(first, first + 4), 127, 128, 100_000], random.randint(1, 3)))
        values[UNKNOWN_TAGS] = [(tag, _bytes(random)) for tag in tags]
    return values


def _left_out(f: Field, of: Layout, random: Random) -> bool:
    if default_of(f, of.version) is None and of.version not in f.null:
        return False
    return random.randrange(2 if f.tag is not None else 10) == 0


def _value(f: Field, of: Layout, random: Random) -> Any:
    if of.version in f.null and random.randrange(4) == 0:
        return None
    if f.kind == "struct":
        return _struct(members(f), of, random)
    if f.kind != "array":
        return _scalar(f.kind, random)
    if members(f):
        return [_struct(members(f), of, random) for _ in range(random.randrange(4))]
    size = 120 + random.randrange(20) if random.randrange(12) == 0 else random.randrange(4)
    return [_scalar(str(f.of), random) for _ in range(size)]


def _scalar(kind: str, random: Random) -> Any:
    if kind == "boolean":
        return random.random() < 0.5
    if kind == "float64":
        return random.choice((0.0, -1.5, random.gauss(0, 1e9)))
    if kind == "uuid":
        return random.choice((bytes(16), random.randbytes(16)))
    if kind == "string":
        return _text(random)
    return _integer(kind, random) if kind in FIXED else _bytes(random)


def _integer(kind: str, random: Random) -> int:
    bits = 8 * FIXED[kind][1]
    least, most = (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    special = [value for value in (0, 1, -1, 127, 128, least, most) if least <= value <= most]
    return random.choice(special) if random.randrange(3) == 0 else random.randint(least, most)


def _text(random: Random) -> str:
    text = random.choice(TEXTS)
    if random.randrange(500) == 0:
        return "x" * LONGEST_STRING
    return text * random.randint(1, 60) if random.randrange(8) == 0 else text


def _bytes(random: Random) -> bytes:
    return random.randbytes(random.randrange(300) if random.randrange(8) == 0 else random.randrange(6))
