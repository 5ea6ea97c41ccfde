"""One token for all who need it, and one who asks for it."""

from __future__ import annotations

import asyncio

import pytest

from klamm.proxy.cluster.conversation import Unanswered
from klamm.proxy.cluster.own_sasl import kept_token
from klamm.proxy.cluster.own_sasl.kept_token import KeptToken
from klamm.proxy.cluster.own_sasl.token_sources import Token
from tests.fakes.waiting import eventually, on_uvloop, turns


class Source:
    """Tokens with numbers; `may` lets one question after the other be answered."""

    def __init__(self, lifetime_s: float | None) -> None:
        self.lifetime_s = lifetime_s
        self.asked = 0
        self.failing = False
        self.may = asyncio.Semaphore(1000)

    async def __call__(self) -> Token:
        self.asked += 1
        number = self.asked
        async with self.may:
            if self.failing:
                raise Unanswered(f"no token {number}")
            return Token(f"token-{number}", self.lifetime_s)


def kept(lifetime_s: float | None) -> tuple[KeptToken, Source, list[Unanswered]]:
    failures: list[Unanswered] = []
    source = Source(lifetime_s)
    return KeptToken(source, failures.append), source, failures


@on_uvloop
async def test_many_who_need_a_token_ask_once() -> None:
    token, source, _ = kept(3600)
    assert set(await asyncio.gather(*[token.get() for _ in range(50)])) == {"token-1"}
    assert await token.get(newer=True) == "token-1"
    assert source.asked == 1


@on_uvloop
async def test_a_token_that_serves_is_renewed_while_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_token, "AHEAD", 0.0)
    token, source, _ = kept(3600)
    await token.get()
    source.may = asyncio.Semaphore(0)
    assert await token.get() == "token-1"
    assert await token.get() == "token-1"
    waiting = asyncio.create_task(token.get(newer=True))
    await turns()
    assert not waiting.done()
    assert source.asked == 2
    source.may.release()
    assert await waiting == "token-2"


@on_uvloop
async def test_a_token_that_ends_soon_is_given_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    token, source, _ = kept(3600)
    await token.get()
    token.newer_from = token.ends = 0.0
    assert await token.get() == "token-2"
    assert source.asked == 2


@on_uvloop
async def test_a_failure_is_said_and_nobody_asks_for_a_while() -> None:
    token, source, failures = kept(3600)
    source.failing = True
    for _ in range(3):
        with pytest.raises(Unanswered, match="no token 1"):
            await token.get()
    assert (source.asked, len(failures)) == (1, 1)
    token.not_before = 0.0
    with pytest.raises(Unanswered, match="no token 2"):
        await token.get()
    assert token.not_before - asyncio.get_running_loop().time() > 1.5  # it doubles
    token.not_before, source.failing = 0.0, False
    assert await token.get() == "token-3"


@on_uvloop
async def test_a_token_serves_while_there_is_no_newer_one() -> None:
    token, source, failures = kept(3600)
    await token.get()
    token.newer_from, source.failing = 0.0, True
    assert await token.get() == "token-1"
    await eventually(lambda: failures)
    assert await token.get() == "token-1"
    assert source.asked == 2
    with pytest.raises(Unanswered, match="no token 2"):
        await token.get(newer=True)


@on_uvloop
async def test_who_gives_up_does_not_stop_the_question() -> None:
    token, source, _ = kept(3600)
    source.may = asyncio.Semaphore(0)
    waiting = asyncio.create_task(token.get())
    await eventually(lambda: source.asked)
    waiting.cancel()
    source.may.release()
    assert await token.get() == "token-1"
    assert source.asked == 1


@on_uvloop
async def test_a_token_that_does_not_say_when_it_ends_is_kept_for_a_minute() -> None:
    token, _, _ = kept(None)
    await token.get()
    assert 50 < token.ends - asyncio.get_running_loop().time() < 60


@on_uvloop
async def test_a_token_that_has_ended_already_is_an_error() -> None:
    token, _, failures = kept(0.0)
    with pytest.raises(Unanswered, match="has ended already"):
        await token.get()
    assert len(failures) == 1
