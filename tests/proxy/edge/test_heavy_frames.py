"""Frames on which rules evaluate very much: of the connections that send them, one goes on in a pass."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from klamm.proxy.edge.rounds import PASS_NS, Rounds
from klamm.proxy.session.turns import OVERDRAWN, Crowd, Turns
from tests.fakes.client import Client
from tests.fakes.edge import Edge, cluster
from tests.fakes.waiting import eventually, on_uvloop

WHERE = "any(t.name == 'a' and u.name == 'b' for t in topics for u in topics for v in topics)"
ON_REQUEST = f'  - {{api: Metadata, side: request, where: "{WHERE}", error: LEADER_NOT_AVAILABLE}}'
ON_ANSWER = f'  - {{api: Metadata, side: response, where: "{WHERE}", error: LEADER_NOT_AVAILABLE}}'
MANY = {"topics": [{"name": f"topic-{number}"} for number in range(200)]}
BEAT = {"group_id": "g", "member_id": "m"}
BODY = encode(BEAT, "Heartbeat", 4, "request")


class Waiting:
    """In place of the process's queue: what waits for its turn."""

    def __init__(self) -> None:
        self.turns: list[Callable[[], None]] = []

    def wait(self, go_on: Callable[[], None]) -> None:
        self.turns.append(go_on)

    def next(self) -> None:
        self.turns.pop(0)()


@asynccontextmanager
async def heavy(rule: str) -> AsyncIterator[tuple[Edge, Waiting, Client]]:
    """A client that has sent one frame on which the rule evaluates very much, and has its answer."""
    async with cluster() as (klamm, _):
        waiting, client = Waiting(), await klamm.client(1)
        (link,) = await klamm.links(1)
        link.later = waiting.wait
        klamm.rule(rule)
        await client.ask("Metadata", 12, MANY)
        yield klamm, waiting, client


@pytest.mark.parametrize("rule", [ON_REQUEST, ON_ANSWER])
@on_uvloop
async def test_what_follows_a_heavy_frame_waits_for_its_turn(rule: str) -> None:
    async with heavy(rule) as (klamm, waiting, client):
        client.send("Metadata", 12, MANY)
        await eventually(lambda: waiting.turns)
        quiet = await klamm.client(1)
        await quiet.ask("Heartbeat", 4, BEAT)  # nobody else waits
        assert not client.received
        waiting.next()
        await client.answer("Metadata", 12)


@on_uvloop
async def test_a_connection_that_sends_no_more_heavy_frames_waits_once() -> None:
    async with heavy(ON_REQUEST) as (_, waiting, client):
        client.send("Heartbeat", 4, BEAT)
        await eventually(lambda: waiting.turns)
        waiting.next()
        await client.answer("Heartbeat", 4)
        for _ in range(3):
            await client.ask("Heartbeat", 4, BEAT)
        assert not waiting.turns


@on_uvloop
async def test_bytes_that_come_while_others_wait_go_on_behind_them() -> None:
    async with heavy(ON_REQUEST) as (klamm, waiting, client):
        (link,) = await klamm.links(1)
        beats = [request_frame(API["Heartbeat"], 4, number, "app", BODY) for number in (7, 8)]
        for frame in (beats[0][:5], beats[0][5:] + beats[1]):
            link.client.data_received(frame)  # as TLS may do though it was asked to pause
        assert len(waiting.turns) == 1
        waiting.next()
        for number in (7, 8):
            assert int.from_bytes((await client.frame())[4:8], "big") == number


@on_uvloop
async def test_bytes_that_wait_for_their_turn_go_on_when_their_end_is_lost() -> None:
    async with heavy(ON_REQUEST) as (klamm, waiting, client):
        client.send("Heartbeat", 4, BEAT)
        await eventually(lambda: waiting.turns)
        (link,) = await klamm.links(1)
        asked = link.session.pending()
        link.client.take_late()
        assert link.session.pending() == asked + 1
        waiting.next()  # finds nothing more to do
        await client.answer("Heartbeat", 4)
        client.reset()
        await klamm.empty()


def test_one_connection_that_takes_long_goes_on_in_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    times = itertools.count(0, 2 * PASS_NS)  # each looks at the clock when it has ended
    monkeypatch.setattr("klamm.proxy.edge.rounds.monotonic_ns", lambda: next(times))

    async def run() -> list[int]:
        rounds, went, passes = Rounds(), list[int](), list[int]()
        for number in range(3):
            rounds.wait(lambda number=number: went.append(number))
        for _ in range(4):
            await asyncio.sleep(0)
            passes.append(len(went))
        return passes

    assert asyncio.run(run()) == [1, 2, 3, 3]


def test_turns_are_overdrawn_once_for_a_frame() -> None:
    turns = Turns(Crowd())
    turns.left = OVERDRAWN
    assert not turns.overdrawn()
    turns.left = OVERDRAWN - 1
    assert turns.overdrawn()
    assert not turns.overdrawn()
    assert turns.left < 0  # this turn is over all the same
