"""Plots as Vega-Lite takes them, in plain values: what they share.

Colours that follow light and dark are variables of the page's style. Names stand in lists of their own, and
axes have numbers, so that no name is taken for a number, a date or another of the same look.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from klamm.pipeline.report.wording import plain

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#e08a3c", "#999999")
NO_ANSWER = "No answer was seen."
LONGEST = 36  # characters of a name
ROW, LETTER = 24, 8  # pixels
HALF, WHOLE = 440, 1000  # pixels that a plot has for columns, beside another and by itself
DARK = 50  # percent of a strong colour, from where on ink does not stand out
Values = dict[str, Any]


class Plot(NamedTuple):
    """`about`: what a reader should know. `spec`: in Vega-Lite. `wide`: across the page. `empty`: shown
    instead where there is no data.
    """

    name: str
    title: str
    about: str
    spec: Values
    wide: bool = False
    empty: str = ""


def css(name: str) -> str:
    return f"var(--{name})"


def shaded(share: float, high: str) -> Values:
    """The colour of a cell, between two variables of the style, and the ink on it."""
    percent = round(100 * min(max(share, 0.0), 1.0))
    colour = f"color-mix(in srgb, {css(high)} {percent}%, {css('cell-low')})"
    return {"colour": colour, "ink": css("ink" if percent < DARK else "cell-ink")}


def label(text: str) -> str:
    """A name, as long as there is room for it."""
    words = plain(text)
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}\u2026"


def spec(
    height: int, layers: Sequence[Values], names: dict[str, Sequence[str]] | None = None, **more: Any
) -> Values:
    """`names`: lists, whose items an axis shows by `named`."""
    params = [{"name": name, "value": [label(one) for one in of]} for name, of in (names or {}).items()]
    return {
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        **({"params": params} if params else {}),
        "layer": list(layers),
        **more,
    }


def rows(values: Iterable[Values]) -> Values:
    return {"values": list(values)}


def named(names: str, **more: Any) -> Values:
    """An axis that shows the names of this list, for the numbers from 0 on."""
    shown = {"labelExpr": f"{names}[datum.value]", "labelLimit": LONGEST * LETTER, "labelOverlap": False}
    return {"title": None, "ticks": False, "domain": False, "grid": False, **shown, **more}


def place(field: str, axis: Values, many: int) -> Values:
    """The encoding of such numbers: the first at the left, or at the top."""
    return {"field": field, "type": "ordinal", "axis": axis, "scale": {"domain": list(range(many))}}


def cells(values: Sequence[Values], x: Values, y: Values) -> list[Values]:
    """Layers of a table: each cell has its place (`x`, `y`), what `shaded` gives, a `text` that stands in it,
    and what is `told` of it.
    """
    data = rows(values)
    box: Values = {"type": "rect", "cornerRadius": 2, "stroke": css("card"), "strokeWidth": 2}
    at = {"x": x, "y": y, "tooltip": {"field": "told"}}
    fill = {"field": "colour", "type": "nominal", "scale": None}
    ink = {"field": "ink", "type": "nominal", "scale": None}
    return [
        {"data": data, "mark": box, "encoding": {**at, "color": fill}},
        {
            "data": data,
            "mark": {"type": "text", "fontSize": 11},
            "encoding": {**at, "color": ink, "text": {"field": "text"}},
        },
    ]


def above(columns: Sequence[str], room: int) -> Values:
    """An axis of names at the top, aslant where `room`, in pixels, is not enough for them."""
    aslant = max(map(len, columns), default=0) * LETTER > room / max(1, len(columns))
    return {
        "orient": "top",
        "labelAngle": -35 if aslant else 0,
        "labelAlign": "left" if aslant else "center",
    }


MS = (
    "datum.value >= 1000 ? format(datum.value / 1000, ',~g') + ' s' : datum.value >= 1 ? "
    "format(datum.value, '~g') + ' ms' : format(datum.value * 1000, '~g') + ' \u00b5s'"
)


def ms(field: str, **axis: Any) -> Values:
    """The encoding of times on a logarithmic axis."""
    ticks = {"values": [10.0**power for power in range(-3, 7)], "labelExpr": MS, "title": None, **axis}
    return {"field": field, "type": "quantitative", "scale": {"type": "log"}, "axis": ticks}


def legend(colours: dict[str, str], columns: int) -> Values:
    """The encoding of `name` as colour, with a legend below that chooses."""
    scale = {"domain": list(colours), "range": list(colours.values())}
    return {"field": "name", "type": "nominal", "scale": scale, "legend": {"columns": columns}, "sort": None}


CHOSEN: Values = {"name": "chosen", "select": {"type": "point", "fields": ["name"]}, "bind": "legend"}


def faded(opacity: float) -> Values:
    """The encoding of opacity: names that are not chosen fade."""
    return {"condition": {"param": "chosen", "value": opacity}, "value": 0.08}


def positive_ms(value: float | None) -> float:
    return max(value or 0.0, 0.001)
