"""An obvious evaluation of expressions over values that were read in full: the judge of the compiled one."""

import operator
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from klamm.decoders.schema import ERROR, GROUP, PARTITION, TOPIC, TOPIC_ID, Field, members
from klamm.rules.expressions.tree import (
    Arithmetic,
    Call,
    Compare,
    Constant,
    IsNone,
    Listed,
    Logic,
    Member,
    Name,
    Negative,
    Node,
    Not,
    Quantified,
)
from klamm.rules.frame import Frame

NIL = bytes(16)
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
MARKS = {"error": ERROR, "topic": TOPIC, "partition": PARTITION, "group": GROUP}


def text(value: Any) -> Any:
    if isinstance(value, bytes):
        return (
            urlsafe_b64encode(value).decode().rstrip("=")
            if len(value) == 16
            else value.decode("utf-8", "surrogateescape")
        )
    return value


def conjunction(values: Iterable[bool | None]) -> bool | None:
    found = list(values)
    return False if False in found else None if None in found else True


def negation(value: bool | None) -> bool | None:
    return None if value is None else not value


def disjunction(values: Iterable[bool | None]) -> bool | None:
    return negation(conjunction(map(negation, values)))


class Slow:
    """`at` holds the variables."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.values = frame, frame.values
        self.at: dict[str, Any] = {}

    def __call__(self, node: Node) -> Any:
        match node:
            case Constant(value):
                return value
            case Name("body"):
                return self.values
            case Name("size"):
                return len(self.frame.body)
            case Name(name):
                return self.at[name] if name in self.at else self.values.get(name)
            case Member(of, name):
                value = self(of)
                return None if value is None else value.get(name)
            case Logic("and", terms):
                return conjunction(map(self, terms))
            case Logic(_, terms):
                return disjunction(map(self, terms))
            case Not(of):
                return negation(self(of))
            case Negative(of):
                value = self(of)
                return None if value is None else -value
            case IsNone(of, no):
                return self.for_any(node, lambda: (self(of) is None) != no)
            case Arithmetic(sign, left, right):
                return self.reckoned(sign, self(left), self(right))
            case Compare(first, rest):
                return self.for_any(node, lambda: self.compared(first, rest))
            case Call("len", (of,)):
                value = self(of)
                return None if value is None else len(value)
            case Call("startswith", (one, other)):
                return self.for_any(node, lambda: self.begins(self(one), self(other)))
            case Quantified(word, holds, loops):
                found = self.turns(word, holds, list(loops))
                return found
        raise AssertionError(node)

    def reckoned(self, sign: str, one: Any, other: Any) -> Any:
        if one is None or other is None:
            return None
        try:
            return OPERATORS[sign](one, other)
        except ArithmeticError:
            return None

    def begins(self, one: Any, other: Any) -> bool | None:
        return None if one is None or other is None else text(one).startswith(text(other))

    def compared(self, first: Node, rest: tuple[tuple[str, Node], ...]) -> bool | None:
        found: list[bool | None] = []
        left = self(first)
        for sign, node in rest:
            if isinstance(node, Listed):
                right: Any = [text(item.value) for item in node.items]
            else:
                right = self(node)
            if left is None or right is None:
                found.append(None)
            elif sign in ("in", "not in"):
                right = list(map(text, right)) if isinstance(right, list) else right
                found.append((text(left) in right) == (sign == "in"))
            else:
                found.append(OPERATORS[sign](text(left), text(right)))
            left = right
        return conjunction(found)

    def turns(self, word: str, holds: Node, loops: list[Any]) -> bool | None:
        if not loops:
            return self(holds)
        loop, *deeper = loops
        elements = self(loop.over)
        if elements is None:
            return None
        before, found = dict(self.at), []
        for element in elements:
            self.at[loop.variable] = element
            given = conjunction(map(self, loop.conditions))
            below = self.turns(word, holds, deeper)
            found.append(
                conjunction([given, below]) if word == "any" else disjunction([negation(given), below])
            )
        self.at = before
        return disjunction(found) if word == "any" else conjunction(found)

    def for_any(self, node: Node, ask: Callable[[], bool | None]) -> bool | None:
        """Once for each value of the one name in it that stands for several."""
        names = [name for name in MARKS if name not in self.at and any(n == Name(name) for n in nodes(node))]
        if not names:
            return ask()
        (name,) = names
        found = []
        for value in self.several(name):
            self.at[name] = value
            found.append(ask())
        self.at.pop(name, None)
        return disjunction(found)

    def several(self, name: str) -> list[Any]:
        frame, marks = self.frame, {MARKS[name]} | ({TOPIC_ID} if name == "topic" else set())
        fields = frame.api.fields(frame.side)
        found = list(marked_values(fields, frame.version, self.values, marks, frame.names))
        there = any(True for _ in marked(fields, frame.version, marks))
        return found if there else [None]


def nodes(node: Any) -> Iterator[Any]:
    """A node and all below it, but not what another comparison inside asks."""
    yield node
    for slot in getattr(node, "__dataclass_fields__", {}):
        below = getattr(node, slot)
        for each in below if isinstance(below, tuple) else (below,):
            for one in each if isinstance(each, tuple) else (each,):
                if isinstance(one, Node):
                    yield from nodes(one)


def marked(fields: tuple[Field, ...], version: int, marks: set[str]) -> Iterator[Field]:
    for f in fields:
        if version in f.versions and f.name != "forgotten_topics_data":
            if f.mark in marks:
                yield f
            yield from marked(members(f), version, marks)


def marked_values(
    fields: tuple[Field, ...], version: int, values: Any, marks: set[str], names: Callable[[bytes], Any]
) -> Iterator[Any]:
    """The marked values of a struct and of all in it; None for those in an array or struct that is null."""
    own: list[Any] = []
    topic_id = None
    for f in fields:
        if version not in f.versions or f.name == "forgotten_topics_data":
            continue
        if f.only is not None and values.get(*f.only) != f.only[1]:
            continue  # it says something else
        value = values[f.name]
        if f.kind == "array" and any(True for _ in marked((f,), version, marks)):
            if value is None:
                for _ in marked((f,), version, marks):
                    yield None
            elif members(f):
                for each in value:
                    yield from marked_values(members(f), version, each, marks, names)
            else:
                yield from value
        elif f.kind == "struct":
            if value is not None:
                yield from marked_values(members(f), version, value, marks, names)
            else:
                for m in members(f):
                    if m.kind == "array" and any(True for _ in marked((m,), version, marks)):
                        yield None
        elif f.mark in marks:
            topic_id, own = (value, own) if f.mark == TOPIC_ID else (topic_id, [*own, value])
    there = [value for value in own if value is not None and not (value == "" and topic_id is not None)]
    yield from there
    if not there and topic_id not in (None, NIL):
        yield names(topic_id)
