"""TLS for fake brokers: contexts of a broker whose certificate is for 127.0.0.1, ::1 and localhost."""

from __future__ import annotations

import ssl
from pathlib import Path

from tests.brokers import certificates


def make(directory: Path) -> ssl.SSLContext:
    """The broker's context; `directory` has the authority as ca.pem afterwards."""
    certificates.make(directory, ["localhost", "127.0.0.1", "::1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "broker.pem")
    return context
