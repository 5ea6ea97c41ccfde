"""Captures of what goes through klamm: begun and ended while it runs, and what is in them then."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from klamm.captures.captured import Captured
from klamm.captures.storage.reading import read
from klamm.captures.storage.segments import Origin
from klamm.captures.storage.writing import Limits, Writer
from klamm.client import Refused
from klamm.decoders import API, decode
from klamm.decoders.headers import read_request_header, request_header_version
from klamm.decoders.records import Batch, Record, write
from klamm.proxy import config
from klamm.proxy.config_types import Bytes, Folder, InputFile, Seconds
from klamm.proxy.control import capturing
from tests.fakes.edge import Lines
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.admin.admin_api import Api, api
from tests.proxy.faulty import FETCH, produced, serves

BEAT = {"group_id": "g"}


def frames(folder: Path) -> list[Captured]:
    """Of a capture that nothing is wrong with."""
    reading = read([folder])
    found = [row for row in reading if row.kind == "frame"]
    assert reading.problems == []
    return found


def group_of(row: Captured, forwarded: bool = False) -> Any:
    data = row.forwarded if forwarded else row.frame
    assert data is not None
    header = read_request_header(data, request_header_version(API[row.api_key], row.api_version))
    return decode(data[header.size :], row.api_key, row.api_version, "request")["group_id"]


async def ended(it: Api, folder: Path) -> list[Captured]:
    await it.klamm.end_capture()
    return frames(folder)


@on_uvloop
async def test_what_goes_through_is_in_a_capture_once_and_in_order(tmp_path: Path) -> None:
    async with api() as it:
        begun = await it.klamm.begin_capture(str(tmp_path / "new"), "keep")
        assert (begun.folder, begun.records, begun.filter) == (str(tmp_path / "new"), "keep", None)
        client = await it.edge.client(1)
        serves(it.brokers[0], b"batch" * 100)
        await client.ask("Heartbeat", 4, BEAT)
        await client.ask("Fetch", 12, FETCH)
        client.send("Produce", 9, {**produced(b"x"), "acks": 0})
        await it.brokers[0].asked("Produce")
        found = await ended(it, tmp_path / "new")
        assert [(row.api_key, row.side, row.exchange) for row in found] == [
            (12, "request", 0), (12, "response", 0), (1, "request", 1), (1, "response", 1), (0, "request", 2),
        ]  # fmt: skip
        assert [row.awaits for row in found if row.side == "request"] == [True, True, False]
        assert {row.fate for row in found} == {"passed"}
        assert all(row.connection is not None and row.connection.broker == "1" for row in found)
        assert b"batch" * 100 in (found[3].frame or b"")


@on_uvloop
async def test_the_order_holds_where_the_time_of_day_is_set_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with api() as it:
        await it.klamm.begin_capture(str(tmp_path))
        hour_later = time.time_ns() + 3600 * 10**9
        monkeypatch.setattr("time.time_ns", lambda: hour_later)
        client = await it.edge.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        client.transport.close()
        await it.edge.empty()
        await it.klamm.end_capture()
    kinds = [row.kind for row in read([tmp_path]) if row.connection is not None]
    assert kinds == ["opened", "frame", "frame", "closed"]


@on_uvloop
async def test_of_records_only_the_size_is_kept_where_nothing_else_is_wished(tmp_path: Path) -> None:
    async with api() as it:
        await it.klamm.begin_capture(str(tmp_path))
        client = await it.edge.client(1)
        client.send("Produce", 9, produced(b"a secret of some customer"))
        await client.answer("Produce", 9)
        found = await ended(it, tmp_path)
        assert found[0].size > 25
    assert b"customer" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())  # noqa: ASYNC240


@on_uvloop
async def test_what_klamm_changed_is_there_in_both_forms(tmp_path: Path) -> None:
    async with api() as it:
        await it.klamm.begin_capture(str(tmp_path))
        await it.klamm.add_rule({"api": "Heartbeat", "set": {"group_id": "another"}, "times": 1})
        await it.klamm.add_rule({"api": "Heartbeat", "error": 27, "from": "0s", "nth": 2})
        client = await it.edge.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        assert (await client.ask("Heartbeat", 4, BEAT))["error_code"] == 27
        await client.ask("Metadata", 12, {})
        set_, _, refused, made, _, metadata = await ended(it, tmp_path)
        assert (set_.fate, group_of(set_), group_of(set_, forwarded=True)) == ("rewritten", "g", "another")
        assert (refused.fate, refused.forwarded) == ("withheld", None)
        assert (made.fate, made.side, made.exchange) == ("made", "response", refused.exchange)
        assert metadata.fate == "rewritten"
        assert metadata.forwarded is not None
        assert metadata.forwarded != metadata.frame


@on_uvloop
async def test_an_answer_of_klamms_own_took_as_long_as_it_waited_and_no_time_live(tmp_path: Path) -> None:
    async with api() as it:
        await it.klamm.begin_capture(str(tmp_path))
        await it.klamm.exchanges()  # they are kept from now on
        await it.klamm.add_rule({"api": "Heartbeat", "delay": "30ms", "error": 27})
        client = await it.edge.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        (told,) = (await it.klamm.exchanges()).exchanges
        assert (told.origin, told.latency_ms, told.response_delay_ms) == ("klamm", 0, 30)
        request, answer = await ended(it, tmp_path)
        assert (answer.time_ns - request.time_ns) / 1e6 >= 30


@on_uvloop
async def test_the_throttle_time_that_a_request_waits_for_is_in_its_latency_in_captures_only(
    tmp_path: Path,
) -> None:
    async with api() as it:
        await it.klamm.begin_capture(str(tmp_path))
        await it.klamm.exchanges()  # they are kept from now on
        await it.klamm.add_rule({"api": "Heartbeat", "throttle": "50ms"})
        client = await it.edge.client(1)
        for _ in range(2):  # written together, so that klamm has the second before it mutes the connection
            client.send("Heartbeat", 4, BEAT)
        for _ in range(2):
            await client.answer("Heartbeat", 4)
        told = (await it.klamm.exchanges()).exchanges[-1]
        *_, request, answer = await ended(it, tmp_path)
        assert told.latency_ms is not None
        took_ms = (answer.time_ns - request.time_ns) / 1e6
        assert took_ms - told.latency_ms > 45  # uvloop's timers count whole ms of its own, coarser clock


@on_uvloop
async def test_a_delayed_and_a_paused_frame_are_in_it_as_they_went(tmp_path: Path) -> None:
    async with api() as it:
        await it.klamm.begin_capture(str(tmp_path))
        await it.klamm.add_rule({"api": "Heartbeat", "delay": "20ms", "nth": 1})
        await it.klamm.add_rule({"api": "Heartbeat", "pause": "30s", "nth": 2})
        client = await it.edge.client(1)
        for _ in range(3):
            client.send("Heartbeat", 4, BEAT)
        await eventually(lambda: it.control.intercept.waiting)
        (frame,) = await it.klamm.paused()
        await it.klamm.resolve(frame.id, values={"group_id": "edited"})
        for _ in range(3):
            await client.answer("Heartbeat", 4)
        found = await ended(it, tmp_path)
        asked = [row for row in found if row.side == "request"]
        assert [row.fate for row in asked] == ["passed", "rewritten", "passed"]
        assert group_of(asked[1], forwarded=True) == "edited"
        assert [row.exchange for row in found if row.side == "response"] == [0, 1, 2]


@on_uvloop
async def test_a_filter_keeps_only_its_exchanges(tmp_path: Path) -> None:
    async with api() as it:
        await it.klamm.begin_capture(str(tmp_path), filter='group_id == "g"')
        client = await it.edge.client(1)
        for group in ("other", "g", "third"):
            await client.ask("Heartbeat", 4, {"group_id": group})
        await client.ask("Fetch", 12, FETCH)
        assert [row.exchange for row in await ended(it, tmp_path)] == [1, 1]


@on_uvloop
async def test_a_rule_chooses_what_is_kept(tmp_path: Path) -> None:
    async with api() as it:
        await it.klamm.begin_capture(str(tmp_path), filter="False")
        await it.klamm.add_rule({"api": "Heartbeat", "capture": True, "nth": 2})
        await it.klamm.add_rule({"api": "Fetch", "side": "response", "capture": True})
        client = await it.edge.client(1)
        for _ in range(3):
            await client.ask("Heartbeat", 4, BEAT)
        await client.ask("Fetch", 12, FETCH)
        found = await ended(it, tmp_path)
        assert [(row.exchange, row.side) for row in found] == [
            (1, "request"), (1, "response"), (3, "request"), (3, "response"),
        ]  # fmt: skip


@on_uvloop
async def test_a_rule_keeps_an_answer_that_waited_for_a_listener(tmp_path: Path) -> None:
    async with api() as it:
        await it.klamm.begin_capture(str(tmp_path), filter="False")
        await it.klamm.add_rule({"api": "Metadata", "side": "response", "capture": True})
        client = await it.edge.client(1)
        cluster = it.brokers[0].cluster
        cluster.nodes[9] = cluster.nodes[1]
        answer = await client.ask("Metadata", 12, {})
        assert {node["node_id"] for node in answer["brokers"]} == set(cluster.nodes)
        found = await ended(it, tmp_path)
        assert [(row.api_key, row.side) for row in found] == [(3, "request"), (3, "response")]


@on_uvloop
async def test_connections_that_were_there_before_are_taken_up(tmp_path: Path) -> None:
    async with api() as it:
        client = await it.edge.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        await it.klamm.begin_capture(str(tmp_path))
        for _ in range(4):
            await client.ask("Heartbeat", 4, BEAT)
        found = await ended(it, tmp_path)
        assert [(row.api_key, row.side) for row in found] == [(12, "request"), (12, "response")] * 4
        await client.ask("Heartbeat", 4, BEAT)
        assert len(frames(tmp_path)) == 8


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ({"folder": "/proc/klamm"}, "nothing can be captured into"),
        ({"folder": "x", "filter": "size >"}, "column"),
        ({"folder": "x", "filter": "no_such_field == 1"}, 'unknown field "no_such_field"'),
    ],
)
@on_uvloop
async def test_what_cannot_be_captured_is_said(wish: dict[str, Any], reason: str) -> None:
    async with api() as it:
        with pytest.raises(Refused, match=reason):
            await it.klamm.begin_capture(**wish)
        with pytest.raises(Refused, match="nothing is captured now"):
            await it.klamm.capture()


@on_uvloop
async def test_there_is_one_capture_at_a_time_and_its_counters_are_told(tmp_path: Path) -> None:
    async with api() as it:
        await it.klamm.begin_capture(str(tmp_path))
        with pytest.raises(Refused, match="runs: end it first"):
            await it.klamm.begin_capture(str(tmp_path / "second"))
        client = await it.edge.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        await eventually(lambda: it.control.captures().running.state().rows >= 3)
        capture_state = await it.klamm.capture()
        assert (capture_state.dropped_bytes, capture_state.lost_frames, capture_state.failures) == (0, 0, 0)


async def hashed(it: Api, folder: Path, key_file: Path | None) -> bytes:
    """The records of a Produce request, as a capture of their hashes has them."""
    key = None if key_file is None else InputFile(str(key_file))
    captures = it.control.captures()
    captures.made(config.Capture(Folder(str(folder)), records="hash", key_file=key))()
    client = await it.edge.client(1)
    batch = write(Batch(), [Record(0, value=b"secret")])
    before = len(it.brokers[0].requests("Produce"))
    client.send("Produce", 9, {**produced(batch), "acks": 0})
    await it.brokers[0].asked("Produce", before + 1)
    [row] = [row for row in await ended(it, folder) if row.api_key == 0]
    assert row.frame is not None
    assert b"secret" not in row.frame
    return row.frame[-40:]


@on_uvloop
async def test_hashes_of_two_captures_compare_where_a_file_holds_their_key(tmp_path: Path) -> None:
    async with api() as it:
        key = tmp_path / "key"
        key.write_bytes(b"k" * 32)
        first, second = [await hashed(it, tmp_path / name, key) for name in "ab"]
        third, fourth = [await hashed(it, tmp_path / name, None) for name in "cd"]
        assert first == second
        assert len({first, third, fourth}) == 3


@on_uvloop
async def test_the_settings_of_a_capture_are_the_limits_of_its_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Limits] = []

    def writer(folder: Path, origin: Origin, limits: Limits) -> Writer:
        given.append(limits)
        return Writer(folder, origin, limits)

    monkeypatch.setattr(capturing, "Writer", writer)
    folder = Folder(str(tmp_path / "new"))
    sizes, ages = (Bytes(1), Bytes(3)), (Seconds(2), Seconds(4))
    settings = config.Capture(folder, None, "blank", None, sizes[0], ages[0], sizes[1], ages[1])
    capturing.Capturing(settings, Lines())  # type: ignore[arg-type]
    assert given == [Limits(segment_bytes=1, segment_s=2, keep_bytes=3, keep_s=4)]
    assert (tmp_path / "new").is_dir()
