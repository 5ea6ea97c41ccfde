"""A line lets bytes go in order, in their time, and loses none: under a clock of its own."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from klamm.proxy.session.line import FULL, PIECES, SEGMENT, Line, Until
from klamm.rules.chance import Draws
from klamm.rules.orders import FOREVER, Shape

MS, S = 1_000_000, 1_000_000_000


def shaped(**traits: object) -> Line:
    line = Line()
    line.mould(Shape("response", **traits), Draws(7, 0))  # type: ignore[arg-type]
    return line


def played(line: Line, until: int = 1000 * S) -> list[tuple[int, Any]]:
    """(time, what went), asking whenever the line says so."""
    now, went = 0, []
    for _ in range(100_000):
        out, again = line.take(now)
        went += [(now, item if isinstance(item, str) else bytes(item)) for item in out]
        if again is None or again > until:
            return went
        assert again >= now
        now = again
    raise AssertionError("the line asks for ever")


def went_out(went: list[tuple[int, Any]]) -> bytes:
    return b"".join(item for _, item in went if isinstance(item, bytes))


def test_what_is_put_goes_at_once_where_nothing_holds_it() -> None:
    line = Line()
    line.put(b"one", 5)
    line.put(b"two", 5)
    assert line.take(5) == ([b"one", b"two"], None)
    assert line.size == 0


def test_what_follows_a_hold_waits_for_it_and_what_came_before_does_not() -> None:
    line = Line()
    for item in (b"before", Until(100), b"held", Until(50), b"behind"):
        line.put(item, 0)
    assert line.take(0) == ([b"before"], 100)
    assert line.take(99) == ([], 100)
    assert line.take(100) == ([b"held", b"behind"], None)


def test_a_hold_for_ever_is_stuck_and_asks_for_no_time() -> None:
    line = Line()
    line.put(Until(FOREVER), 0)
    line.put(b"never", 0)
    assert line.take(10**18) == ([], None)
    assert line.stuck()


def test_a_muted_line_forgets_what_waits_and_takes_nothing_more() -> None:
    line = Line()
    line.put(Until(10), 0)
    line.put(b"waits", 0)
    line.mute()
    line.put(b"comes", 0)
    assert line.take(100) == ([], None)
    assert line.size == 0


@pytest.mark.parametrize("rate", [999, 10_000, 5_000_000])
def test_bandwidth_takes_the_time_that_the_bytes_take(rate: int) -> None:
    line = shaped(bytes_per_s=rate)
    data = bytes(range(256)) * 40
    line.put(data, 0)
    went = played(line)
    assert went_out(went) == data
    assert went[-1][0] == pytest.approx(len(data) * S / rate, rel=0.01)


def test_bandwidth_that_was_not_used_is_not_saved_up() -> None:
    line = shaped(bytes_per_s=1000)
    line.put(b"x", 0)
    played(line)
    line.put(bytes(20), 60 * S)
    assert line.take(60 * S)[1] == 60 * S + 20 * MS


def test_slices_have_sizes_around_their_mean_and_gaps_between_them() -> None:
    line = shaped(slice_bytes=100, slice_spread=20, slice_gap_ns=3 * MS)
    line.put(bytes(2000), 0)
    went = played(line)
    sizes = [len(item) for _, item in went[:-1]]
    assert all(80 <= size <= 120 for size in sizes)
    assert len(set(sizes)) > 3
    assert {later[0] - one[0] for one, later in pairwise(went)} == {3 * MS}


def test_a_limit_passes_just_so_many_bytes_and_closes() -> None:
    line = shaped(limit_bytes=5)
    line.put(b"abc", 0)
    line.put(b"defgh", 0)
    line.put(b"more", 0)
    assert played(line) == [(0, b"abc"), (0, b"de"), (0, "fin")]
    assert line.size == 0


def test_an_end_is_told_later_and_bytes_are_not_late() -> None:
    line = shaped(close_after_ns=7 * MS)
    line.put(b"last", 0)
    line.put("close", 0)
    assert played(line) == [(0, b"last"), (7 * MS, "close")]


def test_lost_segments_come_late_by_time_outs_that_double() -> None:
    line = shaped(loss=0.3, loss_ns=200 * MS)
    data = bytes(SEGMENT * 200)
    line.put(data, 0)
    went = played(line)
    gaps = [later[0] - one[0] for one, later in pairwise([(0, b""), *went])]
    assert went_out(went) == data
    assert set(gaps) <= {0, *(200 * MS * (2**n - 1) for n in range(1, 11))}
    assert sum(gap > 0 for gap in gaps) == pytest.approx(60, abs=25)
    assert 600 * MS in gaps


def test_correlated_losses_come_in_bursts() -> None:
    def runs(correlation: float) -> int:
        line = shaped(loss=0.3, loss_ns=MS, loss_correlation=correlation)
        line.put(bytes(SEGMENT * 400), 0)
        late = [later[0] > one[0] for one, later in pairwise([(0, b""), *played(line)])]
        return sum(one != later for one, later in pairwise(late))

    assert runs(0.9) < runs(0) / 2


def test_a_shape_that_comes_later_leaves_what_was_put_before_it() -> None:
    line = Line()
    line.put(Until(10), 0)
    line.put(b"before", 0)
    line.mould(Shape("response", slice_bytes=1, slice_gap_ns=5), Draws(1, 0))
    line.put(b"ab", 0)
    assert played(line) == [(10, b"before"), (15, b"a"), (20, b"b")]


def test_a_shape_adds_to_the_one_before_and_does_not_draw_the_same_again() -> None:
    line = shaped(loss=0.5, loss_ns=MS)
    went = []
    for number in range(40):
        line.mould(Shape("response", loss=0.5, loss_ns=MS), Draws(7, 0))
        line.put(b"%d" % number, number * S)
        went.append(line.take(number * S)[1] is None)
        line.take((number + 1) * S)
    assert len(set(went)) == 2
    assert shaped_by(line) == {"loss": 0.5, "loss_ns": MS}
    line.mould(Shape("response", bytes_per_s=10), Draws(7, 0))
    assert shaped_by(line) == {"loss": 0.5, "loss_ns": MS, "bytes_per_s": 10}


def shaped_by(line: Line) -> dict[str, object]:
    assert line.shape is not None
    return {trait: value for trait, value in line.shape._asdict().items() if value and trait != "direction"}


def test_thin_slices_of_much_are_made_as_they_go() -> None:
    line = shaped(slice_bytes=1)
    line.put(bytes(FULL), 0)
    out, again = line.take(0)
    assert len(out) == PIECES
    assert again == 0
    assert len(line.waiting) == 1
    assert line.size == FULL - PIECES


shapes = some.builds(
    Shape,
    direction=some.just("response"),
    bytes_per_s=some.sampled_from([0, 50, 100_000]),
    slice_bytes=some.sampled_from([0, 1, 7]),
    slice_spread=some.sampled_from([0, 3]),
    slice_gap_ns=some.sampled_from([0, MS]),
    loss=some.sampled_from([0.0, 0.5, 1.0]),
    loss_ns=some.just(MS),
    close_after_ns=some.sampled_from([0, MS]),
    loss_correlation=some.sampled_from([0.0, 0.5]),
    limit_bytes=some.just(0),
)


@given(some.lists(some.binary(max_size=60) | some.integers(0, 5 * S) | shapes, max_size=12))
def test_nothing_is_lost_or_overtakes(items: list[bytes | int | Shape]) -> None:
    line, put = Line(), b""
    for item in items:
        if isinstance(item, bytes):
            put += item
            line.put(item, 0)
        elif isinstance(item, int):
            line.put(Until(item), 0)
        else:
            line.mould(item, Draws(3, 0))
    line.put("close", 0)
    went = played(line, FOREVER)
    assert went_out(went) == put
    assert went[-1][1] == "close"
    assert [item for _, item in went].count("close") == 1
    assert went[-1][0] >= max([item for item in items if isinstance(item, int)], default=0)
    assert line.size == 0
