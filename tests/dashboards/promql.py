"""Expressions of panels and rules: the series that they name, and panels' variables filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from klamm.dashboards.files import RULES, text_of
from klamm.dashboards.grafana.boards import BOARDS

SELECTOR = re.compile(r"(?<![\w:$'\"~])((?:[a-z_]+:)?(?:klamm|process)_\w+(?::\w+)?|up(?=\{))(\{[^}]*\})?")
SUFFIXES = ("_bucket", "_count", "_sum")  # of the series of a histogram
VARIABLE = re.compile(r"\$(\w+)")


class Query(NamedTuple):
    """`where`: dashboard, panel and legend, or the name of a rule."""

    where: str
    expression: str


def panels(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Those that ask for something: all but headings."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def queries() -> list[Query]:
    """Of all panels."""
    return [
        Query(f"{name}: {panel['title']} {target['legendFormat']}".strip(), target["expr"])
        for name, board in BOARDS.items()
        for panel in panels(board)
        for target in panel["targets"]
    ]


def rules() -> list[dict[str, Any]]:
    """All recording and alert rules."""
    files = [yaml.safe_load(text_of(f"prometheus/{name}.yaml")) for name in RULES]
    return [rule for file in files for group in file["groups"] for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def selectors(expression: str) -> list[str]:
    """The series that an expression names, with their matchers."""
    return [name + matchers for name, matchers in SELECTOR.findall(expression)]


def metric(selector: str) -> str:
    """The metric of a selector, as docs/metrics.md names it."""
    name = selector.partition("{")[0]
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)


def filled(expression: str, values: Mapping[str, str]) -> str:
    """With values in place of the variables. KeyError where one has none."""
    return VARIABLE.sub(lambda found: values[found[1]], expression)
