"""The users that klamm authenticates, as a file has them: hashes in the form of SCRAM (RFC 5802), and no
password.

    NAME MECHANISM salt=BASE64,stored_key=BASE64,server_key=BASE64,iterations=N

The text behind the mechanism has Kafka's own form (ScramCredentialUtils). A line `unknown-users BASE64` is
the secret from which users that are not there get their salts.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from klamm.proxy.sasl.scram import DIGESTS, MOST_ITERATIONS, client_key, salted, server_key, stored_key

FEWEST = 4096  # iterations: Kafka's minimum
ITERATIONS = 16_384  # Kafka's maximum: RFC 7677 asks for 15,000 at least
LONGEST_NAME = 255  # characters
LEAST_SALT, MOST_SALT = 8, 64  # bytes
UNKNOWN_USERS = "unknown-users"
SHOWN = 10  # mistakes of a file
FORM = "NAME MECHANISM salt=...,stored_key=...,server_key=...,iterations=N"
WRITTEN_BY = "write it with klamm users set"


class ScramCredential(NamedTuple):
    """The values of a password that a server keeps."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential({self.iterations} iterations)"


class Shape(NamedTuple):
    """The parts of a credential that a client sees, or can measure."""

    mechanism: str
    iterations: int
    salt_bytes: int


PLAIN = "PLAIN"
USUAL = {name: Shape(name, ITERATIONS, 16) for name in DIGESTS}
USUAL[PLAIN] = USUAL["SCRAM-SHA-512"]


@dataclass(frozen=True, slots=True)
class Users:
    """`credentials` by user and mechanism. `secret` makes the credentials of users that are not there. The
    same is done for a user whether there is one or not, so that it takes the same time.
    """

    credentials: Mapping[tuple[str, str], ScramCredential] = field(default_factory=dict)
    secret: bytes = b""
    shapes: Mapping[str, Sequence[Shape]] = field(init=False, compare=False)
    """By mechanism of the client, as many have them."""

    def __post_init__(self) -> None:
        shapes: dict[str, list[Shape]] = {name: [] for name in (*DIGESTS, PLAIN)}
        checked: dict[str, Shape] = {}
        for (name, mechanism), each in sorted(self.credentials.items(), key=lambda item: item[0][1]):
            shape = Shape(mechanism, each.iterations, len(each.salt))
            shapes[mechanism].append(shape)
            checked[name] = shape  # PLAIN takes the last mechanism of a user
        shapes[PLAIN] = list(checked.values())
        found = {name: sorted(each) or [USUAL[name]] for name, each in shapes.items()}
        object.__setattr__(self, "shapes", found)

    def of_scram(self, name: str, mechanism: str) -> tuple[ScramCredential, bool]:
        """The credential, and whether there is one: one that is made up looks the same, and is the same each
        time (RFC 5802, section 5.1).
        """
        _, made_up = self._made_up(name, mechanism)
        found = self.credentials.get((name, mechanism))
        return (made_up, False) if found is None else (found, True)

    def of_plain(self, name: str) -> tuple[str, ScramCredential, bool]:
        """The credential to check a password against, its mechanism, and whether there is one."""
        mechanism, credential = self._made_up(name, PLAIN)
        known = False
        for each in DIGESTS:
            found = self.credentials.get((name, each))
            if found is not None:
                mechanism, credential, known = each, found, True
        return mechanism, credential, known

    def names(self) -> list[str]:
        return sorted({name for name, _ in self.credentials})

    def _made_up(self, name: str, mechanism: str) -> tuple[str, ScramCredential]:
        """A credential for this name, with the shape of one that somebody has: as many have it, so likely."""
        shapes = self.shapes[mechanism]
        seed = hmac.digest(self.secret, name.encode(), "sha512")
        shape = shapes[int.from_bytes(seed[:8], "big") % len(shapes)]
        salt, stored, server = (
            hmac.digest(seed, part + shape.mechanism.encode(), "sha512")
            for part in (b"salt", b"stored", b"server")
        )
        size = hashlib.new(DIGESTS[shape.mechanism]).digest_size
        credential = ScramCredential(salt[: shape.salt_bytes], stored[:size], server[:size], shape.iterations)
        return shape.mechanism, credential


def credential_of(mechanism: str, password: str, salt: bytes, iterations: int) -> ScramCredential:
    """The credential to keep of a password, which is hashed as Kafka does: its UTF-8 bytes as they are."""
    salted_password = salted(mechanism, password.encode(), salt, iterations)
    stored = stored_key(mechanism, client_key(mechanism, salted_password))
    return ScramCredential(salt, stored, server_key(mechanism, salted_password), iterations)


def line_of(name: str, mechanism: str, credential: ScramCredential) -> str:
    """A line of the file, without its end."""
    salt, stored, server = (b64encode(each).decode() for each in credential[:3])
    values = f"salt={salt},stored_key={stored},server_key={server},iterations={credential.iterations}"
    return f"{name} {mechanism} {values}"


def why_no_name(name: str) -> str | None:
    """Why no user can have this name in a file; None: one can."""
    if not name or len(name) > LONGEST_NAME:
        return f"has {len(name)} characters: it takes 1 to {LONGEST_NAME}"
    if name == UNKNOWN_USERS or name.startswith("#"):
        return "is taken for something else in a file of users"
    if not name.isprintable() or name.split() != [name]:
        return "has spaces, or characters that cannot be printed"
    return None


def load_users(file: str) -> Users:
    """Raises OSError, whose text names the lines with mistakes, and shows none of their hashes."""
    try:
        text = Path(file).read_text("utf-8")
    except OSError as error:
        raise OSError(f"{file}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise OSError(f"{file}: it is no text in UTF-8 (byte {error.start})") from None
    return parse_users(text, file)


def parse_users(text: str, source: str) -> Users:
    """Raises OSError, as above."""
    credentials: dict[tuple[str, str], ScramCredential] = {}
    secret, mistakes = b"", list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            if words[0] == UNKNOWN_USERS:
                secret = _bytes(words[1] if len(words) == 2 else "", UNKNOWN_USERS)
                continue
            key, credential = _parse_line(words)
            if key in credentials:
                raise ValueError(f"the user {key[0]} has {key[1]} already: leave one of the lines out")
            credentials[key] = credential
        except ValueError as wrong:
            mistakes.append(f"{source}:{number}: {wrong}")
    if mistakes:
        more = [f"and {len(mistakes) - SHOWN} more"] if len(mistakes) > SHOWN else []
        raise OSError("; ".join([*mistakes[:SHOWN], *more]))
    if not credentials and not secret:  # a file that is being written; `klamm users remove` leaves the secret
        raise OSError(f"{source}: no user is in it: add one with klamm users set {source} NAME")
    hashes = b"".join(each.server_key for _, each in sorted(credentials.items()))
    return Users(credentials, secret or hashlib.sha256(hashes).digest())


def _parse_line(words: list[str]) -> tuple[tuple[str, str], ScramCredential]:
    """Raises ValueError."""
    if len(words) != 3:
        raise ValueError(f"{len(words)} words, and a user takes three: {FORM}; {WRITTEN_BY}")
    name, mechanism, values = words
    if mechanism not in DIGESTS:
        raise ValueError(f"the second word is no mechanism: it is {' or '.join(DIGESTS)}")
    why = why_no_name(name)
    if why is not None:
        raise ValueError(f"the name of the user {why}")
    return (name, mechanism), _parse_credential(mechanism, values)


def _parse_credential(mechanism: str, values: str) -> ScramCredential:
    """Raises ValueError."""
    parts = dict(part.partition("=")[::2] for part in values.split(","))
    if parts.keys() != {"salt", "stored_key", "server_key", "iterations"}:
        raise ValueError(f"the third word is not of the form {FORM.split()[2]}; {WRITTEN_BY}")
    salt, stored, server = (_bytes(parts[name], name) for name in ("salt", "stored_key", "server_key"))
    size = hashlib.new(DIGESTS[mechanism]).digest_size
    if (len(stored), len(server)) != (size, size):
        raise ValueError(f"the keys have {len(stored)} and {len(server)} bytes, those of {mechanism} {size}")
    if not LEAST_SALT <= len(salt) <= MOST_SALT:
        raise ValueError(f"the salt has {len(salt)} bytes: it takes {LEAST_SALT} to {MOST_SALT}")
    iterations = int(parts["iterations"]) if parts["iterations"].isdecimal() else 0
    if not FEWEST <= iterations <= MOST_ITERATIONS:
        raise ValueError(f"iterations are a number from {FEWEST:,} to {MOST_ITERATIONS:,}")
    return ScramCredential(salt, stored, server, iterations)


def _bytes(text: str, name: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(f"{name} is not in Base64; {WRITTEN_BY}") from None
