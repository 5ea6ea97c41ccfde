"""A session of bytes that klamm cannot read, such as TLS for which it has no certificate: it counts them."""

from __future__ import annotations

from klamm.proxy.session.connection import ClusterContext, Connection
from klamm.proxy.session.effects import Effect
from klamm.proxy.session.requests import Requests
from klamm.proxy.session.responses import Responses
from klamm.proxy.session.session import Session


def _count(connection: Connection, sender: str, size: int) -> None:
    context = connection.context
    context.stats.opaque[context.cluster, connection.broker, sender] += size


class OpaqueRequests(Requests):
    """The bytes of the client."""

    def receive(self, data: bytes, now: int) -> bytes | list[Effect]:
        """Gives the same object: all of it goes on."""
        _count(self.connection, "client", len(data))
        return data


class OpaqueResponses(Responses):
    """The bytes of the broker."""

    def receive(self, data: bytes, now: int) -> bytes | list[Effect]:
        """Gives the same object: all of it goes on."""
        _count(self.connection, "broker", len(data))
        return data


class OpaqueSession(Session):
    """Of rules, only those on connections apply."""

    def __init__(
        self, context: ClusterContext, broker: str, client_address: str = "", number: int = 0
    ) -> None:
        super().__init__(context, broker, "", client_address, number)
        self.requests = OpaqueRequests(self.connection, None)
        self.responses = OpaqueResponses(self.connection, None)
        self.from_client = self.requests.receive
        self.from_broker = self.responses.receive
        self.bound = self.responses.bound
        self.unmute = self.requests.unmute
