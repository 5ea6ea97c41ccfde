"""What is wrong with an expression, and where."""

from __future__ import annotations


class ExpressionError(ValueError):
    """`column` counts from 1. An expression may be right for one API and version, and wrong for another."""

    def __init__(self, reason: str, column: int) -> None:
        self.reason, self.column = reason, column
        super().__init__(f"column {column}: {reason}")
