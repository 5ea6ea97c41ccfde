"""A proxy that never ran: the counters of some seconds of invented traffic, the same in every run."""

import asyncio
import json
from random import Random
from typing import Any, Literal

import msgspec

from klamm.client.types import Capture
from klamm.proxy.metrics import as_json
from klamm.proxy.metrics.snapshot import (
    Certificate,
    ClusterState,
    NodeState,
    RuleCounts,
    RuleState,
    WorkerCounts,
    take,
)
from klamm.proxy.metrics.usage import usage
from klamm.proxy.session.observing.counters import Stats

STARTED_AT = 1_700_000_000.0

# client id, API, version, topic, requests a second, request bytes, response bytes, median latency in ms,
# errors (code: share of responses)
TRAFFIC = (
    ("orders-service", "Produce", 11, "orders", 120, 4_200, 90, 2.2, {6: 0.02}),
    ("orders-service", "Metadata", 12, "orders", 1, 60, 900, 1.5, {}),
    ("legacy-importer", "Produce", 11, "imports", 310, 260, 88, 1.8, {}),
    ("billing-1", "Fetch", 16, "orders", 30, 120, 16_000, 40, {}),
    ("billing-1", "OffsetCommit", 9, "orders", 4, 150, 80, 2.5, {}),
    ("billing-1", "Heartbeat", 4, None, 1, 70, 20, 1.0, {27: 0.1}),
    ("billing-2", "Fetch", 16, "orders", 28, 120, 15_000, 42, {}),
    ("reporting", "Fetch", 16, "payments", 12, 130, 2_000, 210, {1: 0.05}),
    ("reporting", "Metadata", 12, "no-such-topic", 2, 80, 500, 1.4, {3: 1.0}),
    ("audit", "ListOffsets", 7, "payments", 2, 90, 120, 1.1, {}),
)
SOFTWARE = (("librdkafka", "2.16.0", 9), ("apache-kafka-java", "4.3.1", 4))


class FakeState:
    """A `klamm.proxy.metrics.snapshot.State` of three brokers; `run` lets time pass."""

    started_at = STARTED_AT

    def __init__(self, metering: Literal["full", "header"] = "full") -> None:
        self.metering: Literal["full", "header"] = metering
        self.stats = Stats()
        self.ready = True
        self.capture: Capture | None = None
        self.seconds = 0
        for broker in ("1", "2", "3"):
            self.stats.connections["demo", broker] = 4
            self.stats.opened["demo", broker] = 6
        self.stats.traced.update({("exported",): 40, ("failed",): 2, ("dropped",): 1})
        self.stats.unanswered["demo", "3", "Fetch", "billing-1", "reset by broker"] = 2
        self.stats.closed["demo", "client closed"] = 6
        self.stats.reauthentications["demo", "1"] = 7
        self.stats.opaque["demo", "3", "client"] = 5000
        for name, version, connections in SOFTWARE:
            self.stats.software["demo", name, version] = connections
        self.stats.logins["demo", "SCRAM-SHA-512", "success"] = 3
        self.stats.principal("demo", "User:CN=orders-service,O=Example", 3)
        self.stats.client_instance("demo", "billing-1", "ABEiM0RVZneImaq7zN3u_w")

    def run(self, seconds: int, speed: float = 1.0) -> None:
        """`speed` multiplies requests a second."""
        for second in range(self.seconds, self.seconds + seconds):
            draw = Random(second)
            for (
                client,
                api,
                version,
                topic,
                rate,
                request_bytes,
                response_bytes,
                median_ms,
                errors,
            ) in TRAFFIC:
                for number in range(int(rate * speed)):
                    counted = self.stats.of_requests("demo", str(number % 3 + 1), client, api, version)
                    latency_ns = int(median_ms * 1e6 * draw.lognormvariate(0, 0.4))
                    counted.requests += 1
                    counted.responses += 1
                    counted.own_answers += api == "Heartbeat"
                    counted.request_bytes += request_bytes
                    counted.response_bytes += response_bytes
                    counted.latency.add(latency_ns)
                    counted.own.add(int(15_000 * draw.lognormvariate(0, 0.5)))
                    codes = [code for code, share in errors.items() if draw.random() < share]
                    counted.errors.update(codes)
                    if topic:
                        named = self.stats.of_topic("demo", topic, api)
                        named.requests += 1
                        named.latency.add(latency_ns)
                        named.errors.update(codes)
        self.seconds += seconds
        self.stats.problems["demo", "1", "Fetch", "body does not decode"] = self.seconds // 20

    def clusters(self) -> list[ClusterState]:
        nodes = tuple(
            NodeState("broker", n, f"kafka-{n}:9092", f"127.0.0.1:{19092 + n}", n != 3) for n in (1, 2, 3)
        )
        bootstrap = ("kafka-1:9092", "kafka-2:9092")
        if not self.ready:
            return [
                ClusterState("demo", bootstrap, "127.0.0.1:19092", reason="kafka-1:9092 refuses connections")
            ]
        return [
            ClusterState("demo", bootstrap, "127.0.0.1:19092", "8HNQ3TRVS2mPL9JdtzzJNw", True, nodes=nodes)
        ]

    async def refresh(self) -> None:
        pass

    def counters(self) -> Stats:
        return self.stats

    def workers(self) -> WorkerCounts:
        return WorkerCounts(2, 1, {1: usage(STARTED_AT)})

    def in_flight(self) -> dict[tuple[str, str], int]:
        return {("demo", "1"): 3, ("demo", "2"): 2, ("demo", "3"): 2}

    def rule_states(self) -> list[RuleState]:
        return [RuleState("refuse-orders", 40, 3, 1)]

    def rule_counts(self) -> RuleCounts:
        return RuleCounts(2, 1, 1, True)

    def frames_paused(self) -> int:
        return 4

    def certificates(self) -> list[Certificate]:
        return [Certificate("demo", "clients", STARTED_AT + 30 * 86400)]

    def config_rejected(self) -> bool | None:
        return False

    def draining(self) -> bool:
        return False

    def audit_dropped(self) -> int:
        return 3

    def log_dropped(self) -> int:
        return 0

    def capture_state(self) -> Capture | None:
        return self.capture


def answer(state: FakeState) -> dict[str, Any]:
    """The answer of /v1/counters, as a client reads it; the clock is that of the traffic."""
    read: dict[str, Any] = json.loads(msgspec.json.encode(as_json.counters(asyncio.run(take(state)))))
    return read | {"version": "0.1.0", "pid": 1, "now": STARTED_AT + state.seconds}


def of_many_clients(*names: str) -> FakeState:
    """Each gets one error, and the first names more: NOT_COORDINATOR of Heartbeat on the topics a to e."""
    state = FakeState()
    for place, name in enumerate(names):
        state.stats.of_requests("demo", "1", name, "Heartbeat", 4).errors[16] = len(names) - place
    for topic in "abcde":
        state.stats.of_topic("demo", topic, "Heartbeat").errors[16] = 1
    return state


def two_answers() -> tuple[dict[str, Any], dict[str, Any]]:
    """Five seconds apart, the first after 25 seconds."""
    state = FakeState()
    state.run(25)
    previous = answer(state)
    state.run(5)
    return previous, answer(state)
