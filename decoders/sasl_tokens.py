"""Raw SASL tokens: what follows SaslHandshake v0, or comes first from a GSSAPI client of Kafka 0.9.

A token is an int32 size and opaque bytes, with no Kafka header. Nobody announces the last one: after GSSAPI's
the broker may send nothing. So a frame from the client is a token for as long as it cannot be a request.
"""

from __future__ import annotations

# the first byte of a GSS-API initial token (RFC 2743, 3.1); as a request it would be key 24576 or more
GSSAPI_FIRST = 0x60
SASL_HANDSHAKE = 0x0011
LAST_KEY = (
    0x00FF  # tokens of the other mechanisms begin with a letter or with 0x60, 0x05: never with a zero byte
)


class Tokens:
    """The exchange of tokens on one connection."""

    __slots__ = ("awaited", "mechanism", "sent")

    def __init__(self, mechanism: str) -> None:
        self.mechanism = mechanism
        self.sent = 0  # by the client
        self.awaited = 0  # tokens that the broker may still send

    def is_token(self, length: int, key: int) -> bool:
        """Is a frame of the client, with these first two bytes after its size, a token?"""
        if length < 8:
            return True
        if (
            self.mechanism == "PLAIN"
        ):  # one token, which begins with a zero byte when no authzid is given (RFC 4616)
            return self.sent == 0 and key != SASL_HANDSHAKE
        return key > LAST_KEY

    def from_client(self) -> None:
        self.sent += 1
        self.awaited += 1

    def from_broker(self) -> None:
        self.awaited -= 1
