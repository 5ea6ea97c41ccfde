"""SASL tokens without a header, in the bytes of a connection: their sizes alone are kept."""

from __future__ import annotations

from typing import Any

import pytest

from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.cutting import filled
from tests.captures.made_traffic import Step, contents, exchange_steps, play
from tests.captures.streams.test_connection_reader import cells, heartbeat
from tests.proxy.traffic import byte_by_byte, exchange, metadata


@pytest.mark.parametrize(
    ("mechanism", "tokens"),
    [
        ("PLAIN", [("request", b"\0alice\0hush-hush"), ("response", b"")]),
        (
            "SCRAM-SHA-256",
            [
                ("request", b"n,,n=alice,r=hush-hush"), ("response", b"r=hush-hush,s=QSXC,i=4096"),
                ("request", b"c=biws,p=hush-hush"), ("response", b"v=hush-hush"),
            ],
        ),
        ("GSSAPI", [("request", b"\x60\x82hush-hush"), ("response", b"\x60hush-hush"), ("request", b"")]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("records", ["blank", "keep", "hash"])
def test_tokens_after_sasl_handshake_0_are_their_lengths(
    mechanism: str, tokens: list[tuple[Any, bytes]], records: Any
) -> None:
    handshake = exchange("SaslHandshake", 0, {"mechanism": mechanism}, {"mechanisms": [mechanism]})
    steps = exchange_steps(handshake)
    steps += [Step(side, len(token).to_bytes(4, "big") + token) for side, token in tokens]
    steps += exchange_steps(metadata(1, 2), heartbeat(3))
    rows = play(steps, byte_by_byte, Keeping(records, b"key"))
    there = [row for row in rows if row.kind == "token"]
    assert [(row.side, row.size) for row in there] == [(side, len(token)) for side, token in tokens]
    assert all(filled(row.frame or b"", row.blanks) == bytes(row.size) for row in there)
    assert b"hush" not in contents(rows)
    assert cells(rows, "api_key", "exchange") == [(17, 0), (17, 0), (3, 1), (3, 1), (12, 2), (12, 2)]


def test_behind_a_sasl_handshake_0_that_the_broker_refuses_come_requests() -> None:
    asked, answer = {"mechanism": "PLAIN"}, {"error_code": 34, "mechanisms": []}
    rows = play(exchange_steps(exchange("SaslHandshake", 0, asked, answer), metadata(1, 2), heartbeat(3)))
    assert cells(rows, "api_key", "exchange") == [(17, 0), (17, 0), (3, 1), (3, 1), (12, 2), (12, 2)]


def test_a_kerberos_client_of_kafka_0_9_sends_a_token_first() -> None:
    token = b"\0\0\0\x0b\x60\x82hush-hush"
    steps = [Step("request", token), Step("response", token), *exchange_steps(metadata(0, 1))]
    rows = play(steps)
    assert [row.kind for row in rows] == ["token", "token", "frame", "frame", "closed"]
    assert b"hush" not in contents(rows)
    assert cells(rows, "api_key", "exchange") == [(3, 0), (3, 0)]


def test_behind_kerberos_an_answer_out_of_turn_is_no_token() -> None:
    token, last = b"\0\0\0\x0b\x60\x82hush-hush", b"\0\0\0\x08\5\4\4\xffhush"
    first, second = exchange_steps(metadata(0, 1)), exchange_steps(heartbeat(2))
    steps = [Step("request", token), Step("response", token), Step("request", last)]
    rows = play([*steps, first[0], second[0], second[1], first[1]])
    assert [row.kind for row in rows] == ["token"] * 3 + ["frame"] * 4 + ["closed"]
    assert cells(rows, "api_key", "exchange") == [(3, 0), (12, 1), (12, 1), (3, 0)]
