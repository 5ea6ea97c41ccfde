"""Labels of clients, topics and principals that nobody uses give their places to others."""

from __future__ import annotations

import asyncio

from klamm.proxy.metrics.expiry import CROWDED_S, Expiry
from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.observing.counters import OTHER, Stats
from klamm.proxy.session.session import Session
from tests.proxy.traffic import ADVERTISE, exchange, ground

HOUR_S = 3600.0


class Scene:
    """A cluster with room for two clients and two topics, and a clock that is set by hand."""

    def __init__(self) -> None:
        self.at: ClusterContext = ground()
        self.stats = self.at.stats = Stats(max_clients=2, max_topics=2)
        self.now_s = 0.0
        self.expiry = Expiry(self.stats, HOUR_S, self.at.changed, lambda: self.now_s)

    def client(self, client_id: str) -> Session:
        session = Session(self.at, "1", ADVERTISE)
        self.asks(session, client_id)
        return session

    def asks(self, session: Session, client_id: str, topic: str = "orders") -> None:
        asked = exchange("Metadata", 8, {"topics": [{"name": topic}]}, None, client_id=client_id)
        assert session.from_client(asked.request, 0) is asked.request

    def after(self, seconds: float) -> None:
        self.now_s += seconds
        asyncio.run(self.expiry.sweep())

    def requests(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for each in self.stats.requests.values():
            found[each.client_id] = found.get(each.client_id, 0) + each.requests
        return found


def test_made_up_client_ids_take_no_place_for_long() -> None:
    scene = Scene()
    scene.client("made-up-1")
    scene.client("made-up-2")
    late = scene.client("orders-service")
    assert scene.requests() == {"made-up-1": 1, "made-up-2": 1, OTHER: 1}
    scene.after(0)
    scene.after(0)
    scene.after(CROWDED_S - 1)
    assert "made-up-1" in scene.requests()
    scene.after(1)
    scene.asks(late, "orders-service")  # the connection was counted as `other` before
    assert scene.requests() == {OTHER: 1, "orders-service": 1}


def test_where_there_are_places_labels_stay_for_the_set_time() -> None:
    scene = Scene()
    scene.client("nightly")
    scene.after(0)
    scene.after(0)
    scene.after(HOUR_S - 1)
    assert scene.requests() == {"nightly": 1}
    assert {topic for _, topic in scene.stats.topic_names} == {"orders"}
    scene.after(1)
    assert scene.requests() == {}
    assert scene.stats.topics == {}
    assert scene.stats.topic_names == set()


def test_clients_that_go_on_keep_their_labels() -> None:
    scene = Scene()
    active, other = scene.client("active"), scene.client("idle")
    scene.client("a third")
    for _ in range(5):
        scene.after(CROWDED_S)
        scene.asks(active, "active")
    assert scene.requests()["active"] == 6
    assert "idle" not in scene.requests()
    scene.asks(other, "idle")  # its connection was open all the time
    scene.asks(other, "idle")
    assert scene.requests()["idle"] == 2


def test_a_principal_keeps_its_label_while_it_has_a_connection() -> None:
    scene = Scene()
    scene.stats.principal("test", "User:CN=there", 1)
    scene.stats.principal("test", "User:CN=gone", 1)
    scene.stats.principal("test", "User:CN=gone", -1)
    for _ in range(3):
        scene.after(HOUR_S)
    assert dict(scene.stats.principals) == {("test", "User:CN=there"): 1}


def test_requests_left_unanswered_go_with_their_client() -> None:
    scene = Scene()
    scene.client("gone")
    scene.stats.unanswered["test", "1", "Metadata", "gone", "closed by client"] += 1
    for _ in range(3):
        scene.after(HOUR_S)
    assert not scene.stats.unanswered
