"""A process that was stopped for long does not call what came meanwhile too late."""

import asyncio
import time

import pytest

from klamm.proxy.cluster.patience import within
from tests.fakes.waiting import eventually, on_uvloop


async def dialled(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "connected"


@on_uvloop
async def test_a_dial_that_ended_while_klamm_was_stopped_has_connected() -> None:
    waiting = asyncio.create_task(within(1.0, dialled(0.2), print))
    await asyncio.sleep(0)
    time.sleep(1.5)  # noqa: ASYNC251  # the process is stopped
    assert await waiting == "connected"


@on_uvloop
async def test_a_dial_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(TimeoutError):
        await within(0.05, dialled(60), print)


@on_uvloop
async def test_the_failure_of_a_dial_is_that_of_the_wait() -> None:
    async def refused() -> str:
        raise ConnectionRefusedError

    with pytest.raises(ConnectionRefusedError):
        await within(1.0, refused(), print)


@on_uvloop
async def test_a_dial_that_ends_when_nobody_waits_any_more_is_dropped() -> None:
    dropped: list[str] = []

    async def stubborn() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "late"
        return "never"

    with pytest.raises(TimeoutError):
        await within(0.05, stubborn(), dropped.append)
    await eventually(lambda: dropped == ["late"])
