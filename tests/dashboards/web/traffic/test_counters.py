"""The traffic of a running klamm: its counters between two looks, whichever period a page wants."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from klamm.client.failures import NoAnswer
from klamm.client.types import Connection
from klamm.dashboards.terminal.window import changes
from klamm.dashboards.web.traffic.answers import Asked, Row, Traffic
from klamm.dashboards.web.traffic.chosen import chosen
from klamm.dashboards.web.traffic.counters import of_changes
from klamm.dashboards.web.traffic.looks import Looks, look
from klamm.dashboards.web.traffic.rows import Tables
from klamm.dashboards.web.traffic.running import RunningTraffic
from tests.dashboards.fake_state import STARTED_AT, FakeState, answer, two_answers

SECONDS = 5  # between the two answers
REQUESTS = {
    "orders-service": 121, "legacy-importer": 310, "billing-1": 35, "billing-2": 28, "reporting": 14,
    "audit": 2,
}  # fmt: skip


def connection(number: int, client: str | None, broker: str = "1", software: str = "") -> Connection:
    return Connection(number, "demo", broker, "10.0.0.1:1", client, 0, 0, None, None, None, software)


OPEN = [
    connection(1, "orders-service", software="librdkafka 2.6.0"),
    connection(2, "orders-service", "2", "librdkafka 2.6.0"),
    connection(3, None),
]


def tables(previous: Any, current: Any, connections: list[Connection] = OPEN) -> Tables:
    return Tables(of_changes(changes(previous, current), current, connections))


def rows(found: Tables, **asked: Any) -> dict[str, Row]:
    return {row.name: row for row in found.shown(Asked(**asked))[0]}


def test_the_tables_agree_with_what_was_counted_between_two_answers() -> None:
    found = tables(*two_answers())
    clients = rows(found)
    assert {name: row.requests for name, row in clients.items() if row.requests} == {
        name: SECONDS * rate for name, rate in REQUESTS.items()
    }
    assert clients["legacy-importer"].request_bytes == SECONDS * 310 * 260
    assert clients["orders-service"].connections == 2
    assert clients["orders-service"].software == "librdkafka 2.6.0"
    assert clients[""].connections == 1
    total = SECONDS * sum(REQUESTS.values())
    assert sum(row.requests or 0 for row in rows(found, table="broker").values()) == total
    assert rows(found, table="topic")["no-such-topic"].share == 1
    assert rows(found, table="software")["librdkafka 2.6.0"].connections == 2
    assert rows(found, table="broker")["3"].up is False


def test_errors_of_brokers_and_of_rules_are_told_apart() -> None:
    state = FakeState()
    state.run(1)
    before = answer(state)
    counted = state.stats.of_requests("demo", "1", "app", "Produce", 9)
    counted.requests, counted.errors[6], counted.own_errors[19] = 10, 2, 3
    found = chosen(tables(before, answer(state)), Asked(kind="client", cluster="demo", name="app"))
    assert found is not None
    assert (found.row.errors, found.row.share) == (5, 0.5)
    assert [(one.error, one.origin, one.count) for one in found.errors] == [
        ("NOT_ENOUGH_REPLICAS", "klamm", 3), ("NOT_LEADER_OR_FOLLOWER", "broker", 2),
    ]  # fmt: skip


def test_quantiles_are_those_of_the_buckets_with_their_bounds() -> None:
    clients = rows(tables(*two_answers()))
    p50 = clients["legacy-importer"].p50
    assert p50 is not None
    assert 1.0 < p50.ms < 2.5
    assert clients["billing-2"].p50 is None  # fetches only
    assert clients["audit"].p99 is not None
    assert clients["audit"].p99.sign == "<"


def test_what_is_left_out_is_told() -> None:
    state = FakeState("header")
    assert "headers only" in of_changes(changes(None, answer(state)), answer(state), ()).notes["topic"]
    state = FakeState()
    state.stats.of_requests("demo", "1", "app", "Produce", 9).own_errors[19] = 3
    state.stats.of_requests("demo", "1", "other", "Produce", 9)
    notes = of_changes(changes(None, answer(state)), answer(state), ()).notes
    assert "not for topics" in notes["topic"]
    assert "metrics: clients" in notes["client"]
    state.stats.of_topic("demo", "other", "Produce")
    assert "metrics: topics" in of_changes(changes(None, answer(state)), answer(state), ()).notes["topic"]


def test_nothing_is_negative_where_a_klamm_began_anew() -> None:
    previous, _ = two_answers()
    state = FakeState()
    state.run(2)
    for again in (answer(state) | {"pid": 2}, answer(state) | {"now": previous["now"] + 5}):
        for row in rows(tables(previous, again)).values():
            assert (row.requests or 0) >= 0
            assert (row.request_bytes or 0) >= 0
            assert (row.errors or 0) >= 0
            assert row.p50 is None or row.p50.ms >= 0


def test_nothing_is_negative_where_a_client_was_forgotten_and_came_back_busier() -> None:
    def told(requests: int, sizes: int, took_ms: int) -> Any:
        state = FakeState()
        counted = state.stats.of_requests("demo", "1", "app", "Produce", 9)
        counted.requests, counted.request_bytes, counted.errors[6] = requests, sizes, sizes
        counted.latency.add(took_ms * 1_000_000, requests)
        return answer(state)

    found = tables(told(5, 900, 40), told(6, 10, 1))
    app = rows(found)["app"]
    assert (app.requests, app.request_bytes, app.errors) == (1, 0, 0)
    amounts = next(each for call, each in found.cells.calls.items() if call.client == "app")
    assert min(amounts.latencies.values()) > 0
    assert amounts.total_s >= 0


def seen(state: FakeState, **other: Any) -> Any:
    return look(msgspec.json.encode(answer(state) | other))


def test_a_period_begins_at_the_look_nearest_to_it() -> None:
    looks, state = Looks(), FakeState()
    for _ in range(100):
        state.run(1, speed=0.01)
        looks.add(seen(state))
    newest = looks.newest
    assert newest is not None
    for period, most in (("10", 1), ("60", 5)):
        begin = looks.before(Asked(period=period))  # type: ignore[arg-type]
        assert begin is not None
        assert abs(newest.now - begin.now - float(period)) <= most
    assert looks.before(Asked(period="started")) is None
    assert len(looks.seen) < 40


def test_a_page_has_a_period_that_began_when_it_looked_first() -> None:
    looks, state = Looks(), FakeState()
    looks.add(seen(state))
    first = looks.newest
    assert looks.before(Asked(page="a", period="opened")) is first
    for _ in range(90):
        state.run(1, speed=0.01)
        looks.add(seen(state))
    assert looks.before(Asked(page="a", period="opened")) is first
    assert looks.before(Asked(page="b", period="opened")) is looks.newest
    for number in range(30):
        looks.opened(str(number))
    assert len(looks.first_of) == 20


def test_looks_of_long_ago_and_of_another_klamm_are_no_period() -> None:
    for other in ({"now": STARTED_AT + 100}, {"pid": 99}):
        looks, state = Looks(), FakeState()
        looks.add(seen(state))
        looks.add(seen(state, **other))
        assert looks.before(Asked()) is looks.newest
        assert len(looks.seen) == 1


class FakeKlamm:
    """Answers from a state that goes on by a second each time it is asked for counters."""

    def __init__(self) -> None:
        self.state, self.asked, self.away = FakeState(), 0, False
        self.connected = 0

    async def ask(self, call: Any) -> Any:
        if self.away:
            raise NoAnswer("no klamm answers at here")
        assert call.path == "/v1/counters"
        self.asked += 1
        self.state.run(1)
        return call.answer(200, msgspec.json.encode(await asyncio.to_thread(answer, self.state)))

    async def connections(self) -> list[Connection]:
        self.connected += 1
        return OPEN


@pytest.fixture
def klamm(monkeypatch: pytest.MonkeyPatch) -> FakeKlamm:
    monkeypatch.setattr("klamm.dashboards.web.traffic.running.FIRST_S", 0.0)
    return FakeKlamm()


def test_the_first_answer_has_a_period_and_pages_share_what_klamm_is_asked(klamm: FakeKlamm) -> None:
    async def asked() -> list[Traffic]:
        traffic = RunningTraffic(klamm)  # type: ignore[arg-type]
        return [await traffic.traffic(Asked(page=page)) for page in ("a", "b", "c")]

    found = asyncio.run(asked())
    assert [(one.seconds, one.state) for one in found] == [(1, "live")] * 3
    assert {row.name: row.requests for row in found[0].rows}["audit"] == 2
    assert (klamm.asked, klamm.connected) == (2, 1)
    assert found[0].counts == {"client": 7, "broker": 3, "topic": 4, "software": 2}
    assert not found[0].many


def test_a_klamm_that_is_away_is_told_and_asked_again(klamm: FakeKlamm) -> None:
    async def asked() -> Traffic:
        traffic = RunningTraffic(klamm)  # type: ignore[arg-type]
        klamm.away = True
        with pytest.raises(NoAnswer, match="no klamm answers at here"):
            await traffic.traffic(Asked())
        klamm.away = False
        return await traffic.traffic(Asked(period="started", kind="client", cluster="demo", name="audit"))

    found = asyncio.run(asked())
    assert found.chosen is not None
    assert found.chosen.row.requests == 2
