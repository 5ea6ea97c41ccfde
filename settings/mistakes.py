"""Mistakes in what somebody wrote: where each is, in which key, and why."""

from __future__ import annotations

from typing import NamedTuple

from klamm.settings.printable import printable

Path = tuple[str | int, ...]

LONGEST = 1000  # characters of a reason


class Place(NamedTuple):
    """The place of a value: a file, line and column from 1; or an option, line 0."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


class Mistake(NamedTuple):
    """One mistake."""

    place: Place
    path: Path
    reason: str

    def __str__(self) -> str:
        key = dotted(self.path) if self.place.line else ""
        reason = self.reason if len(self.reason) <= LONGEST else f"{self.reason[:LONGEST]}..."
        return printable(": ".join(part for part in (str(self.place), key, reason) if part))


class ConfigError(Exception):
    """Everything that is wrong with a configuration, in the order of its lines."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        self.mistakes = tuple(sorted(set(mistakes)))
        super().__init__("\n".join(map(str, self.mistakes)))


def dotted(path: Path) -> str:
    """clusters[0].listen"""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
