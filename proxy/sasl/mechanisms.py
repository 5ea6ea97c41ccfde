"""The mechanisms on the side of the server: PLAIN (RFC 4616), SCRAM (RFC 5802, RFC 7677) and OAUTHBEARER
(RFC 7628, KIP-255). Each gets the client's messages one after the other.

A user that is not there and a wrong password have the same answer, and take the same work. Errors are
worded as Kafka's brokers do.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from functools import partial
from typing import Protocol

from klamm.proxy.sasl.scram import attributes_of, client_key, combined, salted, signature, stored_key
from klamm.proxy.sasl.tokens import BadToken, Verifier
from klamm.proxy.sasl.users import Users
from klamm.proxy.sasl.verdicts import Challenge, Check, Failed, KnownPassword, Proven, Verdict

PLAIN_FAILED = "Authentication failed: Invalid username or password"
OTHER_IDENTITY = "Authentication failed: Client requested an authorization id that is different from username"
SCRAM_FAILED = "Authentication failed during authentication due to invalid credentials with SASL mechanism "
MALFORMED = "Authentication failed: the message of {} cannot be read"
INVALID_TOKEN = '{"status":"invalid_token"}'
NO_CREDENTIALS = "the user is not there, or the password is wrong"
LONGEST = 255  # characters of a user, and bytes of a nonce
MOST_PASSWORD = 1024  # bytes
SEPARATOR = "\x01"


class Mechanism(Protocol):
    """The exchange of messages with one client."""

    def answer(self, message: bytes) -> Verdict: ...


class Plain:
    """One message: the password, which is checked against a credential of SCRAM. `key` is that of the hash by
    which a password is known again; one that is the same as `before` takes no work.
    """

    def __init__(self, users: Users, key: bytes, before: Proven | None = None) -> None:
        self.users, self.key, self.before = users, key, before

    def answer(self, message: bytes) -> Verdict:
        try:
            identity, name, password = (part.decode() for part in message.split(b"\0"))
        except ValueError:
            return Failed(MALFORMED.format("PLAIN"), "a message of PLAIN has three parts in UTF-8")
        if not name or not password:
            return Failed(PLAIN_FAILED, "the user or the password is empty", name[:LONGEST] or None)
        if len(name) > LONGEST or len(password.encode()) > MOST_PASSWORD:
            return Failed(PLAIN_FAILED, "the user or the password is too long", name[:LONGEST])
        if self.before is not None and self._is_same(self.before, identity, name, password):
            return self.before
        return Check(partial(self._check, identity, name, password.encode()))

    def _is_same(self, before: Proven, identity: str, name: str, password: str) -> bool:
        """The same user and password as before, and the file still has them?"""
        known = before.password
        if known is None or name != before.user or identity not in ("", name):
            return False
        hashed = self._hashed(name, password.encode())
        return hmac.compare_digest(hashed, known.keyed_hash) and (
            self.users.of_plain(name)[1:] == (known.credential, True)
        )

    def _hashed(self, name: str, password: bytes) -> bytes:
        return hmac.digest(self.key, name.encode() + b"\0" + password, "sha256")

    def _check(self, identity: str, name: str, password: bytes) -> Proven | Failed:
        mechanism, credential, known = self.users.of_plain(name)
        salted_password = salted(mechanism, password, credential.salt, credential.iterations)
        found = stored_key(mechanism, client_key(mechanism, salted_password))
        if not (hmac.compare_digest(found, credential.stored_key) and known):
            return Failed(PLAIN_FAILED, NO_CREDENTIALS, name)
        if identity not in ("", name):
            return Failed(OTHER_IDENTITY, "another authorization identity than its user", name)
        return Proven(name, password=KnownPassword(self._hashed(name, password), credential))


class Scram:
    """Two messages. `nonce` is klamm's part of it: printable, without a comma."""

    def __init__(self, users: Users, mechanism: str, nonce: str) -> None:
        self.users, self.mechanism, self.nonce = users, mechanism, nonce
        self.name, self.header, self.first = "", "", ""  # the last: both first messages, joined by a comma
        self.of_token = False

    def answer(self, message: bytes) -> Verdict:
        try:
            text = message.decode()
            return self._final(text) if self.first else self._first(text)
        except (ValueError, KeyError, binascii.Error):
            name = self.name[:LONGEST] or None
            return Failed(MALFORMED.format(self.mechanism), f"no message of {self.mechanism}", name)

    def _first(self, text: str) -> Verdict:
        """Raises ValueError and KeyError."""
        binding, identity, bare = text.split(",", 2)
        attributes = attributes_of(bare)
        self.header, self.name = f"{binding},{identity},", _name(attributes["n"])
        theirs = attributes["r"]
        if binding != "n" or "m" in attributes or not self.name or not theirs or len(theirs) > LONGEST:
            raise ValueError(text)
        if identity not in ("", f"a={attributes['n']}"):
            return Failed(OTHER_IDENTITY, "another authorization identity than its user", self.name[:LONGEST])
        credential, _ = self.users.of_scram(self.name, self.mechanism)
        salt = b64encode(credential.salt).decode()
        ours = f"r={theirs}{self.nonce},s={salt},i={credential.iterations}"
        self.first, self.nonce = f"{bare},{ours}", theirs + self.nonce
        self.of_token = attributes.get("tokenauth") == "true"  # delegation tokens are the brokers' own
        return Challenge(ours.encode())

    def _final(self, text: str) -> Verdict:
        """Raises ValueError, KeyError and binascii.Error."""
        bare, mark, proof_text = text.rpartition(",p=")
        attributes, proof = attributes_of(bare), b64decode(proof_text, validate=True)
        if not mark or attributes["c"] != b64encode(self.header.encode()).decode():
            raise ValueError(text)
        credential, known = self.users.of_scram(self.name, self.mechanism)
        signed = f"{self.first},{bare}".encode()
        key = combined(proof, signature(self.mechanism, credential.stored_key, signed))
        same = hmac.compare_digest(stored_key(self.mechanism, key), credential.stored_key)
        ours = signature(self.mechanism, credential.server_key, signed)
        if not (same and known and attributes["r"] == self.nonce) or self.of_token:
            return Failed(SCRAM_FAILED + self.mechanism, NO_CREDENTIALS, self.name[:LONGEST])
        return Proven(self.name, b"v=" + b64encode(ours))


def _name(escaped: str) -> str:
    """Raises ValueError for an escape that is none."""
    parts = escaped.split("=")
    if any(part[:2] not in ("2C", "3D") for part in parts[1:]):
        raise ValueError(escaped)
    return escaped.replace("=2C", ",").replace("=3D", "=")


class Bearer:
    """A token in one message. A client that is refused sends one more, and gets the error again."""

    def __init__(self, verify: Verifier) -> None:
        self.verify = verify
        self.failed: Failed | None = None

    def answer(self, message: bytes) -> Verdict:
        if self.failed is not None:
            return self.failed
        try:
            identity, token = _bearer(message.decode())
        except ValueError:
            return Failed(MALFORMED.format("OAUTHBEARER"), "no message of OAUTHBEARER")
        try:
            user, until = self.verify(token)
        except BadToken as error:
            self.failed = Failed(INVALID_TOKEN, str(error))
            return Challenge(INVALID_TOKEN.encode(), self.failed)
        if identity not in ("", user):
            why = "another authorization identity than the subject of its token"
            return Failed(OTHER_IDENTITY, why, user)
        return Proven(user, until=until)


def _bearer(text: str) -> tuple[str, str]:
    """The authorization identity and the token. Raises ValueError."""
    header, *pairs = text.split(SEPARATOR)
    binding, identity, rest = header.split(",")
    if binding != "n" or rest or (identity and not identity.startswith("a=")) or pairs[-2:] != ["", ""]:
        raise ValueError(text)
    found = [pair.removeprefix("auth=") for pair in pairs if pair.startswith("auth=")]
    scheme, _, token = found[0].partition(" ") if len(found) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token:
        raise ValueError(text)
    return _name(identity.removeprefix("a=")), token.strip()
