"""Which exchanges become traces: the share that was asked for, however they come."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from klamm.proxy.control.exchange import Seen
from klamm.proxy.traces.sampling import Chosen, Sampling

ONE = Seen(0.0, {})


class Kept:
    """A queue with room for so many."""

    def __init__(self, most: int = 1 << 30) -> None:
        self.most, self.kept, self.dropped = most, 0, 0

    @property
    def room(self) -> bool:
        return self.kept < self.most

    def put(self, one: Seen) -> None:
        self.kept += 1

    def drop(self, count: int) -> None:
        self.dropped += count


def play(sampling: Sampling, reads: int, each: int, later: list[Callable[[], None]]) -> None:
    """Reads of so many exchanges each, as sessions and `Exchanges.show` treat them."""
    for _ in range(reads):
        shown = []
        for _ in range(each):
            if sampling.full:
                sampling.missed(1)
            else:
                shown.append(ONE)
        for one in shown:
            if not sampling.full:
                sampling.take(one)
        while later:
            later.pop()()


@pytest.mark.parametrize("each", [1, 7, 100])
@pytest.mark.parametrize("share", [0.001, 0.01, 0.3, 0.9])
def test_the_share_is_kept_however_many_exchanges_one_read_has(share: float, each: int) -> None:
    queue, later = Kept(), list[Callable[[], None]]()
    play(Sampling(share, queue, later.append, Random(1).random), 200_000 // each, each, later)
    expected = 200_000 * share
    assert abs(queue.kept - expected) < 5 * expected**0.5


def test_all_are_taken_with_a_share_of_1() -> None:
    queue, later = Kept(), list[Callable[[], None]]()
    play(Sampling(1.0, queue, later.append), 50, 3, later)
    assert queue.kept == 150


def test_between_two_samples_it_is_full_and_costs_nothing() -> None:
    queue, later = Kept(), list[Callable[[], None]]()
    sampling = Sampling(0.5, queue, later.append, lambda: 0.999)  # ten exchanges up to each
    assert (sampling.left, sampling.full) == (10, True)
    sampling.missed(9)
    assert not sampling.full
    sampling.take(ONE)
    later.pop()()
    assert (queue.kept, sampling.full) == (1, True)


def test_without_room_those_that_would_be_taken_are_counted_as_dropped() -> None:
    queue, later = Kept(3), list[Callable[[], None]]()
    sampling = Sampling(1.0, queue, later.append)
    play(sampling, 10, 2, later)
    assert queue.kept + queue.dropped >= 19  # one read may have had two for the last place
    queue.most = 100
    sampling.missed(1)
    assert not sampling.full


def test_what_rules_have_chosen_is_taken() -> None:
    queue = Kept()
    Chosen(queue).take(ONE)
    assert queue.kept == 1
    assert not Chosen(queue).full
