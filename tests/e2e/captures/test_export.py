"""Real traffic, captured by klamm and exported, as tshark, DuckDB and klamm import read it."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from klamm.captures.captured import Captured
from klamm.captures.exports.exporting import SeenBy, seen_by
from klamm.captures.storage.reading import read
from klamm.decoders import API
from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.captures.tshark import Message, messages
from tests.clients import programs
from tests.e2e import topics
from tests.e2e.klamm_process import COMMAND, klamm_in_front_of

pytestmark = pytest.mark.brokers

TOPIC = "exported"
COUNT = 200


def klamm(*words: str | Path) -> str:
    """Run a command, which has to succeed, and give its output."""
    done = subprocess.run(
        [str(COMMAND), *map(str, words)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), (words, done.stdout)
    return done.stdout


def exchanges(capture: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in klamm("export", capture, "-o", "-").splitlines()]


@pytest.fixture(scope="module")
def capture(kafka: Cluster, inside: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A producer and a consumer of two libraries, as klamm saw them."""
    topics.create(kafka.bootstrap(), TOPIC, topics.spread())
    folder = tmp_path_factory.mktemp("exported")
    log, capture = folder / "klamm.log", folder / "capture"
    with klamm_in_front_of(kafka.bootstrap(), inside.host, log, "--capture", str(capture)) as running:
        for client in ("librdkafka", "java"):
            group = f"{TOPIC}-{client}"
            inside.run(
                *programs.command(
                    client,
                    running.bootstrap,
                    {"do": "produce", "topic": TOPIC, "seed": client, "count": COUNT, "compression": "lz4"},
                    {"do": "produce", "topic": TOPIC, "seed": client, "count": COUNT, "acks": "0"},
                    {"do": "consume", "topic": TOPIC, "group": group, "count": COUNT},
                )
            )
    return capture


@pytest.mark.parametrize("who", ["client", "broker"])
def test_tshark_reads_the_same_requests_and_responses(who: SeenBy, capture: Path, tmp_path: Path) -> None:
    """It tells the number alone of a response to a request that it cannot read to the end, being too new."""
    file = tmp_path / "packets.pcapng"
    klamm("export", capture, "-o", file, "--seen-by", who)
    of_tshark = messages(file)
    ours = [message(row) for row in seen_by(who, read(capture)) if row.kind == "frame"]
    assert Counter(requests(of_tshark)) == Counter(requests(ours))
    numbers, our_numbers = (
        [one.correlation_id for one in some if one.side == "response"] for some in (of_tshark, ours)
    )
    assert Counter(numbers) == Counter(our_numbers)
    known = Counter(one for one in of_tshark if one.side == "response" and one.key >= 0)
    assert known <= Counter(ours)
    assert {one.key for one in known} >= {API["ApiVersions"].key, API["FindCoordinator"].key}


def message(row: Captured) -> Message:
    return Message(row.side or "", row.api_key, row.api_version, row.correlation_id)


def requests(some: list[Message]) -> list[Message]:
    return [one for one in some if one.side == "request"]


def test_what_is_imported_from_the_packets_is_the_same(capture: Path, tmp_path: Path) -> None:
    klamm("export", capture, "-o", tmp_path / "packets.pcapng", "--seen-by", "broker")
    klamm("import", tmp_path / "packets.pcapng", "-o", tmp_path / "again")

    def comparable(of: Path) -> list[str]:
        """The exchanges, without the fields that packets do not have."""
        some = (
            {**one, "cluster": "", "broker": "", "connection_id": 0, "fates": {}} for one in exchanges(of)
        )
        return sorted(json.dumps(one, sort_keys=True) for one in some)

    assert comparable(tmp_path / "again") == comparable(capture)


def test_duckdb_counts_the_same_in_parquet(capture: Path, tmp_path: Path) -> None:
    file = tmp_path / "exported.parquet"
    klamm("export", capture, "-o", file)
    found = exchanges(capture)
    by_api = duckdb.sql(f"select api, version, count(*) from '{file}' group by all").fetchall()
    assert {(api, version): count for api, version, count in by_api} == Counter(
        (one["api"], one["version"]) for one in found
    )
    sums = duckdb.sql(f"select sum(request_bytes), sum(response_bytes) from '{file}'").fetchall()
    bytes_each_way = [sum(one[side] or 0 for one in found) for side in ("request_bytes", "response_bytes")]
    assert sums == [tuple(bytes_each_way)]
    acks = duckdb.sql(
        f"select distinct client_id, (request_body->>'$.acks')::int from '{file}'"
        f" where api = 'Produce' and list_contains(topics, '{TOPIC}')"
    ).fetchall()
    assert {value for _, value in acks} == {-1, 0}
