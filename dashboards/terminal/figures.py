"""Numbers as people read them, in few columns; nothing happening is a dash."""

from __future__ import annotations

from collections.abc import Sequence

from klamm.dashboards.terminal.quantiles import Quantile

NOTHING = "–"
BARS = " ▁▂▃▄▅▆▇█"


def rate(per_second: float) -> str:
    """At most six columns: "0.4", "52", "5,120", "123k"."""
    if per_second <= 0:
        return NOTHING
    if per_second < 0.05:
        return "<0.1"
    if per_second < 9.95:
        return f"{per_second:.1f}"
    if per_second < 99_999.5:
        return f"{per_second:,.0f}"
    return (
        f"{_three_digits(per_second / 1e3)}k"
        if per_second < 999.5e3
        else f"{_three_digits(per_second / 1e6)}M"
    )


def count(number: int) -> str:
    """A number of things: "0", "1,234"."""
    return f"{number:,}"


def size(size_bytes: float) -> str:
    """At most seven columns, in powers of 1000: "88 B", "1.23 MB"."""
    if size_bytes <= 0:
        return NOTHING
    for unit in ("B", "kB", "MB", "GB"):
        if size_bytes < 999.5:
            return f"{round(size_bytes)} B" if unit == "B" else f"{_three_digits(size_bytes)} {unit}"
        size_bytes /= 1000
    return f"{_three_digits(size_bytes)} TB"


def duration(seconds: float | None) -> str:
    """At most seven columns: "18 µs", "2.04 ms", "1.20 s"; None is nothing measured."""
    if seconds is None:
        return NOTHING
    if seconds < 0.9995e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{_three_digits(seconds * 1e3)} ms" if seconds < 0.9995 else f"{_three_digits(seconds)} s"


def quantile(found: Quantile | None) -> str:
    """At most seven columns: "3.75 ms"; a bound is round: "< 5 ms", "<250 ms", "> 60 s"."""
    if found is None or not found.sign:
        return duration(None if found is None else found.seconds)
    units = (("µs", 1e6), ("ms", 1e3), ("s", 1.0))
    text = next(f"{found.seconds * of:g} {unit}" for unit, of in units if found.seconds * of < 999 or of == 1)
    return f"{found.sign} {text}" if len(text) <= 5 else f"{found.sign}{text}"


def clock(seconds: float) -> str:
    """How long something runs: "0:07", "1:02:03", "3 d 04:05"."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days} d {hour:02}:{minute:02}"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def bars(values: Sequence[float]) -> str:
    """A column for each value, as high as its share of the highest; only zero is empty."""
    highest = max(values, default=0)
    if highest <= 0:
        return " " * len(values)
    steps = len(BARS) - 1
    return "".join(BARS[0 if value <= 0 else max(1, round(value / highest * steps))] for value in values)


def _three_digits(number: float) -> str:
    return f"{number:.2f}" if number < 9.995 else f"{number:.1f}" if number < 99.95 else f"{number:.0f}"
