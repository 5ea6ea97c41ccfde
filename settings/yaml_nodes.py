"""Text, or JSON that was read, to YAML nodes with their places. Aliases may stand for a limited number of
values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.resolver import BaseResolver

MOST_BY_ALIASES = 100_000  # nodes: a walk over so many takes a second
SHORT = 1 << 16  # characters that Python reads itself, in half a second
TAG = "tag:yaml.org,2002:"


SYNTAX = {  # words of the YAML parser -> how to correct it
    "found character '\\t'": "a tab: indent with spaces",
    "mapping values are not allowed": "a second ': ' in a line: check the indentation, or quote the text",
    "could not find expected ':'": "a key without ': '",
    "expected <block end>": "the indentation does not fit, or text that starts with [ or { needs quotes",
    "expected the node content": "text that starts with [ or { needs quotes",
    "found undefined alias": "the text starts with *: put quotes around it",
    "while scanning an alias": "the text starts with *: put quotes around it",
    "while scanning an anchor": "the text starts with &: put quotes around it",
    "found unexpected end of stream": "a quote is not closed",
    "but found another document": "a second document: a file holds one, without ---",
}


class AliasError(yaml.MarkedYAMLError):
    """An alias that stands in what it names, or aliases that stand for too much; `problem` is for people."""


class _Composer(Composer, BaseResolver):
    """Counts the nodes that aliases add, as if each were written out."""

    def __init__(self) -> None:
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self.sizes: dict[int, int] = {}  # by id of a node that is whole: its nodes, aliases written out
        self.added = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        events: Any = self
        alias = events.peek_event() if events.check_event(yaml.AliasEvent) else None
        node: Any = super().compose_node(parent, index)
        if alias is None:
            if isinstance(node, yaml.ScalarNode) and not node.style:
                node.style = None  # of plain text; libyaml gives ""
            self.sizes[id(node)] = 1 + sum(self.sizes[id(each)] for each in _children(node))
            return node
        size = self.sizes.get(id(node))
        if size is None:
            self._refuse(alias, f"the alias *{alias.anchor} stands within what it names")
        else:
            self.added += size
        if self.added > MOST_BY_ALIASES:
            self._refuse(
                alias,
                f"up to the alias *{alias.anchor}, aliases stand for {self.added} values: "
                f"more than {MOST_BY_ALIASES} are not read; write out what is meant",
            )
        return node

    @staticmethod
    def _refuse(alias: Any, why: str) -> None:
        raise AliasError(None, None, why, alias.start_mark)


class _Plain(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser, _Composer):
    """In Python, whose errors SYNTAX knows."""

    def __init__(self, stream: Any) -> None:
        yaml.reader.Reader.__init__(self, stream)
        yaml.scanner.Scanner.__init__(self)
        yaml.parser.Parser.__init__(self)
        _Composer.__init__(self)


def compose(text: str) -> yaml.Node | None:
    """The one document of a text; None for an empty one. Raises yaml.YAMLError and RecursionError."""
    if yaml.__with_libyaml__ and len(text) > SHORT:
        try:
            return _single(_compiled()(text))
        except AliasError:
            raise
        except yaml.YAMLError:
            pass  # libyaml has other words for its errors
    return _single(_Plain(text))


def _single(loader: Any) -> yaml.Node | None:
    try:
        node: yaml.Node | None = loader.get_single_node()
        return node
    finally:
        loader.dispose()


@lru_cache(1)
def _compiled() -> Any:
    """With the parser of libyaml, some ten times faster; the composer stays in Python: it hands over the
    interpreter between two nodes, and a document that is nested too deeply is an error and no crash.
    """
    from yaml import cyaml

    parser: Any = vars(cyaml)["CParser"]

    class Compiled(_Composer, parser):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:
            parser.__init__(self, stream)
            _Composer.__init__(self)

    return Compiled


def _children(node: yaml.Node) -> Sequence[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def node_of(value: Any) -> yaml.Node:
    """JSON that was read already, as if it stood in the first line of a YAML text."""
    mark = yaml.Mark("", 0, 0, 0, None, 0)
    if isinstance(value, Mapping):
        pairs = [(node_of(str(key)), node_of(each)) for key, each in value.items()]
        return yaml.MappingNode(TAG + "map", pairs, mark, mark)
    if isinstance(value, list | tuple):
        return yaml.SequenceNode(TAG + "seq", list(map(node_of, value)), mark, mark)
    if isinstance(value, str):
        return yaml.ScalarNode(TAG + "str", value, mark, mark, style='"')
    return yaml.ScalarNode(TAG + "str", json.dumps(value), mark, mark)


def why_not_yaml(problem: yaml.MarkedYAMLError) -> str:
    """For people."""
    if isinstance(problem, AliasError):
        return str(problem.problem)
    said = f"{problem.context or ''}: {problem.problem or ''}"
    return next((advice for words, advice in SYNTAX.items() if words in said), f"not YAML: {problem.problem}")


def entries_of(node: yaml.ScalarNode) -> Iterator[yaml.ScalarNode]:
    """The entries of `a,b`, each where it stands if the scalar is plain and on one line."""
    offset = 0
    for part in node.value.split(","):
        mark, skipped = node.start_mark, offset + len(part) - len(part.lstrip()) + (node.style is not None)
        start = yaml.Mark(mark.name, 0, mark.line, mark.column + skipped, None, 0)
        yield yaml.ScalarNode(node.tag, part.strip(), start, node.end_mark, style=node.style)
        offset += len(part) + 1


def plain_of(node: yaml.Node) -> Any:
    """The values of a node. It is empty if a key is a list or a mapping, which is a mistake of its own."""
    try:
        return yaml.BaseLoader("").construct_document(node)
    except yaml.constructor.ConstructorError:
        return {}
