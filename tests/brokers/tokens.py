"""Signed tokens (JWT, RFC 7519) for OAUTHBEARER, and the settings of brokers that check them by a key set."""

import base64
import json
import subprocess
import time
from pathlib import Path
from typing import Any

ISSUER, AUDIENCE = "https://issuer.example", "kafka"
_OAUTH = "org.apache.kafka.common.security.oauthbearer"


def make_key(folder: Path) -> None:
    """Write key.pem, and the key set of it as jwks.json."""
    key = folder / "key.pem"
    _openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", str(key))
    modulus = _openssl("rsa", "-in", str(key), "-noout", "-modulus").decode().strip().partition("=")[2]
    row = {"kty": "RSA", "kid": "tests", "use": "sig", "alg": "RS256", "e": "AQAB"}
    (folder / "jwks.json").write_text(json.dumps({"keys": [row | {"n": _text(bytes.fromhex(modulus))}]}))


def token(folder: Path, subject: str, lifetime_s: float, **claims: Any) -> str:
    """Signed with the key in `folder`; it ends after so many seconds."""
    now = time.time()
    head = {"alg": "RS256", "kid": "tests", "typ": "JWT"}
    said = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "scope": "kafka", "iat": int(now)}
    said |= {"exp": int(now + lifetime_s), **claims}
    signed = ".".join(_text(json.dumps(part).encode()) for part in (head, said))
    command = ["openssl", "dgst", "-sha256", "-sign", str(folder / "key.pem")]
    done = subprocess.run(command, input=signed.encode(), capture_output=True, check=True, timeout=30)
    return f"{signed}.{_text(done.stdout)}"


def broker_settings(folder: Path, listener: str) -> dict[str, str]:
    """Of a broker whose listener takes tokens that are signed with the key in `folder`."""
    prefix = f"listener.name.{listener.lower()}.oauthbearer"
    return {
        f"{prefix}.sasl.jaas.config": f"{_OAUTH}.OAuthBearerLoginModule required;",
        f"{prefix}.sasl.server.callback.handler.class": f"{_OAUTH}.OAuthBearerValidatorCallbackHandler",
        f"{prefix}.sasl.oauthbearer.jwks.endpoint.url": jwks_url(folder),
        f"{prefix}.sasl.oauthbearer.expected.audience": AUDIENCE,
        f"{prefix}.sasl.oauthbearer.expected.issuer": ISSUER,
    }


def jwks_url(folder: Path) -> str:
    """For the brokers' system property org.apache.kafka.sasl.oauthbearer.allowed.urls, too."""
    return (folder / "jwks.json").as_uri()


def _openssl(*arguments: str) -> bytes:
    return subprocess.run(["openssl", *arguments], capture_output=True, check=True, timeout=30).stdout


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
