"""Two values met by an operator, each read for the other; as in klamm.rules.expressions.comparing."""

from __future__ import annotations

from klamm.pipeline.sql import numbers
from klamm.pipeline.sql.values import FALSE, NULL, TRUE, UNKNOWN, Value, constant, literal, negation
from klamm.rules.expressions.failure import ExpressionError
from klamm.rules.expressions.kinds import Kind, meeting
from klamm.rules.expressions.logic import COMPARE
from klamm.rules.expressions.tree import Listed, Node


def compared(one: Value, operator: str, other: Value, node: Node) -> str:
    if one.is_null or other.is_null:
        return UNKNOWN
    kind = meeting_kind(one, other)
    if one.is_known and other.is_known:
        return TRUE if COMPARE[operator](one.known, other.known) else FALSE
    if kind == "number":
        numbers.mixed(one, other, node)
        return numbers.compared(one, operator, other)
    if kind == "text" and operator not in ("==", "!=") and "bytes" in (one.kind, other.kind):
        raise ExpressionError(f'{node} is compared as bytes here: write b"..."', node.column)
    return f"({read_as(kind, one)} {numbers.SQL[operator]} {read_as(kind, other)})"


def listed(one: Value, operator: str, right: Listed) -> str:
    if one.is_null:
        return UNKNOWN
    items = [constant(item.value, item.kind) for item in right.items]
    kind = meeting_kind(one, items[0])
    if kind == "number":
        text = numbers.among(one, items)
    else:
        wanted = dict.fromkeys(read_as(kind, item) for item in items)
        text = f"({read_as(kind, one)} IN ({', '.join(wanted)}))"
    return negation(text) if operator == "not in" else text


def sized(text: str, function: str) -> Value:
    """The result of a function of the length of a value."""
    if text == NULL:
        return Value(NULL, "number")
    return Value(f"{function}({text})", "number", 0, 2**31 - 1, True)


def meeting_kind(one: Value, other: Value) -> Kind:
    kind = meeting(one.kind, other.kind)
    assert kind is not None
    return kind


def read_as(kind: Kind, one: Value) -> str:
    if (one.kind, kind) == ("bytes", "text"):
        if one.is_known:
            return literal(one.known.decode("utf-8", "surrogateescape"))
        return f"CAST({one.text} AS STRING)"
    return one.text
