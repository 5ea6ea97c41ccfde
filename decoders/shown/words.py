"""One value in words, for people: numbers, texts and bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from klamm.decoders import API
from klamm.decoders.error_codes import error_name
from klamm.decoders.schema import ERROR
from klamm.decoders.text import uuid_text

LONGEST_TEXT = 120  # characters; the rest is a number
NULL = "null"
NOT_ASKED = -(2**31)  # for the authorized operations (KIP-430)
SECONDS_OF_2200 = 7_258_118_400


def _api(key: int) -> str:
    api = API.get(key)
    return api.name if api is not None else ""


def _bits(names: Mapping[int, str]) -> Callable[[int], str]:
    def names_of(value: int) -> str:
        if value < 0:
            return "not asked" if value == NOT_ASKED else ""
        return ", ".join(name for bit, name in names.items() if value >> bit & 1)

    return names_of


ACL_OPERATION = {
    1: "ANY", 2: "ALL", 3: "READ", 4: "WRITE", 5: "CREATE", 6: "DELETE", 7: "ALTER", 8: "DESCRIBE",
    9: "CLUSTER_ACTION", 10: "DESCRIBE_CONFIGS", 11: "ALTER_CONFIGS", 12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS", 14: "DESCRIBE_TOKENS", 15: "TWO_PHASE_COMMIT",
}  # fmt: skip
ACL_RESOURCE = {
    1: "ANY", 2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID", 6: "DELEGATION_TOKEN", 7: "USER",
}  # fmt: skip
CONFIG_RESOURCE = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
CONFIG_SOURCE = {
    1: "DYNAMIC_TOPIC_CONFIG", 2: "DYNAMIC_BROKER_CONFIG", 3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG", 5: "DEFAULT_CONFIG", 6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "CLIENT_METRICS_CONFIG", 8: "GROUP_CONFIG",
}  # fmt: skip
PATTERN = {1: "ANY", 2: "MATCH", 3: "LITERAL", 4: "PREFIXED"}
PERMISSION = {1: "ANY", 2: "DENY", 3: "ALLOW"}
OFFSET_SPEC = {
    -1: "latest", -2: "earliest", -3: "of the largest timestamp", -4: "earliest local", -5: "latest tiered",
}  # fmt: skip

MEANINGS: dict[str, Mapping[int, str] | Callable[[int], str]] = {
    "api_key": _api,
    "request_api_key": _api,
    "acks": {-1: "all in sync", 0: "no response comes", 1: "the leader"},
    "isolation_level": {0: "read_uncommitted", 1: "read_committed"},
    "key_type": {0: "group", 1: "transaction", 2: "share"},
    "coordinator_type": {0: "group", 1: "transaction", 2: "share"},
    "endpoint_type": {1: "brokers", 2: "controllers"},
    "operation": ACL_OPERATION,
    "permission_type": PERMISSION,
    "pattern_type": PATTERN,
    "pattern_type_filter": PATTERN,
    "resource_pattern_type": PATTERN,
    "config_source": CONFIG_SOURCE,
    "config_operation": {0: "SET", 1: "DELETE", 2: "APPEND", 3: "SUBTRACT"},
    "mechanism": {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"},
    "topic_authorized_operations": _bits(ACL_OPERATION),
    "cluster_authorized_operations": _bits(ACL_OPERATION),
    "authorized_operations": _bits(ACL_OPERATION),
}
OF_AN_API: dict[tuple[str, str], Mapping[int, str]] = {
    ("ListOffsets", "timestamp"): OFFSET_SPEC,
    ("DescribeAcls", "resource_type"): ACL_RESOURCE,
    ("DescribeAcls", "resource_type_filter"): ACL_RESOURCE,
    ("CreateAcls", "resource_type"): ACL_RESOURCE,
    ("DeleteAcls", "resource_type"): ACL_RESOURCE,
    ("DeleteAcls", "resource_type_filter"): ACL_RESOURCE,
    ("DescribeConfigs", "resource_type"): CONFIG_RESOURCE,
    ("AlterConfigs", "resource_type"): CONFIG_RESOURCE,
    ("IncrementalAlterConfigs", "resource_type"): CONFIG_RESOURCE,
}


def meaning(name: str, value: int, api: str, mark: str | None) -> str:
    """Kafka's name for this number; nothing for a plain number."""
    if mark == ERROR:
        return error_name(value)
    names = OF_AN_API.get((api, name)) or MEANINGS.get(name)
    if names is not None:
        return names.get(value, "") if isinstance(names, Mapping) else names(value)
    if value > 10**11 and name.endswith(("timestamp", "timestamp_ms", "_time_ms")):
        return moment(value)
    return ""


def moment(since_1970_ms: int) -> str:
    """A time of day in UTC; nothing for one beyond what calendars have."""
    if not 0 <= since_1970_ms < SECONDS_OF_2200 * 1000:
        return ""
    time = datetime.fromtimestamp(since_1970_ms / 1000, UTC)
    return time.isoformat(" ", "milliseconds").replace("+00:00", "Z")


def quoted(text: str, full: bool) -> str:
    """A text in quotes that no terminal obeys, cut unless `full`."""
    rest = "" if full or len(text) <= LONGEST_TEXT else f" ... {len(text) - LONGEST_TEXT} more characters"
    head = text[: len(text) if full else LONGEST_TEXT]
    if head.isprintable() and '"' in head and "'" not in head and "\\" not in head:
        return f"'{head}'{rest}"
    if head.isprintable():
        return '"' + head.replace("\\", "\\\\").replace('"', '\\"') + '"' + rest
    return json.dumps(head) + rest


def scalar(value: Any, kind: str, full: bool) -> str:
    """One value of one kind, in a line."""
    if value is None:
        return NULL
    if kind == "string":
        return quoted(value, full)
    if kind == "uuid":
        return uuid_text(value)
    if kind in ("bytes", "records"):
        return sized(value, full)
    if kind == "boolean":
        return "true" if value else "false"
    return str(value)


def sized(data: bytes, full: bool) -> str:
    """The number of bytes, and their text if they are one."""
    count = f"{len(data)} byte{'' if len(data) == 1 else 's'}"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return count
    return f"{count} {quoted(text, full)}" if text and text.isprintable() else count


def content(data: bytes | None, full: bool) -> str:
    """A key or a value: its text if it is one, else the number of bytes."""
    if data is None:
        return NULL
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return sized(data, full)
    return quoted(text, full) if text and text.isprintable() else sized(data, full)


def hidden(value: Any) -> str:
    """The text shown in place of a secret."""
    if value is None:
        return NULL
    size = len(value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value)
    return f"*** ({size} byte{'' if size == 1 else 's'})"
