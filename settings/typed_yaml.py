"""YAML text to frozen dataclasses. Every mistake of a file is found in one reading, with its line and column.

A scalar gets its type from the dataclass, not from YAML: a name written 0123 or on is text. What can be read:
str, int, float, bool, Literal, `X | None`, tuple[X, ...], Mapping[K, V], dataclasses, and every type that the
caller has a parser for (a NewType, or a dataclass that may also be written as one scalar). A NewType of
object is a text with places in it. The keys of a dataclass with `entries` are those of the mapping in its
field of that name. A key that is a keyword of Python has a field with an underscore behind it: from_.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any, Literal, NamedTuple, NewType, Union, get_args, get_origin, get_type_hints

import yaml

from klamm.settings.mistakes import Mistake, Path, Place
from klamm.settings.nearest import nearest, suggestion
from klamm.settings.yaml_nodes import compose, entries_of, node_of, plain_of, why_not_yaml

BROKEN: Any = type("Broken", (), {"__repr__": lambda _: "BROKEN"})()  # stands where a value could not be read
EMPTY = {"", "~", "null"}
NOTHING = EMPTY | {"none", "off"}  # of an optional that is not text
NO_LIST = "must be a list: start each entry with '- '"
FORMS = {yaml.ScalarNode: "one value", yaml.SequenceNode: "a list", yaml.MappingNode: "a mapping"}

MOST_MISTAKES = 1000  # of a file
ENOUGH = f"there are {MOST_MISTAKES} mistakes up to here: what follows was not read"


class TooMany(Exception):
    """More mistakes than anybody reads; its argument is the last one."""


class Scalar(NamedTuple):
    """How one type is written as one scalar; `parse` raises ValueError with the reason. `commas`: it may have
    commas, so that `a,b` is one entry of a list and not two.
    """

    parse: Callable[[str], Any]
    shape: str
    commas: bool = False


class Misplaced(ValueError):
    """A reason, and the column in the text, from 1, at which it shows."""

    def __init__(self, reason: str, column: int) -> None:
        super().__init__(reason)
        self.column = column


class OutOfRange(ValueError):
    """The allowed range of a value, worded to follow the key: `must be 0% to 100%`."""


@dataclass
class Document:
    """The contents of a file: `value` has BROKEN in place of mistakes, `places` every path that was
    written.
    """

    source: str
    value: Any = BROKEN
    places: dict[Path, Place] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    texts: dict[Path, yaml.ScalarNode] = field(default_factory=dict)  # nodes whose text has places of its own
    node: yaml.Node | None = None

    def place_of(self, path: Path, column: int | None = None) -> Place:
        """The place of a path, or of the nearest path around it; or a column in its text, from 1."""
        if column is not None and path in self.texts:
            mark = _at(self.texts[path], column).start_mark
            return Place(self.source, mark.line + 1, mark.column + 1)
        around = (path[:length] for length in range(len(path), -1, -1))
        return next((self.places[part] for part in around if part in self.places), Place(self.source))

    def written(self, key: str) -> tuple[Any, ...]:
        """The elements of a list as they stand there; every scalar is its text."""
        entries = self.node.value if isinstance(self.node, yaml.MappingNode) else ()
        found = next((value for name, value in entries if name.value == key), None)
        return tuple(map(plain_of, found.value)) if isinstance(found, yaml.SequenceNode) else ()


def read_file(file: str, kind: type, scalars: Mapping[Any, Scalar]) -> Document:
    """The contents of a file as one dataclass. Raises nothing: see `mistakes`."""
    try:
        text = FilePath(file).read_bytes().decode()
    except OSError as problem:
        return Document(file, mistakes=[Mistake(Place(file), (), f"cannot be read: {problem.strerror}")])
    except UnicodeDecodeError as problem:
        line = problem.object.count(b"\n", 0, problem.start) + 1
        column = problem.start - problem.object.rfind(b"\n", 0, problem.start)
        reason = f"not UTF-8: byte 0x{problem.object[problem.start]:02x}"
        return Document(file, mistakes=[Mistake(Place(file, line, column), (), reason)])
    return read(text, file, kind, scalars)


def read(text: str, source: str, kind: type, scalars: Mapping[Any, Scalar]) -> Document:
    """Read a whole file as one dataclass. Raises nothing: look at `mistakes`."""
    document = Document(source)
    try:
        node = compose(text)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        place = Place(source, mark.line + 1, mark.column + 1) if mark else Place(source, 1, 1)
        document.mistakes.append(Mistake(place, (), why_not_yaml(problem)))
    except yaml.reader.ReaderError as problem:
        before = text[: problem.position]
        place = Place(source, before.count("\n") + 1, len(before) - before.rfind("\n"))
        reason = f"YAML allows no character U+{ord(text[problem.position]):04X}"
        document.mistakes.append(Mistake(place, (), reason))
    except RecursionError:
        document.mistakes.append(Mistake(Place(source, 1, 1), (), "nested too deeply"))
    else:
        _walk(document, node, kind, scalars)
    return document


def read_json(value: Any, source: str, kind: type, scalars: Mapping[Any, Scalar]) -> Document:
    """The same of JSON that was read already. Its places say nothing: see the paths of `mistakes`."""
    document = Document(source)
    try:
        _walk(document, node_of(value), kind, scalars)
    except RecursionError:
        document.mistakes.append(Mistake(Place(source), (), "nested too deeply"))
    return document


def _walk(document: Document, node: yaml.Node | None, kind: type, scalars: Mapping[Any, Scalar]) -> None:
    document.node = node
    try:
        document.value = kind() if node is None else _Reading(document, scalars).value(node, kind, ())
    except TooMany as last:
        document.mistakes.append(last.args[0])


class _Reading:
    """One walk over the nodes of a document."""

    def __init__(self, document: Document, scalars: Mapping[Any, Scalar]) -> None:
        self.document, self.scalars = document, scalars

    def wrong(self, node: yaml.Node, path: Path, reason: str) -> Any:
        self.document.mistakes.append(Mistake(self.place(node), path, reason))
        if len(self.document.mistakes) >= MOST_MISTAKES:
            raise TooMany(Mistake(self.place(node), path, ENOUGH))
        return BROKEN

    def place(self, node: yaml.Node) -> Place:
        return Place(self.document.source, node.start_mark.line + 1, node.start_mark.column + 1)

    def value(self, node: yaml.Node, hint: Any, path: Path) -> Any:
        self.document.places[path] = self.place(node)
        if not node.tag.startswith("tag:yaml.org,2002:"):
            return self.wrong(node, path, f"the tag {node.tag} means nothing here")
        optional = get_origin(hint) in (Union, types.UnionType)
        if optional:
            (hint,) = (option for option in get_args(hint) if option is not type(None))
        if is_dataclass(hint) and isinstance(node, yaml.ScalarNode) and node.value == "":
            return self.wrong(node, path, "is empty: write {} for its defaults, or leave it out")
        nothing = EMPTY if self.is_text(hint) else NOTHING
        if optional and isinstance(node, yaml.ScalarNode) and node.style is None and node.value in nothing:
            return None
        if isinstance(hint, NewType) and hint not in self.scalars:
            hint = hint.__supertype__
        if self.is_scalar(hint):
            return self.scalar(node, hint, path)
        if is_dataclass(hint):
            return self.struct(node, hint, path)
        return {tuple: self.sequence, Mapping: self.mapping}[get_origin(hint)](node, hint, path)

    @staticmethod
    def is_text(hint: Any) -> bool:
        return (hint.__supertype__ if isinstance(hint, NewType) else hint) is str

    def is_scalar(self, hint: Any) -> bool:
        """Written as a scalar and nothing else."""
        plain = hint in self.scalars and not is_dataclass(hint)
        return plain or hint in BUILTIN or get_origin(hint) is Literal

    def shape(self, hint: Any) -> str:
        return shape(hint, self.scalars)

    def scalar(self, node: yaml.Node, hint: Any, path: Path) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            return self.wrong(node, path, f"must be {self.shape(hint)}, not {FORMS[type(node)]}")
        if node.style is None and node.value in EMPTY and hint is not str:
            return self.wrong(node, path, f"has no value: give it {self.shape(hint)}, or leave it out")
        try:
            if get_origin(hint) is Literal:
                return choose(node.value, get_args(hint))
            found = (self.scalars.get(hint) or BUILTIN[hint]).parse(node.value)
            if isinstance(hint, NewType) and hint.__supertype__ is object:
                self.document.texts[path] = node
            return found
        except Misplaced as problem:
            return self.wrong(_at(node, problem.column), path, str(problem))
        except OutOfRange as problem:
            key = next((step for step in reversed(path) if isinstance(step, str)), "it")
            return self.wrong(node, path, f"{key} {problem}")
        except ValueError as problem:
            return self.wrong(node, path, str(problem))

    def sequence(self, node: yaml.Node, hint: Any, path: Path) -> Any:
        element = get_args(hint)[0]
        if isinstance(node, yaml.ScalarNode) and node.value and self.is_scalar(element):
            known = self.scalars.get(element)
            parts = (node,) if known is not None and known.commas else entries_of(node)
            return tuple(self.scalar(part, element, path) for part in parts)
        if not isinstance(node, yaml.SequenceNode):
            is_empty = isinstance(node, yaml.ScalarNode) and node.style and not node.value
            return self.wrong(node, path, "is empty: name one or more" if is_empty else NO_LIST)
        return tuple(self.value(child, element, (*path, index)) for index, child in enumerate(node.value))

    def mapping(self, node: yaml.Node, hint: Any, path: Path) -> Any:
        key_hint, value_hint = get_args(hint)
        if not isinstance(node, yaml.MappingNode):
            return self.wrong(node, path, f"must be {self.shape(hint)}, not {FORMS[type(node)]}")
        found: dict[Any, Any] = {}
        for key_node, value_node, name in self.entries(node, path):
            key = self.scalar(key_node, key_hint, (*path, name))
            value = self.value(value_node, value_hint, (*path, name))
            if key is not BROKEN and key in found:
                self.wrong(key_node, (*path, name), "written twice")
            found[key] = value
        return found

    def struct(self, node: yaml.Node, kind: Any, path: Path) -> Any:
        if isinstance(node, yaml.ScalarNode) and kind in self.scalars:
            return self.scalar(node, kind, path)
        hints = keys(kind)
        if not isinstance(node, yaml.MappingNode):
            short = f"{self.scalars[kind].shape}, or " if kind in self.scalars else ""
            reason = f"must be {short}a mapping with {', '.join(hints)}, not {FORMS[type(node)]}"
            return self.wrong(node, path, reason)
        entries = getattr(kind, "entries", "")
        if entries:
            return kind(**{entries: self.mapping(node, hints[entries], path)})
        found: dict[str, Any] = {}
        for key_node, value_node, name in self.entries(node, path):
            if name in hints:
                found[name] = self.value(value_node, hints[name], (*path, name))
            elif name == "<<":
                self.wrong(key_node, (*path, name), "mappings are not merged with <<: write the keys out")
            else:
                self.wrong(key_node, (*path, name), "unknown key" + _advice(name, hints))
        for key, f in zip(hints, _written(kind), strict=True):
            if key not in found and f.default is MISSING and f.default_factory is MISSING:
                found[key] = self.wrong(node, path, f"needs the key {key}, {self.shape(hints[key])}")
        names = zip(hints, _written(kind), strict=True)
        return kind(**{f.name: found[key] for key, f in names if key in found})

    def entries(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[yaml.Node, yaml.Node, str]]:
        """Key node, value node and key of each entry with a usable key; reports the others."""
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self.wrong(key_node, path, f"a key must be a word, not {FORMS[type(key_node)]}")
            elif key_node.value in lines:
                first = lines[key_node.value]
                self.wrong(key_node, (*path, key_node.value), f"written twice: the first is in line {first}")
            else:
                lines[key_node.value] = key_node.start_mark.line + 1
                yield key_node, value_node, key_node.value


def _written(kind: Any) -> list[Field[Any]]:
    return [f for f in fields(kind) if f.init]


@lru_cache(256)
def keys(kind: Any) -> dict[str, Any]:
    """The keys of a dataclass in a file, with their types."""
    hints = get_type_hints(kind)
    return {f.name.removesuffix("_"): hints[f.name] for f in _written(kind)}


def _at(node: yaml.ScalarNode, column: int) -> yaml.ScalarNode:
    """A place in the text of a scalar, if it stands in one line; else the scalar."""
    mark, quotes = node.start_mark, node.style in ("'", '"')
    if node.style in ("|", ">") or mark.line != node.end_mark.line:
        return node
    start = yaml.Mark(mark.name, 0, mark.line, mark.column + column - 1 + quotes, None, 0)
    return yaml.ScalarNode(node.tag, node.value, start, node.end_mark)


def shape(hint: Any, scalars: Mapping[Any, Scalar]) -> str:
    """The valid values of a type, in words."""
    if hint in scalars or hint in BUILTIN:
        return (scalars.get(hint) or BUILTIN[hint]).shape
    if get_origin(hint) is Literal:
        return " or ".join(get_args(hint))
    inner = [shape(argument, scalars) for argument in get_args(hint) if argument not in (type(None), ...)]
    if get_origin(hint) is tuple:
        return f"a list of {inner[0]}"
    if get_origin(hint) is Mapping:
        return f"a mapping of {inner[0]}: {inner[1]}"
    return inner[0] if inner else "a mapping"


def _advice(name: str, hints: Mapping[str, Any]) -> str:
    """The key that was meant, or the place where this one belongs."""
    near = nearest(name, hints)
    owners = [key for key, hint in hints.items() if any(name in keys(s) for s in _structs(hint))]
    if near is None and owners:
        return f" here; it belongs under {' or '.join(owners[:3])}"
    return suggestion(name, hints)


def _structs(hint: Any) -> Iterator[Any]:
    if is_dataclass(hint):
        yield hint
    for argument in get_args(hint):
        yield from _structs(argument)


def choose(text: str, words: tuple[str, ...]) -> str:
    """One of a few words; ValueError with the nearest for any other."""
    if text in words:
        return text
    near = nearest(text, words)
    guess = f"; did you mean {near}?" if near else ""
    raise ValueError(f"must be {' or '.join(words)}, not {text!r}{guess}")


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def truth(text: str) -> bool:
    """true or false, and the other words of YAML for them; ValueError for any other."""
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if text.lower() not in words:
        raise ValueError(f"must be true or false, not {text!r}{suggestion(text, ('true', 'false'))}")
    return words[text.lower()]


BUILTIN = {
    str: Scalar(str, "text"),
    int: Scalar(_whole, "a whole number"),
    float: Scalar(_number, "a number"),
    bool: Scalar(truth, "true or false"),
}
