"""Random messages that Kafka's own classes wrote, and their values as `klamm.decoders` has them."""

import base64
import json
import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klamm.decoders.schema import Field, default_of, members, present
from tests.brokers.jars import JARS

HERE = Path(__file__).resolve().parent
NEWEST_FIRST = ["4.3.1", "3.9.1"]  # together they know every layout of keys 0-92

Key = tuple[int, str, int]  # API key (-1: a header), side or "header", version


@dataclass(frozen=True, slots=True)
class Message:
    name: str
    key: int
    side: str
    version: int
    data: bytes
    values: dict[str, Any]  # Kafka's JSON; empty for a message of defaults only


def written(seed: int, count: int) -> dict[Key, list[Message]]:
    """`count` messages of every layout, each from the newest Kafka that has it; the first has defaults only."""
    found: dict[Key, list[Message]] = defaultdict(list)
    for kafka in NEWEST_FIRST:
        ours: dict[Key, list[Message]] = defaultdict(list)
        for line in _run(kafka, seed, count).splitlines():
            entry = json.loads(line)
            data = bytes.fromhex(entry["hex"])
            message = Message(
                entry["name"], entry["key"], entry["side"], entry["version"], data, entry["values"]
            )
            ours[message.key, message.side, message.version].append(message)
        found.update((key, messages) for key, messages in ours.items() if key not in found)
    return found


def _run(kafka: str, seed: int, count: int) -> str:
    folder = JARS / f"oracle-{kafka}"
    if not any(folder.glob("*.jar")):
        pom = f"tests/oracle/{kafka}/pom.xml"
        raise RuntimeError(
            f"no jars in {folder}; run: mvn -q -B -f {pom} dependency:copy-dependencies -DoutputDirectory={folder}"
        )
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}/*", str(HERE / "Oracle.java")]
    done = subprocess.run([*command, str(seed), str(count)], capture_output=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"the oracle of Kafka {kafka} failed:\n{done.stderr.decode()}")
    return done.stdout.decode()


def snake_case(name: str) -> str:
    words = name.replace("KRaft", "Kraft").replace("kRaft", "kraft")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", words).lower()


def values_of(fields: tuple[Field, ...], version: int, given: dict[str, Any], flexible: bool) -> dict[str, Any]:
    """Kafka's JSON as `decode` returns it: what was not given has its default."""
    ours = {snake_case(name): value for name, value in given.items()}
    in_place, tagged = present(fields, version)
    there = [*in_place, *tagged] if flexible else in_place
    strange = ours.keys() - {f.name for f in there}
    assert not strange, f"Kafka has fields that the table lacks: {strange}"
    return {
        f.name: _value(f, version, ours[f.name], flexible) if f.name in ours else default_of(f, version)
        for f in there
    }


def _value(f: Field, version: int, value: Any, flexible: bool) -> Any:
    if value is None:
        return None
    if f.kind == "struct":
        return values_of(members(f), version, value, flexible)
    if f.kind == "array":
        if members(f):
            return [values_of(members(f), version, element, flexible) for element in value]
        return [_scalar(str(f.of), element) for element in value]
    return _scalar(f.kind, value)


def _scalar(kind: str, value: Any) -> Any:
    if kind == "uuid":
        return base64.urlsafe_b64decode(value + "==")
    return base64.b64decode(value) if kind in ("bytes", "records") else value
