"""A broker that asks clients for credentials, and klamm in front of it, which has them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from klamm.proxy import config
from klamm.proxy.config_types import InputFile, Text
from tests.fakes.broker import Broker, Cluster, Connection, Request
from tests.fakes.edge import Edge, edge

PLAIN = b"\0alice\0secret"


class Guarded:
    """A broker that answers only those who have authenticated themselves, and, as Kafka does, nothing else
    from a SaslHandshake on until that is over.
    """

    def __init__(self, broker: Broker, token: bytes = PLAIN, lifetime_ms: int = 0) -> None:
        self.token, self.lifetime_ms = token, lifetime_ms
        self.known: set[int] = set()  # ids of connections
        self.tokens: list[bytes] = []
        self.shaking: set[int] = set()  # ids of connections on which an authentication has begun
        for name, answer in list(broker.answers.items()):
            if name != "ApiVersions":
                broker.answers[name] = self._guarded(answer)
        broker.answers["SaslHandshake"] = self._handshake
        broker.answers["SaslAuthenticate"] = self._authenticate

    def _guarded(self, answer: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(connection: Connection, request: Request) -> Any:
            if id(connection) in self.known - self.shaking:
                return answer(connection, request)
            connection.close()
            return None

        return guarded

    def _handshake(self, connection: Connection, request: Request) -> dict[str, Any]:
        self.shaking.add(id(connection))
        return {"error_code": 0, "mechanisms": ["PLAIN"]}

    def _authenticate(self, connection: Connection, request: Request) -> dict[str, Any]:
        self.tokens.append(request.values["auth_bytes"])
        if self.tokens[-1] != self.token:
            return {"error_code": 58, "error_message": "Authentication failed", "auth_bytes": b""}
        self.known.add(id(connection))
        self.shaking.discard(id(connection))
        return {"error_code": 0, "auth_bytes": b"", "session_lifetime_ms": self.lifetime_ms}


def sasl(folder: Path, secret: str = "secret\n", **more: Any) -> config.Sasl:
    (folder / "password").write_text(secret)
    file = InputFile(str(folder / "password"))
    settings = {"mechanism": "PLAIN", "username": Text("alice"), "password_file": file, **more}
    return config.Sasl(**settings)


@asynccontextmanager
async def guarded(own: config.Sasl, **more: Any) -> AsyncIterator[tuple[Edge, Broker, Guarded]]:
    broker = await Broker(Cluster(), 1).start()
    guard = Guarded(broker, **more)
    try:
        async with edge(broker, sasl=own) as klamm:
            yield klamm, broker, guard
    finally:
        await broker.stop()
