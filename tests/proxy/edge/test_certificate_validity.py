"""klamm tells in time that a certificate of its own expires: in the log, and in its metrics."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from klamm.proxy import config
from klamm.proxy.cluster.clusters import Clusters
from klamm.proxy.config_types import InputFile
from klamm.proxy.control import following
from klamm.proxy.metrics.snapshot import Certificate
from klamm.settings.certificates import BEGIN, SOON, Validity, validity_of
from tests.fakes import tls
from tests.fakes.broker import Broker, Cluster
from tests.fakes.edge import edge
from tests.fakes.waiting import eventually, on_uvloop

FIRST, LAST = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LOOK_S", 0.01)


def dates(file: Path) -> list[datetime]:
    """As openssl tells them."""
    asked = ["openssl", "x509", "-in", str(file), "-noout", "-dates"]
    out = subprocess.run(asked, check=True, capture_output=True, text=True, timeout=30).stdout
    texts = [line.partition("=")[2] for line in out.splitlines()]
    return [datetime.strptime(text, "%b %d %H:%M:%S %Y GMT").replace(tzinfo=UTC) for text in texts]


@pytest.mark.parametrize("days", [1, 60, 40_000])  # from the year 2050 on times are written otherwise
def test_the_validity_of_a_certificate_is_read_as_openssl_reads_it(tmp_path: Path, days: int) -> None:
    tls.of_days(tmp_path, (-1, days))
    file = tmp_path / "broker.pem"  # its key comes first
    assert validity_of(str(file)) == Validity(str(file), *dates(file))


def test_a_file_without_a_certificate_that_can_be_read_has_no_validity(tmp_path: Path) -> None:
    tls.of_days(tmp_path, (-1, 60))
    file, draw = tmp_path / "broker.pem", Random(1)
    whole = file.read_bytes()
    begin = whole.index(BEGIN.encode())
    for _ in range(500):
        damaged = bytearray(whole)
        for _ in range(4):
            damaged[draw.randrange(begin, len(whole))] = draw.randrange(256)
        file.write_bytes(damaged[: draw.randrange(begin, len(whole))])
        read = validity_of(str(file))
        assert read is None or isinstance(read, Validity)
    file.write_bytes(whole[:begin])
    assert validity_of(str(file)) is None


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (FIRST - SECOND, "is valid from 2026-01-02 03:04 UTC on, which is not yet"),
        (FIRST, ""),
        (LAST - SOON, ""),
        (LAST - SOON + SECOND, "expires at 2026-12-31 23:59 UTC"),
        (LAST, "expires at 2026-12-31 23:59 UTC"),
        (LAST + SECOND, "has expired at 2026-12-31 23:59 UTC: put a new one there"),
    ],
)
def test_a_certificate_is_doubted_14_days_before_its_end(now: datetime, says: str) -> None:
    assert timedelta(days=14) == SOON
    wanted = f"the certificate in klamm.pem {says}" if says else None
    assert Validity("klamm.pem", FIRST, LAST).doubt(now) == wanted


@on_uvloop
async def test_a_certificate_that_expires_is_told_at_the_start_and_with_each_change(tmp_path: Path) -> None:
    tls.of_days(tmp_path, (-1, 3))
    file = str(tmp_path / "broker.pem")
    broker = await Broker(Cluster(), 1).start()
    try:
        async with edge(broker, listen_tls=config.ListenTls(InputFile(file))) as klamm:
            [line] = await klamm.logged("certificate_validity")
            assert line.level == "warning"
            assert line.message.startswith(f"TLS from the clients: the certificate in {file} expires at ")
            tls.of_days(tmp_path, (-9, -1))
            [_, line] = await klamm.logged("certificate_validity", 2)
            assert "has expired at" in line.message
            tls.of_days(tmp_path, (-1, 60))
            await eventually(lambda: len(klamm.log.of("tls_loaded")) == 2)
            made = klamm.proxied
            assert made.tls is not None
            (told,) = Clusters([made], klamm.log).certificates()  # type: ignore[arg-type]
            (_, last) = dates(tmp_path / "broker.pem")
            assert told == Certificate("kafka", "clients", last.timestamp())
            assert len(klamm.log.of("certificate_validity")) == 2
    finally:
        await broker.stop()


@on_uvloop
async def test_it_is_told_again_after_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "DAY_S", 0.02)
    tls.of_days(tmp_path, (-1, 3))
    file = InputFile(str(tmp_path / "broker.pem"))
    broker = await Broker(Cluster(), 1).start()
    try:
        async with edge(broker, listen_tls=config.ListenTls(file)) as klamm:
            first, second, *_ = await klamm.logged("certificate_validity", 2)
            assert first == second
    finally:
        await broker.stop()
