"""A connection to each broker on which nothing is asked: where it ends, the broker may have died."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from klamm.proxy.cluster.conversation import Conversation, converse
from klamm.proxy.cluster.own_requests.broker_watch import BrokerWatch
from klamm.proxy.cluster.own_requests.dialling import Dialler
from klamm.proxy.config_types import Address
from klamm.proxy.session.rewriting.topology import NodeKey

MOST = 32  # brokers; the others are asked now and then, and dialled by clients
LOOK_S = 1.0  # for brokers that are new, and before a connection that has ended is made again
KEEPALIVE = {"TCP_KEEPIDLE": 2, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 3}  # s, s, times: for hosts that are gone

Run = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class HeldConnections:
    """Of the brokers that `watch` knows, which is told of each that cannot be connected to. Before SASL a
    broker lets a connection be for minutes (connections.max.idle.ms).
    """

    def __init__(self, watch: BrokerWatch, dialler: Dialler, run: Run) -> None:
        self.watch, self.dialler, self.run = watch, dialler, run

    async def follow(self) -> None:
        """Hold them, until cancelled."""
        holding: dict[tuple[NodeKey, Address], asyncio.Task[None]] = {}
        topology, seen, brokers = self.watch.topology, (-1, 0), list[tuple[NodeKey, Address]]()
        try:
            while True:
                now = topology.revision, len(topology.remembered)
                if now != seen:  # there may be very many
                    seen, brokers = now, self.watch.brokers()[:MOST]
                for gone in holding.keys() - set(brokers):
                    holding.pop(gone).cancel()
                for each in brokers:
                    if each not in holding:
                        holding[each] = self.run(self._hold(*each))
                await asyncio.sleep(LOOK_S)
        finally:
            for task in holding.values():
                task.cancel()

    async def _hold(self, key: NodeKey, address: Address) -> None:
        while True:
            held: list[Conversation] = []
            await self.watch.ask_one(key, address, partial(self._connect, held))
            try:
                for conversation in held:
                    await conversation.ended()
            finally:
                for conversation in held:
                    conversation.close()
            await asyncio.sleep(LOOK_S)

    async def _connect(self, held: list[Conversation], address: Address) -> None:
        """Raises OSError."""
        way = self.dialler.way._replace(credentials=None)
        conversation = await converse(self.dialler.elsewhere(address), way, address.host)
        held.append(conversation)
        sock = conversation.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE.items():
            if hasattr(socket, name):  # not on each system
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
