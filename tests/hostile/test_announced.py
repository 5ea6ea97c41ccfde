"""Frames of every kind that announce a gigabyte, from a client or a broker: no more is kept than may be."""

from __future__ import annotations

import pytest

from klamm.decoders import API, encode
from klamm.decoders.headers import REQUEST, request_frame
from klamm.decoders.schema import Api
from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.effects import Close, Effect, Send
from klamm.proxy.session.own_answers import ANSWERED_LIMIT
from klamm.proxy.session.requests import HEADER_LIMIT
from klamm.proxy.session.session import Session
from tests.proxy.ruling.ruled import act, rule, ruled
from tests.proxy.traffic import ground

SIZE = (1 << 30) - 4
CHUNK = 65_536
HELD = 300_000
KINDS = [(api, version) for api in API for version in {api.versions.first, api.versions.last} if version >= 0]
UNKNOWN = [(18, 99), (777, 0), (0, 77), (3, 99), (-1, -1)]


def session(rules: bool) -> Session:
    at: ClusterContext = ruled(rule(act("error", 41)), held_limit=HELD) if rules else ground(held_limit=HELD)
    return Session(at, "1", "klamm.example", "10.0.0.7:50000")


def sent(effects: bytes | list[Effect]) -> int:
    if isinstance(effects, bytes):
        return len(effects)
    return sum(len(each.data) for each in effects if isinstance(each, Send))


def closes(effects: bytes | list[Effect]) -> bool:
    return not isinstance(effects, bytes) and any(isinstance(each, Close) for each in effects)


def check(one: Session, key: int, version: int, cut: int) -> None:
    """Half a megabyte of such a request, whose first bytes come in two reads."""
    start = REQUEST.pack(SIZE, key, version, 1) + b"\0\3app\0"
    given = passed = 0
    for piece in (start[:cut], start[cut:], *[bytes(CHUNK)] * 8):
        if piece:
            effects = one.from_client(piece, 1)
            given, passed = given + len(piece), passed + sent(effects)
            if closes(effects):
                return
            assert given - passed <= max(HELD, HEADER_LIMIT, ANSWERED_LIMIT) + CHUNK
            assert one.connection.held <= HELD + CHUNK
    assert given - passed <= CHUNK


@pytest.mark.parametrize("rules", [False, True], ids=["no rules", "rules"])
@pytest.mark.parametrize("cut", range(17))
def test_a_request_of_any_kind_is_not_kept(cut: int, rules: bool) -> None:
    for api, version in KINDS:
        check(session(rules), api.key, version, cut)
    for key, version in UNKNOWN:
        check(session(rules), key, version, cut)


@pytest.mark.parametrize("cut", range(13))
def test_an_answer_of_any_kind_is_not_kept_beyond_the_limit(cut: int) -> None:
    for api, version in KINDS:
        one = asked(api, version)
        start = SIZE.to_bytes(4, "big") + (1).to_bytes(4, "big") + b"\0\0\0\0"
        given = passed = 0
        for piece in (start[:cut], start[cut:], *[bytes(CHUNK)] * 16):
            if not piece:
                continue
            effects = one.from_broker(piece, 1)
            given, passed = given + len(piece), passed + sent(effects)
            if closes(effects):
                break
            assert given - passed <= 2 * HELD + CHUNK, (api.name, version)


def asked(api: Api, version: int) -> Session:
    """A session that waits for an answer of this kind."""
    one = session(False)
    one.from_client(request_frame(api, version, 1, "app", encode({}, api.key, version, "request")), 1)
    return one
