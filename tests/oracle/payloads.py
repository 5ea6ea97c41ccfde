"""Random payloads that Kafka's own classes wrote, and their values as `klamm.decoders.payloads` has them."""

import json
import subprocess
from dataclasses import dataclass, field
from typing import Any

from klamm.decoders.payloads import PAYLOADS, payload_layout
from tests.brokers.jars import compiled, java
from tests.oracle.messages import HERE, values_of
from tools.wire_check.schemas import snake_case

NEWEST = "4.3.1"  # the newest whose Streams, where some payloads are declared, is in Maven
# Kafka calls it version, as it does the version that leads.
RENAMED = {("ConsumerGroupRegularExpressionValue", "version"): "metadataVersion"}


@dataclass(frozen=True, slots=True)
class Written:
    name: str
    version: int
    data: bytes
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Control:
    type: int
    type_name: str
    key: bytes
    value: bytes
    written: Written


@dataclass(slots=True)
class Answers:
    schemas: dict[str, str] = field(default_factory=dict)  # name and file of all that are of no API
    written: list[Written] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    newer: list[Written] = field(
        default_factory=list
    )  # subscriptions of versions to come, as Kafka reads them


def answers(seed: int, count: int) -> Answers:
    """`count` payloads of each version; the first of each schema's holds defaults only."""
    found = Answers()
    for line in _run(seed, count).splitlines():
        entry = json.loads(line)
        if "schema" in entry:
            found.schemas[entry["schema"]] = entry["file"]
        elif "newer" in entry:
            values = _values("ConsumerProtocolSubscription", 3, entry)
            found.newer.append(
                Written("ConsumerProtocolSubscription", 3, bytes.fromhex(entry["newer"]), values)
            )
        elif "control" in entry:
            value = bytes.fromhex(entry["value"])
            written = Written(entry["name"], 0, value, _values(entry["name"], 0, entry))
            key = bytes.fromhex(entry["key"])
            found.controls.append(Control(entry["control"], entry["type"], key, value, written))
        elif entry["name"] in PAYLOADS:
            name, version = entry["name"], entry["version"]
            values = _values(name, version, entry)
            found.written.append(Written(name, version, bytes.fromhex(entry["hex"]), values))
    return found


def _values(name: str, version: int, entry: dict[str, Any]) -> dict[str, Any]:
    if name == "AssignmentInfo":  # complete, and with topics by name
        return dict(_in_snake_case(entry["values"]))
    given = {RENAMED.get((name, key), key): value for key, value in entry["values"].items()}
    fields = payload_layout(name, version).fields
    if "lead" in entry:
        given[fields[0].name] = entry["lead"]
    return values_of(fields, version, given)


def _in_snake_case(value: Any) -> Any:
    if isinstance(value, dict):
        return {snake_case(name): _in_snake_case(each) for name, each in value.items()}
    return [_in_snake_case(each) for each in value] if isinstance(value, list) else value


def _run(seed: int, count: int) -> str:
    """The broker's jars hold the coordinators and Connect, those of the oracle hold Streams."""
    jars = f"{NEWEST}:oracle-{NEWEST}"
    classes = compiled(jars, HERE / "Oracle.java", HERE / "Payloads.java")
    command = java(jars, "Payloads", str(seed), str(count), classes=classes)
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"Payloads failed:\n{done.stderr.decode()}")
    return done.stdout.decode()
