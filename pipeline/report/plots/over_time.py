"""Plots over time: requests, bytes, latency and errors."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from klamm.pipeline.report.gathering import Moment, Traffic
from klamm.pipeline.report.plots.plotting import (
    COLOURS,
    LEGEND_ROW,
    Plot,
    Values,
    layout,
    ms_axis,
    positive_ms,
)
from klamm.pipeline.report.wording import duration, local

S = 1_000_000  # us
OTHER = "other"
PER_ROW = 2  # names in a row of a legend, as the longest need it
LINES = 5  # that cross each other and can still be told apart


def requests(traffic: Traffic) -> Plot:
    seconds = traffic.step_us / S
    names, series = _stacked(
        traffic, ((one.start_us, one.api, one.count / seconds) for one in traffic.series)
    )
    x = [_middle(traffic, bucket) for bucket in _buckets(traffic)]
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "stackgroup": "all",
            "name": name,
            "x": x,
            "y": [round(value, 3) for value in series[name]],
            "line": {"width": 0.5, "color": colour},
            "hovertemplate": "%{y:,.1f}/s",
        }
        for name, colour in zip(names, COLOURS, strict=False)
    ]
    about = f"Requests a second by API, in steps of {_step(traffic)}."
    return Plot("requests", "Requests", about, data, _over_time(traffic, "requests / s", len(data)))


def size_over_time(traffic: Traffic) -> Plot:
    seconds = traffic.step_us / S
    sent: Counter[int] = Counter()
    received: Counter[int] = Counter()
    for one in traffic.series:
        sent[one.start_us] += one.request_bytes
        received[one.start_us] += one.response_bytes
    buckets = _buckets(traffic)
    x = [_middle(traffic, bucket) for bucket in buckets]
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": x,
            "y": [round(counts[bucket] / seconds) for bucket in buckets],
            "line": {"width": 2, "color": colour},
            "fill": "tozeroy",
            "fillcolor": f"{colour}22",
            "hovertemplate": "%{y:.3s}B/s",
        }
        for name, counts, colour in (("requests", sent, COLOURS[0]), ("responses", received, COLOURS[1]))
    ]
    about = "What clients sent and were answered, by when the request came."
    return Plot("bytes", "Bytes", about, data, _over_time(traffic, "bytes / s", 2, tickformat="~s"))


def latency_over_time(traffic: Traffic) -> Plot:
    counts: Counter[str] = Counter()
    by_api: dict[str, list[Moment]] = defaultdict(list)
    for one in traffic.series:
        if one.p99_ms is not None:
            counts[one.api] += one.count
            by_api[one.api].append(one)
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": [_middle(traffic, one.start_us) for one in by_api[name]],
            "y": [positive_ms(one.p99_ms) for one in by_api[name]],
            "customdata": [
                f"p50 {duration(one.p50_ms or 0)}, p99 {duration(one.p99_ms or 0)}" for one in by_api[name]
            ],
            "line": {"width": 2, "color": colour},
            "hovertemplate": "%{customdata}",
        }
        for (name, _), colour in zip(counts.most_common(LINES), COLOURS, strict=False)
    ]
    about = f"The 99th percentile of the {len(data)} most used APIs; Fetch, ShareFetch and JoinGroup wait."
    made = _over_time(traffic, "", len(data), type="log", rangemode="normal", **ms_axis())
    return Plot("latency-over-time", "Latency over time", about, data, made)


def errors(traffic: Traffic) -> Plot:
    names, series = _stacked(traffic, ((one.start_us, one.error, one.count) for one in traffic.error_series))
    x = [_middle(traffic, bucket) for bucket in _buckets(traffic)]
    data = [
        {
            "type": "bar",
            "name": name,
            "x": x,
            "y": series[name],
            "marker": {"color": colour},
            "hovertemplate": "%{y:,}",
        }
        for name, colour in zip(names, COLOURS, strict=False)
    ]
    made = {**_over_time(traffic, "errors", len(data), tickformat=",d"), "barmode": "stack", "bargap": 0.05}
    about = f"Error codes in answers, by when the request came, in steps of {_step(traffic)}."
    return Plot("errors", "Errors", about, data, made, empty="" if data else "No answer had an error.")


def _stacked(
    traffic: Traffic, values: Iterable[tuple[int, str, float]]
) -> tuple[list[str], dict[str, list[float]]]:
    """Names, the largest first, and of each a value for every bucket."""
    triples = list(values)
    totals: Counter[str] = Counter()
    for _, name, value in triples:
        totals[name] += value  # type: ignore[assignment]
    names = _largest(totals)
    places = {bucket: place for place, bucket in enumerate(_buckets(traffic))}
    found = {name: [0.0] * len(places) for name in names}
    for bucket, name, value in triples:
        if bucket in places:
            found[name if name in found else OTHER][places[bucket]] += value
    return names, found


def _largest(counts: Counter[str], most: int = len(COLOURS) - 1) -> list[str]:
    """Names, the largest first, and OTHER if there are more."""
    names = [name for name, _ in counts.most_common(most)]
    return names + [OTHER] * (len(counts) > most)


def _over_time(traffic: Traffic, title: str, names: int, **y: Any) -> Values:
    """`names`: how many stand in the legend."""
    edges = [
        _date(traffic.first_us // traffic.step_us * traffic.step_us),
        _date(traffic.last_us + traffic.step_us),
    ]
    x = {"type": "date", "range": edges, "autorange": False}
    made = {"title": {"text": title}, "rangemode": "tozero", **y}
    return layout(260 + LEGEND_ROW * -(-names // PER_ROW), x, made, hovermode="x unified")


def _buckets(traffic: Traffic) -> list[int]:
    step = traffic.step_us
    return list(range(traffic.first_us // step * step, traffic.last_us + 1, step))


def _middle(traffic: Traffic, bucket: int) -> str:
    return _date(bucket + traffic.step_us // 2)


def _date(time_us: int) -> str:
    return local(time_us).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _step(traffic: Traffic) -> str:
    return duration(traffic.step_us / 1000).replace(".00", "").replace(".0", "")
