"""Expressions for the exchanges of a node, an edge, an API or an error: docs/expressions.md."""

from __future__ import annotations

import json

from klamm.dashboards.web.traffic.answers import Kind
from klamm.proxy.session.observing.counters import OTHER

FAILED = "error != NONE"
FIELDS: dict[Kind, str] = {"client": "client_id", "broker": "broker", "topic": "topic"}


def of_node(kind: Kind, cluster: str, name: str, many: bool) -> str:
    """Empty where there is none: for the rest of the clients, or topics. `many`: of several clusters."""
    if name == OTHER and kind != "broker":
        return ""
    if kind == "topic" and name.startswith("id:"):
        return ""  # an expression knows a topic id by its name only
    of = f"{FIELDS[kind]} == {_text(name)}"
    if kind == "client" and not name:
        of = '(client_id is None or client_id == "")'
    return f"cluster == {_text(cluster)} and {of}" if many else of


def both(*parts: str) -> str:
    """All of these at once; empty where one of them is."""
    return " and ".join(parts) if all(parts) else ""


def of_api(api: str, version: int | None) -> str:
    """Empty for an API that klamm does not know."""
    if not api.isidentifier():
        return ""
    return f"api == {api}" if version is None else f"api == {api} and version == {version}"


def of_error(error: str) -> str:
    """An unknown code is told as its number."""
    return f"error == {error.removeprefix('ERROR_')}"


def within(where: str, condition: str) -> str:
    """`where`, of what the page's own condition has chosen."""
    return f"({condition}) and {where}" if where and condition else where


def _text(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
