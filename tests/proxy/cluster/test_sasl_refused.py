"""A broker that refuses a client's SASL is told in the log: the client itself often says less."""

from __future__ import annotations

import pytest

from tests.fakes.edge import cluster
from tests.fakes.waiting import on_uvloop

AUTHENTICATE = {"auth_bytes": b"\0app\0secret"}


@pytest.mark.parametrize("version", [1, 0])
@on_uvloop
async def test_a_mechanism_that_the_broker_does_not_take(version: int) -> None:
    async with cluster() as (klamm, [broker]):
        refusal = {"error_code": 33, "mechanisms": ["PLAIN"]}
        broker.answers["SaslHandshake"] = lambda *_: refusal
        client = await klamm.client(1)
        answer = await client.ask("SaslHandshake", version, {"mechanism": "SCRAM-SHA-256"})
        assert answer == refusal
        [line] = await klamm.logged("sasl_refused")
        assert line.message == (
            "the broker does not take the client's sasl.mechanism SCRAM-SHA-256: sasl.enabled.mechanisms of "
            "its listener has those that it takes (UNSUPPORTED_SASL_MECHANISM)"
        )
        names = "api", "client_id", "broker", "cluster"
        assert [line.fields[name] for name in names] == ["SaslHandshake", "app", "1", "kafka"]
        assert klamm.problems() == {"sasl_refused": 1}


@pytest.mark.parametrize(
    ("mechanism", "shown"),
    [("PLAIN", "PLAIN"), ("secret words", "unknown"), ("A" * 21, "unknown"), ("\x1b[2J", "unknown")],
)
@on_uvloop
async def test_credentials_that_the_broker_refuses(mechanism: str, shown: str) -> None:
    async with cluster() as (klamm, [broker]):
        broker.answers["SaslHandshake"] = lambda *_: {"error_code": 0, "mechanisms": [mechanism]}
        broker.answers["SaslAuthenticate"] = lambda *_: {"error_code": 58, "error_message": "no"}
        client = await klamm.client(1)
        await client.ask("SaslHandshake", 1, {"mechanism": mechanism})
        answer = await client.ask("SaslAuthenticate", 2, AUTHENTICATE)
        assert (answer["error_code"], answer["error_message"]) == (58, "no")
        [line] = await klamm.logged("sasl_refused")
        assert line.message == (
            f"the broker refuses the client's credentials, mechanism {shown}: look at its user and password, "
            "or token (SASL_AUTHENTICATION_FAILED)"
        )
        assert "secret" not in repr(line)


@on_uvloop
async def test_nothing_is_said_of_a_client_that_the_broker_takes() -> None:
    async with cluster() as (klamm, [broker]):
        broker.answers["SaslHandshake"] = lambda *_: {"error_code": 0, "mechanisms": ["PLAIN"]}
        broker.answers["SaslAuthenticate"] = lambda *_: {"error_code": 0}
        client = await klamm.client(1)
        await client.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
        await client.ask("SaslAuthenticate", 2, AUTHENTICATE)
        assert klamm.problems() == {}
