"""Every method of the fixture `klamm`, in front of librdkafka's mock cluster and of three real brokers."""

import asyncio
import inspect
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from klamm.client import AsyncKlamm
from klamm.client.failures import Refused
from klamm.client.faults import Fault
from klamm.client.front import Front, in_front_of
from tests.brokers.processes import wait_for
from tests.client.mock_cluster import mock_cluster
from tests.e2e import topics

QUIET = {"log_level": 0, "socket.timeout.ms": 2000, "reconnect.backoff.max.ms": 200}


@pytest.fixture(scope="module", params=["mock", pytest.param("kafka", marks=pytest.mark.brokers)])
def front(request: pytest.FixtureRequest) -> Iterator[Front]:
    if request.param == "kafka":
        with in_front_of(request.getfixturevalue("kafka").bootstrap()) as running:
            yield running
    else:
        with mock_cluster() as bootstrap, in_front_of(bootstrap) as running:
            yield running


@pytest.fixture
def klamm(front: Front) -> Iterator[Front]:
    front.begin()
    yield front
    front.begin()


@pytest.fixture
def topic(klamm: Front, request: pytest.FixtureRequest) -> str:
    """A topic with a record."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    if request.node.callspec.params["front"] == "kafka":
        topics.create(klamm.process.cluster, name, [[2]])
    assert deliver(klamm, name, timeout_ms=20_000) is None
    klamm.begin()
    return name


def producer(klamm: Front, client_id: str = "shop", timeout_ms: int = 10_000, **more: Any) -> Producer:
    own = {"bootstrap.servers": klamm.bootstrap, "client.id": client_id, "message.timeout.ms": timeout_ms}
    return Producer({**QUIET, **own, **more})


def deliver(klamm: Front, topic: str, client_id: str = "shop", timeout_ms: int = 10_000, **more: Any) -> Any:
    """Produce one record with a new client: the error of its delivery, or None."""
    outcome: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        outcome.append(error)

    client = producer(klamm, client_id, timeout_ms, **more)
    client.produce(topic, b"one", on_delivery=delivered)
    client.flush(timeout_ms / 1000 + 5)
    return outcome[0]


def test_an_injected_error_is_met_so_often_and_the_client_gets_over_it(klamm: Front, topic: str) -> None:
    fault = klamm.inject("Produce", "NOT_LEADER_OR_FOLLOWER", topic=topic, times=2)
    assert deliver(klamm, topic) is None
    assert (fault.hits, fault.matches) == (2, 3)
    refused = klamm.exchanges("Produce", error="NOT_LEADER_OR_FOLLOWER")
    assert [(each.client_id, each.origin, list(each.topics)) for each in refused] == [
        ("shop", "klamm", [topic])
    ] * 2
    assert len(klamm.exchanges("Produce", topic=topic)) == 3


def test_an_applied_error_is_a_duplicate(klamm: Front, topic: str) -> None:
    with klamm.inject("Produce", "REQUEST_TIMED_OUT", applied=True, times=1):
        assert deliver(klamm, topic) is None
    values = consumed(klamm, topic, 3)
    assert values == [b"one"] * 3  # one before, and one that the client sent twice


def consumed(klamm: Front, topic: str, count: int) -> list[bytes | None]:
    group = f"billing-{uuid.uuid4().hex[:8]}"
    own = {"bootstrap.servers": klamm.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    client = Consumer({**QUIET, **own})
    client.subscribe([topic])
    ends, found = time.monotonic() + 20, list[Message]()
    while len(found) < count and time.monotonic() < ends:
        found += [message for message in client.consume(count, 0.2) if not message.error()]
    client.close()
    return [message.value() for message in found]


def test_a_delay_ends_with_its_block(klamm: Front, topic: str) -> None:
    client = producer(klamm)
    client.produce(topic, b"one")
    assert client.flush(10) == 0
    with klamm.delay("Produce", 0.4, topic=topic) as fault:
        client.produce(topic, b"late")
        assert client.flush(0.3) == 1
        assert client.flush(10) == 0
    client.produce(topic, b"soon")
    assert client.flush(0.3) == 0
    assert fault.hits == 1
    assert klamm.api.rules() == []


def test_a_delay_may_be_given_with_its_unit(klamm: Front, topic: str) -> None:
    began = time.monotonic()
    with klamm.delay("Produce", "700ms", jitter="10ms"):
        assert deliver(klamm, topic) is None
    assert time.monotonic() - began > 0.6


def test_a_disconnect_costs_a_second_try(klamm: Front, topic: str) -> None:
    fault = klamm.disconnect("Produce", when="before", times=1)
    assert deliver(klamm, topic) is None
    assert (fault.hits, fault.matches) == (1, 2)


def test_a_blocked_client_is_refused_and_others_are_not(klamm: Front, topic: str) -> None:
    klamm.block("Produce", client="legacy-*")
    error = deliver(klamm, topic, "legacy-app")
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert deliver(klamm, topic, "shop") is None


def test_a_blackholed_client_hears_nothing(klamm: Front, topic: str) -> None:
    with klamm.blackhole(client="legacy-app") as fault:
        lonely = producer(klamm, "legacy-app")
        with pytest.raises(KafkaException):
            lonely.list_topics(timeout=1)
        fault.wait(timeout_s=5)
    assert deliver(klamm, topic, "shop") is None
    klamm.assert_no("Produce", client_id="legacy-app")


def test_a_broker_that_is_down_is_not_reached_and_comes_back(klamm: Front, topic: str) -> None:
    leader = producer(klamm).list_topics(topic, timeout=10).topics[topic].partitions[0].leader
    client = producer(klamm)
    client.produce(topic, b"before", partition=0)
    assert client.flush(10) == 0
    with klamm.down(broker=leader) as fault:
        client.produce(topic, b"meanwhile", partition=0)
        fault.wait(timeout_s=5)
        assert client.flush(0.5) == 1
    assert client.flush(10) == 0
    through = [each.broker for each in klamm.exchanges("Produce")]
    assert set(through) == {str(leader)}


def test_any_rules_may_be_given_as_mappings_or_text_or_a_file(
    klamm: Front, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("rules:\n- {api: Produce, topic: orders-*, error: NOT_LEADER_OR_FOLLOWER, times: 1}\n")
    fault = klamm.rules(file, "rules: [{api: Produce, count: true}]", {"api": "Produce", "delay": "1ms"})
    assert deliver(klamm, topic) is None
    assert [counter.hits for counter in fault.counters] == [1, 2, 1]  # answered requests are not delayed
    with pytest.raises(ValueError, match="the one key `rules`"):
        klamm.rules("seed: 3")


def test_a_rule_with_a_mistake_leaves_none_of_its_block_in_force(klamm: Front) -> None:
    with pytest.raises(Refused, match="did you mean Produce"):
        klamm.rules({"api": "Fetch", "delay": "1s"}, {"api": "Prodce", "delay": "1s"})
    assert klamm.api.rules() == []


def test_exchanges_are_waited_for_with_what_is_in_them(klamm: Front, topic: str) -> None:
    assert deliver(klamm, topic, acks=1) is None
    (found,) = klamm.wait_for("Produce", topic=topic, where="acks == 1")
    assert found.client_id == "shop"
    with pytest.raises(
        AssertionError, match=r"0 of 1 exchanges of api Produce, where acks == 0 within 0\.2 s"
    ):
        klamm.wait_for("Produce", where="acks == 0", timeout_s=0.2)
    with pytest.raises(AssertionError, match="1 exchanges of api Produce"):
        klamm.assert_no("Produce", topic="orders-*")
    klamm.assert_no("Produce", topic="other", within_s=0.1)


def test_names_that_kafka_lacks_are_no_proof_of_absence(klamm: Front) -> None:
    with pytest.raises(ValueError, match="no API is named 'Prodce'"):
        klamm.assert_no("Prodce")
    with pytest.raises(ValueError, match="no error is named 'NOPE'"):
        klamm.assert_no("Produce", error="NOPE")
    with pytest.raises(ValueError, match="aks"):
        klamm.assert_no("Produce", where="aks == 1")
    with pytest.raises(ValueError, match="not an expression"):
        klamm.assert_no("Produce", where="acks == ")


def test_more_exchanges_than_are_kept_are_no_proof_of_absence(klamm: Front) -> None:
    client = producer(klamm)
    for _ in range(1010):
        client.list_topics(timeout=10)
    with pytest.raises(RuntimeError, match="newest 1000"):
        klamm.assert_no("Fetch")
    klamm.begin()
    klamm.assert_no("Fetch")


def test_the_report_tells_what_fired_and_what_did_not(klamm: Front, topic: str) -> None:
    with klamm.inject("Produce", "NOT_LEADER_OR_FOLLOWER", times=1, name="leaderless"):
        assert deliver(klamm, topic) is None
    klamm.delay("Fetch", "1s", name="slow")
    fired, quiet, last = (
        klamm.report().index(title) for title in ("rules that fired:", "did not fire:", "last ")
    )
    text = klamm.report()
    assert "leaderless: 1 hits of" in text[fired:quiet]
    assert "slow: 0 hits of 0 matches" in text[quiet:last]
    assert "answered by klamm" in text[last:]


def test_a_rule_that_ended_by_itself_tells_its_last_count(klamm: Front, topic: str) -> None:
    fault = klamm.inject("Produce", "NOT_LEADER_OR_FOLLOWER", times=1, for_=60)
    assert deliver(klamm, topic) is None
    assert fault.hits == 1
    klamm.api.remove_rule(fault.names[0])
    assert fault.hits == 1
    fault.remove()
    fault.remove()
    with pytest.raises(AssertionError, match=r"not 2 hits within 0\.1 s"):
        fault.wait(2, timeout_s=0.1)


FAULTS: Mapping[str, tuple[Callable[[Front, str], Fault], int]] = {  # and what the producer hears
    "inject": (
        lambda klamm, topic: klamm.inject("Produce", "POLICY_VIOLATION", topic=topic),
        KafkaError.POLICY_VIOLATION,
    ),
    "delay": (lambda klamm, topic: klamm.delay("Produce", 60, topic=topic), KafkaError._MSG_TIMED_OUT),
    "disconnect": (
        lambda klamm, topic: klamm.disconnect("Produce", when="mid frame", topic=topic),
        KafkaError._MSG_TIMED_OUT,
    ),
    "block": (
        lambda klamm, topic: klamm.block("Produce", client="shop"),
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    ),
    "blackhole": (lambda klamm, topic: klamm.blackhole("Produce", client="shop"), KafkaError._MSG_TIMED_OUT),
    "down": (lambda klamm, topic: klamm.down(broker=2), KafkaError._MSG_TIMED_OUT),
    "rules": (
        lambda klamm, topic: klamm.rules({"api": "Produce", "topic": topic, "error": "INVALID_RECORD"}),
        KafkaError.INVALID_RECORD,
    ),
}
on_the_real_one = pytest.mark.parametrize(
    "front", [pytest.param("kafka", marks=pytest.mark.brokers)], indirect=True
)


@pytest.mark.parametrize("lasting", ["block", "test"])
@pytest.mark.parametrize("name", FAULTS)
@on_the_real_one
def test_a_fault_is_felt_until_its_block_or_the_test_ends(
    name: str, lasting: str, klamm: Front, topic: str
) -> None:
    make, expected = FAULTS[name]
    fault = make(klamm, topic)
    if lasting == "block":
        with fault:
            error = felt(fault, klamm, topic, expected)
    else:
        error = felt(fault, klamm, topic, expected)
        klamm.begin()  # as the fixture does between two tests
    assert error is not None
    assert error.code() == expected
    assert fault.hits >= 1
    assert klamm.api.rules() == []
    assert deliver(klamm, topic, timeout_ms=30_000) is None


def felt(fault: Fault, klamm: Front, topic: str, expected: int) -> Any:
    """The result of a new producer; once more where it gave up before it met the fault."""
    timeout_ms = 800 if expected == KafkaError._MSG_TIMED_OUT else 30_000
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        error = deliver(klamm, topic, timeout_ms=timeout_ms)
        if fault.hits:
            return error
    raise TimeoutError(f"{fault} is met by nobody")


def test_every_fault_that_there_is_was_tried() -> None:
    made = {name for name, method in vars(Front).items() if "Fault" in _returns(method)}
    assert made - {"_fault", "_add"} == set(FAULTS)


def _returns(method: Any) -> str:
    return str(inspect.signature(method).return_annotation) if inspect.isfunction(method) else ""


SOUGHT: Mapping[str, tuple[Any, Any]] = {  # (a value that exists, a value that does not)
    "api": ("Produce", "DeleteTopics"),
    "client_id": ("sho*", "nobody"),
    "topic": (["orders-*", "other"], "other"),
    "group": ("billing-*", "other"),
    "broker": (2, 77),
    "error": ("POLICY_VIOLATION", "NOT_CONTROLLER"),
    "where": ("acks == 1", "acks == 0"),
}


def both_find_the_same(klamm: Front, key: str, value: Any) -> bool:
    """Of what is there when they are asked: an answer may come in between."""
    return bool(klamm.wait_for(**{key: value}) == klamm.exchanges(**{key: value}))


@on_the_real_one
def test_exchanges_are_sought_by_whatever_is_said_of_them(klamm: Front, topic: str) -> None:
    with klamm.inject("Produce", "POLICY_VIOLATION", topic=topic):
        assert deliver(klamm, topic, acks=1) is not None
    assert deliver(klamm, topic, acks=1) is None
    assert consumed(klamm, topic, 2) == [b"one"] * 2
    for key, (there, absent) in SOUGHT.items():
        wait_for(partial(both_find_the_same, klamm, key, there), key)
        klamm.assert_no(**{key: absent})
        with pytest.raises(AssertionError, match=r"\d+ exchanges of "):
            klamm.assert_no(**{key: there})
    sought = {**{key: there for key, (there, _) in SOUGHT.items()}, "group": None}
    (one,) = klamm.exchanges(**sought)
    assert (one.topics, one.errors, one.origin) == ({topic: [0]}, {"POLICY_VIOLATION": 1}, "klamm")


@on_the_real_one
def test_an_event_loop_goes_on_while_it_waits(klamm: Front, topic: str) -> None:
    """With aiokafka on the loop, and the admin API's client for loops."""

    async def run() -> None:
        async with AsyncKlamm(klamm.admin) as api:
            written = {"name": "leaderless", "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 1}
            await api.add_rule(written)
            shop = AIOKafkaProducer(bootstrap_servers=klamm.bootstrap, client_id="aio-shop")
            await shop.start()
            try:
                sent = asyncio.create_task(shop.send_and_wait(topic, b"one"))
                refused, taken = await klamm.wait_for_async("Produce", client_id="aio-shop", count=2)
                assert (await sent).offset == 1
            finally:
                await shop.stop()
            assert (refused.errors, taken.errors) == ({"NOT_LEADER_OR_FOLLOWER": 1}, {})
            assert (await api.rule("leaderless")).hits == 1
            with pytest.raises(AssertionError, match=r"2 of 3 exchanges of api Produce, .* within 0\.05 s"):
                await klamm.wait_for_async("Produce", client_id="aio-shop", count=3, timeout_s=0.05)

    asyncio.run(run())
