"""All dashboards, by the names of their files."""

from __future__ import annotations

from klamm.dashboards.grafana import api, client, faults, itself, overview, topic

BOARDS = {
    "overview": overview.BOARD,
    "api": api.BOARD,
    "client": client.BOARD,
    "topic": topic.BOARD,
    "faults": faults.BOARD,
    "klamm": itself.BOARD,
}
