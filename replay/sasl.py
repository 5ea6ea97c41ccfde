"""klamm's own authentication: SASL's PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Generator

from klamm.decoders.error_codes import error_name
from klamm.proxy.cluster.discovery import SASL_HANDSHAKE, Conversation, Unanswered
from klamm.replay.client_config import Credentials

SASL_AUTHENTICATE = 36
HANDSHAKE_VERSION, AUTHENTICATE_VERSION = 1, 0
MOST_ITERATIONS = 1 << 20  # a server that asks for more wants klamm to be busy
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

# What the client says, each in return for what the server said before. Raises ValueError on nonsense.
Exchange = Generator[bytes, bytes, None]


def plain(credentials: Credentials) -> Exchange:
    yield b"\0".join([b"", credentials.username.encode(), credentials.password.encode()])


def scram(credentials: Credentials, nonce: str | None = None) -> Exchange:
    """`nonce` is made up unless a test tells it."""
    digest = HASHES[credentials.mechanism]
    nonce = nonce or secrets.token_urlsafe(24)
    name = credentials.username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}"
    challenge = (yield f"n,,{first}".encode()).decode()
    said = _attributes(challenge)
    count = int(said["i"])
    if not said["r"].startswith(nonce) or not 0 < count <= MOST_ITERATIONS:
        raise ValueError("the server's first message is not an answer to klamm's")
    salted = hashlib.pbkdf2_hmac(digest, credentials.password.encode(), b64decode(said["s"]), count)
    final = f"c=biws,r={said['r']}"
    signed = f"{first},{challenge},{final}".encode()
    key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, key).digest(), signed, digest)
    proof = b64encode(bytes(one ^ other for one, other in zip(key, signature, strict=True))).decode()
    verdict = _attributes((yield f"{final},p={proof}".encode()).decode())
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
    if not hmac.compare_digest(b64decode(verdict["v"]), expected):
        raise ValueError("the server does not know the password either")


def _attributes(message: str) -> dict[str, str]:
    return {part[0]: part[2:] for part in message.split(",") if part[1:2] == "="}


async def authenticate(conversation: Conversation, credentials: Credentials) -> None:
    """Raises Unanswered with what the broker said; and what `ask` raises."""
    answer = await conversation.ask(SASL_HANDSHAKE, HANDSHAKE_VERSION, {"mechanism": credentials.mechanism})
    if answer["error_code"]:
        enabled = ", ".join(answer["mechanisms"]) or "none"
        refused = f"{conversation.address} does not take {credentials.mechanism}"
        raise Unanswered(f"{refused} ({error_name(answer['error_code'])}); its mechanisms: {enabled}")
    exchange = (plain if credentials.mechanism == "PLAIN" else scram)(credentials)
    said = next(exchange)
    while True:
        answer = await conversation.ask(SASL_AUTHENTICATE, AUTHENTICATE_VERSION, {"auth_bytes": said})
        if answer["error_code"]:
            why = answer["error_message"] or error_name(answer["error_code"])
            raise Unanswered(f"{conversation.address} refuses {credentials.username}: {why}")
        try:
            said = exchange.send(answer["auth_bytes"])
        except StopIteration:
            return
        except (ValueError, KeyError) as wrong:
            reason = f"{conversation.address} is not to be trusted with {credentials.mechanism}: {wrong}"
            raise Unanswered(reason) from None
