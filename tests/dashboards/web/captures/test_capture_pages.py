"""What a page gets of captures, over HTTP: of a capture, and of a running klamm."""

from __future__ import annotations

import io
import json
import sys
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from klamm.captures.storage.reading import read
from klamm.dashboards.web.captured import Captures
from klamm.dashboards.web.captures import analysis
from klamm.dashboards.web.live import Live
from klamm.dashboards.web.server import start
from klamm.dashboards.web.source import Source
from klamm.proxy.admin.api import capture_files
from klamm.proxy.config_types import Address
from klamm.settings.extras import installing
from tests.captures.rows import Talk, written
from tests.dashboards.web.captures.test_analysis import RESULT, STEP, lives
from tests.dashboards.web.test_server import Fake
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.admin.admin_api import api
from tests.proxy.admin.test_admin_archive import captured


@asynccontextmanager
async def served(source: Source) -> AsyncIterator[aiohttp.ClientSession]:
    server = await start(source, Address("127.0.0.1", 0))
    try:
        async with aiohttp.ClientSession(f"http://{server.address}") as http:
            yield http
    finally:
        await server.close()


@pytest.fixture
def source(tmp_path: Path) -> Captures:
    talk = Talk().opened().metadata().produce().heartbeat(27)
    (tmp_path / "capture").mkdir()
    written(tmp_path / "capture" / "a.arrow", talk.rows)
    return Captures([str(tmp_path / "capture")])


def analysed_by(monkeypatch: pytest.MonkeyPatch, folder: Path, program: str) -> None:
    """This program stands for `klamm analyze`."""
    (folder / "program.py").write_text("import json, os, sys, time\n" + program)
    monkeypatch.setattr(analysis, "COMMAND", (sys.executable, str(folder / "program.py")))


async def asked(http: aiohttp.ClientSession, method: str, path: str, status: int = 200, **more: Any) -> Any:
    async with http.request(method, path, **more) as answer:
        assert answer.status == status, await answer.text()
        return await answer.json()


@pytest.mark.asyncio
async def test_the_overview_comes_as_lines_until_it_is_whole(source: Captures) -> None:
    async with served(source) as http, http.get("/api/capture/overview") as answer:
        lines = [json.loads(line) async for line in answer.content]
        assert [line["whole"] for line in lines] == [False] * (len(lines) - 1) + [True]
        assert (lines[-1]["exchanges"], lines[-1]["errors"]) == (3, 1)


@pytest.mark.asyncio
async def test_an_analysis_is_begun_followed_and_its_findings_are_there_for_all_views(
    source: Captures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"open(sys.argv[sys.argv.index('--html') + 1], 'w').write('<p>')\nprint({json.dumps(RESULT)!r})"
    analysed_by(monkeypatch, tmp_path, program)
    async with served(source) as http:
        assert await asked(http, "GET", "/api/findings") == []
        assert (await asked(http, "GET", "/api/analysis"))["phase"] == "never"
        await asked(http, "GET", "/api/analysis/report", 404)
        assert (await asked(http, "POST", "/api/analysis", 202, json={}))["phase"] == "running"
        while (state := await asked(http, "GET", "/api/analysis"))["phase"] == "running":
            pass
        assert (state["phase"], state["findings"], state["report"]) == ("done", 1, True)
        (finding,) = await asked(http, "GET", "/api/findings")
        assert (finding["severity"], finding["clients"], finding["where"]) == (
            "medium",
            ["app"],
            'client_id == "app"',
        )
        assert finding["evidence"][0]["show"].startswith("klamm show ")
        async with http.get("/api/analysis/report") as answer:
            assert answer.headers["Content-Disposition"] == 'attachment; filename="klamm-report.html"'
            assert (answer.content_type, await answer.text()) == ("text/html", "<p>")
            assert "script-src 'self'" in answer.headers["Content-Security-Policy"]


@pytest.mark.asyncio
async def test_one_analysis_runs_at_a_time_can_be_cancelled_and_ends_with_the_server(
    source: Captures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "pid"
    analysed_by(
        monkeypatch, tmp_path, f"open({str(pid)!r}, 'w').write(str(os.getpid()))\n{STEP}time.sleep(600)\n"
    )
    async with served(source) as http:
        for end in ("DELETE", "the server's end"):
            pid.unlink(missing_ok=True)
            await asked(http, "POST", "/api/analysis", 202, json={})
            while (await asked(http, "GET", "/api/analysis"))["step"] != "looking":
                pass
            again = await asked(http, "POST", "/api/analysis", 409, json={})
            assert again["error"] == "an analysis runs already"
            if end == "DELETE":
                assert (await asked(http, "DELETE", "/api/analysis", json={}))["phase"] == "cancelled"
                await eventually(lambda: not lives(int(pid.read_text())))
    await eventually(lambda: not lives(int(pid.read_text())))


@pytest.mark.asyncio
async def test_an_export_tells_how_far_it_is_and_is_fetched_then(source: Captures, tmp_path: Path) -> None:
    async with served(source) as http:
        for form, media in (("jsonl", "application/jsonl"), ("pcapng", "application/x-pcapng")):
            wanted = {"form": form, "where": "error != NONE"}
            async with http.post("/api/exports", json=wanted) as answer:
                last = [json.loads(line) async for line in answer.content][-1]
            assert (last["exchanges"], last["name"]) == (1, f"exchanges.{form}")
            async with http.get(last["file"]) as answer:
                assert answer.headers["Content-Disposition"] == f'attachment; filename="exchanges.{form}"'
                assert (answer.content_type, len(await answer.read())) == (media, last["bytes"])
        assert (await asked(http, "GET", "/api/exports/77", 404))["error"].startswith("this file is not kept")


@pytest.mark.parametrize(
    ("wanted", "status", "reason"),
    [
        ({"form": "jsonl", "where": "acsk == 1"}, 422, "did you mean acks?"),
        ({"form": "jsonl", "hide": ["nothing"]}, 422, "'nothing' cannot be hidden"),
        ({"form": "xls"}, 400, "Invalid enum value 'xls'"),
        ({"form": "jsonl", "since": "yesterday"}, 400, "Expected `float | null`"),
    ],
)
@pytest.mark.asyncio
async def test_an_export_that_cannot_be_made_is_refused(
    wanted: dict[str, Any], status: int, reason: str, source: Captures
) -> None:
    async with served(source) as http:
        assert reason in (await asked(http, "POST", "/api/exports", status, json=wanted))["error"]


@pytest.mark.asyncio
async def test_pages_of_other_sites_start_nothing(source: Captures) -> None:
    async with served(source) as http:
        for method, path in (
            ("POST", "/api/analysis"),
            ("DELETE", "/api/analysis"),
            ("POST", "/api/exports"),
        ):
            evil = {"Origin": "http://evil.example"}
            await asked(http, method, path, 403, json={}, headers=evil)
            await asked(http, method, path, 415, data=b"{}", headers={"Content-Type": "text/plain"})
        assert (await asked(http, "GET", "/api/analysis"))["phase"] == "never"


@pytest.mark.asyncio
async def test_what_is_no_capture_has_no_findings_and_no_overview() -> None:
    async with served(Fake()) as http:
        assert await asked(http, "GET", "/api/findings") == []
        await asked(http, "GET", "/api/capture/overview", 404)
        await asked(http, "POST", "/api/analysis", 404, json={})


@on_uvloop
async def test_the_capture_of_a_running_klamm_is_told_and_fetched_whole(tmp_path: Path) -> None:
    async with api() as it, served(Live(it.klamm)) as http:
        assert await asked(http, "GET", "/api/capture") == {"capture": None, "files": None, "install": ""}
        assert "nothing was captured" in (await asked(http, "GET", "/api/capture/archive", 404))["error"]
        begun = await it.klamm.begin_capture(str(tmp_path / "my traffic"))
        state = await asked(http, "GET", "/api/capture")
        assert (state["capture"]["since"], state["capture"]["folder"]) == (begun.since, begun.folder)
        assert state["files"] == {"folder": begun.folder, "segments": []}
        assert "is sealed yet" in (await asked(http, "GET", "/api/capture/archive", 409))["error"]
        await it.klamm.end_capture()
        await captured(it, tmp_path / "my traffic")
        state = await asked(http, "GET", "/api/capture")
        assert (state["capture"], len(state["files"]["segments"])) == (None, 1)
        async with http.get("/api/capture/archive") as answer:
            assert answer.headers["Content-Disposition"] == 'attachment; filename="my_traffic.tar"'
            data = await answer.read()
        await asked(
            http, "GET", "/api/klamm/v1/capture/archive", 404
        )  # not by the way that reads all at once
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        tar.extractall(tmp_path / "there", filter="data")
    assert sum(row.side == "response" for row in read([tmp_path / "there" / "my_traffic"])) == 5


@on_uvloop
async def test_without_pyarrow_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klamm.dashboards.web.captures.routes.find_spec", lambda name: None)
    async with api() as it, served(Live(it.klamm)) as http:
        assert (await asked(http, "GET", "/api/capture"))["install"] == installing("capture")


@on_uvloop
async def test_an_archive_that_breaks_off_is_no_whole_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> Any:
        yield b"head"
        raise OSError("Input/output error")

    async with api() as it, served(Live(it.klamm)) as http:
        await captured(it, tmp_path / "traffic")
        monkeypatch.setattr(capture_files, "pieces", failing)
        with pytest.raises(aiohttp.ClientError):
            async with http.get("/api/capture/archive") as answer:
                await answer.read()
