"""Dashboards of Grafana as tables of panels; `klamm dashboards` writes them as JSON. docs/dashboards.md."""
