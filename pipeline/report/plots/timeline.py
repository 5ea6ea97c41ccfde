"""A small drawing of a group over time: its lag as a line, its rebalances as marks. No name stands in it."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH, HEIGHT, EDGE = 260, 44, 2  # pixels


def timeline(first_us: int, last_us: int, rebalances: Sequence[int], lag: Sequence[tuple[int, int]]) -> str:
    """A timeline as SVG: a step line, as lag is a last known value. It ends where no later value is known."""
    most = max((records for _, records in lag), default=0)
    marks = "".join(f"M{_x(at, first_us, last_us)} {EDGE}V{HEIGHT - EDGE}" for at in rebalances)
    steps = ""
    for at, records in lag:
        x, y = _x(at, first_us, last_us), _y(records, most)
        steps += f"H{x}V{y}" if steps else f"M{x} {y}"
    about = f"{len(rebalances)} rebalances; lag up to {most} records"
    return (
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{about}">'
        f'<path class="base" d="M0 {HEIGHT - EDGE}H{WIDTH}"/><path class="marks" d="{marks}"/>'
        f'<path class="lag" d="{steps}"/></svg>'
    )


def _x(at_us: int, first_us: int, last_us: int) -> float:
    share = (at_us - first_us) / max(1, last_us - first_us)
    return round(min(max(share, 0.0), 1.0) * WIDTH, 1)


def _y(records: int, most: int) -> float:
    return round(HEIGHT - EDGE - records / max(1, most) * (HEIGHT - 2 * EDGE), 1)
