"""Kafka's client properties say how a cluster is reached."""

import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from klamm.proxy.cluster.conversation import Credentials
from klamm.replay.client_config import Access, WrongProperty, access, properties
from tests.fakes import tls

JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="al\\"ice" password="se cret";'
)


def made(text: str) -> Access:
    return access(properties(text))


def test_without_properties_it_is_a_plain_port() -> None:
    assert made("") == (made("security.protocol=plaintext")) == made("# client.id=x\n! so too\n\n")
    assert made("").way.tls is None
    assert made("").credentials is None


@pytest.mark.parametrize(
    "line",
    [
        "sasl.mechanism=PLAIN",
        "sasl.mechanism: PLAIN",
        "sasl.mechanism PLAIN",
        "  sasl.mechanism = \\\n   PLAIN",
    ],
)
def test_properties_are_written_as_java_reads_them(line: str) -> None:
    assert properties(f"a=b\n{line}\nc=d=e") == {"a": "b", "sasl.mechanism": "PLAIN", "c": "d=e"}


def test_credentials_stand_in_a_jaas_line_or_in_properties_of_their_own() -> None:
    jaas = JAAS.replace("\\", "\\\\")
    found = made(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas}")
    assert found.credentials == Credentials("PLAIN", 'al"ice', "se cret")
    own = "security.protocol=SASL_PLAINTEXT\nsasl.mechanisms=scram-sha-512\nsasl.username=a\nsasl.password=b"
    assert made(own).credentials == Credentials("SCRAM-SHA-512", "a", "b")


def test_tls_trusts_the_authority_that_is_named(tmp_path: Path) -> None:
    tls.make(tmp_path)
    text = f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={tmp_path}/ca.pem"
    context = made(text).way.tls
    assert context is not None
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    anyone = made(f"{text}\nssl.endpoint.identification.algorithm=").way.tls
    assert anyone is not None
    assert not anyone.check_hostname
    assert anyone.verify_mode == ssl.CERT_REQUIRED


def test_klamm_shows_the_certificate_of_the_key_store(tmp_path: Path) -> None:
    asking = tls.make(tmp_path)
    asking.load_verify_locations(tmp_path / "ca.pem")
    asking.verify_mode = ssl.CERT_REQUIRED
    stores = f"ssl.truststore.location={tmp_path}/ca.pem\nssl.keystore.location={tmp_path}/broker.pem"
    context = made(f"security.protocol=SSL\n{stores}").way.tls
    assert context is not None
    to_client, to_broker = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(to_client, to_broker, server_hostname="localhost")
    broker = asking.wrap_bio(to_broker, to_client, server_side=True)
    for end in (client, broker, client, broker):
        with suppress(ssl.SSLWantReadError):
            end.do_handshake()
    assert broker.getpeercert()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("security.protocol=SASL_SLS", "security.protocol=SASL_SLS: klamm knows .*SASL_SSL"),
        ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism is missing"),
        (
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI",
            "sasl.mechanism=GSSAPI: klamm knows PLAIN",
        ),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN", "no username and password"),
        (
            "security.protocol=SSL\nssl.truststore.location=/nowhere/ca.pem",
            "TLS files cannot be used: /nowhere/ca.pem: No such file",
        ),
        (
            "security.protocol=SSL\nssl.truststore.type=JKS\nssl.truststore.location=a.jks",
            "JKS: klamm reads PEM",
        ),
    ],
)
def test_what_cannot_be_used_is_said(text: str, message: str) -> None:
    with pytest.raises(WrongProperty, match=message):
        made(text)
