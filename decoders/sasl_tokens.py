"""Raw SASL tokens: what follows SaslHandshake v0, or comes first from a GSSAPI client of Kafka 0.9.

A token is an int32 size and opaque bytes, with no Kafka header. Nobody announces the last one: after GSSAPI's
the broker may send nothing. So a frame from the client is a token for as long as it cannot be a request.
"""

from __future__ import annotations

from klamm.decoders.framing import SIZE
from klamm.decoders.schema import Side

# the first byte of a GSS-API initial token (RFC 2743, 3.1); as a request it would be key 24576 or more
GSSAPI_FIRST = 0x60
SASL_HANDSHAKE = 0x0011
LAST_KEY = (
    0x00FF  # other mechanisms' tokens begin with a letter, or with 0x60 or 0x05: never with a zero byte
)
HEADERS: dict[Side, int] = {"request": 8, "response": 4}  # bytes, at least


class Tokens:
    """The exchange of tokens on one connection."""

    __slots__ = ("awaited", "mechanism", "sent")

    def __init__(self, mechanism: str) -> None:
        self.mechanism = mechanism
        self.sent = 0  # by the client
        self.awaited = 0  # tokens that the broker may still send

    def is_token(self, length: int, key: int) -> bool:
        """Whether a frame of the client, with these first two bytes after its size, is a token."""
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

    def over(self) -> None:
        """A request came behind them. So GSSAPI's last token gets no answer any more: Kafka sends none."""
        if self.mechanism == "GSSAPI":
            self.awaited = 0

    def skip_short(self, data: bytes, pos: int, side: Side) -> int:
        """Count whole tokens that are shorter than a Kafka header, and give the position behind them."""
        header = HEADERS[side]
        while len(data) - pos >= 4 and (side == "request" or self.awaited > 0):
            (length,) = SIZE.unpack_from(data, pos)
            if not 0 <= length < header or len(data) - pos < 4 + length:
                break
            if side == "request":
                self.from_client()
            else:
                self.from_broker()
            pos += 4 + length
        return pos
