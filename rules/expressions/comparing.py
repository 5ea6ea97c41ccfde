"""Two values met by an operator: what may be compared with what, and how one is read for the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from klamm.rules.expressions import logic, work
from klamm.rules.expressions.failure import ExpressionError
from klamm.rules.expressions.kinds import AS, OF_JSON, ORDERED, SAID, Kind, meeting, text_of
from klamm.rules.expressions.logic import Get
from klamm.rules.expressions.names import constant
from klamm.rules.expressions.tree import Constant, Listed, Node

Do = Callable[[Any, Any], bool]


class Made(NamedTuple):
    """A node checked and made. `node` is for messages."""

    node: Node
    kind: Kind
    get: Get

    def read_as(self, kind: Kind, otherwise: str = "") -> Get:
        """Reads it as another kind. `otherwise` follows the message where that is not possible."""
        if self.kind == kind:
            return self.get
        turn = AS.get((self.kind, kind))
        if turn is None:
            raise ExpressionError(f"{self.node} is {SAID[self.kind]}{otherwise}", self.node.column)
        if self.kind == "bytes":
            return logic.sized(turn, self.get, work.TEXT)
        return logic.through(turn, self.get)


def compared(one: Made, operator: str, other: Made) -> Get:
    """== != < <= > >="""
    kind, do = _met(one, other), logic.COMPARE[operator]
    equality = operator in ("==", "!=")
    if not equality and kind not in ORDERED:
        raise ExpressionError(f"{one.node} is {SAID[kind]}: compare it with == or !=", one.node.column)
    if kind == "json":
        return logic.both(_alike(do, equality), one.get, other.get)
    left, right = one.read_as(kind), other.read_as(kind)
    if isinstance(other.node, Constant):
        return logic.with_constant(do, left, right(None))
    return logic.both(do, left, right)


def listed(one: Made, operator: str, right: Listed, items: list[Made]) -> Get:
    """`in` and `not in` a list of constants."""
    kind, *others = {_met(one, item) for item in items}
    if others:
        raise ExpressionError("a list of different kinds", right.column)
    among = frozenset(item.read_as(kind)(None) for item in items)
    return logic.with_constant(logic.COMPARE[operator], one.read_as(kind), among)


def contained(one: Made, operator: str, many: Made, element: Kind | None) -> Get:
    """`in` an array of values (of kind `element`), in one from JSON, or text in text."""
    do = logic.COMPARE[operator]
    if element == "struct":
        raise ExpressionError(_apart(one, many), one.node.column)
    if element is not None:
        kind = _met(one, Made(many.node, element, many.get))
        turn = AS.get((element, kind))
        if turn is not None:
            do = _turned(do, turn)
        return logic.searched(do, one.read_as(kind), many.get, 1)
    if many.kind == "json":
        return logic.searched(_in_json(do), one.get, many.get, 1)
    if isinstance(many.node, Constant) and many.kind == "number":
        equal = "!=" if operator == "not in" else "=="
        raise ExpressionError(f"`in` is for lists: write {one.node} {equal} {many.node}", one.node.column)
    wrong = ": `in` is for lists, arrays of values, and text in text"
    return logic.searched(do, one.read_as("text", wrong), many.read_as("text", wrong), work.TEXT)


def _met(one: Made, other: Made) -> Kind:
    kind = meeting(one.kind, other.kind)
    if kind is None:
        raise ExpressionError(_apart(one, other), one.node.column)
    return kind


def _apart(one: Made, other: Made) -> str:
    for made in (one, other):
        if made.kind == "array":
            return f"{made.node} is an array: write any(... for x in {made.node})"
    for made, value in ((one, other), (other, one)):
        if isinstance(value.node, Constant) and not isinstance(made.node, Constant):
            if (made.kind, value.kind) == ("text", "number"):
                return f'{made.node} is text: write "{value.node}"'
            if (made.kind, value.kind) == ("number", "text") and _is_number(value.node.value):
                quoted = "drop the quotes" if value.node.value.isdecimal() else f"write {value.node.value}"
                return f"{made.node} is a number: {quoted}"
    return f"{one.node} is {SAID[one.kind]}, {other.node} is {SAID[other.kind]}: they cannot be compared"


def _is_number(text: str) -> bool:
    """Whether the text without its quotes is digits, or the name of an error."""
    named = constant(text)
    return text.isdecimal() or (named is not None and named[1] == "number")


def _turned(do: Do, turn: Callable[[Any], Any]) -> Do:
    return lambda one, many: do(one, [turn(each) for each in many])


def _alike(do: Do, equality: bool) -> Callable[[Any, Any], bool | None]:
    """Compares two values from JSON: unknown unless they are of one kind."""

    def made(one: Any, other: Any) -> bool | None:
        kind = OF_JSON.get(type(one))
        comparable = kind is not None and kind == OF_JSON.get(type(other))
        return do(one, other) if comparable and (equality or kind != "boolean") else None

    return made


def _in_json(do: Do) -> Callable[[Any, Any], bool | None]:
    def made(one: Any, many: Any) -> bool | None:
        one = text_of(one) if isinstance(one, bytes) else one
        if isinstance(many, list):
            kind = OF_JSON.get(type(one))
            return do(one, [each for each in many if OF_JSON.get(type(each)) == kind])
        return do(one, many) if isinstance(many, str) and isinstance(one, str) else None

    return made
