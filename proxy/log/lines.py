"""One log line from one event or exchange, as JSON or for a console.

Client ids, topics and groups are text that clients make: whatever is in them, a line stays one line, and no
terminal obeys it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from klamm.decoders.error_codes import error_name
from klamm.settings.yaml_line import flow

LONGEST = 200  # characters of one piece of text on a console
SHOWN = 6  # topics, or partitions of one, on a console; the rest is a number
HIDDEN = re.compile(
    "[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)  # C1 and format characters
LONE = re.compile("[\ud800-\udfff]")
QUOTED = re.compile(r'[\s"=\[\],]|^$')

DIM, BOLD, RED, YELLOW = "2", "1", "31", "33"
LEVELS = {"info": "", "warning": YELLOW, "error": RED}


class Entry(NamedTuple):
    """What is logged: `time` in seconds since 1970. An exchange has the kind "exchange" and no message."""

    time: float
    kind: str
    level: str
    message: str
    fields: Mapping[str, Any]


EXCHANGE = "exchange"
# What a line of an exchange names, and the field that it has it from.
NAMED = (
    ("client", "client_id"), ("broker", "broker"), ("connection", "connection_id"), ("group", "group"),
)  # fmt: skip


def json_line(entry: Entry) -> bytes:
    """One JSON object and a newline."""
    time = datetime.fromtimestamp(entry.time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if entry.kind == EXCHANGE:
        said = {"time": time, "event": EXCHANGE, **exchange_fields(entry.fields)}
    else:
        level, message = entry.level, entry.message
        said = {"time": time, "event": entry.kind, "level": level, "message": message, **entry.fields}
    try:
        line = msgspec.json.encode(said, enc_hook=str)
    except UnicodeEncodeError:  # bytes that are no UTF-8, kept as lone surrogates
        line = msgspec.json.encode(_whole(said), enc_hook=str)
    if not line.isascii() or b"\x7f" in line:
        line = HIDDEN.sub(_escape, line.decode()).encode()
    return line + b"\n"


def _whole(value: Any) -> Any:
    """The same with every lone surrogate written out as \\udc80 to \\udcff."""
    if isinstance(value, str):
        return LONE.sub(_escape, value)
    if isinstance(value, Mapping):
        return {_whole(key): _whole(inner) for key, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list | tuple) else value


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def exchange_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as they are logged: errors as {name: count} without NONE, latency in ms, no empty dict.

    `errors` comes as such a dict or as (topic or None, code) pairs, latency as `latency_ms` or `latency_ns`.
    """
    said = {key: value for key, value in fields.items() if value != {}}
    errors = said.pop("errors", None) or {}
    if not isinstance(errors, Mapping):
        errors = _counted(code for _, code in errors if code)
    if "latency_ns" in said:
        said["latency_ms"] = round(said.pop("latency_ns") / 1e6, 3)
    return {**said, "errors": errors} if errors else said


def _counted(codes: Iterable[int]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for code in codes:
        name = error_name(code)
        counts[name] = counts.get(name, 0) + 1
    return counts


def console_line(entry: Entry, colour: bool) -> bytes:
    """One line of text in local time."""
    paint = _painted if colour else _plain
    time = datetime.fromtimestamp(entry.time).strftime("%H:%M:%S.%f")[:-3]
    if entry.kind == EXCHANGE:
        words = _exchange_words(exchange_fields(entry.fields), paint)
    else:
        words = [paint(entry.level, LEVELS[entry.level]), printable(entry.message)]
        words += [
            paint(f"{key}={shown(value)}", DIM)
            for key, value in {"event": entry.kind, **entry.fields}.items()
        ]
    return (" ".join([paint(time, DIM), *words]) + "\n").encode()


def _exchange_words(said: Mapping[str, Any], paint: Callable[[str, str], str]) -> Iterable[str]:
    yield f"{paint(str(said['api']), BOLD)} v{said['version']}"
    for label, key in NAMED:
        if said.get(key) is not None:
            yield f"{label}={shown(said[key])}"
    topics = said.get("topics") or {}
    for name in list(topics)[:SHOWN]:
        yield shown(name) + (_numbers(topics[name]) if isinstance(topics, Mapping) else "")
    if len(topics) > SHOWN:
        yield f"+{len(topics) - SHOWN} topics"
    answer = said.get("response_bytes")
    yield size(said.get("request_bytes", 0)) + ("" if answer is None else f" -> {size(answer)}")
    if said.get("latency_ms") is not None:
        yield duration(said["latency_ms"])
    for name, count in said.get("errors", {}).items():
        yield paint(name if count == 1 else f"{name} x{count}", RED)
    if said.get("origin") == "klamm":
        yield paint("(answered by klamm)", YELLOW)


def _numbers(partitions: Iterable[int]) -> str:
    found = list(partitions or ())
    if not found:
        return ""
    more = [f"+{len(found) - SHOWN}"] if len(found) > SHOWN else []
    return f"[{','.join([*map(str, found[:SHOWN]), *more])}]"


def shown(value: Any) -> str:
    """A value on a console, in quotes where a reader could take it for more than one thing."""
    text = printable(value if isinstance(value, str) else flow(value))
    if len(text) > LONGEST:
        text = text[:LONGEST] + "..."
    if isinstance(value, str) and QUOTED.search(text):
        return '"' + text.replace('"', '\\"') + '"'
    return text


def printable(text: str) -> str:
    """Text in which characters that move a cursor, hide others or end a line are written as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


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
