"""Conditions and values that people write, over one frame and its exchange: `acks == -1 and size > 1000`.

A whitelisted part of Python's expressions, never evaluated by Python; docs/expressions.md says what it means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from klamm.decoders import API, DecodeError
from klamm.decoders.compile import Path
from klamm.decoders.schema import Api, Side
from klamm.rules.expressions import unknown, work
from klamm.rules.expressions.failure import Absent, ExpressionError
from klamm.rules.expressions.meaning import Fitted, fitted
from klamm.rules.expressions.syntax import parsed
from klamm.rules.expressions.tree import Node
from klamm.rules.expressions.varying import HEADER, mentions, mentions_only, varies
from klamm.rules.expressions.work import OverLimit
from klamm.rules.frame import Frame

__all__ = ["SIDES", "Expression", "ExpressionError", "Fitted", "parse"]

SIDES: tuple[Side, ...] = ("request", "response")


@dataclass(frozen=True, slots=True)
class Expression:
    """A tree, compiled for each API, version and side on first use. An evaluation of more than `limit` steps
    raises OverLimit, which is a DecodeError. `secrets`: they may be compared.
    """

    tree: Node
    limit: int = work.LIVE
    secrets: bool = False
    _made: dict[tuple[int, int, Side, bool], Fitted | ExpressionError] = field(
        default_factory=dict, compare=False, repr=False
    )
    _unjudged: list[int] = field(default_factory=lambda: [0], compare=False, repr=False)

    def __str__(self) -> str:
        return str(self.tree)

    def __reduce__(self) -> tuple[type[Expression], tuple[Node, int, bool]]:
        return Expression, (self.tree, self.limit, self.secrets)

    def on(self, api: Api, version: int, side: Side) -> Callable[[Frame], bool | None]:
        """A function that tells whether it holds; None: unknown. Raises ExpressionError where it does not
        fit. The function raises DecodeError.
        """
        return self.fitted(api, version, side).of

    def value_on(self, api: Api, version: int, side: Side) -> Callable[[Frame], Any]:
        """A function that gives its value, None where unknown; errors as above."""
        return self.fitted(api, version, side, condition=False).of

    def holds(self, *frames: Frame | None) -> bool:
        """For any of the frames of an exchange, a response as it came or as klamm sent it on; not for one
        that is absent, or cannot be read, or takes too much work.
        """
        for frame in frames:
            if frame is None or self.fits(frame.api, frame.version, frame.side) is not None:
                continue
            told = frame.told if frame.side == "response" else frame
            for one in (frame,) if told is frame else (frame, told):
                try:
                    if self.on(frame.api, frame.version, frame.side)(one):
                        return True
                except DecodeError:
                    continue
        return False

    @property
    def unjudged(self) -> int:
        """Evaluations that took too much work."""
        return self._unjudged[0]

    def apis(self) -> frozenset[int]:
        """The APIs for which it can hold; empty: all. Raises ExpressionError for none."""
        found = {
            api.key for api in API if any(self.misfit(api, api.versions.last, side) is None for side in SIDES)
        }
        if not found:
            raise self.nowhere(API)
        return frozenset() if len(found) == len(API) else frozenset(found)

    def nowhere(self, apis: Iterable[Api]) -> ExpressionError:
        """The reason why it can hold for none of these APIs: a mistake wherever the names fit, else the names
        that are missing where most of them fit.
        """
        try:
            unknown.check(self.tree, fields=True)
        except ExpressionError as wrong:
            return wrong
        misfits = (self.misfit(api, api.versions.last, side) for api in apis for side in SIDES)
        reasons = [reason for reason in misfits if reason is not None]
        for comparison, reason in unknown.unquoted(self.tree):
            alone = Expression(comparison, self.limit, self.secrets)
            if all(alone.misfit(api, api.versions.last, side) for api in API for side in SIDES):
                return reason
        found = max(reasons, key=lambda one: (not isinstance(one, Absent), one.column, bool(one.advice)))
        if not isinstance(found, Absent):
            return found
        return Absent(f"can hold for no API: {found.wrong}", found.column, found.advice)

    @property
    def reads_records(self) -> bool:
        """Whether it reads the content of records."""
        return mentions(self.tree, {"record"})

    @property
    def reads_headers_only(self) -> bool:
        """Whether it is the same for all exchanges of a connection with the same client id, API and version
        on both sides.
        """
        return mentions_only(self.tree, HEADER)

    def by_request(self, api: Api) -> bool:
        """Whether the request up to its records decides it, in every version."""
        if varies(self.tree):
            return False
        for version in range(api.versions.first, api.versions.last + 1):
            on = [isinstance(self._on(api, version, side, True), Fitted) for side in SIDES]
            if on[1] and not (on[0] and not any(self.paths(api, version, side) for side in SIDES)):
                return False
        return True

    def fits(self, api: Api, version: int, side: Side) -> str | None:
        """Why it is no condition on such frames; None if it is one."""
        wrong = self.misfit(api, version, side)
        return None if wrong is None else str(wrong)

    def misfit(self, api: Api, version: int, side: Side) -> ExpressionError | None:
        """The reason why it does not fit there, as an error."""
        made = self._on(api, version, side, True)
        return _fresh(made) if isinstance(made, ExpressionError) else None

    def paths(self, api: Api, version: int, side: Side) -> tuple[Path, ...]:
        """The paths that are picked from the body."""
        return self.fitted(api, version, side).paths

    def sides(self, api: Api, version: int) -> tuple[Side, ...]:
        """The sides on which it fits, and which have all its names."""
        return tuple(
            side
            for side in SIDES
            if self.fits(api, version, side) is None and not self.fitted(api, version, side).absent
        )

    def fitted(self, api: Api, version: int, side: Side, condition: bool = True) -> Fitted:
        """The expression for one side of one version, made on first use. Raises ExpressionError."""
        made = self._on(api, version, side, condition)
        if isinstance(made, ExpressionError):
            raise _fresh(made)
        return made

    def _on(self, api: Api, version: int, side: Side, condition: bool) -> Fitted | ExpressionError:
        key = api.key, version, side, condition
        made = self._made.get(key)
        if made is None:
            try:
                made = self._counted(
                    fitted(self.tree, api, version, side, condition, self.limit, self.secrets)
                )
            except ExpressionError as wrong:
                made = _fresh(wrong)
            self._made[key] = made
        return made

    def _counted(self, made: Fitted) -> Fitted:
        of, unjudged = made.of, self._unjudged

        def counted(frame: Frame) -> Any:
            try:
                return of(frame)
            except OverLimit:
                unjudged[0] += 1
                raise

        return made._replace(of=counted)


def _fresh(wrong: ExpressionError) -> ExpressionError:
    """The same error without its traceback, whose frames hold what is kept beside it: a circle."""
    return type(wrong)(wrong.wrong, wrong.column, wrong.advice)


def parse(text: str, limit: int = work.LIVE, secrets: bool = False) -> Expression:
    """Raises ExpressionError, and nothing else, in bounded time."""
    tree = parsed(text)
    unknown.check(tree, fields=False)
    return Expression(tree, limit, secrets)
