"""A metric as Prometheus knows it: a family, with a row of labels and a value for each of its series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from klamm.proxy.session.observing.counters import Histogram

NS = 1_000_000_000
BROKER = ("cluster", "broker")

Labels = tuple[str, ...]
Rows = Iterable[tuple[Labels, float]]


def counter(name: str, description: str, labels: Sequence[str], rows: Rows) -> Metric:
    """A counter. With two labels or more, a series appears with its first count; others are there at once."""
    family = CounterMetricFamily(name, description, labels=labels)
    for values, count in rows:
        if count or len(labels) < 2:
            family.add_metric(values, count)
    return family


def gauge(name: str, description: str, labels: Sequence[str], rows: Rows) -> Metric:
    family = GaugeMetricFamily(name, description, labels=labels)
    for values, value in rows:
        family.add_metric(values, value)
    return family


def histograms(
    name: str, description: str, labels: Sequence[str], rows: Mapping[Labels, Histogram]
) -> Metric:
    family = HistogramMetricFamily(name, description, labels=labels)
    for values, histogram in rows.items():
        if not any(histogram.buckets):  # do not write twenty zeros
            continue
        bounds = [*(repr(bound / NS) for bound in histogram.bounds), "+Inf"]
        buckets = list(zip(bounds, accumulate(histogram.buckets), strict=True))
        family.add_metric(values, buckets, histogram.total_ns / NS)
    return family
