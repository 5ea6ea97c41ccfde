"""Three-valued logic: True, False, and None for unknown; as in SQL."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence, Sized
from typing import Any

Get = Callable[[Any], Any]  # from a Looking to a value

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
    "in": lambda one, many: one in many,
    "not in": lambda one, many: one not in many,
}  # fmt: skip
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip


def both(do: Callable[[Any, Any], Any], left: Get, right: Get) -> Get:
    """None if either is None."""

    def made(looking: Any) -> Any:
        one = left(looking)
        if one is None:
            return None
        other = right(looking)
        return None if other is None else do(one, other)

    return made


def with_constant(do: Callable[[Any, Any], Any], left: Get, right: Any) -> Get:
    def made(looking: Any) -> Any:
        one = left(looking)
        return None if one is None else do(one, right)

    return made


def through(do: Callable[[Any], Any], get: Get) -> Get:
    def made(looking: Any) -> Any:
        value = get(looking)
        return None if value is None else do(value)

    return made


def reckoned(do: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A division by zero, or a number too large for a float, is unknown."""

    def made(one: Any, other: Any) -> Any:
        try:
            return do(one, other)
        except ArithmeticError:
            return None

    return made


def negation(get: Get) -> Get:
    return through(operator.not_, get)


def every(terms: Sequence[Get], last: bool) -> Get:
    """`and` with `last` False: the first term that is False decides. `or` with True."""
    if len(terms) == 1:
        return terms[0]

    def made(looking: Any) -> bool | None:
        found: bool | None = not last
        for term in terms:
            value: bool | None = term(looking)
            if value is last:
                return last
            if value is None:
                found = None
        return found

    return made


def sized(do: Callable[[Any], Any], get: Get, bytes_for_a_step: int) -> Get:
    """The same as `through`, for what takes time in proportion to the length."""

    def made(looking: Any) -> Any:
        value = get(looking)
        if value is None:
            return None
        if len(value) >= bytes_for_a_step:
            looking.spend(len(value) // bytes_for_a_step)
        return do(value)

    return made


def searched(do: Callable[[Any, Any], Any], one: Get, many: Get, values_for_a_step: int) -> Get:
    """The same as `both`, for what looks at all that is on the right."""

    def made(looking: Any) -> Any:
        value = one(looking)
        if value is None:
            return None
        found = many(looking)
        if found is None:
            return None
        if isinstance(found, Sized):
            looking.spend(len(found) // values_for_a_step)
        return do(value, found)

    return made


def turns(
    slot: int,
    elements: Callable[[Any], Sequence[Any] | range | None],
    term: Get,
    last: bool,
    steps: int,
) -> Get:
    """The same for each element that a variable stands for: `any` with `last` True, `all` with False.
    `steps`: the price of an element. All are paid for before the first is looked at.
    """

    def made(looking: Any) -> bool | None:
        through = elements(looking)
        if through is None:
            return None
        looking.spend(len(through) * steps)
        found: bool | None = not last
        at = looking.at
        for at[slot] in through:
            value: bool | None = term(looking)
            if value is last:
                return last
            if value is None:
                found = None
        return found

    return made
