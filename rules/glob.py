"""Names as people select them: `orders-*`, `?` for one character, `[ab]`, several, `!name` for all others."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache


class Glob:
    """Matches a name that fits one of the patterns and none of those that begin with `!`. A name is a glob
    without special characters; case counts, as in Kafka.
    """

    __slots__ = ("_no", "_yes", "patterns")

    def __init__(self, *patterns: str) -> None:
        self.patterns = patterns
        self._yes = _either(tuple(p for p in patterns if not p.startswith("!")))
        self._no = _either(tuple(p[1:] for p in patterns if p.startswith("!")))

    def __call__(self, name: str) -> bool:
        return (self._yes is None or self._yes.match(name) is not None) and (
            self._no is None or self._no.match(name) is None
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Glob) and self.patterns == other.patterns

    def __hash__(self) -> int:
        return hash(self.patterns)

    def __repr__(self) -> str:
        return f"Glob({', '.join(map(repr, self.patterns))})"

    def __str__(self) -> str:
        return ", ".join(self.patterns)


@lru_cache(512)
def _either(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(translate, patterns))) if patterns else None
