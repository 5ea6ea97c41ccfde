"""The words that need no declaration: what is known of every exchange, Kafka's names, the functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from klamm.decoders import API, ERRORS
from klamm.decoders.schema import ERROR, GROUP, PARTITION, TOPIC, Side
from klamm.rules.expressions.kinds import Kind
from klamm.rules.frame import Frame
from klamm.rules.glob import Glob
from klamm.settings.nearest import suggestion

BOTH: tuple[Side, ...] = ("request", "response")
LONGEST_PATTERN = 1000  # characters


class Known(NamedTuple):
    """A property of every frame on these sides."""

    kind: Kind
    of: Callable[[Frame], Any]
    sides: tuple[Side, ...] = BOTH


class Function(NamedTuple):
    """`prepare` makes `do` from the constants after the first argument; it raises ValueError."""

    takes: tuple[Kind, ...]
    gives: Kind
    do: Callable[..., Any] = len
    prepare: Callable[..., Callable[[Any], Any]] | None = None
    usage: str = ""


def _request_size(frame: Frame) -> int | None:
    request = frame if frame.side == "request" else frame.request
    return None if request is None else len(request.body)


def _latency_ms(frame: Frame) -> float | None:
    return None if frame.request is None else (frame.arrived_ns - frame.request.arrived_ns) / 1e6


def _client_port(frame: Frame) -> int | None:
    port = frame.peer.client_address.rpartition(":")[2]
    return int(port) if port.isdecimal() else None


EXCHANGE = {
    "api": Known("text", lambda frame: frame.api.name),
    "version": Known("number", lambda frame: frame.version),
    "side": Known("text", lambda frame: frame.side),
    "client_id": Known("text", lambda frame: frame.client_id),
    "client_instance_id": Known("text", lambda frame: frame.peer.instance_id),
    "client": Known("text", lambda frame: frame.peer.client_address.rpartition(":")[0]),
    "client_port": Known("number", _client_port),
    "connection": Known("number", lambda frame: frame.peer.number),
    "broker": Known("text", lambda frame: frame.peer.broker),
    "cluster": Known("text", lambda frame: frame.peer.cluster),
    "principal": Known("text", lambda frame: frame.peer.principal),
    "size": Known("number", lambda frame: len(frame.body)),
    "request_size": Known("number", _request_size),
    "response_size": Known("number", lambda frame: len(frame.body), ("response",)),
    "latency_ms": Known("number", _latency_ms, ("response",)),
    "duration": Known("number", _latency_ms, ("response",)),
}
# Names of which a frame may have several values: the mark of the fields, and their kind.
MARKED: dict[str, tuple[str, Kind]] = {
    "error": (ERROR, "number"),
    "topic": (TOPIC, "text"),
    "partition": (PARTITION, "number"),
    "group": (GROUP, "text"),
}
# How to write a condition with values that are none by themselves.
AS_CONDITION = {
    "error": "error != NONE",
    "topic": 'topic == "orders"',
    "partition": "partition == 0",
    "group": 'group == "billing"',
    "api": "api == Produce",
}
RECORD: dict[str, Kind] = {
    "key": "bytes", "value": "bytes", "offset": "number", "timestamp": "number", "headers": "headers",
}  # fmt: skip
ROOTS = {"body": 0, "request": 1}
KNOWN = (*EXCHANGE, *MARKED, "record")


def constant(name: str) -> tuple[Any, Kind] | None:
    """Kafka's name of an error, which is its code, or of an API; older names too. Fields have no capitals."""
    if name.islower():
        return None
    error, api = ERRORS.get(name), API.get(name)
    if error is not None:
        return error.code, "number"
    return (api.name, "text") if api is not None else None


def constants() -> list[str]:
    return ERRORS.names() + [api.name for api in API]


def _search(pattern: str) -> Callable[[str], bool]:
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"the pattern has more than {LONGEST_PATTERN} characters")
    import re2  # type: ignore[import-untyped]  # 2 MiB, which few rules need

    options = re2.Options()
    options.log_errors = False
    try:
        search = re2.compile(pattern.encode(), options).search
    except re2.error as problem:
        said = problem.args[0]
        reason = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
        raise ValueError(f"not a pattern of RE2: {reason}") from None
    return lambda text: search(text.encode("utf-8", "surrogateescape")) is not None


def _json(content: bytes | str) -> Any:
    try:
        return msgspec.json.decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


FUNCTIONS = {
    "lower": Function(("text",), "text", str.lower, usage="lower(text)"),
    "startswith": Function(("text", "text"), "boolean", str.startswith, usage="startswith(text, text)"),
    "endswith": Function(("text", "text"), "boolean", str.endswith, usage="endswith(text, text)"),
    "glob": Function(("text",), "boolean", prepare=Glob, usage='glob(text, "orders-*")'),
    "matches": Function(("text",), "boolean", prepare=_search, usage='matches(text, "^orders-[0-9]+$")'),
    "json": Function(("bytes",), "json", _json, usage="json(record.value)"),
    "len": Function(("array",), "number", usage="len(array)"),
}


def function(name: str) -> Function:
    """Raises ValueError with the nearest."""
    if name not in FUNCTIONS:
        raise ValueError(f"there is no function {name}{suggestion(name, [*FUNCTIONS, 'any', 'all'])}")
    return FUNCTIONS[name]
