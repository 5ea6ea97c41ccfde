"""Messages written and read by Kafka's own classes, with their values as `klamm.decoders` has them."""

import base64
import json
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klamm.decoders import API
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import Field, default_of, members
from tests.brokers.jars import compiled, java
from tools.wire_check.schemas import snake_case

HERE = Path(__file__).resolve().parent
NEWEST_FIRST = ["4.4.0", "3.9.1"]  # together they know every layout of keys 0-94; 2.8.2 knows none besides

Key = tuple[int | str, str, int]  # API key or a header's name, side or "header", version


@dataclass(frozen=True, slots=True)
class Message:
    kafka: str  # the release that wrote it
    name: str
    header: int  # version of the header before it
    data: bytes
    values: dict[str, Any]  # Kafka's JSON; empty for a message of defaults only


def written(seed: int, count: int) -> dict[Key, list[Message]]:
    """`count` messages of each layout, from the newest Kafka that has it; the first holds defaults only."""
    found: dict[Key, list[Message]] = {}
    for kafka in NEWEST_FIRST:
        ours: dict[Key, list[Message]] = defaultdict(list)
        for line in _run(kafka, "Oracle", seed, count).splitlines():
            entry = json.loads(line)
            name, side, data = entry["name"], entry["side"], bytes.fromhex(entry["hex"])
            key = name if side == "header" else entry["key"]
            message = Message(kafka, name, entry["header"], data, entry["values"])
            ours[key, side, entry["version"]].append(message)
        found = dict(ours) | found
    return found


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Kafka's reading of a message: an error, or its JSON, and whether it writes the same bytes again."""

    error: str
    values: dict[str, Any]
    same: bool


def read_back(kafka: str, messages: Iterable[tuple[Layout, bytes]]) -> list[ReadBack]:
    """How one release reads each of these messages."""
    lines = (f"{API[of.api].key} {of.side} {of.version} {data.hex()}\n" for of, data in messages)
    answers = map(json.loads, _run(kafka, "ReadBack", stdin="".join(lines)).splitlines())
    return [ReadBack(a.get("error", ""), a.get("values", {}), a.get("same", False)) for a in answers]


def error_codes() -> list[tuple[int, str, bool]]:
    """Code, name and retriable of every error of the newest Kafka."""
    rows = (line.split() for line in _run(NEWEST_FIRST[0], "ErrorCodes").splitlines())
    return [(int(code), name, retriable == "true") for code, name, retriable in rows]


def _run(kafka: str, program: str, *arguments: int, stdin: str = "") -> str:
    jars = f"oracle-{kafka}"
    classes = compiled(jars, HERE / f"{program}.java")
    command = java(jars, program, *map(str, arguments), classes=classes)
    done = subprocess.run(command, input=stdin.encode(), capture_output=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"{program} failed on Kafka {kafka}:\n{done.stderr.decode()}")
    return done.stdout.decode()


def values_of(fields: tuple[Field, ...], version: int, given: dict[str, Any]) -> dict[str, Any]:
    """Kafka's JSON as `decode` returns it: what was not given has its default."""
    ours = {snake_case(name): value for name, value in given.items()}
    there = [f for f in fields if version in f.versions]
    strange = ours.keys() - {f.name for f in there}
    assert not strange, f"Kafka has fields that the table lacks: {strange}"
    return {
        f.name: _value(f, version, ours[f.name]) if f.name in ours else default_of(f, version) for f in there
    }


def _value(f: Field, version: int, value: Any) -> Any:
    if value is None:
        return None
    if f.kind == "struct":
        return values_of(members(f), version, value)
    if f.kind == "array":
        if members(f):
            return [values_of(members(f), version, element) for element in value]
        return [_scalar(str(f.of), element) for element in value]
    return _scalar(f.kind, value)


def _scalar(kind: str, value: Any) -> Any:
    if kind == "uuid":
        return base64.urlsafe_b64decode(value + "==")
    return base64.b64decode(value) if kind in ("bytes", "records") else value
