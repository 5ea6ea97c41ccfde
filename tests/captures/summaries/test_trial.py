"""Rules tried on captured traffic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from klamm.captures.captured import Captured
from klamm.captures.summaries.trial import Outcome, Trial
from klamm.rules.file.rule_file import read_text
from klamm.rules.frame import Frame
from klamm.rules.orders import Answer, Delay, Drop, Edit, Order
from klamm.rules.rule import Draw, Rule
from tests.captures.rows import START_NS, Talk, connection, in_time

Heard = list[tuple[str, str, type]]  # rule, side, order


def tried(rules: str, rows: list[Captured], seed: int = 1) -> tuple[dict[str, Outcome], Heard]:
    """The outcome of each rule, by its name, and the orders."""
    found = read_text(f"rules: [{rules}]", "rules")
    assert found.mistakes == []
    orders: Heard = []

    def listen(outcome: Outcome, frame: Frame, order: Order) -> None:
        orders.append((outcome.rule.name, frame.side, type(order)))

    trial = Trial(found.rules, seed, listen)
    trial.run(rows)
    return trial.by_name, orders


def one(rules: str, rows: list[Captured]) -> tuple[Outcome, Heard]:
    outcomes, orders = tried(rules, rows)
    [outcome] = outcomes.values()
    return outcome, orders


def work() -> list[Captured]:
    return Talk().metadata().produce().fetch().heartbeat().produce().rows


def test_a_rule_matches_what_it_would_in_a_running_klamm() -> None:
    outcome, orders = one("{name: r, api: Produce, topic: orders, error: NOT_LEADER_OR_FOLLOWER}", work())
    assert (outcome.matches, outcome.hits) == (2, 2)
    assert outcome.clients == {("app", "10.0.0.7"): 2}
    assert (outcome.first_ns, outcome.last_ns) == (START_NS + 1_000_000, START_NS + 8_000_000)
    assert orders == [("r", "request", Answer)] * 2


def test_times_and_chance_decide_as_they_do_there() -> None:
    assert one("{api: Produce, error: 6, times: 1}", work())[0].hits == 1
    rows = Talk()
    for _ in range(200):
        rows.heartbeat()
    outcome, _ = one("{api: Heartbeat, error: 27, chance: 25%}", rows.rows)
    assert outcome.matches == 200
    assert 20 < outcome.hits < 80
    again, _ = one("{api: Heartbeat, error: 27, chance: 25%}", rows.rows)
    assert again.hits == outcome.hits


def test_the_clock_is_that_of_the_capture() -> None:
    talk = Talk().heartbeat()
    talk.now_ms = 60_000
    talk.heartbeat().heartbeat()
    assert one("{api: Heartbeat, from: 30s, error: 27}", talk.rows)[0].hits == 2
    assert one("{api: Heartbeat, until: 2020-01-01T00:00:00Z, error: 27}", talk.rows)[0].hits == 0


def test_fetch_by_topic_id_is_known_by_the_name_that_metadata_told() -> None:
    assert one("{api: Fetch, topic: orders, error: 3}", work())[0].matches == 1


def test_a_group_is_learned_from_other_requests_of_its_client() -> None:
    talk = Talk().fetch().heartbeat().fetch()
    assert one("{api: Fetch, group: billing, delay: 1s}", talk.rows)[0].matches == 1


def test_what_is_ordered_for_the_answer_is_heard_with_the_answer() -> None:
    outcome, orders = one("{name: r, api: Heartbeat, error: {code: 27, applied: true}}", work())
    assert (outcome.hits, orders) == (1, [("r", "response", Edit)])


def test_a_rule_on_responses_sees_the_requests_they_answer() -> None:
    rule = '{name: r, api: Produce, side: response, where: "request.acks == -1", delay: 1s}'
    outcome, orders = one(rule, work())
    assert (outcome.hits, orders) == (2, [("r", "response", Delay)] * 2)


def test_a_rule_sees_what_those_before_it_have_made_of_a_frame() -> None:
    rules = (
        '{name: first, api: Produce, set: {acks: "1"}}, '
        '{name: second, api: Produce, where: "acks == 1", delay: 1s}'
    )
    outcomes, _ = tried(rules, work())
    assert outcomes["second"].hits == 2


def test_what_a_rule_has_ended_is_not_for_those_after_it_nor_is_its_answer() -> None:
    rules = (
        "{name: first, api: Produce, drop: true}, {name: second, api: Produce, delay: 1s}, "
        "{name: third, api: Produce, side: response, delay: 1s}"
    )
    outcomes, orders = tried(rules, work())
    assert (outcomes["second"].hits, outcomes["third"].matches) == (0, 0)
    assert set(orders) == {("first", "request", Drop)}


def test_a_dry_rule_counts_and_orders_nothing() -> None:
    outcome, orders = one("{api: Produce, drop: true, dry: true}", work())
    assert (outcome.hits, orders) == (2, [])


@dataclass(frozen=True)
class Failing:
    """An action that cannot do what it is for."""

    name: ClassVar[str] = "failing"
    sides: ClassVar[Sequence[str]] = ("request",)

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        raise ValueError("it is Monday")


def test_an_action_that_fails_is_counted_and_said() -> None:
    trial = Trial([Rule("r", (Failing(),))], 1, lambda *_: None)
    trial.run(Talk().heartbeat().rows)
    assert (trial.outcomes[0].hits, trial.outcomes[0].failures) == (1, 1)
    assert trial.engine.failed == [("r", "ValueError: it is Monday")]


def test_connections_are_judged_as_they_open() -> None:
    rows = in_time(Talk(of=connection(1)).opened().heartbeat(), Talk(of=connection(2)).heartbeat())
    outcome, _ = one("{event: connect, refuse: true}", rows)
    assert outcome.matches == 2


def test_what_klamm_itself_asked_and_answered_is_not_judged() -> None:
    rows = [row._replace(fate="made") for row in Talk().heartbeat().rows]
    rules = "{name: a, api: Heartbeat, drop: true}, {name: b, api: Heartbeat, side: response, delay: 1s}"
    outcomes, _ = tried(rules, rows)
    assert [outcome.matches for outcome in outcomes.values()] == [0, 0]


def test_what_a_rule_read_and_did_not_match_is_noted() -> None:
    outcome, _ = one("{api: Produce, topic: payments, error: 6}", work())
    assert (outcome.matches, outcome.asked, outcome.topics) == (0, 2, {"orders": 2})


def test_fetch_sessions_that_began_before_the_capture_are_counted() -> None:
    found = read_text("rules: [{api: Fetch, topic: orders, error: 3}]", "rules")
    trial = Trial(found.rules, 1, lambda *_: None)
    asked: dict[str, Any] = {"session_id": 77, "session_epoch": 5, "topics": []}
    trial.run(Talk().exchange("Fetch", 12, asked, {}).exchange("Fetch", 12, asked, {}).rows)
    assert (trial.sessions_unknown, trial.outcomes[0].matches) == (2, 0)


def test_a_request_that_cannot_be_read_is_matched_by_its_header_alone() -> None:
    row = Talk().fetch().rows[0]
    rows = [row._replace(frame=(row.frame or b"")[:-5])]
    rules = "{name: a, api: Fetch, topic: orders, drop: true}, {name: b, api: Fetch, drop: true}"
    outcomes, _ = tried(rules, rows)
    assert [outcome.matches for outcome in outcomes.values()] == [0, 1]


@pytest.mark.parametrize("count", [0, 1])
def test_a_capture_of_nothing_is_no_mistake(count: int) -> None:
    rows = [Captured(START_NS, "lost", lost=5)] * count
    assert one("{api: Produce, error: 6}", rows)[0].matches == 0
