"""A connection to a broker on which klamm speaks for itself, while no bytes of a client go over it."""

from __future__ import annotations

import asyncio
from typing import cast

from klamm.proxy.edge.ends import End

ENDED = "the broker closed the connection"


class Exchanging(asyncio.Protocol):
    """`reader` gets the broker's bytes. `of`: the end that takes the connection back, which is told what it
    has to know meanwhile; None before it is made.
    """

    def __init__(self, of: End | None = None) -> None:
        self.reader = asyncio.StreamReader()
        self.transport: asyncio.Transport
        self.of = of

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.reader.feed_data(data)

    def pause_writing(self) -> None:
        if self.of is not None:
            self.of.pause_writing()

    def resume_writing(self) -> None:
        if self.of is not None:
            self.of.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self.reader.set_exception(exc or ConnectionResetError(ENDED))
        if self.of is not None:
            self.of.connection_lost(exc)
