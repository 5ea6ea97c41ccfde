"""Messages, calls and open files between two processes; here both ends are in one."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from klamm.proxy.control.rule_book import Refused
from klamm.proxy.workers.channel import Call, Channel, Ended, Failed
from tests.fakes.waiting import eventually, on_uvloop


@asynccontextmanager
async def channels(calls: Mapping[str, Call]) -> AsyncIterator[tuple[Channel, Channel, list[str]]]:
    """One that asks, one that has these calls, and the ends that were told."""
    one, other = socket.socketpair()
    ended: list[str] = []
    asking = Channel(one, {}, lambda: ended.append("asking"))
    asked = Channel(other, calls, lambda: ended.append("asked"), (Refused,))
    try:
        yield asking, asked, ended
    finally:
        asking.close()
        asked.close()


async def later(value: int) -> int:
    await asyncio.sleep(0)
    return value + 1


def refuse() -> None:
    raise Refused(404, "there is none")


def fail() -> None:
    raise ZeroDivisionError("by zero")


@on_uvloop
async def test_answers_come_to_those_who_asked() -> None:
    async with channels({"later": later}) as (asking, _, _):
        assert await asyncio.gather(*(asking.ask("later", n) for n in range(100))) == list(range(1, 101))


@on_uvloop
async def test_a_message_may_be_larger_than_what_the_kernel_takes_at_once() -> None:
    async with channels({"size": len}) as (asking, _, _):
        assert await asking.ask("size", bytes(20 << 20)) == 20 << 20


@on_uvloop
async def test_exceptions_that_are_expected_come_as_they_are_and_others_as_text() -> None:
    async with channels({"refuse": refuse, "fail": fail, "odd": lambda: lambda: 0}) as (asking, _, _):
        with pytest.raises(Refused, match="there is none") as refused:
            await asking.ask("refuse")
        assert refused.value.status == 404
        with pytest.raises(Failed, match="by zero"):
            await asking.ask("fail")
        with pytest.raises(Failed, match="pickle"):
            await asking.ask("odd")


@on_uvloop
async def test_files_come_with_their_messages() -> None:
    found: list[tuple[int, bytes]] = []

    def take(number: int, file: int) -> None:
        found.append((number, os.read(file, 10)))
        os.close(file)

    async with channels({"take": take, "later": later}) as (asking, _, _):
        files = set(os.listdir("/proc/self/fd"))
        for number in range(100):
            reading, writing = os.pipe()
            os.write(writing, b"%d" % number)
            os.close(writing)
            asking.tell("take", number, file=reading)
        await asking.ask("later", 1)
        assert found == [(number, b"%d" % number) for number in range(100)]
        assert set(os.listdir("/proc/self/fd")) == files


@on_uvloop
async def test_the_end_of_the_other_process_is_told_once_and_ends_what_was_asked() -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    async with channels({"never": never}) as (asking, asked, ended):
        waiting = asyncio.ensure_future(asking.ask("never"))
        await asyncio.sleep(0)
        asked.close()
        with pytest.raises(Ended):
            await waiting
        await eventually(lambda: ended == ["asking"])
        with pytest.raises(Ended):
            await asking.ask("never")
        reading, writing = os.pipe()
        os.close(writing)
        asking.tell("take", file=reading)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(reading)
