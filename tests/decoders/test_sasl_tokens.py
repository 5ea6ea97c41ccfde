"""Telling raw tokens of a client from requests."""

from __future__ import annotations

import pytest

from klamm.decoders.sasl_tokens import Tokens

METADATA, API_VERSIONS, SASL_HANDSHAKE, PRODUCE = 3, 18, 17, 0


def first_two(token: bytes) -> int:
    return int.from_bytes(token[:2], "big")


@pytest.mark.parametrize(
    ("mechanism", "tokens"),
    [
        ("PLAIN", [b"\0alice\0secret"]),
        ("PLAIN", [b"admin\0alice\0secret"]),
        (
            "SCRAM-SHA-256",
            [b"n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL", b"c=biws,r=fyko,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="],
        ),
        ("SCRAM-SHA-512", [b"y,,n=alice,r=abcdefgh", b"c=eSws,r=abc,p=xyz"]),
        ("OAUTHBEARER", [b"n,,\1auth=Bearer token\1\1", b"\1"]),
        ("GSSAPI", [b"\x60\x82\x02\x10" + bytes(50), b"", b"\5\4\4\xff" + bytes(28)]),
        ("AWS_MSK_IAM", [b'{"version":"2020_10_22"}']),
    ],
)
def test_the_tokens_of_a_mechanism_are_told_from_requests(mechanism: str, tokens: list[bytes]) -> None:
    state = Tokens(mechanism)
    for token in tokens:
        assert state.is_token(len(token), first_two(token))
        state.from_client()
    for key in (METADATA, API_VERSIONS, 92):
        assert not state.is_token(30, key)
    assert state.awaited == len(tokens)


def test_plain_has_one_token() -> None:
    state = Tokens("PLAIN")
    state.from_client()
    assert not state.is_token(30, PRODUCE)


def test_a_second_handshake_is_a_request() -> None:
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "GSSAPI"):
        assert not Tokens(mechanism).is_token(30, SASL_HANDSHAKE)


def test_what_is_shorter_than_a_request_is_a_token() -> None:
    assert Tokens("GSSAPI").is_token(0, METADATA)
    assert Tokens("OAUTHBEARER").is_token(7, 0)


def test_answers_of_the_broker_are_counted_down() -> None:
    state = Tokens("GSSAPI")
    state.from_client()
    state.from_client()
    state.from_broker()
    assert state.awaited == 1


def test_a_request_is_the_end_of_gssapi_whose_last_token_gets_no_answer() -> None:
    for mechanism, awaited in (("GSSAPI", 0), ("PLAIN", 1)):
        state = Tokens(mechanism)
        state.from_client()
        state.over()
        assert state.awaited == awaited
