"""Actions of one's own: what is found in a file, and what is said where it cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from klamm.rules.file.rule_file import RuleFile, load

FINE = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Halve:
    name = "halve"
    sides = ("request",)
    apis = ("Fetch",)
    by: int = 2
    def act(self, frame, draw):
        return []

class Nothing:
    name = "nothing"
    def act(self, frame, draw):
        return []

class _Hidden:
    name = "hidden"
    def act(self, frame, draw):
        return []
"""


def loaded(folder: Path, code: str, rules: str = "{halve: 3}") -> RuleFile:
    (folder / "mine.py").write_text(code)
    (folder / "rules.yaml").write_text(f"plugins: [mine.py]\nrules:\n  - {rules}\n")
    return load(str(folder / "rules.yaml"))


def test_its_classes_are_actions_like_the_built_in_ones(tmp_path: Path) -> None:
    found = loaded(tmp_path, FINE, "{do: [{halve: 3}, {nothing: true}]}")
    assert found.mistakes == []
    halve, nothing = found.rules[0].do
    assert halve.by == 3  # type: ignore[attr-defined]
    assert nothing.sides == ("request", "response")
    assert found.rules[0].keys == {1}
    assert found.files == (str(tmp_path / "rules.yaml"), str(tmp_path / "mine.py"))


def test_an_action_says_for_which_apis_and_sides_it_is_and_why_it_cannot_be_used(tmp_path: Path) -> None:
    (other,) = loaded(tmp_path, FINE, "{api: Produce, halve: 3}").mistakes
    assert other.reason == "halve works on Fetch, not on Produce: leave api out"
    (answer,) = loaded(tmp_path, FINE, "{api: Fetch, side: response, halve: 3}").mistakes
    assert answer.reason.startswith("halve works on requests, not on responses")
    fits = "    def fits(self, api, version, side):\n        return None if version > 3 else 'too old'\n"
    picky = FINE.replace("    by: int = 2\n", "    by: int = 2\n" + fits)
    (old,) = loaded(tmp_path, picky, "{api: Fetch, versions: 0-3, halve: 3}").mistakes
    assert old.reason == "too old"
    assert loaded(tmp_path, picky, "{api: Fetch, versions: 4+, halve: 3}").mistakes == []


def test_klamm_itself_runs_the_file(tmp_path: Path) -> None:
    code = f"import os, pathlib\npathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n{FINE}"
    assert loaded(tmp_path, code).mistakes == []
    assert (tmp_path / "pid").read_text() == str(os.getpid())


def test_what_begins_with_an_underscore_is_none(tmp_path: Path) -> None:
    (mistake,) = loaded(tmp_path, FINE, "{hidden: true, drop: true}").mistakes
    assert mistake.reason.startswith("unknown key")


def test_the_caller_may_name_plugins_too(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FINE)
    (tmp_path / "rules.yaml").write_text("rules: [{halve: true}]")
    assert load(str(tmp_path / "rules.yaml"), [str(tmp_path / "mine.py")]).mistakes == []


def test_a_change_within_the_same_second_is_read(tmp_path: Path) -> None:
    assert loaded(tmp_path, FINE, "{halve: true}").rules[0].do[0].by == 2  # type: ignore[attr-defined]
    again = loaded(tmp_path, FINE.replace("by: int = 2", "by: int = 9"), "{halve: true}")
    assert again.rules[0].do[0].by == 9  # type: ignore[attr-defined]


RAISED = "2:1: raised"
WRONG = {
    "x = 1\nraise ValueError('no licence')": f"{RAISED} ValueError: no licence",
    "def f(:\n": "1:7: not Python: invalid syntax",
    "import sys\nimport nowhere.at_all": f"{RAISED} ModuleNotFoundError: No module named 'nowhere'",
    FINE.replace('"halve"', '"drop"'): "5:1: class Halve: there is an action named drop already",
    FINE.replace('"halve"', '"topic"'): "5:1: class Halve: topic is another key of a rule: choose another",
    FINE.replace('"halve"', '"Halve"'): "5:1: class Halve: its name is 'Halve': "
    "it takes small letters, digits and '_'",
    FINE.replace("(frozen=True)", ""): "5:1: class Halve: write @dataclass(frozen=True) above it",
    FINE.replace("by: int", "by: Number"): "9:1: raised NameError: name 'Number' is not defined",
}  # fmt: skip


@pytest.mark.parametrize(("code", "message"), WRONG.items(), ids=WRONG.values())
def test_what_is_wrong_with_a_plugin_is_said_with_its_line(tmp_path: Path, code: str, message: str) -> None:
    (mistake,) = loaded(tmp_path, code).mistakes
    assert str(mistake).removeprefix(f"{tmp_path}/mine.py:") == message


def test_a_plugin_without_an_action_is_a_mistake(tmp_path: Path) -> None:
    (mistake,) = loaded(tmp_path, "x = 1").mistakes
    assert mistake.reason == "has no action: a class with `name` and `act`"


def test_a_plugin_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("plugins: [mine.py]\nrules: [{drop: true}]")
    (mistake,) = load(str(tmp_path / "rules.yaml")).mistakes
    assert mistake.reason == "cannot be read: No such file or directory"
