"""A dashboard as JSON: its variables, and its panels one after another in rows of Grafana's grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from klamm.dashboards.grafana.panels import SOURCE, WHOLE, Json, Panel
from klamm.dashboards.grafana.queries import CLUSTER, INSTANCE

SCHEMA = 36  # of the JSON, from Grafana 9 on; a newer Grafana converts it as it reads it
TAG = "klamm"


def dashboard(name: str, title: str, description: str, panels: Sequence[Panel], *variables: Json) -> Json:
    """`name` makes its id. `variables` are those beside data source, instances and clusters."""
    return {
        "uid": f"klamm-{name}",
        "title": f"klamm: {title}",
        "description": description,
        "tags": [TAG],
        "schemaVersion": SCHEMA,
        "editable": True,
        "graphTooltip": 1,  # one crosshair in all panels
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "links": [TO_THE_OTHERS],
        "templating": {"list": [DATA_SOURCE, INSTANCES, CLUSTERS, *variables]},
        "panels": list(_placed(panels)),
    }


def variable(name: str, label: str, query: str, everything: str | None = ".*") -> Json:
    """A choice of several values. `everything`: the pattern for all; None: the values that there are."""
    choice = {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,  # as the shown time changes
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "current": {"text": ["All"], "value": ["$__all"]},
    }
    return choice if everything is None else choice | {"allValue": everything}


DATA_SOURCE = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
# Other processes have metrics of the same names (process_*), so all are the instances of klamm only.
INSTANCES = variable("instance", "klamm", "label_values(klamm_build_info, instance)", everything=None)
CLUSTERS = variable("cluster", "Cluster", f"label_values(klamm_cluster_ready{{{INSTANCE}}}, cluster)")
APIS = variable("api", "API", f"label_values(klamm_requests_total{{{CLUSTER}}}, api)")
CLIENTS = variable("client", "Client", f"label_values(klamm_requests_total{{{CLUSTER}}}, client_id)")
TOPICS = variable("topic", "Topic", f"label_values(klamm_topic_requests_total{{{CLUSTER}}}, topic)")

TO_THE_OTHERS = {
    "type": "dashboards",
    "title": "klamm",
    "tags": [TAG],
    "asDropdown": True,
    "includeVars": True,
    "keepTime": True,
}


def _placed(panels: Sequence[Panel]) -> Iterator[Json]:
    """With ids, and places from left to right; what has no room begins a new line."""
    x = y = tallest = 0
    for number, (width, height, body) in enumerate(panels, 1):
        if x + width > WHOLE:
            x, y, tallest = 0, y + tallest, 0
        yield {"id": number, **body, "gridPos": {"x": x, "y": y, "w": width, "h": height}}
        x, tallest = x + width, max(tallest, height)
