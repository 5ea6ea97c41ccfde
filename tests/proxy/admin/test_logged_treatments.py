"""The log's lines of exchanges on which rules acted."""

from __future__ import annotations

import json

import pytest

from klamm.proxy.log.lines import EXCHANGE, Entry, console_line, json_line
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.admin.admin_api import api
from tests.proxy.admin.test_admin_live import BEAT
from tests.proxy.admin.test_admin_treatments import FATES


@pytest.mark.parametrize("case", FATES)
@on_uvloop
async def test_the_log_tells_what_became_of_an_exchange(case: str) -> None:
    rule, fates, end = FATES[case]
    async with api() as it:
        it.control.exchanges.observe("full", frozenset({"Heartbeat"}))
        await it.klamm.add_rule({"name": "x", "api": "Heartbeat", **rule})
        client = await it.edge.client()
        client.send("Heartbeat", 3, BEAT)
        await eventually(lambda: it.log.exchanges)
        entry = Entry(1.0, EXCHANGE, "info", "", it.log.exchanges[0])
        told = json.loads(json_line(entry))
        assert (told["rules"], told.get("fates", {})) == (["x"], fates)
        assert told["origin"] == ("klamm" if fates.get("response") in ("made", "rewritten") else "broker")
        assert not {"treatments", "withheld"} & told.keys()
        assert console_line(entry, False).decode().rstrip().endswith(end)
        if "delay" in rule:
            assert told["response_delay_ms"] == 1
