"""Plots by name: latency by API and broker, clients and APIs, sizes."""

from __future__ import annotations

from collections import Counter
from math import log10
from statistics import median

from klamm.pipeline.report.gathering import SHARES, Traffic
from klamm.pipeline.report.plots.plotting import (
    CHOSEN,
    HALF,
    NO_ANSWER,
    ROW,
    WHOLE,
    Plot,
    Values,
    above,
    cells,
    css,
    faded,
    label,
    legend,
    ms,
    named,
    place,
    positive_ms,
    rows,
    shaded,
    spec,
)
from klamm.pipeline.report.wording import NO_CLIENT_ID, duration

MOST_APIS, MOST_CLIENTS, MOST_BROKERS = 14, 25, 16
TAIL = ("#8fb3d9", "#4477aa", "#ee9a55", "#dd4455")  # as SHARES
LONGEST_SEEN = "longest"
ASLANT = 90  # pixels for the name of the last column


def latency_by_api(traffic: Traffic) -> Plot:
    found = [one for one in traffic.latencies if one.broker is None][:MOST_APIS]
    names = [f"p{share * 100:g}" for share in SHARES]
    spans = [
        {"row": row, "v": positive_ms(one.ms[0]), "end": positive_ms(one.most_ms)}
        for row, one in enumerate(found)
    ]
    points = [
        {
            "row": row,
            "name": name,
            "v": positive_ms(value),
            "told": f"{one.api}: {name} {duration(value)} of {one.count:,}",
        }
        for row, one in enumerate(found)
        for name, value in zip([*names, LONGEST_SEEN], [*one.ms, one.most_ms], strict=True)
    ]
    colours = dict(zip(names, TAIL, strict=True)) | {LONGEST_SEEN: css("ink")}
    y = place("row", named("apis"), len(found))
    layers: list[Values] = [
        {
            "data": rows(spans),
            "mark": {"type": "rule", "strokeWidth": 3, "color": css("grid")},
            "encoding": {"x": ms("v"), "x2": {"field": "end"}, "y": y},
        },
        {
            "data": rows(points),
            "params": [CHOSEN],
            "mark": {"type": "circle", "size": 70},
            "encoding": {
                "x": ms("v"),
                "y": y,
                "color": legend(colours, len(colours)),
                "opacity": faded(1),
                "tooltip": {"field": "told"},
            },
        },
    ]
    made = spec(ROW * max(1, len(found)), layers, {"apis": [one.api for one in found]})
    about = "From the request to its answer: half are faster than p50, one in a thousand slower than p99.9."
    return Plot("latency-by-api", "Latency by API", about, made, empty="" if found else NO_ANSWER)


def latency_by_broker(traffic: Traffic) -> Plot:
    apis = [one.api for one in traffic.latencies if one.broker is None][:MOST_APIS]
    at_brokers = {(one.api, one.cluster, one.broker): one for one in traffic.latencies}
    brokers = [at for at in traffic.brokers if any((api, *at) in at_brokers for api in apis)][:MOST_BROKERS]
    several = len({cluster for cluster, _ in traffic.brokers}) > 1
    titles = [f"{cluster}/{broker}" if several else broker for cluster, broker in brokers]
    values = []
    for row, api in enumerate(apis):
        found = [at_brokers.get((api, *at)) for at in brokers]
        usual = median(positive_ms(one.ms[2]) for one in found if one)
        values += [
            {
                "row": row,
                "column": column,
                **shaded(log10(positive_ms(one.ms[2]) / usual), "cell-hot"),
                "text": duration(one.ms[2]),
                "told": f"{api} at {label(titles[column])}: p50 {duration(one.ms[0])}, "
                f"p99 {duration(one.ms[2])}, longest {duration(one.most_ms)}, of {one.count:,}",
            }
            for column, one in enumerate(found)
            if one
        ]
    made = _table(values, apis, titles, HALF)
    about = "The 99th percentile of each API at each broker: the redder, the slower than at the others."
    return Plot("latency-by-broker", "Latency by broker", about, made, empty="" if apis else NO_ANSWER)


def clients(traffic: Traffic) -> Plot:
    found = traffic.top_clients[:MOST_CLIENTS]
    totals: Counter[str] = Counter()
    for one in found:
        totals.update(one.apis)
    apis = [name for name, _ in totals.most_common(MOST_APIS)]
    names = [NO_CLIENT_ID if one.client_id is None else one.client_id for one in found]
    counts = [[one.apis.get(api, 0) for api in apis] for one in found]
    most = log10(max((count for of in counts for count in of), default=1) + 1)
    values = [
        {
            "row": row,
            "column": column,
            **shaded(log10(count) / most, "cell-high"),
            "text": _few(count),
            "told": f"{label(names[row])}: {count:,} {apis[column]}",
        }
        for row, of in enumerate(counts)
        for column, count in enumerate(of)
        if count
    ]
    about = (
        f"Exchanges of each client with each API: the {len(found)} busiest of {traffic.clients} client ids."
    )
    return Plot("clients", "Clients and APIs", about, _table(values, names, apis, WHOLE), wide=True)


def _table(values: list[Values], names: list[str], columns: list[str], room: int) -> Values:
    """Cells with names beside and above."""
    axis = above(columns, room)
    x = place("column", named("columns", **axis), len(columns))
    layers = cells(values, x, place("row", named("rows"), len(names)))
    padding = {"left": 5, "top": 5, "bottom": 5, "right": ASLANT if axis["labelAngle"] else 5}
    return spec(ROW * max(1, len(names)), layers, {"rows": names, "columns": columns}, padding=padding)


def _few(number: int) -> str:
    return (
        f"{number:,}"
        if number < 10_000
        else f"{number / 1000:,.0f}k"
        if number < 10**6
        else f"{number / 1e6:,.1f}M"
    )


def sizes(traffic: Traffic) -> Plot:
    """Requests at the left, responses at the right, each by powers of two."""
    counts: Counter[str] = Counter()
    for one in traffic.sizes:
        counts[one.api] += one.count
    apis = [name for name, _ in counts.most_common(MOST_APIS)]
    low = min((one.exponent for one in traffic.sizes), default=0)
    wide = max((one.exponent for one in traffic.sizes), default=0) - low + 1
    totals: Counter[tuple[str, str]] = Counter()
    for one in traffic.sizes:
        totals[one.side, one.api] += one.count
    places = {"request": 0, "response": wide + 1}  # a column between them is empty
    values = [
        {
            "row": apis.index(one.api),
            "column": places[one.side] + one.exponent - low,
            **shaded(one.count / totals[one.side, one.api], "cell-high"),
            "text": "",
            "told": f"{one.count:,} of {totals[one.side, one.api]:,} {one.side}s of {one.api}, "
            f"{_power(one.exponent)} to {_power(one.exponent + 1)}",
        }
        for one in traffic.sizes
        if one.api in apis
    ]
    powers = [_power(low + place) for place in range(wide)]
    columns = [*powers, "", *powers]
    axis = {"labelOverlap": "greedy", "labelAngle": 0, "orient": "bottom", "labelSeparation": 12}
    x = place("column", named("columns", **axis), len(columns))
    layers = cells(values, x, place("row", named("rows"), len(apis)))
    titles = [{"column": places[side] + (wide - 1) // 2, "text": f"{side}s"} for side in places]
    beneath = {"type": "text", "y": ROW * max(1, len(apis)) + 32, "color": css("faint"), "fontSize": 12}
    layers.append({"data": rows(titles), "mark": beneath, "encoding": {"x": x, "text": {"field": "text"}}})
    made = spec(ROW * max(1, len(apis)), layers, {"rows": apis, "columns": columns})
    about = "How large the frames of each API are; the stronger the colour, the more of them are so large."
    return Plot("sizes", "Sizes", about, made, wide=True)


def _power(exponent: int) -> str:
    for unit, name in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if exponent >= unit:
            return f"{2 ** (exponent - unit)} {name}"
    return f"{2**exponent} B"
