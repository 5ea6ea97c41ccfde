"""TLS towards clients: a context from files, and why a handshake failed."""

from __future__ import annotations

import ssl
from typing import NamedTuple

from klamm.proxy.edge.accepting.tls_alerts import TellingContext
from klamm.settings.pem_files import authorities_of, load_identity

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
UNKNOWN_ISSUER = frozenset({2, 7, 18, 19, 20, 21})  # OpenSSL's codes: no issuer found, or not its signature
VERSION = "the client and klamm have no TLS version or cipher in common: klamm takes {least} and newer"


class Advice(NamedTuple):
    """The setting to change, for each way in which handshakes with one kind of clients fail."""

    distrusts: str
    expired: str
    untrusted: str
    sends_none: str = ""  # of no use where none is needed


KAFKA_CLIENTS = Advice(
    distrusts="the client does not trust klamm's certificate (listen_tls.cert): the client's truststore "
    "needs its authority (ssl.truststore.location, librdkafka: ssl.ca.location), and the host that the "
    "client connects to (--advertise) has to be among its names",
    expired="klamm's certificate (listen_tls.cert) has expired, says the client",
    sends_none="the client sends no certificate, and listen_tls.ca asks for one: set its "
    "ssl.keystore.location (librdkafka: ssl.certificate.location and ssl.key.location)",
    untrusted="the client's certificate is not of an authority in listen_tls.ca",
)
DISTRUST = frozenset(
    {
        "TLSV1_ALERT_UNKNOWN_CA",
        "TLSV1_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
    }
)
NOTHING_IN_COMMON = frozenset(
    {
        "UNSUPPORTED_PROTOCOL",
        "VERSION_TOO_LOW",
        "NO_SHARED_CIPHER",
        "NO_PROTOCOLS_AVAILABLE",
        "TLSV1_ALERT_PROTOCOL_VERSION",
    }
)


class Files(NamedTuple):
    """PEM files. `key` None: it is in the file of the certificate. `ca` None: clients need no certificate;
    `optional`: those that send one need one of `ca`.
    """

    cert: str
    key: str | None = None
    ca: str | None = None
    least: str = "TLSv1.2"
    optional: bool = False


def server_context(files: Files) -> ssl.SSLContext:
    """Raises OSError on files that cannot be used."""
    context = TellingContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[files.least]
    context.options |= ssl.OP_NO_RENEGOTIATION
    load_identity(context, files.cert, files.key)
    if files.ca is not None:
        with authorities_of(files.ca):
            context.load_verify_locations(files.ca)
        context.verify_mode = ssl.CERT_OPTIONAL if files.optional else ssl.CERT_REQUIRED
    return context


def why_handshake_failed(error: Exception, least: str, advice: Advice = KAFKA_CLIENTS) -> str:
    """One line that names the setting to change."""
    if isinstance(error, TimeoutError):
        return "the client began a TLS handshake and did not end it"
    if not isinstance(error, ssl.SSLError):
        ended = str(error) or type(error).__name__
        return f"the client ended the TLS handshake without a reason ({ended}); probably {advice.distrusts}"
    if isinstance(error, ssl.SSLCertVerificationError):
        unknown = error.verify_code in UNKNOWN_ISSUER
        why = advice.untrusted if unknown else "the client's certificate cannot be used"
        return f"the TLS handshake failed ({error.verify_message}): {why}"
    known = _reasons(advice, least).get(error.reason or "")
    reason = f"the TLS handshake failed ({error.reason or error})"
    return f"{reason}: {known}" if known else reason


def _reasons(advice: Advice, least: str) -> dict[str, str]:
    """OpenSSL's reason -> why."""
    return {
        **dict.fromkeys(DISTRUST, advice.distrusts),
        **dict.fromkeys(NOTHING_IN_COMMON, VERSION.format(least=least)),
        "SSLV3_ALERT_CERTIFICATE_EXPIRED": advice.expired,
        "PEER_DID_NOT_RETURN_A_CERTIFICATE": advice.sends_none,
    }
