"""An expression as a value: nodes that compare, hash, and print as text that parses to the same tree.

`column` is where a node stood in its text, from 1; two trees of different columns are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from klamm.rules.expressions.kinds import Kind

# How closely operators bind, as in Python.
OR, AND, NOT, COMPARE, SUM, PRODUCT, NEGATIVE, PRIMARY = range(1, 9)
BINDING = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "//": PRODUCT, "%": PRODUCT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    column: int = field(default=1, compare=False, repr=False)
    binding: ClassVar[int] = PRIMARY


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """`name` is the written name, if it is one of Kafka's: NOT_COORDINATOR, Metadata."""

    value: Any
    kind: Kind
    name: str = ""

    def __str__(self) -> str:
        return self.name or repr(self.value)


@dataclass(frozen=True, slots=True)
class Listed(Node):
    """Constants to the right of `in`."""

    items: tuple[Constant, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True, slots=True)
class Name(Node):
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Member(Node):
    """of.name"""

    of: Node
    name: str

    def __str__(self) -> str:
        return f"{self.of}.{self.name}"


@dataclass(frozen=True, slots=True)
class Item(Node):
    """of["key"], of[0]"""

    of: Node
    key: str | int

    def __str__(self) -> str:
        return f"{self.of}[{self.key!r}]"


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A method is a call with its object as the first argument."""

    name: str
    arguments: tuple[Node, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Negative(Node):
    of: Node
    binding: ClassVar[int] = NEGATIVE

    def __str__(self) -> str:
        return f"-{_inside(self.of, PRIMARY)}"


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    operator: str
    left: Node
    right: Node

    def __str__(self) -> str:
        own = BINDING[self.operator]
        return f"{_inside(self.left, own)} {self.operator} {_inside(self.right, own + 1)}"


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """first < second == third: `rest` are the operators with their right sides."""

    first: Node
    rest: tuple[tuple[str, Node], ...]
    binding: ClassVar[int] = COMPARE

    def __str__(self) -> str:
        tail = "".join(f" {operator} {_inside(node, SUM)}" for operator, node in self.rest)
        return _inside(self.first, SUM) + tail


@dataclass(frozen=True, slots=True)
class IsNone(Node):
    """of is None; `no`: of is not None."""

    of: Node
    no: bool
    binding: ClassVar[int] = COMPARE

    def __str__(self) -> str:
        return f"{_inside(self.of, SUM)} is {'not ' * self.no}None"


@dataclass(frozen=True, slots=True)
class Not(Node):
    of: Node
    binding: ClassVar[int] = NOT

    def __str__(self) -> str:
        return f"not {_inside(self.of, NOT)}"


@dataclass(frozen=True, slots=True)
class Logic(Node):
    operator: Literal["and", "or"]
    terms: tuple[Node, ...]

    def __str__(self) -> str:
        own = _binding(self) + 1
        return f" {self.operator} ".join(_inside(term, own) for term in self.terms)


@dataclass(frozen=True, slots=True)
class Loop(Node):
    """for variable in over if condition if condition"""

    variable: str
    over: Node
    conditions: tuple[Node, ...]

    def __str__(self) -> str:
        tail = "".join(f" if {_inside(condition, OR)}" for condition in self.conditions)
        return f"for {self.variable} in {self.over}{tail}"


@dataclass(frozen=True, slots=True)
class Quantified(Node):
    """any(holds for ... in ...)"""

    word: Literal["any", "all"]
    holds: Node
    loops: tuple[Loop, ...]

    def __str__(self) -> str:
        return f"{self.word}({' '.join(map(str, (self.holds, *self.loops)))})"


def _binding(node: Node) -> int:
    match node:
        case Arithmetic():
            return BINDING[node.operator]
        case Logic():
            return OR if node.operator == "or" else AND
        case Constant(value=int() | float()) if not node.name and node.value < 0:
            return NEGATIVE
    return node.binding


def _inside(node: Node, least: int) -> str:
    return str(node) if _binding(node) >= least else f"({node})"
