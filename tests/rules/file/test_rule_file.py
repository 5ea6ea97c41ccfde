"""Rule files: what is read, in every form in which it may be written."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from klamm.decoders import API
from klamm.decoders.schema import ALL, Versions
from klamm.rules.actions import ACTIONS
from klamm.rules.actions.delay import Delay
from klamm.rules.actions.disconnect import Disconnect, Dropping
from klamm.rules.actions.error import Error
from klamm.rules.engine import Engine
from klamm.rules.file.explain import explain
from klamm.rules.file.rule_file import load
from klamm.rules.glob import Glob
from klamm.rules.rule import Moment, Rule, When

MS, S = 10**6, 10**9


def rules_of(folder: Path, text: str) -> tuple[Rule, ...]:
    (folder / "rules.yaml").write_text(f"rules:\n{text}\n")
    found = load(str(folder / "rules.yaml"))
    assert found.mistakes == []
    return found.rules


def rule_of(folder: Path, text: str) -> Rule:
    (rule,) = rules_of(folder, f"  - {text}")
    return rule


def test_a_rule_carries_everything(tmp_path: Path) -> None:
    text = """
  - {name: first, drop: true}
  - name: leaderless
    api: [Produce, OFFSETS]
    versions: 3+
    side: request
    topic: [orders-*, "!orders-dlq"]
    partition: 0, 2
    group: billing
    client: 0123
    broker: [1, bootstrap, controller 3]
    cluster: [eu-*, "!eu-9"]
    where: size > 100
    chance: 20%
    times: 5
    every: 2
    nth: [2, 4]
    from: 30s
    until: 2030-01-31T09:30:00+01:00
    for: 1m
    since: first match
    per: client
    once_hit: first
    until_hit: first-2
    dry: yes
    enabled: no
    do: [{error: NOT_LEADER_FOR_PARTITION}, {delay: {time: 500ms, jitter: 20ms}}]
  - {name: first-2, drop: true}"""
    rule = rules_of(tmp_path, text)[1]
    assert (rule.name, rule.event, rule.side) == ("leaderless", "frame", "request")
    assert rule.keys == {0, 2}
    assert rule.versions == Versions(3, ALL.last)
    assert rule.topic == Glob("orders-*", "!orders-dlq")
    assert rule.cluster == Glob("eu-*", "!eu-9")
    assert rule.partition == {0, 2}
    assert (rule.group, rule.client) == (Glob("billing"), Glob("0123"))
    assert rule.broker == {"1", "bootstrap", "controller 3"}
    assert str(rule.where) == "size > 100"
    assert rule.when == When(
        chance=0.2,
        times=5,
        every=2,
        nth=(2, 4),
        after=Moment(30 * S),
        until=Moment(1_896_078_600 * S, absolute=True),
        lasting_ns=60 * S,
        since="first match",
        per="client",
        once_hit="first",
        until_hit="first-2",
    )
    assert (rule.dry, rule.enabled) == (True, False)
    assert rule.do == (Error(6), Delay(500 * MS, 20 * MS))


def test_what_is_left_out_selects_everything(tmp_path: Path) -> None:
    assert rule_of(tmp_path, "{drop: true}") == Rule("any-drop-1", (Dropping(),))


def test_actions_beside_the_selectors_keep_the_order_of_their_lines(tmp_path: Path) -> None:
    assert rule_of(tmp_path, "{disconnect: before, delay: 1s}").do == (Disconnect("before"), Delay(S))
    assert rule_of(tmp_path, "{delay: 1s, disconnect: {when: before}}").do == (Delay(S), Disconnect("before"))


def test_an_action_is_true_or_its_first_parameter_or_a_mapping(tmp_path: Path) -> None:
    assert rule_of(tmp_path, "{drop: true}").do == (Dropping(),)
    assert rule_of(tmp_path, "{delay: 500ms}") == rule_of(tmp_path, "{delay: {time: 500ms}}")


@pytest.mark.parametrize(
    ("written", "ns"),
    [("500ms", 500 * MS), ("2s", 2 * S), ("1m", 60 * S), ("1h", 3600 * S), ("1d", 86400 * S)],
)
def test_a_duration_has_a_unit(tmp_path: Path, written: str, ns: int) -> None:
    assert rule_of(tmp_path, f"{{delay: {written}}}").do == (Delay(ns),)


@pytest.mark.parametrize("error", ["6", "NOT_LEADER_OR_FOLLOWER", "not_leader_for_partition", "{code: 6}"])
def test_an_error_has_many_names(tmp_path: Path, error: str) -> None:
    assert rule_of(tmp_path, f"{{api: Produce, error: {error}}}").do == (Error(6),)


@pytest.mark.parametrize(
    ("api", "names"),
    [
        ("Produce", {"Produce"}),
        ("list_offsets", {"ListOffsets"}),
        ("Offset*", {"OffsetCommit", "OffsetFetch", "OffsetForLeaderEpoch", "OffsetDelete"}),
        ("'Produce, Fetch'", {"Produce", "Fetch"}),
        ("[GroupCoordinator, '*Heart*']", {"FindCoordinator", *(a.name for a in API if "Heart" in a.name)}),
    ],
)
def test_apis_are_named_by_old_names_and_globs_too(tmp_path: Path, api: str, names: set[str]) -> None:
    assert {API[key].name for key in rule_of(tmp_path, f"{{api: {api}, drop: true}}").keys} == names


def test_a_glob_leaves_out_what_the_rule_cannot_use(tmp_path: Path) -> None:
    rule = rule_of(tmp_path, "{api: '*Group*', topic: orders, drop: true}")
    assert all("Group" in API[key].name for key in rule.keys)
    assert API["ListGroups"].key not in rule.keys


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("{drop: true}", "request"),
        ("{api: Fetch, where: max_wait_ms > 3, drop: true}", "request"),
        ("{api: Fetch, where: error == OFFSET_OUT_OF_RANGE, drop: true}", "response"),
        ("{where: throttle_time_ms > 0, log: true}", "response"),
        ("{side: response, delay: 1s}", "response"),
    ],
)
def test_the_side_follows_from_what_is_read(tmp_path: Path, text: str, side: str) -> None:
    assert rule_of(tmp_path, text).side == side


def test_an_action_of_one_api_needs_no_selector(tmp_path: Path) -> None:
    rule = rule_of(tmp_path, "{clamp: {api: Fetch, versions: 0-11}}")
    assert rule.keys == {API["ApiVersions"].key}


def test_rules_without_a_name_get_one_that_does_not_change_with_their_neighbours(tmp_path: Path) -> None:
    before = rules_of(
        tmp_path, "  - {api: Produce, error: 6}\n  - {api: Produce, error: 7}\n  - {api: Fetch, delay: 1s}"
    )
    after = rules_of(tmp_path, "  - {drop: true}\n  - {api: Produce, error: 6}\n  - {api: Fetch, delay: 1s}")
    assert [rule.name for rule in before] == ["Produce-error-1", "Produce-error-2", "Fetch-delay-1"]
    assert [rule.name for rule in after] == ["any-drop-1", "Produce-error-1", "Fetch-delay-1"]


def test_a_made_name_is_none_that_was_given(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, "  - {drop: true}\n  - {name: any-drop-1, delay: 1s}")
    assert [rule.name for rule in rules] == ["any-drop-2", "any-drop-1"]


def test_a_rule_that_did_not_change_goes_on_counting_after_a_reload(tmp_path: Path) -> None:
    engine = Engine(seed=1)
    engine.load(rules_of(tmp_path, "  - {api: Produce, where: size > 3, error: 6}\n  - {delay: 1s}"), now=1)
    engine.counted_rules[0].hits = 7
    engine.counted_rules[1].hits = 5
    moved = "  - {name: new, drop: true}\n\n  - {api: Produce, where: size > 3, error: 6}\n  - {delay: 2s}"
    engine.load(rules_of(tmp_path, moved), now=2)
    assert [counted.hits for counted in engine.counted_rules] == [0, 7, 0]


def test_the_seed_stands_beside_the_rules(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("seed: 1234\nrules: [{drop: true}]")
    assert load(str(tmp_path / "rules.yaml")).seed == 1234


@pytest.mark.parametrize("kind", ACTIONS.values(), ids=ACTIONS)
def test_every_action_can_be_written(tmp_path: Path, kind: Any) -> None:
    from tools.rules_doc import example

    (rule,) = rules_of(tmp_path, f"  - {{{example(kind)}}}")
    assert isinstance(rule.do[0], kind)
    hash(rule)


def test_an_action_for_connections_alone_makes_the_rule_one_for_connections(tmp_path: Path) -> None:
    rule = rule_of(tmp_path, "{broker: 1, refuse: true}")
    assert (rule.event, rule.name) == ("connect", "connect-refuse-1")


def test_the_keys_of_set_are_paths(tmp_path: Path) -> None:
    (action,) = rule_of(tmp_path, "{api: Produce, set: {acks: 1, timeout_ms: =timeout_ms * 2}}").do
    assert action.fields == {"acks": "1", "timeout_ms": "=timeout_ms * 2"}  # type: ignore[attr-defined]


def test_rules_are_explained_in_words(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(
        """rules:
  - {api: Produce, topic: [orders-*, "!orders-dlq"], error: NOT_LEADER_OR_FOLLOWER, times: 3, per: client}
  - {event: connect, broker: 1, down: true, from: 1m, for: 1500ms}
  - {client: legacy, delay: 1s, chance: 0.5, until: 2030-01-01T00:00:00Z, once_hit: b}
  - {name: b, block: true, enabled: false}
"""
    )
    lines = list(explain(load(str(tmp_path / "rules.yaml"))))
    assert [line.strip() for line in lines if line.startswith("  for")] == [
        "for   requests of Produce (versions 0-13), about the topic orders-* but not orders-dlq",
        "for   connections as they open, to the broker 1",
        "for   requests of every API and version, from the client legacy",
        "for   requests of every API and version",
    ]
    assert [line.strip() for line in lines if line.startswith("  when")] == [
        "when  at most 3 times, counted for each client id",
        "when  from 1m after the rule was loaded, for 1500ms from then on",
        "when  0.5 of the matches by chance, until 2030-01-01T00:00:00Z, once b has acted",
        "when  never: it is not enabled",
    ]
    assert lines[0] == f"Produce-error-1 ({tmp_path}/rules.yaml:2:5)"
    assert "does  error (code=NOT_LEADER_OR_FOLLOWER): Answer with an error" in lines[3]


def test_every_field_of_a_rule_comes_from_its_file() -> None:
    assert {f.name for f in fields(Rule)} - {"origin"} == {
        "name", "do", "event", "keys", "versions", "side", "topic", "partition", "group", "client",
        "principal", "broker", "cluster", "where", "when", "dry", "enabled",
    }  # fmt: skip
