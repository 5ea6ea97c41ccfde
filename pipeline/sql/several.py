"""`topic`, `partition`, `group` and `error` as SQL: a condition over any of the values that a frame names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from klamm.decoders.compile import Path
from klamm.decoders.schema import TOPIC, TOPIC_ID
from klamm.pipeline.sql.places import Fields, Variable
from klamm.pipeline.sql.values import FALSE, NULL, UNKNOWN, Value, disjunction, literal
from klamm.rules.expressions.body import Body, Mark, Place
from klamm.rules.expressions.failure import ExpressionError
from klamm.rules.expressions.kinds import Kind
from klamm.rules.expressions.names import MARKED
from klamm.rules.expressions.tree import Node
from klamm.rules.json_form import uuid_text
from klamm.rules.parts import NIL, UNASKED

Term = Callable[[Value], str]
Names = Mapping[str, str]


def any_of(
    name: str, bodies: Iterable[tuple[Body, Fields]], names: Names | None, node: Node, term: Term
) -> str:
    """`term` is the condition for one value. It is asked for an unknown value too where there may be one."""
    mark, kind = MARKED[name]
    marks = (mark, TOPIC_ID) if mark == TOPIC else (mark,)
    body, fields = next((body, fields) for body, fields in bodies if any(map(body.ever, marks)))
    unknown = term(Value(NULL, kind))
    beside: dict[Path, list[Mark]] = {}
    for each in marks:
        for found in body.marked(each):
            if found.path[0] not in UNASKED:
                alone = mark != TOPIC or found.is_array
                beside.setdefault(found.path if alone else found.path[:-1], []).append(found)
    if not beside:
        return unknown
    walks = (_Walk(body, fields, names, node, marks, term, unknown) for marks in beside.values())
    text = disjunction(walk.whole() for walk in walks)
    if body.source == 1:
        return f"(CASE WHEN {fields.column} IS NULL THEN {unknown} ELSE {text} END)"
    return text


class _Walk:
    """Walks to the values of one mark; to a topic's name and id, which stand side by side, to both."""

    def __init__(
        self,
        body: Body,
        fields: Fields,
        names: Names | None,
        node: Node,
        marks: list[Mark],
        term: Term,
        unknown: str,
    ) -> None:
        self.body, self.fields, self.names, self.node = body, fields, names, node
        self.marks, self.term, self.unknown = marks, term, unknown

    def whole(self) -> str:
        """The expression, false where the mark does not hold."""
        by = self.marks[0].by
        if by is None:
            return self.over(0, None)
        path, wanted = by
        value = self.fields.value(Place(self.body.source, path, "number", ()), None)
        return f"(CASE WHEN {value.text} = {wanted} THEN {self.over(0, None)} ELSE {FALSE} END)"

    def over(self, start: int, within: Variable | None) -> str:
        """The expression from a place on the path on, within the arrays that variables stand for."""
        path = self.marks[0].path
        for size in range(start + 1, len(path) + 1):
            if self.fields.field(path[:size]).kind == "array":
                array, shape = self.fields.array(self._place(path[:size]), within)
                variable = Variable(f"each_{size}", path[:size], shape)
                inner = self.over(size, variable)
                text = f"exists({array}, {variable.name} -> {inner})"
                if self.unknown == UNKNOWN:
                    return text
                return f"(CASE WHEN {array} IS NULL THEN {self.unknown} ELSE {text} END)"
        return self._of(list(self.marks), within)

    def _of(self, marks: list[Mark], within: Variable | None) -> str:
        """The first of them that says something."""
        if not marks:
            return FALSE
        mark, *others = marks
        value = self.fields.value(self._place(mark.path)._replace(default=mark.default), within)
        f = self.fields.field(mark.path)
        if "uuid" in (f.kind, f.of):
            says, value = f"{value.text} <> {literal(uuid_text(NIL))}", self._named(value)
        elif len(self.marks) > 1:
            says = f"{value.text} <> ''"
        elif self.fields.never_null(mark.path):
            return self.term(value)
        else:
            says = f"{value.text} IS NOT NULL"
        text = self.term(value)
        if text == FALSE and not others:
            return FALSE
        return f"(CASE WHEN {says} THEN {text} ELSE {self._of(others, within)} END)"

    def _named(self, topic_id: Value) -> Value:
        if self.names is None:
            where = f"{self.body.api.name} {self.body.version} {self.body.side}s"
            raise ExpressionError(
                f"topic: {where} have ids of topics, and no names are given", self.node.column
            )
        if not self.names:
            return Value(NULL, "text")
        pairs = ", ".join(f"{literal(key)}, {literal(name)}" for key, name in self.names.items())
        return Value(f"try_element_at(map({pairs}), {topic_id.text})", "text")

    def _place(self, path: Path) -> Place:
        kind: Kind = "array" if self.fields.field(path).kind == "array" else "text"
        return Place(self.body.source, path, kind, ())
