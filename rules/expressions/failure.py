"""Why an expression is wrong, and where."""

from __future__ import annotations


class ExpressionError(ValueError):
    """`column` counts from 1; `advice` says how to write it, where `wrong` does not. An expression may be
    right for one API and version, and wrong for another.
    """

    def __init__(self, wrong: str, column: int, advice: str = "") -> None:
        self.wrong, self.column, self.advice = wrong, column, advice
        super().__init__(self.at(f" (column {column})"))

    @property
    def reason(self) -> str:
        """The message without the column."""
        return self.at("")

    def at(self, place: str) -> str:
        """The same error with another place than the column."""
        return f"{self.wrong}{place}{self.advice}"


class Secret(ExpressionError):
    """A secret would be told, letter by letter, by what an expression finds."""


class Absent(ExpressionError):
    """Frames of this side of the API have no such thing; others may."""
