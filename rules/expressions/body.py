"""Reads the fields of a body that an expression names: paths of the wire table, picked as columns on first
use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from itertools import islice
from typing import Any, NamedTuple

from klamm.decoders import layout
from klamm.decoders.compile import UNREADABLE, Path, Pick, pick
from klamm.decoders.schema import SECRET, Api, Field, Side, all_fields, deciding, default_of, members, present
from klamm.rules.expressions.failure import Absent, ExpressionError
from klamm.rules.expressions.kinds import OF_FIELDS, SAID, Kind
from klamm.rules.expressions.logic import Get
from klamm.rules.expressions.tree import Member, Node
from klamm.rules.expressions.unknown import is_field
from klamm.rules.expressions.work import OverLimit
from klamm.rules.frame import Frame
from klamm.settings.nearest import suggestion

Elements = Callable[[Any], range | None]


class Looking:
    """One frame that an expression is evaluated on, in at most `limit` steps. `at`: the values of variables;
    `record`: the current record, if any. `named`: the values of `topic` and such, once they are read.
    """

    __slots__ = ("at", "bodies", "columns", "frame", "left", "limit", "named", "record")

    def __init__(self, frame: Frame, bodies: tuple[Body, Body], variables: int, limit: int) -> None:
        self.frame, self.bodies = frame, bodies
        self.limit = self.left = limit
        self.columns: list[tuple[Any, ...] | None] = [None, None]
        self.at: list[Any] = [None] * variables
        self.named: dict[str, list[Any]] = {}
        self.record: Any = None

    def read(self, source: int) -> tuple[Any, ...]:
        of = self.frame if source == 0 else self.frame.request
        found = self.columns[source] = self.bodies[source].read(of)
        return found

    def spend(self, steps: int) -> None:
        """Raises OverLimit."""
        self.left -= steps
        if self.left < 0:
            raise OverLimit(self.frame, self.limit)

    def listed(self, values: Iterable[Any]) -> list[Any]:
        """The values, if there are no more than steps are left. Raises OverLimit."""
        found = list(islice(values, self.left + 1))
        if len(found) > self.left:
            raise OverLimit(self.frame, self.limit)
        return found


class Place(NamedTuple):
    """A field, or an array's element, that an expression names. `there`: this version has it. `default`: its
    value where its tag is absent. `variables`: one for each array on the path.
    """

    source: int
    path: Path
    kind: Kind
    fields: tuple[Field, ...]
    element: Kind = "struct"  # of an array
    variables: tuple[int, ...] = ()
    there: bool = True
    default: Any = None
    secret: bool = False

    def __str__(self) -> str:
        return ".".join(self.path)


class Mark(NamedTuple):
    """A field with a mark: how many arrays are on the way to its values, and whether it is one itself. `by`:
    the mark holds only where this other field has this value.
    """

    path: Path
    arrays: int
    default: Any
    is_array: bool
    by: tuple[Path, int] | None = None


class Body:
    """One side of an API's version: `wanted` are the paths to pick, in order."""

    def __init__(self, source: int, api: Api, version: int, side: Side) -> None:
        self.source, self.api, self.version, self.side = source, api, version, side
        self.root = Place(source, (), "struct", api.fields(side))
        self.wanted: dict[Path, int] = {}
        self.absent: list[Path] = []
        self._pick: Pick | None = None

    def read(self, frame: Frame | None) -> tuple[Any, ...]:
        """The columns. Raises DecodeError."""
        if frame is None:
            return (None,) * len(self.wanted)
        if self._pick is None:
            self._pick = picking(self.api.key, self.version, self.side, tuple(self.wanted))
        try:
            return self._pick(frame.body, 0, len(frame.body))
        except UNREADABLE:
            return tuple(_column(frame.values, path) for path in self.wanted)

    def step(self, place: Place, name: str, node: Node, words: Iterable[str] = ()) -> Place:
        """The field of this name in a struct. `words`: other names that `node` could mean."""
        at, said = node.column, node.of if isinstance(node, Member) else place
        if place.kind == "array":
            how = f"write any(x.{name} ... for x in {said})"
            raise ExpressionError(f"{said} is an array: {how if place.fields else 'of values'}", at)
        if place.kind != "struct":
            raise ExpressionError(f"{said} is {SAID[place.kind]}, and has no fields", at)
        named = [f for f in place.fields if f.name == name]
        if not named:
            raise self._absent(place, name, at, words)
        f = next((f for f in named if self.version in f.versions), named[-1])
        there = place.there and self.version in f.versions
        default = place.default.get(name) if isinstance(place.default, dict) else None
        if f.tag is not None and there:
            default = default_of(f, self.version)
        path = (*place.path, name)
        if not there:
            self.absent.append(path)
        element: Kind = OF_FIELDS[f.of] if isinstance(f.of, str) and f.of else "struct"
        kind, secret = OF_FIELDS[f.kind], place.secret or f.mark == SECRET
        return Place(self.source, path, kind, members(f), element, place.variables, there, default, secret)

    def _absent(self, place: Place, name: str, column: int, words: Iterable[str]) -> Absent:
        said = f"{self.api.name} {self.side}s have no {'.'.join((*place.path, name))}"
        if not place.path and not is_field(name):
            said = f'unknown field "{name}"'
        newest = min(self.api.versions.last, max(self.version, self.api.versions.first))
        below = [path for path, _ in all_fields(self.api.fields(self.side), newest) if path[-1] == name]
        if below and not place.path:
            return Absent(f"{said}, only {'.'.join(below[0])}", column)
        return Absent(
            said, column, suggestion(name, dict.fromkeys((*(f.name for f in place.fields), *words)))
        )

    def get(self, place: Place) -> Get:
        """A field's value, or an array of values, where the variables stand."""
        if not place.there:
            return _absent
        source, variables, default = self.source, place.variables, place.default
        index = self.wanted.setdefault(place.path, len(self.wanted))

        def made(looking: Looking) -> Any:
            value = (looking.columns[source] or looking.read(source))[index]
            for variable in variables:
                value = value[looking.at[variable]]
            return default if value is None else value

        return made

    def elements(self, place: Place) -> Elements:
        """The positions in an array. To be asked when all that is wanted in it is known."""
        if not place.there:
            return _absent
        get = self.get(self._inside(place))

        def made(looking: Looking) -> range | None:
            found = get(looking)
            return None if found is None else range(len(found))

        return made

    def _inside(self, place: Place) -> Place:
        """A field that is there whenever this array or struct is."""
        path, size = place.path, len(place.path)
        if place.kind == "array":
            if place.element != "struct":
                return place
            below = next((p for p in self.wanted if len(p) > size and p[:size] == path), None)
            if below is not None:
                return place._replace(path=below)
        return place._replace(path=(*path, *_leaf(place.fields, self.version)))

    def presence(self, place: Place) -> Get:
        """A value that is None exactly where this is null or absent."""
        if not place.there or place.kind not in ("array", "struct"):
            return self.get(place)
        return self.get(self._inside(place))

    def column(self, path: Path) -> Get:
        """All values of a field, as they were picked."""
        return self.get(Place(self.source, path, "array", ()))

    def marked(self, mark: str) -> list[Mark]:
        """The fields of this mark in this version."""
        fields = dict(all_fields(self.api.fields(self.side), self.version))
        found = []
        for path, f in fields.items():
            if f.mark == mark:
                on_the_way = [fields[path[:n]].kind == "array" for n in range(1, len(path) + 1)]
                default = default_of(f, self.version) if f.tag is not None else None
                by = deciding(fields, path)
                found.append(Mark(path, sum(on_the_way), default, on_the_way[-1], by))
        return found

    def ever(self, mark: str) -> bool:
        """Has any version a field of this mark?"""
        return mark in _marks(self.api.fields(self.side))


@lru_cache(256)
def picking(key: int, version: int, side: Side, paths: tuple[Path, ...]) -> Pick:
    """Shared by all expressions: callers of the admin API make up many, mostly with the same fields."""
    return pick(layout(key, version, side), paths)


@cache
def _marks(fields: tuple[Field, ...]) -> frozenset[str | None]:
    return frozenset(f.mark for f in fields).union(*(_marks(members(f)) for f in fields))


def _absent(looking: Any) -> None:
    return None


def _leaf(fields: tuple[Field, ...], version: int) -> Path:
    """The first field that is not null where its struct is there; else any."""
    in_place, tagged = present(fields, version)
    for f in sorted([*in_place, *tagged], key=lambda f: (f.tag is not None, version in f.null)):
        if not members(f):
            return (f.name,)
        below = _leaf(members(f), version)
        if below:
            return (f.name, *below)
    return ()


def _column(values: Any, path: Path) -> Any:
    """The same column as a pick gives, taken from values that were read in full: a list for each array on the
    path.
    """
    if isinstance(values, list) and path:
        return [_column(each, path) for each in values]
    if values is None or not path:
        return values
    return _column(values.get(path[0]), path[1:])


def spread(found: Any, arrays: int, default: Any = None) -> Iterator[Any]:
    """The values of a column, in order, and UNKNOWN for an array that is null."""
    if arrays == 0:
        yield default if found is None else found
    elif found is None:
        yield UNKNOWN
    else:
        for below in found:
            yield from spread(below, arrays - 1, default)


UNKNOWN: Any = type("Unknown", (), {"__repr__": lambda _: "UNKNOWN"})()
