"""Brokers that close the connection instead of answering do so through klamm too, and the log tells of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.brokers.kraft import Cluster
from tests.e2e.conversation import Conversation
from tests.e2e.klamm_process import klamm_in_front_of

pytestmark = pytest.mark.brokers


class Asked(NamedTuple):
    """A request that Kafka 4 ends the connection on, the listener that it is sent to, and the reason told."""

    listener: str
    api: str
    version: int
    values: dict[str, Any]
    why: str


REFUSED = {
    "a version that Kafka 4 has dropped": Asked(
        "PLAINTEXT",
        "Produce",
        2,
        {"acks": 1, "topic_data": []},
        "it has answered no such request of this client",
    ),
    "a request before SASL": Asked(
        "SASL_PLAINTEXT",
        "Metadata",
        12,
        {"topics": []},
        "the cluster wants SASL, and the client has not sent",
    ),
}


@pytest.mark.parametrize("asked", REFUSED.values(), ids=REFUSED)
def test_the_line_has_what_the_broker_was_asked(asked: Asked, kafka: Cluster, tmp_path: Path) -> None:
    direct, log = kafka.bootstrap(asked.listener), tmp_path / "klamm.log"
    host, port = direct.split(",")[0].rsplit(":", 1)
    with klamm_in_front_of(direct, "127.0.0.1", log, ready=False) as klamm:
        klamm.wait_until_listening()
        for address in ((host, int(port)), klamm.address):
            with Conversation(address) as conversation, pytest.raises(EOFError):
                conversation.ask(asked.api, asked.version, asked.values)
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    [line] = [line for line in lines if line["event"] == "closed_unanswered"]
    start = f"the broker closed the connection instead of answering {asked.api} v{asked.version}: "
    assert line["message"].startswith(f"{start}{asked.why}")
    assert (line["api"], line["version"], line["client_id"]) == (asked.api, asked.version, "by-hand")
