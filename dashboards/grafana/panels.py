"""Panels: what they show, how wide they are, and the JSON that Grafana wants for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]
Colours = Mapping[float | None, str]  # by the value from which on they hold; None is any value

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WHOLE = 24  # columns of Grafana's grid


class Panel(NamedTuple):
    """`width` and `height` in units of Grafana's grid. `body`: its JSON, without id and place."""

    width: int
    height: int
    body: Json


def row(title: str) -> Panel:
    """A heading: the question that the panels below it answer."""
    return Panel(WHOLE, 1, {"type": "row", "title": title, "collapsed": False, "panels": []})


def lines(
    title: str, description: str, unit: str, queries: Mapping[str, str], width: int = 8, stacked: bool = False
) -> Panel:
    """Values over time. `queries`: expressions by the pattern of their names in the legend."""
    defaults: Json = {"unit": unit, "min": 0}
    if stacked:
        defaults["custom"] = {"fillOpacity": 30, "stacking": {"mode": "normal"}}
    options = {"tooltip": {"mode": "multi", "sort": "desc"}}
    return _panel("timeseries", (width, 8), title, description, defaults, options, _targets(queries))


def number(
    title: str,
    description: str,
    unit: str,
    query: str,
    width: int = 4,
    colours: Colours | None = None,
    name: str = "",
) -> Panel:
    """The newest value, large. `name`: the pattern of the name where there are several."""
    steps = [{"color": colour, "value": value} for value, colour in (colours or {None: "blue"}).items()]
    defaults = {"unit": unit, "thresholds": {"mode": "absolute", "steps": steps}}
    options = {
        "colorMode": "background" if colours else "value",
        "graphMode": "none",
        "reduceOptions": {"calcs": ["lastNotNull"]},
        "textMode": "value_and_name" if name else "value",
    }
    return _panel("stat", (width, 4), title, description, defaults, options, _targets({name: query}))


def table(title: str, description: str, unit: str, query: str, width: int = 8) -> Panel:
    """A row for each series, with its labels and its newest value, the largest first."""
    options = {"sortBy": [{"displayName": "Value", "desc": True}]}
    targets = _targets({"": query}, format="table", instant=True)
    panel = _panel("table", (width, 8), title, description, {"unit": unit}, options, targets)
    without_time = {"id": "organize", "options": {"excludeByName": {"Time": True}}}
    return panel._replace(body=panel.body | {"transformations": [without_time]})


def states(title: str, description: str, query: str, name: str, width: int = WHOLE) -> Panel:
    """A bar for each series over time: green where it is 1, red where it is 0."""
    texts = {"0": {"text": "down", "color": "red"}, "1": {"text": "up", "color": "green"}}
    defaults = {"unit": "none", "mappings": [{"type": "value", "options": texts}]}
    options = {"showValue": "never"}
    return _panel(
        "state-timeline", (width, 6), title, description, defaults, options, _targets({name: query})
    )


def _panel(
    kind: str,
    size: tuple[int, int],
    title: str,
    description: str,
    defaults: Json,
    options: Json,
    targets: list[Json],
) -> Panel:
    body = {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": targets,
    }
    return Panel(*size, body)


def _targets(queries: Mapping[str, str], **more: Any) -> list[Json]:
    letters = map(chr, range(ord("A"), ord("Z")))
    return [
        {"refId": letter, "legendFormat": name, "expr": query, **more}
        for letter, (name, query) in zip(letters, queries.items(), strict=False)
    ]
