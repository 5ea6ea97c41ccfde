"""A report as a test tells it, with names that clients of bad manners have."""

from __future__ import annotations

from collections import Counter
from typing import Any

from klamm.pipeline.detectors.detector import Detector
from klamm.pipeline.finding import Evidence, Finding, Findings
from klamm.pipeline.report.gathering import Client, Errors, Latency, Moment, S, Shown, Size, Traffic, place
from klamm.pipeline.report.report import Report

START_US = 1_795_276_800 * S  # 2026-11-21 16:00:00 UTC
SCRIPT = "<script>document.title = 'broken in'</script>"
IMAGE = "<img src=http://192.0.2.1/x onerror=alert(1)>"
LINK = "<a href='http://192.0.2.1/'>click</a>"
TURNED = "app\u202egnp.exe\x1b[31m"
NAMES = ("billing", SCRIPT, LINK, TURNED, None)
SEEN = Shown(
    "Produce", 9, SCRIPT, "2", START_US + 5_004_321, 512, 88, 4.321, (IMAGE,), ("NOT_LEADER_OR_FOLLOWER",)
)


def detector(name: str, **values: Any) -> Detector:
    said: dict[str, Any] = {
        "title": f"Title of {name}",
        "severity": "high",
        "settings": ("linger.ms", "batch.size"),
        "advice": f"Advice of {name}.",
        "find": None,
        "source": "a test",
    }
    return Detector(name, **(said | values))


def finding(name: str = "tiny_batches", **values: Any) -> Finding:
    said: dict[str, Any] = {
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
    return Finding(**(said | values))


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
        Client(name, "librdkafka 2.6.0", 2, 400, 1000, 2000, 3, {"Produce": 400}) for name in NAMES
    ]
    found.sizes = [
        Size(api, side, 8, 600) for api in ("Produce", "Fetch") for side in ("request", "response")
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
            finding(
                "client_ids", severity="low", client_id=None, evidence=(Evidence(START_US, "run", 9, None),)
            ),
        ],
        Counter(tiny_batches=4),
        {"uneven_assignment": "[DIVIDE_BY_ZERO] Division by zero"},
    )
    detectors = [
        detector(name)
        for name in ("stale_leader", "tiny_batches", "client_ids", "uneven_assignment", "no_acks")
    ]
    shown = {place(Evidence(START_US + 5 * S, "run", 3, 7)): SEEN}
    said: dict[str, Any] = {
        "captures": ["capture/"],
        "traffic": traffic(),
        "findings": found,
        "detectors": detectors,
    }
    return Report(**(said | {"shown": shown} | values))
