"""Bodies of the five commonest APIs, at versions that klamm, kafka-python 3 and kio all know, and their
readers.

The values are plain; klamm writes the bytes, and the others must read them and write the same bytes again.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from benchmarks.traffic import frames
from klamm.decoders import API, decode, encode
from klamm.decoders.schema import Side
from klamm.rules.plan import Planner, Wishes

KLAMM, PICK, KAFKA_PYTHON, KIO = "klamm", "klamm pick", "kafka-python 3", "kio"
VERSIONS = {"Metadata": 12, "Fetch": 18, "Produce": 13, "OffsetCommit": 9, "JoinGroup": 9}
FAMILIES = {
    "Metadata": "metadata", "Fetch": "consumer", "Produce": "producer",
    "OffsetCommit": "consumer", "JoinGroup": "consumer",
}  # fmt: skip

TOPICS, PARTITIONS, REPLICAS = 20, 31, 3  # of Metadata
BATCH_BYTES = 2048
SUBSCRIPTION = b"\0\3\0\0\0\2" + b"".join(b"\0\x13orders-by-region-%02d" % n for n in (1, 2)) + b"\xff" * 8

Task = Callable[[], Any]


@dataclass(slots=True)
class Case:
    """One body, and how each reads it. `paths` are the fields that full metering picks, if it wants any."""

    api: str
    version: int
    side: Side
    body: bytes
    tasks: dict[str, Task] = field(default_factory=dict)
    paths: tuple[tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        return f"{self.api} {self.version} {self.side}"


def metadata(brokers_count: int) -> bytes:
    """A Metadata response's body of about 27 KB for three brokers."""
    brokers = [(i, f"broker-{i:02}.eu-central.kafka.example.com", 9092) for i in range(brokers_count)]
    topics = {f"orders-by-region-{i:02}": topic_id(i) for i in range(TOPICS)}
    return frames.metadata_body(brokers, topics, PARTITIONS, REPLICAS, "klamm-bench-cluster-01")


def topic_id(index: int) -> bytes:
    return frames.TOPIC_ID[:-1] + bytes([index])


def cases() -> tuple[list[Case], dict[str, str]]:
    """Each tried once here; and which reader is absent, with the reason."""
    made = [
        Case(api, VERSIONS[api], side, values if isinstance(values, bytes) else _encoded(api, side, values))
        for api, side, values in _messages()
    ]
    absent: dict[str, str] = {}
    planner = Planner(Wishes())
    for case in made:
        _klamm(case, planner)
        for name, add in ((KAFKA_PYTHON, _kafka_python), (KIO, _kio)):
            try:
                add(case)
            except ImportError as error:
                absent[name] = str(error)
    return made, absent


def _encoded(api: str, side: Side, values: dict[str, Any]) -> bytes:
    return encode(values, api, VERSIONS[api], side)


def _klamm(case: Case, planner: Planner) -> None:
    body, version, side = case.body, case.version, case.side
    key = API[case.api].key
    case.tasks[KLAMM] = lambda: decode(body, key, version, side)
    plan = planner.plan(key, version)
    picked = plan.request if side == "request" else plan.response
    if picked is None:
        return
    pick, end = picked.pick, len(body)
    case.paths = picked.paths
    case.tasks[PICK] = lambda: pick(body, 0, end)
    values = case.tasks[KLAMM]()
    for path, picked_column in zip(case.paths, pick(body, 0, end), strict=False):
        column = _column(values, path)
        if picked_column != column and (picked_column, column) != (None, []):  # a tagged field not there
            raise AssertionError(f"{case}: pick and decode disagree on {'.'.join(path)}")


def _column(values: Any, path: tuple[str, ...]) -> Any:
    """The value at a path, a list for each array on the way."""
    if isinstance(values, list):
        return [_column(element, path) for element in values]
    return _column(values[path[0]], path[1:]) if path else values


def _kafka_python(case: Case) -> None:
    module = import_module(f"kafka.protocol.{FAMILIES[case.api]}")
    versioned = getattr(module, f"{case.api}{case.side.title()}")[case.version]
    body = case.body
    if versioned.decode(body).encode() != body:
        raise AssertionError(f"{case}: {KAFKA_PYTHON} writes what it read differently")
    case.tasks[KAFKA_PYTHON] = lambda: versioned.decode(body)


def _kio(case: Case) -> None:
    """kio's readers are native code."""
    import_module("kio._kio_native")
    serial = import_module("kio.serial")
    snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in case.api)[1:]
    module = import_module(f"kio.schema.{snake}.v{case.version}.{case.side}")
    entity = getattr(module, f"{case.api}{case.side.title()}")
    reader, written, body = serial.entity_reader(entity), io.BytesIO(), case.body
    serial.entity_writer(entity)(written, reader(body, 0)[0])
    if written.getvalue() != body:
        raise AssertionError(f"{case}: {KIO} writes what it read differently")
    case.tasks[KIO] = lambda: reader(body, 0)


def _messages() -> list[tuple[str, Side, Any]]:
    """Values, or the body itself."""
    batch = frames.record_batch(BATCH_BYTES)
    return [
        ("Metadata", "request", {
            "topics": [{"name": f"orders-by-region-{i:02}"} for i in range(TOPICS)],
            "allow_auto_topic_creation": False,
        }),
        ("Metadata", "response", metadata(3)),
        ("Fetch", "request", {
            "max_wait_ms": 500, "min_bytes": 1, "max_bytes": 50 << 20, "session_id": 0, "session_epoch": 0,
            "rack_id": "eu-central-1a",
            "topics": [
                {"topic_id": topic_id(i), "partitions": [
                    {"partition": p, "current_leader_epoch": 7, "fetch_offset": 1_000_000 * i + 31 * p,
                     "partition_max_bytes": 1 << 20}
                    for p in range(8)
                ]}
                for i in range(5)
            ],
        }),
        ("Fetch", "response", {
            "session_id": 1234567,
            "responses": [
                {"topic_id": topic_id(i), "partitions": [
                    {"partition_index": p, "high_watermark": 1_000_100, "last_stable_offset": 1_000_100,
                     "log_start_offset": 4321, "aborted_transactions": None,
                     "records": batch * (1 + (i + p) % 3)}
                    for p in range(8)
                ]}
                for i in range(5)
            ],
        }),
        ("Produce", "request", {
            "acks": -1, "timeout_ms": 30_000,
            "topic_data": [
                {"topic_id": topic_id(i), "partition_data": [
                    {"index": p, "records": batch * (1 + (i + p) % 3)} for p in range(4)
                ]}
                for i in range(3)
            ],
        }),
        ("Produce", "response", {
            "responses": [
                {"topic_id": topic_id(i), "partition_responses": [
                    {"index": p, "base_offset": 1_000_000 + p, "log_start_offset": 4321} for p in range(4)
                ]}
                for i in range(3)
            ],
        }),
        ("OffsetCommit", "request", {
            "group_id": "billing", "generation_id_or_member_epoch": 31, "member_id": _member(1),
            "topics": [
                {"name": f"orders-by-region-{i:02}", "partitions": [
                    {"partition_index": p, "committed_offset": 1_000_000 + p, "committed_leader_epoch": 7,
                     "committed_metadata": ""}
                    for p in range(20)
                ]}
                for i in range(5)
            ],
        }),
        ("OffsetCommit", "response", {
            "topics": [
                {"name": f"orders-by-region-{i:02}", "partitions": [
                    {"partition_index": p} for p in range(20)
                ]}
                for i in range(5)
            ],
        }),
        ("JoinGroup", "request", {
            "group_id": "billing", "session_timeout_ms": 45_000, "rebalance_timeout_ms": 300_000,
            "member_id": _member(1), "protocol_type": "consumer",
            "protocols": [
                {"name": name, "metadata": SUBSCRIPTION} for name in ("range", "cooperative-sticky")
            ],
        }),
        ("JoinGroup", "response", {
            "generation_id": 31, "protocol_type": "consumer", "protocol_name": "range",
            "leader": _member(1), "member_id": _member(1),
            "members": [{"member_id": _member(i), "metadata": SUBSCRIPTION} for i in range(1, 21)],
        }),
    ]  # fmt: skip


def _member(index: int) -> str:
    return f"consumer-billing-{index}-{index:08x}-4a7e-4c0e-9d3b-5f1c2a6b7d8e"
