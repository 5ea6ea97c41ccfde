"""The HTTP server, over a real socket on the loopback."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from klamm.proxy.admin.server import start
from klamm.proxy.metrics.snapshot import ClusterState
from tests.dashboards.fake_state import FakeState

Answer = tuple[int, str, str]  # status, content type, text
Get = Callable[[str], Awaitable[Answer]]


def serve(state: FakeState, check: Callable[[Get], Awaitable[None]]) -> None:
    async def run() -> None:
        admin = await start(state, "127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{admin.address.port}") as http:

                async def get(path: str) -> Answer:
                    async with http.get(path) as answer:
                        return answer.status, answer.headers["Content-Type"], await answer.text()

                await check(get)
        finally:
            await admin.close()

    asyncio.run(run())


def test_the_root_lists_the_endpoints_and_each_answers() -> None:
    async def check(get: Get) -> None:
        status, _, text = await get("/")
        paths = [word for word in text.split() if word.startswith("/")]
        assert status == 200
        assert paths == ["/metrics", "/healthz", "/readyz", "/v1/counters"]
        assert [(await get(path))[0] for path in paths] == [200] * 4

    serve(FakeState(), check)


def test_it_is_healthy_but_not_ready_while_a_cluster_is_missing() -> None:
    state = FakeState()
    state.ready = False

    async def check(get: Get) -> None:
        assert (await get("/healthz"))[0] == 200
        status, _, text = await get("/readyz")
        assert (status, text) == (503, "demo: kafka-1:9092 refuses connections\n")
        state.ready = True
        status, _, text = await get("/readyz")
        assert (status, text) == (200, "ready\n")

    serve(state, check)


def test_metrics_are_text_that_prometheus_reads() -> None:
    async def check(get: Get) -> None:
        status, content_type, text = await get("/metrics")
        assert (status, content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert "klamm_requests" in {family.name for family in text_string_to_metric_families(text)}

    serve(FakeState(), check)


class WithStrangeName(FakeState):
    """Of a cluster whose broker has a name that is no UTF-8."""

    def clusters(self) -> list[ClusterState]:
        return [replace(each, reason="kafk\udcff:9092 cannot be reached") for each in super().clusters()]


def test_counters_are_json_whatever_a_broker_is_called() -> None:
    async def check(get: Get) -> None:
        status, _, text = await get("/v1/counters")
        assert (status, json.loads(text)["clusters"][0]["reason"][:11]) == (200, r"kafk\udcff:")

    serve(WithStrangeName(), check)


def test_counters_are_json_with_every_lane_and_its_place() -> None:
    state = FakeState()
    state.run(10)

    async def check(get: Get) -> None:
        status, content_type, text = await get("/v1/counters")
        assert (status, content_type) == (200, "application/json")
        found = json.loads(text)
        assert found["clusters"][0] == {
            "name": "demo",
            "bootstrap": ["kafka-1:9092", "kafka-2:9092"],
            "listening": "127.0.0.1:19092",
            "cluster_id": "8HNQ3TRVS2mPL9JdtzzJNw",
            "ready": True,
            "named": False,
            "reason": "",
            "nodes": [
                {
                    "kind": "broker",
                    "node_id": n,
                    "upstream": f"kafka-{n}:9092",
                    "listening": f"127.0.0.1:{19092 + n}",
                    "up": n != 3,
                    "remembered": False,
                    "unbound": "",
                }
                for n in (1, 2, 3)
            ],
            "controllers_only": False,
            "sasl": None,
            "ends_sasl": False,
            "tls": False,
            "transparent": False,
            "found": False,
            "draining": False,
            "one_port": False,
            "state": "starting",
        }
        assert found["connections"][0] == {"cluster": "demo", "broker": "1", "open": 4, "opened": 6}
        assert found["in_flight"][0] == {"cluster": "demo", "broker": "1", "count": 3}
        assert found["closed"] == [{"cluster": "demo", "reason": "client closed", "count": 6}]
        assert found["software"][0] == {
            "cluster": "demo",
            "name": "librdkafka",
            "version": "2.16.0",
            "count": 9,
        }
        row = next(
            n
            for n in found["requests"]
            if (n["client_id"], n["api"], n["broker"]) == ("reporting", "Metadata", "1")
        )
        assert (row["requests"], row["responses"], row["one_way"]) == (10, 10, 0)
        assert found["unanswered"] == [
            {
                "cluster": "demo",
                "broker": "3",
                "api": "Fetch",
                "client_id": "billing-1",
                "reason": "reset by broker",
                "count": 2,
            }
        ]
        assert found["rule_counts"] == {"file": 2, "hand": 1, "without_end": 1, "file_rejected": True}
        assert found["frames_paused"] == 4
        assert (row["request_bytes"], row["response_bytes"]) == (800, 5_000)
        assert row["errors"] == {"UNKNOWN_TOPIC_OR_PARTITION": 10}
        assert sum(row["latency"]["buckets"]) == 10
        assert len(row["latency"]["buckets"]) == len(found["bounds_s"]) + 1
        assert len(row["own"]["buckets"]) == len(found["own_bounds_s"]) + 1
        topic = next(n for n in found["topics"] if n["topic"] == "no-such-topic")
        assert (topic["requests"], topic["errors"]) == (20, {"UNKNOWN_TOPIC_OR_PARTITION": 20})

    serve(state, check)


def test_scrapes_that_come_together_are_all_answered() -> None:
    state = FakeState()
    state.run(5)

    async def check(get: Get) -> None:
        answers = await asyncio.gather(*[get(path) for path in ("/metrics", "/v1/counters") * 5])
        assert [status for status, _, _ in answers] == [200] * 10

    serve(state, check)


def test_a_port_in_use_is_one_line_that_names_the_option() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError) as failure:
            asyncio.run(start(FakeState(), "127.0.0.1", port))
    assert failure.value.strerror == (
        f"cannot listen on 127.0.0.1:{port}: address already in use; choose another with --admin HOST:PORT"
    )


def test_a_host_that_is_not_ours_is_one_line_too() -> None:
    with pytest.raises(OSError) as failure:
        asyncio.run(start(FakeState(), "203.0.113.7", 19091))
    assert str(failure.value.strerror).startswith(
        "cannot listen on 203.0.113.7:19091: cannot assign requested address;"
    )


def test_after_close_nothing_listens() -> None:
    async def run() -> int:
        admin = await start(FakeState(), "127.0.0.1", 0)
        await admin.close()
        return admin.address.port

    port = asyncio.run(run())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)
