"""/v1/exchanges: what is chosen, what cannot be, and answers in a layout that was not asked for."""

from __future__ import annotations

import re

import pytest

from klamm.client import Refused
from tests.fakes.waiting import on_uvloop
from tests.proxy.admin.admin_api import api


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("acsk == 1", 'unknown field "acsk" (column 1); did you mean acks?'),
        ("acks ==", "column"),
        ("topic == 3", 'topic is text: write "3" (column 1)'),
    ],
)
@on_uvloop
async def test_what_can_never_hold_is_refused_and_nothing_is_kept_for_it(where: str, message: str) -> None:
    async with api() as it:
        with pytest.raises(Refused, match=re.escape(message)) as no:
            await it.klamm.exchanges(where)
        assert (no.value.status, no.value.mistakes[0].path) == (422, "where")
        assert it.control.recorder is None


@on_uvloop
async def test_an_answer_that_refuses_its_version_is_told_with_its_error_and_its_fields() -> None:
    async with api() as it:
        it.brokers[0].cluster.versions["ApiVersions"] = (0, 2)
        await it.klamm.exchanges(bodies=True)
        client = await it.edge.client()
        client.send("ApiVersions", 4, {"client_software_name": "app", "client_software_version": "1"})
        await client.frame()
        (found,) = (await it.klamm.exchanges("error == UNSUPPORTED_VERSION")).exchanges
        assert (found.version, found.errors) == (4, {"UNSUPPORTED_VERSION": 1})
        whole = await it.klamm.exchange(found.id)
        assert whole.request is not None
        assert whole.request.values == {"client_software_name": "app", "client_software_version": "1"}
        assert whole.response is not None
        own = {"api_key": 18, "min_version": 0, "max_version": 2}
        assert whole.response.values == {"error_code": 35, "api_keys": [own]}


@on_uvloop
async def test_sizes_are_those_of_the_wire_where_the_client_id_is_not_utf_8() -> None:
    async with api() as it:
        await it.klamm.exchanges(bodies=True)
        client = await it.edge.client(1)
        frame = b"\0\x0c\0\4\0\0\0\1\0\3\xff\xfe\xfd\0\2g\0\0\0\0\1\0\0"
        client.transport.write(len(frame).to_bytes(4, "big") + frame)
        answer = await client.frame()
        (found,) = (await it.klamm.exchanges()).exchanges
        assert (found.request_bytes, found.response_bytes) == (4 + len(frame), len(answer))
