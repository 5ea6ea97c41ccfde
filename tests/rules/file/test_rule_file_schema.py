"""The JSON Schema for editors: what klamm reads it allows, and common mistakes it shows."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from klamm.rules.actions import ACTIONS
from klamm.rules.file.json_schema import json_schema
from tests.rules.file.test_rule_file_docs import BLOCKS
from tools.rules_doc import example

SCHEMA = json_schema()
TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}
WORDS = {
    "$ref", "$schema", "$defs", "title", "description", "enum", "const", "pattern", "minimum",
    "maximum",
    "type", "anyOf", "properties", "additionalProperties", "required", "items",
}  # fmt: skip


def fits(value: Any, schema: Any) -> bool:
    """JSON Schema as far as this one uses it."""
    assert set(schema) <= WORDS
    if "$ref" in schema:
        return fits(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    checks = [
        "type" not in schema or _typed(value, schema["type"]),
        "enum" not in schema or any(value == word and type(value) is type(word) for word in schema["enum"]),
        "const" not in schema or (value == schema["const"] and type(value) is type(schema["const"])),
        "pattern" not in schema
        or not isinstance(value, str)
        or re.search(schema["pattern"], value) is not None,
        "minimum" not in schema or not _typed(value, "number") or value >= schema["minimum"],
        "maximum" not in schema or not _typed(value, "number") or value <= schema["maximum"],
        "anyOf" not in schema or any(fits(value, option) for option in schema["anyOf"]),
        "items" not in schema or not isinstance(value, list) or all(fits(v, schema["items"]) for v in value),
    ]
    if isinstance(value, dict) and ("properties" in schema or "additionalProperties" in schema):
        known, more = schema.get("properties", {}), schema.get("additionalProperties", {})
        checks += [
            fits(inner, known[key]) if key in known else more is not False for key, inner in value.items()
        ]
        checks.append(set(schema.get("required", ())) <= set(value))
    return all(checks)


def _typed(value: Any, types: str | list[str]) -> bool:
    return any(
        isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
        for name in ([types] if isinstance(types, str) else types)
    )


def written(rules: str) -> Any:
    return yaml.safe_load(f"rules:\n  - {rules}\n")


def test_the_examples_of_the_guide_fit() -> None:
    assert fits(yaml.safe_load(BLOCKS[0][1]), SCHEMA)


@pytest.mark.parametrize("kind", ACTIONS.values(), ids=ACTIONS)
def test_every_action_fits_in_its_short_form_and_in_do(kind: Any) -> None:
    assert fits(written(f"{{{example(kind)}}}"), SCHEMA)
    assert fits(written(f"{{do: [{{{example(kind)}}}]}}"), SCHEMA)


@pytest.mark.parametrize(
    "rule",
    [
        "{api: [Produce, '*Offset*'], versions: 3, topic: 0123, partition: [0, 1], drop: true}",
        "{chance: 0.5, from: 30s, until: '2030-01-01T00:00:00Z', nth: [1, 2], drop: {}}",
        "{api: Produce, error: 6}",
        "{api: Produce, error: {code: NOT_LEADER_FOR_PARTITION, at: responses.error_code}}",
    ],
)
def test_what_can_be_read_fits(rule: str) -> None:
    assert fits(written(rule), SCHEMA)


@pytest.mark.parametrize(
    "rule",
    [
        "{api: Prodcue, drop: true}",
        "{api: Produce, eror: 6}",
        "{api: Produce, error: NOT_LEADER}",
        "{error: {at: responses.error_code}}",
        "{chance: 20, drop: true}",
        "{delay: 500}",
        "{delay: {time: 1s, jiter: 5ms}}",
        "{drop: maybe}",
        "{side: answer, drop: true}",
        "{nth: [0], drop: true}",
        "{do: {drop: true}}",
    ],
)
def test_a_mistake_does_not_fit(rule: str) -> None:
    assert not fits(written(rule), SCHEMA)


def test_every_key_and_action_is_described() -> None:
    rule = SCHEMA["properties"]["rules"]["items"]["properties"]
    assert [
        key for key in rule if key not in ACTIONS and key != "do" and "description" not in rule[key]
    ] == []
    assert [name for name, action in SCHEMA["$defs"].items() if not action["description"]] == []
