"""Plots as plotly.js takes them, in plain values: what they share.

Colours that follow light and dark are `css(name)`, a variable of the page's style. Axes of names are numbers
with names as their ticks, so that no name is taken for a number, a date or another of the same look. The
library reads text as simple HTML: names that clients made go through `label`.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from klamm.pipeline.report.wording import plain

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#e08a3c", "#999999")
NO_ANSWER = "No answer was seen."
LONGEST = 36  # characters of a name
ROW, LETTER = 24, 8  # pixels
HALF, WHOLE = 440, 1000  # pixels that a plot has for columns, beside another and by itself
BELOW = {"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0}  # all that is drawn
LEGEND_ROW = 20  # pixels
Values = dict[str, Any]


class Plot(NamedTuple):
    """`about`: what a reader should know. `wide`: across the page. `empty`: shown instead where there is no
    data.
    """

    name: str
    title: str
    about: str
    data: list[Values]
    layout: Values
    wide: bool = False
    empty: str = ""


def css(name: str) -> Values:
    return {"css": f"--{name}"}


def label(text: str) -> str:
    """A name, as long as there is room for it."""
    words = plain(text)
    return escape(words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}\u2026", quote=False)


def layout(height: int, x: Values | None = None, y: Values | None = None, **more: Any) -> Values:
    axis = {"gridcolor": css("grid"), "linecolor": css("grid"), "zeroline": False, "automargin": True}
    return {
        "height": height,
        "margin": {"l": 48, "r": 12, "t": 8, "b": 32},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": css("ink")},
        "hoverlabel": {"font": {"family": "system-ui, sans-serif", "size": 12}, "namelength": -1},
        "legend": {**BELOW, "x": 0, "font": {"size": 12}, "itemsizing": "constant", "traceorder": "normal"},
        "xaxis": {**axis, **(x or {})},
        "yaxis": {**axis, **(y or {})},
        **more,
    }


def cells(z: list[list[float | None]], text: list[list[str]], hover: list[list[str]], **more: Any) -> Values:
    return {
        "type": "heatmap",
        "z": z,
        "text": text,
        "texttemplate": "%{text}",
        "textfont": {"size": 11},
        "customdata": hover,
        "hovertemplate": "%{customdata}<extra></extra>",
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "colorscale": [[0, css("cell-low")], [1, css("cell-high")]],
        **more,
    }


def names_axis(names: Sequence[str]) -> Values:
    """An axis of names, the first at the top."""
    many = len(names)
    return {
        "tickvals": list(range(many)),
        "ticktext": [label(name) for name in names],
        "range": [many - 0.5, -0.5],
        "autorange": False,
        "ticks": "",
    }


def table(rows: Sequence[str], columns: Sequence[str], room: int) -> Values:
    """The layout of cells with names beside and above; those above are aslant where `room`, in pixels, is not
    enough for them.
    """
    aslant = max(map(len, columns), default=0) * LETTER > room / max(1, len(columns))
    above = {
        "range": [-0.5, len(columns) - 0.5],
        "side": "top",
        "tickangle": -35 if aslant else 0,
        "showgrid": False,
    }
    made = layout(50 + ROW * len(rows) + 80 * aslant, {**names_axis(columns), **above}, names_axis(rows))
    made["margin"] = {**made["margin"], "b": 8, "r": 90 if aslant else 12}
    made["yaxis"]["showgrid"] = False
    return made


def ms_axis() -> Values:
    """Ticks of a logarithmic axis in ms."""
    ticks = [10.0**power for power in range(-3, 7)]
    return {"tickvals": ticks, "ticktext": [_short(ms) for ms in ticks]}


def _short(ms: float) -> str:
    return f"{ms / 1000:,g} s" if ms >= 1000 else f"{ms:g} ms" if ms >= 1 else f"{ms * 1000:g} \u00b5s"


def positive_ms(value: float | None) -> float:
    return max(value or 0.0, 0.001)
