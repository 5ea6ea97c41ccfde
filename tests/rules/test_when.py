"""The keys of a rule that say for what and when it acts, in the words of a rule file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from klamm.rules.file.rule_file import load
from tests.proxy.ruling.ruled import Talk, engine_of, ruled
from tests.proxy.traffic import Exchanged, exchange

S = 10**9
A, B = "a", "b"


def beat(number: int, client_id: str) -> Exchanged:
    return exchange("Heartbeat", 4, {"group_id": "g"}, {"error_code": 0}, number, client_id)


def produced(number: int, topic: str, partition: int) -> Exchanged:
    rows = [{"name": topic, "partition_data": [{"index": partition, "records": b""}]}]
    return exchange("Produce", 9, {"acks": 0, "topic_data": rows}, None, number)


def hits(folder: Path, rules: str, frames: Sequence[tuple[float, Exchanged]]) -> list[int]:
    """Which of the frames the rule r acts on; they come at these seconds after the start."""
    (folder / "rules.yaml").write_text(f"rules:\n{rules}\n")
    found = load(str(folder / "rules.yaml"))
    assert found.mistakes == []
    at = ruled()
    engine = engine_of(at)
    engine.load(found.rules, 0)
    talk, acted = Talk(at), []
    for number, (second, frame) in enumerate(frames):
        before = engine.by_name["r"].hits
        talk.client(frame, now=int(second * S))
        acted += [number] * (engine.by_name["r"].hits - before)
    return acted


@pytest.mark.parametrize(
    ("keys", "times", "acted"),
    [
        ("from: 30s", (0, 29, 30, 31), [2, 3]),
        ("until: 30s", (0, 29, 31), [0, 1]),
        ("for: 1m", (0, 59, 61), [0, 1]),
        ("from: 10s, for: 10s", (5, 15, 25), [1]),
        ("since: first match, for: 10s", (100, 105, 111), [0, 1]),
        ("since: start, for: 10s", (100, 105, 111), []),
        ("times: 2", (0, 1, 2, 3), [0, 1]),
        ("every: 3", (0, 1, 2, 3, 4, 5), [2, 5]),
        ("nth: [1, 4]", (0, 1, 2, 3, 4), [0, 3]),
        ("enabled: false", (0,), []),
        ("dry: true", (0,), [0]),
    ],
)
def test_a_rule_acts_when_its_keys_say(
    keys: str, times: tuple[float, ...], acted: list[int], tmp_path: Path
) -> None:
    frames = [(second, beat(number, A)) for number, second in enumerate(times)]
    assert hits(tmp_path, f"  - {{name: r, count: true, {keys}}}", frames) == acted


@pytest.mark.parametrize(
    ("keys", "acted"),
    [
        ("times: 1", [0]),
        ("times: 1, per: client", [0, 1]),
        ("times: 1, per: group", [0]),
        ("times: 1, per: connection", [0]),
        ("once_hit: other", [1, 2, 3]),
        ("until_hit: other", [0]),
        ("client: a*", [0, 2]),
        ("client: '!a'", [1, 3]),
        ("client: ['*', '!a']", [1, 3]),
        ("client: 10.0.0.7", [0, 1, 2, 3]),
        ("client: ['*', '!10.0.0.7']", []),
        ("group: g", [0, 1, 2, 3]),
        ("group: other", []),
        ("versions: 4+", [0, 1, 2, 3]),
        ("versions: 0-3", []),
        ("broker: 1", [0, 1, 2, 3]),
        ("broker: 2", []),
        ("where: size > 100000", []),
    ],
)
def test_a_rule_acts_for_whom_its_keys_say(keys: str, acted: list[int], tmp_path: Path) -> None:
    other = "  - {name: other, api: Heartbeat, client: b, count: true}"
    rules = f"{other}\n  - {{name: r, api: Heartbeat, count: true, {keys}}}"
    frames = [(number, beat(number, client_id)) for number, client_id in enumerate((A, B, A, B))]
    assert hits(tmp_path, rules, frames) == acted


@pytest.mark.parametrize(
    ("keys", "acted"),
    [
        ("topic: orders-*", [0, 1]),
        ("topic: ['orders-*', '!orders-dlq']", [0]),
        ("partition: 3", [1]),
        ("partition: 0, 3", [0, 1, 2]),
        ("topic: orders-*, partition: 3", [1]),
        ("topic: orders-*, times: 1, per: topic", [0, 1]),
    ],
)
def test_a_rule_acts_on_the_parts_that_its_keys_say(keys: str, acted: list[int], tmp_path: Path) -> None:
    frames = [("orders-eu", 0), ("orders-dlq", 3), ("clicks", 0)]
    sent = [(number, produced(number, *frame)) for number, frame in enumerate(frames)]
    keys = keys.replace("partition: 0, 3", "partition: [0, 3]")
    assert hits(tmp_path, f"  - {{name: r, api: Produce, count: true, {keys}}}", sent) == acted


@pytest.mark.parametrize("text", ["*-orders", "!orders", "[ab]-orders"])
def test_text_that_yaml_reads_otherwise_needs_quotes(text: str, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    for written, fine in ((text, False), (f"'{text}'", True)):
        file.write_text(f"rules:\n  - topic: {written}\n    api: Produce\n    count: true\n")
        assert (load(str(file)).mistakes == []) is fine, written
