"""The API versions of the brokers, for clients that ask before they have authenticated with klamm."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from time import monotonic
from typing import Any

from klamm.decoders import encode
from klamm.proxy.cluster.conversation import API_VERSIONS, SOFTWARE, Way, converse
from klamm.proxy.cluster.own_requests.dialling import Dialler
from klamm.proxy.cluster.own_requests.discovery import in_time
from klamm.proxy.config_types import Address
from klamm.proxy.session.rewriting.api_versions import clamped, unsupported
from klamm.proxy.session.rewriting.topology import NodeKey, Topology

FRESH_S = 30.0  # an answer is given to clients for so long
OWN = {17: (0, 1), 36: (0, 2)}  # SaslHandshake and SaslAuthenticate, which klamm answers


class Offers:
    """Asks each broker once in `FRESH_S` for each version of ApiVersions, however many clients come.
    `candidates`: the addresses for a bootstrap connection.
    """

    def __init__(
        self, topology: Topology, dialler: Dialler, candidates: Callable[[], Iterator[Address]]
    ) -> None:
        self.topology, self.dialler, self.candidates = topology, dialler, candidates
        self.answers: dict[tuple[Address, int], tuple[float, asyncio.Task[bytes]]] = {}

    async def body(self, target: NodeKey | None, version: int, allow_unknown: bool) -> bytes:
        """The body of a response in this version, as a client of this node gets it. Raises OSError."""
        failures: list[str] = []
        for address in self._addresses(target):
            try:
                body = await self._of(address, version)
            except OSError as error:
                failures.append(str(error))
            else:
                return clamped(body, version, allow_unknown)
        raise OSError("; ".join(failures) or "no broker is known")

    def _addresses(self, target: NodeKey | None) -> Iterator[Address]:
        topology = self.topology
        node = None if target is None else topology.nodes.get(target) or topology.remembered.get(target)
        if node is not None:
            yield Address(node.host, node.port)
        if node is None or node.key not in topology.nodes:
            yield from self.candidates()

    async def _of(self, address: Address, version: int) -> bytes:
        """One client asks, the others wait for the same answer. Raises OSError."""
        key, now = (address, version), monotonic()
        known = self.answers.get(key)
        if known is None or now - known[0] > FRESH_S or _has_failed(known[1]):
            self.answers = {each: one for each, one in self.answers.items() if now - one[0] <= FRESH_S}
            ask = partial(_ask, version=version)
            asking = asyncio.ensure_future(in_time(self.dialler.reachable(address), self.dialler.way, ask))
            known = self.answers[key] = now, asking
        return await asyncio.shield(known[1])

    async def stop(self) -> None:
        asking = [task for _, task in self.answers.values() if not task.done()]
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


def _has_failed(task: asyncio.Task[bytes]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


async def _ask(address: Address, way: Way, version: int) -> bytes:
    """Raises OSError and DecodeError, and what `ask` raises."""
    conversation = await converse(address, way)
    try:
        values = await conversation.ask(API_VERSIONS, version, SOFTWARE if version >= 3 else {})
    finally:
        conversation.close()
    if not values:
        return unsupported()
    return encode(_with_own(values), API_VERSIONS, version, "response")


def _with_own(values: dict[str, Any]) -> dict[str, Any]:
    """With klamm's versions of SASL in place of the broker's."""
    others = [row for row in values["api_keys"] or () if row["api_key"] not in OWN]
    own = [{"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in OWN.items()]
    return {**values, "api_keys": sorted([*others, *own], key=lambda row: int(row["api_key"]))}
