"""klamm asks the cluster itself who its nodes are, before the first client is let in."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Any

from klamm.decoders import API, DecodeError, encode
from klamm.decoders.body import decode_prefix
from klamm.decoders.headers import request_frame, response_header_version
from klamm.proxy.api_versions import unsupported_version
from klamm.proxy.config import Address
from klamm.proxy.connection import tls_or_size
from klamm.proxy.topology import NodeKey

API_VERSIONS, METADATA, DESCRIBE_QUORUM, DESCRIBE_CLUSTER = 18, 3, 55, 60
ENOUGH = {
    API_VERSIONS: 3,
    METADATA: 12,
    DESCRIBE_QUORUM: 2,
    DESCRIBE_CLUSTER: 2,
}  # the newest versions that klamm asks for
CLIENT_ID = "klamm"
CONTROLLERS = 2
ANSWER_LIMIT = 64 * 1024 * 1024
SOFTWARE = {"client_software_name": "klamm", "client_software_version": "0.1.0"}


class Unanswered(OSError):
    """A node that did not say what was asked; the text says why and what option may help."""


@dataclass(slots=True)
class Found:
    """`asks_sasl`: the node would not name its cluster to a stranger; then klamm learns from what clients
    are told.
    """

    nodes: dict[NodeKey, Address] = field(default_factory=dict)
    cluster_id: str | None = None
    asks_sasl: bool = False


class Conversation:
    """One connection to one node, one request at a time."""

    def __init__(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.address, self.reader, self.writer = address, reader, writer
        self.correlation_id = 0

    async def ask(self, key: int, version: int, values: dict[str, Any]) -> dict[str, Any]:
        """The answer; empty where the node does not know this version of ApiVersions.

        Raises Unanswered, ConnectionError, IncompleteReadError, DecodeError.
        """
        self.correlation_id += 1
        api = API[key]
        body = encode(values, key, version, "request")
        self.writer.write(request_frame(api, version, self.correlation_id, CLIENT_ID, body))
        size = int.from_bytes(await self.reader.readexactly(4), "big", signed=True)
        wrong = tls_or_size(size, "broker", ANSWER_LIMIT)
        if wrong is not None:
            raise Unanswered(f"{self.address}: {wrong[1]}")
        frame = await self.reader.readexactly(size)
        start = 4
        if response_header_version(api, version):
            if frame[4]:
                raise Unanswered(f"{api.name} v{version} answered with tagged fields in its header")
            start = 5
        if key == API_VERSIONS and unsupported_version(frame[start:]):
            return {}
        return decode_prefix(frame[start:], key, version, "response")[0]

    def close(self) -> None:
        self.writer.close()


async def converse(
    address: Address, timeout_s: float, tls: ssl.SSLContext | None, server_name: str | None
) -> Conversation:
    """Connect. Raises OSError with what happened and where."""
    try:
        async with asyncio.timeout(timeout_s):
            streams = await asyncio.open_connection(
                address.host,
                address.port,
                ssl=tls,
                server_hostname=(server_name or address.host) if tls else None,
            )
    except (TimeoutError, OSError) as error:
        raise Unanswered(why_unreachable(address, error, timeout_s)) from error
    return Conversation(address, *streams)


def why_unreachable(address: Address, error: BaseException, timeout_s: float) -> str:
    """One line: what happened, where, and the option that may help."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{address}: its certificate is not trusted ({error.verify_message}): name the authority with --upstream-ca"
    if isinstance(error, ssl.SSLError):
        return f"{address} does not speak TLS as klamm does ({error.reason}): start klamm without --upstream-tls if it is a plain port"
    if isinstance(error, TimeoutError):
        return f"{address} does not answer within {timeout_s:g} s: if klamm reaches it elsewhere, say --map {address}=HOST:PORT"
    if isinstance(error, ConnectionRefusedError):
        return f"{address} refuses connections"
    if isinstance(error, OSError) and not isinstance(error, ConnectionError):
        return f"{address} cannot be reached ({error.strerror or error}): if klamm reaches it elsewhere, say --map {address}=HOST:PORT"
    return f"{address}: {error or type(error).__name__}"


async def discover(
    address: Address, timeout_s: float, tls: ssl.SSLContext | None, server_name: str | None
) -> Found:
    """What the node at `address` says of its cluster. Raises Unanswered (an OSError)."""
    try:
        async with asyncio.timeout(timeout_s * 2):
            return await _discover(address, timeout_s, tls, server_name)
    except TimeoutError:
        raise Unanswered(
            f"{address} accepts connections and does not answer within {timeout_s * 2:g} s"
        ) from None
    except (DecodeError, ConnectionError, asyncio.IncompleteReadError) as error:
        raise Unanswered(f"{address} ended the conversation: {error or type(error).__name__}") from error


async def _discover(
    address: Address, timeout_s: float, tls: ssl.SSLContext | None, server_name: str | None
) -> Found:
    conversation = await converse(address, timeout_s, tls, server_name)
    try:
        offered = await _offered(conversation)
    except (ConnectionError, asyncio.IncompleteReadError):
        conversation.close()
        return await _of_old_broker(address, timeout_s, tls, server_name)
    try:
        if METADATA in offered:
            return await _of_broker(conversation, offered)
        if DESCRIBE_CLUSTER in offered:
            return await _of_controller(conversation, offered)
        raise Unanswered(f"{address} offers neither Metadata nor DescribeCluster: is it Kafka?")
    except (ConnectionError, asyncio.IncompleteReadError):
        return Found(asks_sasl=True)
    finally:
        conversation.close()


async def _offered(conversation: Conversation) -> dict[int, int]:
    """API key -> the newest version to ask in, for what klamm asks."""
    answer = await conversation.ask(API_VERSIONS, ENOUGH[API_VERSIONS], SOFTWARE) or await conversation.ask(
        API_VERSIONS, 0, {}
    )
    if not answer:
        raise Unanswered("no version of ApiVersions is known to both sides: is it Kafka?")
    return {
        row["api_key"]: min(row["max_version"], ENOUGH[row["api_key"]])
        for row in answer["api_keys"]
        if row["api_key"] in ENOUGH
    }


async def _of_broker(conversation: Conversation, offered: dict[int, int]) -> Found:
    answer = await conversation.ask(METADATA, offered[METADATA], {"topics": []})
    found = Found(cluster_id=answer.get("cluster_id"))
    for row in answer["brokers"]:
        found.nodes[NodeKey("broker", row["node_id"])] = Address(row["host"], row["port"])
    if offered.get(DESCRIBE_QUORUM, 0) >= 2:
        quorum = await conversation.ask(DESCRIBE_QUORUM, offered[DESCRIBE_QUORUM], {"topics": []})
        for node in quorum["nodes"] or ():
            for listener in node["listeners"][:1]:
                found.nodes[NodeKey("controller", node["node_id"])] = Address(
                    listener["host"], listener["port"]
                )
    return found


async def _of_controller(conversation: Conversation, offered: dict[int, int]) -> Found:
    asked = {"endpoint_type": CONTROLLERS} if offered[DESCRIBE_CLUSTER] >= 1 else {}
    answer = await conversation.ask(DESCRIBE_CLUSTER, offered[DESCRIBE_CLUSTER], asked)
    found = Found(cluster_id=answer["cluster_id"])
    for row in answer["brokers"]:
        found.nodes[NodeKey("controller", row["broker_id"])] = Address(row["host"], row["port"])
    return found


async def _of_old_broker(
    address: Address, timeout_s: float, tls: ssl.SSLContext | None, server_name: str | None
) -> Found:
    """Kafka 0.8 and 0.9 close on ApiVersions; Metadata v0 with no topics names all of them."""
    conversation = await converse(address, timeout_s, tls, server_name)
    try:
        answer = await conversation.ask(METADATA, 0, {"topics": []})
    finally:
        conversation.close()
    return Found(
        {NodeKey("broker", row["node_id"]): Address(row["host"], row["port"]) for row in answer["brokers"]}
    )
