"""The computations of SCRAM (RFC 5802, RFC 7677) that a client and a server share."""

from __future__ import annotations

import hashlib
import hmac

DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}  # by mechanism
MOST_ITERATIONS = 1 << 20  # more keep a client busy for a second
CLIENT_KEY, SERVER_KEY = b"Client Key", b"Server Key"


def salted(mechanism: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """The salted password: the work that takes long."""
    return hashlib.pbkdf2_hmac(DIGESTS[mechanism], password, salt, iterations)


def client_key(mechanism: str, salted_password: bytes) -> bytes:
    return signature(mechanism, salted_password, CLIENT_KEY)


def stored_key(mechanism: str, key_of_client: bytes) -> bytes:
    """The hash of the client key, which a server keeps."""
    return hashlib.new(DIGESTS[mechanism], key_of_client).digest()


def server_key(mechanism: str, salted_password: bytes) -> bytes:
    return signature(mechanism, salted_password, SERVER_KEY)


def signature(mechanism: str, key: bytes, message: bytes) -> bytes:
    """The HMAC of a message, with the digest of the mechanism."""
    return hmac.digest(key, message, DIGESTS[mechanism])


def combined(one: bytes, other: bytes) -> bytes:
    """The exclusive or: of the client key and a signature it makes the proof, and of proof and signature the
    client key. Raises ValueError where their sizes differ.
    """
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def attributes_of(message: str) -> dict[str, str]:
    """The attributes of a message, by name."""
    parts = [part.partition("=") for part in message.split(",")]
    return {name: value for name, mark, value in parts if mark}
