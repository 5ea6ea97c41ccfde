"""Files made of exchanges: they hold those of the list, in each form, and are bounded."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from klamm.captures.exchanges import exchanges
from klamm.captures.storage.reading import read
from klamm.dashboards.web.captured import Captures
from klamm.dashboards.web.captures import exporting, exports
from klamm.dashboards.web.captures.exporting import Exporting, Progress
from klamm.dashboards.web.captures.exports import Form, Made, TooLarge, Wanted, export
from tests.captures.packets.test_pcapng_back import back
from tests.captures.rows import START_NS, TOPIC_ID, Talk, connection, in_time, written

FORMS: tuple[Form, ...] = ("jsonl", "pcapng", "arrow")
SECRET = b"\0alice\0alice-secret"


@pytest.fixture
def source(tmp_path: Path) -> Captures:
    """Two clients; the one that fetches by topic id starts when the names have passed long ago."""
    shop = Talk(connection(1, client="10.0.0.7:1"), "shop").opened().metadata().produce(records=b"r" * 50)
    late = Talk(connection(2, client="10.0.0.8:2"), "late", now_ms=10_000).opened()
    late.fetch(took_ms=500).heartbeat(27).fetch().closed("closed by client")
    (tmp_path / "capture").mkdir()
    written(tmp_path / "capture" / "a.arrow", in_time(shop, late))
    return Captures([str(tmp_path / "capture")])


def made(source: Captures, folder: Path, form: Form, **wanted: Any) -> tuple[Made, Path]:
    path = folder / f"made.{form}"
    path.unlink(missing_ok=True)
    return export(source, Wanted(form, **wanted), path, lambda exchanges, size: None), path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_all_exchanges_are_in_each_form(source: Captures, tmp_path: Path) -> None:
    whole = list(exchanges(read(source.paths)))
    for form in FORMS:
        told, path = made(source, tmp_path, form)
        assert (told.exchanges, told.bytes, told.notes) == (5, path.stat().st_size, [])
    apis = ["Metadata", "Produce", "Fetch", "Heartbeat", "Fetch"]
    assert [one["api"] for one in lines(tmp_path / "made.jsonl")] == apis
    assert list(exchanges(read([tmp_path / "made.arrow"]))) == whole
    assert [row.kind for row in read([tmp_path / "made.arrow"])].count("opened") == 2
    packets = back(tmp_path / "made.pcapng")
    assert sum(row.kind == "frame" for row in packets) == 10


def test_a_filter_and_a_time_choose_as_they_do_for_the_list(source: Captures, tmp_path: Path) -> None:
    begin = START_NS / 1e9 + 10
    wanted = {"where": 'topic == "orders"', "since": begin + 0.5, "until": begin + 0.5005}
    for form in FORMS:
        told, path = made(source, tmp_path, form, **wanted)
        assert told.exchanges == 1
    (one,) = lines(tmp_path / "made.jsonl")
    assert (one["api"], one["latency_ms"], one["topics"]) == ("Fetch", 500, {"orders": [3]})
    (found,) = exchanges(read([tmp_path / "made.arrow"]))
    assert found.latency_ns == 500_000_000
    assert found.request is not None
    assert TOPIC_ID in (found.request.frame or b"")
    assert path.suffix == ".arrow"
    told, path = made(source, tmp_path, "jsonl", hide=("heartbeats", "empty fetches"), since=begin)
    assert [one["api"] for one in lines(path)] == ["Heartbeat"]  # for it has an error


def test_where_nothing_is_chosen_the_file_is_there_and_has_nothing(source: Captures, tmp_path: Path) -> None:
    for form in FORMS:
        told, path = made(source, tmp_path, form, where='client_id == "nobody"')
        assert (told.exchanges, path.exists()) == (0, True)
    assert list(read([tmp_path / "made.arrow"])) == []


def test_secrets_and_blanked_records_stay_blank(tmp_path: Path) -> None:
    talk = Talk().opened()
    talk.exchange("SaslAuthenticate", 2, {"auth_bytes": SECRET}, {"error_code": 0, "auth_bytes": b""})
    source = Captures([str(written(tmp_path / "a.arrow", talk.rows))])
    _, path = made(source, tmp_path, "jsonl")
    assert lines(path)[0]["request"]["values"] == {"auth_bytes": {"bytes": len(SECRET)}}
    assert b"alice" not in path.read_bytes()


def test_a_file_that_would_be_too_large_is_not_made(
    source: Captures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "MOST_BYTES", 100)
    for form in FORMS:
        with pytest.raises(TooLarge, match="choose fewer exchanges by a filter or a time"):
            made(source, tmp_path, form)


def test_the_page_tells_the_bound_that_there_is() -> None:
    page = (Path(exports.__file__).parents[1] / "static" / "exports.js").read_text()
    assert f'"{exports.MOST_BYTES >> 20} MiB"' in page


def test_parts_that_cannot_be_read_are_told(source: Captures, tmp_path: Path) -> None:
    (tmp_path / "capture" / "b.arrow").write_bytes(b"x")
    told, _ = made(source, tmp_path, "jsonl")
    assert told.notes == [f"{tmp_path / 'capture' / 'b.arrow'}: no segment of a capture"]
    rich = Talk(connection(3, broker="10.0.0.1:19092")).opened().heartbeat()
    odd = Captures([str(written(tmp_path / "odd.arrow", rich.rows))])
    told, _ = made(odd, tmp_path, "pcapng")
    assert told.notes == ["tshark and Wireshark need -d tcp.port==19092,kafka"]


async def progress(it: Exporting, wanted: Wanted) -> list[Progress]:
    return [each async for each in it.make(wanted)]


@pytest.mark.asyncio
async def test_the_newest_files_are_kept_until_the_server_ends(source: Captures) -> None:
    it = Exporting(source)
    found = [(await progress(it, Wanted(form)))[-1] for form in (*FORMS, "jsonl")]
    assert [one.file for one in found] == [f"/api/exports/{number}" for number in (1, 2, 3, 4)]
    assert [one.name for one in found] == [f"exchanges.{form}" for form in (*FORMS, "jsonl")]
    assert {one.exchanges for one in found} == {5}
    assert list(it.files) == ["2", "3", "4"]
    folder = it.files["2"].path.parent
    assert sorted(path.name for path in folder.iterdir()) == ["2", "3", "4"]
    it.close()
    assert not folder.exists()


@pytest.mark.asyncio
async def test_a_page_that_goes_ends_its_export_and_others_wait_for_their_turn(
    source: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "TELL_S", 0.01)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def endless(_: Captures, wanted: Wanted, path: Path, tell: exports.Tell) -> Made:
        path.write_bytes(b"begun")
        try:
            while True:
                tell(3, 5)
        finally:
            loop.call_soon_threadsafe(ended.set)

    monkeypatch.setattr(exporting, "export", endless)
    it = Exporting(source)
    first = it.make(Wanted("jsonl"))
    while (await anext(first)).exchanges != 3:
        pass
    (refused,) = await progress(it, Wanted("jsonl"))
    assert refused.problem == "another file is made now: wait for its end"
    await first.aclose()
    monkeypatch.undo()
    async with asyncio.timeout(60):
        await ended.wait()
        while not (last := (await progress(it, Wanted("jsonl")))[-1]).file:
            await asyncio.sleep(0.01)
    assert last.file == "/api/exports/2"
    assert [path.name for path in it.files["2"].path.parent.iterdir()] == ["2"]
    it.close()


@pytest.mark.asyncio
async def test_a_disk_that_is_full_is_told(source: Captures, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Made:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporting, "export", full)
    it = Exporting(source)
    assert (await progress(it, Wanted("arrow")))[
        -1
    ].problem == "the file cannot be written: No space left on device"
    it.close()
