"""Names that no API has, and what was meant by them: text without its quotes, a name of Kafka's in another
case, a field spelled wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from ipaddress import ip_address
from typing import NamedTuple

from klamm.decoders import API, ERRORS
from klamm.decoders.schema import Field, members
from klamm.rules.expressions import names
from klamm.rules.expressions.failure import ExpressionError
from klamm.rules.expressions.kinds import Kind
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
from klamm.settings.nearest import suggestion

Bound = frozenset[str]  # variables
EQUALITY = frozenset({"==", "!=", "in", "not in"})
LITERALS = ("True", "False", "None")


class Pair(NamedTuple):
    """Two sides of a comparison: `left operator right`."""

    left: Node
    operator: str
    right: Node


def check(tree: Node, fields: bool) -> None:
    """Raises ExpressionError for a name that is surely none of a field. With `fields` for each that no field,
    variable or word of the language has; else an API may have something near to it.
    """
    if fields:
        _check_words(tree)
    _check(tree, frozenset(), fields)


def is_field(name: str) -> bool:
    """Has any API a field of this name?"""
    return name in _kinds()


def unquoted(tree: Node) -> Iterator[tuple[Node, ExpressionError]]:
    """Comparisons of text with a word that probably lacks its quotes, though there are fields of that name,
    as in `topic == users`; and the message for a comparison that never holds.
    """
    for pair in _pairs(tree):
        for word, other in ((pair.right, pair.left), (pair.left, pair.right)):
            if isinstance(word, Name) and word.name in _kinds() and _is_text(other):
                alone = Compare(pair.left, ((pair.operator, pair.right),))
                yield alone, ExpressionError(_in_quotes(pair, word, word.name), word.column)


@cache
def _kinds() -> dict[str, set[str]]:
    """The names of all fields of all APIs, at any depth, and their kinds."""
    found: dict[str, set[str]] = {}

    def add(fields: Iterable[Field]) -> None:
        for field in fields:
            found.setdefault(field.name, set()).add(field.kind)
            add(members(field))

    for api in API:
        add((*api.request, *api.response))
    return found


@cache
def _apis() -> frozenset[str]:
    return frozenset(api.name for api in API)


@cache
def _outermost() -> list[str]:
    """Names that a body has without a path."""
    return sorted({field.name for api in API for field in (*api.request, *api.response)})


def _check(node: Node, bound: Bound, fields: bool) -> None:
    match node:
        case Name(name):
            if not _is_known(name, bound):
                _check_name(name, node.column, bound, fields)
        case Quantified(_, holds, loops):
            for loop in loops:
                _check(loop.over, bound, fields)
                bound |= {loop.variable}
                for condition in loop.conditions:
                    _check(condition, bound, fields)
            _check(holds, bound, fields)
        case Compare(first, rest):
            left = first
            for operator, right in rest:
                _check_pair(Pair(left, operator, right), bound)
                left = right
            for each in (first, *(right for _, right in rest)):
                _check(each, bound, fields)
        case Member(of) | Item(of) | Negative(of) | Not(of) | IsNone(of):
            _check(of, bound, fields)
        case Arithmetic(_, left, right):
            _check(left, bound, fields)
            _check(right, bound, fields)
        case Call(_, several) | Logic(_, several):
            for each in several:
                _check(each, bound, fields)


def _check_words(node: Node) -> None:
    """Raises ExpressionError for a word in the place of a condition, such as the name of a topic."""
    match node:
        case Logic(_, several):
            for each in several:
                _check_words(each)
        case Not(of):
            _check_words(of)
        case Name() | Member() | Arithmetic():
            root, text = _root(node), _bare(node)
            if root and text and not _is_known(root.name, frozenset()):
                ways = f'client_id == "{text}", topic == "{text}" or group == "{text}"'
                raise ExpressionError(f"{text} is no condition: write {ways}", node.column)


def _check_pair(pair: Pair, bound: Bound) -> None:
    """Raises ExpressionError for a bare word that the other side shows to be text."""
    for word, other in ((pair.right, pair.left), (pair.left, pair.right)):
        root, text = _root(word), _bare(word)
        if root is None or text is None or _is_known(root.name, bound):
            continue
        if other == Name("api"):
            raise _unknown_api(text, word.column)
        if other == Name("error"):
            raise _unknown_error(text, word.column)
        if _is_text(other):
            raise ExpressionError(_in_quotes(pair, word, text), word.column)
    if pair.operator in EQUALITY:
        for name, other in ((pair.right, pair.left), (pair.left, pair.right)):
            if other == Name("api"):
                _check_apis(name)
            if other == Name("client"):
                _check_addresses(name)


def _check_apis(node: Node) -> None:
    """Raises ExpressionError for text, alone or in a list, that is the name of no API."""
    for each in node.items if isinstance(node, Listed) else (node,):
        if isinstance(each, Constant) and isinstance(each.value, str) and each.value not in _apis():
            raise _unknown_api(each.value, each.column)


def _check_addresses(node: Node) -> None:
    """Raises ExpressionError for text, alone or in a list, that is no IP address: clients have no other."""
    for each in node.items if isinstance(node, Listed) else (node,):
        if isinstance(each, Constant) and isinstance(each.value, str) and not _is_address(each.value):
            advice = f'for the client id write client_id == "{each.value}"'
            raise ExpressionError(f'client is an address, such as "10.0.0.7": {advice}', each.column)


def _is_address(text: str) -> bool:
    try:
        ip_address(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def in_list(first: Node, operator: str, item: Node) -> ExpressionError:
    """The mistake of a list item that is no constant."""
    text = _bare(item)
    if text is None:
        return ExpressionError(f"{item} is not a constant; a list holds constants only", item.column)
    if first == Name("api"):
        return _unknown_api(text, item.column)
    if first == Name("error"):
        return _unknown_error(text, item.column)
    return ExpressionError(f'text needs quotes: {first} {operator} ["{text}"]', item.column)


def _check_name(name: str, column: int, bound: Bound, fields: bool) -> None:
    if name.casefold() in ("null", "nil", "none"):
        raise ExpressionError(f"{name} is not known here: write `is None`", column)
    if name.islower() and API.get(name) is not None:
        raise _unknown_api(name, column)
    if name.islower() and ERRORS.get(name) is not None:
        raise _unknown_error(name, column)
    words = [*bound, *names.KNOWN, *names.ROOTS, *literal_like(name)]
    if not name.islower():
        near = suggestion(name, [*words, *names.constants()])
        raise ExpressionError(f"no error and no API is named {name}", column, near)
    if fields:
        raise ExpressionError(f'unknown field "{name}"', column, suggestion(name, [*words, *_outermost()]))


def literal_like(name: str) -> list[str]:
    """The literal that differs in case only: nobody who wrote `rule` meant `True`."""
    return [word for word in LITERALS if word.casefold() == name.casefold()]


def _unknown_api(name: str, column: int) -> ExpressionError:
    found = API.get(name)
    if found is not None:
        return ExpressionError(f"API names are case-sensitive: {found.name}", column)
    return ExpressionError(f'unknown API "{name}"', column, suggestion(name, [api.name for api in API]))


def _unknown_error(name: str, column: int) -> ExpressionError:
    found = ERRORS.get(name)
    if found is not None:
        return ExpressionError(f"names of errors are case-sensitive: {found.name}", column)
    return ExpressionError(f'unknown error "{name}"', column, suggestion(name, ERRORS.names()))


def _is_known(name: str, bound: Bound) -> bool:
    return name in bound or name in names.KNOWN or name in names.ROOTS or name in _kinds()


def _in_quotes(pair: Pair, word: Node, text: str) -> str:
    left, right = (f'"{text}"' if each is word else str(each) for each in (pair.left, pair.right))
    return f"text needs quotes: {left} {pair.operator} {right}"


def _bare(node: Node) -> str | None:
    """The words of orders, orders.eu, orders-eu and orders-1; None for nodes that cannot be text without
    quotes.
    """
    match node:
        case Name(name) | Constant(_, _, name) if name:
            return name
        case Constant(int() as number, "number"):
            return str(number)
        case Member(of, name):
            return _joined(_bare(of), ".", name)
        case Arithmetic("-", left, right):
            return _joined(_bare(left), "-", _bare(right))
    return None


def _joined(one: str | None, sign: str, other: str | None) -> str | None:
    return None if one is None or other is None else f"{one}{sign}{other}"


def _root(node: Node) -> Name | None:
    """The first name in it that is no constant."""
    match node:
        case Name():
            return node
        case Member(of):
            return _root(of)
        case Arithmetic("-", left, right):
            return _root(left) or _root(right)
    return None


def _is_text(node: Node) -> bool:
    """Whether its name shows that it is text, for every API."""
    kind: Kind | None = None
    match node:
        case Name(name) | Member(_, name) if _kinds().get(name) == {"string"}:
            kind = "text"
        case Name(name) if name in names.EXCHANGE:
            kind = names.EXCHANGE[name].kind
        case Name(name) if name in names.MARKED:
            kind = names.MARKED[name][1]
        case Member(Name("record"), name):
            kind = names.RECORD.get(name)
        case Item(Member(Name("record"), "headers")):
            kind = "bytes"
        case Call(name) if name in names.FUNCTIONS:
            kind = names.FUNCTIONS[name].gives
    return kind in ("text", "bytes")


def _pairs(node: Node) -> Iterator[Pair]:
    """The comparisons outside of any() and all()."""
    match node:
        case Compare(first, rest):
            left = first
            for operator, right in rest:
                if not isinstance(right, Listed):
                    yield Pair(left, operator, right)
                left = right
        case Logic(_, several):
            for each in several:
                yield from _pairs(each)
        case Not(of):
            yield from _pairs(of)
