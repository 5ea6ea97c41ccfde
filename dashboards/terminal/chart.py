"""A history as bars some lines high: the newest value at the right edge, a scale at the left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from klamm.dashboards.terminal import figures
from klamm.dashboards.terminal.sections import FAINT

AXIS = 8  # columns of the scale


def chart(values: Sequence[float], width: int, height: int) -> Iterator[Text]:
    """`height` lines of at most `width` columns; the highest of the values shown fills them."""
    shown = values[-(width - AXIS) :]
    highest = max(shown, default=0.0)
    steps = len(figures.BARS) - 1
    levels = [value / highest * height * steps if highest > 0 else 0.0 for value in shown]
    for line in reversed(range(height)):
        label = figures.rate(highest) if line == height - 1 and highest > 0 else "0" if line == 0 else ""
        text = Text(f"{label:>{AXIS - 1}} ", FAINT, no_wrap=True)
        text.append(" " * (width - AXIS - len(shown)))
        text.append(
            "".join(figures.BARS[max(0, min(steps, round(level) - line * steps))] for level in levels), "cyan"
        )
        yield text
