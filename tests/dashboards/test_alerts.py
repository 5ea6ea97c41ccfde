"""The rules for Prometheus: promtool takes them, each alert fires and is silent in turn, and has its help."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from klamm.dashboards.files import RULES, text_of
from tests.brokers.jars import ROOT
from tests.dashboards.promql import alerts, rules

ROUNDS = Path(__file__).parent / "alerts.yaml"
PAGE = (ROOT / "docs" / "dashboards.md").read_text()
NAMES = [rule["alert"] for rule in alerts()]
KIND = re.compile(r'kind=~"([^"]+)"')


def test_promtool_takes_the_rules(promtool: Any, tmp_path: Path) -> None:
    for name in RULES:
        (tmp_path / f"{name}.yaml").write_text(text_of(f"prometheus/{name}.yaml"))
        assert "SUCCESS" in promtool("check", "rules", tmp_path / f"{name}.yaml")


def test_each_alert_fires_when_it_should_and_not_before(promtool: Any) -> None:
    assert "SUCCESS" in promtool("test", "rules", ROUNDS)


@pytest.mark.parametrize("name", NAMES)
def test_the_rounds_have_an_alert_firing_and_silent(name: str) -> None:
    rounds = yaml.safe_load(ROUNDS.read_text())["tests"]
    seen = [each for one in rounds for each in one["alert_rule_test"] if each["alertname"] == name]
    assert {bool(each["exp_alerts"]) for each in seen} == {True, False}


def test_each_recorded_rule_is_used_by_an_alert_or_described() -> None:
    asked = " ".join(rule["expr"] for rule in alerts())
    recorded = [rule["record"] for rule in rules() if "record" in rule]
    assert [name for name in recorded if name not in asked and f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize("alert", alerts(), ids=NAMES)
def test_an_alert_says_what_is_wrong_how_urgent_it_is_and_where_its_help_is(alert: dict[str, Any]) -> None:
    notes = alert["annotations"]
    assert set(notes) == {"summary", "description", "runbook"}
    assert notes["description"].endswith(".")
    assert alert["labels"]["severity"] in ("page", "ticket")
    page, _, anchor = notes["runbook"].partition("#")
    headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
    assert anchor == alert["alert"].lower()
    assert alert["alert"] in headings


def test_the_page_has_the_alerts_and_no_others() -> None:
    assert re.findall(r"^### (Klamm\w+)$", PAGE, re.MULTILINE) == NAMES
    for alert in alerts():
        text = PAGE.partition(f"### {alert['alert']}\n")[2].partition("\n#")[0]
        assert f"`{alert['labels']['severity']}`" in text, alert["alert"]


def test_each_kind_of_problem_has_an_alert_or_a_reason_to_have_none() -> None:
    policies = (ROOT / "docs" / "protocol-notes.md").read_text()
    table = policies.partition("| kind | what happened")[2].partition("\n\n")[0]
    kinds = {
        kind for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for kind in re.findall(r"\w+", row)
    }
    asked = {kind for rule in alerts() for found in KIND.findall(rule["expr"]) for kind in found.split("|")}
    silent = PAGE.partition("## Problems without an alert")[2].partition("\n## ")[0]
    without = set(re.findall(r"^\| `(\w+)` \|", silent, re.MULTILINE))
    assert len(kinds) > 25
    assert asked | without == kinds
    assert asked & without == set()
