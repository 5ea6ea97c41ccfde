"""Users, realms and messages for tests of SASL with klamm."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from klamm.decoders import API, decode, encode
from klamm.decoders.headers import request_frame, response_header_version
from klamm.proxy.config_types import InputFile
from klamm.proxy.sasl.realm import Realm
from klamm.proxy.sasl.scram import DIGESTS, salted
from klamm.proxy.sasl.tokens import Verifier
from klamm.proxy.sasl.users import Users, credential_of, line_of

PASSWORD = "planted-password-of-alice"
FEW = 4096
SALT = b"salt-of-16-bytes"
ALL = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


def users_of(passwords: dict[str, str], secret: bytes = b"secret") -> Users:
    """Users with both mechanisms."""
    found = {
        (name, mechanism): credential_of(mechanism, password, SALT, FEW)
        for name, password in passwords.items()
        for mechanism in DIGESTS
    }
    return Users(found, secret)


ALICE = users_of({"alice": PASSWORD})


def realm(
    users: Users = ALICE,
    mechanisms: tuple[str, ...] = ALL,
    verify: Verifier | None = None,
    allowed: Callable[[str], bool] = lambda principal: True,
    session_s: float | None = None,
) -> Realm:
    return Realm(mechanisms, lambda: users, verify, allowed, session_s, b"key", lambda: "klamm-nonce")


def write_users(folder: Path, passwords: dict[str, str] | None = None) -> InputFile:
    """The file of users."""
    file, wanted = folder / "users", passwords or {"alice": PASSWORD}
    credentials = users_of(wanted).credentials
    file.write_text("".join(f"{line_of(*key, each)}\n" for key, each in credentials.items()))
    return InputFile(str(file))


def frame(name: str, version: int, values: dict[str, Any], correlation_id: int = 7) -> bytes:
    """A request without its size."""
    api = API[name]
    return request_frame(api, version, correlation_id, "app", encode(values, api.key, version, "request"))[4:]


def answered(data: bytes, name: str, version: int) -> dict[str, Any]:
    """The values of a response with its size."""
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    return decode(data[9 if response_header_version(API[name], version) else 8 :], name, version, "response")


class ScramClient:
    """The client's side of SCRAM."""

    def __init__(self, mechanism: str, name: str, password: str, nonce: str = "client-nonce") -> None:
        self.mechanism, self.password = mechanism, password
        escaped = name.replace("=", "=3D").replace(",", "=2C")
        self.bare = f"n={escaped},r={nonce}"
        self.signature = b""

    def first(self) -> bytes:
        return f"n,,{self.bare}".encode()

    def final(self, challenge: bytes) -> bytes:
        """Notes the signature that the server has to show."""
        digest, text = DIGESTS[self.mechanism], challenge.decode()
        nonce, salt, iterations = (part[2:] for part in text.split(","))
        key = salted(self.mechanism, self.password.encode(), b64decode(salt), int(iterations))
        bare = f"c=biws,r={nonce}"
        signed = f"{self.bare},{text},{bare}".encode()
        client_key = hmac.digest(key, b"Client Key", digest)
        signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        self.signature = hmac.digest(hmac.digest(key, b"Server Key", digest), signed, digest)
        return f"{bare},p={b64encode(proof).decode()}".encode()


def plain(name: str = "alice", password: str = PASSWORD, identity: str = "") -> bytes:
    return f"{identity}\0{name}\0{password}".encode()


def bearer(token: str, identity: str = "") -> bytes:
    header = f"n,a={identity}," if identity else "n,,"
    return f"{header}\x01auth=Bearer {token}\x01\x01".encode()
