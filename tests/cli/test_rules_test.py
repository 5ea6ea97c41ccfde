"""`klamm rules test`: what is printed, and the exit code."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from klamm.cli import main
from tests.captures.rows import Talk, connection, in_time, written

Says = Callable[..., tuple[int, str, str]]  # exit code, output, errors


@pytest.fixture(autouse=True)
def capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    one = Talk().opened().metadata().produce().fetch().heartbeat().produce(acks=0)
    other = Talk(of=connection(2, client="10.0.0.9:1"), now_ms=500, client_id="other").produce()
    written(tmp_path / "a.arrow", in_time(one, other))
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def says(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Says:
    def run(rule: str, *words: str) -> tuple[int, str, str]:
        (tmp_path / "rules.yaml").write_text(f"rules:\n  - {rule}\n")
        code = main(["rules", "test", "rules.yaml", "a.arrow", *words])
        found = capsys.readouterr()
        return code, found.out, found.err

    return run


def test_a_rule_tells_its_matches_their_clients_and_what_it_would_do(says: Says) -> None:
    code, out, errors = says("{name: r, api: Produce, topic: orders, error: NOT_LEADER_OR_FOLLOWER}")
    assert (code, errors) == (0, "")
    assert out.splitlines() == [
        "r (rules.yaml:2:5)",
        "  matched 3 frames, 2023-11-14 22:13:20.001 to 2023-11-14 22:13:20.500; acted on 3",
        "  of      app at 10.0.0.7 (2), other at 10.0.0.9 (1)",
        "  would   answer in the broker's place with NOT_LEADER_OR_FOLLOWER (2)",
        "  would   withhold the request, and answer nothing (1)",
        "",
    ]


@pytest.mark.parametrize(
    ("rule", "would"),
    [
        ("{api: Fetch, delay: 250ms}", "delay the response by 250.0ms (1)"),
        ("{api: Fetch, drop: true}", "drop the request (1)"),
        ("{api: Fetch, disconnect: true}", "the connection"),
        ("{api: Fetch, duplicate: true}", "send the request twice (1)"),
        ("{api: Fetch, bandwidth: 10kB}", "shape what flows to the client at 10.0kB/s (1)"),
        ("{api: Fetch, log: hello}", "log (1), first hello"),
        (
            '{api: Produce, set: {acks: "1"}, times: 1}',
            "change acks of the request (1), first acks: -1 -> 1",
        ),
        (
            "{api: Heartbeat, side: response, error: 27}",
            "change error_code of the response (1), first error_code: NONE -> REBALANCE_IN_PROGRESS",
        ),
        ("{api: Fetch, drop: true, dry: true}", "do nothing but count: it is dry"),
    ],
)
def test_orders_are_told_in_words(says: Says, rule: str, would: str) -> None:
    out = says(rule)[1]
    assert [line for line in out.splitlines() if line.startswith("  would") and would in line], out


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (
            "{api: CreateTopics, error: 44}",
            "no request of CreateTopics; there were Produce (3), ",
        ),
        ("{api: Produce, versions: 10+, error: 6}", "none of the versions 10+; there were Produce v9 (3)"),
        (
            "{api: Fetch, client: other, error: 6}",
            "none from the client other; there were app at 10.0.0.7",
        ),
        (
            "{api: Fetch, principal: 'User:CN=a', error: 6}",
            "none of the principal User:CN=a; there were no principal (1)",
        ),
        ("{api: Fetch, broker: 7, error: 6}", "none to the broker 7; there were broker 1 (1)"),
        (
            "{api: Produce, topic: payments, error: 6}",
            "3 frames of its APIs, none about the topic payments; there were orders (3)",
        ),
        (
            "{api: Heartbeat, group: x, error: 27}",
            "1 frame of its APIs, none of the group x; there were billing (1)",
        ),
        ("{api: Produce, partition: 9, error: 6}", "3 frames of its APIs, none with these partitions"),
        (
            "{api: Produce, where: acks == 7, error: 6}",
            "3 frames of its APIs, and for none it holds that acks == 7",
        ),
        ("{api: Produce, from: 1h, error: 6}", "3 frames of its APIs, none in its time"),
        ("{api: Produce, error: 6, enabled: false}", "it is not enabled"),
        (
            "{event: connect, client: 1.2.3.4, refuse: true}",
            "no connection of these clients, brokers and clusters",
        ),
    ],
)
def test_a_rule_that_matches_nothing_tells_what_was_there_instead(says: Says, rule: str, reason: str) -> None:
    code, out, _ = says(rule)
    assert code == 0
    assert out.splitlines()[1].startswith(f"  matched nothing: {reason}")


def test_json_is_an_object_for_each_rule(says: Says) -> None:
    found = json.loads(says("{name: r, api: Fetch, drop: true}", "--json")[1])
    assert found == {
        "rule": "r", "matches": 1, "hits": 1, "first": 1700000000.002, "last": 1700000000.002,
        "clients": [{"client_id": "app", "host": "10.0.0.7", "matches": 1}],
        "orders": ["drop the request (1)"],
    }  # fmt: skip
    other = json.loads(says("{name: r, api: CreateTopics, drop: true}", "--json")[1])
    assert (other["matches"], other["instead"][:26]) == (0, "no request of CreateTopics")


def test_the_seed_decides_chances(says: Says) -> None:
    counts = {
        json.loads(says("{api: Produce, drop: true, chance: 50%}", "--json", "--seed", str(seed))[1])["hits"]
        for seed in range(8)
    }
    assert len(counts) > 1


def test_mistakes_in_rules_are_said_as_by_check(says: Says) -> None:
    code, out, _ = says("{api: Prodcue, error: 6}")
    assert (code, out) == (1, "rules.yaml:2:11: rules[0].api: unknown API 'Prodcue'; did you mean Produce?\n")


def test_damage_of_a_capture_is_said_and_the_rest_is_tried(says: Says, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no capture")
    code, out, errors = says("{api: Fetch, drop: true}", "notes.txt")
    assert code == 1
    assert "matched 1 frame" in out
    assert "notes.txt" in errors
    assert says("{api: Fetch, drop: true}", "nothing")[0] == 2
