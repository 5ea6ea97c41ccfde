"""The mechanisms on klamm's side: who is let in, and that nobody learns which users there are."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.proxy.sasl.mechanisms import Mechanism, Plain, Scram
from klamm.proxy.sasl.scram import DIGESTS
from klamm.proxy.sasl.users import Users, credential_of
from klamm.proxy.sasl.verdicts import Challenge, Check, Failed, Proven, Verdict
from tests.proxy.sasl_ground import ALICE, FEW, PASSWORD, SALT, ScramClient, plain, realm, users_of

KEY = b"key"


def judged(verdict: Verdict) -> Verdict:
    """After the work, if there is any."""
    return verdict.work() if isinstance(verdict, Check) else verdict


def scram(name: str, password: str, mechanism: str = "SCRAM-SHA-256", users: Users = ALICE) -> Verdict:
    """The verdict on a client of SCRAM."""
    server, client = Scram(users, mechanism, "klamm-nonce"), ScramClient(mechanism, name, password)
    challenge = server.answer(client.first())
    assert isinstance(challenge, Challenge)
    verdict = server.answer(client.final(challenge.token))
    if isinstance(verdict, Proven):
        assert verdict.token == b"v=" + b64encode(client.signature)
    return verdict


def test_plain_takes_the_password_of_a_user() -> None:
    verdict = judged(Plain(ALICE, KEY).answer(plain()))
    assert isinstance(verdict, Proven)
    assert verdict.user == "alice"
    assert isinstance(judged(Plain(ALICE, KEY).answer(plain(identity="alice"))), Proven)


@pytest.mark.parametrize("mechanism", DIGESTS)
def test_plain_is_checked_against_any_credential_of_scram(mechanism: str) -> None:
    users = Users({("alice", mechanism): credential_of(mechanism, PASSWORD, SALT, FEW)}, b"secret")
    assert isinstance(judged(Plain(users, KEY).answer(plain())), Proven)


@pytest.mark.parametrize(
    "message",
    [
        plain(password="wrong"),
        plain("bob"),
        plain(name=""),
        plain(password=""),
        plain(identity="bob"),
        plain(password="x" * 2000),
        b"alice",
        b"\0\xff\0x",
        b"",
    ],
)
def test_plain_refuses_all_else(message: bytes) -> None:
    assert isinstance(judged(Plain(ALICE, KEY).answer(message)), Failed)


@pytest.mark.parametrize("mechanism", DIGESTS)
def test_scram_takes_the_password_of_a_user_and_shows_that_klamm_knows_it(mechanism: str) -> None:
    verdict = scram("alice", PASSWORD, mechanism)
    assert isinstance(verdict, Proven)
    assert verdict.user == "alice"


def test_names_with_commas_and_equals_signs_are_escaped_in_scram() -> None:
    odd = users_of({"a,b=c": PASSWORD})
    verdict = scram("a,b=c", PASSWORD, users=odd)
    assert isinstance(verdict, Proven)
    assert verdict.user == "a,b=c"


def test_an_unknown_user_and_a_wrong_password_have_the_same_answers() -> None:
    for mechanism in DIGESTS:
        wrong, unknown = scram("alice", "wrong", mechanism), scram("bob", PASSWORD, mechanism)
        assert isinstance(wrong, Failed)
        assert isinstance(unknown, Failed)
        assert (wrong.told, wrong.why) == (unknown.told, unknown.why)
    wrong, unknown = (judged(Plain(ALICE, KEY).answer(each)) for each in (plain(password="x"), plain("bob")))
    assert isinstance(wrong, Failed)
    assert isinstance(unknown, Failed)
    assert (wrong.told, wrong.why) == (unknown.told, unknown.why)


def work(monkeypatch: pytest.MonkeyPatch, message: bytes, users: Users = ALICE) -> list[Any]:
    """The arguments of the hashes that a message of PLAIN takes."""
    done: list[Any] = []

    def hashed(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        done.append((name, len(salt), iterations))
        return bytes(hashlib.new(name).digest_size)

    with monkeypatch.context() as patched:
        patched.setattr(hashlib, "pbkdf2_hmac", hashed)
        judged(Plain(users, KEY).answer(message))
    return done


def test_an_unknown_user_and_a_wrong_password_take_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [("sha512", len(SALT), FEW)]
    assert work(monkeypatch, plain(password="wrong")) == expected
    assert work(monkeypatch, plain("bob")) == expected
    assert work(monkeypatch, plain()) == expected


@pytest.mark.parametrize("mechanism", DIGESTS)
def test_scram_hashes_as_often_for_an_unknown_user_as_for_a_known_one(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest, done = hmac.digest, list[int]()

    def counted(key: bytes, message: bytes, name: str) -> bytes:
        done.append(len(message))
        return digest(key, message, name)

    monkeypatch.setattr(hmac, "digest", counted)
    users = users_of({f"user-{number}": PASSWORD for number in range(5)})
    taken = []
    for name in ("user-1", "nobody"):
        done.clear()
        scram(name, "wrong", mechanism, users)
        taken.append(len(done))
    assert taken[0] == taken[1] > 0


def test_the_work_for_unknown_users_is_spread_as_that_for_those_that_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = {
        (f"user-{number}", "SCRAM-SHA-512"): credential_of("SCRAM-SHA-512", "x", SALT, FEW + number % 2)
        for number in range(4)
    }
    users = Users(found, b"secret")
    taken = [work(monkeypatch, plain(f"nobody-{number}"), users)[0][2] for number in range(60)]
    assert set(taken) == {FEW, FEW + 1}
    again = [work(monkeypatch, plain(f"nobody-{number}"), users)[0][2] for number in range(60)]
    assert taken == again


@pytest.mark.parametrize("mechanism", DIGESTS)
def test_an_unknown_user_of_scram_has_a_salt_like_others_and_the_same_each_time(
    mechanism: str,
) -> None:
    known, _ = ALICE.of_scram("alice", mechanism)
    one, there = ALICE.of_scram("bob", mechanism)
    assert not there
    assert one == ALICE.of_scram("bob", mechanism)[0]
    assert (len(one.salt), one.iterations) == (len(known.salt), known.iterations)
    assert len(one.stored_key) == len(known.stored_key)
    assert one.salt != ALICE.of_scram("carol", mechanism)[0].salt
    other_secret = users_of({"alice": PASSWORD}, b"another")
    assert one.salt != other_secret.of_scram("bob", mechanism)[0].salt


@pytest.mark.parametrize(
    "first",
    [
        b"y,,n=alice,r=x",  # channel binding, which klamm does not offer
        b"p=tls-unique,,n=alice,r=x",
        b"n,,n=alice",
        b"n,,r=x",
        b"n,,n=,r=x",
        b"n,,n=alice,r=",
        b"n,,n=al=ice,r=x",
        b"n,,m=x,n=alice,r=x",
        b"n,a=bob,n=alice,r=x",
        b"",
        b"\xff",
        b"n,,n=alice,r=" + b"x" * 300,
    ],
)
def test_scram_refuses_a_first_message_that_is_none(first: bytes) -> None:
    assert isinstance(Scram(ALICE, "SCRAM-SHA-256", "n").answer(first), Failed)


@pytest.mark.parametrize("change", [("r=client-nonce", "r=another"), ("c=biws", "c=eSws"), (",p=", ",p=AA")])
def test_scram_refuses_a_final_message_that_has_been_changed(change: tuple[str, str]) -> None:
    server, client = Scram(ALICE, "SCRAM-SHA-256", "n"), ScramClient("SCRAM-SHA-256", "alice", PASSWORD)
    challenge = server.answer(client.first())
    assert isinstance(challenge, Challenge)
    final = client.final(challenge.token).decode()
    assert change[0] in final
    assert isinstance(server.answer(final.replace(*change).encode()), Failed)


def test_a_delegation_token_of_the_brokers_is_none_of_klamm() -> None:
    server, client = Scram(ALICE, "SCRAM-SHA-256", "n"), ScramClient("SCRAM-SHA-256", "alice", PASSWORD)
    client.bare += ",tokenauth=true"
    challenge = server.answer(client.first())
    assert isinstance(challenge, Challenge)
    assert isinstance(server.answer(client.final(challenge.token)), Failed)


@given(messages=st.lists(st.binary(max_size=80) | st.text("nra=,pvcsi\0\x01 ", max_size=40).map(str.encode)))
def test_no_bytes_let_anybody_in_or_make_klamm_fail(messages: list[bytes]) -> None:
    here = realm()
    for each in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        mechanism: Mechanism | None = here.begin(each)
        assert mechanism is not None
        for message in messages:
            verdict = mechanism.answer(message)
            assert not isinstance(verdict, Proven)
            if isinstance(verdict, Failed):
                break


def test_a_password_that_was_proven_before_takes_no_work_while_the_file_has_it() -> None:
    before = judged(Plain(ALICE, KEY).answer(plain()))
    assert isinstance(before, Proven)
    assert Plain(ALICE, KEY, before).answer(plain()) == before
    assert isinstance(Plain(ALICE, KEY, before).answer(plain(password="other")), Check)
    assert isinstance(Plain(ALICE, KEY, before).answer(plain(identity="bob")), Check)
    assert isinstance(Plain(users_of({"bob": "x"}), KEY, before).answer(plain()), Check)
    changed = Users({("alice", "SCRAM-SHA-256"): credential_of("SCRAM-SHA-256", "new", SALT, FEW)}, b"s")
    assert isinstance(Plain(changed, KEY, before).answer(plain()), Check)
