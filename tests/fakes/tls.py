"""TLS for fake brokers: contexts of a broker whose certificate is for 127.0.0.1, ::1 and localhost."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.brokers import certificates


def make(directory: Path) -> ssl.SSLContext:
    """The broker's context; `directory` has the authority as ca.pem afterwards."""
    certificates.make(directory, ["localhost", "127.0.0.1", "::1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "broker.pem")
    return context


def of_days(directory: Path, valid: tuple[int, int]) -> ssl.SSLContext:
    """The broker's context; `directory` has the certificate, its own authority, and its key as broker.pem.
    `valid`: from and until how many days from now.
    """
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")]),
    )
    begin, end = (datetime.now(UTC) + timedelta(days=days) for days in valid)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), begin, end)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (directory / "broker.pem").write_bytes(secret + made.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "broker.pem")
    return context
