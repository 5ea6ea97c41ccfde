"""The expression that chooses the exchanges of a row: docs/expressions.md."""

from __future__ import annotations

import json

from klamm.dashboards.terminal.window import NO_CLIENT_ID
from klamm.dashboards.top.state import API, BROKER, CLIENT, CONNECTION, ERROR, TOPIC


def of_row(table: str, key: str, many: bool) -> str:
    """Empty where there is none. With `many` clusters the names of rows begin with the cluster's."""
    if table == API:
        return f"api == {key}"
    if table == CONNECTION:
        return f"connection == {key}"
    if table == ERROR:
        api, _, error = key.partition(" ")
        return f"api == {api} and error == {error}"
    if table not in (CLIENT, TOPIC, BROKER):
        return ""
    cluster, _, name = key.partition("/") if many else ("", "", key)
    which = f"cluster == {_text(cluster)} and " if many else ""
    if table == CLIENT and name == NO_CLIENT_ID:
        return f"{which}client_id is None"
    return f"{which}{table} == {_text(name)}"


def _text(name: str) -> str:
    return json.dumps(name)
