"""Plots over time: requests, bytes, latency and errors."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC

from klamm.pipeline.report import wording
from klamm.pipeline.report.gathering import Moment, Traffic
from klamm.pipeline.report.plots.plotting import (
    CHOSEN,
    COLOURS,
    Plot,
    Values,
    css,
    faded,
    label,
    legend,
    ms,
    positive_ms,
    rows,
    spec,
)
from klamm.pipeline.report.wording import duration

S = 1_000_000  # us
OTHER = "other"
PER_ROW, SHORT = 2, 22  # names in a row of a legend, where none has more characters
LINES = 5  # that cross each other and can still be told apart
HEIGHT = 220  # pixels
WIDE = 0.95  # of the time of a bar, so that there is a gap
CLOCKS = ((600, "%H:%M:%S"), (86_400, "%H:%M"))  # for so many seconds in a plot
DAYS = "%d %b %H:%M"


def requests(traffic: Traffic) -> Plot:
    seconds = traffic.step_us / S
    names, series = _stacked(
        traffic, ((one.start_us, one.api, one.count / seconds) for one in traffic.series)
    )
    values = [
        {"t": _middle(traffic, bucket), "name": label(name), "v": round(value, 3), "order": order}
        for order, name in enumerate(names)
        for bucket, value in zip(_buckets(traffic), series[name], strict=True)
    ]
    y = {"field": "v", "type": "quantitative", "stack": "zero", "axis": {"title": "requests / s"}}
    layer = {
        "data": rows(values),
        "params": [CHOSEN],
        "mark": {"type": "area", "interpolate": "linear"},
        "encoding": {"y": y, "order": {"field": "order"}, "opacity": faded(0.85)} | _coloured(names),
    }
    told = {name: [f"{value:,.1f}/s" for value in series[name]] for name in names}
    about = f"Requests a second by API, in steps of {_step(traffic)}."
    return Plot("requests", "Requests", about, _over_time(traffic, layer, told))


def size_over_time(traffic: Traffic) -> Plot:
    seconds = traffic.step_us / S
    sent: Counter[int] = Counter()
    received: Counter[int] = Counter()
    for one in traffic.series:
        sent[one.start_us] += one.request_bytes
        received[one.start_us] += one.response_bytes
    counts = {"requests": sent, "responses": received}
    values = [
        {"t": _middle(traffic, bucket), "name": name, "v": round(of[bucket] / seconds)}
        for name, of in counts.items()
        for bucket in _buckets(traffic)
    ]
    axis = {"title": "bytes / s", "format": "~s"}
    y = {"field": "v", "type": "quantitative", "stack": None, "axis": axis}
    layer = {
        "data": rows(values),
        "params": [CHOSEN],
        "mark": {"type": "area", "fillOpacity": 0.13, "line": {"strokeWidth": 2}},
        "encoding": {"y": y, "opacity": faded(1)} | _coloured(list(counts)),
    }
    told = {
        name: [f"{wording.size(round(of[bucket] / seconds))}/s" for bucket in _buckets(traffic)]
        for name, of in counts.items()
    }
    about = "What clients sent and were answered, by when the request came."
    return Plot("bytes", "Bytes", about, _over_time(traffic, layer, told))


def latency_over_time(traffic: Traffic) -> Plot:
    counts: Counter[str] = Counter()
    by_api: dict[str, dict[int, Moment]] = defaultdict(dict)
    for one in traffic.series:
        if one.p99_ms is not None:
            counts[one.api] += one.count
            by_api[one.api][one.start_us] = one
    names = [name for name, _ in counts.most_common(LINES)]
    values = [
        {"t": _middle(traffic, start_us), "name": name, "v": positive_ms(one.p99_ms)}
        for name in names
        for start_us, one in sorted(by_api[name].items())
    ]
    layer = {
        "data": rows(values),
        "params": [CHOSEN],
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {"y": ms("v"), "opacity": faded(1)} | _coloured(names),
    }
    told = {
        name: [
            "" if one is None else f"p50 {duration(one.p50_ms or 0)}, p99 {duration(one.p99_ms or 0)}"
            for one in map(by_api[name].get, _buckets(traffic))
        ]
        for name in names
    }
    about = f"The 99th percentile of the {len(names)} most used APIs; Fetch, ShareFetch and JoinGroup wait."
    return Plot("latency-over-time", "Latency over time", about, _over_time(traffic, layer, told))


def errors(traffic: Traffic) -> Plot:
    names, series = _stacked(traffic, ((one.start_us, one.error, one.count) for one in traffic.error_series))
    below = [0.0] * len(_buckets(traffic))
    values = []
    for name in names:
        for place, bucket in enumerate(_buckets(traffic)):
            if value := series[name][place]:
                end = _shown(bucket + round(WIDE * traffic.step_us))
                bar = {"t": _shown(bucket), "end": end, "v": below[place], "top": below[place] + value}
                values.append({"name": label(name), **bar})
                below[place] += value
    axis = {"title": "errors", "format": ",d", "tickMinStep": 1}
    bars = {"x2": {"field": "end"}, "y2": {"field": "top"}, "opacity": faded(1)}
    layer = {
        "data": rows(values),
        "params": [CHOSEN],
        "mark": "rect",
        "encoding": {"y": {"field": "v", "type": "quantitative", "axis": axis}, **bars, **_coloured(names)},
    }
    told = {name: [f"{value:,.0f}" if value else "" for value in series[name]] for name in names}
    about = f"Error codes in answers, by when the request came, in steps of {_step(traffic)}."
    made = _over_time(traffic, layer, told)
    return Plot("errors", "Errors", about, made, empty="" if names else "No answer had an error.")


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


def _coloured(names: Sequence[str]) -> Values:
    shown = [label(name) for name in names]
    columns = PER_ROW if max(map(len, shown), default=0) <= SHORT else 1
    return {"color": legend(dict(zip(shown, COLOURS, strict=False)), columns)}


def _over_time(traffic: Traffic, layer: Values, told: Mapping[str, Sequence[str]]) -> Values:
    """`told`: of each name what is told of every bucket, below the pointer."""
    seconds = (traffic.last_us - traffic.first_us) / S
    clock = next((clock for most_s, clock in CLOCKS if seconds <= most_s), DAYS)
    axis = {"title": None, "grid": False, "labelOverlap": True, "tickCount": 6, "format": clock}
    x = {"field": "t", "type": "temporal", "axis": axis, "scale": {"type": "utc", "nice": False}}
    return spec(HEIGHT, [layer, _pointed(traffic, told)], encoding={"x": x})


def _pointed(traffic: Traffic, told: Mapping[str, Sequence[str]]) -> Values:
    """The buckets: the one below the pointer stands out, and what is told of it is shown."""
    values = [
        {"t": _shown(bucket), "end": _shown(bucket + traffic.step_us)}
        | {"at": wording.clock(bucket, traffic.step_us < S)}
        | {f"v{place}": of[number] for place, of in enumerate(told.values())}
        for number, bucket in enumerate(_buckets(traffic))
    ]
    fields = [{"field": "at", "title": "time"}]
    fields += [{"field": f"v{place}", "title": label(name)} for place, name in enumerate(told)]
    select = {"type": "point", "fields": ["t"], "on": "pointerover", "clear": "pointerout"}
    shown = {"condition": {"param": "pointed", "empty": False, "value": 0.1}, "value": 0}
    return {
        "data": rows(values),
        "params": [{"name": "pointed", "select": select}],
        "mark": {"type": "rect", "color": css("ink")},
        "encoding": {"x2": {"field": "end"}, "opacity": shown, "tooltip": fields},
    }


def _buckets(traffic: Traffic) -> list[int]:
    step = traffic.step_us
    return list(range(traffic.first_us // step * step, traffic.last_us + 1, step))


def _middle(traffic: Traffic, bucket: int) -> int:
    return _shown(bucket + traffic.step_us // 2)


def _shown(time_us: int) -> int:
    """Milliseconds of a clock that shows, as UTC, the time where klamm ran."""
    return round(wording.local(time_us).replace(tzinfo=UTC).timestamp() * 1000)


def _step(traffic: Traffic) -> str:
    return duration(traffic.step_us / 1000).replace(".00", "").replace(".0", "")
