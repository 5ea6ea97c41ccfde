"""Names that clients make, of any bytes, in every output: each says them as text, and goes on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from klamm.cli import main
from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from tests.proxy.admin.admin_api import Api, in_thread

NAMES = {
    "not UTF-8": "\udcff\udcfe",
    "cut short": "caf\udcc3",
    "a surrogate in UTF-8": b"\xed\xa0\x80".decode("utf-8", "surrogateescape"),
    "a terminal's commands": "\x1b[2J\x1b]0;title\x07",
    "a line of its own": 'a\n{"event":"forged"}\r\nb',
    "C1 and NUL": "\x9b2J\x00",
    "right to left": "\u202etxt.exe",
    "a label of its own": 'x",client_id="other"} 99\nklamm_requests_total{a="',
    "markup": "<script>alert(1)</script>",
    "beyond the BMP": "\U0001f980",
    "as an escape": "\\udcff",
    "as long as Kafka allows": "k" * 249,
    "longer": "k" * 32_000,
}
GROUP = "grou\udcffp"


def frames(name: str) -> list[bytes]:
    """A request of each kind in which a name has a place that klamm shows."""
    asked: list[tuple[str, int, dict[str, Any]]] = [
        ("ApiVersions", 4, {"client_software_name": name, "client_software_version": name}),
        ("Metadata", 12, {"topics": [{"name": name[:30_000]}]}),
        ("Heartbeat", 4, {"group_id": name, "member_id": name}),
        ("FindCoordinator", 4, {"key_type": 0, "coordinator_keys": [name]}),
        ("Produce", 9, {"acks": 1, "transactional_id": name, "topic_data": [{"name": name}]}),
    ]
    return [
        request_frame(API[api], version, number, name, encode(values, API[api].key, version, "request"))
        for number, (api, version, values) in enumerate(asked, 1)
    ]


async def ask_all(it: Api) -> None:
    """Every name, on a connection of its own."""
    for name in NAMES.values():
        client = await it.edge.client(1)
        asked = frames(name)
        client.transport.write(b"".join(asked))
        for _ in asked:
            await client.frame()
        client.close()


@pytest.fixture
def it(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    with in_thread() as running:
        monkeypatch.setenv("KLAMM_ADMIN", running.klamm.admin)
        yield running


Says = Callable[..., str]


@pytest.fixture
def says(capsys: pytest.CaptureFixture[str]) -> Says:
    """The output of a command that must succeed."""

    def run(*words: str, code: int = 0) -> str:
        found = main(words)
        output, errors = capsys.readouterr()
        assert found == code, errors
        return output

    return run


def on_lines(text: str) -> str:
    """The text, in which nothing but newlines is not printable."""
    odd = {letter for line in text.split("\n") for letter in line if not letter.isprintable()}
    assert not odd, odd
    return text


def test_every_path_of_the_admin_api_answers(it: Api) -> None:
    it.do(body_of(it, "/v1/exchanges?bodies=true"))  # from now on exchanges are kept
    it.do(ask_all(it))
    for accept in ("text/plain", "application/openmetrics-text; version=1.0.0"):
        body = it.do(body_of(it, "/metrics", Accept=accept))
        on_lines(body)
    rows = [
        sample.labels["client_id"]
        for family in text_string_to_metric_families(it.do(body_of(it, "/metrics")))
        for sample in family.samples
        if sample.name == "klamm_requests_total" and sample.labels["api"] == "Heartbeat"
    ]
    assert sorted(set(rows)) == sorted(set(map(client_label, NAMES.values())))
    for path in ("counters", "connections", "clusters", "brokers", "config", "rules"):
        assert json.loads(it.do(body_of(it, f"/v1/{path}"))) is not None
    kept = json.loads(it.do(body_of(it, "/v1/exchanges?bodies=true&limit=500")))["exchanges"]
    assert len(kept) >= 5 * len(NAMES)
    for each in kept:
        it.do(body_of(it, f"/v1/exchanges/{each['id']}"))


def client_label(client_id: str) -> str:
    """A client id that no client has is told by its size."""
    size = len(client_id.encode("utf-8", "surrogateescape"))
    return client_id if client_id.isprintable() and size <= 255 else f"<{size} bytes>"


async def body_of(it: Api, path: str, **headers: str) -> str:
    async with it.http.get(path, headers=headers) as answer:
        body = (await answer.read()).decode()
        assert answer.status == 200, (path, body)
        return body


@pytest.mark.parametrize("options", [(), ("-v",), ("-x",), ("--json",), ("--json", "-v")], ids=" ".join)
def test_tail_goes_on(it: Api, says: Says, options: tuple[str, ...]) -> None:
    def ask_until_read() -> None:
        while not ended.is_set():
            it.do(ask_all(it))
            time.sleep(0.05)

    ended = threading.Event()
    asking = threading.Thread(target=ask_until_read)
    asking.start()
    try:
        text = says("tail", "--count", str(4 * len(NAMES)), *options)
    finally:
        ended.set()
        asking.join()
    on_lines(text) if "--json" not in options else [json.loads(line) for line in text.splitlines()]
    assert "\\udcff" in text


@pytest.fixture
def capture(it: Api, tmp_path: Path) -> str:
    """A capture of all names, as klamm takes it."""
    folder = str(tmp_path / "capture")

    async def taken() -> None:
        await it.klamm.begin_capture(folder=folder, records="keep")
        await ask_all(it)
        await it.klamm.end_capture()

    it.do(taken())
    return folder


@pytest.mark.parametrize("options", [(), ("-v",), ("-x",), ("--stats",)], ids=" ".join)
def test_show_prints_lines(capture: str, says: Says, options: tuple[str, ...]) -> None:
    assert "\\udcff" in on_lines(says("show", capture, *options))


@pytest.mark.parametrize("options", [(), ("-v",), ("--stats",)], ids=" ".join)
def test_show_prints_json(capture: str, says: Says, options: tuple[str, ...]) -> None:
    for line in says("show", capture, "--json", *options).splitlines():
        assert json.loads(line)


@pytest.mark.parametrize("form", ["jsonl", "parquet", "pcapng"])
def test_export_writes_all(capture: str, says: Says, tmp_path: Path, form: str) -> None:
    file = tmp_path / f"out.{form}"
    says("export", capture, "-o", str(file))
    assert file.stat().st_size > 1000
    if form == "jsonl":
        assert len([json.loads(line) for line in file.read_text().splitlines()]) >= 5 * len(NAMES)


def test_a_capture_is_compared(capture: str, says: Says) -> None:
    on_lines(says("diff", capture, capture))


def test_a_filter_finds_bytes_that_are_not_utf_8(capture: str, says: Says) -> None:
    assert len(says("show", capture, "--json", r'topic == "\udcff\udcfe"').splitlines()) == 2
    assert len(says("show", capture, "--json", 'client_id == "<2 bytes>"').splitlines()) == 5
