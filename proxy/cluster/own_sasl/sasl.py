"""klamm's own authentication: SASL's PLAIN (RFC 4616), SCRAM (RFC 5802, RFC 7677) and OAUTHBEARER (RFC 7628,
KIP-255).
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator
from functools import lru_cache
from typing import NamedTuple

from klamm.decoders.error_codes import error_name
from klamm.proxy.cluster.conversation import Conversation, Credentials, Unanswered
from klamm.proxy.cluster.own_sasl.kerberos import kerberos
from klamm.proxy.cluster.own_sasl.msk_iam import msk_iam
from klamm.proxy.config_types import Address
from klamm.proxy.sasl.scram import (
    MOST_ITERATIONS,
    attributes_of,
    client_key,
    combined,
    salted,
    server_key,
    signature,
    stored_key,
)

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
HANDSHAKE_VERSION, AUTHENTICATE_VERSION = 1, 0
OWN = {"GSSAPI": "the ticket", "AWS_MSK_IAM": "the identity at AWS"}

# The client's messages, each for the server's message before it. Raises ValueError on nonsense.
Exchange = Generator[bytes, bytes, None]


def plain(credentials: Credentials) -> Exchange:
    yield b"\0".join([b"", credentials.username.encode(), credentials.secret.encode()])


def scram(credentials: Credentials, nonce: str | None = None) -> Exchange:
    """`nonce` is made up unless a test tells it."""
    mechanism = credentials.mechanism
    nonce = nonce or secrets.token_urlsafe(24)
    name = credentials.username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}"
    challenge = (yield f"n,,{first}".encode()).decode()
    attributes = attributes_of(challenge)
    count = int(attributes["i"])
    if not attributes["r"].startswith(nonce) or not 0 < count <= MOST_ITERATIONS:
        raise ValueError("the server's first message is not an answer to klamm's")
    salted_password = _salted(mechanism, credentials.secret, attributes["s"], count)
    final = f"c=biws,r={attributes['r']}"
    signed = f"{first},{challenge},{final}".encode()
    key = client_key(mechanism, salted_password)
    proof = combined(key, signature(mechanism, stored_key(mechanism, key), signed))
    verdict = attributes_of((yield f"{final},p={b64encode(proof).decode()}".encode()).decode())
    expected = signature(mechanism, server_key(mechanism, salted_password), signed)
    if not hmac.compare_digest(b64decode(verdict["v"]), expected):
        raise ValueError("the server does not know the password either")


@lru_cache(16)  # the brokers of a cluster share salt and count
def _salted(mechanism: str, password: str, salt: str, count: int) -> bytes:
    return salted(mechanism, password.encode(), b64decode(salt), count)


def oauthbearer(credentials: Credentials) -> Exchange:
    parts = ["n,,", f"auth=Bearer {credentials.secret}", *map("=".join, credentials.extensions), "", ""]
    refusal = yield "\x01".join(parts).encode()
    if refusal:
        yield b"\x01"  # the broker says its error once more, as an error


EXCHANGES: dict[str, Callable[[Credentials], Exchange]] = {
    "PLAIN": plain,
    "SCRAM-SHA-256": scram,
    "SCRAM-SHA-512": scram,
    "OAUTHBEARER": oauthbearer,
    "GSSAPI": kerberos,
    "AWS_MSK_IAM": msk_iam,
}


class OwnSession(NamedTuple):
    """klamm's own session on a connection, which ends after so many seconds. A broker refuses another
    mechanism or another principal on it. `name`: the host that it advertises; `version`: of SaslAuthenticate.
    """

    address: Address
    name: str
    mechanism: str
    username: str
    version: int
    lifetime_s: float


async def authenticate(
    conversation: Conversation, credentials: Credentials, version: int = AUTHENTICATE_VERSION
) -> OwnSession | None:
    """Gives the session, if it ends. `version`: of SaslAuthenticate.

    Raises Unanswered with what the broker said; and what `ask` raises.
    """
    mechanism = credentials.mechanism
    who = " of ".join(filter(None, (OWN.get(mechanism), credentials.username))) or "the token"
    answer = await conversation.ask(SASL_HANDSHAKE, HANDSHAKE_VERSION, {"mechanism": mechanism})
    if answer["error_code"]:
        enabled = ", ".join(answer["mechanisms"]) or "none"
        refused = f"{conversation.address} does not take {mechanism}"
        raise Unanswered(f"{refused} ({error_name(answer['error_code'])}); its mechanisms: {enabled}")
    exchange = EXCHANGES[mechanism](credentials._replace(host=conversation.name))
    token = await asyncio.to_thread(_next, exchange, None)
    while True:
        answer = await conversation.ask(SASL_AUTHENTICATE, version, {"auth_bytes": token})
        if answer["error_code"]:
            why = answer["error_message"] or error_name(answer["error_code"])
            raise Unanswered(f"{conversation.address} refuses {who}: {why}")
        try:
            token = await asyncio.to_thread(_next, exchange, answer["auth_bytes"])
        except (ValueError, KeyError) as wrong:
            reason = f"{conversation.address} is not to be trusted with {mechanism}: {wrong}"
            raise Unanswered(reason) from None
        if token is None:
            lifetime_ms = answer.get("session_lifetime_ms", 0)
            session = conversation.address, conversation.name, mechanism, credentials.username, version
            return OwnSession(*session, lifetime_ms / 1000) if lifetime_ms > 0 else None


def _next(exchange: Exchange, token: bytes | None) -> bytes | None:
    """The client's next message; None after its last. In a thread: SCRAM's hashes take long, and so does a
    ticket of Kerberos.
    """
    try:
        return next(exchange) if token is None else exchange.send(token)
    except StopIteration:
        return None
