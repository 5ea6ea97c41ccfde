"""Rules as a form, and what a rule would have done to the exchanges of a list."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from klamm.client.types import Body, Exchange
from klamm.dashboards.web.ruling.forms import action_forms, as_yaml, checked
from klamm.dashboards.web.ruling.trials import Tried, tried
from klamm.rules.actions import ACTIONS
from klamm.rules.file.rule_file import read_text
from tests.dashboards.web.exchanges import exchange, fetch, heartbeat, produce, records

FAILING = {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"}


def on(written: dict[str, Any], *exchanges: Exchange) -> Tried:
    return tried(written, [(str(number), one) for number, one in enumerate(exchanges)])


def test_every_action_has_a_form_with_its_parameters() -> None:
    forms = {form.name: form for form in action_forms()}
    assert list(forms) == list(ACTIONS)
    assert forms["set"].entries
    assert all(form.text for form in forms.values())
    code, at, applied = forms["error"].parameters
    assert (code.name, code.list, code.needed) == ("code", "errors", True)
    assert (at.needed, applied.choices) == (False, ["true", "false"])
    assert forms["delay"].parameters[2].choices == ["uniform", "normal", "exponential"]


def test_a_rule_is_explained_and_written_as_a_file() -> None:
    found = checked({**FAILING, "topic": "orders", "times": 3})
    assert found.mistakes == []
    words = dict(found.words)
    assert words["for"].endswith("about the topic orders")
    assert words["when"] == "at most 3 times"
    assert read_text(found.yaml, "the page", ACTIONS).mistakes == []


def test_mistakes_are_told_with_their_keys() -> None:
    found = checked({"api": "Produce", "error": "NOT_LEADER", "times": "x"})
    assert {mistake.path for mistake in found.mistakes} == {"error", "times"}
    assert (found.yaml, found.words) == ("", [])


def test_a_rule_that_never_ends_is_no_different_in_a_file() -> None:
    assert checked({**FAILING, "for": "forever"}).mistakes == []
    assert "forever" not in as_yaml({**FAILING, "for": "forever"})


def test_the_exchanges_that_a_rule_selects_and_those_on_which_it_acts_are_told() -> None:
    found = on(
        {**FAILING, "topic": "orders", "times": 2},
        produce(),
        heartbeat(),
        produce(),
        produce(topic="x"),
        produce(),
    )
    assert (found.selects, found.acts, found.exchanges) == (["0", "2", "4"], ["0", "2"], 5)
    assert found.would == ["answer in the broker's place with NOT_LEADER_OR_FOLLOWER (2)"]


def test_a_rule_on_answers_selects_by_them() -> None:
    rule = {"api": "Heartbeat", "side": "response", "where": "error != NONE", "delay": "1s"}
    found = on(rule, heartbeat(), heartbeat(27))
    assert (found.acts, found.would) == (["1"], ["delay the response by 1.00s (1)"])


def test_answers_that_klamm_changed_are_judged_and_those_that_it_made_are_not() -> None:
    rule = {"api": "Heartbeat", "side": "response", "delay": "1s"}
    changed = heartbeat(27, origin="klamm")
    assert changed.request is not None
    made = replace(changed, request=replace(changed.request, withheld=True))
    assert on(rule, changed, made).acts == ["0"]


def test_topics_are_known_where_the_wire_has_their_ids_only() -> None:
    rule = {"api": "Fetch", "topic": "orders", "error": "NOT_LEADER_OR_FOLLOWER"}
    assert on(rule, fetch(records(b"tea"))).acts == ["0"]
    assert on({**rule, "topic": "others"}, fetch(records(b"tea"))).selects == []


def test_exchanges_whose_bodies_are_gone_are_counted() -> None:
    bare = replace(produce(), request=Body(9, reason="gone"), response=Body(9, reason="gone"))
    found = on({**FAILING, "topic": "orders"}, bare, produce())
    assert (found.selects, found.unread, found.exchanges) == (["1"], 1, 2)


def test_a_rule_with_mistakes_is_not_tried() -> None:
    found = on({"api": "Produce", "error": "NOT_LEADER"}, produce())
    assert [mistake.path for mistake in found.mistakes] == ["error"]
    assert found.exchanges == 0


@pytest.mark.parametrize("times", [1, 3])
def test_what_acts_is_part_of_what_is_selected(times: int) -> None:
    found = on({"api": "Produce", "drop": "true", "times": times}, *[produce()] * 4)
    assert found.acts == [str(number) for number in range(times)]
    assert set(found.acts) < set(found.selects)


def test_chances_are_the_same_in_every_trial() -> None:
    rule, some = {**FAILING, "chance": 0.5}, [produce() for _ in range(40)]
    found = on(rule, *some)
    assert 0 < len(found.acts) < 40
    assert on(rule, *some) == found


def test_an_api_that_klamm_does_not_know_is_passed_over() -> None:
    unknown = replace(exchange("Metadata", 9, {"topics": []}), api="API key 999")
    assert on(FAILING, unknown, produce()).acts == ["1"]
