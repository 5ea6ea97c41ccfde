"""A report as a test tells it, with names that clients of bad manners have."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pyspark.sql import DataFrame

from klamm.pipeline.detectors.detector import Detector
from klamm.pipeline.detectors.finding import Evidence, Finding, Findings, jobs_at_once
from klamm.pipeline.report.gathering import (
    Client,
    Errors,
    EvidenceExchange,
    Latency,
    Moment,
    S,
    Size,
    Traffic,
    gather,
    place,
)
from klamm.pipeline.report.gathering_groups import ConsumerGroup, Member
from klamm.pipeline.report.report import Report
from klamm.pipeline.tables import Tables

START_US = 1_795_276_800 * S  # 2026-11-21 16:00:00 UTC
SCRIPT = "<script>document.title = 'broken in'</script>"
IMAGE = "<img src=http://192.0.2.1/x onerror=alert(1)>"
LINK = "<a href='http://192.0.2.1/'>click</a>"
TURNED = "app\u202egnp.exe\x1b[31m"
NAMES = ("billing", SCRIPT, LINK, TURNED, None)
SEEN = EvidenceExchange(
    "Produce", 9, SCRIPT, "2", START_US + 5_004_321, 512, 88, 4.321, (IMAGE,), ("NOT_LEADER_OR_FOLLOWER",)
)


def summed_up(tables: Tables, exchanges: DataFrame, plots: bool = True) -> Traffic:
    with jobs_at_once() as pool:
        traffic, jobs = gather(pool, tables, exchanges, plots)
        for job in jobs:
            job.result()
        return traffic


def detector(name: str, **values: Any) -> Detector:
    fields: dict[str, Any] = {
        "title": f"Title of {name}",
        "severity": "high",
        "settings": ("linger.ms", "batch.size"),
        "advice": f"Advice of {name}.",
        "find": None,
        "source": "a test",
    }
    return Detector(name, **(fields | values))


def finding(name: str = "tiny_batches", **values: Any) -> Finding:
    fields: dict[str, Any] = {
        "detector": name,
        "severity": "medium",
        "cluster": "kafka",
        "client_id": "billing",
        "subject": None,
        "first_us": START_US + 5 * S,
        "last_us": START_US + 50 * S,
        "count": 512,
        "what": "512 batches of one record",
        "evidence": (Evidence(START_US + 5 * S, "run", 3, 7),),
    }
    return Finding(**(fields | values))


def traffic() -> Traffic:
    """A minute of three clients' Produce and Fetch at two brokers."""
    found = Traffic(
        captures=1,
        first_us=START_US,
        last_us=START_US + 60 * S,
        step_us=S,
        exchanges=1200,
        unanswered=2,
        connections=6,
        clients=len(NAMES),
        request_bytes=123_456,
        response_bytes=7_654_321,
        errors=33,
        lost=12,
        brokers=[("kafka", "1"), ("kafka", "2")],
        problems=Counter({"the disk is slow": 2}),
        damaged=["capture/a.arrow: damaged, 3 of 9 rows were read"],
    )
    for second in range(60):
        for api, ms in (("Produce", 4.0), ("Fetch", 400.0)):
            found.series.append(Moment(START_US + second * S, api, 10, 1000, 60_000, ms, ms * 3))
    found.error_series = [Errors(START_US + 9 * S, "NOT_LEADER_OR_FOLLOWER", 33)]
    for api, ms in (("Produce", 4.0), ("Fetch", 400.0)):
        for at in ((None, None), *found.brokers):
            found.latencies.append(Latency(api, *at, 300, (ms, ms * 2, ms * 3, ms * 4), ms * 5))
    found.top_clients = [
        Client(name, "librdkafka 2.6.0", 2, 400, 1000, 2000, 3, {"Produce": 400}, {"Produce": 9})
        for name in NAMES
    ]
    lag = tuple((START_US + second * S, 10 * second) for second in range(60))
    own = ("kafka", "classic", ("billing", SCRIPT), 14, (START_US + 5 * S, START_US + 9 * S))
    members = (
        Member(
            "billing", "billing-1", START_US, START_US + 60 * S, 30, tuple(f"orders-{n}" for n in range(24))
        ),
        Member(SCRIPT, IMAGE, START_US, START_US + 9 * S, None, (LINK,)),
    )
    found.groups = [
        ConsumerGroup(own[0], name, *own[1:], lag if name == "billing" else (), members)  # type: ignore[arg-type]
        for name in ("billing", IMAGE)
    ]
    found.sizes = [
        Size(api, side, 8, 600) for api in ("Produce", "Fetch") for side in ("request", "response")
    ]
    return found


def busy() -> Traffic:
    """With as many APIs, errors, sizes and brokers as fill the plots."""
    found = traffic()
    apis = [
        *("Produce", "Fetch", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "OffsetCommit", "JoinGroup"),
        *("AddPartitionsToTxn", "FindCoordinator"),
    ]
    names = ["NOT_LEADER_OR_FOLLOWER", "CONCURRENT_TRANSACTIONS", "SASL_AUTHENTICATION_FAILED"]
    found.brokers = [("kafka", "1"), ("kafka-sasl", "bootstrap"), ("kafka", "bootstrap")]
    found.series = [
        Moment(START_US + second * S, api, 10, 1000, 60_000, 3.0, 9.0 * (1 + at))
        for second in range(60)
        for at, api in enumerate(apis)
    ]
    found.error_series = [Errors(START_US + 9 * S + at * S, name, 33) for at, name in enumerate(names)]
    found.latencies = [
        Latency(api, *at, 300, (1.0, 20.0, 303.0, 404.0), 5050.0)
        for api in apis
        for at in ((None, None), *found.brokers)
    ]
    found.top_clients = [
        one._replace(apis=dict.fromkeys(apis, 400), versions=dict.fromkeys(apis, 1))
        for one in found.top_clients
    ]
    found.sizes = [
        Size(api, side, exponent, 600)
        for api in apis
        for side in ("request", "response")
        for exponent in range(3, 20)
    ]
    return found


def report(**values: Any) -> Report:
    """Findings of all severities, about names that are hostile too."""
    found = Findings(
        [
            finding(
                "stale_leader",
                severity="high",
                client_id=SCRIPT,
                subject=f"topic {IMAGE}",
                what=f"sends {IMAGE}",
            ),
            finding(),
            finding(client_id=TURNED, count=3),
            finding("consumer_lag", subject="group billing", client_id="reader", what="its lag grew"),
            finding(
                "client_ids", severity="low", client_id=None, evidence=(Evidence(START_US, "run", 9, None),)
            ),
        ],
        Counter(tiny_batches=4),
        {"uneven_assignment": "[DIVIDE_BY_ZERO] Division by zero"},
    )
    detectors = [
        detector(name)
        for name in (
            *("stale_leader", "tiny_batches", "consumer_lag", "client_ids", "uneven_assignment", "no_acks"),
        )
    ]
    exchanges_shown = {place(Evidence(START_US + 5 * S, "run", 3, 7)): SEEN}
    fields: dict[str, Any] = {
        "captures": ["capture/"],
        "traffic": traffic(),
        "findings": found,
        "detectors": detectors,
    }
    return Report(**(fields | {"evidence_exchanges": exchanges_shown} | values))
