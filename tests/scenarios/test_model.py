"""Scenario files: read whole, or every mistake told with its place."""

import pytest

from klamm.scenarios.expectations import Errors, Hits
from klamm.scenarios.model import read_scenario

GOOD = """\
about: leaders move
parameters: {topic: "orders-*", share: 30%}
phases:
  - name: steady
    for: 10s
    expect:
      - errors: {api: Produce, below: 1%, after: 2s}
  - name: moving
    for: 1m
    flap: 2s
    rules:
      - {name: moved, api: Produce, topic: "$topic", error: NOT_LEADER_FOR_PARTITION, chance: $share}
      - {api: Fetch, delay: 1s}
    expect:
      - hits: {rule: moved}
expect:
  - errors: {below: 50%}
"""


def test_a_scenario_is_phases_of_rules_and_expectations() -> None:
    scenario, mistakes = read_scenario(GOOD, "file", "leaders")
    assert not mistakes
    assert scenario is not None
    steady, moving = scenario.phases
    assert (scenario.name, scenario.about, scenario.lasts_s) == ("leaders", "leaders move", 70)
    assert scenario.expect == (Errors(below=0.5),)
    assert (steady.name, steady.lasts_s, steady.flap_s, steady.rules) == ("steady", 10, None, ())
    assert steady.expect == (Errors("Produce", below=0.01, after=2_000_000_000),)
    assert (moving.lasts_s, moving.flap_s) == (60, 2)
    assert moving.expect == (Hits("moved"),)
    assert moving.rules == (
        {
            "name": "moved",
            "api": "Produce",
            "topic": "orders-*",
            "error": "NOT_LEADER_FOR_PARTITION",
            "chance": "30%",
        },
        {"name": "moving 2", "api": "Fetch", "delay": "1s"},
    )


def test_parameters_are_set_from_outside() -> None:
    scenario, _ = read_scenario(GOOD, "file", "leaders", {"topic": "payments"})
    assert scenario is not None
    assert scenario.phases[1].rules[0]["topic"] == "payments"
    assert scenario.parameters == {"topic": "payments", "share": "30%"}


@pytest.mark.parametrize("value", ["*-orders", "!orders", "[ab]-orders"])
def test_a_parameter_is_filled_in_before_yaml_is_read(value: str) -> None:
    scenario, mistakes = read_scenario(GOOD, "file", "leaders", {"topic": value})
    assert not mistakes
    assert scenario is not None
    assert scenario.phases[1].rules[0]["topic"] == value
    assert read_scenario(GOOD.replace('"$topic"', "$topic"), "file", "leaders", {"topic": value})[1]


MISTAKES = [
    ("for: 10s", "for: 10", "file:5:10: phases[0].for: 10 of what? write 10ms or 10s"),
    ("for: 10s", "for: 0s", "file:5:10: phases[0].for: a phase takes time"),
    ("flap: 2s", "flap: 2m", "file:10:11: phases[1].flap: must be more than 0, and no longer than the phase"),
    ("name: moving", "name: steady", "file:8:11: phases[1].name: there is a phase 'steady' already"),
    (
        "- errors: {api",
        "- eror: {api",
        "file:7:9: phases[0].expect[0].eror: unknown key; did you mean errors?",
    ),
    (
        "{api: Produce, below",
        "{api: Produc, below",
        "file:7:23: phases[0].expect[0].errors.api: unknown API 'Produc'; did you mean Produce?",
    ),
    ("below: 1%, after", "after", "file:7:17: phases[0].expect[0].errors: needs below or above"),
    (
        "after: 2s",
        "after: 10s",
        "file:7:50: phases[0].expect[0].errors.after: "
        "must be less than the phase lasts, else there is nothing to judge",
    ),
    (
        "rule: moved",
        "rule: movd",
        "file:15:22: phases[1].expect[0].hits.rule: no rule until then is called 'movd'; did you mean moved?",
    ),
    (
        "- hits: {rule: moved}",
        "- {hits: {rule: moved}, rate: {at_least: 1}}",
        "file:15:9: phases[1].expect[0]: must be one of errors, answered, requests, rate, resumes, pause, "
        "connections, hits: several in one entry",
    ),
    (
        "error: NOT_LEADER_FOR_PARTITION",
        "error: NOT_LEADER_FOR_PARTITON",
        "file:12:63: phases[1].rules[0].error: unknown error 'NOT_LEADER_FOR_PARTITON'; "
        "did you mean NOT_LEADER_FOR_PARTITION?",
    ),
    (
        "error: NOT_LEADER_FOR_PARTITION",
        "stale_metadata: true",
        "file:12:72: phases[1].rules[0].stale_metadata: "
        "stale_metadata works on Metadata, not on Produce: leave api out",
    ),
    (
        "chance: $share",
        "chance: $shar",
        "file:12:97: phases[1].rules[0].chance: there is no parameter 'shar'; did you mean share?",
    ),
    ("  - errors: {below", "  - rate: {below", "file:17:12: expect[0].rate.below: unknown key"),
]


@pytest.mark.parametrize(("right", "wrong", "message"), MISTAKES)
def test_a_mistake_is_told_with_its_place(right: str, wrong: str, message: str) -> None:
    assert GOOD.count(right) == 1
    scenario, mistakes = read_scenario(GOOD.replace(right, wrong), "file", "leaders")
    assert scenario is None
    assert any(str(mistake).startswith(message) for mistake in mistakes), "\n".join(map(str, mistakes))


def test_all_mistakes_of_a_file_are_told_at_once() -> None:
    text = (
        GOOD.replace("for: 10s", "for: 10")
        .replace("rule: moved", "rul: moved")
        .replace("delay: 1s", "dela: 1s")
    )
    _, mistakes = read_scenario(text, "file", "leaders")
    assert [mistake.place.line for mistake in mistakes] == [5, 13, 15, 15]


@pytest.mark.parametrize(
    ("expectation", "reason"),
    [
        ("errors: {api: Offset*, below: 1%}", "unknown API 'Offset*'"),
        ("connections: {api: Produce, at_most: 1}", "unknown key"),
        ("hits: {rule: moved, client: shop}", "unknown key"),
    ],
)
def test_what_an_expectation_cannot_select_is_refused(expectation: str, reason: str) -> None:
    _, (mistake,) = read_scenario(GOOD.replace("errors: {below: 50%}", expectation), "file", "leaders")
    assert reason in mistake.reason


def test_an_unknown_parameter_is_refused() -> None:
    _, (mistake,) = read_scenario(GOOD, "file", "leaders", {"topics": "x"})
    assert str(mistake) == "file:2:13: parameters: there is no parameter 'topics'; did you mean topic?"


@pytest.mark.parametrize("text", ["", "about: nothing", "phases: []"])
def test_a_scenario_needs_phases(text: str) -> None:
    scenario, (mistake,) = read_scenario(text, "file", "empty")
    assert scenario is None
    assert mistake.reason == "a scenario needs phases"


@pytest.mark.parametrize("text", ["phases: [", "- a", "phases: {}", "\t"])
def test_what_is_no_scenario_is_a_mistake(text: str) -> None:
    scenario, mistakes = read_scenario(text, "file", "broken")
    assert scenario is None
    assert mistakes
