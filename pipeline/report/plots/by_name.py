"""Plots by name: latency by API and broker, clients and APIs, sizes."""

from __future__ import annotations

from collections import Counter
from math import log10
from statistics import median
from typing import Any

from klamm.pipeline.report.gathering import SHARES, Traffic
from klamm.pipeline.report.plots.plotting import (
    HALF,
    NO_ANSWER,
    ROW,
    WHOLE,
    Plot,
    Values,
    cells,
    css,
    label,
    layout,
    ms_axis,
    names_axis,
    positive_ms,
    table,
)
from klamm.pipeline.report.wording import NO_CLIENT_ID, duration

MOST_APIS, MOST_CLIENTS, MOST_BROKERS = 14, 25, 16
TAIL = ("#8fb3d9", "#4477aa", "#ee9a55", "#dd4455")  # as SHARES


def latency_by_api(traffic: Traffic) -> Plot:
    rows = [one for one in traffic.latencies if one.broker is None][:MOST_APIS]
    lines: Values = {"x": [], "y": []}
    for place, one in enumerate(rows):
        lines["x"] += [positive_ms(one.ms[0]), positive_ms(one.most_ms), None]
        lines["y"] += [place, place, None]
    data: list[Values] = [
        {
            **lines,
            "type": "scatter",
            "mode": "lines",
            "line": {"width": 3, "color": css("grid")},
            "hoverinfo": "skip",
            "showlegend": False,
        }
    ]
    columns: list[tuple[str, Any, list[float]]] = [
        (f"p{share * 100:g}", colour, [one.ms[at] for one in rows])
        for at, (share, colour) in enumerate(zip(SHARES, TAIL, strict=True))
    ]
    columns.append(("longest", css("ink"), [one.most_ms for one in rows]))
    for name, colour, values in columns:
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": name,
                "x": [positive_ms(value) for value in values],
                "y": list(range(len(rows))),
                "customdata": [
                    f"{one.api}: {name} {duration(value)} of {one.count:,}"
                    for one, value in zip(rows, values, strict=True)
                ],
                "marker": {"size": 9 if name != "longest" else 6, "color": colour},
                "hovertemplate": "%{customdata}<extra></extra>",
            }
        )
    made = layout(110 + ROW * len(rows), {"type": "log", **ms_axis()}, names_axis([one.api for one in rows]))
    about = "From the request to its answer: half are faster than p50, one in a thousand slower than p99.9."
    return Plot("latency-by-api", "Latency by API", about, data, made, empty="" if rows else NO_ANSWER)


def latency_by_broker(traffic: Traffic) -> Plot:
    apis = [one.api for one in traffic.latencies if one.broker is None][:MOST_APIS]
    at_brokers = {(one.api, one.cluster, one.broker): one for one in traffic.latencies}
    brokers = [at for at in traffic.brokers if any((api, *at) in at_brokers for api in apis)][:MOST_BROKERS]
    several = len({cluster for cluster, _ in traffic.brokers}) > 1
    titles = [f"{cluster}/{broker}" if several else broker for cluster, broker in brokers]
    z: list[list[float | None]] = []
    text: list[list[str]] = []
    hover: list[list[str]] = []
    for api in apis:
        found = [at_brokers.get((api, *at)) for at in brokers]
        usual = median(positive_ms(one.ms[2]) for one in found if one)
        z.append([log10(positive_ms(one.ms[2]) / usual) if one else None for one in found])
        text.append([duration(one.ms[2]) if one else "" for one in found])
        hover.append(
            [
                f"{api} at {label(title)}: p50 {duration(one.ms[0])}, p99 {duration(one.ms[2])}, "
                f"longest {duration(one.most_ms)}, of {one.count:,}"
                if one
                else ""
                for title, one in zip(titles, found, strict=True)
            ]
        )
    made = table(apis, titles, HALF)
    about = "The 99th percentile of each API at each broker: the redder, the slower than at the others."
    data = [cells(z, text, hover, zmin=0, zmax=1, colorscale=[[0, css("cell-low")], [1, css("cell-hot")]])]
    return Plot("latency-by-broker", "Latency by broker", about, data, made, empty="" if apis else NO_ANSWER)


def clients(traffic: Traffic) -> Plot:
    rows = traffic.top_clients[:MOST_CLIENTS]
    totals: Counter[str] = Counter()
    for one in rows:
        totals.update(one.apis)
    apis = [name for name, _ in totals.most_common(MOST_APIS)]
    names = [NO_CLIENT_ID if one.client_id is None else one.client_id for one in rows]
    z = [[log10(one.apis[api]) if api in one.apis else None for api in apis] for one in rows]
    text = [[_few(one.apis[api]) if api in one.apis else "" for api in apis] for one in rows]
    hover = [
        [f"{label(name)}: {one.apis.get(api, 0):,} {api}" for api in apis]
        for name, one in zip(names, rows, strict=True)
    ]
    made = table(names, apis, WHOLE)
    about = (
        f"Exchanges of each client with each API: the {len(rows)} busiest of {traffic.clients} client ids."
    )
    return Plot("clients", "Clients and APIs", about, [cells(z, text, hover)], made, wide=True)


def _few(number: int) -> str:
    return (
        f"{number:,}"
        if number < 10_000
        else f"{number / 1000:,.0f}k"
        if number < 10**6
        else f"{number / 1e6:,.1f}M"
    )


def sizes(traffic: Traffic) -> Plot:
    counts: Counter[str] = Counter()
    for one in traffic.sizes:
        counts[one.api] += one.count
    apis = [name for name, _ in counts.most_common(MOST_APIS)]
    low = min((one.exponent for one in traffic.sizes), default=0)
    high = max((one.exponent for one in traffic.sizes), default=0)
    exponents = list(range(low, high + 1))
    data = []
    for side, axis in (("request", "x"), ("response", "x2")):
        found = {(one.api, one.exponent): one.count for one in traffic.sizes if one.side == side}
        totals = {api: sum(found.get((api, e), 0) for e in exponents) for api in apis}
        z = [[found[api, e] / totals[api] if (api, e) in found else None for e in exponents] for api in apis]
        hover = [
            [
                f"{found.get((api, e), 0):,} of {totals[api]:,} {side}s, {_power(e)} to {_power(e + 1)}"
                for e in exponents
            ]
            for api in apis
        ]
        text = [["" for _ in exponents] for _ in apis]
        data.append(
            {**cells(z, text, hover), "xaxis": axis, "x0": low, "dx": 1, "zmin": 0, "zmax": 1, "xgap": 1}
        )
    ticks = {
        "tickvals": exponents[::2],
        "ticktext": [_power(e) for e in exponents[::2]],
        "range": [low - 0.5, high + 0.5],
        "autorange": False,
        "showgrid": False,
    }
    made = layout(
        90 + ROW * len(apis), {**ticks, "domain": [0, 0.49], "title": {"text": "requests"}}, names_axis(apis)
    )
    second = {**made["xaxis"], **ticks, "domain": [0.51, 1], "title": {"text": "responses"}}
    about = "How large the frames of each API are; the stronger the colour, the more of them are so large."
    return Plot("sizes", "Sizes", about, data, {**made, "xaxis2": second}, wide=True)


def _power(exponent: int) -> str:
    for unit, name in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if exponent >= unit:
            return f"{2 ** (exponent - unit)} {name}"
    return f"{2**exponent} B"
