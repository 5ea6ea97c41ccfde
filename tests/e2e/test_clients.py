"""Real clients against a real cluster, from where only klamm can be reached."""

from pathlib import Path
from typing import Any

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.brokers.processes import Process, wait_for
from tests.clients import programs, records
from tests.e2e import topics
from tests.e2e.klamm_process import Klamm, klamm_in_front_of

pytestmark = pytest.mark.brokers

COUNT = 200
SEEDS = ("all", "one", "none", "idempotent")
PLAIN: dict[str, dict[str, Any]] = {
    "administrate": {"do": "administrate", "topic": "made-by-{}", "replication_factor": 2},
    "acks-all": {"do": "produce", "topic": "plain-{}", "acks": "all", "seed": "all"},
    "acks-1": {"do": "produce", "topic": "plain-{}", "acks": "1", "seed": "one"},
    "acks-0": {"do": "produce", "topic": "plain-{}", "acks": "0", "seed": "none"},
    "idempotent": {"do": "produce", "topic": "plain-{}", "idempotent": True, "seed": "idempotent"},
    "classic-group": {
        "do": "consume",
        "topic": "plain-{}",
        "group": "classic-{}",
        "count": len(SEEDS) * COUNT,
    },
    "transactional": {
        "do": "produce",
        "topic": "transactional-{}",
        "transactional_id": "id-{}",
        "aborted": 20,
    },
    "read-committed": {
        "do": "consume",
        "topic": "transactional-{}",
        "group": "committed-{}",
        "isolation": "read_committed",
    },
}
NEW: dict[str, dict[str, Any]] = {
    "new-group": {
        "do": "consume",
        "topic": "plain-{}",
        "group": "new-{}",
        "protocol": "consumer",
        "count": len(SEEDS) * COUNT,
    },
    "share-group": {"do": "share", "topic": "plain-{}", "group": "share-{}", "count": len(SEEDS) * COUNT},
}
PROTOCOLS = ("classic", "consumer")
STEPS = {
    "librdkafka": PLAIN | NEW,
    "aiokafka": PLAIN,
    "kafka-python": PLAIN,
    "kafkajs": PLAIN,
    "java": PLAIN | NEW,
}


@pytest.fixture(scope="module")
def seen(kafka: Cluster, klamm: Klamm, inside: Namespace) -> dict[str, dict[str, dict[str, Any]]]:
    """The output of each client, by client and step; each runs once, when it is first asked for."""

    class Runs(dict[str, dict[str, dict[str, Any]]]):
        def __missing__(self, client: str) -> dict[str, dict[str, Any]]:
            for topic in ("plain", "transactional"):
                topics.create(kafka.bootstrap(), f"{topic}-{client}", topics.spread())
            steps = [
                {"count": COUNT}
                | {
                    name: value.format(client) if isinstance(value, str) else value
                    for name, value in step.items()
                }
                for step in STEPS[client].values()
            ]
            self[client] = {}
            output = inside.run(*programs.command(client, klamm.bootstrap, *steps), timeout_s=200)
            self[client] = dict(zip(STEPS[client], programs.results(output), strict=True))
            return self[client]

    return Runs()


def _steps(*kinds: str) -> list[tuple[str, str]]:
    return [
        (client, step)
        for client, steps in STEPS.items()
        for step, action in steps.items()
        if action["do"] in kinds
    ]


def test_a_broker_cannot_be_reached_from_the_namespace(kafka: Cluster, inside: Namespace) -> None:
    host, port = kafka.address(1)
    with pytest.raises(AssertionError, match="refused"):
        inside.run("python3", "-c", f"import socket; socket.create_connection(('{host}', {port}), 3)")


@pytest.mark.parametrize(("client", "step"), _steps("produce"))
def test_every_record_is_acknowledged(
    client: str, step: str, seen: dict[str, dict[str, dict[str, Any]]]
) -> None:
    assert seen[client][step]["acknowledged"] == COUNT


@pytest.mark.parametrize(("client", "step"), _steps("consume", "share"))
def test_everything_produced_is_consumed_byte_for_byte(
    client: str, step: str, seen: dict[str, dict[str, dict[str, Any]]]
) -> None:
    transactional = step == "read-committed"
    topic = f"transactional-{client}" if transactional else f"plain-{client}"
    seeds = ["seed"] if transactional else SEEDS
    wanted = [mark for seed in seeds for mark in records.expected(topic, seed, range(COUNT))]
    assert (seen[client][step]["count"], seen[client][step]["digest"]) == (
        len(wanted),
        records.digest(wanted),
    )


@pytest.mark.parametrize("client", STEPS)
def test_an_administrator_sees_the_cluster_at_the_address_of_klamm(
    client: str, seen: dict[str, dict[str, dict[str, Any]]], klamm: Klamm
) -> None:
    report = seen[client]["administrate"]
    addresses = report["brokers"] + report.get("controllers", [])
    assert {address.rpartition(":")[0] for address in addresses} == {klamm.host}
    assert len(set(addresses)) == (4 if "controllers" in report else 3)
    assert (report["partitions"], report["topics"]) == (3, True)


def test_controllers_are_administrated_through_the_listener_that_leads_to_them(
    klamm: Klamm, inside: Namespace, seen: dict[str, dict[str, dict[str, Any]]]
) -> None:
    """bootstrap.controllers (KIP-919) with the address that DescribeQuorum tells."""
    controllers = seen["java"]["administrate"]["controllers"]
    command = programs.command("java", controllers[0], {"do": "administrate", "controllers": True})
    assert programs.results(inside.run(*command))[0]["controllers"] == controllers


@pytest.fixture(scope="module")
def divided(
    kafka: Cluster, klamm: Klamm, inside: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Process]]:
    """By protocol, two members of a group that have read until their time was over: both groups at once."""
    folder = tmp_path_factory.mktemp("divided")
    members: dict[str, list[Process]] = {}
    for protocol in PROTOCOLS:
        topic = group = f"divided-{protocol}"
        topics.create(kafka.bootstrap(), topic, topics.spread(4))
        reading = {"do": "consume", "topic": topic, "group": group, "protocol": protocol, "list": True}
        patient = {**reading, "count": COUNT, "timeout_s": 20}
        members[protocol] = [
            inside.start(
                folder / f"{topic}-{client}.log", *programs.command(client, klamm.bootstrap, patient)
            )
            for client in ("librdkafka", "java")
        ]
    started = [*members["classic"], *members["consumer"]]
    try:
        for group in map("divided-{}".format, members):
            wait_for(
                lambda group=group: topics.assigned(kafka.bootstrap(), group) == [2, 2], group, started, 15
            )
            made = {"do": "produce", "topic": group, "count": COUNT, "size": 32}
            inside.run(*programs.command("librdkafka", klamm.bootstrap, made))
        wait_for(lambda: not any(member.running for member in started), "the members", timeout_s=60)
    finally:
        for member in started:
            member.kill()
    return members


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_two_members_of_a_group_divide_the_partitions(
    protocol: str, divided: dict[str, list[Process]]
) -> None:
    read = [programs.results(member.log.read_text())[0]["fingerprints"] for member in divided[protocol]]
    assert all(read)
    assert records.digest(read[0] + read[1]) == records.digest(
        records.expected(f"divided-{protocol}", "seed", range(COUNT), 32)
    )


def test_clients_reach_klamm_over_ipv6(kafka: Cluster, inside: Namespace, log: Path) -> None:
    topics.create(kafka.bootstrap(), "ipv6", topics.spread())
    actions = [
        {"do": "produce", "topic": "ipv6", "count": COUNT},
        {"do": "consume", "topic": "ipv6", "group": "ipv6", "count": COUNT},
    ]
    with klamm_in_front_of(kafka.bootstrap(), inside.host_v6, log) as klamm:
        lines = programs.results(inside.run(*programs.command("librdkafka", klamm.bootstrap, *actions)))
    assert lines[1]["digest"] == records.digest(records.expected("ipv6", "seed", range(COUNT)))
