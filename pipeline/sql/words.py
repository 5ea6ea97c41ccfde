"""The words that every exchange answers: as columns of its header, and at once where its API says it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import fields
from typing import Any, NamedTuple

from klamm.decoders.headers import FIRST_TELLS, request_header_version, response_header_version
from klamm.decoders.schema import Api, Side
from klamm.pipeline.sql.values import NULL, Value, constant
from klamm.rules.expressions.failure import ExpressionError
from klamm.rules.expressions.meaning import fitted
from klamm.rules.expressions.names import EXCHANGE
from klamm.rules.expressions.tree import Call, Item, Member, Name, Node, Quantified
from klamm.rules.frame import Frame, Peer

SETTLED = frozenset({"api", "version", "side"})
NOBODY = Peer("", "", "", "")
ADDRESS = "left(client, length(client) - length(substring_index(client, ':', -1)) - 1)"
PORT = "try_cast(substring_index(client, ':', -1) AS INT)"


class Asked(NamedTuple):
    """One side of an API's version. `asked`: the version of the request, where the answer has another."""

    api: Api
    version: int
    side: Side
    asked: int


def follows(node: Any, words: Set[str]) -> bool:
    """Whether it has nothing but constants and these words."""
    match node:
        case Name(name):
            return name in words
        case Member() | Item() | Quantified() | Call("json"):
            return False
        case Node():
            return all(follows(getattr(node, slot.name), words) for slot in fields(node))
        case tuple():
            return all(follows(one, words) for one in node)
    return True


def settled(node: Node, of: Asked) -> Value:
    """The value that follows from SETTLED, as rules compute it."""
    made = fitted(node, of.api, of.version, of.side, condition=False)
    return constant(made.of(Frame(of.api, of.version, of.side, b"", None, NOBODY, 0)), made.kind)


def of_exchange(name: str, of: Asked, column: int) -> Value:
    """Words of the exchange, without `api`, `version` and `side`, which are known. `column`: the place of
    the word in the expression.
    """
    kind = EXCHANGE[name].kind
    match name:
        case "client_instance_id":  # captures do not tell it
            return Value(NULL, kind)
        case "client":
            return Value(ADDRESS, kind)
        case "client_port":
            return Value(PORT, kind, 0, 2**31 - 1, True)
        case "connection":
            return Value(name, kind, 0, 2**63 - 1, True)
        case "latency_ms" | "duration":
            return Value("latency_ms", kind, -(2.0**63), 2.0**63)
        case "response_size":
            return _response_size(of)
        case "request_size":
            return _request_size(of, column)
        case "size":
            return _request_size(of, column) if of.side == "request" else _response_size(of)
    return Value(name, kind)


def _request_size(of: Asked, column: int) -> Value:
    """The size without the size field and the header, which has the client id."""
    version = request_header_version(of.api, of.asked)
    if version >= FIRST_TELLS:
        raise ExpressionError(f"the tables do not tell the size of a header of version {version}", column)
    text = "(request_bytes - 12)"
    if version:
        text = f"(request_bytes - {13 + version} - coalesce(octet_length(client_id), 0))"
    return Value(text, "number", 0, 2**31, True)


def _response_size(of: Asked) -> Value:
    header = 8 + response_header_version(of.api, of.version)
    return Value(f"(response_bytes - {header})", "number", 0, 2**31, True)
