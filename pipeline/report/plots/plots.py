"""The plots of a report, in their order."""

from __future__ import annotations

from collections.abc import Callable

from klamm.pipeline.report.gathering import Traffic
from klamm.pipeline.report.plots.by_name import clients, latency_by_api, latency_by_broker, sizes
from klamm.pipeline.report.plots.over_time import errors, latency_over_time, requests, size_over_time
from klamm.pipeline.report.plots.plotting import Plot

PLOTS: tuple[Callable[[Traffic], Plot], ...] = (
    requests,
    size_over_time,
    latency_over_time,
    errors,
    latency_by_api,
    latency_by_broker,
    clients,
    sizes,
)


def plots(traffic: Traffic) -> list[Plot]:
    """All plots."""
    return [made(traffic) for made in PLOTS]
