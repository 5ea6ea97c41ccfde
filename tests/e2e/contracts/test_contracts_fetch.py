"""Kafka's promises to consumers, through klamm: long polls, sizes, sessions, isolation, offsets by time."""

import time
from collections.abc import Iterator

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.processes import wait_for
from tests.e2e.contracts.contracts import (
    Address,
    Talk,
    Values,
    ask,
    batch,
    batches,
    create,
    fetch,
    fetched,
    list_offsets,
    listed,
    produce,
    produced,
)
from tests.e2e.conversation import coordinator
from tests.e2e.paths import Paths

pytestmark = pytest.mark.brokers

POLLED, LARGE, WATCHED, OTHER, TIMED = (
    f"contracts-{kind}" for kind in ("polled", "large", "watched", "other", "timed")
)
NONE, OUT_OF_RANGE, NO_SESSION, BAD_EPOCH = 0, 1, 70, 71
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
COMMITTED = 1
TIMES = (1_000_000, 3_000_000, 2_000_000)


@pytest.fixture(scope="module")
def leader(kafka: Cluster, paths: Paths) -> Address:
    """Broker 1 through klamm, which leads these topics; `LARGE` holds three batches of 1,000 bytes each."""
    leader = paths.through["broker", 1]
    for topic in (POLLED, LARGE, WATCHED, OTHER, TIMED):
        create(kafka.bootstrap(), leader, topic)
    for _ in range(3):
        append(leader, LARGE, bytes(1000))
    for at in TIMES:
        assert (
            produced(ask(leader, "Produce", 9, produce(TIMED, batch([b"x"], timestamp=at))))["error_code"]
            == 0
        )
    return leader


def append(leader: Address, topic: str, *values: bytes) -> int:
    """The offset of the first of these records."""
    return int(produced(ask(leader, "Produce", 9, produce(topic, batch(values))))["base_offset"])


def test_a_fetch_waits_for_data_until_its_time_is_over(leader: Address) -> None:
    with Talk(leader) as talk:
        end = append(leader, POLLED, b"before") + 1
        began = time.monotonic()
        answer = fetched(talk.ask("Fetch", 12, fetch(POLLED, end, max_wait_ms=500, min_bytes=1)))
        waited = time.monotonic() - began
    assert (answer["error_code"], answer["records"]) == (NONE, b"")
    assert 0.5 <= waited < 5


def test_a_fetch_that_waits_is_answered_as_soon_as_there_is_enough(leader: Address) -> None:
    with Talk(leader) as talk:
        end = append(leader, POLLED, b"before") + 1
        began = time.monotonic()
        talk.send("Fetch", 12, fetch(POLLED, end, max_wait_ms=25_000, min_bytes=1000))
        assert append(leader, POLLED, b"too little") == end
        assert talk.silent(0.2)
        append(leader, POLLED, bytes(1000))
        answer = fetched(talk.answer("Fetch", 12))
        waited = time.monotonic() - began
    assert [base for base, *_ in batches(answer["records"])] == [end, end + 1]
    assert waited < 25


def test_a_fetch_that_asks_for_no_bytes_is_answered_at_once(leader: Address) -> None:
    end = append(leader, POLLED, b"before") + 1
    began = time.monotonic()
    answer = fetched(ask(leader, "Fetch", 12, fetch(POLLED, end, max_wait_ms=25_000, min_bytes=0)))
    assert (answer["records"], answer["high_watermark"]) == (b"", end)
    assert time.monotonic() - began < 25


@pytest.mark.parametrize("limits", [{"max_bytes": 1}, {"size": 1}], ids=["whole", "partition"])
def test_the_first_batch_comes_whole_however_small_the_limit(limits: Values, leader: Address) -> None:
    asked = fetch(LARGE, 0, **{"min_bytes": 1, "max_wait_ms": 10_000, **limits})  # till it is committed
    answer = fetched(ask(leader, "Fetch", 12, asked))
    assert [base for base, *_ in batches(answer["records"])] == [0]


def test_a_limit_ends_the_records_of_a_fetch_and_they_are_in_order(leader: Address) -> None:
    whole = fetched(ask(leader, "Fetch", 12, fetch(LARGE, 0)))["records"]
    assert [base for base, *_ in batches(whole)] == [0, 1, 2]
    part = fetched(ask(leader, "Fetch", 12, fetch(LARGE, 0, size=len(whole) - 1)))["records"]
    assert whole.startswith(part)
    assert [base for base, *_ in batches(part)] == [0, 1]


@pytest.mark.parametrize("offset", [-1, 1000])
def test_an_offset_that_the_log_does_not_hold_is_refused(offset: int, leader: Address) -> None:
    assert fetched(ask(leader, "Fetch", 12, fetch(LARGE, offset)))["error_code"] == OUT_OF_RANGE


class Session:
    """A fetch session on one connection, by topic names (12) or ids (18)."""

    def __init__(self, talk: Talk, version: int) -> None:
        self.talk, self.version = talk, version
        found = talk.ask("Metadata", 12, {"topics": [{"name": WATCHED}, {"name": OTHER}]})["topics"]
        self.keys = {
            topic["name"]: {"topic_id": topic["topic_id"]} if version >= 13 else {"topic": topic["name"]}
            for topic in found
        }
        self.session_id = self.epoch = 0

    def fetch(self, offsets: dict[str, int], forgotten: tuple[str, ...] = (), **more: int) -> Values:
        """The next request of the session, which lists these topics only."""
        listed = [
            {
                **self.keys[name],
                "partitions": [{"partition": 0, "fetch_offset": at, "partition_max_bytes": 1 << 20}],
            }
            for name, at in offsets.items()
        ]
        gone = [{**self.keys[name], "partitions": [0]} for name in forgotten]
        values = {
            "max_wait_ms": 0,
            "max_bytes": 1 << 20,
            "session_id": self.session_id,
            "session_epoch": self.epoch,
            "topics": listed,
            "forgotten_topics_data": gone,
            **more,
        }
        answer = self.talk.ask("Fetch", self.version, values)
        if answer["error_code"] == NONE:
            self.session_id, self.epoch = answer["session_id"], self.epoch + 1
        return answer

    def names(self, answer: Values) -> set[str]:
        """The topics that an answer lists."""
        topics = [topic.get("topic_id", topic.get("topic")) for topic in answer["responses"]]
        return {name for name, key in self.keys.items() if next(iter(key.values())) in topics}


@pytest.fixture(params=[12, 18], ids=["topic names", "topic ids"])
def session(request: pytest.FixtureRequest, leader: Address) -> Iterator[Session]:
    """A new session that holds both topics, each read to its end."""
    with Talk(leader) as talk:
        made = Session(talk, request.param)
        ends = {name: append(leader, name, b"before") + 1 for name in (WATCHED, OTHER)}
        assert made.names(made.fetch(ends)) == {WATCHED, OTHER}
        assert made.session_id != 0
        yield made


def test_a_session_lists_only_what_changed(session: Session, leader: Address) -> None:
    assert session.fetch({})["responses"] == []
    at = append(leader, WATCHED, b"news")
    answer = session.fetch({})
    assert session.names(answer) == {WATCHED}
    assert batches(fetched(answer)["records"])[0][0] == at
    assert session.fetch({WATCHED: at + 1})["responses"] == []


def test_a_session_no_longer_lists_what_the_client_forgot(session: Session, leader: Address) -> None:
    assert session.fetch({}, forgotten=(WATCHED,))["responses"] == []
    append(leader, WATCHED, b"unheard")
    append(leader, OTHER, b"heard")
    assert session.names(session.fetch({})) == {OTHER}


def test_a_session_that_the_broker_does_not_know_or_at_another_epoch_is_refused(session: Session) -> None:
    assert session.fetch({}, session_id=session.session_id ^ 1)["error_code"] == NO_SESSION
    assert session.fetch({}, session_epoch=session.epoch + 5)["error_code"] == BAD_EPOCH


def test_a_session_ends_with_epoch_minus_1(session: Session) -> None:
    assert session.fetch({}, session_epoch=-1)["session_id"] == 0
    assert session.fetch({}, session_epoch=1, session_id=session.session_id)["error_code"] == NO_SESSION


class Transaction:
    """A transactional producer that speaks by hand."""

    def __init__(self, name: str, paths: Paths) -> None:
        self.name = name
        first = paths.through["broker", 1]
        self.coordinator = wait_for(lambda: coordinator(first, 1, name), "the transaction coordinator")
        assert self.coordinator in paths.through.values()
        who = wait_for(self._begin, "the transaction coordinator to have loaded its state")
        self.producer_id, self.epoch = who["producer_id"], who["producer_epoch"]
        self.sequence = 0

    def _begin(self) -> Values | None:
        values = {"transactional_id": self.name, "transaction_timeout_ms": 60000}
        answer = ask(self.coordinator, "InitProducerId", 4, values)
        return answer if answer["error_code"] == NONE else None

    def of(self, **more: object) -> Values:
        return {
            "transactional_id": self.name,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            **more,
        }

    def write(self, topic: str, leader: Address) -> int:
        """Append one record inside the transaction: its offset."""
        added = self.of(topics=[{"name": topic, "partitions": [0]}])
        values = {f"v3_and_below_{name}": value for name, value in added.items()}
        answer = ask(self.coordinator, "AddPartitionsToTxn", 3, values)
        (partition,) = answer["results_by_topic_v3_and_below"][0]["results_by_partition"]
        assert partition["partition_error_code"] == NONE
        data = batch(
            [b"in doubt"],
            producer_id=self.producer_id,
            epoch=self.epoch,
            sequence=self.sequence,
            transactional=True,
        )
        self.sequence += 1
        values = produce(topic, data, transactional_id=self.name)
        return int(produced(ask(leader, "Produce", 9, values))["base_offset"])

    def end(self, committed: bool) -> None:
        answer = ask(self.coordinator, "EndTxn", 3, self.of(committed=committed))
        assert answer["error_code"] == NONE


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "aborted"])
def test_read_committed_sees_a_transaction_only_when_it_is_committed(
    committed: bool, kafka: Cluster, paths: Paths, leader: Address
) -> None:
    topic = f"contracts-transaction-{committed}".lower()
    create(kafka.bootstrap(), leader, topic)
    before = append(leader, topic, b"before")
    transaction = Transaction(topic, paths)
    at = transaction.write(topic, leader)
    append(leader, topic, b"after")

    def read(isolation_level: int) -> Values:
        return fetched(ask(leader, "Fetch", 12, fetch(topic, 0, isolation_level=isolation_level)))

    def latest(isolation_level: int) -> int:
        values = list_offsets(topic, LATEST, isolation_level=isolation_level)
        return int(listed(ask(leader, "ListOffsets", 7, values))["offset"])

    unfinished = read(COMMITTED)
    assert [base for base, *_ in batches(unfinished["records"])] == [before]
    assert (unfinished["last_stable_offset"], unfinished["high_watermark"]) == (at, at + 2)
    assert (latest(COMMITTED), latest(0)) == (at, at + 2)
    assert [base for base, *_ in batches(read(0)["records"])] == [before, at, at + 1]
    transaction.end(committed)
    wait_for(lambda: read(COMMITTED)["last_stable_offset"] == at + 3, "the transaction's end", timeout_s=10)
    finished, everything = read(COMMITTED), read(0)
    aborted = [] if committed else [{"producer_id": transaction.producer_id, "first_offset": at}]
    assert finished["aborted_transactions"] == aborted
    assert not everything["aborted_transactions"]
    assert batches(finished["records"]) == batches(everything["records"])
    assert batches(finished["records"])[-1] == (at + 2, transaction.producer_id, -1)


@pytest.mark.parametrize(
    ("timestamp", "version", "offset", "found"),
    [
        (EARLIEST, 1, 0, -1),
        (LATEST, 1, 3, -1),
        (MAX_TIMESTAMP, 7, 1, 3_000_000),
        (1_000_000, 1, 0, 1_000_000),
        (1_500_000, 2, 1, 3_000_000),
        (3_000_000, 7, 1, 3_000_000),
        (3_000_001, 11, -1, -1),
    ],
)
def test_an_offset_is_found_by_a_time_or_at_an_end_of_the_log(
    timestamp: int, version: int, offset: int, found: int, leader: Address
) -> None:
    answer = listed(ask(leader, "ListOffsets", version, list_offsets(TIMED, timestamp)))
    assert (answer["error_code"], answer["offset"], answer["timestamp"]) == (NONE, offset, found)
