"""Bodies that cannot be read by a rule or by the broker: no defect, one end however they are cut."""

from __future__ import annotations

from random import Random

import pytest

from klamm.decoders import API
from klamm.decoders.headers import response_header_version
from klamm.decoders.schema import ALL, Side
from klamm.proxy.session.effects import Close, Exchange, Hold, MuteChannel
from klamm.proxy.session.response_bodies import TAIL_HELD
from klamm.rules.rule import Rule
from tests.proxy.ruling.ruled import Talk, act, engine_of, frames, rule, ruled
from tests.proxy.ruling.test_ruling_properties import (
    CUTS,
    KINDS,
    any_rule,
    effects_by_side,
    key_of,
    number_of,
)
from tests.proxy.traffic import Cutting, Exchanged, Outcome, at_random, fetch, ground, metadata, play, whole

WHAT = ("truncate", "body")


def corrupting(random: Random) -> Rule:
    """One that makes bodies unreadable, of answers or of requests."""
    side: Side = "request" if random.random() < 0.5 else "response"
    of = random.choice(("answer", "request")) if side == "request" else "answer"
    action = act("corrupt", random.choice(WHAT), random.choice((1, 3, 50)), of=of)
    return Rule("corrupts", (action,), versions=ALL, side=side)


def spoken(seed: int, cut: Cutting | None) -> Talk:
    """Requests under any rules and one that corrupts; the broker answers what it gets by correlation id."""
    random = Random(seed)
    rules = [any_rule(random, number) for number in range(random.randint(1, 3))]
    rules.insert(random.randint(0, len(rules)), corrupting(random))
    exchanges = [random.choice(KINDS)(number) for number in range(1, random.randint(2, 10))]
    cut = cut or random.choice(CUTS)(random)
    talk = Talk(ruled(*rules))
    asked = frames(talk.client(*exchanges, cut=cut).broker)
    talk.broker(*(answer for frame in asked if (answer := answer_to(frame, exchanges)) is not None), cut=cut)
    unread = ("DecodeError", "RecordsError")
    assert [why for _, why in engine_of(talk.at).failed if not why.startswith(unread)] == []
    return talk


def without_times(talk: Talk) -> dict[object, list[object]]:
    """Effects by where they go. A throttle time passes at once here, so that times depend on the cuts."""
    return {
        to: [type(each) if isinstance(each, Hold | MuteChannel) else each for each in effects]
        for to, effects in effects_by_side(talk).items()
    }


def answer_to(request: bytes, exchanges: list[Exchanged]) -> bytes | None:
    return exchanges[number_of(request, "request") - 1].answer


@pytest.mark.parametrize("seed", range(300))
def test_rules_after_one_that_corrupts_meet_no_defect_however_frames_are_cut(seed: int) -> None:
    once, again = spoken(seed, whole), spoken(seed, None)
    assert again.outcome.client == once.outcome.client
    assert again.outcome.broker == once.outcome.broker
    assert without_times(again) == without_times(once)


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("side", ["request", "response"])
def test_hide_and_corrupt_meet_on_one_answer(what: str, side: str) -> None:
    hides = rule(act("hide", "Fetch"), api="ApiVersions", name="hides")
    corrupts = rule(act("corrupt", what, 3), api="ApiVersions", name="corrupts", side=side)
    asked = next(kind(1) for kind in KINDS if key_of(kind(1).request) == 18)
    talk = Talk(ruled(hides, corrupts))
    talk.client(asked)
    talk.broker(asked)
    assert len(frames(talk.outcome.client)) == 1
    assert not talk.ended


def spoilt(one: Exchanged, random: Random) -> Exchanged:
    """The exchange with an answer that was truncated, or in which bytes have changed."""
    assert one.answer is not None
    start = 9 if response_header_version(API[key_of(one.request)], version_of(one.request)) else 8
    body = bytearray(one.answer[start:])
    if random.random() < 0.5:
        del body[random.randrange(len(body) + 1) :]
    else:
        for _ in range(random.randint(1, 4)):
            body[random.randrange(len(body))] = random.randrange(256)
    frame = one.answer[4:start] + bytes(body)
    return Exchanged(one.request, len(frame).to_bytes(4, "big") + frame)


def version_of(request: bytes) -> int:
    return int.from_bytes(request[6:8], "big")


def comparable(outcome: Outcome) -> tuple[bytes, bytes, list[tuple[str, str]], list[str]]:
    """The bytes, what is said of the end, and the exchanges."""
    ends = [(event.kind, event.api) for event in outcome.events if isinstance(event, Close)]
    shown = [event.fields["api"] for event in outcome.events if isinstance(event, Exchange)]
    return outcome.broker, outcome.client, ends, shown


@pytest.mark.parametrize("seed", range(300))
def test_a_spoilt_answer_has_the_same_end_however_it_is_cut(seed: int) -> None:
    random = Random(seed)
    exchanges = [random.choice(KINDS)(number) for number in range(1, random.randint(2, 6))]
    exchanges = [one for one in exchanges if one.answer is not None] or [metadata(1, 1)]
    at = random.randrange(len(exchanges))
    exchanges[at] = spoilt(exchanges[at], random)
    once = play(exchanges, whole, ground())
    for _ in range(3):
        again = play(exchanges, at_random(random, random.randint(1, 300)), ground())
        assert comparable(again) == comparable(once)


@pytest.mark.parametrize("seed", range(60))
def test_a_large_spoilt_answer_has_the_same_end_however_it_is_cut(seed: int) -> None:
    random = Random(seed)
    size = TAIL_HELD + random.randrange(50_000)
    exchanges = [spoilt(fetch(16, 1, size=size, endpoints=True), random), metadata(1, 2)]
    once = play(exchanges, whole, ground())
    for _ in range(3):
        again = play(exchanges, at_random(random, random.randint(1000, 200_000)), ground())
        (_, less, *ends), (_, more, *others) = sorted((comparable(once), comparable(again)), key=client_bytes)
        assert ends == others
        assert more.startswith(less)
        assert less == more or ends[0], "only what goes before the end of a connection depends on the cuts"


def client_bytes(one: tuple[bytes, bytes, list[tuple[str, str]], list[str]]) -> int:
    return len(one[1])
