"""Rules go to other processes as pickles: they are the same there."""

import pickle
from pathlib import Path

import pytest

from klamm.rules.expressions import parse
from klamm.rules.file.rule_file import load, read_text

RULES = """\
rules:
  - name: glob
    api: Produce
    topic: ['orders-*', plain, '!orders-x']
    client: 'a*'
    error: NOT_LEADER_OR_FOLLOWER
    times: 3
  - {name: where, api: Fetch, where: 'matches(client_id, "a.*b") and topic == "x"', delay: 10ms, chance: 50%}
  - {name: rate, api: Produce, rate: {bytes: 10kB, per: topic}}
  - {name: edit, api: Metadata, versions: 3+, side: response, set: {throttle_time_ms: 5}}
  - {name: later, event: connect, broker: 2, refuse: true, from: 5s, for: 10s, since: first match}
  - {name: once, api: Heartbeat, drop: true, once_hit: glob, log: true}
"""


def test_a_rule_is_the_same_after_it_was_pickled() -> None:
    found = read_text(RULES, "rules")
    assert [str(mistake) for mistake in found.mistakes] == []
    for rule in found.rules:
        assert pickle.loads(pickle.dumps(rule)) == rule


def test_an_action_of_a_plugin_needs_its_file_to_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "class Slow:\n    name = 'slow'\n    def act(self, frame, draw):\n        return ()\n"
    )
    (tmp_path / "rules.yaml").write_text("plugins: [own.py]\nrules:\n  - {api: Produce, slow: {}}\n")
    found = load(str(tmp_path / "rules.yaml"))
    assert found.mistakes == []
    data = pickle.dumps(found.rules)
    assert pickle.loads(data) == found.rules


@pytest.mark.parametrize(
    "text", ['topic == "x"', 'matches(record.key, "k.*")', "latency_ms > 5", "not error"]
)
def test_an_expression_is_read_again(text: str) -> None:
    where = parse(text)
    assert pickle.loads(pickle.dumps(where)) == where
