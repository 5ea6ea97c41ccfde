"""Configurations, rules and scenarios that somebody else wrote: each mistake is a line, and no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from klamm.cli import main
from klamm.rules.file.rule_file import load, read_text
from klamm.rules.peers import MOST, Peers

DIGITS = "9" * 400
ESCAPE = '"\\e]0;title\\a\\e[31m"'
RULES = {
    "an endless delay": f"rules: [{{api: Fetch, delay: {DIGITS}s}}]",
    "an endless rule": f"rules: [{{api: Fetch, error: 6, for: {'9' * 300}s}}]",
    "a boundless bandwidth": f"rules: [{{api: Fetch, bandwidth: {DIGITS}MB}}]",
    "a key with a terminal's commands": f"{ESCAPE}: 1",
    "a tag with a terminal's commands": "rules: !%1b%5b31mred []",
}
CONFIGURATIONS = {
    "boundless sizes": f"limits: {{frame_bytes: {DIGITS}GiB}}",
    "endless segments": f"capture: {{folder: FOLDER/capture, segment_s: {'9' * 20}h}}",
    "a log file with a long name": f"log: {{file: {'x' * 5000}}}",
    "a capture with a long name": f"capture: {'x' * 5000}",
    "a state of an unknown user": "state: ~nobody-of-this-name/state",
    "a file with a terminal's commands": f"rules: {ESCAPE}",
    "a tag with a terminal's commands": "state: !%1b%5b31mred x",
}
SCENARIOS = {
    "an endless phase": f"phases: [{{name: a, for: {DIGITS}s}}]",
    "a parameter that is a list": "parameters: {[a]: 1}\nphases: [{name: a, for: 1s}]",
    "a key that is a mapping": "phases: [{name: a, for: 1s, rules: [{{a: b}: 1, api: Fetch, error: 6}]}]",
    "a tag with a terminal's commands": "phases: !%1b%5b31mred []",
}


def judged(words: list[str], capsys: pytest.CaptureFixture[str]) -> int:
    code = main(words)
    found = capsys.readouterr()
    odd = {
        letter for line in (found.out + found.err).split("\n") for letter in line if not letter.isprintable()
    }
    assert not odd
    assert "mistake" in found.out + found.err or ": " in found.err
    return code


@pytest.mark.parametrize("text", RULES.values(), ids=RULES)
def test_rules(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    assert judged(["rules", "check", str(file)], capsys) == 1


@pytest.mark.parametrize("text", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_configurations(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "klamm.yaml"
    file.write_text(f"clusters: [{{bootstrap: 127.0.0.1:1}}]\n{text.replace('FOLDER', str(tmp_path))}\n")
    assert judged(["run", "--config", str(file)], capsys) == 2


@pytest.mark.parametrize("text", SCENARIOS.values(), ids=SCENARIOS)
def test_scenarios(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "day.yaml"
    file.write_text(text)
    assert judged(["scenario", "check", str(file)], capsys) != 0


def test_what_a_rule_explains_moves_no_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(f"rules: [{{name: {ESCAPE}, api: Fetch, log: {ESCAPE}}}]")
    assert main(["rules", "explain", str(file)]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("number", ["9" * 5000, "\u00b2"])
def test_an_error_of_no_number(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(["errors", number], capsys) == 2


def test_a_long_duration_is_taken() -> None:
    assert not read_text("rules: [{api: Fetch, error: 6, for: 100000d}]", "rules.yaml").mistakes


def test_a_long_value_is_shortened_in_its_mistake(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(f"rules: [{{api: {'x' * 100_000}, delay: 1s}}]\n")
    [mistake] = load(str(tmp_path / "rules.yaml")).mistakes
    assert len(str(mistake)) < 1200


def test_a_name_of_a_rule_has_a_length_that_fits_a_line(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(f"rules: [{{name: {'x' * 1000}, api: Fetch, delay: 1s}}]\n")
    [mistake] = load(str(tmp_path / "rules.yaml")).mistakes
    assert "a name of 1,000 characters: it may have 250" in str(mistake)


def test_addresses_that_rules_number_are_bounded() -> None:
    peers = Peers()
    for number in range(MOST + 10):
        peers.peer("c", "1", f"[fd00::{number:x}]:1")
    assert len(peers.connections) == 10
