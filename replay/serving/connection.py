"""A client's connection to the played broker: one request after the other, as Kafka does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from struct import Struct

from klamm.decoders import API, DecodeError, UnknownApi
from klamm.decoders.body import decode_prefix
from klamm.decoders.framing import tls_or_size
from klamm.decoders.headers import read_request_header, request_header_version, response_frame
from klamm.decoders.sasl_tokens import Tokens
from klamm.decoders.schema import Api
from klamm.proxy.edge.sockets import address
from klamm.replay.serving.answers import Asked, Broker, Unanswered

SIZE, HEADER = Struct(">i"), Struct(">hhi")
LIMIT = 256 << 20  # bytes of a frame
API_VERSIONS, SASL_HANDSHAKE = 18, 17
NO_TOKEN = SIZE.pack(0)

Addressed = Callable[[Api, int, bytes, str], bytes]


class ClientConnection:
    """A client's connection to one node, "2" or "controller 1". `addressed` puts the served addresses into a
    body.
    """

    def __init__(
        self,
        node: str,
        broker: Broker,
        addressed: Addressed,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.node, self.broker, self.addressed = node, broker, addressed
        self.reader, self.writer = reader, writer
        self.host = address(writer.get_extra_info("sockname"))[0]
        self.tokens: Tokens | None = None  # after SaslHandshake v0

    def alive(self) -> bool:
        return not self.writer.is_closing() and not self.reader.at_eof()

    async def run(self) -> None:
        """Runs until the client leaves, or sends a request that cannot be answered."""
        try:
            while True:
                (size,) = SIZE.unpack(await self.reader.readexactly(SIZE.size))
                wrong = None if self.tokens and 0 <= size < 8 else tls_or_size(size, "client", LIMIT)
                if wrong is not None:
                    raise Unanswered(wrong[1])
                frame = await self.reader.readexactly(size)
                answer = await self._answered(frame)
                if answer is not None:
                    self.writer.write(answer)
                    await self.writer.drain()
        except Unanswered as error:
            self.broker.say_once(f"a connection is closed: {error}")
        except (DecodeError, UnknownApi) as error:
            self.broker.say_once(f"a connection is closed: its request cannot be read: {error}")
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except Exception as error:  # the other connections go on
            self.broker.say_once(f"klamm failed, and closes a connection: {error!r}")
        finally:
            self.writer.close()

    async def _answered(self, frame: bytes) -> bytes | None:
        """A whole response. Raises Unanswered, DecodeError, UnknownApi."""
        if self.tokens is not None and self.tokens.is_token(len(frame), int.from_bytes(frame[:2], "big")):
            self.tokens.from_client()
            return NO_TOKEN
        key, version, correlation_id = HEADER.unpack_from(frame)
        api = API[key]
        if version not in api.versions:
            if key != API_VERSIONS:
                raise UnknownApi(f"{api.name} has versions {api.versions}, not {version}")
            body = await self.broker.answer(Asked(api, version, self.node, None, {}, self.alive))
            return response_frame(api, 0, correlation_id, body or b"")
        header = read_request_header(frame, request_header_version(api, version))
        values = decode_prefix(frame[header.size :], key, version, "request")[0]
        if key == SASL_HANDSHAKE and version == 0:
            self.tokens = Tokens(values["mechanism"])
        body = await self.broker.answer(Asked(api, version, self.node, header.client_id, values, self.alive))
        if body is None:
            return None
        return response_frame(api, version, correlation_id, self.addressed(api, version, body, self.host))
