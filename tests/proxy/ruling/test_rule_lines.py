"""Lines of rules in the log: one for each hit of `log`, and warnings of `require` beside it."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from klamm.proxy.log.event_log import EventLog
from tests.fakes.edge import Edge, cluster
from tests.fakes.waiting import on_uvloop

BEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}
RULES = """
  - {name: one, api: Heartbeat, log: first}
  - {name: two, api: Heartbeat, log: second}
  - {name: policy, api: Heartbeat, require: {client_id: team-*}}
"""


def logging(edge: Edge, clock: Callable[[], float]) -> Callable[[], list[dict[str, Any]]]:
    """A real log from now on; what it has written, once it is closed."""
    output = io.BytesIO()
    log = EventLog(output, clock=clock)
    edge.proxied.log = edge.proxied.problems.log = log

    def lines() -> list[dict[str, Any]]:
        log.close()
        return [json.loads(line) for line in output.getvalue().splitlines()]

    return lines


@on_uvloop
async def test_each_hit_of_each_rule_that_logs_is_a_line_with_the_rules_name() -> None:
    async with cluster() as (edge, _):
        lines = logging(edge, lambda: 1_700_000_000.0)
        edge.rule(RULES)
        client = await edge.client()
        for _ in range(10):
            await client.ask("Heartbeat", 3, BEAT)
        found = lines()
    seen = [line for line in found if line["event"] == "rule"]
    assert Counter((line["rule"], line["message"]) for line in seen) == {
        ("one", "first"): 10,
        ("two", "second"): 10,
    }
    assert {(line["level"], line["api"], line["version"]) for line in seen} == {("info", "Heartbeat", 3)}
    refused = [line for line in found if line["event"] == "rule_refused"]
    assert [(line.get("rule"), line["level"], line.get("suppressed")) for line in refused] == [
        ("policy", "warning", None),
        ("policy", "warning", 9),  # at the end of the log
    ]
