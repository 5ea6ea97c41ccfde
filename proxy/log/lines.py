"""One log line from one event or exchange, as JSON or for a console.

Client ids, topics and groups are text that clients choose. Whatever they have in them, a line stays one line
without escape sequences for a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from klamm.client.fates import fate_words, unanswered_words
from klamm.decoders.error_codes import error_name
from klamm.decoders.text import printable, valid_text
from klamm.proxy.log.treated import treated
from klamm.rules.expressions import SIDES
from klamm.settings.yaml_line import flow

LONGEST = 200  # characters of one piece of text on a console
SHOWN = 6  # topics, or partitions of one, on a console; the rest is a number
HIDDEN = re.compile(
    "[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)  # C1 and format characters
QUOTED = re.compile(r'[\s"=\[\],]|^$')

DIM, BOLD, RED, YELLOW = "2", "1", "31", "33"
IN_MESSAGE = {"changed": ("change", "by")}  # of an event: the fields that its message has
LEVELS = {"info": "", "warning": YELLOW, "error": RED}


class Entry(NamedTuple):
    """An entry of the log. `time`: seconds since 1970. An exchange has the kind "exchange" and no message.
    str() of a message is its text.
    """

    time: float
    kind: str
    level: str
    message: object
    fields: Mapping[str, Any]


EXCHANGE = "exchange"
# The labels in a console line of an exchange, each with its field.
NAMED = (
    ("client", "client_id"), ("principal", "principal"), ("broker", "broker"),
    ("connection", "connection_id"), ("group", "group"), ("transactional_id", "transactional_id"),
)  # fmt: skip


def json_line(entry: Entry) -> bytes:
    """One JSON object and a newline."""
    time = rfc_3339(entry.time)
    if entry.kind == EXCHANGE:
        fields = {"time": time, "event": EXCHANGE, **exchange_fields(entry.fields)}
    else:
        level, message = entry.level, str(entry.message)
        fields = {"time": time, "event": entry.kind, "level": level, "message": message, **entry.fields}
    return json_of(fields)


def rfc_3339(time: float) -> str:
    """Seconds since 1970 as text, in UTC."""
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def json_of(fields: Mapping[str, Any]) -> bytes:
    """One JSON object in one line, whatever its text."""
    try:
        line = msgspec.json.encode(fields, enc_hook=str)
    except UnicodeEncodeError:  # bytes that are no UTF-8, kept as lone surrogates
        line = msgspec.json.encode(_whole(fields), enc_hook=str)
    if not line.isascii() or b"\x7f" in line:
        line = HIDDEN.sub(_escape, line.decode()).encode()
    return line + b"\n"


def _whole(value: Any) -> Any:
    """The same with all text valid."""
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, Mapping):
        return {_whole(key): _whole(inner) for key, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list | tuple) else value


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def exchange_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as they are logged: errors as {name: count} without NONE, latency in ms, no empty dict, and
    the acts of rules.

    `errors` comes as such a dict or as (topic or None, code) pairs, latency as `latency_ms` or `latency_ns`.
    """
    fields = {key: value for key, value in treated(fields).items() if value != {}}
    errors = fields.pop("errors", None) or {}
    if not isinstance(errors, Mapping):
        errors = _counted(code for _, code in errors if code)
    if (ns := fields.pop("latency_ns", None)) is not None:
        fields["latency_ms"] = round(ns / 1e6, 3)
    if (ns := fields.pop("waited_ns", None)) is not None:
        fields["waited_ms"] = round(ns / 1e6, 3)
    return {**fields, "errors": errors} if errors else fields


def _counted(codes: Iterable[int]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for code in codes:
        name = error_name(code)
        counts[name] = counts.get(name, 0) + 1
    return counts


def console_line(entry: Entry, colour: bool) -> bytes:
    """One line of text in local time. Fields that the message has in full are not told again."""
    paint = _painted if colour else _plain
    time = datetime.fromtimestamp(entry.time).strftime("%H:%M:%S.%f")[:-3]
    if entry.kind == EXCHANGE:
        words = _exchange_words(exchange_fields(entry.fields), paint)
    else:
        words = [paint(entry.level, LEVELS[entry.level]), printable(str(entry.message))]
        words += [
            paint(f"{key}={quoted(value)}", DIM)
            for key, value in {"event": entry.kind, **entry.fields}.items()
            if key not in IN_MESSAGE.get(entry.kind, ())
        ]
    return (" ".join([paint(time, DIM), *words]) + "\n").encode()


def _exchange_words(fields: Mapping[str, Any], paint: Callable[[str, str], str]) -> Iterable[str]:
    """Of a response without its request the version may be unknown (-1), and the size of the request is 0."""
    version = fields["version"]
    yield paint(str(fields["api"]), BOLD) + (f" v{version}" if version >= 0 else "")
    for label, key in NAMED:
        if fields.get(key) is not None:
            yield f"{label}={quoted(fields[key])}"
    topics = fields.get("topics") or {}
    for name in list(topics)[:SHOWN]:
        yield quoted(name) + (_numbers(topics[name]) if isinstance(topics, Mapping) else "")
    if len(topics) > SHOWN:
        yield f"+{len(topics) - SHOWN} topics"
    asked, answer = fields.get("request_bytes", 0), fields.get("response_bytes")
    yield " ".join([size(asked)] * bool(asked) + ([] if answer is None else ["->", size(answer)]))
    if fields.get("latency_ms") is not None:
        yield duration(fields["latency_ms"])
    if words := unanswered_words(fields.get("unanswered", ""), fields.get("waited_ms", 0.0)):
        yield paint(words, YELLOW)
    for name, count in fields.get("errors", {}).items():
        yield paint(name if count == 1 else f"{name} x{count}", RED)
    for side, reason in fields.get("undecodable", {}).items():
        yield paint(f"{side} does not decode: {printable(reason)}", YELLOW)
    for side in SIDES:
        if fields.get(f"{side}_delay_ms"):
            yield paint(f"{side} held {duration(fields[f'{side}_delay_ms'])} by klamm", YELLOW)
    yield from (paint(words, YELLOW) for words in fate_words(fields.get("fates", {})))
    if fields.get("origin") == "klamm":
        yield paint("(changed by klamm)" if fields.get("changed") else "(answered by klamm)", YELLOW)
    if fields.get("rules"):
        yield f"rules={quoted(','.join(fields['rules']))}"


def _numbers(partitions: Iterable[int]) -> str:
    found = list(partitions or ())
    if not found:
        return ""
    more = [f"+{len(found) - SHOWN}"] if len(found) > SHOWN else []
    return f"[{','.join([*map(str, found[:SHOWN]), *more])}]"


def quoted(value: Any) -> str:
    """A value on a console, in quotes if it could be read as several words."""
    text = printable(value if isinstance(value, str) else flow(value))
    if isinstance(value, str) and QUOTED.search(text):
        text = printable(value.replace("\\", "\\\\")).replace('"', '\\"')
        return f'"{_cut(text)}"'
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def size(count: int) -> str:
    """87B, 16.2kB, 3.4MB"""
    if count < 1000:
        return f"{count}B"
    return f"{count / 1e3:.1f}kB" if count < 1e6 else f"{count / 1e6:.1f}MB"


def duration(ms: float) -> str:
    """0.42ms, 4.1ms, 2.50s"""
    if ms >= 1000:
        return f"{ms / 1000:.2f}s"
    return f"{ms:.1f}ms" if ms >= 1 else f"{ms:.2f}ms"


def _painted(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if style else text


def _plain(text: str, style: str) -> str:
    return text
