"""Reads files of packets with tshark."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

CHECKED = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
GOOD, UNVERIFIED = "1", "2"  # tcp.checksum.status


class Message(NamedTuple):
    """A request or response. `key` and `version` are -1 for a response whose version tshark does not know."""

    side: str
    key: int
    version: int
    correlation_id: int


def fields(file: Path, *names: str, options: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """These fields of every packet, as text; several values in one with commas."""
    asked = [word for name in names for word in ("-e", name)]
    lines = _run(file, "-T", "fields", "-E", "separator=/t", *asked, *options).splitlines()
    return [tuple(line.split("\t")) for line in lines]


def summary(file: Path) -> str:
    """A line for each packet, as tshark prints it unless told otherwise."""
    return _run(file)


def messages(file: Path, *options: str) -> list[Message]:
    """Every Kafka message in the file whose header is there."""
    found = []
    for packet in json.loads(
        _run(file, "-T", "json", "--no-duplicate-keys", "-J", "kafka", "-Y", "kafka", *options)
    ):
        layers = packet["_source"]["layers"]["kafka"]
        for layer in layers if isinstance(layers, list) else [layers]:
            if "kafka.correlation_id" in layer:
                found.append(_message(layer))
    return found


def _message(layer: dict[str, Any]) -> Message:
    request = "kafka.request_key" in layer
    key, version = (
        ("kafka.request_key", "kafka.request.version")
        if request
        else ("kafka.response_key", "kafka.response.version")
    )
    return Message(
        "request" if request else "response",
        int(layer.get(key, -1)),
        int(layer.get(version, -1)),
        int(layer["kafka.correlation_id"]),
    )


def _run(file: Path, *options: str) -> str:
    command = ["tshark", "-r", str(file), *CHECKED, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
