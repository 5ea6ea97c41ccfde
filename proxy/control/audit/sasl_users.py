"""The user that a client names in its first SASL message, and whether an answer of the broker is the last
one. Nothing of passwords and tokens is given, but the subject of a JSON web token.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

LONGEST = 255  # characters of a user
LAST_IS_EMPTY = ("GSSAPI", "OAUTHBEARER")  # each of their other answers has more to say


def user_of(mechanism: str, sent: bytes) -> str | None:
    """None where the message names no user."""
    try:
        found = _of_mechanism(mechanism, sent)
    except (ValueError, IndexError, binascii.Error, msgspec.MsgspecError):
        return None
    return found[:LONGEST] if isinstance(found, str) and found else None


def _of_mechanism(mechanism: str, sent: bytes) -> object:
    """Raises ValueError and the like for what is not as the mechanism wants it."""
    if mechanism == "PLAIN":  # RFC 4616: authorization identity, user, password
        _, user, _ = sent.split(b"\0")
        return user.decode()
    if mechanism.startswith("SCRAM-"):  # RFC 5802: n,a=authorization identity,n=user,r=nonce
        _, _, name, *_ = sent.decode().split(",")
        return name[2:].replace("=2C", ",").replace("=3D", "=") if name.startswith("n=") else None
    if mechanism == "OAUTHBEARER":  # RFC 7628; the subject of a JSON web token
        bearer = [each for each in sent.decode().split("\x01") if each.lower().startswith("auth=bearer ")]
        claims = bearer[0].split(".")[1]
        return msgspec.json.decode(
            base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)), type=dict
        ).get("sub")
    return None


def is_last(mechanism: str, answered: bytes) -> bool:
    """Does an answer without an error end the authentication?"""
    if mechanism.startswith("SCRAM-"):
        return answered.startswith(b"v=")
    return mechanism not in LAST_IS_EMPTY or not answered
