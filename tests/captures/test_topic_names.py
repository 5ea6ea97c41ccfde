"""The names of topic ids in a capture."""

from __future__ import annotations

from pathlib import Path

import pytest

from klamm.captures.frames import Framing
from klamm.captures.storage.reading import read
from klamm.captures.topic_names import TopicNames, topic_names
from tests.captures.rows import TOPIC_ID, Talk, written

OTHER = bytes(range(16, 32))


def named(talk: Talk, topic_id: bytes, name: str) -> Talk:
    topics = [{"name": name, "topic_id": topic_id, "error_code": 0, "partitions": []}]
    return talk.exchange("Metadata", 12, {"topics": None}, {"brokers": [], "topics": topics})


def test_names_come_from_the_answers_that_have_both(tmp_path: Path) -> None:
    talk = Talk().opened().fetch().metadata().produce()
    named(talk, OTHER, "late")
    path = written(tmp_path / "a.arrow", talk.rows)
    assert topic_names(read([path])) == {TOPIC_ID: "orders", OTHER: "late"}


def test_answers_that_repeat_others_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learnt = []
    monkeypatch.setattr(Framing, "learn", lambda self, frame: learnt.append(frame))
    talk = Talk().opened()
    for _ in range(50):
        talk.metadata().heartbeat()
    named(talk, OTHER, "late")
    topic_names(read([written(tmp_path / "a.arrow", talk.rows)]))
    assert len(learnt) == 2


def test_a_capture_that_has_grown_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "a.arrow", Talk().opened().metadata().rows)
    names = TopicNames([str(tmp_path)])
    assert names.now() == {TOPIC_ID: "orders"}
    written(tmp_path / "b.arrow", named(Talk().opened(), OTHER, "late").rows)
    assert names.now() == {TOPIC_ID: "orders", OTHER: "late"}
    monkeypatch.setattr("klamm.captures.topic_names.topic_names", lambda _: {})
    assert names.now()  # nothing has changed: nothing is read
