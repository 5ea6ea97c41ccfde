"""The sealed segments of a capture, fetched over the admin API while traffic goes on."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from klamm.captures.storage.reading import read
from klamm.client import AsyncKlamm, Klamm, NoAnswer, Refused
from klamm.proxy.admin.api import capture_files
from klamm.proxy.config import Admin
from klamm.proxy.config_types import InputFile
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.admin.admin_api import Api, api, in_thread

BEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}
ARCHIVE = "/v1/capture/archive"


async def captured(it: Api, folder: Path, count: int = 5) -> None:
    """A capture with so many exchanges, which has ended."""
    await it.klamm.begin_capture(str(folder))
    client = await it.edge.client(1)
    for _ in range(count):
        await client.ask("Heartbeat", 4, BEAT)
    await it.klamm.end_capture()


async def fetched(klamm: AsyncKlamm) -> bytes:
    async with klamm.capture_archive() as pieces:
        return b"".join([piece async for piece in pieces])


def exchanges_in(data: bytes, into: Path) -> int:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        tar.extractall(into, filter="data")
    (folder,) = into.iterdir()
    return sum(row.side == "response" for row in read([folder]))


@on_uvloop
async def test_a_capture_that_has_ended_is_fetched_and_read_elsewhere(tmp_path: Path) -> None:
    async with api() as it:
        await captured(it, tmp_path / "traffic")
        found = await it.klamm.capture_segments()
        assert found.folder == str(tmp_path / "traffic")
        (segment,) = found.segments
        assert segment.bytes == (tmp_path / "traffic" / segment.name).stat().st_size
        data = await fetched(it.klamm)
    assert exchanges_in(data, tmp_path / "elsewhere") == 5


def test_the_client_that_blocks_gets_the_same(tmp_path: Path) -> None:
    with in_thread() as it:
        it.do(captured(it, tmp_path / "traffic"))
        klamm = Klamm(it.klamm.admin)
        assert klamm.capture_segments() == it.do(it.klamm.capture_segments())
        with klamm.capture_archive() as pieces:
            assert b"".join(pieces) == it.do(fetched(it.klamm))


@on_uvloop
async def test_where_there_is_nothing_to_fetch_the_reason_is_told(tmp_path: Path) -> None:
    async with api() as it:
        for ask in (it.klamm.capture_segments, lambda: fetched(it.klamm)):
            with pytest.raises(Refused, match="nothing was captured since klamm began") as no:
                await ask()
            assert no.value.status == 404
        await it.klamm.begin_capture(str(tmp_path / "traffic"))
        assert (await it.klamm.capture_segments()).segments == []
        with pytest.raises(Refused, match=r"no segment in .*traffic is sealed yet") as no:
            await fetched(it.klamm)
        assert no.value.status == 409


@on_uvloop
async def test_a_slow_reader_holds_up_no_traffic_and_a_second_one_waits_for_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with api() as it:
        await captured(it, tmp_path / "traffic")
        (segment,) = (await it.klamm.capture_segments()).segments
        with open(tmp_path / "traffic" / segment.name, "ab") as file:  # noqa: ASYNC230
            file.truncate(64 << 20)
        client = await it.edge.client(1)
        async with it.klamm.capture_archive() as pieces:
            assert await anext(pieces)
            assert it.control.archiving
            for _ in range(20):
                await client.ask("Heartbeat", 4, BEAT)
            with pytest.raises(Refused, match="somebody reads an archive now") as no:
                await fetched(it.klamm)
            assert no.value.status == 503
        await eventually(lambda: not it.control.archiving)
        monkeypatch.setattr(capture_files, "UNREAD_S", 0.05)
        async with it.klamm.capture_archive() as pieces:
            assert await anext(pieces)
            await eventually(lambda: not it.control.archiving)  # for it takes nothing
            with pytest.raises(NoAnswer):
                async for _ in pieces:
                    pass


@on_uvloop
async def test_a_disk_that_fails_ends_the_answer_as_one_that_is_not_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> Any:
        yield b"head"
        raise OSError("Input/output error")

    async with api() as it:
        await captured(it, tmp_path / "traffic")
        monkeypatch.setattr(capture_files, "pieces", failing)
        with pytest.raises(NoAnswer):
            await fetched(it.klamm)
        assert not it.control.archiving


class Told:
    """An audit log."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def event(self, event: str, outcome: str, **fields: Any) -> None:
        if event == "admin_request":
            self.events.append({"outcome": outcome, **fields})

    def of(self, path: str) -> list[tuple[str, str | None, int | None]]:
        return [(one["outcome"], one["role"], one["status"]) for one in self.events if one["path"] == path]


@on_uvloop
async def test_only_the_role_full_gets_an_archive_and_the_audit_log_tells_each(tmp_path: Path) -> None:
    (tmp_path / "full").write_text("all of it\n")
    (tmp_path / "viewer").write_text("to look\n")
    full, viewer_s = (InputFile(str(tmp_path / name)) for name in ("full", "viewer"))
    settings, told = Admin(token_file=full, read_only_token_file=viewer_s), Told()
    async with api("all of it", settings=settings, audit=told) as it:  # type: ignore[arg-type]
        await captured(it, tmp_path / "traffic")
        async with AsyncKlamm(it.klamm.admin, "to look") as viewer:
            assert (await viewer.capture_segments()).segments
            with pytest.raises(Refused, match="the read-only token may only read: the role full") as no:
                await fetched(viewer)
            assert no.value.status == 403
        assert await fetched(it.klamm)
        await eventually(lambda: len(told.of(ARCHIVE)) == 2)
        assert told.of(ARCHIVE) == [("refused", "read_only", 403), ("success", "full", 200)]
        assert told.of("/v1/capture/segments") == []
