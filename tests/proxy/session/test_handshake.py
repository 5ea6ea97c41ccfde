"""SaslHandshake v0: what comes behind it is a token if the broker takes the mechanism, else a request."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from klamm.proxy.session.connection import WITHOUT_SASL
from klamm.proxy.session.effects import Effect, Send, Turn
from klamm.proxy.session.session import Session
from tests.fakes.broker import Connection, Request
from tests.fakes.client import Client
from tests.fakes.edge import cluster
from tests.fakes.waiting import on_uvloop
from tests.proxy.ruling.ruled import act, rule, ruled
from tests.proxy.traffic import Exchanged, at_random, byte_by_byte, exchange, ground, metadata, play, whole

ILLEGAL_SASL_STATE = 34
BEAT = {"group_id": "g", "member_id": "m"}
TOKEN = b"\0\0\0\x09\0user\0pas"


def handshake(error: int, number: int = 1, mechanism: str = "PLAIN") -> Exchanged:
    answer = {"error_code": error, "mechanisms": []}
    return exchange("SaslHandshake", 0, {"mechanism": mechanism}, answer, number)


def heartbeat(number: int) -> bytes:
    return request_frame(API[12], 4, number, "app", encode(BEAT, 12, 4, "request"))


def to(side: str, effects: bytes | list[Effect]) -> bytes:
    assert not isinstance(effects, bytes)
    return b"".join(bytes(each.data) for each in effects if isinstance(each, Send) and each.to == side)


def session(*rules: Any) -> Session:
    return Session(ruled(*rules) if rules else ground(), "1", "klamm.example", "10.0.0.7:50000")


@pytest.mark.parametrize("cut", [whole, byte_by_byte, at_random(Random(7), 5)])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "made-up"])
def test_a_request_behind_a_handshake_that_the_broker_refuses_is_read_as_one(
    cut: Any, mechanism: str
) -> None:
    made = [handshake(ILLEGAL_SASL_STATE, 0, mechanism), metadata(1, 1)]
    made += [handshake(ILLEGAL_SASL_STATE, 2, mechanism), metadata(3, 1)]
    outcome = play(made, cut, batch=1)
    refused = [(each.kind, each.message) for each in outcome.events]
    assert refused == [("sasl_refused", f"{WITHOUT_SASL} (ILLEGAL_SASL_STATE)")]  # of equal answers once
    assert outcome.broker == b"".join(one.request for one in made)
    assert outcome.client.count(b"klamm.example") == 2 * 3  # brokers
    assert b"kafka-1.internal" not in outcome.client


def test_rules_meet_a_request_that_came_in_one_write_with_a_refused_handshake() -> None:
    one = session(rule(act("error", 27), api="Heartbeat"))
    shake = handshake(ILLEGAL_SASL_STATE)
    began = one.from_client(shake.request + heartbeat(2), 1)
    assert to("broker", began) == shake.request
    assert isinstance(began, list)
    assert [each for each in began if isinstance(each, Turn)] == [Turn("request")]
    assert one.unmute(2) == []  # the broker has not answered yet
    assert one.muted
    answered = one.from_broker(shake.answer or b"", 3)
    assert to("client", answered) == shake.answer
    ruled_answer = one.unmute(4)
    assert to("broker", ruled_answer) == b""
    assert to("client", ruled_answer)[4:8] == (2).to_bytes(4, "big")
    assert not one.muted


def test_a_token_that_came_in_one_write_with_its_handshake_goes_on_behind_the_answer() -> None:
    one = session(rule(act("error", 27), api="Heartbeat"))
    shake = handshake(0)
    assert to("broker", one.from_client(shake.request + TOKEN[:5], 1)) == shake.request
    assert one.from_client(TOKEN[5:], 2) == []
    one.from_broker(shake.answer or b"", 3)
    assert to("broker", one.unmute(4)) == TOKEN
    assert one.from_broker(b"\0\0\0\0", 5) == b"\0\0\0\0"
    assert to("client", one.from_client(heartbeat(2), 6))[4:8] == (2).to_bytes(4, "big")


@pytest.mark.parametrize("cut", range(1, 24))
def test_a_token_that_came_in_one_read_with_the_end_of_its_handshake_goes_on_behind_the_answer(
    cut: int,
) -> None:
    one = session()
    shake = handshake(0)
    began = one.from_client(shake.request[:cut], 1)
    went = began if isinstance(began, bytes) else to("broker", began)
    rest = one.from_client(shake.request[cut:] + TOKEN, 2)
    assert went + to("broker", rest) == shake.request
    assert one.muted
    one.from_broker(shake.answer or b"", 3)
    assert to("broker", one.unmute(4)) == TOKEN
    assert one.from_broker(b"\0\0\0\0", 5) == b"\0\0\0\0"


def test_a_request_behind_a_handshake_that_a_rule_answers_is_read_as_one() -> None:
    one = session(rule(act("error", 33), api="SaslHandshake"), rule(act("error", 27), api="Heartbeat"))
    effects = one.from_client(handshake(0).request + heartbeat(2), 1)
    assert to("broker", effects) == b""
    answers = to("client", effects)
    assert answers[4:8] == (1).to_bytes(4, "big")
    assert answers[int.from_bytes(answers[:4], "big") + 8 :][:4] == (2).to_bytes(4, "big")
    assert not one.muted


@pytest.mark.parametrize("cut", range(1, 14))
def test_the_answer_to_a_handshake_may_come_in_pieces(cut: int) -> None:
    one = session(rule(act("error", 27), api="Heartbeat"))
    shake = handshake(ILLEGAL_SASL_STATE)
    answer = shake.answer or b""
    one.from_client(shake.request + heartbeat(2), 1)
    got = b""
    for part in (answer[:cut], answer[cut:]):
        effects = one.from_broker(part, 2)
        got += effects if isinstance(effects, bytes) else to("client", effects)
    assert got == answer
    assert to("client", one.unmute(3))[4:8] == (2).to_bytes(4, "big")


def test_a_rule_that_changes_the_answer_does_not_change_what_the_broker_expects() -> None:
    one = session(rule(act("error", 33), api="SaslHandshake", side="response"))
    shake = handshake(0)
    one.from_client(shake.request + TOKEN, 1)
    assert to("client", one.from_broker(shake.answer or b"", 2))[8:10] == (33).to_bytes(2, "big")
    assert to("broker", one.unmute(3)) == TOKEN


@on_uvloop
@pytest.mark.parametrize("error", [0, ILLEGAL_SASL_STATE])
async def test_over_sockets_all_that_a_client_sends_with_its_handshake_arrives(error: int) -> None:
    """In one write, and its end right behind."""
    asked: list[Request] = []

    def answers(connection: Connection, request: Request) -> dict[str, Any]:
        asked.append(request)
        return {"error_code": error, "mechanisms": []}

    async with cluster() as (klamm, [broker]):
        broker.answers["SaslHandshake"] = answers
        client: Client = await klamm.client(1)
        client.transport.write(handshake(error).request + heartbeat(2))
        client.send_fin()
        client.correlation_id = 2
        assert (await client.answer("SaslHandshake", 0))["error_code"] == error
        assert (await client.answer("Heartbeat", 4))["error_code"] == 0  # it reads it anyhow
        assert await client.ended() == "FIN"
        assert [request.name for request in broker.requests("Heartbeat")] == ["Heartbeat"]
        assert len(asked) == 1
        counted = sum(row.requests for key, row in klamm.stats.requests.items() if "Heartbeat" in key)
        assert counted == (0 if error == 0 else 1)
