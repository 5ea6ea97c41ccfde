"""The messages about mistakes in rule files, and the warnings."""

from __future__ import annotations

from pathlib import Path

import pytest

from klamm.rules.actions import ACTIONS
from klamm.rules.file.rule_file import RuleFile, load

NOW_NS = 1_800_000_000 * 10**9  # in 2027


def loaded(folder: Path, rules: str) -> RuleFile:
    (folder / "rules.yaml").write_text(f"rules:\n  {rules}\n")
    return load(str(folder / "rules.yaml"), wall_ns=NOW_NS)


def reasons(folder: Path, mistakes: list[object]) -> list[str]:
    return [str(mistake).removeprefix(f"{folder}/rules.yaml:") for mistake in mistakes]


MISTAKES = {
    "an unknown API": (
        "- {api: Prodcue, error: 6}",
        "2:11: rules[0].api: unknown API 'Prodcue'; did you mean Produce?",
    ),
    "the key of an API": (
        "- {api: 20, block: true}",
        "2:11: rules[0].api: unknown API '20': rules have names of APIs, and 20 is the key of DeleteTopics",
    ),
    "a number that is no key of an API": (
        "- {api: 99999, block: true}",
        "2:11: rules[0].api: unknown API '99999'",
    ),
    "all APIs but one": (
        "- {api: '!Fetch', block: true}",
        "2:12: rules[0].api: unknown API '!Fetch': to take an API out write where: 'api not in [Fetch]'",
    ),
    "a toxic": (
        "- {latency: 1s}",
        "2:6: rules[0].latency: unknown key; Toxiproxy's latency is delay",
    ),
    "a toxic that is like another key": (
        "- {timeout: 5s}",
        "2:6: rules[0].timeout: unknown key; Toxiproxy's timeout is blackhole: 5s; that of a pause is "
        "written pause: {timeout: 5s}",
    ),
    "the type of a toxic": (
        "- {type: latency}",
        "2:6: rules[0].type: unknown key; a rule has its action as a key, such as delay: 1s",
    ),
    "an API glob that fits none": (
        "- {api: Foo*, error: 6}",
        "2:11: rules[0].api: no API is called like 'Foo*'",
    ),
    "an unknown error": (
        "- {api: Produce, error: NOT_LEADER}",
        "2:27: rules[0].error: unknown error 'NOT_LEADER'; did you mean NOT_LEADER_OR_FOLLOWER?",
    ),
    "the beginning of an error's name, misspelled": (
        "- {api: Produce, error: NOT_LEADR}",
        "2:27: rules[0].error: unknown error 'NOT_LEADR'; did you mean NOT_LEADER_OR_FOLLOWER?",
    ),
    "an older name of an error, misspelled": (
        "- {api: Produce, error: NOT_LEADER_FOR_PARTITON}",
        "2:27: rules[0].error: unknown error 'NOT_LEADER_FOR_PARTITON'; did you mean "
        "NOT_LEADER_FOR_PARTITION?",
    ),
    "an unknown error code": (
        "- {api: Produce, error: 999}",
        "2:27: rules[0].error: no error of Kafka has the code 999",
    ),
    "an unknown action": (
        "- {api: Produce, eror: 6}",
        "2:20: rules[0].eror: unknown key; did you mean error?",
    ),
    "an unknown selector": (
        "- {api: Produce, topics: orders, drop: true}",
        "2:20: rules[0].topics: unknown key; did you mean topic?",
    ),
    "an unknown parameter": (
        "- {delay: {time: 1s, jiter: 5ms}}",
        "2:24: rules[0].delay.jiter: unknown key; did you mean jitter?",
    ),
    "a parameter outside its action": (
        "- {delay: 1s, jitter: 5ms}",
        "2:17: rules[0].jitter: unknown key here; it belongs under delay",
    ),
    "a missing parameter": (
        "- {delay: {jitter: 5ms}}",
        "2:13: rules[0].delay: needs the key time, a duration such as 500ms",
    ),
    "two parameters in short": (
        "- {clamp: Fetch}",
        "2:13: rules[0].clamp: needs api and versions: write {api: ..., versions: ...}",
    ),
    "an action with a wrong value": (
        "- {drop: maybe}",
        "2:12: rules[0].drop: write true, or leave it out, not 'maybe'",
    ),
    "an empty action": (
        "- {drop: }",
        "2:11: rules[0].drop: is empty: write {} for its defaults, or leave it out",
    ),
    "a list for an action": (
        "- {delay: [1s]}",
        "2:13: rules[0].delay: must be a duration such as 500ms, or a mapping with time, jitter, "
        "distribution, of, not a list",
    ),
    "no action": (
        "- {api: Produce}",
        "2:5: rules[0]: does nothing: give it an action, such as error: NOT_LEADER_OR_FOLLOWER, or "
        "count: true",
    ),
    "an action beside do": (
        "- {delay: 1s, do: [{drop: true}]}",
        "2:13: rules[0].delay: stands beside do: move it into do, as `- delay: ...`",
    ),
    "two actions in one entry of do": (
        "- do: [{delay: 1s, drop: true}]",
        "2:10: rules[0].do[0]: delay and drop in one entry: start each action with '- '",
    ),
    "do as a mapping": (
        "- do: {drop: true}",
        "2:9: rules[0].do: must be a list: start each entry with '- '",
    ),
    "an empty topic": (
        "- {topic: '', drop: true}",
        "2:13: rules[0].topic: is empty: name one or more",
    ),
    "versions that the API does not have": (
        "- {api: Heartbeat, versions: 9+, error: 27}",
        "2:32: rules[0].versions: Heartbeat has the versions 0-4, not 9+",
    ),
    "versions that end too late": (
        "- {api: Heartbeat, versions: 0-9, error: 27}",
        "2:32: rules[0].versions: Heartbeat ends with version 4: write 0+",
    ),
    "versions the wrong way round": (
        "- {versions: 8-3, drop: true}",
        "2:16: rules[0].versions: 8-3 is empty: its last version comes before its first",
    ),
    "versions that are none": (
        "- {versions: v3, drop: true}",
        "2:16: rules[0].versions: 'v3' is not a range of versions: write it as 3+, 0-8 or 4",
    ),
    "a duration without a unit": (
        "- {delay: 500}",
        "2:13: rules[0].delay: 500 of what? write 500ms or 500s",
    ),
    "a duration with an unknown unit": (
        "- {delay: 5 sec}",
        "2:13: rules[0].delay: unknown unit 'sec'; known are us, ms, s, m, h, d",
    ),
    "a chance above 1": (
        "- {chance: 20, drop: true}",
        "2:14: rules[0].chance: chance must be 0% to 100%: for 20 percent write 20%",
    ),
    "a chance above 100%": (
        "- {chance: 200%, drop: true}",
        "2:14: rules[0].chance: chance must be 0% to 100%",
    ),
    "a share of an action above 100%": (
        "- {packet_loss: {loss: 120%}}",
        "2:26: rules[0].packet_loss.loss: loss must be 0% to 100%",
    ),
    "chance 0": (
        "- {chance: 0, drop: true}",
        "2:14: rules[0].chance: chance 0 never hits; to leave the rule out write enabled: false",
    ),
    "times 0": (
        "- {times: 0, drop: true}",
        "2:13: rules[0].times: times 0 never hits; to leave the rule out write enabled: false",
    ),
    "times that is no number": (
        "- {times: three, drop: true}",
        "2:13: rules[0].times: 'three' is not a whole number from 0 on",
    ),
    "match 0": (
        "- {nth: [0, 3], drop: true}",
        "2:12: rules[0].nth[0]: '0' is not a whole number from 1 on",
    ),
    "nth and every that never meet": (
        "- {nth: [3, 5], every: 2, drop: true}",
        "2:11: rules[0].nth: none of the matches 3, 5 is one that every: 2 takes: drop one of the keys",
    ),
    "a time without a zone": (
        "- {until: 2026-01-01T10:00:00, drop: true}",
        "2:13: rules[0].until: 2026-01-01T10:00:00 has no zone: write 2026-01-01T10:00:00Z for "
        "UTC, or +01:00 after it",
    ),
    "until before from": (
        "- {from: 1m, until: 30s, drop: true}",
        "2:23: rules[0].until: is not after from: the rule never acts",
    ),
    "for and until": (
        "- {until: 1m, for: 30s, drop: true}",
        "2:22: rules[0].for: for and until both say when the rule ends: keep one",
    ),
    "an unknown rule": (
        "- {name: cut, drop: true}\n  - {once_hit: cutt, drop: true}",
        "3:16: rules[1].once_hit: no rule is named 'cutt'; did you mean cut?",
    ),
    "a rule that waits for itself": (
        "- {name: cut, once_hit: cut, drop: true}",
        "2:27: rules[0].once_hit: the rule waits for a hit of its own, which never comes",
    ),
    "a name twice": (
        "- {name: cut, drop: true}\n  - {name: cut, delay: 1s}",
        "3:12: rules[1].name: rules[0] has the name 'cut' already",
    ),
    "a topic where there is none": (
        "- {api: Heartbeat, topic: orders, drop: true}",
        "2:29: rules[0].topic: Heartbeat names no topics",
    ),
    "a topic that cannot be": (
        "- {topic: 'my topic', drop: true}",
        "2:14: rules[0].topic: no topic has ' ' in its name: it takes letters, digits, '.', '_' and '-'",
    ),
    "a partition that is no number": (
        "- {partition: first, drop: true}",
        "2:17: rules[0].partition: 'first' is not a whole number from 0 on",
    ),
    "a broker that is none": (
        "- {broker: kafka-1, drop: true}",
        "2:14: rules[0].broker: 'kafka-1' is not a broker: write its node id, bootstrap, or controller 1",
    ),
    "a side that is none": (
        "- {side: answer, drop: true}",
        "2:12: rules[0].side: must be request or response, not 'answer'",
    ),
    "a side that the action cannot use": (
        "- {api: Produce, side: response, block: true}",
        "2:43: rules[0].block: block works on requests, not on responses: leave side out, or write "
        "side: request",
    ),
    "an action that is not for connections": (
        "- {event: connect, delay: 1s}",
        "2:29: rules[0].delay: delay works on requests and responses, not on connections that open",
    ),
    "a topic of a connection": (
        "- {event: connect, topic: orders, down: true}",
        "2:29: rules[0].topic: connections that open have none: leave it out",
    ),
    "a set field that is none": (
        "- {api: Produce, set: {akcs: 1}}",
        "2:25: rules[0].set: Produce v13 has no field akcs; did you mean acks?",
    ),
    "a value that does not fit": (
        "- {api: Produce, set: {acks: many}}",
        "2:25: rules[0].set: acks: 'many' is not a whole number",
    ),
    "an action of another API": (
        "- {api: Fetch, hide: {api: Produce}}",
        "2:24: rules[0].hide: hide works on ApiVersions, not on Fetch: leave api out",
    ),
    "an error where the answer has none": (
        "- {api: Fetch, error: {code: 6, at: topics.error_code}}",
        "2:39: rules[0].error.at: Fetch's answer has no error at topics.error_code; did you mean error_code?",
    ),
    "an error where some versions have none": (
        "- {api: Fetch, error: {code: 6, at: error_code}}",
        "2:39: rules[0].error.at: Fetch's answer has no error at error_code; known are "
        "responses.partitions.error_code (in versions 0-6): add versions: 7+",
    ),
    "an unknown field": (
        "- {api: Produce, where: ack == 1, drop: true}",
        '2:27: rules[0].where: unknown field "ack"; did you mean acks?',
    ),
    "a field of another kind": (
        "- {api: Produce, where: acks == 'all', drop: true}",
        "2:27: rules[0].where: acks is a number, 'all' is text: they cannot be compared",
    ),
    "an expression that ends too early": (
        "- {api: Produce, where: acks ==, drop: true}",
        "2:33: rules[0].where: not an expression: it ends too early",
    ),
    "an assignment for a comparison": (
        "- {api: Produce, where: acks = 1, drop: true}",
        "2:32: rules[0].where: = is not known here: write ==",
    ),
    "a condition on nothing": (
        "- {where: 1 == 2, drop: true}",
        "2:13: rules[0].where: names nothing of the frame: it says the same of every one",
    ),
    "a star without quotes": (
        "- {topic: *-dlq, drop: true}",
        "2:13: the text starts with *: put quotes around it",
    ),
    "neither true nor false": (
        "- {dry: perhaps, drop: true}",
        "2:11: rules[0].dry: must be true or false, not 'perhaps'; known are true, false",
    ),
    "a glob that has no topics": (
        "- {api: 'Heart*', topic: orders, drop: true}",
        "2:28: rules[0].topic: can hold for no API: Heartbeat names no topics",
    ),
    "until 0": (
        "- {until: 0s, drop: true}",
        "2:13: rules[0].until: until 0 never begins",
    ),
    "a range of one rule": (
        "- {name: a, drop: true}\n  - {once_hit: a, until_hit: a, drop: true}",
        "3:30: rules[1].until_hit: the rule begins and ends with the first hit of a: it never acts",
    ),
    "since what": (
        "- {since: first match, drop: true}",
        "2:13: rules[0].since: nothing is counted from it: add from, until or for as a duration",
    ),
}

DOUBTS = {
    "an error that Kafka does not name": (
        "- {api: Produce, error: NOT_COORDINATOR}",
        "2:27: rules[0].error: Kafka's documents do not name NOT_COORDINATOR for Produce: clients "
        "may not know it",
    ),
    "no error in the place of an answer": (
        "- {api: Produce, error: NONE}",
        "2:27: rules[0].error: NONE is no error: clients take it as success, and what they sent "
        "reaches no broker",
    ),
    "per without a count": (
        "- {per: client, drop: true}",
        "2:11: rules[0].per: nothing is counted per client: add times, every or nth",
    ),
    "a field that some versions lack": (
        "- {api: Produce, where: throttle_time_ms > 0, log: true}",
        "2:27: rules[0].where: Produce has no throttle_time_ms in version 0: unknown there",
    ),
    "a bandwidth of few bytes": (
        "- {api: Fetch, bandwidth: 64}",
        "2:29: rules[0].bandwidth: 64 bytes a second: for kilobytes write 64kB",
    ),
    "a bandwidth of nothing": (
        "- {api: Fetch, bandwidth: 0}",
        "2:29: rules[0].bandwidth: 0 bytes a second are no limit: write a rate such as 64kB",
    ),
    "a time that is past": (
        "- {until: 2026-01-01T10:00:00Z, drop: true}",
        "2:13: rules[0].until: is past: the rule no longer acts",
    ),
}


@pytest.mark.parametrize(("rules", "reason"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_said_with_its_place_and_what_to_do(tmp_path: Path, rules: str, reason: str) -> None:
    found = loaded(tmp_path, rules)
    assert reasons(tmp_path, [*found.mistakes]) == [reason]
    assert found.rules == ()


@pytest.mark.parametrize(("rules", "reason"), DOUBTS.values(), ids=DOUBTS)
def test_a_doubt_is_said_and_the_rules_are_used(tmp_path: Path, rules: str, reason: str) -> None:
    found = loaded(tmp_path, rules)
    assert found.mistakes == []
    assert reasons(tmp_path, [*found.warnings]) == [reason]
    assert len(found.rules) == 1


def test_a_key_that_is_like_no_other_is_answered_with_the_actions(tmp_path: Path) -> None:
    (reason,) = reasons(tmp_path, [*loaded(tmp_path, "- {api: Produce, explode: true}").mistakes])
    assert reason == f"2:20: rules[0].explode: unknown key; the actions are {', '.join(ACTIONS)}"


def test_everything_that_is_wrong_is_said_in_one_reading(tmp_path: Path) -> None:
    rules = "- {api: Prodcue, eror: 6}\n  - {chance: 7, drop: true}\n  - {once_hit: x, drop: true}\n  - {}"
    found = reasons(tmp_path, [*loaded(tmp_path, rules).mistakes])
    assert [reason.partition(" ")[0] for reason in found] == [
        "2:11:", "2:20:", "3:14:", "4:16:", "5:5:",
    ]  # fmt: skip


def test_a_file_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    (mistake,) = load(str(tmp_path / "rules.yaml")).mistakes
    assert "No such file" in mistake.reason


def test_a_file_without_rules_is_doubtful(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("")
    found = load(str(tmp_path / "rules.yaml"))
    assert (found.mistakes, [doubt.reason for doubt in found.warnings]) == ([], ["there are no rules"])


def test_a_list_of_rules_needs_its_key(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("- {drop: true}")
    (mistake,) = load(str(tmp_path / "rules.yaml")).mistakes
    assert mistake.reason == "must be a mapping with rules, seed, plugins, not a list"
