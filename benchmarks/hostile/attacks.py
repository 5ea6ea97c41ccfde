"""Attacks, by name: each opens connections to klamm and does its worst until its time is over."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, NamedTuple

from klamm.decoders import API, encode
from klamm.decoders.headers import REQUEST, request_frame
from klamm.decoders.records import Batch, Record, write

MIB = 1 << 20
NAME = "attacker"
HOST = "127.0.0.1"


class At(NamedTuple):
    """The ports of klamm: for clients, and of its admin API."""

    port: int
    admin: int


class Attack(NamedTuple):
    """`rules` are klamm's while it is attacked. `captured`: a capture of all traffic is under way. `ends`: it
    ends by itself, and klamm is measured until then.
    """

    name: str
    run: Callable[[At], Awaitable[None]]
    rules: str = ""
    captured: bool = False
    ends: bool = False


def frame(name: str, version: int, values: dict[str, Any], number: int = 1, client_id: str = NAME) -> bytes:
    api = API[name]
    return request_frame(api, version, number, client_id, encode(values, api.key, version, "request"))


BEAT = frame("Heartbeat", 4, {"group_id": "g", "member_id": "m"})


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(HOST, port)


async def poured(port: int, data: bytes, read: bool = False, first: bytes = b"") -> None:
    """Send the same bytes for ever on connections that klamm may close, and read the answers or not."""
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await connected(port)
            drain = asyncio.create_task(_drained(reader)) if read else None
            if not read:
                writer.transport.pause_reading()  # type: ignore[attr-defined]
            try:
                writer.write(first)
                while not writer.is_closing():
                    writer.write(data)
                    await writer.drain()
            finally:
                if drain is not None:
                    drain.cancel()
                writer.transport.abort()
        await asyncio.sleep(0.01)


async def _drained(reader: asyncio.StreamReader) -> None:
    while await reader.read(MIB):
        pass


def several(count: int, one: Callable[[At], Awaitable[None]]) -> Callable[[At], Awaitable[None]]:
    async def run(at: At) -> None:
        await asyncio.gather(*(one(at) for _ in range(count)))

    return run


async def nothing(at: At) -> None:
    await asyncio.Event().wait()


async def announced(at: At) -> None:
    """A gigabyte is announced of every kind of frame, and sent as fast as it goes."""
    size = (1 << 30) - 4

    async def one(key: int, version: int) -> None:
        await poured(at.port, bytes(MIB), first=REQUEST.pack(size, key, version, 1) + b"\0\1k\0")

    await asyncio.gather(one(18, 99), one(0, 9), one(3, 12), one(777, 0), one(17, 0))


async def dribbled(at: At) -> None:
    """Headers of 64 KB in reads of one byte."""
    _, writer = await connected(at.port)
    writer.write(REQUEST.pack(70_000, 12, 4, 1) + (32_000).to_bytes(2, "big"))
    while True:
        writer.write(b"k")
        await asyncio.sleep(0)


async def behind_one(at: At) -> None:
    """klamm's own answers wait behind a request that the broker never answers."""
    await poured(at.port, BEAT * 4000, first=frame("JoinGroup", 7, {"group_id": "g"}))


async def half_sent(at: At) -> None:
    """A request that rules want whole, and of which the last part never comes."""
    rows = [{"index": 0, "records": bytes(16_000_000)}]
    whole = frame("Produce", 9, {"acks": 1, "topic_data": [{"name": "t", "partition_data": rows}]})
    _, writer = await connected(at.port)
    writer.write(whole[:-100_000])
    await asyncio.Event().wait()


def tiny_records() -> bytes:
    records = [Record(n, 0, None, None, ()) for n in range(100_000)]
    rows = [{"index": 0, "records": write(Batch(codec="gzip"), records)}]
    return frame("Produce", 9, {"acks": 1, "topic_data": [{"name": "t", "partition_data": rows}]})


async def records(at: At) -> None:
    await poured(at.port, tiny_records(), read=True)


async def nested(at: At) -> None:
    topics = [{"name": f"topic-{number}"} for number in range(300)]
    await poured(at.port, frame("Metadata", 12, {"topics": topics}), read=True)


async def nested_in_turns(at: At) -> None:
    """Each request waits for the answer to the one before."""
    topics = [{"name": f"topic-{number}"} for number in range(150)]
    whole = frame("Metadata", 12, {"topics": topics})
    reader, writer = await connected(at.port)
    while True:
        writer.write(whole)
        await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


async def labels(at: At) -> None:
    """Client ids and topics without end, long and short, and a scrape each second."""
    scraping = asyncio.create_task(_scraped(at))
    try:
        number = 0
        while True:
            with contextlib.suppress(OSError):
                _, writer = await connected(at.port)
                for _ in range(50):
                    number += 1
                    name = f"{number}-" + "k" * (30_000 if number % 2 else 10)
                    version = number % 8 + 1
                    writer.write(frame("Metadata", version, {"topics": [{"name": name}]}, number, name))
                await writer.drain()
                writer.close()
            await asyncio.sleep(0)
    finally:
        scraping.cancel()


async def _scraped(at: At) -> None:
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await connected(at.admin)
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            await _drained(reader)
            writer.close()
        await asyncio.sleep(1)


async def unread_lives(at: At) -> None:
    """Readers of the live stream that read nothing, over traffic."""
    writers = []
    for _ in range(200):
        _, writer = await connected(at.admin)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET /v1/live?bodies=values HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        writers.append(writer)
    await poured(at.port, BEAT * 10, read=True)


async def idle_admins(at: At) -> None:
    connections = []
    for _ in range(400):
        with contextlib.suppress(OSError):
            connections.append(await connected(at.admin))
    await asyncio.Event().wait()


async def rules(at: At) -> None:
    """Large rules, one after the other."""
    rule = '{"name": "r", "rule": {"api": "Fetch", "delay": "1ms"}}'
    body = f"[{','.join([rule] * 12_000)}]".encode()
    head = "POST /v1/rules HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await connected(at.admin)
            writer.write(head.encode() + body)
            await _drained(reader)
            writer.close()
        await asyncio.sleep(0.01)


@cache
def many_beats() -> bytes:
    """Small requests, of which none is like the one before it."""
    groups = ({"group_id": f"g{number}", "member_id": "m"} for number in range(3000))
    return b"".join(frame("Heartbeat", 4, group, number) for number, group in enumerate(groups))


async def topics_without_answer(at: At) -> None:
    """Records for 30,000 topics in each request, with acks=0."""
    rows = [{"index": 0, "records": None}]
    topics = [{"name": f"topic-{number}", "partition_data": rows} for number in range(30_000)]
    await poured(at.port, frame("Produce", 9, {"acks": 0, "topic_data": topics}))


@cache
def many_topics(count: int) -> bytes:
    """A request of so many topics."""
    return frame("Metadata", 12, {"topics": [{"name": f"topic-{number}"} for number in range(count)]})


async def unanswered(at: At) -> None:
    """Requests behind one that the broker never answers."""
    await poured(at.port, BEAT * 4000, first=frame("JoinGroup", 7, {"group_id": "g"}))


async def groups(at: At) -> None:
    """Groups without end, of 30 KB each, under a rule that learns the groups of clients."""
    _, writer = await connected(at.port)
    number = 0
    while True:
        number += 1
        group = {"group_id": f"{number}-" + "g" * 30_000, "member_id": "m"}
        writer.write(frame("Heartbeat", 4, group, number))
        await writer.drain()


@cache
def large_delayed() -> bytes:
    rows = [{"index": 0, "records": bytes(1_000_000)}]
    return frame("Produce", 9, {"acks": 1, "topic_data": [{"name": "t", "partition_data": rows}]})


async def garbage(at: At) -> None:
    while True:
        with contextlib.suppress(OSError):
            _, writer = await connected(at.port)
            writer.write(os.urandom(2000))
            await asyncio.sleep(0.005)
            writer.transport.abort()


ANSWERS = """\
  - {api: Heartbeat, client: attacker, error: REBALANCE_IN_PROGRESS}
"""
GROUPS = """\
  - {api: OffsetCommit, group: billing, error: REBALANCE_IN_PROGRESS}
"""
TOPIC = """\
  - {api: Metadata, topic: orders, error: LEADER_NOT_AVAILABLE}
"""
DELAYED = """\
  - {api: Produce, client: attacker, delay: 20s}
"""
WHOLE = """\
  - {api: Produce, where: len(topic_data) > 5, error: NOT_LEADER_OR_FOLLOWER}
"""
RECORDS = """\
  - {api: Produce, where: record.key == "k", error: NOT_LEADER_OR_FOLLOWER}
"""
NESTED = """\
  - api: Metadata
    where: >-
      any(t.name == "a" and u.name == "b" and v.name == "c" for t in topics for u in topics for v in topics)
    error: LEADER_NOT_AVAILABLE
"""

ATTACKS = (
    Attack("no attack", nothing),
    Attack("1 GB announced of each kind", announced),
    Attack("headers of 64 KB, byte by byte, 20 connections", several(20, dribbled)),
    Attack("small requests, 4 connections", several(4, lambda at: poured(at.port, BEAT * 4000, read=True))),
    Attack("answers of klamm, unread", lambda at: poured(at.port, BEAT * 4000), ANSWERS),
    Attack("answers of klamm behind one of the broker", behind_one, ANSWERS),
    Attack("60 requests of 16 MB, half sent", several(60, half_sent), WHOLE),
    Attack("100,000 records in a request, a rule on keys", records, RECORDS),
    Attack("an expression in three loops over 300 topics", nested, NESTED),
    Attack(
        "the same over 150 topics, one request after the other, 8 connections",
        several(8, nested_in_turns),
        NESTED,
    ),
    Attack("client ids and topics without end, scraped", labels),
    Attack("200 unread readers of the live stream", unread_lives),
    Attack("400 idle connections to the admin API", idle_admins),
    Attack("12,000 rules again and again", rules),
    Attack(
        "small requests, none like another, 300 connections",
        several(300, lambda at: poured(at.port, many_beats(), read=True)),
    ),
    Attack(
        "small requests, none like another, 10 connections",
        several(10, lambda at: poured(at.port, many_beats(), read=True)),
    ),
    Attack("requests of 30,000 topics", topics_without_answer),
    Attack("groups without end, a rule by group", groups, GROUPS),
    Attack(
        "delayed requests of 1 MB, 100 connections",
        several(100, lambda at: poured(at.port, large_delayed())),
        DELAYED,
    ),
    Attack("random bytes, 10 connections", several(10, garbage)),
    Attack("captured: unanswered requests, 50 connections", several(50, unanswered), captured=True),
    Attack(
        "captured: requests of 5,000 topics, 4 connections",
        several(4, lambda at: poured(at.port, many_topics(5000), read=True)),
        captured=True,
    ),
    Attack(
        "requests of 5,000 topics, 4 connections",
        several(4, lambda at: poured(at.port, many_topics(5000), read=True)),
    ),
    Attack(
        "captured: small requests, none like another, 300 connections",
        several(300, lambda at: poured(at.port, many_beats(), read=True)),
        captured=True,
    ),
    Attack(
        "requests of 20,000 topics, a rule by topic, 4 connections",
        several(4, lambda at: poured(at.port, many_topics(20_000), read=True)),
        TOPIC,
    ),
)
