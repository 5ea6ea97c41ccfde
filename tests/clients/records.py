"""Records whose bytes follow from a seed, and digests of what was read. java/Records.java does the same."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Headers = Sequence[tuple[str, bytes]]


class Record(NamedTuple):
    """A record that a test sends."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]


def record(seed: str, index: int, size: int = 0, headers: bool = True) -> Record:
    """Record `index` of `seed`. Keys and values may be null or empty; a value has at least `size` bytes."""
    draw = hashlib.sha256(f"{seed}/{index}".encode()).digest()
    key = None if draw[0] < 32 else draw[: draw[1] % 16]
    repeats = draw[2] % 8 if not size else -(-size // len(draw))
    value = None if draw[3] < 16 and key is not None and not size else draw * repeats
    names = [(f"name-{number}", draw[6 : 6 + draw[5] % 8]) for number in range(draw[4] % 3)]
    return Record(key, value, names if headers else [])


def fingerprint(topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> str:
    """32 hex digits that differ where any byte differs, null and empty told apart."""
    parts: list[bytes | None] = [topic.encode(), key, value]
    for name, content in headers:
        parts += [name.encode(), content]
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(b"null;" if part is None else b"%d:%s;" % (len(part), part))
    return hashed.hexdigest()[:32]


def digest(fingerprints: Iterable[str]) -> str:
    """One digest of many records, in whatever order they came."""
    return hashlib.sha256("\n".join(sorted(fingerprints)).encode()).hexdigest()


def expected(topic: str, seed: str, indices: Iterable[int], size: int = 0, headers: bool = True) -> list[str]:
    """The fingerprints of records of `seed`."""
    return [fingerprint(topic, *record(seed, index, size, headers)) for index in indices]
