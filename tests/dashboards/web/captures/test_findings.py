"""Findings of `klamm analyze` as the page has them."""

from __future__ import annotations

from typing import Any

import pytest

from klamm.captures.choosing import chosen
from klamm.captures.exchanges import exchanges
from klamm.dashboards.web.captures.findings import Finding, findings
from klamm.rules.expressions import parse
from tests.captures.rows import Talk

EVIDENCE = {
    "time": 15.0,
    "capture": "run",
    "connection": 3,
    "exchange": 7,
    "where": 'client_id == "app" and api == Fetch',
    "since": 15.499999,
    "until": 15.500002,
    "show": "klamm show capture/ ...",
}
TOLD = {
    "detector": "tiny_batches",
    "title": "Tiny batches",
    "severity": "medium",
    "cluster": "main",
    "client_id": "app",
    "subject": None,
    "first": 10.0,
    "last": 20.0,
    "count": 5,
    "what": "sent tiny batches",
    "advice": "Wait.",
    "settings": ["linger.ms"],
    "evidence": [EVIDENCE],
}


def one(**values: Any) -> Finding:
    (found,) = findings({"findings": [TOLD | values]})
    return found


def test_a_finding_has_all_that_the_analysis_tells_of_it() -> None:
    found = one()
    assert (found.severity, found.title, found.detector) == ("medium", "Tiny batches", "tiny_batches")
    assert (found.what, found.count, found.advice, found.settings) == (
        "sent tiny batches", 5, "Wait.", ["linger.ms"],
    )  # fmt: skip
    assert (found.clients, found.groups, found.topics, found.where) == (["app"], [], [], 'client_id == "app"')
    (evidence,) = found.evidence
    assert (evidence.where, evidence.since, evidence.until) == (EVIDENCE["where"], 15.499999, 15.500002)
    assert evidence.show == EVIDENCE["show"]


def test_its_time_has_its_evidence_in_it() -> None:
    assert (one().since, one().until) == (10.0, 20.000001)
    late = EVIDENCE | {"since": 9.5, "until": 25.0}
    assert (one(evidence=[late]).since, one(evidence=[late]).until) == (9.5, 25.0)
    open_ended = EVIDENCE | {"time": 30.0, "until": None}
    assert one(evidence=[EVIDENCE, open_ended]).until == pytest.approx(30.000001)
    assert (one(evidence=[]).since, one(evidence=[]).until) == (10.0, 20.000001)


@pytest.mark.parametrize(
    ("subject", "about", "condition"),
    [
        ("group billing", {"groups": ["billing"]}, 'group == "billing"'),
        ("topic orders", {"topics": ["orders"]}, 'topic == "orders"'),
        ("partition orders-2-3", {"topics": ["orders-2"]}, 'topic == "orders-2" and partition == 3'),
        ("broker 2", {"brokers": ["2"]}, 'broker == "2"'),
        ("transactional id tx-1", {}, 'transactional_id == "tx-1"'),
        ("Produce INVALID_RECORD", {}, "api == Produce and error == INVALID_RECORD"),
        ("something else", {}, None),
    ],
)
def test_the_subject_becomes_a_condition(
    subject: str, about: dict[str, list[str]], condition: str | None
) -> None:
    found = one(client_id=None, subject=subject)
    assert found.where == condition
    named = {name: getattr(found, name) for name in ("clients", "groups", "topics", "brokers")}
    assert {name: names for name, names in named.items() if names} == about
    both = one(subject=subject).where
    assert both == " and ".join(filter(None, ['client_id == "app"', condition]))
    parse(both).apis()


@pytest.mark.parametrize("name", ['a "quoted" one', "back\\slash", "émoji 🎈", "line\nend", "<script>"])
def test_names_that_clients_chose_stay_names(name: str) -> None:
    where = parse(one(client_id=name, subject=f"topic {name}").where or "")
    for client, topic in ((name, name), (name, "orders"), ("app", name)):
        (framed,) = chosen(exchanges(Talk(client_id=client).produce(topic).rows))
        assert where.holds(framed.request, framed.response) == (client == topic)
