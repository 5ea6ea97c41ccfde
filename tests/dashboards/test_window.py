"""Differences and sums of two answers of /v1/counters."""

from klamm.dashboards.terminal.window import window
from tests.dashboards.fake_state import FakeState, answer, of_many_clients, two_answers

NINE = [f"app-{number}" for number in range(1, 10)]


def test_a_window_counts_what_happened_between_two_answers() -> None:
    now = window(*two_answers())
    assert now.seconds == 5
    produce = next(row for row in now.apis if row.name == "Produce")
    assert (produce.requests, produce.responses, produce.ever) == (5 * 430, 5 * 430, 30 * 430)
    assert produce.request_bytes == 5 * (120 * 4_200 + 310 * 260)
    assert sum(produce.buckets) == 5 * 430
    assert (
        now.total.requests
        == sum(row.requests for row in now.apis)
        == sum(row.requests for row in now.brokers)
    )


def test_without_a_previous_answer_everything_since_the_start_counts() -> None:
    _, current = two_answers()
    now = window(None, current)
    assert now.seconds == 30
    assert now.total.requests == now.total.ever == 30 * 510


def test_after_a_restart_of_klamm_nothing_is_negative() -> None:
    previous, _ = two_answers()
    state = FakeState()
    state.run(2)
    restarted = answer(state) | {"pid": 2}
    now = window(previous, restarted)
    assert (now.seconds, now.total.requests) == (2, 2 * 510)


def test_a_lane_that_was_not_there_before_counts_from_nothing() -> None:
    state = FakeState()
    state.run(1)
    previous = answer(state)
    late = state.stats.of_requests("demo", "1", "late", "Fetch", 16)
    late.requests, late.errors[3] = 7, 2
    now = window(previous, answer(state) | {"now": previous["now"] + 1})
    assert [(row.name, row.requests, row.errors) for row in now.clients if row.requests] == [("late", 7, 2)]


def test_latencies_of_mixed_rows_leave_out_what_waits_for_news() -> None:
    now = window(*two_answers())
    clients = {row.name: row for row in now.clients}
    assert sum(clients["billing-2"].buckets) == 0  # fetches only
    assert sum(clients["billing-1"].buckets) == 5 * (4 + 1)  # commits and heartbeats
    assert sum(next(row for row in now.apis if row.name == "Fetch").buckets) == 5 * 70


def test_errors_name_their_api_clients_and_topics() -> None:
    absent = next(row for row in window(*two_answers()).errors if row.name == "UNKNOWN_TOPIC_OR_PARTITION")
    assert (absent.api, absent.count, absent.ever) == ("Metadata", 10, 60)
    assert (absent.clients, absent.topics) == (["reporting"], ["no-such-topic"])


def test_an_error_says_how_many_clients_and_topics_it_does_not_name() -> None:
    (error,) = window(None, answer(of_many_clients(*NINE))).errors
    assert error.whose() == "app-1, app-2, app-3 and 6 more on a, b, c and 2 more"
    assert error.whose(1) == "app-1 and 8 more on a and 4 more"
    (error,) = window(None, answer(of_many_clients(*NINE[:3]))).errors
    assert error.whose() == "app-1, app-2, app-3 on a, b, c and 2 more"


def test_rows_keep_their_place_while_rates_waver() -> None:
    state, places = FakeState(), []
    state.run(43)
    for speed in (1.0, 1.02, 0.98):
        previous = answer(state)
        state.run(5, speed)
        places.append([row.name for row in window(previous, answer(state)).apis])
    assert places[0] == places[1] == places[2]


def test_with_two_clusters_names_carry_theirs() -> None:
    _, current = two_answers()
    current["clusters"].append(current["clusters"][0] | {"name": "other"})
    assert {row.name for row in window(None, current).brokers} == {"demo/1", "demo/2", "demo/3"}


def test_brokers_are_in_the_order_of_their_ids() -> None:
    state = FakeState()
    for broker in ("10", "bootstrap", "9", "controller 1"):
        state.stats.of_requests("demo", broker, "a", "Fetch", 16).requests = 1
    state.run(1)
    names = [row.name for row in window(None, answer(state)).brokers]
    assert names == ["1", "2", "3", "9", "10", "bootstrap", "controller 1"]
