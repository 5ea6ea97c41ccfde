"""A tree as a condition in SQL over the exchanges of one version of an API, for one of its frames.

What fits is known: `Expression.fits` has said so. As in klamm.rules.expressions.meaning, node by node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from klamm.decoders.schema import ERROR
from klamm.pipeline.sql import comparing, numbers, patterns, several
from klamm.pipeline.sql.places import BOUNDS, Fields, Variable, Wanted
from klamm.pipeline.sql.several import Names
from klamm.pipeline.sql.values import (
    FALSE,
    NULL,
    TRUE,
    UNKNOWN,
    Value,
    conjunction,
    constant,
    disjunction,
    negation,
)
from klamm.pipeline.sql.words import SETTLED, Asked, follows, of_exchange, settled
from klamm.rules.expressions.body import Place
from klamm.rules.expressions.failure import ExpressionError
from klamm.rules.expressions.logic import COMPARE
from klamm.rules.expressions.names import MARKED
from klamm.rules.expressions.scope import Scope
from klamm.rules.expressions.tree import (
    Arithmetic,
    Call,
    Compare,
    Constant,
    IsNone,
    Item,
    Listed,
    Logic,
    Member,
    Name,
    Negative,
    Node,
    Not,
    Quantified,
)


class Clause(NamedTuple):
    """`reads`: columns that its outcome needs."""

    text: str
    reads: frozenset[str]


def clause(tree: Node, of: Asked, names: Names | None) -> Clause:
    """Raises ExpressionError where columns cannot express it."""
    wanted: Wanted = {}
    making = _Making(of, names, wanted)
    text = making.condition(tree)
    if wanted:  # now all uses of arrays are known
        making = _Making(of, names, wanted)
        text = making.condition(tree)
    return Clause(text, frozenset(making.reads()))


class _Making:
    """One walk over a tree."""

    def __init__(self, of: Asked, names: Names | None, wanted: Wanted) -> None:
        self.of, self.names = of, names
        self.scope = Scope(of.api, of.version, of.side)
        own, asked = self.scope.bodies
        self.fields = (
            Fields(0, own.api, own.version, own.side, wanted),
            Fields(1, asked.api, asked.version, asked.side, wanted),
        )
        self.variables: list[Variable] = []
        self.bound: dict[str, Value] = {}  # names that stand for several values, one of these
        self.met: set[str] = set()  # in the current comparison
        self.denied = 0
        self.needs: set[str] = set()

    def reads(self) -> set[str]:
        return self.needs | {fields.column for fields in self.fields if fields.is_read}

    # Conditions

    def condition(self, node: Node) -> str:
        value = self.make(node)
        return UNKNOWN if value.is_null else value.text

    def make(self, node: Node) -> Value:
        if isinstance(node, Constant):
            return constant(node.value, node.kind)
        if follows(node, SETTLED - self.scope.places.keys()):
            return settled(node, self.of)
        match node:
            case Name() | Member() | Item():
                return self._named(node)
            case Negative(of):
                return numbers.negative(self.make(of), node)
            case Arithmetic(sign, left, right):
                return numbers.arithmetic(sign, self.make(left), self.make(right), node)
            case Call("len", (of,)):
                return self._length(of)
            case Call("lower", (of,)):
                value = self._text(of, "lower")
                return value if value.is_null else Value(f"lower({value.text})", "text")
            case Call("json"):
                raise ExpressionError("json() is not known to the tables", node.column)
        return Value(self._condition(node), "boolean")

    def _condition(self, node: Node) -> str:
        match node:
            case Logic("and", terms):
                return conjunction(map(self.condition, terms))
            case Logic(_, terms):
                return disjunction(map(self.condition, terms))
            case Not(of):
                return self._denied(of)
            case Quantified():
                return self._quantified(node)
            case Compare() if self._asks_for_an_error(node):
                return self._errors(node)
            case Compare(first, rest):
                return self._for_any(node, lambda: self._chain(first, rest))
            case IsNone(of, no):
                return self._for_any(node, lambda: self._presence(of, no))
            case Call():
                return self._for_any(node, lambda: self._called(node))
        raise AssertionError(node)

    def _denied(self, node: Node) -> str:
        self.denied += 1
        text = negation(self.condition(node))
        self.denied -= 1
        return text

    def _quantified(self, node: Quantified) -> str:
        is_any, loops = node.word == "any", []
        join = conjunction if is_any else disjunction
        with self.scope.inner():
            for loop in node.loops:
                slot, place = self.scope.enter(loop)
                array, shape = self.fields[place.source].array(place, self._within(place))
                self.variables.append(Variable(f"{loop.variable}_{slot}", place.path, shape))
                given = [self.condition(one) if is_any else self._denied(one) for one in loop.conditions]
                loops.append((self.variables[slot].name, array, given))
            text = self.condition(node.holds)
        for variable, array, given in reversed(loops):
            text = join([*given, text])
            text = (
                UNKNOWN
                if array == NULL
                else f"{'exists' if is_any else 'forall'}({array}, {variable} -> {text})"
            )
        return text

    # Comparing

    def _chain(self, first: Node, rest: tuple[tuple[str, Node], ...]) -> str:
        lefts = (first, *(right for _, right in rest))
        return conjunction(self._pair(left, *pair) for left, pair in zip(lefts, rest, strict=False))

    def _pair(self, left: Node, operator: str, right: Node) -> str:
        one = self.make(left)
        if isinstance(right, Listed):
            return comparing.listed(one, operator, right)
        if operator in ("in", "not in"):
            text = self._contained(one, left, right)
            return negation(text) if operator == "not in" else text
        return comparing.compared(one, operator, self.make(right), left)

    def _contained(self, one: Value, left: Node, right: Node) -> str:
        """`in` an array of values, or text in text."""
        place = self.scope.place(right)
        if place is None or place.kind != "array":
            many = self._text(right, "in")
            one = self._text(left, "in")
            return UNKNOWN if one.is_null or many.is_null else f"contains({many.text}, {one.text})"
        array, _ = self.fields[place.source].array(place, self._within(place))
        if one.is_null or array == NULL:
            return UNKNOWN
        element = self.fields[place.source].element(place)
        kind = comparing.meeting_kind(one, element)
        if kind == "number" and not one.whole:
            return numbers.among_floats(one, array, element, left)
        return f"array_contains({array}, {comparing.read_as(kind, one)})"

    def _presence(self, of: Node, no: bool) -> str:
        place = self.scope.place(of)
        if place is not None and (
            place.kind in ("array", "struct") or self.fields[place.source].hides(place)
        ):
            if place.there and place.default is not None:
                return TRUE if no else FALSE
            text = self.fields[place.source].is_there(place, self._within(place))
        else:
            value = self.make(of)
            if value.is_known:
                return TRUE if no else FALSE
            text = value.text
        if text == NULL:
            return FALSE if no else TRUE
        return f"({text} IS {'NOT ' * no}NULL)"

    def _called(self, node: Call) -> str:
        first, *others = node.arguments
        one = self._text(first, node.name)
        if node.name in ("startswith", "endswith"):
            other = self._text(others[0], node.name)
            return UNKNOWN if one.is_null or other.is_null else f"{node.name}({one.text}, {other.text})"
        if one.is_null:
            return UNKNOWN
        wanted = [other.value for other in others if isinstance(other, Constant)]
        make = patterns.globbed if node.name == "glob" else patterns.matched
        try:
            return make(one.text, *wanted)
        except ValueError as wrong:
            raise ExpressionError(str(wrong), others[0].column) from None

    # Several values

    def _for_any(self, node: Node, make: Callable[[], str]) -> str:
        """True if it is for any of the values that `topic` and such stand for."""
        outer, self.met = self.met, set()
        text = make()  # fills self.met
        names, self.met = sorted(self.met), outer
        return self._bind(names, node, make) if names else text

    def _bind(self, names: list[str], node: Node, make: Callable[[], str]) -> str:
        if not names:
            return make()
        name, *others = names

        def term(value: Value) -> str:
            self.bound[name] = value
            return self._bind(others, node, make)

        bodies = list(zip(self.scope.bodies, self.fields, strict=True))
        text = several.any_of(name, bodies, self.names, node, term)
        self.bound.pop(name, None)
        return text

    def _asks_for_an_error(self, node: Compare) -> bool:
        """Whether it asks for an error other than NONE: then the column `errors` decides, and no body is
        read.
        """
        values = [node.first, *(value for _, value in node.rest)]
        others = [value for value in values if not isinstance(value, Constant | Listed)]
        if others != [Name("error")] or "error" in self.scope.places or self.of.side != "response":
            return False
        body, fields = self.scope.bodies[0], self.fields[0]
        paths = [mark.path for mark in body.marked(ERROR)]
        nullable = any(
            not fields.never_null(path[:size]) for path in paths for size in range(1, len(path) + 1)
        )
        return bool(paths) and not nullable and not _holds_for_none(node)

    def _errors(self, node: Compare) -> str:
        self.needs.add("response_body" if self.denied else "errors")
        self.bound["error"] = Value("e.code", "number", *BOUNDS["int16"], whole=True)
        text = self._chain(node.first, node.rest)
        del self.bound["error"]
        return text if text in (FALSE, UNKNOWN) else f"exists(errors, e -> {text})"

    # Values

    def _text(self, node: Node, word: str) -> Value:
        value = self.make(node)
        if value.kind == "bytes" and not value.is_null:
            if word not in ("startswith", "endswith", "in"):
                raise ExpressionError(
                    f"{node} is bytes, which columns do not read as text for {word}", node.column
                )
            return Value(comparing.read_as("text", value), "text")
        return value

    def _named(self, node: Name | Member | Item) -> Value:
        place = self.scope.place(node)
        if place is not None:
            fields = self.fields[place.source]
            if fields.hides(place):
                what = "records" if place.kind == "records" else "a secret" if place.secret else "metrics"
                raise ExpressionError(
                    f"{node} is {what}, of which the tables have the size only", node.column
                )
            return fields.value(place, self._within(place))
        match node:
            case Name(name) if name in MARKED:
                self.met.add(name)
                kind = MARKED[name][1]
                return self.bound.get(name) or Value(name, kind, *BOUNDS["int32"], whole=kind == "number")
            case Name(name):
                return of_exchange(name, self.of, node.column)
            case Member(Name("record")) | Item(Member(Name("record"))):
                raise ExpressionError("the tables hold no content of records", node.column)
        raise ExpressionError(f"{node}: json() is not known to the tables", node.column)

    def _length(self, of: Node) -> Value:
        place = self.scope.place(of)
        if place is not None:
            fields, within = self.fields[place.source], self._within(place)
            if place.kind == "array":
                array, _ = fields.array(place, within)
                return comparing.sized(array, "size")
            if fields.hides(place) and place.kind != "text":
                return fields.size(place, within)
        value = self.make(of)
        return comparing.sized(value.text, "octet_length" if value.kind == "bytes" else "length")

    def _within(self, place: Place) -> Variable | None:
        return self.variables[place.variables[-1]] if place.variables else None


def _holds_for_none(node: Compare) -> bool:
    """The result with 0 in the place of `error`."""

    def value(of: Node) -> Any:
        if isinstance(of, Listed):
            return [item.value for item in of.items]
        return of.value if isinstance(of, Constant) else 0

    left = value(node.first)
    for operator, right in node.rest:
        if not COMPARE[operator](left, value(right)):
            return False
        left = value(right)
    return True
