"""Two klamms that capture into one folder: the second says so, also after one that was killed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from klamm.proxy.control.capture_folder import CaptureFolder
from tests.fakes.broker import Broker, Cluster
from tests.fakes.edge import Lines
from tests.fakes.waiting import on_uvloop
from tests.proxy.test_serve import run

SHARED = "capture_shared"


@on_uvloop
@pytest.mark.parametrize("workers", [1, 2])
async def test_the_second_klamm_of_a_folder_says_so_but_not_after_one_that_was_killed(
    tmp_path: Path, workers: int
) -> None:
    folder = tmp_path / "captured"
    options = ("--capture", str(folder), "--state", "none", "--workers", str(workers))
    async with Broker(Cluster(), 1).listening() as broker:
        bootstrap = f"127.0.0.1:{broker.port}"
        async with run(tmp_path / "one", bootstrap, options=options) as one:
            await one.announced()
            async with run(tmp_path / "two", bootstrap, options=options) as two:
                await two.announced()
                assert one.lines(SHARED) == []
                [line] = two.lines(SHARED)
                assert line["folder"] == str(folder)
                assert f"give each its own, such as --capture {folder}-2" in line["message"]
                two.process.child.kill()
                one.process.child.kill()
                for each in (one, two):
                    await asyncio.to_thread(each.process.child.wait, 30)
        async with run(tmp_path / "three", bootstrap, options=options) as three:
            await three.announced()
            assert three.lines(SHARED) == []


def locked(folder: Path, succeeds: bool = False) -> tuple[CaptureFolder, Lines]:
    log = Lines()
    place = CaptureFolder(log)
    place.lock(str(folder), succeeds)
    return place, log


def test_a_folder_is_shared_as_long_as_one_of_several_captures(tmp_path: Path) -> None:
    (first, of_first), (second, of_second) = locked(tmp_path), locked(tmp_path)
    first.release()
    third, of_third = locked(tmp_path)
    for each in (second, third):
        each.release()
    last, of_last = locked(tmp_path)
    last.release()
    assert [len(log.of(SHARED)) for log in (of_first, of_second, of_third, of_last)] == [0, 1, 1, 0]


def test_one_that_takes_the_place_of_another_says_nothing(tmp_path: Path) -> None:
    before, _ = locked(tmp_path)
    after, of_after = locked(tmp_path, succeeds=True)
    before.release()
    other, of_other = locked(tmp_path)
    assert [len(log.of(SHARED)) for log in (of_after, of_other)] == [0, 1]
    for each in (after, other):
        each.release()
