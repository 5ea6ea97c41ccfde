"""Whatever clients and brokers send, a timeline goes on, and what it tells is short."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.client.types import Body, Exchange
from klamm.dashboards.web.lanes.marks import Lane
from klamm.dashboards.web.lanes.reading import Timeline
from klamm.dashboards.web.lanes.timelines import TIMELINES
from klamm.dashboards.web.lines import line
from klamm.dashboards.web.source import Found
from klamm.decoders import API, encode
from klamm.proxy.admin.listening.json_bodies import encoded
from klamm.rules.expressions import parse
from tests.dashboards.web.lanes.made import START, Client, Sheet

READ = {
    name: sorted(make().readers)  # the APIs of each timeline
    for name, (make, _) in TIMELINES.items()
}  # fmt: skip
LONG = "<script>" + "x\udcff" * 12_000


def raw(data: bytes) -> Body:
    return Body(len(data), raw=b64encode(data).decode())


def exchange(api: str, version: int, request: Body | None, response: Body | None) -> Exchange:
    return Exchange(
        START, "kafka", "1", "10.0.0.7:5", api, version, "app", "broker", 1, 1, 1.0,
        request=request, response=response,
    )  # fmt: skip


@st.composite
def hostile(draw: st.DrawFn, name: str) -> Exchange:
    """Bytes that fit nothing, or half of a body that fits."""
    api = API[draw(st.sampled_from(READ[name]))]
    version = draw(st.integers(api.versions.first, api.versions.last))
    halves = []
    for side in ("request", "response"):
        data = draw(st.binary(max_size=80))
        if draw(st.booleans()):
            data = encode({}, api.key, version, side) + data
            data = data[: draw(st.integers(0, len(data)))]
        halves.append(draw(st.sampled_from([raw(data), None, Body(9, reason="only its size was kept")])))
    return exchange(api.name, version, *halves)


@pytest.mark.parametrize("name", TIMELINES)
@given(st.data())
def test_bytes_that_fit_nothing_end_no_timeline(name: str, data: st.DataObject) -> None:
    make, _ = TIMELINES[name]
    timeline: Timeline = make()
    for number in range(data.draw(st.integers(1, 6))):
        one = data.draw(hostile(name))
        items = line(Found([(f"k{number}", one)]), timeline).get("marks", [])
        assert len(encoded(items)) < 20_000
        assert all(item.end >= item.begin for item in items if not isinstance(item, Lane))


@pytest.mark.parametrize("name", TIMELINES)
@pytest.mark.parametrize("body", [None, Body(9, reason="only its size was kept"), raw(b"\xff" * 3)])
def test_what_cannot_be_read_has_a_mark_that_says_so(name: str, body: Body | None) -> None:
    make, _ = TIMELINES[name]
    apis = [api for api in READ[name] if api != "Metadata"]
    for api in apis:
        sheet = Sheet(make(), [exchange(api, API[api].versions.last, body, body)])
        assert sheet.one("unread").text.startswith(f"{api}: ")
        assert sheet.one("unread").key == "k0"


def test_an_unknown_version_or_api_is_no_failure() -> None:
    for make, _ in TIMELINES.values():
        for api in ("Heartbeat", "Fetch", "EndTxn", "API key 999"):
            sheet = Sheet(make(), [exchange(api, 999, raw(b"abc"), raw(b"abc"))])
            assert len(sheet.marks) <= 1


NAME = LONG[:30_000]
JOIN = {
    "group_id": NAME, "session_timeout_ms": 1, "member_id": NAME, "group_instance_id": NAME, "reason": NAME,
    "protocol_type": "consumer", "protocols": [{"name": NAME, "metadata": b"\0"}] * 50,
}  # fmt: skip
JOINED = {
    "error_code": 0, "generation_id": 1, "leader": "x", "protocol_name": NAME, "member_id": NAME,
    "members": [],
}  # fmt: skip
NEW = {"max_wait_ms": 1, "min_bytes": 1, "session_id": 0, "session_epoch": 0}
INIT = {"transactional_id": NAME, "transaction_timeout_ms": 1}
CASES = {
    "groups": Client(LONG).asks(1.0, "JoinGroup", 9, JOIN, JOINED),
    "producers": Client(LONG).asks(1.0, "InitProducerId", 4, INIT, {"producer_id": 1}),
    "sessions": Client(LONG).asks(1.0, "Fetch", 12, NEW, {"session_id": 5}),
}


@pytest.mark.parametrize("name", TIMELINES)
def test_names_of_any_length_and_bytes_are_told_briefly(name: str) -> None:
    make, _ = TIMELINES[name]
    sheet = Sheet(make(), [CASES[name], CASES[name]])
    assert len({member for _, member in sheet.lanes if member}) == 1
    items = [*sheet.lanes.values(), *sheet.marks]
    assert len(encoded(items)) < 20_000
    assert all(lane.where == "" for lane in sheet.lanes.values())


@pytest.mark.parametrize("name", TIMELINES)
def test_the_filters_of_lanes_are_expressions(name: str) -> None:
    make, where = TIMELINES[name]
    for asked in ("", 'client_id == "a" or error != NONE'):
        parse(where(asked)).apis()
    odd = 'a "quoted" \\ name'
    sheet = Sheet(
        make(),
        [
            Client(odd, 3).asks(
                1.0, "Heartbeat", 4, {"group_id": odd, "generation_id": 1, "member_id": odd}, {}
            ),
            Client(odd, 3).asks(1.0, "InitProducerId", 4, {"transactional_id": odd}, {"producer_id": 1}),
            Client(odd, 3).asks(1.0, "Fetch", 12, {"max_wait_ms": 1, "min_bytes": 1}, {"session_id": 5}),
            CASES[name],
        ],
    )
    filters = [lane.where for lane in sheet.lanes.values() if lane.where]
    assert filters
    for text in filters:
        parse(text).apis()
