"""docs/rules.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from klamm.rules.actions import ACTIONS
from klamm.rules.file.rule_file import RuleFile, load
from klamm.rules.file.written import Selectors
from klamm.settings.typed_yaml import keys
from tools.rules_doc import BEGIN, EXAMPLES, PAGE, page

TEXT = PAGE.read_text()
BLOCKS = re.findall(r"```(yaml|python)\n(.+?)```", TEXT, re.DOTALL)


def loaded(folder: Path, text: str) -> RuleFile:
    (folder / "rules.yaml").write_text(text)
    return load(str(folder / "rules.yaml"))


def test_the_reference_is_what_the_code_says_now() -> None:
    assert page(TEXT) == TEXT, "rules changed; run: make docs"


def test_the_example_is_a_file_without_a_doubt(tmp_path: Path) -> None:
    found = loaded(tmp_path, BLOCKS[0][1])
    assert (found.mistakes, found.warnings) == ([], [])
    assert len(found.rules) == 5


def test_the_plugin_of_the_page_is_one(tmp_path: Path) -> None:
    (kind, code), (_, rules) = BLOCKS[1:]
    assert kind == "python"
    (tmp_path / "hurry.py").write_text(code)
    found = loaded(tmp_path, rules)
    assert found.mistakes == []
    assert found.rules[0].do[0].wait_ms == 5  # type: ignore[attr-defined]


@pytest.mark.parametrize("key", keys(Selectors))
def test_the_example_of_every_key_can_be_read(tmp_path: Path, key: str) -> None:
    event = "down: true" if key == "event" else "log: true"
    others = (
        {"since": "for: 1m", "per": "times: 3"}.get(key, "enabled: true") if key != "enabled" else "dry: true"
    )
    text = f"rules:\n- name: one\n  drop: true\n- {key}: {EXAMPLES[key]}\n  {others}\n  {event}\n"
    found = loaded(tmp_path, text.replace("name: one", "name: leaderless") if key != "name" else text)
    assert (found.mistakes, found.warnings) == ([], [])


def test_every_action_and_its_parameters_are_there() -> None:
    made = TEXT.partition(BEGIN)[2]
    for name, kind in ACTIONS.items():
        section = made.partition(f"#### {name}\n")[2].partition("\n#### ")[0]
        assert section
        for key in keys(kind):
            assert key == name or f"| `{key}` |" in section
