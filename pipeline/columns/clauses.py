"""A tree as a condition in SQL over the exchanges of one version of an API, for one of its frames.

What fits is known: `Expression.fits` has said so. As in klamm.rules.expressions.meaning, node by node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields as slots
from typing import Any, NamedTuple

from klamm.decoders.headers import request_header_version, response_header_version
from klamm.decoders.schema import ERROR, Api, Side
from klamm.pipeline.columns import numbers, patterns, several
from klamm.pipeline.columns.places import BOUNDS, Fields, Variable, Wanted
from klamm.pipeline.columns.several import Names
from klamm.pipeline.columns.values import (
    FALSE,
    NULL,
    TRUE,
    UNKNOWN,
    Value,
    conjunction,
    constant,
    disjunction,
    literal,
    negation,
)
from klamm.rules.expressions.body import Place
from klamm.rules.expressions.failure import ExpressionError
from klamm.rules.expressions.kinds import Kind, meeting
from klamm.rules.expressions.logic import COMPARE
from klamm.rules.expressions.meaning import fitted
from klamm.rules.expressions.names import EXCHANGE, MARKED
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
from klamm.rules.frame import Frame, Peer

SETTLED = {"api", "version", "side"}  # what the API and its version say
NOBODY = Peer("", "", "", "")


class Asked(NamedTuple):
    """One side of an API's version. `asked`: the version of the request, where the answer's is another."""

    api: Api
    version: int
    side: Side
    asked: int


class Clause(NamedTuple):
    """`reads`: columns that its outcome needs."""

    text: str
    reads: frozenset[str]


def clause(tree: Node, of: Asked, names: Names | None) -> Clause:
    """Raises ExpressionError for what columns cannot say."""
    wanted: Wanted = {}
    making = _Making(of, names, wanted)
    text = making.condition(tree)
    if wanted:  # now it is known what is asked of arrays
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
        self.met: set[str] = set()  # those of the comparison at hand
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
        if self._is_settled(node):
            return self._settled(node)
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
            return self._listed(one, operator, right)
        if operator in ("in", "not in"):
            text = self._contained(one, left, right)
            return negation(text) if operator == "not in" else text
        return self._compared(one, operator, self.make(right), left)

    def _compared(self, one: Value, operator: str, other: Value, node: Node) -> str:
        if one.is_null or other.is_null:
            return UNKNOWN
        kind = _meeting(one, other)
        if one.is_known and other.is_known:
            return TRUE if COMPARE[operator](one.known, other.known) else FALSE
        if kind == "number":
            numbers.mixed(one, other, node)
            return numbers.compared(one, operator, other)
        if kind == "text" and operator not in ("==", "!=") and "bytes" in (one.kind, other.kind):
            raise ExpressionError(f'{node} is compared as bytes here: write b"..."', node.column)
        return f"({_as(kind, one)} {numbers.SQL[operator]} {_as(kind, other)})"

    def _listed(self, one: Value, operator: str, right: Listed) -> str:
        if one.is_null:
            return UNKNOWN
        items = [constant(item.value, item.kind) for item in right.items]
        kind = _meeting(one, items[0])
        if kind == "number":
            text = numbers.among(one, items)
        else:
            wanted = dict.fromkeys(_as(kind, item) for item in items)
            text = f"({_as(kind, one)} IN ({', '.join(wanted)}))"
        return negation(text) if operator == "not in" else text

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
        kind = _meeting(one, element)
        if kind == "number" and not one.whole:
            return numbers.among_floats(one, array, element, left)
        return f"array_contains({array}, {_as(kind, one)})"

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
        text = make()  # tells which there are
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
        """One that NONE would not answer: then the column `errors` says it, and no body is read."""
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
            return Value(_as("text", value), "text")
        return value

    def _named(self, node: Name | Member | Item) -> Value:
        place = self.scope.place(node)
        if place is not None:
            fields = self.fields[place.source]
            if fields.hides(place):
                what = "records" if place.kind == "records" else "a secret"
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
                return self._known(name)
            case Member(Name("record")) | Item(Member(Name("record"))):
                raise ExpressionError("the tables hold no content of records", node.column)
        raise ExpressionError(f"{node}: json() is not known to the tables", node.column)

    def _known(self, name: str) -> Value:
        """Of every exchange."""
        kind = EXCHANGE[name].kind
        match name:
            case "principal":
                return Value(NULL, kind)
            case "client":
                return Value(
                    "left(client, length(client) - length(substring_index(client, ':', -1)) - 1)", kind
                )
            case "latency_ms":
                return Value("latency_ms", kind, -(2.0**63), 2.0**63)
            case "size" if self.of.side == "request":
                return self._request_size()
            case "request_size":
                return self._request_size()
            case "size" | "response_size":
                header = 8 + response_header_version(self.of.api, self.of.version)
                return Value(f"(response_bytes - {header})", kind, 0, 2**31, True)
        return Value(name, kind)

    def _request_size(self) -> Value:
        """Without the size field and the header, of which the client id is a part."""
        version = request_header_version(self.of.api, self.of.asked)
        text = "(request_bytes - 12)"
        if version:
            text = f"(request_bytes - {13 + version} - coalesce(octet_length(client_id), 0))"
        return Value(text, "number", 0, 2**31, True)

    def _length(self, of: Node) -> Value:
        place = self.scope.place(of)
        if place is not None:
            fields, within = self.fields[place.source], self._within(place)
            if place.kind == "array":
                array, _ = fields.array(place, within)
                return _sized(array, "size")
            if fields.hides(place) and place.kind != "text":
                return fields.size(place, within)
        value = self.make(of)
        return _sized(value.text, "octet_length" if value.kind == "bytes" else "length")

    def _within(self, place: Place) -> Variable | None:
        return self.variables[place.variables[-1]] if place.variables else None

    def _is_settled(self, node: Any) -> bool:
        """Does it follow from the API, its version and the side?"""
        match node:
            case Name(name):
                return name in SETTLED and name not in self.scope.places
            case Member() | Item() | Quantified() | Call("json"):
                return False
            case Node():
                return all(self._is_settled(getattr(node, slot.name)) for slot in slots(node))
            case tuple():
                return all(map(self._is_settled, node))
        return True

    def _settled(self, node: Node) -> Value:
        api, version, side, _ = self.of
        made = fitted(node, api, version, side, condition=False)
        return constant(made.of(Frame(api, version, side, b"", None, NOBODY, 0)), made.kind)


def _holds_for_none(node: Compare) -> bool:
    """With 0 in the place of `error`."""

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


def _sized(text: str, function: str) -> Value:
    return (
        Value(NULL, "number") if text == NULL else Value(f"{function}({text})", "number", 0, 2**31 - 1, True)
    )


def _meeting(one: Value, other: Value) -> Kind:
    kind = meeting(one.kind, other.kind)
    assert kind is not None
    return kind


def _as(kind: Kind, one: Value) -> str:
    if (one.kind, kind) == ("bytes", "text"):
        if one.is_known:
            return literal(one.known.decode("utf-8", "surrogateescape"))
        return f"CAST({one.text} AS STRING)"
    return one.text
