"""Values in SQL: texts with their kinds, and for numbers what they can be at most."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import inf, isfinite
from typing import Any, NamedTuple

from klamm.decoders.text import valid_text
from klamm.rules.expressions.kinds import Kind

NULL = "NULL"
TRUE, FALSE, UNKNOWN = "true", "false", "CAST(NULL AS BOOLEAN)"  # conditions
PLAIN = re.compile(r"[\w .:/,@+*=()-]*", re.ASCII)
UNSET = object()


class Value(NamedTuple):
    """`low` and `high`: the least and the greatest that a number can be; a float without them may be
    infinite, or no number. `known`: of a constant.
    """

    text: str
    kind: Kind
    low: float = -inf
    high: float = inf
    whole: bool = False
    known: Any = UNSET

    @property
    def is_null(self) -> bool:
        return self.text == NULL

    @property
    def is_known(self) -> bool:
        return self.known is not UNSET


def constant(value: Any, kind: Kind) -> Value:
    if value is None:
        return Value(NULL, kind)
    if kind == "number":
        return Value(literal(value), kind, value, value, isinstance(value, int), value)
    return Value(literal(value), kind, known=value)


def literal(value: Any) -> str:
    """A literal that is equal in all settings of a session: without backslashes, which Spark reads in two
    ways.
    """
    match value:
        case bool():
            return TRUE if value else FALSE
        case int():
            return f"({value})" if value < 0 else str(value)
        case float() if not isfinite(value):
            return f"CAST('{value}' AS DOUBLE)"
        case float():
            return f"({value!r}D)" if value < 0 else f"{value!r}D"
        case bytes():
            return f"X'{value.hex()}'"
    text = valid_text(value)
    return f"'{text}'" if PLAIN.fullmatch(text) else f"CAST(X'{text.encode().hex()}' AS STRING)"


def conjunction(terms: Iterable[str]) -> str:
    """`and`; terms are not asked for behind one that is false."""
    return _joined(terms, " AND ", TRUE, FALSE)


def disjunction(terms: Iterable[str]) -> str:
    return _joined(terms, " OR ", FALSE, TRUE)


def _joined(terms: Iterable[str], word: str, empty: str, decides: str) -> str:
    found: dict[str, None] = {}
    for term in terms:
        if term == decides:
            return decides
        if term != empty:
            found[term] = None
    if not found:
        return empty
    return next(iter(found)) if len(found) == 1 else f"({word.join(found)})"


def negation(text: str) -> str:
    return {TRUE: FALSE, FALSE: TRUE, UNKNOWN: UNKNOWN}.get(text) or f"(NOT {text})"


def let(body: str, *steps: Mapping[str, str]) -> str:
    """`body` over `it.name`, each value being reckoned once; a later step's may be over those before it."""
    first, *later = steps
    text, names = f"array({_struct(first)})", list(first)
    for step in later:
        text = f"transform({text}, it -> {_struct({**{name: f'it.{name}' for name in names}, **step})})"
        names += step
    return f"element_at(transform({text}, it -> {body}), 1)"


def _struct(values: Mapping[str, str]) -> str:
    named = ", ".join(f"'{name}', {text}" for name, text in values.items())
    return f"named_struct({named})"
