"""Numbers that look random and are not: the same seed, rule, connection and match give the same, whatever
other connections do meanwhile.
"""

from __future__ import annotations

from hashlib import blake2b

_MASK = 2**64 - 1
_STEP = 0x9E3779B97F4A7C15  # splitmix64 (Steele, Lea, Flood 2014)
PER_MATCH = 1024  # draws that one match may take


def stream(seed: int, rule: str, connection: str) -> int:
    """The first number of one rule on one connection."""
    return int.from_bytes(blake2b(f"{seed}\0{rule}\0{connection}".encode(), digest_size=8).digest(), "big")


def number(start: int, ordinal: int) -> float:
    """The `ordinal`-th number of a stream: 0 <= number < 1."""
    z = (start + (ordinal + 1) * _STEP) & _MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & _MASK
    return ((z ^ z >> 31) >> 11) / 2**53


class Draws:
    """The numbers for one match, one after another."""

    __slots__ = ("_next", "_start")

    def __init__(self, start: int, match: int) -> None:
        self._start, self._next = start, match * PER_MATCH

    def __call__(self) -> float:
        self._next += 1
        return number(self._start, self._next)
