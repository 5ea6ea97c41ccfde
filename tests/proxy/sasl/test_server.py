"""The requests of a client before it is authenticated."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.decoders import decode
from klamm.proxy.sasl.server import MOST_FRAMES, Admit, Answer, Refuse, Server, Step, Versions, Work
from klamm.proxy.sasl.tokens import BadToken
from tests.proxy.sasl_ground import PASSWORD, ScramClient, answered, bearer, frame, plain, realm

NOW = 1_000_000.0
SOFTWARE = {"client_software_name": "test", "client_software_version": "1"}


def done(server: Server, step: Step) -> Step:
    """After the work, if there is any."""
    return server.checked(step.check.work(), NOW) if isinstance(step, Work) else step


def handshake(server: Server, mechanism: str, version: int = 1) -> Step:
    return server.frame(frame("SaslHandshake", version, {"mechanism": mechanism}), NOW)


def send(server: Server, token: bytes, version: int = 2) -> Step:
    return done(server, server.frame(frame("SaslAuthenticate", version, {"auth_bytes": token}), NOW))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_client_authenticates_in_each_version(version: int) -> None:
    server = Server(realm())
    found = handshake(server, "PLAIN")
    assert isinstance(found, Answer)
    told = answered(found.data, "SaslHandshake", 1)
    assert told["error_code"] == 0
    assert "SCRAM-SHA-512" in told["mechanisms"]
    step = send(server, plain(), version)
    assert isinstance(step, Admit)
    assert step.proven.user == "alice"
    assert answered(step.data, "SaslAuthenticate", version)["error_code"] == 0
    assert server.client_id == "app"


def test_scram_takes_two_requests() -> None:
    server, client = Server(realm()), ScramClient("SCRAM-SHA-256", "alice", PASSWORD)
    handshake(server, "SCRAM-SHA-256")
    step = send(server, client.first())
    assert isinstance(step, Answer)
    challenge = answered(step.data, "SaslAuthenticate", 2)["auth_bytes"]
    assert isinstance(send(server, client.final(challenge)), Admit)


def test_tokens_without_headers_follow_the_first_version_of_the_handshake() -> None:
    server = Server(realm())
    assert isinstance(handshake(server, "PLAIN", 0), Answer)
    step = done(server, server.frame(plain(), NOW))
    assert isinstance(step, Admit)
    assert step.data == bytes(4)
    refused = Server(realm())
    handshake(refused, "PLAIN", 0)
    step = done(refused, refused.frame(plain(password="wrong"), NOW))
    assert isinstance(step, Refuse)
    assert step.data == b""


def test_api_versions_is_asked_of_the_brokers_and_a_version_that_nobody_knows_answered_at_once() -> None:
    server = Server(realm())
    step = server.frame(frame("ApiVersions", 3, SOFTWARE), NOW)
    assert step == Versions(3, 7, ("test", "1"))
    newer = server.frame(b"\x00\x12\x00\x63" + frame("ApiVersions", 3, SOFTWARE)[4:], NOW)
    assert isinstance(newer, Answer)
    assert decode(newer.data[8:], "ApiVersions", 0, "response")["error_code"] == 35


@pytest.mark.parametrize("name", ["Metadata", "Produce", "SaslAuthenticate"])
def test_no_other_request_is_taken_before(name: str) -> None:
    step = Server(realm()).frame(frame(name, 1, {"topics": []} if name == "Metadata" else {}), NOW)
    assert isinstance(step, Refuse)
    assert step.data == b""
    assert f"sends {name} before it has authenticated" in step.why


def test_after_the_handshake_only_tokens_are_taken() -> None:
    server = Server(realm())
    handshake(server, "PLAIN")
    assert isinstance(server.frame(frame("ApiVersions", 0, {}), NOW), Refuse)


def test_a_mechanism_that_is_not_enabled_is_told_those_that_are() -> None:
    step = handshake(Server(realm(mechanisms=("SCRAM-SHA-512",))), "PLAIN")
    assert isinstance(step, Refuse)
    assert step.outcome == "unsupported_mechanism"
    told = answered(step.data, "SaslHandshake", 1)
    assert told == {"error_code": 33, "mechanisms": ["SCRAM-SHA-512"]}


def test_a_wrong_password_has_kafkas_error() -> None:
    server = Server(realm())
    handshake(server, "PLAIN")
    step = send(server, plain(password="wrong"))
    assert isinstance(step, Refuse)
    assert step.outcome == "wrong_credentials"
    assert step.user == "alice"
    told = answered(step.data, "SaslAuthenticate", 2)
    assert told["error_code"] == 58
    assert "Invalid username or password" in told["error_message"]


def test_a_user_that_may_not_use_the_cluster_is_told_so_once_it_has_proven_who_it_is() -> None:
    server = Server(realm(allowed=lambda principal: principal == "User:bob"))
    handshake(server, "PLAIN")
    step = send(server, plain())
    assert isinstance(step, Refuse)
    assert step.outcome == "not_allowed"
    told = answered(step.data, "SaslAuthenticate", 2)
    assert told["error_code"] == 58
    assert "User:alice may not use this cluster" in told["error_message"]
    wrong = Server(realm(allowed=lambda principal: False))
    handshake(wrong, "PLAIN")
    assert send(wrong, plain(password="x")) == send_wrong()


def send_wrong() -> Step:
    """What a wrong password gets of a realm that allows everybody."""
    server = Server(realm())
    handshake(server, "PLAIN")
    return send(server, plain(password="x"))


@pytest.mark.parametrize(
    ("session_s", "expires", "lifetime_ms"),
    [
        (None, None, 0),
        (60.0, None, 60_000),
        (None, 90.0, 90_000),
        (60.0, 90.0, 60_000),
        (None, -5.0, 1),
        (None, 1e300, 3153600000000),
    ],
)
def test_a_session_lasts_as_long_as_its_token_and_the_settings_let_it(
    session_s: float | None, expires: float | None, lifetime_ms: int
) -> None:
    def verify(token: str) -> tuple[str, float]:
        assert expires is not None
        return "alice", NOW + expires

    server = Server(realm(verify=verify, session_s=session_s))
    handshake(server, "PLAIN" if expires is None else "OAUTHBEARER")
    step = send(server, plain() if expires is None else bearer("x"))
    assert isinstance(step, Admit)
    assert step.lifetime_ms == lifetime_ms
    assert answered(step.data, "SaslAuthenticate", 2)["session_lifetime_ms"] == lifetime_ms


def test_a_refused_token_takes_one_more_message_of_the_client() -> None:
    def verify(token: str) -> Any:
        raise BadToken("it has expired (exp)")

    server = Server(realm(verify=verify))
    handshake(server, "OAUTHBEARER")
    first = send(server, bearer("x"))
    assert isinstance(first, Answer)
    assert answered(first.data, "SaslAuthenticate", 2)["auth_bytes"] == b'{"status":"invalid_token"}'
    assert first.failed is not None
    assert first.failed.why == "it has expired (exp)"
    last = send(server, b"\x01")
    assert isinstance(last, Refuse)
    assert answered(last.data, "SaslAuthenticate", 2)["error_message"] == '{"status":"invalid_token"}'
    assert (last.why, last.outcome) == ("", "")  # told already


def test_a_client_that_goes_on_after_a_refused_token_is_closed() -> None:
    def verify(token: str) -> Any:
        raise BadToken("it has expired (exp)")

    server = Server(realm(verify=verify))
    handshake(server, "OAUTHBEARER")
    send(server, bearer("x"))
    assert server.frame(frame("Metadata", 1, {"topics": []}), NOW) == Refuse(b"", "")


def test_a_client_that_never_authenticates_is_refused_after_some_requests() -> None:
    server = Server(realm())
    steps = [server.frame(frame("ApiVersions", 0, {}), NOW) for _ in range(MOST_FRAMES + 1)]
    assert [isinstance(step, Refuse) for step in steps] == [False] * MOST_FRAMES + [True]


def test_gssapi_is_refused_by_name() -> None:
    step = Server(realm()).frame(b"\x60\x82\x01\x00" + bytes(20), NOW)
    assert isinstance(step, Refuse)
    assert "GSSAPI" in step.why


FRAMES = st.one_of(
    st.binary(max_size=60),
    st.builds(
        lambda key, version, rest: key.to_bytes(2, "big") + version.to_bytes(2, "big") + rest,
        st.sampled_from([17, 18, 36, 3]),
        st.integers(0, 5),
        st.binary(max_size=60),
    ),
    st.sampled_from(["PLAIN", "SCRAM-SHA-256", "x"]).map(
        lambda name: frame("SaslHandshake", 1, {"mechanism": name})
    ),
    st.binary(max_size=60).map(lambda token: frame("SaslAuthenticate", 2, {"auth_bytes": token})),
)


@given(frames=st.lists(FRAMES, max_size=8))
def test_no_frames_let_anybody_in_or_make_klamm_fail(frames: list[bytes]) -> None:
    server = Server(realm(mechanisms=("PLAIN", "SCRAM-SHA-256")))
    for each in frames:
        step = done(server, server.frame(each, NOW))
        assert not isinstance(step, Admit)
        if isinstance(step, Refuse):
            break
