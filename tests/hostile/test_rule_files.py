"""Rule files that cost much to read or to ask: aliases, many rules, many mistakes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from klamm.decoders import API, encode
from klamm.rules import index
from klamm.rules.actions import ACTIONS
from klamm.rules.engine import Engine, Gate
from klamm.rules.file.rule_file import load, read_rule, read_text
from klamm.rules.frame import Frame
from klamm.rules.glob import Glob
from klamm.settings import yaml_nodes
from klamm.settings.typed_yaml import MOST_MISTAKES

PRODUCE = API["Produce"]


def calls(work: Callable[[], object]) -> int:
    """How many functions are called, in Python and in C."""
    counted = 0

    def count(frame: Any, event: str, _: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted


def laughs(levels: int) -> str:
    """Each level lists the one before it ten times."""
    lines = ["rules:", "  - count: true", "    topic: &a0 [orders]"]
    lines += [f"    x{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join([*lines, ""])


def many(count: int, selector: str = "topic: orders-{}", **more: str) -> str:
    written = ", ".join([selector, *(f"{key}: {value}" for key, value in more.items())])
    rules = (
        f"  - {{api: Produce, {written.format(n)}, error: NOT_LEADER_OR_FOLLOWER}}" for n in range(count)
    )
    return "\n".join(["rules:", *rules, ""])


def test_aliases_that_stand_for_too_much_are_refused_at_once_with_their_place() -> None:
    text = laughs(9)
    found: list[Any] = []
    assert calls(lambda: found.append(read_text(text, "rules.yaml"))) < 200_000
    (mistake,) = found[0].mistakes
    line = text.splitlines()[mistake.place.line - 1]
    assert line[mistake.place.column - 1 :].startswith("*a")
    assert str(mistake).startswith(
        f"rules.yaml:{mistake.place.line}:{mistake.place.column}: up to the alias *a"
    )
    assert mistake.reason.endswith("more than 100000 are not read; write out what is meant")


def test_a_megabyte_of_aliases_is_refused_before_it_is_read_as_rules() -> None:
    topics = ", ".join(f"orders-{n}" for n in range(5000))
    text = f"rules:\n  - {{count: true, topic: &t [{topics}]}}\n" + "  - {count: true, topic: *t}\n" * 35_000
    assert len(text) > 1_000_000
    assert [mistake.place.line for mistake in read_text(text, "rules.yaml").mistakes] == [22]


def test_an_alias_within_what_it_names_is_refused() -> None:
    (mistake,) = read_text("rules: &all\n  - *all\n", "rules.yaml").mistakes
    assert str(mistake) == "rules.yaml:2:5: the alias *all stands within what it names"


def test_aliases_of_a_usual_size_are_read() -> None:
    text = "rules:\n  - {count: true, topic: &t [a, b]}\n" + "  - {count: true, topic: *t}\n" * 500
    found = read_text(text, "rules.yaml")
    assert not found.mistakes
    assert {rule.topic for rule in found.rules} == {Glob("a", "b")}


def test_a_merge_key_says_what_to_write_instead() -> None:
    text = "rules:\n  - &r {api: Produce, count: true}\n  - {<<: *r, times: 3}\n"
    reasons = [(str(each.place), each.reason) for each in read_text(text, "r").mistakes]
    assert ("r:3:6", "mappings are not merged with <<: write the keys out") in reasons


@pytest.mark.parametrize("deep", ["[", "{a: "])
def test_text_that_is_nested_too_deeply_is_a_mistake(deep: str) -> None:
    (mistake,) = read_text("rules: " + deep * 300_000, "r").mistakes
    assert mistake.reason == "nested too deeply"


def test_json_that_is_nested_too_deeply_is_a_mistake() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    (mistake,) = read_rule({"topic": deep, "count": True}, "r", ACTIONS, ()).mistakes
    assert mistake.reason == "nested too deeply"


@pytest.mark.parametrize(
    "text",
    [
        many(2),
        many(2, "client: app-{}"),
        laughs(3),
        "rules:\n  - {name: 'a', drop: , api: ~}\n",
        "# none\n",
        "",
    ],
)
def test_libyaml_and_python_read_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Places too, but that of an empty value, which is a column away."""
    read = [_flat(yaml_nodes.compose(text))]
    monkeypatch.setattr(yaml_nodes, "SHORT", -1)
    read.append(_flat(yaml_nodes.compose(text)))
    assert yaml.__with_libyaml__
    assert read[0] == read[1]


def _flat(node: yaml.Node | None) -> Any:
    if node is None:
        return None
    place = node.start_mark.line, node.start_mark.column
    if isinstance(node, yaml.ScalarNode):
        return node.value, node.style, place if node.value else None
    children = yaml_nodes._children(node)
    return type(node).__name__, place, [_flat(each) for each in children]


@pytest.mark.parametrize(
    "written",
    [
        {"selector": "topic: orders-{}"},
        {"selector": "client: app-{}"},
        {"selector": "name: rule-{}"},
        {"selector": "topic: orders-{}", "once_hit": "nowhere"},
        {"selector": "topci: orders-{}"},
    ],
)
def test_twice_as_many_rules_take_no_more_than_some_two_times_the_work(written: dict[str, str]) -> None:
    read_text(many(10), "r")  # what is made once
    texts = [many(n, **written) for n in (400, 800)]
    few, twice = (calls(partial(read_text, text, "r")) for text in texts)
    assert twice < 2.5 * few


def test_a_file_of_mistakes_is_read_up_to_the_thousandth() -> None:
    found = read_text(many(3000, "topci: orders-{}"), "r")
    assert len(found.mistakes) == MOST_MISTAKES + 1
    assert found.mistakes[-1].reason == "there are 1000 mistakes up to here: what follows was not read"


def test_ten_thousand_rules_are_read(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(many(10_000))
    found = load(str(file))
    assert (len(found.rules), len({rule.name for rule in found.rules}), found.mistakes) == (
        10_000,
        10_000,
        [],
    )


def unknown(topic_id: bytes) -> str | None:
    return None


def request(topic: str, version: int = 8) -> Frame:
    values = {
        "acks": -1,
        "timeout_ms": 1,
        "topic_data": [{"name": topic, "partition_data": [{"index": 0, "records": b""}]}],
    }
    body = encode(values, PRODUCE.key, version, "request")
    engine = Engine(1)
    return Frame(PRODUCE, version, "request", body, "app-3", engine.peer("kafka", "1", "127.0.0.1:1"), 0)


@pytest.mark.parametrize("selector", ["topic: orders-{}", "client: app-{}", "topic: orders-{}, for: 1h"])
def test_a_request_costs_the_same_among_few_rules_and_among_many(selector: str) -> None:
    def cost(count: int) -> int:
        engine = Engine(1)
        engine.load(read_text(many(count, selector), "r").rules, 0)
        frame = request("orders-7")
        gate = Gate(engine, frame.peer, unknown)
        found = engine.concerned(PRODUCE, 8, "request", frame.peer, "app-3")
        gate.orders(frame, gate.look(found, "app-3", 1), 1)  # makes what is made once
        asked: list[Any] = []
        counted = calls(lambda: asked.extend(gate.orders(frame, gate.look(found, "app-3", 1), 1)))
        assert len(asked) == 1
        assert calls(lambda: engine.concerned(PRODUCE, 8, "request", frame.peer, "app-3")) < 20
        return counted

    assert cost(1000) <= cost(100) + 5


RULE = st.fixed_dictionaries(
    {"api": st.just("Produce"), "versions": st.just("0-12")},
    optional={
        "topic": st.sampled_from(["a", "b", "a,b", "a*", "!a", "c"]),
        "client": st.sampled_from(["app-3", "app-4", "app-*", "127.0.0.1", "!app-3"]),
        "times": st.sampled_from(["1", "3"]),
        "for": st.sampled_from(["1ms", "1h"]),
        "chance": st.sampled_from(["0.5"]),
        "once_hit": st.just("first"),
        "partition": st.sampled_from(["0", "1"]),
    },
)
ACTS = (
    "count: true",
    "error: NOT_LEADER_OR_FOLLOWER",
    "delay: 1ms",
    "set: {topic_data.name: b}",
    "drop: true",
)


@given(st.lists(st.tuples(RULE, st.sampled_from(ACTS)), min_size=1, max_size=12))
def test_rules_that_are_looked_up_decide_as_those_that_are_asked_one_by_one(rules: list[Any]) -> None:
    first = "  - {name: first, api: Produce, topic: b, count: true}"
    lines = [
        "  - {" + ", ".join([*(f"{key}: {_quoted(value)}" for key, value in rule.items()), act]) + "}"
        for rule, act in rules
    ]
    read = read_text("\n".join(["rules:", first, *lines, ""]), "r")
    assume(not read.mistakes)
    said = []
    for few in (0, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(index, "FEW", few)
            said.append(_decided(read.rules))
    assert said[0] == said[1]


def _decided(rules: Any) -> Any:
    engine = Engine(3)
    engine.load(rules, 0)
    said: list[Any] = []
    gate = Gate(engine, request("a").peer, unknown)
    for number, topic in enumerate("abcaab"):
        frame = request(topic)
        found = engine.concerned(PRODUCE, 8, "request", frame.peer, "app-3")
        orders = gate.orders(frame, gate.look(found, "app-3", number * 600_000), number * 600_000)
        said.append(([type(order).__name__ for order in orders], frame.body))
    return said, [(counted.matches, counted.hits, counted.failures) for counted in engine.counted_rules]


def _quoted(value: str) -> str:
    return f"'{value}'"
