"""Numbers as Python reckons with them: whole ones without bounds, floats, a floor under `//` and `%`.

What a number can be at most is known of every field, so types are chosen that hold every result; where there
is none, it is an ExpressionError.
"""

from __future__ import annotations

import math
from math import inf

from klamm.pipeline.sql.values import FALSE, NULL, TRUE, Value, conjunction, constant, let, literal
from klamm.rules.expressions.failure import ExpressionError
from klamm.rules.expressions.logic import ARITHMETIC, COMPARE, reckoned
from klamm.rules.expressions.tree import Node

LONG, EXACT, DIGITS = 2**63, 2**53, 10**38
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
SQL = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def negative(one: Value, node: Node) -> Value:
    return one if one.is_null else arithmetic("-", constant(0, "number"), one, node)


def arithmetic(sign: str, one: Value, other: Value, node: Node) -> Value:
    """Unknown for a division by zero."""
    if one.is_null or other.is_null:
        return Value(NULL, "number")
    if one.is_known and other.is_known:
        return constant(reckoned(ARITHMETIC[sign])(one.known, other.known), "number")
    if not (one.whole and other.whole):
        try:
            return _floats(sign, one, other)
        except OverflowError:  # a number too large for a float
            return Value(NULL, "number")
    if sign == "/":
        return _quotient(one, other, node)
    if sign in ("//", "%"):
        return _floored(sign, one, other, node)
    low, high = _corners(sign, one, other)
    kind = _type(low, high, node)
    return Value(f"({_as(kind, one)} {sign} {_as(kind, other)})", "number", low, high, True)


def _corners(sign: str, one: Value, other: Value) -> tuple[float, float]:
    do = ARITHMETIC[sign]
    found = [do(a, b) for a in (one.low, one.high) for b in (other.low, other.high)]
    return min(found), max(found)


def _type(low: float, high: float, node: Node) -> str:
    if low >= -LONG and high < LONG:
        return "BIGINT"
    if low > -DIGITS and high < DIGITS:
        return "DECIMAL(38, 0)"
    raise ExpressionError(f"{node} may have more than 38 digits, which no column holds", node.column)


def _as(kind: str, one: Value) -> str:
    return one.text if one.is_known and kind == "BIGINT" else f"CAST({one.text} AS {kind})"


def double(one: Value) -> str:
    return (
        literal(float(one.known))
        if one.is_known
        else f"CAST({one.text} AS DOUBLE)"
        if one.whole
        else one.text
    )


def _quotient(one: Value, other: Value, node: Node) -> Value:
    """Floats hold both exactly, so the result is rounded once, as in Python."""
    if max(map(abs, (one.low, one.high, other.low, other.high))) > EXACT:
        raise ExpressionError(
            f"{node} may divide numbers beyond 2**53, which columns round: write //", node.column
        )
    most = max(abs(one.low), abs(one.high))
    return Value(f"({double(one)} / nullif({double(other)}, 0.0D))", "number", -most, most)


def _floored(sign: str, one: Value, other: Value, node: Node) -> Value:
    if _type(one.low, one.high, node) != "BIGINT" or _type(other.low, other.high, node) != "BIGINT":
        raise ExpressionError(
            f"{node} may be of numbers beyond 64 bits, which columns do not divide", node.column
        )
    down = "(it.r <> 0 AND (it.r < 0) <> (it.y < 0))"
    terms = {"x": _as("BIGINT", one), "y": _as("BIGINT", other)}, {"r": "it.x % nullif(it.y, 0)"}
    if sign == "%":
        low, high = min(0, other.low + 1), max(0, other.high - 1)
        return Value(let(f"it.r + IF({down}, it.y, 0)", *terms), "number", low, high, True)
    most = max(abs(one.low), abs(one.high), 1)
    floor = f"it.x div nullif(it.y, 0) - IF({down}, 1, 0)"
    if one.low == -LONG and other.low <= -1 <= other.high:  # beyond BIGINT
        wide = f"CAST(CASE WHEN it.y <> -1 THEN {floor} END AS DECIMAL(38, 0))"
        floor = f"CASE WHEN it.y = -1 THEN -CAST(it.x AS DECIMAL(38, 0)) ELSE {wide} END"
    return Value(let(floor, *terms), "number", -most, most, True)


def _floats(sign: str, one: Value, other: Value) -> Value:
    x, y = double(one), double(other)
    if sign in ("//", "%"):
        text = _floats_floored(sign, x, y)
    else:
        text = f"({x} / nullif({y}, 0.0D))" if sign == "/" else f"({x} {sign} {y})"
    if sign in "//%" and other.low <= 0 <= other.high:
        return Value(text, "number")
    if sign == "%":
        most = max(abs(other.low), abs(other.high))
        low, high = -most, most
    else:
        low, high = _corners(sign, one._replace(low=float(one.low), high=float(one.high)), other)
    return Value(text, "number", low, high) if -inf < low <= high < inf else Value(text, "number")


def _floats_floored(sign: str, x: str, y: str) -> str:
    """As CPython does it: the remainder has the sign of the divisor, and the quotient fits it."""
    terms = {"x": x, "y": y}, {"r": "it.x % nullif(it.y, 0.0D)"}
    turns = "(it.r <> 0 AND (it.r < 0) <> (it.y < 0))"
    if sign == "%":
        return let(f"IF({turns}, it.r + it.y, it.r)", *terms)
    whole = {"q": f"(it.x - it.r) / nullif(it.y, 0.0D) - IF({turns}, 1.0D, 0.0D)"}
    floor = {"f": "IF(abs(it.q) < 9007199254740992D, CAST(floor(it.q) AS DOUBLE), it.q)"}
    return let("IF(it.q - it.f > 0.5D, it.f + 1.0D, it.f)", *terms, whole, floor)


def compared(one: Value, operator: str, other: Value) -> str:
    """The comparison as a condition. Exact also between whole numbers and floats; a value that is no number
    is unequal to all.
    """
    if one.is_known:
        if other.is_known:
            return TRUE if COMPARE[operator](one.known, other.known) else FALSE
        one, operator, other = other, MIRRORED[operator], one
    if one.whole and other.is_known:
        return _whole_with(one, operator, other.known)
    if one.whole and other.whole:
        return f"({one.text} {SQL[operator]} {other.text})"
    if other.is_known and other.whole:
        return _float_with(one, operator, other.known)
    return _floats_compared(one, operator, other)


def _whole_with(one: Value, operator: str, other: float) -> str:
    if math.isnan(other):
        return decided(operator == "!=", one.text)
    bound = min(max(other, one.low - 1), one.high + 1)  # where it lies beyond, any number beyond does
    if operator in ("==", "!=") and bound != math.floor(bound):
        return decided(operator == "!=", one.text)
    whole = math.floor(bound) if operator in ("<=", ">") else math.ceil(bound)
    return f"({one.text} {SQL[operator]} {literal(whole)})"


def _float_with(one: Value, operator: str, other: int) -> str:
    """A whole number that no float is lies between two of them."""
    try:
        near = float(other)
    except OverflowError:
        near = inf if other > 0 else -inf
    if near != other:
        if operator in ("==", "!="):
            return decided(operator == "!=", one.text)
        above = near > other
        operator = (">=" if above else ">") if ">" in operator else ("<" if above else "<=")
    return _floats_compared(one, operator, constant(near, "number"))


def decided(outcome: bool, *texts: str) -> str:
    """The same outcome for all values; unknown for an unknown one."""
    known = conjunction(f"{text} IS NOT NULL" for text in texts)
    return f"(CASE WHEN {known} THEN {TRUE if outcome else FALSE} END)"


def _floats_compared(one: Value, operator: str, other: Value) -> str:
    """Comparison of floats: to Spark, NaN equals itself and is the greatest."""
    x, y = double(one), double(other)
    text = f"({x} {SQL[operator]} {y})"
    odd = [t for t, v in ((x, one), (y, other)) if not v.whole and not -inf < v.low <= v.high < inf]
    if not odd:
        return text
    isnan = " OR ".join(f"isnan({t})" for t in odd)
    return f"(CASE WHEN {isnan} THEN {decided(operator == '!=', x, y)} ELSE {text} END)"


def among(one: Value, items: list[Value]) -> str:
    """`in` a list of constants."""
    if one.whole:
        held = [item.known for item in items if item.known == math.floor(item.known)]
        wanted: list[float] = [int(number) for number in held if one.low <= number <= one.high]
    else:
        wanted = [float(item.known) for item in items if float(item.known) == item.known]
    if not wanted:
        return decided(False, one.text)
    return f"({one.text} IN ({', '.join(map(literal, dict.fromkeys(wanted)))}))"


def among_floats(one: Value, array: str, element: Value, node: Node) -> str:
    """`in` an array of whole numbers."""
    if one.is_known:
        whole = math.isfinite(one.known) and one.known == int(one.known)
        return f"array_contains({array}, {literal(int(one.known))})" if whole else decided(False, array)
    mixed(one, element, node)
    return f"array_contains(CAST({array} AS ARRAY<DOUBLE>), {one.text})"


def mixed(one: Value, other: Value, node: Node) -> None:
    """Raises ExpressionError where a whole number that a float may not hold meets one that is no constant."""
    if one.whole == other.whole or one.is_known or other.is_known:
        return
    whole = one if one.whole else other
    if max(abs(whole.low), abs(whole.high)) > EXACT:
        raise ExpressionError(f"{node} may be beyond 2**53, and is compared with a float", node.column)
