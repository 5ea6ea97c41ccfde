"""Bytes with which `python -m tests.fuzz.fuzz_session` has found mistakes."""

from __future__ import annotations

import pytest

from klamm.proxy.session.effects import Close
from klamm.proxy.session.session import Session
from tests.proxy.traffic import ADVERTISE, Outcome, Recorder, exchange, ground, kinds

HANDSHAKE = exchange("SaslHandshake", 0, {"mechanism": "PLAIN"}, {"mechanisms": ["PLAIN"]})
TOKEN = b"\0\0\0\x08\0user\0pw"


@pytest.mark.parametrize("pieces", [[b"\xff\xff\xff\xff\xff", b"\xff" * 3], [b"\xff" * 8], [b"\xff"] * 8])
def test_a_size_below_zero_where_a_token_is_due_ends_the_connection(pieces: list[bytes]) -> None:
    at = ground()
    edge = Recorder(Session(at, "1", ADVERTISE), at, Outcome())
    for data in (HANDSHAKE.request, TOKEN):
        edge.take("broker", edge.session.from_client(data, 0), data)
    for data in (HANDSHAKE.answer or b"", *pieces):
        edge.take("client", edge.session.from_broker(data, 0), data)
    assert kinds(edge.outcome.events) == [(Close, "bad_size")]
    assert edge.outcome.client == HANDSHAKE.answer
