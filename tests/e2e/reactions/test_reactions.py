"""How real clients take faults that klamm injects, held against what the protocol asks of them.

KLAMM_WRITE_DOCS=1 pytest tests/e2e/reactions/test_reactions.py writes docs/reactions.md.
"""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers.kraft import VERSION, Cluster
from tests.brokers.namespace import Namespace
from tests.clients.drivers import DRIVERS, FOLDER
from tests.e2e.klamm_process import Klamm, klamm_in_front_of
from tests.e2e.reactions.reaction_faults import BY_NAME, CLIENTS, FAULTS, KNOWN_DIFFERENCES, Difference
from tests.e2e.reactions.reactions import Fault, Line, Row, Seen, did, facts_shown, rows

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "reactions.md"
RUNS = [
    pytest.param(fault.name, client, marks=[pytest.mark.long] if client in fault.long else [])
    for fault in FAULTS
    for client in CLIENTS
]
EQUAL = Difference((), "")
HEAD = """\
# How clients take faults

For each fault: the rules that inject it, what the protocol asks of a client, and what clients did. A run is
on Kafka {kafka} with three brokers, through klamm; `{{name}}` is its topic, group and transactional id.
*Took* is the time from the fault to the next good answer to the same API, or else until the application
heard of an error; *requests* are those that klamm saw in this time. `tests/e2e/reactions/test_reactions.py`
makes these runs, holds each of them against what is asked, and writes this page where
`KLAMM_WRITE_DOCS` is set.

Clients: {clients}; these versions are of the run that wrote this page.
"""


def name_of(fault: Fault, client: str) -> str:
    """The topic, group and transactional id of a run, and its rule."""
    return re.sub(r"\W+", "-", f"{fault.name}-{client}").lower()


def rules_of(fault: Fault, topic: str) -> list[dict[str, Any]]:
    """The rules that inject a fault into the run on a topic; the first is named after it."""
    made: list[dict[str, Any]] = json.loads(json.dumps(fault.rules).replace("{name}", topic))
    return [{"name": topic, **made[0]}, *made[1:]]


class Bench:
    """The cluster and its two klamms, and where runs log to."""

    def __init__(
        self, kafka: Cluster, inside: Namespace, klamms: Mapping[bool, Klamm], directory: Path
    ) -> None:
        self.kafka, self.inside, self.klamms, self.directory = kafka, inside, klamms, directory
        self.producer = Producer({"bootstrap.servers": kafka.bootstrap()})

    def run(self, fault: Fault, client: str) -> Seen:
        """One client takes one fault. It has no other run meanwhile: its lines in the log are of this one."""
        topic, klamm = name_of(fault, client), self.klamms[fault.sasl]
        with klamm.process.log.open("rb") as log:
            log.seek(0, os.SEEK_END)
            if fault.proof:
                Thread(target=self._feed, args=(fault, topic, client, klamm, log.tell()), daemon=True).start()
            began = time.time()
            options = {
                key: topic if value == "{name}" else value
                for key, value in {"timeout_ms": 20_000, **fault.options}.items()
            }
            events = DRIVERS[client].run(
                klamm.bootstrap,
                fault.action,
                topic,
                log=self.directory / f"{topic}.log",
                inside=self.inside,
                **options,
            )
            time.sleep(0.2)  # klamm writes its log off the loop
            lines = [line for line in _lines(log.read(), client) if line.asked >= began - 0.01]
        hits = {rule["name"]: rule["hits"] for rule in klamm.counters()["rules"]}
        stored = self._stored(topic) if fault.action != "consume" and not fault.sasl else []
        return Seen(fault, topic, events, lines, hits, stored)

    def fill(self, topic: str, count: int) -> None:
        """Records on the brokers themselves, in one batch."""
        for index in range(count):
            self.producer.produce(topic, str(index))

    def _feed(self, fault: Fault, topic: str, client: str, klamm: Klamm, position: int) -> None:
        """Send the last record when klamm has seen the proof of a reaction, or when there was time for it."""
        deadline = time.monotonic() + fault.proof_s
        while time.monotonic() < deadline:
            with klamm.process.log.open("rb") as log:
                log.seek(position)
                seen = Seen(fault, topic, [], _lines(log.read(), client), {}, [])
            if any(line.api == fault.proof and not line.errors for line in seen.after):
                break
            time.sleep(0.1)
        time.sleep(0.5)
        self.fill(topic, 1)
        self.producer.flush(10)

    def _stored(self, topic: str) -> list[str]:
        """The committed records of a topic."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.kafka.bootstrap(),
                "group.id": "reader",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[str] = []
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is None:
                continue
            if message.error():
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                consumer.close()
                return values
            values.append(message.value().decode())
        raise TimeoutError(f"{topic} could not be read to its end; read: {values}")


def _lines(text: bytes, client: str) -> list[Line]:
    """The exchanges of a client that have their answer, in a part of klamm's log."""
    whole = text[: text.rfind(b"\n") + 1].splitlines()
    exchanges = (json.loads(line) for line in whole if b'"event":"exchange"' in line)
    own = [each for each in exchanges if each["client_id"] == f"{client}-reactions"]
    return [Line.of(each) for each in own if "latency_ms" in each]


Runs = Mapping[tuple[str, str], "Future[Seen]"]


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest,
    kafka: Cluster,
    inside: Namespace,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Runs]:
    """The runs that were selected: all clients side by side, each taking one fault after another."""
    wanted = [
        (BY_NAME[str(item.callspec.params["fault"])], str(item.callspec.params["client"]))
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == TEST.__name__
    ]
    directory = tmp_path_factory.mktemp("reactions")
    with ExitStack() as stack:
        klamms = {}
        for sasl in sorted({fault.sasl for fault, _ in wanted}):
            rules = [
                rule
                for fault, client in wanted
                for rule in rules_of(fault, name_of(fault, client))
                if fault.sasl == sasl
            ]
            file = directory / f"rules-{sasl}.yaml"
            file.write_text(json.dumps({"rules": rules}))
            klamms[sasl] = stack.enter_context(
                klamm_in_front_of(
                    kafka.bootstrap("SASL_PLAINTEXT" if sasl else "PLAINTEXT"),
                    inside.host,
                    directory / f"klamm-{sasl}.log",
                    *("--log", "all", "--log-format", "json", "--rules", str(file)),
                    ready=not sasl,
                )
            )
            klamms[sasl].wait_until_listening()
        bench = Bench(kafka, inside, klamms, directory)
        names = [name_of(fault, client) for fault, client in wanted]
        new = [
            NewTopic(name, 1, replica_assignment=[[index % 3 + 1, (index + 1) % 3 + 1, (index + 2) % 3 + 1]])
            for index, name in enumerate(names)
        ]
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap()})
        for made in admin.create_topics(new).values():
            made.result(30)
        for fault, client in wanted:
            bench.fill(name_of(fault, client), fault.records)
        assert bench.producer.flush(30) == 0
        queues = {client: stack.enter_context(ThreadPoolExecutor(1)) for client in CLIENTS}
        yield {
            (fault.name, client): queues[client].submit(bench.run, fault, client) for fault, client in wanted
        }


@pytest.fixture(scope="module")
def written() -> Iterator[list[Row]]:
    """Rows for the document, which is written where that is asked for."""
    made: list[Row] = []
    yield made
    if os.environ.get("KLAMM_WRITE_DOCS"):
        assert len(made) == len(RUNS), "the document needs all runs, and that they pass"
        DOCUMENT.write_text(document(made))


def document(made: list[Row]) -> str:
    """docs/reactions.md."""
    go = re.search(r"twmb/franz-go (v\S+)", (FOLDER / "go" / "go.mod").read_text())
    assert go
    clients = [
        f"librdkafka in confluent-kafka {version('confluent-kafka')}",
        f"the Java client {VERSION}",
        f"franz-go {go[1]}",
        f"aiokafka {version('aiokafka')}",
        f"kafka-python {version('kafka-python')}",
    ]
    lines = [HEAD.format(kafka=VERSION, clients=", ".join(clients))]
    for fault in FAULTS:
        rules = "\n".join(f"- {json.dumps(rule)}" for rule in fault.rules)
        lines.append(
            f"## {fault.name}\n\n{fault.text}: the client {', '.join(fault.shows)}.\n\n"
            f"```yaml\n{rules}\n```\n"
        )
        lines.append("| client | what it did | took | requests after the fault |\n| --- | --- | --- | --- |")
        lines += [f"| {' | '.join(row[1:])} |" for row in made if row.fault == fault.name]
        lines.append("")
    return "\n".join(lines)


def expected(fault: Fault, client: str) -> tuple[tuple[str, ...], Difference]:
    """The facts that a client is known to show, and its difference from the protocol."""
    known = KNOWN_DIFFERENCES.get((fault.name, client), EQUAL)
    return tuple(fact for fact in fault.shows if fact not in known.missing), known


@pytest.mark.brokers
@pytest.mark.parametrize(("fault", "client"), RUNS)
def test_a_client_takes_a_fault_as_the_protocol_asks(
    fault: str, client: str, runs: Runs, written: list[Row]
) -> None:
    seen = runs[fault, client].result(timeout=280)
    facts, known = expected(BY_NAME[fault], client)
    details = "\n".join(map(str, [*seen.events, *seen.lines, seen.hits.get(seen.topic)]))
    assert facts_shown(seen) == facts, details
    written.append(Row.of(seen, client, did(facts, *known)))


TEST = test_a_client_takes_a_fault_as_the_protocol_asks


def test_the_document_says_of_every_client_and_fault_what_the_runs_show() -> None:
    if os.environ.get("KLAMM_WRITE_DOCS"):
        pytest.skip("the document is written at the end of this run")
    reactions_there = {(row.fault, row.client): row.did for row in rows(DOCUMENT.read_text())}
    wanted = {}
    for fault in FAULTS:
        for client in CLIENTS:
            facts, known = expected(fault, client)
            wanted[fault.name, client] = did(facts, *known)
    assert reactions_there == wanted


def test_every_known_difference_is_about_a_fact_that_its_fault_asks_for() -> None:
    for (fault, client), known in KNOWN_DIFFERENCES.items():
        assert client in CLIENTS
        assert known.missing
        assert set(known.missing) <= set(BY_NAME[fault].shows)


def test_the_document_is_what_is_written_of_its_rows_and_the_faults() -> None:
    if os.environ.get("KLAMM_WRITE_DOCS"):
        pytest.skip("the document is written at the end of this run")
    text = DOCUMENT.read_text()
    written_lines, made = text.splitlines(), document(list(rows(text))).splitlines()
    clients = [line for line in written_lines if line.startswith("Clients: ")]  # of that run
    assert len(clients) == 1
    [now] = [line for line in made if line.startswith("Clients: ")]
    assert (
        now.split(", ")[1:3] == clients[0].split(", ")[1:3]
    )  # the Java client, franz-go: the tests say which
    assert [line for line in made if not line.startswith("Clients: ")] == [
        line for line in written_lines if line not in clients
    ]


def test_a_row_tells_the_time_and_the_requests_up_to_the_next_good_answer_or_to_the_error() -> None:
    fault = Fault("f", "once", "Produce", "CORRUPT_MESSAGE", (), ())

    def line(api: str, asked: float, answered: float, *errors: str) -> Line:
        return Line(api, asked, answered, dict.fromkeys(errors, 1), ("t",), "1")

    before, bad = line("Produce", 1.0, 1.1), line("Produce", 2.0, 2.1, fault.error)
    metadata, again = line("Metadata", 2.15, 2.2), line("Produce", 2.25, 2.35)
    events = [{"event": "error", "ms": 700, "error": "e", "message": "m", "fatal": False}]
    good = Seen(fault, "t", [], [before, bad, metadata, again, line("Produce", 3, 3.1)], {}, [])
    assert Row.of(good, "c", "did") == Row("f", "c", "did", "250 ms", "Metadata, Produce")
    refused = Seen(fault, "t", events, [before, bad, metadata], {}, [])
    assert Row.of(refused, "c", "did") == Row("f", "c", "did", "700 ms", "Metadata")
    assert Row.of(Seen(fault, "t", [], [before, bad], {}, []), "c", "did").took == ""
