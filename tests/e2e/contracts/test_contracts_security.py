"""The order of authentication, through klamm: what goes before SASL, and the two ways of SASL itself."""

import struct
from collections.abc import Iterator

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.e2e.contracts.contracts import PLAIN_TOKEN, Address, Talk, api_versions
from tests.e2e.klamm_process import Klamm, klamm_in_front_of

pytestmark = pytest.mark.brokers

WRONG_TOKEN = b"\0alice\0wrong"
UNSUPPORTED_MECHANISM, ILLEGAL_STATE, AUTHENTICATION_FAILED = 33, 34, 58
OFFERED = {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}
ALL_TOPICS = {"topics": None}


@pytest.fixture(scope="module")
def listener(
    kafka: Cluster, inside: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Address]:
    """klamm, without credentials, in front of a listener that wants SASL."""
    log = tmp_path_factory.mktemp("contracts-security") / "klamm.log"
    bootstrap = kafka.bootstrap("SASL_PLAINTEXT")
    with klamm_in_front_of(bootstrap, inside.host, log, ready=False) as klamm:
        klamm.wait_until_listening()
        yield klamm.address


def test_a_request_before_authentication_closes_the_connection(listener: Address) -> None:
    with Talk(listener) as talk:
        talk.send("Metadata", 1, ALL_TOPICS)
        assert talk.closed()


@pytest.mark.parametrize("version", [0, 3])
def test_api_versions_is_answered_before_authentication(version: int, listener: Address) -> None:
    with Talk(listener) as talk:
        versions = api_versions(talk, version)
        assert {0, 1, 3, 17, 18, 36} <= {key["api_key"] for key in versions["api_keys"]}
        assert talk.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})["error_code"] == 0


def test_after_handshake_0_tokens_go_without_a_header_and_then_requests(listener: Address) -> None:
    with Talk(listener) as talk:
        handshake = talk.ask("SaslHandshake", 0, {"mechanism": "PLAIN"})
        assert (handshake["error_code"], set(handshake["mechanisms"])) == (0, OFFERED)
        talk.send_token(PLAIN_TOKEN)
        assert talk.frame() == b""
        assert talk.ask("Metadata", 1, ALL_TOPICS)["brokers"]


def test_a_wrong_token_after_handshake_0_closes_the_connection(listener: Address) -> None:
    with Talk(listener) as talk:
        talk.ask("SaslHandshake", 0, {"mechanism": "PLAIN"})
        talk.send_token(WRONG_TOKEN)
        assert talk.closed()


def test_after_handshake_1_tokens_go_in_sasl_authenticate_and_then_requests(listener: Address) -> None:
    with Talk(listener) as talk:
        talk.ask("ApiVersions", 0)
        assert talk.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})["error_code"] == 0
        assert talk.ask("SaslAuthenticate", 2, {"auth_bytes": PLAIN_TOKEN})["error_code"] == 0
        brokers = talk.ask("Metadata", 1, ALL_TOPICS)["brokers"]
    assert {broker["host"] for broker in brokers} == {listener[0]}


def test_a_wrong_token_in_sasl_authenticate_is_told_and_then_closes(listener: Address) -> None:
    with Talk(listener) as talk:
        talk.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
        refused = talk.ask("SaslAuthenticate", 0, {"auth_bytes": WRONG_TOKEN})
        assert refused["error_code"] == AUTHENTICATION_FAILED
        assert refused["error_message"]
        assert talk.closed()


@pytest.mark.parametrize("version", [0, 1])
def test_a_mechanism_that_is_not_offered_is_refused_with_those_that_are(
    version: int, listener: Address
) -> None:
    with Talk(listener) as talk:
        refused = talk.ask("SaslHandshake", version, {"mechanism": "OTHER"})
        assert refused["error_code"] == UNSUPPORTED_MECHANISM
        assert set(refused["mechanisms"]) == OFFERED
        assert talk.closed()


def test_a_handshake_where_no_sasl_is_wanted_is_refused(klamm: Klamm) -> None:
    with Talk(klamm.address) as talk:
        assert talk.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})["error_code"] == ILLEGAL_STATE


def test_a_first_packet_that_is_no_request_is_not_answered_where_gssapi_is_not_offered(
    listener: Address,
) -> None:
    """A client of Kafka 0.9 begins with a GSSAPI token."""
    with Talk(listener) as talk:
        talk.socket.sendall(struct.pack(">i", 16) + b"\x60\x0e\x06\x09" + bytes(12))
        assert talk.closed()
