"""`klamm rules`: what is printed, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from klamm.cli import main
from klamm.rules.file.json_schema import json_schema

FINE = "rules:\n  - {api: Produce, error: NOT_LEADER_OR_FOLLOWER, times: 3}\n"
DOUBTFUL = "rules:\n  - {api: Produce, error: NOT_COORDINATOR}\n"
WRONG = "rules:\n  - {api: Prodcue, error: 6}\n  - {api: Heartbeat, error: NOT_COORDINATOR, eror: 7}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("fine", FINE), ("doubtful", DOUBTFUL), ("wrong", WRONG)):
        (tmp_path / f"{name}.yaml").write_text(text)


def test_check_says_how_many_rules_can_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "check", "fine.yaml"]) == 0
    assert capsys.readouterr().out == "fine.yaml: 1 rule, ready to use\n"


def test_check_prints_a_warning_and_is_content(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "check", "doubtful.yaml", "fine.yaml"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "doubtful.yaml:2:27: rules[0].error: warning: Kafka's documents do not name NOT_COORDINATOR for"
        " Produce: clients may not know it",
        "doubtful.yaml: 1 rule, 1 warning, ready to use",
        "fine.yaml: 1 rule, ready to use",
    ]


def test_check_fails_with_every_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "check", "wrong.yaml", "fine.yaml"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "wrong.yaml:2:11: rules[0].api: unknown API 'Prodcue'; did you mean Produce?",
        "wrong.yaml:3:46: rules[1].eror: unknown key; did you mean error?",
        "wrong.yaml: 2 mistakes",
        "fine.yaml: 1 rule, ready to use",
    ]


def test_check_speaks_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "check", "--json", "wrong.yaml", "doubtful.yaml"]) == 1
    first, _, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {
        "file": "wrong.yaml",
        "line": 2,
        "column": 11,
        "key": "rules[0].api",
        "severity": "error",
        "reason": "unknown API 'Prodcue'; did you mean Produce?",
    }
    assert (last["severity"], last["key"]) == ("warning", "rules[0].error")


def test_explain_says_what_a_rule_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "explain", "fine.yaml"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Produce-error-1 (fine.yaml:2:5)",
        "  for   requests of Produce (versions 0-13)",
        "  when  at most 3 times",
        "  does  error (code=NOT_LEADER_OR_FOLLOWER): Answer with an error",
        "  cost  only the frames on which it acts are held; the others are judged by their headers, and pass",
        "",
    ]


def test_explain_says_the_mistakes_of_a_file_that_has_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "explain", "wrong.yaml"]) == 1
    assert "did you mean Produce?" in capsys.readouterr().out


def test_schema_prints_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema()


@pytest.mark.parametrize("words", [["chek", "fine.yaml"], ["check"], []])
def test_wrong_usage_is_said(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", *words]) == 2
    assert capsys.readouterr().err.startswith("klamm rules")


def test_a_plugin_may_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(
        "class Mine:\n    name = 'mine'\n    def act(self, frame, draw):\n        return []\n"
    )
    (tmp_path / "rules.yaml").write_text("rules: [{mine: true}]")
    assert main(["rules", "check", "rules.yaml", "--plugin", "mine.py"]) == 0
    assert main(["rules", "check", "rules.yaml"]) == 1
