"""A client on its way in that has to authenticate with klamm: no broker is connected before it has."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

from klamm.decoders.framing import SIZE, tls_or_size
from klamm.proxy.edge.accepting.hashing import Hashing
from klamm.proxy.edge.sockets import Arrival
from klamm.proxy.sasl.server import Admit, Answer, Refuse, Server, Step, Versions, Work

LOGIN_S = 10.0  # from the connection, or the end of its TLS handshake, to the end of the authentication
FAILED_S = 0.1  # before a refusal, as Kafka's connection.failed.authentication.delay.ms
CLOSING_S = 2.0  # for a refusal to be sent
MOST_FRAME = 1 << 17  # bytes; tokens of OAUTHBEARER are some thousand


@dataclass(frozen=True, slots=True)
class Doorkeeper:
    """The parts of a cluster that a client's authentication needs. `versions` gives a body for ApiVersions,
    or raises OSError. `admit` gives the protocol of a client that has authenticated, and is told when that
    has begun.
    """

    server: Callable[[], Server]
    versions: Callable[[Versions], Awaitable[bytes]]
    admit: Callable[[Gate, Admit], asyncio.Protocol]
    begun: Callable[[Gate, Admit, asyncio.Protocol], None]
    refused: Callable[[Gate, Refuse], None]
    hashing: Hashing


class Gate(asyncio.Protocol):
    """The protocol of a connection until its client has authenticated."""

    def __init__(self, keeper: Doorkeeper, came: Arrival) -> None:
        self.keeper, self.came = keeper, came
        self.server = keeper.server()
        self.transport: asyncio.Transport
        self.received = bytearray()
        self.ended = self.paused = False
        self.changed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        if len(self.received) > MOST_FRAME + 4 and not self.paused:
            self.paused = True
            self.transport.pause_reading()
        self.changed.set()

    def eof_received(self) -> bool:
        self.ended = True
        self.changed.set()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = True
        self.changed.set()

    async def authenticate(self) -> None:
        """Let the client go on as the doorkeeper says, or close it."""
        admitted = False
        try:
            async with asyncio.timeout(LOGIN_S):
                admitted = await self._converse()
        except TimeoutError:
            if self.server.frames or self.received:
                self.keeper.refused(self, Refuse(b"", f"it does not authenticate within {LOGIN_S:g} s"))
        except OSError as error:
            self.keeper.refused(self, Refuse(b"", f"ApiVersions cannot be answered: {error}"))
        finally:
            if not admitted:
                self.transport.abort()

    async def _converse(self) -> bool:
        """True if the client goes on. Raises OSError and TimeoutError."""
        while (frame := await self._frame()) is not None:
            step: Step = frame if isinstance(frame, Refuse) else self.server.frame(frame, time.time())
            while isinstance(step, Work):
                done = await self.keeper.hashing.work(self.came.client[0], step.check.work)
                step = self.server.checked(done, time.time())
            match step:
                case Answer(data, failed):
                    if failed is not None:
                        self.keeper.refused(self, Refuse(b"", *failed[1:]))
                        await asyncio.sleep(FAILED_S)
                    self.transport.write(data)
                case Versions():
                    self.transport.write(self.server.versions(step, await self.keeper.versions(step)))
                case Refuse():
                    await self._refuse(step)
                    return False
                case Admit():
                    return self._admit(step)
        return False

    async def _frame(self) -> bytes | Refuse | None:
        """The next frame without its size; None if the client has ended. One that is too large is refused
        before it is read.
        """
        while True:
            if len(self.received) >= 4:
                (size,) = SIZE.unpack_from(self.received)
                wrong = None if self.server.raw and 0 <= size <= MOST_FRAME else self._wrong(size)
                if wrong is not None:
                    return Refuse(b"", wrong)
                if len(self.received) >= 4 + size:
                    frame = bytes(self.received[4 : 4 + size])
                    del self.received[: 4 + size]
                    return frame
            if self.ended:
                return None
            await self._more()

    async def _more(self) -> None:
        """Wait until something has come, or the client has ended."""
        if self.paused and not self.transport.is_closing():
            self.paused = False
            self.transport.resume_reading()
        self.changed.clear()
        await self.changed.wait()

    def _wrong(self, size: int) -> str | None:
        wrong = tls_or_size(size, "client", MOST_FRAME)
        return None if wrong is None else wrong[1]

    async def _refuse(self, step: Refuse) -> None:
        """Late, so that guesses take time; and it is sent before the connection ends."""
        if step.why:
            self.keeper.refused(self, step)
        if not step.data:
            return
        await asyncio.sleep(FAILED_S)
        self.transport.write(step.data)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_S):
                while not self.ended:
                    self.received.clear()
                    await self._more()

    def _admit(self, step: Admit) -> bool:
        """Give the connection to the client's end of a link, with what has come behind the last message."""
        if self.ended or self.transport.is_closing():
            return False
        protocol = self.keeper.admit(self, step)
        self.transport.write(step.data)
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        self.keeper.begun(self, step, protocol)
        if self.received:
            protocol.data_received(bytes(self.received))
        return True
