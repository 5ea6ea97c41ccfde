"""Names as people select them: `orders-*`, `?` for one character, `[ab]`, several, `!name` for all others."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache

SPECIAL = re.compile(r"[*?\[]")


class Glob:
    """Matches a name that fits one of the patterns and none of those that begin with `!`. A name is a glob
    without special characters; case counts, as in Kafka. `names` are those that it selects, where it is no
    more than a list of names.
    """

    __slots__ = ("_no", "_yes", "names", "patterns")

    def __init__(self, *patterns: str) -> None:
        self.patterns = patterns
        self._yes = _either(tuple(p for p in patterns if not p.startswith("!")))
        self._no = _either(tuple(p[1:] for p in patterns if p.startswith("!")))
        plain = not any(pattern.startswith("!") or SPECIAL.search(pattern) for pattern in patterns)
        self.names = frozenset(patterns) if plain and patterns else None

    def __call__(self, *names: str) -> bool:
        """Of several names of one thing, one has to fit, and none may be taken out."""
        return (self._yes is None or any(map(self._yes, names))) and not (
            self._no is not None and any(map(self._no, names))
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Glob) and self.patterns == other.patterns

    def __hash__(self) -> int:
        return hash(self.patterns)

    def __reduce__(self) -> tuple[type[Glob], tuple[str, ...]]:
        return Glob, self.patterns

    def __repr__(self) -> str:
        return f"Glob({', '.join(map(repr, self.patterns))})"

    def __str__(self) -> str:
        return ", ".join(self.patterns)


@lru_cache(512)
def _either(patterns: tuple[str, ...]) -> Callable[[str], object] | None:
    """A test of a name. Names are looked up, globs are one expression."""
    names = frozenset(pattern for pattern in patterns if not SPECIAL.search(pattern))
    globs = [pattern for pattern in patterns if pattern not in names]
    if not globs:
        return names.__contains__ if names else None
    match = re.compile("|".join(map(translate, globs))).match
    return (lambda name: name in names or match(name)) if names else match
