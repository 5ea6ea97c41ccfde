"""Throttle times, by the arithmetic of Kafka's Rate and SampledStat."""

from klamm.rules.actions.quota import SAMPLES, Quota

S = 1_000_000_000
WINDOW = 10 * S


def test_a_window_s_worth_passes_at_once_and_what_exceeds_it_waits() -> None:
    quota = Quota(100, WINDOW)
    assert quota.take(1000, 0) == 0
    assert quota.take(100, 0) == S
    assert quota.take(50, 0) == 1.5 * S


def test_the_time_counts_for_at_least_a_window_while_the_oldest_sample_is_younger() -> None:
    quota = Quota(100, WINDOW)
    quota.take(1000, 0)
    waits, now = [], 0
    for _ in range(4):
        waits.append(quota.take(100, now) / S)
        now += round(waits[-1] * S)
    assert waits == [1, 2, 3, 4]
    assert quota.take(100, now) == 5 * S
    assert quota.take(100, 11 * S) == 0


def test_what_was_counted_a_window_and_a_sample_ago_is_forgotten() -> None:
    quota = Quota(100, WINDOW)
    assert quota.take(2000, 0) == WINDOW
    assert quota.take(1, WINDOW) > 0
    assert quota.take(1, (SAMPLES + 1) * S) == 0
    assert len(quota.samples) == 2


def test_a_time_before_the_last_one_counts_all_the_same() -> None:
    quota = Quota(100, WINDOW)
    quota.take(1000, 5 * S)
    assert quota.take(100, 2 * S) >= S
    assert sum(units for _, units in quota.samples) == 1100
