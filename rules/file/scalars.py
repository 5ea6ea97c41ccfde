"""Parses the scalars of rule files: text to the value of its type. Each function raises ValueError with a
reason that reads after the name of the key.
"""

from __future__ import annotations

import re
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

from klamm.decoders import API, ERRORS
from klamm.decoders.schema import Versions, version_range
from klamm.rules.glob import SPECIAL
from klamm.rules.quantities import (
    ApiName,
    BrokerLabel,
    Bytes,
    Duration,
    ErrorCode,
    FieldPath,
    NamePattern,
    Number,
    Ordinal,
    PrincipalPattern,
    Share,
    TopicPattern,
    Where,
)
from klamm.rules.rule import Moment
from klamm.settings.amounts import SIZES, amount, whole
from klamm.settings.nearest import suggestion
from klamm.settings.typed_yaml import Misplaced, OutOfRange, Scalar

MS, S = 1_000_000, 1_000_000_000
TIMES = {"us": 1000, "ms": MS, "s": S, "m": 60 * S, "h": 3600 * S, "d": 86400 * S}
NO_TOPIC = re.compile(r"[^A-Za-z0-9._*?!\[\]-]")
BROKER = re.compile(r"\d+|bootstrap|controller \d+")
PRINCIPAL = "User:"
PATH = re.compile(r"[a-z_]\w*(\.[a-z_]\w*)*")


class ApiPattern(NamedTuple):
    """The APIs of one name (`exact`) or glob, by their keys."""

    text: str
    keys: frozenset[int]
    exact: bool


def duration(text: str) -> Duration:
    """500ms, 2s, 1m, 1h; 0 needs no unit."""
    if text.isdigit() and int(text):
        raise ValueError(f"{text} of what? write {text}ms or {text}s")
    return Duration(round(amount(text, {**TIMES, "": 1}, "a duration", "500ms or 2s")))


def size(text: str) -> Bytes:
    """64kB, 1MiB; a bare number is bytes."""
    return Bytes(int(amount(text, SIZES, "a size", "64kB or 65536")))


def share(text: str) -> Share:
    """0.2 or 20%."""
    number = text.removesuffix("%").rstrip()
    try:
        found = float(number) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise ValueError(f"{text!r} is not a share: write it as 0.2 or 20%") from None
    if not 0 <= found <= 1:
        bare = not text.endswith("%") and 1 < found <= 100
        raise OutOfRange("must be 0% to 100%" + f": for {text} percent write {text}%" * bare)
    return Share(found)


def error_code(text: str) -> ErrorCode:
    """A name, an older name, or a code."""
    code = int(text) if re.fullmatch(r"-?\d+", text) else None
    found = ERRORS.get(text if code is None else code)
    if found is None and code is not None:
        raise ValueError(f"no error of Kafka has the code {text}")
    if found is None:
        raise ValueError(f"unknown error {text!r}{suggestion(text, ERRORS.names())}")
    return ErrorCode(found.code)


def api_name(text: str) -> ApiName:
    """The newest name of an API, from any of its names."""
    found = API.get(text)
    if found is None:
        raise ValueError(f"unknown API {text!r}{_api_meant(text)}")
    return ApiName(found.name)


def _api_meant(text: str) -> str:
    """A hint after an unknown API, which may be a key, or one to be taken out."""
    by_key = API.get(int(text)) if re.fullmatch(r"[0-9]{1,5}", text) else None
    if by_key is not None:
        return f": rules have names of APIs, and {text} is the key of {by_key.name}"
    if text.startswith("!") and API.get(text[1:]) is not None:
        return f": to take an API out write where: 'api not in [{text[1:]}]'"
    return suggestion(text, [name for api in API for name in (api.name, *api.aliases)])


def api_pattern(text: str) -> ApiPattern:
    """A name of an API, or a glob over their newest names."""
    if not re.search(r"[*?\[]", text):
        return ApiPattern(text, frozenset({API[api_name(text)].key}), True)
    glob = text.casefold()
    found = frozenset(api.key for api in API if fnmatchcase(api.name.casefold(), glob))
    if not found:
        raise ValueError(f"no API is called like {text!r}")
    return ApiPattern(text, found, False)


def versions(text: str) -> Versions:
    """3+, 0-8 or 4."""
    if not re.fullmatch(r"\d+(\+|-\d+)?", text):
        raise ValueError(f"{text!r} is not a range of versions: write it as 3+, 0-8 or 4")
    found = version_range(text)
    if found.last < found.first:
        raise ValueError(f"{text} is empty: its last version comes before its first")
    return found


def topic_pattern(text: str) -> TopicPattern:
    """A topic's name, or a glob."""
    wrong = NO_TOPIC.search(text)
    if wrong:
        raise ValueError(f"no topic has {wrong[0]!r} in its name: it takes letters, digits, '.', '_' and '-'")
    return TopicPattern(_pattern(text))


def name_pattern(text: str) -> NamePattern:
    """Any name, or a glob."""
    return NamePattern(_pattern(text))


def principal_pattern(text: str) -> PrincipalPattern:
    """A principal as Kafka writes it, or a glob."""
    start = text.removeprefix("!")[: len(PRINCIPAL)]
    if start != PRINCIPAL and text and not SPECIAL.search(start):
        raise ValueError(f"{text!r} is no principal: write it as Kafka's log does, User:CN=orders,O=Example")
    return PrincipalPattern(_pattern(text))


def _pattern(text: str) -> str:
    if text in ("", "!"):
        raise ValueError("an empty name; every name is *")
    return text


def broker_label(text: str) -> BrokerLabel:
    """A node id, `controller N`, or `bootstrap`."""
    if not BROKER.fullmatch(text):
        raise ValueError(f"{text!r} is not a broker: write its node id, bootstrap, or controller 1")
    return BrokerLabel(text)


def number(text: str) -> Number:
    """A whole number from 0."""
    return Number(whole(text))


def ordinal(text: str) -> Ordinal:
    """A whole number from 1."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError(f"{text!r} is not a whole number from 1 on")
    return Ordinal(int(text))


def moment(text: str) -> Moment:
    """A duration, or a time with its zone."""
    if not re.match(r"\d{4}-\d\d", text):
        return Moment(duration(text))
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time: write it as 2026-01-31T09:30:00Z") from None
    if found.tzinfo is None:
        raise ValueError(f"{text} has no zone: write {found.isoformat()}Z for UTC, or +01:00 after it")
    return Moment(round(found.timestamp() * 1000) * MS, absolute=True)


def field_path(text: str) -> FieldPath:
    """Names with dots."""
    if not PATH.fullmatch(text):
        raise ValueError(f"{text!r} is not a path: write it as topics.partitions.error_code")
    return FieldPath(text)


def where(text: str, secrets: bool = True) -> Any:
    """An expression, parsed. `secrets`: it may compare them."""
    from klamm.rules.expressions import ExpressionError, parse  # most files need none

    try:
        return parse(text, secrets=secrets)
    except ExpressionError as problem:
        raise Misplaced(problem.reason, problem.column) from None


SCALARS: dict[Any, Scalar] = {
    Duration: Scalar(duration, "a duration such as 500ms"),
    Bytes: Scalar(size, "a size such as 64kB"),
    Share: Scalar(share, "a share such as 0.2 or 20%"),
    ErrorCode: Scalar(error_code, "an error of Kafka"),
    ApiName: Scalar(api_name, "an API"),
    ApiPattern: Scalar(api_pattern, "an API or a glob"),
    Versions: Scalar(versions, "versions such as 3+, 0-8 or 4"),
    TopicPattern: Scalar(topic_pattern, "a topic or a glob"),
    NamePattern: Scalar(name_pattern, "a name or a glob"),
    PrincipalPattern: Scalar(principal_pattern, "a principal or a glob", commas=True),
    BrokerLabel: Scalar(broker_label, "a node id"),
    Number: Scalar(number, "a whole number from 0"),
    Ordinal: Scalar(ordinal, "a whole number from 1"),
    Moment: Scalar(moment, "a duration or a time"),
    FieldPath: Scalar(field_path, "a path such as topics.partitions.error_code"),
    Where: Scalar(where, "an expression"),
}
"""Every type that is one scalar in a rule file."""

BLIND = {Where: Scalar(partial(where, secrets=False), "an expression")}
"""Instead, in rules that are no file's."""

SAMPLES: dict[Any, str] = {
    Duration: "500ms", Bytes: "64kB", Share: "0.2", ErrorCode: "NOT_LEADER_OR_FOLLOWER", ApiName: "Fetch",
    Versions: "0-8", TopicPattern: "orders-*", NamePattern: "billing",
    PrincipalPattern: "User:CN=billing", BrokerLabel: "2", Number: "3", Ordinal: "3", Moment: "30s",
    FieldPath: "throttle_time_ms", str: "100", int: "3", float: "10", bool: "true",
}  # fmt: skip
"""An example of each kind of value, for docs/rules.md."""
