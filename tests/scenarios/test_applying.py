"""A scenario that cannot apply says so before it starts."""

from __future__ import annotations

import pytest

from klamm.client.types import Rule
from klamm.scenarios import ready
from klamm.scenarios.applying import Ground, doubts, refusals
from klamm.scenarios.model import Scenario, read_scenario

THREE = Ground(
    {"kafka": frozenset({"1", "2", "3"})},
    {"kafka": False},
    apis=frozenset({"Produce", "Fetch", "Metadata", "Heartbeat"}),
    clients=frozenset({"shop"}),
    topics=frozenset({"orders"}),
)
TWO = THREE._replace(known={"a": frozenset({"1", "2"}), "b": frozenset({"2"})}, sasl={"a": False, "b": True})


def there(name: str, made_by: str = "", enabled: bool = True, dry: bool = False, over: bool = False) -> Rule:
    """A rule in force, by hand if somebody made it."""
    return Rule(name, "hand" if made_by else "file", {}, enabled, dry, 0, 0, 0, over, made_by=made_by)


def scenario(name: str, **given: str) -> Scenario:
    found, mistakes = read_scenario(ready.text(name), name, name, given)
    assert found is not None, mistakes
    return found


def written(rule: str, expect: str = "connections: {at_most: 1}") -> Scenario:
    text = (
        f"phases:\n  - name: only\n    for: 10s\n    rules:\n      - {rule}\n    expect:\n      - {expect}\n"
    )
    found, mistakes = read_scenario(text, "file", "file")
    assert found is not None, mistakes
    return found


@pytest.mark.parametrize("name", [name for name in ready.names() if "sasl" not in name])
def test_a_ready_scenario_applies_to_three_brokers(name: str) -> None:
    assert refusals(scenario(name), THREE) == []


def test_too_few_brokers_are_told_once_each_with_the_parameters() -> None:
    one = THREE._replace(known={"kafka": frozenset({"1"})})
    assert refusals(scenario("rolling-restart"), one) == [
        "the rule 'second refuses' of the phase 'second is down': there is no broker 2: kafka has 1",
        "the rule 'third refuses' of the phase 'third is down': there is no broker 3: kafka has 1",
        "its parameters are first=1, second=2, third=3: others are given with --set KEY=VALUE",
    ]


def test_a_node_id_of_two_clusters_needs_one_of_them() -> None:
    (refusal, parameters) = refusals(scenario("slow-broker"), TWO)
    assert refusal.startswith(
        "the rule 'slow' of the phase 'slow': broker 2 is in the clusters a and b: choose with"
    )
    assert parameters.startswith("its parameters are broker=2: ")
    chosen = scenario("slow-broker").on("b")
    assert refusals(chosen, TWO) == []
    assert {rule["cluster"] for phase in chosen.phases for rule in phase.rules} == {"b"}
    texts = [each.text() for phase in chosen.phases for each in phase.expect]
    assert all("cluster b" in text or "hits" in text for text in texts)


def test_a_cluster_that_a_rule_or_an_expectation_names_stays() -> None:
    expects = "errors: {api: Produce, cluster: a, below: 1%}"
    ((phase,),) = (written("{cluster: a, down: true}", expects).on("b").phases,)
    assert [rule["cluster"] for rule in phase.rules] == ["a"]
    assert [each.text() for each in phase.expect] == ["Produce of cluster a: errors under 1%"]


def test_sasl_that_no_broker_asks_for_is_told() -> None:
    (answer,) = refusals(scenario("expired-sasl-session"), THREE)[:1]
    assert answer == "the phase 'expiry' expects SaslAuthenticate requests, and brokers here want no SASL"
    for sasl in (True, None):
        assert refusals(scenario("expired-sasl-session"), THREE._replace(sasl={"kafka": sasl})) == []
    assert refusals(scenario("expired-sasl-session").on("a"), TWO) != []
    assert refusals(scenario("expired-sasl-session").on("b"), TWO) == []


@pytest.mark.parametrize(
    ("made", "ground", "reason"),
    [
        (
            written("{cluster: eu, down: true}"),
            THREE,
            "the rule 'only 1' of the phase 'only': there is no cluster 'eu': klamm knows kafka",
        ),
        (
            written("{name: taken, down: true}"),
            THREE._replace(rules=(there("taken", "ada (10.0.0.1)"),)),
            "there is a rule 'taken' already, made by ada (10.0.0.1): "
            "end the rule with `klamm rules rm taken`",
        ),
        (
            written("{name: is taken, down: true}"),
            THREE._replace(rules=(there("is taken", "scenario slow-broker (10.0.0.1)"),)),
            "there is a rule 'is taken' already, made by scenario slow-broker (10.0.0.1), which may be "
            "playing: wait until it has ended, or end the rule with `klamm rules rm 'is taken'`",
        ),
        (
            written("{name: taken, down: true}"),
            THREE._replace(rules=(there("taken"),)),
            "klamm's rule file has a rule 'taken' already: one of them needs another name",
        ),
        (
            written("{down: true}"),
            THREE._replace(read_only=True),
            "klamm runs with --read-only: no rule can be added",
        ),
        (
            written("{down: true}", "rate: {api: Produce, broker: 7, at_least: 1}"),
            THREE,
            "the phase 'only' expects requests at broker 7, which is not there",
        ),
    ],
)
def test_what_cannot_apply_is_told(made: Scenario, ground: Ground, reason: str) -> None:
    assert refusals(made, ground) == [reason]


def test_other_rules_in_force_are_a_doubt_and_no_refusal() -> None:
    made = written("{down: true}")
    rules = (
        there("late"),
        there("slow", "ada (10.0.0.1)"),
        there("cut", "scenario flapping-network (10.0.0.1)", enabled=False),
    )
    ground = THREE._replace(rules=rules)
    assert refusals(made, ground) == []
    assert doubts(made, ground) == [
        "other rules are in force: 'late' of the rule file, 'slow' of ada (10.0.0.1), "
        "'cut' of scenario flapping-network (10.0.0.1); expectations may fail because of them"
    ]
    many = THREE._replace(rules=tuple(there(f"rule {number}") for number in range(9)))
    assert "'rule 5' of the rule file and 3 more; " in doubts(made, many)[0]


def test_rules_that_change_nothing_are_no_doubt() -> None:
    rules = (there("off", enabled=False), there("dry", dry=True), there("over", "ada", over=True))
    assert doubts(written("{down: true}"), THREE._replace(rules=rules)) == []


def test_what_was_not_seen_yet_is_a_doubt_and_no_refusal() -> None:
    made = written(
        "{api: Produce, topic: payments, client: billing-*, delay: 1s}", "errors: {api: EndTxn, below: 1%}"
    )
    ground = THREE._replace(waiting={"kafka": "no answer"})
    assert refusals(made, ground) == []
    assert doubts(made, ground) == [
        "cluster kafka is not ready: no answer",
        "no client has sent EndTxn so far, and the scenario expects it",
        "the rule 'only 1' is for the topic payments, of which nothing was seen: there are orders",
        "the rule 'only 1' is for the client id billing-*, of which nothing was seen: there are shop",
    ]
    assert (
        doubts(written("{api: Produce, topic: 'o*', delay: 1s}", "rate: {api: Produce, at_most: 3}"), THREE)
        == []
    )
