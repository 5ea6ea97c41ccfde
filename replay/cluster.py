"""The cluster that a replay goes to: who its nodes are, who leads and who coordinates."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any
from zlib import crc32

from klamm.decoders import API, DecodeError, EncodeError, UnknownApi
from klamm.proxy.cluster.conversation import (
    API_VERSIONS,
    CLOSED,
    SOFTWARE,
    Conversation,
    Unanswered,
    converse,
)
from klamm.proxy.cluster.own_requests.contact import METADATA
from klamm.proxy.cluster.own_sasl.sasl import authenticate
from klamm.proxy.config_types import Address
from klamm.proxy.edge.sockets import why_tls_ended
from klamm.replay.channel import Channel
from klamm.replay.client_config import Access
from klamm.replay.meanings import NIL

FIND_COORDINATOR = 10
NEWEST = {API_VERSIONS: 3, METADATA: 12, FIND_COORDINATOR: 4}  # that klamm asks in
BY_ID = 12  # the Metadata version that names topics by their ids alone
GROUP, TRANSACTION = 0, 1  # key types of FindCoordinator
ANSWER_S = 30.0

Topic = str | bytes  # name or id


class Cluster:
    """Asked on a connection of klamm's own. `offered`: API key -> first and last version; empty where the
    cluster does not tell. Node None is the bootstrap server that answered.
    """

    def __init__(self, bootstrap: tuple[Address, ...], access: Access) -> None:
        self.bootstrap, self.access = bootstrap, access
        self.offered: dict[int, tuple[int, int]] = {}
        self.nodes: dict[int, Address] = {}
        self.leaders: dict[tuple[Topic, int], int] = {}
        self.coordinators: dict[tuple[int, str], int] = {}
        self.own: Conversation | None = None
        self.answered = bootstrap[0]

    async def open(self) -> None:
        """Raises Unanswered with what every bootstrap server said."""
        failures = []
        for address in self.bootstrap:
            try:
                self.own, self.answered = await self._first(address), address
                await self._metadata(())
                return
            except Unanswered as error:
                failures.append(str(error))
        raise Unanswered("; ".join(failures))

    async def _first(self, address: Address) -> Conversation:
        """A conversation, and what is offered. Kafka 0.8 and 0.9 close on ApiVersions."""
        conversation = await self._conversation(address)
        try:
            answer = await self._answer_of(
                conversation, API_VERSIONS, NEWEST[API_VERSIONS], SOFTWARE
            ) or await self._answer_of(conversation, API_VERSIONS, 0, {})
        except CLOSED:
            conversation.close()
            self.offered = {}
            return await self._conversation(address)
        self.offered = {
            row["api_key"]: (row["min_version"], row["max_version"]) for row in answer.get("api_keys") or ()
        }
        return conversation

    async def _conversation(self, address: Address) -> Conversation:
        """Connected and authenticated. Raises Unanswered."""
        conversation = await converse(address, self.access.way)
        try:
            if self.access.credentials is not None:
                async with asyncio.timeout(ANSWER_S):
                    await authenticate(conversation, self.access.credentials)
            return conversation
        except BaseException as error:
            conversation.close()
            match error:
                case Unanswered():
                    raise
                case TimeoutError():
                    raise Unanswered(f"{address} does not answer within {ANSWER_S:g} s") from error
                case ssl.SSLError():
                    raise Unanswered(f"{address}: {why_tls_ended(error)}") from error
                case ConnectionError() | asyncio.IncompleteReadError() | OSError():
                    raise Unanswered(f"{address} ends the connection while klamm authenticates") from error
            raise

    async def _answer_of(
        self, conversation: Conversation, key: int, version: int, values: dict[str, Any]
    ) -> dict[str, Any]:
        try:
            async with asyncio.timeout(ANSWER_S):
                return await conversation.ask(key, version, values)
        except TimeoutError:
            raise Unanswered(f"{conversation.address} does not answer within {ANSWER_S:g} s") from None
        except ssl.SSLError as error:
            raise Unanswered(f"{conversation.address}: {why_tls_ended(error)}") from error
        except (DecodeError, EncodeError, UnknownApi) as error:
            raise Unanswered(
                f"{conversation.address} gives an answer that cannot be read ({error})"
            ) from error

    async def ask(self, key: int, values: dict[str, Any]) -> dict[str, Any]:
        """Asks any node; `values` may have fields that this version lacks. Raises Unanswered."""
        version = self._version(key)
        there = {f.name for f in API[key].request if version in f.versions}
        asked = {name: value for name, value in values.items() if name in there}
        failure: Exception | None = None
        for address in (None, *self.nodes.values(), *self.bootstrap):
            try:
                if address is not None:
                    self.own = await self._conversation(address)
                if self.own is not None:
                    return await self._answer_of(self.own, key, version, asked)
            except (*CLOSED, Unanswered) as error:
                self.close()
                failure = error
        if isinstance(failure, Unanswered):
            raise failure
        named = self.access.way.tls or self.access.credentials
        hint = "" if named else ": if it wants TLS or SASL, name client properties with --client-config"
        where = ", ".join(map(str, self.bootstrap))
        raise Unanswered(f"{where} closes the connection when asked for {API[key].name}{hint}") from failure

    def _version(self, key: int) -> int:
        return min(self.offered.get(key, (0, 0))[1], NEWEST[key])

    async def _metadata(self, topics: Iterable[Topic]) -> None:
        """Nodes, and the leaders of topics."""
        asked = [
            {"name": topic} if isinstance(topic, str) else {"name": None, "topic_id": topic}
            for topic in topics
            if isinstance(topic, str) or self._version(METADATA) >= BY_ID
        ]
        answer = await self.ask(METADATA, {"topics": asked, "allow_auto_topic_creation": False})
        self.nodes = {row["node_id"]: Address(row["host"], row["port"]) for row in answer["brokers"]}
        for topic in answer["topics"]:
            for partition in topic["partitions"]:
                for called in (topic["name"], topic.get("topic_id", NIL)):
                    if called and called != NIL and partition["leader_id"] in self.nodes:
                        self.leaders[called, partition["partition_index"]] = partition["leader_id"]

    async def look_for_leaders(self, parts: Iterable[tuple[Topic, int]]) -> None:
        """Find out who leads these, as far as that is not known. Raises Unanswered."""
        unknown = {topic for topic, partition in parts if (topic, partition) not in self.leaders}
        if unknown:
            await self._metadata(unknown)

    async def coordinator(self, key_type: int, key: str) -> int | None:
        """The coordinator of a group or a transactional id; None while there is none. Raises Unanswered."""
        found = self.coordinators.get((key_type, key))
        if found is not None:
            return found
        asked = {"key": key, "coordinator_keys": [key], "key_type": key_type}
        answer = await self.ask(FIND_COORDINATOR, asked)
        (row,) = answer.get("coordinators") or (answer,)
        if row["error_code"] or row["node_id"] not in self.nodes:
            return None
        self.coordinators[key_type, key] = int(row["node_id"])
        return int(row["node_id"])

    def forget(self) -> None:
        """Somebody has answered that it is not, or no longer, the one to ask."""
        self.leaders.clear()
        self.coordinators.clear()

    def stand_in(self, recorded: int | str) -> int:
        """The node in the place of a recorded one, by its id or address; always the same."""
        if isinstance(recorded, int) and recorded in self.nodes:
            return recorded
        number = recorded if isinstance(recorded, int) else crc32(recorded.encode())
        return sorted(self.nodes)[number % len(self.nodes)]

    async def connect(self, node: int | None) -> Channel:
        """Raises Unanswered."""
        address = self.answered if node is None else self.nodes.get(node, self.answered)
        return Channel(await self._conversation(address))

    def close(self) -> None:
        if self.own is not None:
            self.own.close()
            self.own = None
