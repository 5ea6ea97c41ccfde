"""The drivers of tests/clients/drivers.py where nothing goes wrong, at the brokers and through klamm."""

import time
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.clients.drivers import DRIVERS, Driver, Event
from tests.e2e import topics
from tests.e2e.klamm_process import Klamm

pytestmark = [pytest.mark.brokers, pytest.mark.long]

Route = tuple[str, Namespace | None]


class Run(Protocol):
    """One driver on one route."""

    def __call__(self, action: str, topic: str, **options: Any) -> list[Event]: ...


@pytest.fixture(params=["directly", "through klamm"])
def route(request: pytest.FixtureRequest, kafka: Cluster) -> Route:
    """Where a client begins, and the namespace that it is in."""
    if request.param == "directly":
        return kafka.bootstrap(), None
    klamm: Klamm = request.getfixturevalue("klamm")
    return klamm.bootstrap, request.getfixturevalue("inside")


@pytest.fixture(params=DRIVERS)
def run(request: pytest.FixtureRequest, route: Route, tmp_path: Path) -> Run:
    """Called with an action, a topic and options; the log of the client is in `tmp_path`."""
    bootstrap, inside = route

    def call(action: str, topic: str, **options: Any) -> list[Event]:
        log = tmp_path / f"{action}.log"
        return DRIVERS[request.param].run(bootstrap, action, topic, log=log, inside=inside, **options)

    return call


@pytest.fixture
def topic(kafka: Cluster, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own with one partition, led by broker 2."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    topics.create(kafka.bootstrap(), name, [[2, 3, 1]])
    return name


def names(events: list[Event]) -> list[str]:
    """The events' names, but for revoked, which some clients do not say when they leave a group."""
    return [event["event"] for event in events if event["event"] != "revoked"]


def test_each_record_has_an_outcome_and_the_log_names_what_the_client_asked(
    run: Run, topic: str, tmp_path: Path
) -> None:
    run("produce", topic, n=1, acks="0")
    *produced, done = run("produce", topic, n=2, idempotent=True)
    assert [(event["event"], event["i"], event["partition"], event["offset"]) for event in produced] == [
        ("produced", 0, 0, 1),
        ("produced", 1, 0, 2),
    ]
    assert done == {"event": "done"}
    assert "metadata" in (tmp_path / "produce.log").read_text().lower()


def test_a_group_reads_a_transaction_and_begins_where_it_committed(run: Run, topic: str) -> None:
    made = run("transaction", topic, n=2, id=topic)
    assert names(made) == ["initialised", "produced", "produced", "committed", "done"]
    read = run("consume", topic, group=topic, n=2, isolation="read_committed")
    assert names(read) == ["assigned", "record", "record", "committed", "done"]
    assert [(event["offset"], event["value"]) for event in read if event["event"] == "record"] == [
        (0, "0"),
        (1, "1"),
    ]
    again = run("consume", topic, group=topic, timeout_ms=5000)
    assert [event for event in again if event["event"] == "record"] == []
    assert again[0]["partitions"] == [0]


def test_an_administrator_makes_sees_and_removes_a_topic(run: Run, topic: str) -> None:
    made = f"{topic}-made"
    assert names(run("admin", made, op="create", partitions=2)) == ["created", "done"]
    refused = run("admin", made, op="create")[0]
    assert (refused["event"], refused["where"]) == ("error", "create")
    assert (refused["error"], refused["fatal"]) == ("TOPIC_ALREADY_EXISTS", False)
    assert sorted(run("admin", topic, op="describe")[0]["leaders"]) == [2]
    assert names(run("admin", made, op="delete")) == ["deleted", "done"]


def test_a_client_that_waits_in_vain_ends_in_time(run: Run) -> None:
    started = time.monotonic()
    *_, error, done = run("produce", "there-is-no-such-topic", timeout_ms=3000)
    assert (error["event"], done["event"]) == ("error", "done")
    assert time.monotonic() - started < 60  # a JVM and a namespace have to start too


@pytest.mark.parametrize("driver", DRIVERS.values(), ids=DRIVERS)
def test_a_client_says_who_it_is_and_a_wrong_password_is_an_error(
    driver: Driver, kafka: Cluster, topic: str, tmp_path: Path
) -> None:
    def produce(password: str) -> list[Event]:
        return driver.run(
            kafka.bootstrap("SASL_PLAINTEXT"),
            "produce",
            topic,
            log=tmp_path / "log",
            timeout_ms=8000,
            username="alice",
            password=password,
        )

    assert names(produce("alice-secret")) == ["produced", "done"]
    assert names(produce("wrong")) == ["error", "done"]
    assert "authenticat" in (tmp_path / "log").read_text().lower()
