"""Tokens of OAUTHBEARER."""

from __future__ import annotations

import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.proxy.sasl.mechanisms import INVALID_TOKEN, Bearer
from klamm.proxy.sasl.tokens import LEEWAY_S, BadToken, Expected, Tokens, load_keys, parse_keys
from klamm.proxy.sasl.verdicts import Challenge, Failed, Proven
from tests.proxy.sasl_ground import bearer
from tests.tokens import AUDIENCE, ISSUER, Issuer

ONE = Issuer()
EXPECTED = Expected(ISSUER, (AUDIENCE, "other"))


def tokens(issuer: Issuer = ONE, expected: Expected = EXPECTED) -> Tokens:
    return Tokens(lambda: parse_keys(issuer.jwks.encode(), "jwks"), expected)


@pytest.mark.parametrize("algorithm", ["RS256", "PS384", "ES256"])
def test_a_token_of_the_issuer_names_its_user(algorithm: str) -> None:
    issuer = Issuer(algorithm=algorithm)
    user, until = tokens(issuer)(issuer.token("alice"))
    assert user == "alice"
    assert 500 < until - time.time() < 700


def test_a_key_set_of_one_key_needs_no_kid_and_another_claim_may_name_the_user() -> None:
    issuer = Issuer(kid=None)
    found = tokens(issuer, EXPECTED._replace(claim="azp"))(issuer.token("x", azp="billing"))
    assert found[0] == "billing"


NOW = int(time.time())
REFUSED: dict[str, tuple[Callable[[], str], str]] = {
    "expired": (lambda: ONE.token(exp=NOW - 2 * LEEWAY_S), "expired"),
    "not yet valid": (lambda: ONE.token(nbf=NOW + 3600), "not valid yet"),
    "another issuer": (lambda: ONE.token(iss="https://other.example.com"), "issuer"),
    "another audience": (lambda: ONE.token(aud="payroll"), "audience"),
    "no expiry": (lambda: ONE.token(exp=None), "missing"),
    "no audience": (lambda: ONE.token(aud=None), "missing"),
    "no subject": (lambda: ONE.token(sub=None), "missing"),
    "an empty subject": (lambda: ONE.token(""), "no name"),
    "a subject with control characters": (lambda: ONE.token("a\x1b[2J"), "no name"),
    "another key": (lambda: Issuer().token(), "signature"),
    "a key that is not there": (lambda: Issuer(kid="two").token(), "kid"),
    "no signature": (
        lambda: jwt.encode({"sub": "alice", "exp": NOW + 60}, "", "none", {"kid": "one"}),
        "algorithm",
    ),
    "the public key as a secret": (lambda: symmetric(), "algorithm"),
    "no token": (lambda: "planted", "no valid token"),
}


def symmetric() -> str:
    """As if the key set were a secret: klamm takes no symmetric algorithm."""
    claims = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "exp": NOW + 600}
    parts = [json.dumps(each).encode() for each in ({"alg": "HS256", "kid": "one"}, claims)]
    signed = b".".join(urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = urlsafe_b64encode(hmac.digest(ONE.jwks.encode(), signed, "sha256")).rstrip(b"=")
    return b".".join((signed, signature)).decode()


@pytest.mark.parametrize("case", REFUSED)
def test_a_token_that_proves_nothing_is_refused_with_its_reason(case: str) -> None:
    make, says = REFUSED[case]
    token = make()
    with pytest.raises(BadToken, match=says) as refused:
        tokens()(token)
    assert token not in str(refused.value)


@given(
    token=st.text(max_size=60)
    | st.lists(st.binary(max_size=30), max_size=4).map(lambda p: ".".join(map(str, p)))
)
def test_any_text_is_refused_as_a_token(token: str) -> None:
    with pytest.raises(BadToken):
        tokens()(token)


def test_a_refused_token_is_told_twice_as_rfc_7628_says() -> None:
    mechanism = Bearer(tokens())
    first = mechanism.answer(bearer(Issuer().token()))
    assert isinstance(first, Challenge)
    assert first.token == INVALID_TOKEN.encode()
    assert first.failed is not None
    assert "signature" in first.failed.why
    assert json.loads(INVALID_TOKEN) == {"status": "invalid_token"}
    last = mechanism.answer(b"\x01")
    assert isinstance(last, Failed)
    assert last.told == INVALID_TOKEN


def test_a_token_is_good_for_its_own_user_only() -> None:
    assert isinstance(Bearer(tokens()).answer(bearer(ONE.token(), "alice")), Proven)
    assert isinstance(Bearer(tokens()).answer(bearer(ONE.token(), "bob")), Failed)


@pytest.mark.parametrize(
    "message",
    [b"", b"n,,", b"y,,\x01auth=Bearer x\x01\x01", b"n,,\x01auth=Basic x\x01\x01", b"n,,\x01\x01", b"\xff"],
)
def test_a_message_without_a_token_is_refused(message: bytes) -> None:
    assert isinstance(Bearer(tokens()).answer(message), Failed)


def key_set(**changes: Any) -> str:
    [key] = json.loads(ONE.jwks)["keys"]
    return json.dumps({"keys": [{**key, **changes}]})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "no key set"),
        ("[]", "no key set"),
        ('{"keys": []}', "empty"),
        ('{"keys": [1]}', r"keys\[0\]"),
        ('{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}', "public one"),
        (key_set(d="AQAB"), "private key"),
        (key_set(alg="HS256"), "alg"),
        (key_set(use="enc"), "signatures"),
        (json.dumps({"keys": 2 * json.loads(ONE.jwks)["keys"]}), "same kid"),
    ],
)
def test_a_key_set_that_cannot_be_used_says_why(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(text)
    with pytest.raises(OSError, match=says) as refused:
        load_keys(str(file))
    assert str(file) in str(refused.value)
