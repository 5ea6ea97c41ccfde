"""klamm's own authentication says what the RFCs' clients say."""

import asyncio
import secrets
from typing import Any

import pytest

from klamm.proxy.cluster.conversation import Credentials, Unanswered
from klamm.proxy.cluster.own_sasl import sasl
from klamm.proxy.config_types import Address

PENCIL = Credentials("SCRAM-SHA-256", "user", "pencil")
NONCE = "rOprNGfwEbeRWgbNEkqO"
BOTH = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CHALLENGE = f"r={BOTH},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
VERDICT = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


class Spoken:
    """A broker that gives prepared answers."""

    address, name = Address("broker", 9092), "broker"

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers, self.asked = list(answers), list[dict[str, Any]]()

    async def ask(self, key: int, version: int, values: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(values)
        return self.answers.pop(0)


def authenticated(spoken: Spoken, credentials: Credentials) -> None:
    asyncio.run(sasl.authenticate(spoken, credentials))  # type: ignore[arg-type]


def test_scram_is_that_of_rfc_7677() -> None:
    exchange = sasl.scram(PENCIL, NONCE)
    assert next(exchange) == f"n,,n=user,r={NONCE}".encode()
    proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert exchange.send(CHALLENGE) == f"c=biws,r={BOTH},p={proof}".encode()
    with pytest.raises(StopIteration):
        exchange.send(VERDICT)


@pytest.mark.parametrize(
    ("challenge", "verdict"),
    [
        (b"r=another,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", VERDICT),
        (CHALLENGE.replace(b"4096", b"999999999"), VERDICT),
        (CHALLENGE.replace(b"4096", b"many"), VERDICT),
        (CHALLENGE, VERDICT.replace(b"6rri", b"7rri")),
        (CHALLENGE, b"e=other-error"),
        (b"\xff", VERDICT),
    ],
)
def test_a_server_that_does_not_prove_itself_is_refused(
    challenge: bytes, verdict: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"error_code": 0}
    spoken = Spoken(answer, answer | {"auth_bytes": challenge}, answer | {"auth_bytes": verdict})
    monkeypatch.setattr(secrets, "token_urlsafe", lambda size: NONCE)
    with pytest.raises(Unanswered, match="broker:9092 is not to be trusted with SCRAM-SHA-256"):
        authenticated(spoken, PENCIL)


def test_names_with_signs_of_scram_are_escaped() -> None:
    assert next(sasl.scram(PENCIL._replace(username="a=b,c"), "x")) == b"n,,n=a=3Db=2Cc,r=x"


def test_plain_says_who_and_the_password() -> None:
    spoken = Spoken({"error_code": 0}, {"error_code": 0, "auth_bytes": b""})
    authenticated(spoken, Credentials("PLAIN", "alice", "secret"))
    assert spoken.asked == [{"mechanism": "PLAIN"}, {"auth_bytes": b"\0alice\0secret"}]


def test_a_refusal_is_told_without_the_password() -> None:
    refused = Spoken({"error_code": 0}, {"error_code": 58, "error_message": "no", "auth_bytes": b""})
    with pytest.raises(Unanswered, match="broker:9092 refuses alice: no") as caught:
        authenticated(refused, Credentials("PLAIN", "alice", "s3cr3t"))
    assert "s3cr3t" not in str(caught.value) + repr(Credentials("PLAIN", "alice", "s3cr3t"))
    lacking = Spoken({"error_code": 33, "mechanisms": ["GSSAPI"]})
    with pytest.raises(Unanswered, match=r"UNSUPPORTED_SASL_MECHANISM.*its mechanisms: GSSAPI"):
        authenticated(lacking, PENCIL)
