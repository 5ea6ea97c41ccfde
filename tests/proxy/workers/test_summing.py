"""Counters of several processes, added up."""

from collections import Counter
from typing import Any

from klamm.proxy.metrics.summing import add, taken
from klamm.proxy.session.observing.counters import Histogram, Stats


def counted(client: str, times: int) -> Stats:
    stats = Stats()
    each = stats.of_requests("kafka", "1", client, "Produce", 9)
    each.requests, each.request_bytes = times, 10 * times
    each.latency.add(3_000_000, times)
    each.own.add(7_000, times)
    each.errors[6] += times
    topic = stats.of_topic("kafka", "orders", "Produce")
    topic.requests, topic.errors[6] = times, times
    topic.latency.add(3_000_000, times)
    stats.connections["kafka", "1"] = 2
    stats.opened["kafka", "1"] = times
    stats.closed["kafka", "closed by client"] = times - 2
    return stats


def test_counts_and_histograms_are_sums() -> None:
    total = Stats()
    for stats in (counted("a", 5), counted("a", 7), counted("b", 1)):
        add(total, taken(stats))
    (a, b) = total.requests.values()
    assert (a.client_id, a.requests, a.request_bytes, a.errors[6]) == ("a", 12, 120, 12)
    assert (b.client_id, b.requests) == ("b", 1)
    assert sum(a.latency.buckets) == 12
    assert (a.latency.total_ns, a.own.total_ns) == (36_000_000, 84_000)
    assert total.of_topic("kafka", "orders", "Produce").requests == 13
    assert total.connections["kafka", "1"] == 6
    assert total.opened["kafka", "1"] == 13


def test_a_process_that_ended_has_no_open_connections() -> None:
    total = Stats()
    add(total, taken(counted("a", 5)), ended=True)
    assert total.opened["kafka", "1"] == 5
    assert not total.connections


def test_the_bounds_of_labels_hold_for_the_sum() -> None:
    total = Stats(max_clients=2)
    for client in ("a", "b", "c", "d"):
        add(total, taken(counted(client, 3)))
    assert {each.client_id: each.requests for each in total.requests.values()} == {"a": 3, "b": 3, "other": 6}


def test_what_was_taken_does_not_change_any_more() -> None:
    stats = counted("a", 5)
    before = taken(stats)
    stats.of_requests("kafka", "1", "a", "Produce", 9).latency.add(3_000_000)
    total = Stats()
    add(total, before)
    assert sum(total.of_requests("kafka", "1", "a", "Produce", 9).latency.buckets) == 5


def counters_of(each: Any, kind: type) -> list[str]:
    """The names of the attributes that count, but for those of the sum itself."""
    names = (name for name in dir(each) if not name.startswith("_"))
    return [name for name in names if type(getattr(each, name)) is kind]


def fill(each: Any) -> dict[str, int]:
    """Let every counter of it be 7. Gives them all, by name."""
    for name in counters_of(each, int):
        setattr(each, name, 7)
    for name in counters_of(each, Counter):
        getattr(each, name)[6] = 7
    for name in counters_of(each, Histogram):
        getattr(each, name).add(3_000_000, 7)
    return counts(each)


def counts(each: Any) -> dict[str, int]:
    return {
        **{name: getattr(each, name) for name in counters_of(each, int)},
        **{name: getattr(each, name)[6] for name in counters_of(each, Counter)},
        **{name: sum(getattr(each, name).buckets) for name in counters_of(each, Histogram)},
    }


FORGOTTEN = "not summed where klamm has workers: name it in summing.py"


def test_none_is_left_out() -> None:
    """A counter that is not in the tables of summing.py would stay 0 where klamm has workers."""
    stats, total = Stats(), Stats()
    each, topic = (
        stats.of_requests("kafka", "1", "a", "Produce", 7),
        stats.of_topic("kafka", "orders", "Produce"),
    )
    filled, filled_topic = fill(each), fill(topic)
    assert len(filled) > 9
    assert len(filled_topic) > 2
    whole = counters_of(stats, Counter)
    assert len(whole) > 8
    for name in whole:
        getattr(stats, name)["kafka", "1"] = 7
    add(total, taken(stats))
    assert counts(total.of_requests("kafka", "1", "a", "Produce", 7)) == filled, FORGOTTEN
    assert counts(total.of_topic("kafka", "orders", "Produce")) == filled_topic, FORGOTTEN
    assert {name: getattr(total, name)["kafka", "1"] for name in whole} == dict.fromkeys(whole, 7), FORGOTTEN
