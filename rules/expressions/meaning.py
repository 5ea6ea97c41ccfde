"""Checks a tree for one side of one version of an API, and turns it into closures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from klamm.decoders.compile import Path
from klamm.decoders.schema import Api, Side
from klamm.rules.expressions import logic, names, work
from klamm.rules.expressions.body import Looking
from klamm.rules.expressions.comparing import Made, compared, contained, listed
from klamm.rules.expressions.content import for_any_record
from klamm.rules.expressions.failure import ExpressionError
from klamm.rules.expressions.kinds import SAID, Kind
from klamm.rules.expressions.logic import Get
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
from klamm.rules.frame import Frame

WHOLE = frozenset({"array", "struct", "records", "headers"})  # no values of their own


class Fitted(NamedTuple):
    """An expression for one side of one version. `paths` are picked from a frame's body; `absent` are the
    paths that this version lacks, where the expression is unknown.
    """

    kind: Kind
    of: Callable[[Frame], Any]
    paths: tuple[Path, ...]
    absent: tuple[Path, ...]


def fitted(
    tree: Node,
    api: Api,
    version: int,
    side: Side,
    condition: bool,
    limit: int = work.LIVE,
    secrets: bool = False,
) -> Fitted:
    """`limit`: the steps of an evaluation. `secrets`: they may be compared. Raises ExpressionError."""
    scope = Scope(api, version, side, secrets and condition)
    making = _Making(scope)
    made = Made(tree, "boolean", making.condition(tree)) if condition else making.make(tree)
    if made.kind in WHOLE:
        raise ExpressionError(f"{tree} is {SAID[made.kind]}, not one value", tree.column)
    if scope.records and not condition:
        raise ExpressionError("a frame may hold many records: ask in a condition", tree.column)
    get = for_any_record(made.get, scope.bodies[0], work.price(tree)) if scope.records else made.get
    bodies, variables = scope.bodies, scope.variables

    def of(frame: Frame) -> Any:
        looking = Looking(frame, bodies, variables, limit)
        try:
            return get(looking)
        finally:
            frame.work += limit - looking.left

    own, asked = bodies
    absent = tuple(dict.fromkeys(own.absent + asked.absent))
    return Fitted(made.kind, of, tuple(own.wanted), absent)


class _Making:
    """One walk over a tree."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def condition(self, node: Node) -> Get:
        made = self.make(node)
        if made.kind not in ("boolean", "json"):
            raise ExpressionError(_as_condition(made), node.column)
        return made.read_as("boolean")

    def make(self, node: Node) -> Made:
        match node:
            case Constant(value, kind):
                return Made(node, kind, lambda looking: value)
            case Name() | Member() | Item():
                return self._named(node)
            case Arithmetic() | Negative() | Call("len"):
                return Made(node, "number", self._number(node))
            case Call("lower" | "json"):
                return self._called(node)
        return Made(node, "boolean", self._condition(node))

    def _condition(self, node: Node) -> Get:
        match node:
            case Logic(operator, terms):
                return logic.every([self.condition(term) for term in terms], operator == "or")
            case Not(of):
                return logic.negation(self.condition(of))
            case Quantified():
                return self._quantified(node)
            case Compare(first, rest):
                lefts = (first, *(right for _, right in rest))
                pairs = zip(lefts, rest, strict=False)
                return self._for_any(node, lambda: logic.every([self._pair(a, *b) for a, b in pairs], False))
            case IsNone(of, no):
                return self._for_any(node, lambda: self._presence(of, no))
            case Call():
                return self._for_any(node, lambda: self._called(node).get)
        raise ExpressionError(f"{node} stands to the right of `in` only", node.column)

    def _named(self, node: Name | Member | Item) -> Made:
        place = self.scope.place(node)
        made = self.scope.at(node, place) if place is not None else self.scope.known(node)
        if made is not None or isinstance(node, Name):
            assert made is not None
            return made
        of, key = self.make(node.of), node.name if isinstance(node, Member) else node.key
        if of.kind != "json":
            raise ExpressionError(f"{node.of} is {SAID[of.kind]}: nothing is in it", node.column)
        return Made(node, "json", logic.through(lambda value: _inside(value, key), of.get))

    def _number(self, node: Node) -> Get:
        match node:
            case Negative(of):
                get = self.make(of).read_as("number", ": - is for numbers")
                return logic.through(lambda value: -value, get)
            case Arithmetic(sign, left, right):
                gets = [self.make(n).read_as("number", f": {sign} is for numbers") for n in (left, right)]
                return logic.both(logic.reckoned(logic.ARITHMETIC[sign]), *gets)
            case Call(_, (of,)):
                place = self.scope.place(of)
                if place is not None and place.kind == "array":
                    return logic.through(len, self.scope.bodies[place.source].elements(place))
                if place is not None and place.secret and place.kind == "bytes":
                    return logic.through(len, self.scope.bodies[place.source].get(place))
                made = self.make(of)
                if made.kind not in ("text", "bytes", "records", "json"):
                    raise ExpressionError(f"{of} is {SAID[made.kind]}, and has no length", of.column)
                return logic.through(
                    lambda v: len(v) if isinstance(v, str | bytes | list) else None, made.get
                )
        raise AssertionError(node)

    def _called(self, node: Call) -> Made:
        function, (first, *others) = names.FUNCTIONS[node.name], node.arguments
        made, do = self.make(first), function.do
        if node.name == "json":
            if made.kind not in ("bytes", "text"):
                raise ExpressionError(f"{first} is {SAID[made.kind]}, not bytes or text", first.column)
            return Made(node, "json", logic.sized(function.do, made.get, work.JSON))
        wrong = f": {node.name} is for text"
        get = made.read_as("text", wrong)
        if function.prepare is not None:
            do = function.prepare(*(other.value for other in others if isinstance(other, Constant)))
        elif others:
            other = self.make(others[0]).read_as("text", wrong)
            return Made(node, function.gives, logic.both(do, get, other))
        return Made(node, function.gives, logic.sized(do, get, work.TEXT))

    def _for_any(self, node: Node, make: Callable[[], Get]) -> Get:
        """True if it is for any of the values that `topic`, `error` and such stand for."""
        outer, self.scope.compared = self.scope.compared, {}
        get = make()
        compared, self.scope.compared = self.scope.compared, outer
        return self.scope.for_any(get, compared, node)

    def _pair(self, left: Node, operator: str, right: Node) -> Get:
        one = self.make(left)
        if isinstance(right, Listed):
            return listed(one, operator, right, [self.make(item) for item in right.items])
        many = self.make(right)
        if operator in ("in", "not in"):
            place = self.scope.place(right) if many.kind == "array" else None
            return contained(one, operator, many, place.element if place else None)
        return compared(one, operator, many)

    def _presence(self, of: Node, no: bool) -> Get:
        place = self.scope.place(of)
        if place is not None and not place.path:
            raise ExpressionError(f"{of} is always there", of.column)
        get = self.make(of).get if place is None else self.scope.bodies[place.source].presence(place)
        return (lambda looking: get(looking) is not None) if no else (lambda looking: get(looking) is None)

    def _quantified(self, node: Quantified) -> Get:
        """Works from the inside out: the length of an array is that of any of its columns that is read
        anyway.
        """
        is_any, loops = node.word == "any", []
        with self.scope.inner():
            for loop in node.loops:
                variable, place = self.scope.enter(loop)
                given = [self.condition(condition) for condition in loop.conditions]
                loops.append((variable, place, given))
            get = self.condition(node.holds)
            steps = (
                work.ELEMENT
                + work.price(node.holds)
                + work.price(tuple(loop.conditions for loop in node.loops))
            )
            for variable, place, given in reversed(loops):
                terms = given if is_any else [logic.negation(condition) for condition in given]
                get = logic.every([*terms, get], not is_any)
                elements = self.scope.bodies[place.source].elements(place)
                get = logic.turns(variable, elements, get, is_any, steps)
        return get


def _as_condition(made: Made) -> str:
    """The condition that was probably meant by a value in the place of a condition."""
    node, kind = made.node, made.kind
    match node:
        case Constant(_, "text", name) if name:
            return f"write api == {name}"
        case Constant(_, "number", name) if name:
            return f"write error == {name}"
        case Name(name) if name in names.AS_CONDITION:
            return f"write {names.AS_CONDITION[name]}"
    if kind == "array":
        return f"{node} is an array: write any(... for x in {node})"
    form = {"number": f"{node} > 0", "text": f'{node} == "..."', "bytes": f'{node} == "..."'}.get(kind)
    if form is None or isinstance(node, Constant):
        return f"{node} is {SAID[kind]}, not a condition"
    return f"{node} is {SAID[kind]}: compare it, as in {form}"


def _inside(value: Any, key: str | int) -> Any:
    """The value of a key in a JSON object or array."""
    if isinstance(value, dict):
        return value.get(key)
    return value[key] if isinstance(value, list) and isinstance(key, int) and key < len(value) else None
