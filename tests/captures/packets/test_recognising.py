"""Recognising Kafka, and which end is the client."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from klamm.captures.packets.recognising import Guess, Kind
from klamm.decoders import API
from klamm.decoders.headers import request_frame
from tests.captures.dialogue import request, response

HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
OTHERS = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: example\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "ZooKeeper": bytes.fromhex("0000002d 00000000 0000000000000000 00007530 0000000000000000 00000010")
    + bytes(17),
    "PostgreSQL": b"\0\0\0\x22\0\3\0\0user\0postgres\0database\0orders\0\0",
    "Redis": b"*1\r\n$4\r\nPING\r\n",
    "zeros": bytes(100),
}
FETCH: dict[str, Any] = {"name": "Fetch", "version": 4, "max_wait_ms": 500, "min_bytes": 1, "topics": []}


def kind(guess: Guess, *chunks: tuple[int, bytes]) -> Kind:
    for way, data in chunks:
        if found := guess.hear(way, data):
            return found
    return guess.end()


def test_a_first_request_that_decodes_is_kafka_however_it_is_cut() -> None:
    data = request(1)
    for cut in range(1, len(data)):
        guess = Guess(0)
        assert guess.hear(0, data[:cut]) is None
        assert guess.hear(0, data[cut:]) == "Kafka"


NEWER = request_frame(
    API["ApiVersions"], API["ApiVersions"].versions.last + 1, 1, "app", b"\5app\21\0\xff\xff\xff\xff\0"
)


def test_a_client_that_is_newer_than_klamm_begins_with_an_apiversions_that_does_not_decode() -> None:
    for cut in range(1, len(NEWER)):
        guess = Guess(0)
        assert guess.hear(0, NEWER[:cut]) is None
        assert guess.hear(0, NEWER[cut:]) == "Kafka"
    assert kind(Guess(0), (0, NEWER.replace(b"app", b"\1\2\3"))) == "other"
    assert kind(Guess(0), (0, NEWER[:6] + b"\1\0" + NEWER[8:])) == "other"


def test_no_broker_speaks_first() -> None:
    assert Guess(0).hear(1, response(1, api_keys=[])) == "other"
    assert Guess(0).end() == "other"


def test_clients_of_0_9_begin_with_a_token() -> None:
    assert Guess(1).hear(1, b"\0\0\2\0\x60" + bytes(20)) == "Kafka"


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("client", [0, None])
def test_other_protocols_are_other(name: str, client: int | None) -> None:
    chunks = (0, OTHERS[name]), (1, b"what it answers"), (0, OTHERS[name])
    assert kind(Guess(client), *chunks) == "other"


@pytest.mark.parametrize("client", [0, None])
def test_tls_is_named(client: int | None) -> None:
    assert kind(Guess(client), (0, HELLO), (1, b"\x16\x03\x03\0\x7a\x02" + bytes(100))) == "TLS"
    application = b"\x17\x03\x03\1\0" + Random(1).randbytes(256)
    assert kind(Guess(None), (0, application[9:]), (1, application)) == "TLS"


@pytest.mark.parametrize("way", [0, 1])
def test_the_client_is_where_two_requests_in_a_row_are(way: int) -> None:
    """Of a connection that began before."""
    guess = Guess(None)
    assert guess.hear(way, b"the rest of a request" + request(1, **FETCH)) is None
    assert guess.hear(1 - way, response(1, api_keys=[])) is None
    assert guess.hear(way, request(2, **FETCH)) == "Kafka"
    assert guess.client == way


def test_one_request_is_enough_where_there_is_no_more() -> None:
    guess = Guess(None)
    assert guess.hear(0, request(1, **FETCH)) is None
    assert guess.end() == "Kafka"
    assert guess.client == 0


def test_noise_is_not_kafka_and_not_kept_for_ever() -> None:
    random, guess = Random(1), Guess(None)
    kinds = [guess.hear(0, random.randbytes(1 << 16)) for _ in range(40)]
    assert kinds[-1] == "other"
    assert None in kinds


def test_what_looks_like_requests_without_end_is_not_kept_for_ever() -> None:
    guess = Guess(None)
    begun = b"\0\x7f\xff\xff" + request(1, **FETCH)[4:]  # of 8 MiB
    kinds = [guess.hear(0, begun.ljust(1 << 20, b"\xff")) for _ in range(12)]
    assert kinds[-1] == "other"
    assert kinds[0] is None
