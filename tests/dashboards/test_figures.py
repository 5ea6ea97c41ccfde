"""Numbers fit their columns and lose nothing that matters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.dashboards.terminal import figures
from klamm.dashboards.terminal.quantiles import Quantile


@pytest.mark.parametrize(
    ("per_second", "text"),
    [
        (0, "–"),
        (0.01, "<0.1"),
        (0.05, "0.1"),
        (9.94, "9.9"),
        (9.96, "10"),
        (1234, "1,234"),
        (99_999, "99,999"),
        (123_456, "123k"),
        (999_499, "999k"),
        (1_230_000, "1.23M"),
    ],
)
def test_rates(per_second: float, text: str) -> None:
    assert figures.rate(per_second) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "–"),
        (1, "1 B"),
        (999, "999 B"),
        (999.6, "1.00 kB"),
        (12_345, "12.3 kB"),
        (5e8, "500 MB"),
        (2e9, "2.00 GB"),
        (3e12, "3.00 TB"),
    ],
)
def test_sizes(size_bytes: float, text: str) -> None:
    assert figures.size(size_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0.000018, "18 µs"),
        (0.000999, "999 µs"),
        (0.0009996, "1.00 ms"),
        (0.0204, "20.4 ms"),
        (0.9996, "1.00 s"),
        (60.0, "60.0 s"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert figures.duration(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(7.9, "0:07"), (3_723, "1:02:03"), (273_900, "3 d 04:05")])
def test_clocks(seconds: float, text: str) -> None:
    assert figures.clock(seconds) == text


@given(st.floats(0, 9e8))
def test_every_figure_fits_its_column(number: float) -> None:
    assert len(figures.rate(number)) <= 6
    assert len(figures.size(number)) <= 7
    assert len(figures.duration(min(number, 99_999))) <= 7


def test_bars_are_as_high_as_their_share_and_only_zero_is_empty() -> None:
    assert figures.bars([0, 0.01, 4, 8]) == " ▁▄█"
    assert figures.bars([0, 0]) == "  "
    assert figures.bars([]) == ""


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, "–"),
        (Quantile(0.00375), "3.75 ms"),
        (Quantile(0.005, "<"), "< 5 ms"),
        (Quantile(0.0025, "<"), "<2.5 ms"),
        (Quantile(0.25, "<"), "<250 ms"),
        (Quantile(0.0001, "<"), "<100 µs"),
        (Quantile(60.0, ">"), "> 60 s"),
        (Quantile(1.0, "<"), "< 1 s"),
    ],
)
def test_quantiles_say_where_they_are_bounds(found: Quantile | None, text: str) -> None:
    assert figures.quantile(found) == text
    assert len(text) <= 7
