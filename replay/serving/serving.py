"""`klamm replay --serve`: a capture plays the broker, on a port for each node that it names."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache

import uvloop

from klamm.captures.captured import Captured
from klamm.captures.choosing import chosen
from klamm.captures.exchanges import exchanges
from klamm.captures.exports.exporting import seen_by
from klamm.decoders.schema import Api
from klamm.proxy.config_types import Address
from klamm.proxy.session.rewriting.addresses import rewrite
from klamm.proxy.session.rewriting.topology import Kind, NodeKey
from klamm.replay.serving.answers import Broker
from klamm.replay.serving.connection import ClientConnection
from klamm.replay.serving.learning import record
from klamm.replay.serving.plays import AS_RECORDED, PLAYED, PLAYS, nodes
from klamm.replay.serving.recording import Recording
from klamm.rules.expressions import Expression
from klamm.rules.plan import Endpoints, endpoints

Say = Callable[[str], None]


class CannotServe(Exception):
    """Serving is not possible; the text says why."""


@dataclass(slots=True)
class Serving:
    """The running servers: the address of each node, and counts of the answers so far, by API."""

    recording: Recording
    broker: Broker
    addresses: dict[NodeKey, Address] = field(default_factory=dict)
    servers: list[asyncio.Server] = field(default_factory=list)
    connections: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def bootstrap(self) -> Address:
        return self.addresses[min(self.addresses)]

    @property
    def answered(self) -> Counter[str]:
        return self.broker.answered

    @property
    def unanswered(self) -> Counter[str]:
        return self.broker.unanswered

    def addressed(self, api: Api, version: int, body: bytes, host: str) -> bytes:
        """A response's body with our addresses in it, as a client sees them that reached us at `host`."""
        where = _endpoints(api, version)
        if where is None:
            return body

        def standing(kind: Kind, node_id: int, _: str, port: int) -> tuple[str, int]:
            address = self.addresses.get(NodeKey(kind, node_id), self.bootstrap)
            return host, address.port

        return b"".join(rewrite(where, body, 0, len(body), standing) or [body])


@cache
def _endpoints(api: Api, version: int) -> Endpoints | None:
    return endpoints(api, version)


def load(rows: Iterable[Captured], where: Expression | None = None) -> Recording:
    """Learns from the exchanges as the clients saw them. Raises CannotServe."""
    recording = record(chosen(exchanges(seen_by("client", rows)), where), PLAYED - AS_RECORDED)
    if not recording.exchanges:
        why = "".join(f"; {count} responses {reason}" for reason, count in recording.unread.items() if count)
        raise CannotServe(f"the capture has no exchange that can be served{why}")
    if len(recording.clusters) > 1:
        names = ", ".join(sorted(recording.clusters))
        raise CannotServe(f'the capture has several clusters ({names}): choose with `cluster == "NAME"`')
    return recording


def warnings(recording: Recording) -> list[str]:
    """Differences that clients will notice."""
    lines = [
        f"{count} responses {why}: they are not served" for why, count in recording.unread.items() if count
    ]
    if recording.unreadable:
        lines.append(f"{recording.unreadable} frames have records that cannot be read: these are not served")
    if recording.blank_batches:
        lines.append(
            f"{recording.blank_batches} batches are blank in the capture: "
            "clients get as many records, of zeros"
        )
    return lines


def serve(
    recording: Recording, listen: Address, say: Say, announce: Callable[[Serving], None], strict: bool = False
) -> Serving:
    """Serves until SIGINT or SIGTERM. The first node listens at `listen`, the others on the ports after it,
    or all on free ones if its port is 0. `announce` is called when clients may connect. Raises CannotServe.
    """
    return uvloop.run(_serve(recording, listen, say, announce, strict))


async def _serve(
    recording: Recording, listen: Address, say: Say, announce: Callable[[Serving], None], strict: bool
) -> Serving:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with served(recording, listen, say, strict) as serving:
        announce(serving)
        await stop.wait()
    return serving


@asynccontextmanager
async def served(
    recording: Recording, listen: Address, say: Say, strict: bool = False
) -> AsyncIterator[Serving]:
    """Listening for every node while the context lasts. Raises CannotServe."""
    broker = Broker(recording, PLAYS, say, strict)
    serving = Serving(recording, broker)
    try:
        for index, key in enumerate(sorted({*recording.nodes, *nodes(broker)})):
            port = listen.port + index if listen.port else 0
            serving.servers.append(await _bind(serving, key, Address(listen.host, port)))
        yield serving
    finally:
        for server in serving.servers:
            server.close()
        for task in serving.connections:
            task.cancel()
        await asyncio.gather(*serving.connections)


async def _bind(serving: Serving, key: NodeKey, address: Address) -> asyncio.Server:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.connections.add(task)
        try:
            await ClientConnection(str(key), serving.broker, serving.addressed, reader, writer).run()
        except asyncio.CancelledError:
            pass  # nothing waits for the task but the stream, which would call it an error
        finally:
            serving.connections.discard(task)

    try:
        server = await asyncio.start_server(connected, *address)
    except OSError as error:
        raise CannotServe(f"cannot listen at {address}: {error.strerror or error}") from error
    serving.addresses[key] = Address(address.host, server.sockets[0].getsockname()[1])
    return server
