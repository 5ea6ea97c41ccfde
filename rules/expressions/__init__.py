"""Conditions and values that people write, over one frame and its exchange: `acks == -1 and size > 1000`.

A whitelisted part of Python's expressions, never evaluated by Python; docs/expressions.md says what it means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from klamm.decoders.compile import Path
from klamm.decoders.schema import Api, Side
from klamm.rules.expressions.failure import ExpressionError
from klamm.rules.expressions.meaning import Fitted, fitted
from klamm.rules.expressions.syntax import parsed
from klamm.rules.expressions.tree import Node
from klamm.rules.frame import Frame

__all__ = ["Expression", "ExpressionError", "Fitted", "parse"]

SIDES: tuple[Side, ...] = ("request", "response")


@dataclass(frozen=True, slots=True)
class Expression:
    """A tree, and what it means for each API, version and side that was asked for so far."""

    tree: Node
    _made: dict[tuple[int, int, Side, bool], Fitted | ExpressionError] = field(
        default_factory=dict, compare=False, repr=False
    )

    def __str__(self) -> str:
        return str(self.tree)

    def on(self, api: Api, version: int, side: Side) -> Callable[[Frame], bool | None]:
        """Does it hold? None: unknown. Raises ExpressionError where it does not fit. What is returned raises
        DecodeError.
        """
        return self.fitted(api, version, side).of

    def value_on(self, api: Api, version: int, side: Side) -> Callable[[Frame], Any]:
        """Its value, None where unknown; errors as above."""
        return self.fitted(api, version, side, condition=False).of

    def fits(self, api: Api, version: int, side: Side) -> str | None:
        """Why it is no condition on such frames; None if it is one."""
        try:
            self.fitted(api, version, side)
        except ExpressionError as wrong:
            return str(wrong)
        return None

    def paths(self, api: Api, version: int, side: Side) -> tuple[Path, ...]:
        """What is picked of the body. Of the request of a response: `fitted(...).request_paths`."""
        return self.fitted(api, version, side).paths

    def sides(self, api: Api, version: int) -> tuple[Side, ...]:
        """Where it fits, and nothing that it names is absent."""
        return tuple(
            side
            for side in SIDES
            if self.fits(api, version, side) is None and not self.fitted(api, version, side).absent
        )

    def fitted(self, api: Api, version: int, side: Side, condition: bool = True) -> Fitted:
        """All that is known of it there, made on first use. Raises ExpressionError."""
        key = api.key, version, side, condition
        made = self._made.get(key)
        if made is None:
            try:
                made = fitted(self.tree, api, version, side, condition)
            except ExpressionError as wrong:
                made = wrong
            self._made[key] = made
        if isinstance(made, ExpressionError):
            raise ExpressionError(made.reason, made.column)
        return made


def parse(text: str) -> Expression:
    """Raises ExpressionError, and nothing else, in bounded time."""
    return Expression(parsed(text))
