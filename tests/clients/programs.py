"""The client programs as command lines, and what they print as values."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.brokers.jars import ROOT, compiled, java
from tests.brokers.kraft import OLDER, VERSION

FOLDER = Path(__file__).resolve().parent
QUIET = ("-Dlog4j2.level=WARN",)


def _python(name: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, str(FOLDER / f"{name}_client.py")]


def _java(version: str, main: str, folder: str) -> Callable[[], list[str]]:
    sources = FOLDER / "java"
    return lambda: java(version, main, options=QUIET, classes=compiled(version, sources, sources / folder))


def _kafkajs() -> list[str]:
    if not (ROOT / ".js" / "node_modules" / "kafkajs").exists():
        raise RuntimeError("kafkajs is missing; run: make .js/package-lock.json")
    return ["node", str(FOLDER / "js" / "client.js")]


PROGRAMS = {
    "librdkafka": _python("librdkafka"),
    "aiokafka": _python("aiokafka"),
    "kafka-python": _python("kafka_python"),
    "kafkajs": _kafkajs,
    "java": _java(VERSION, "Client", "kafka_4"),
    f"java-{OLDER}": _java(OLDER, "Client", "kafka_4"),
    "java-0.8": _java("0.8.2.2", "OldClient", "kafka_0_8"),
}


def command(client: str, bootstrap: str, *actions: dict[str, Any]) -> list[str]:
    """The command that lets `client` do `actions`, which actions.py lists."""
    return [*PROGRAMS[client](), bootstrap, *map(json.dumps, actions)]


def results(output: str) -> list[dict[str, Any]]:
    """The JSON lines of a program's output."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]
