"""The files for Grafana and Prometheus, by their names below the folder that they are written to."""

from __future__ import annotations

import json
from importlib.resources import files

from klamm.dashboards.grafana.boards import BOARDS

FOLDER = files("klamm.dashboards") / "prometheus"
RULES = {
    "recording": "what the alerts ask for more than once",
    "alerts": "what an operator wants to be woken for",
}


def described() -> dict[str, str]:
    """The purpose of each file, by its name."""
    boards = {f"grafana/{name}.json": str(board["description"]) for name, board in BOARDS.items()}
    return boards | {f"prometheus/{name}.yaml": text for name, text in RULES.items()}


def text_of(name: str) -> str:
    """The content of a file. Raises KeyError."""
    kind, _, file = name.partition("/")
    if kind == "grafana":
        return json.dumps(BOARDS[file.removesuffix(".json")], indent=2) + "\n"
    if name not in described():
        raise KeyError(name)
    return (FOLDER / file).read_text(encoding="utf-8")
