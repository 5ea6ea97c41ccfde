"""A secret that a person writes into a paused frame: it goes to the broker, and into no log."""

from __future__ import annotations

from base64 import b64encode

from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.admin.admin_api import api

PASSWORD = b"\0alice\0planted-password"


@on_uvloop
async def test_the_log_has_the_names_of_edited_fields_only() -> None:
    async with api() as it:
        client = await it.edge.client(1)
        await it.klamm.add_rule({"api": "SaslAuthenticate", "pause": "30s"})
        client.send("SaslAuthenticate", 2, {"auth_bytes": b"\0alice\0before"})
        await eventually(lambda: it.control.intercept.waiting)
        (one,) = await it.klamm.paused()
        await it.klamm.resolve(one.id, values={"auth_bytes": b64encode(PASSWORD).decode()})
        (asked,) = await it.brokers[0].asked("SaslAuthenticate")
        assert asked.values["auth_bytes"] == PASSWORD
        sent = [line.fields["sent"] for line in it.log.of("changed") if "/paused/" in line.message]
        assert sent == [{"action": "resume", "code": None, "values": ["auth_bytes"]}]
        assert b64encode(PASSWORD).decode() not in str(it.log.lines)
