"""The meaning of a name at one point of an expression: a variable, a field of a body, or a word that is
always known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from klamm.decoders.schema import RECORDS, Api, Side
from klamm.rules.expressions import logic, names, several, work
from klamm.rules.expressions.body import Body, Place
from klamm.rules.expressions.comparing import Made
from klamm.rules.expressions.content import header, of_record
from klamm.rules.expressions.failure import Absent, ExpressionError, Secret
from klamm.rules.expressions.kinds import SAID
from klamm.rules.expressions.logic import Get
from klamm.rules.expressions.tree import Item, Loop, Member, Name, Node
from klamm.rules.expressions.unknown import literal_like


class Scope:
    """`bodies` are the frame's and its request's. `compared`: those names of the comparison at hand that
    stand for several values; each is a variable too. `secrets`: they may be compared.
    """

    def __init__(self, api: Api, version: int, side: Side, secrets: bool = False) -> None:
        self.side: Side = side
        self.secrets = secrets
        self.bodies = (Body(0, api, version, side), Body(1, api, version, "request"))
        self.places: dict[str, Place] = {}
        self.compared: dict[str, int] | None = None
        self.variables = 0
        self.records = False

    def place(self, node: Node) -> Place | None:
        """The place in a body; None for names outside of bodies."""
        match node:
            case Name(name) if name in self.places:
                return self.places[name]
            case Name(name) if name in names.ROOTS:
                return self.bodies[names.ROOTS[name] if self.side == "response" else 0].root
            case Name(name) if name not in names.KNOWN:
                body = self.bodies[0]
                return body.step(
                    body.root, name, node, [*self.places, *names.KNOWN, *names.ROOTS, *literal_like(name)]
                )
            case Member(of, name):
                place = self.place(of)
                return place and self.bodies[place.source].step(place, name, node)
        return None

    def at(self, node: Node, place: Place) -> Made:
        """The value at a place. A struct, or an array of structs, has none."""
        if place.secret and not self.secrets:
            raise Secret(f"{node} is a secret: rules of files may compare it, nothing else may", node.column)
        if place.kind == "struct" or (place.kind == "array" and place.element == "struct"):
            return Made(node, place.kind, lambda looking: None)
        return Made(node, place.kind, self.bodies[place.source].get(place))

    def known(self, node: Node) -> Made | None:
        """Words that are no fields: of the exchange, of all fields with a mark, of a record."""
        match node:
            case Name("record"):
                raise ExpressionError(f"record has fields: {', '.join(names.RECORD)}", node.column)
            case Name(name) if name in names.MARKED:
                return Made(node, names.MARKED[name][1], self._one_of(name, node.column))
            case Name(name):
                known = names.EXCHANGE[name]
                if self.side not in known.sides:
                    raise Absent(f"{name} is known of a {known.sides[0]} only", node.column)
                of = known.of
                return Made(node, known.kind, lambda looking: of(looking.frame))
            case Member(Name("record"), name):
                if name not in names.RECORD:
                    fields = ", ".join(names.RECORD)
                    raise ExpressionError(f"a record has no {name}; known are {fields}", node.column)
                self._reads_records(node.column)
                return Made(node, names.RECORD[name], of_record(name))
            case Item(Member(Name("record"), "headers"), str() as key):
                self._reads_records(node.column)
                return Made(node, "bytes", header(key))
        return None

    def variable(self) -> int:
        self.variables += 1
        return self.variables - 1

    def enter(self, loop: Loop) -> tuple[int, Place]:
        """The variable of a loop, from here on; and the array that it goes through."""
        place = self.place(loop.over)
        if place is None or place.kind != "array":
            is_one = f" is {SAID[place.kind]}, not" if place else " is not"
            raise ExpressionError(f"{loop.over}{is_one} an array of the frame", loop.over.column)
        variable = self.variable()
        variables = (*place.variables, variable)
        self.places[loop.variable] = place._replace(kind=place.element, variables=variables, default=None)
        return variable, place

    @contextmanager
    def inner(self) -> Iterator[None]:
        """Variables that come up in it are gone after it."""
        outer, self.places = self.places, dict(self.places)
        yield
        self.places = outer

    def for_any(self, get: Get, compared: dict[str, int], node: Node) -> Get:
        """A comparison, over all values of the names in it that stand for several."""
        steps = work.NAMED + work.price(node)
        for name, variable in compared.items():
            get = logic.turns(variable, several.values(self.bodies, name, node.column), get, True, steps)
        return get

    def _one_of(self, name: str, column: int) -> Get:
        if self.compared is None:
            raise ExpressionError(f"write {names.AS_CONDITION[name]}", column)
        variable = self.compared.setdefault(name, self.variable())
        return lambda looking: looking.at[variable]

    def _reads_records(self, column: int) -> None:
        body = self.bodies[0]
        if not body.ever(RECORDS):
            raise Absent(f"{body.api.name} {body.side}s carry no records", column)
        self.records = True
