"""klamm asks the cluster itself who its nodes are, before the first client is let in."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from klamm.decoders import API, DecodeError, EncodeError, UnknownApi, encode
from klamm.decoders.body import decode_prefix
from klamm.decoders.framing import tls_or_size
from klamm.decoders.headers import (
    read_response_header,
    refuses_version,
    request_frame,
    response_header_version,
)
from klamm.proxy.config import Address
from klamm.proxy.edge.sockets import why_tls_ended
from klamm.proxy.session.topology import NodeKey

API_VERSIONS, METADATA, SASL_HANDSHAKE, DESCRIBE_QUORUM, DESCRIBE_CLUSTER = 18, 3, 17, 55, 60
ENOUGH = {
    API_VERSIONS: 3,
    METADATA: 12,
    SASL_HANDSHAKE: 1,
    DESCRIBE_QUORUM: 2,
    DESCRIBE_CLUSTER: 2,
}  # the newest versions that klamm asks for
# Brokers name the controllers only to those who ask for the quorum's partition.
QUORUM = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
CLIENT_ID = "klamm"
UNDIALLED = (OSError, ValueError, OverflowError)  # the latter for hosts and ports that are nonsense
CLOSED = (ConnectionError, asyncio.IncompleteReadError)
OTHER_NAME = (62, 64)  # OpenSSL: the certificate is for another host, or address
CONTROLLERS = 2
ILLEGAL_SASL_STATE = 34  # what a broker without SASL says to SaslHandshake
ANSWER_LIMIT = 64 * 1024 * 1024
SOFTWARE = {"client_software_name": "klamm", "client_software_version": "0.1.0"}
HOST_BOUND = ("GSSAPI", "AWS_MSK_IAM")

T = TypeVar("T")


class Unanswered(OSError):
    """A node that did not say what was asked; the text says why and what option may help."""


class Silent(Unanswered):
    """It accepts connections, and that is all."""


class Way(NamedTuple):
    """How nodes are connected to."""

    timeout_s: float
    tls: ssl.SSLContext | None = None
    server_name: str | None = None  # in the certificate; None: the host that is dialled

    def name_of(self, host: str) -> str | None:
        return (self.server_name or host) if self.tls else None


@dataclass(slots=True)
class Found:
    """`asks_sasl`: the node would not name its cluster to a stranger; then klamm learns from what clients are
    told. `mechanisms` are SASL's, where it named them. `is_controller`: the node serves no producers or
    consumers, and names no brokers.
    """

    nodes: dict[NodeKey, Address] = field(default_factory=dict)
    cluster_id: str | None = None
    asks_sasl: bool = False
    mechanisms: tuple[str, ...] = ()
    is_controller: bool = False


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
        header = read_response_header(frame, response_header_version(api, version))
        if header.correlation_id != self.correlation_id:
            raise Unanswered(f"{self.address} answers what was not asked: is it Kafka?")
        if key == API_VERSIONS and refuses_version(frame[header.size :]):
            return {}
        return decode_prefix(frame[header.size :], key, version, "response")[0]

    def close(self) -> None:
        self.writer.close()


async def converse(address: Address, way: Way) -> Conversation:
    """Connect. Raises Unanswered with what happened and where."""
    try:
        async with asyncio.timeout(way.timeout_s):
            streams = await asyncio.open_connection(
                *address, ssl=way.tls, server_hostname=way.name_of(address.host)
            )
    except UNDIALLED as error:
        raise Unanswered(why_unreachable(address, error, way)) from error
    return Conversation(address, *streams)


def why_unreachable(address: Address, error: Exception, way: Way) -> str:
    """One line: what happened, where, and the option that may help."""
    elsewhere = f"if klamm reaches it elsewhere, say --map {address}=HOST:PORT"
    plain = "start klamm without --upstream-tls if it is a plain port"
    match error:
        case ssl.SSLCertVerificationError():
            why = error.verify_message or error.reason
            if error.verify_code in OTHER_NAME:
                return f"{address}: {why} Set the name in it as clusters[].tls.server_name in klamm.yaml"
            if "mismatch" in str(why).lower():
                return f"{address}: {why}: name what it is for with clusters[].tls.server_name in klamm.yaml"
            return f"{address}: its certificate is not trusted ({why}): name the authority with --upstream-ca"
        case ssl.SSLError():
            return f"{address} does not speak TLS as klamm does ({error.reason}): {plain}"
        case TimeoutError():
            asked = f"{address} does not answer within {way.timeout_s:g} s: {elsewhere}"
            return f"{asked}, or {plain}" if way.tls else asked
        case ConnectionRefusedError():
            return f"{address} refuses connections"
        case ConnectionError() if way.tls:
            return f"{address} ends the TLS handshake: {plain}"
        case ConnectionError():
            return f"{address}: {error or type(error).__name__}"
        case OSError(errno=errno.EMFILE | errno.ENFILE):
            return f"{address} is not dialled, klamm has too many open files: raise the limit (ulimit -n)"
        case OSError():
            return f"{address} cannot be reached ({error.strerror or error}): {elsewhere}"
    return f"{address} is no address ({error}): {elsewhere}"


async def discover(address: Address, way: Way) -> Found:
    """What the node at `address` says of its cluster. Raises Unanswered (an OSError)."""
    return await _in_time(address, way, _discover)


async def greet(address: Address, way: Way) -> None:
    """Ask a node for its versions, which it tells before SASL too. Raises Unanswered (an OSError)."""
    await _in_time(address, way, _greet)


async def _in_time(address: Address, way: Way, ask: Callable[[Address, Way], Awaitable[T]]) -> T:
    try:
        async with asyncio.timeout(way.timeout_s * 2):
            return await ask(address, way)
    except Unanswered:
        raise
    except TimeoutError:
        silent = f"{address} accepts connections and does not answer within {way.timeout_s * 2:g} s"
        raise Silent(silent) from None
    except ssl.SSLError as error:
        raise Unanswered(f"{address}: {why_tls_ended(error)}") from error
    except CLOSED as error:
        hint = "" if way.tls else ": if it speaks TLS, start klamm with --upstream-tls"
        raise Unanswered(f"{address} closes the connection when it is asked{hint}") from error
    except (DecodeError, EncodeError, UnknownApi) as error:
        raise Unanswered(f"{address} gives an answer that cannot be read ({error}): is it Kafka?") from error


async def _greet(address: Address, way: Way) -> None:
    conversation = await converse(address, way)
    try:
        await _offered(conversation)
    except CLOSED:
        pass  # so do Kafka 0.8 and 0.9: it is there
    finally:
        conversation.close()


async def _discover(address: Address, way: Way) -> Found:
    conversation = await converse(address, way)
    try:
        offered = await _offered(conversation)
    except CLOSED:
        conversation.close()
        return await _of_old_broker(address, way)
    except BaseException:
        conversation.close()
        raise
    try:
        if METADATA in offered:
            return await _of_broker(conversation, offered)
        if DESCRIBE_CLUSTER in offered:
            return await _of_controller(conversation, offered)
        raise Unanswered(f"{address} offers neither Metadata nor DescribeCluster: is it Kafka?")
    except CLOSED:
        found = await _of_reticent_broker(address, way, offered)
        return replace(found, is_controller=METADATA not in offered)
    finally:
        conversation.close()


async def _offered(conversation: Conversation) -> dict[int, int]:
    """API key -> the newest version to ask in, for what klamm asks."""
    answer = await conversation.ask(API_VERSIONS, ENOUGH[API_VERSIONS], SOFTWARE) or await conversation.ask(
        API_VERSIONS, 0, {}
    )
    if not answer:
        raise Unanswered(
            f"{conversation.address}: no version of ApiVersions is known to both sides: is it Kafka?"
        )
    offered = {}
    for row in answer["api_keys"] or ():
        newest = min(row["max_version"], ENOUGH.get(row["api_key"], -1))
        if newest >= max(0, row["min_version"]):
            offered[row["api_key"]] = newest
    return offered


async def _of_broker(conversation: Conversation, offered: dict[int, int]) -> Found:
    answer = await conversation.ask(METADATA, offered[METADATA], {"topics": []})
    found = Found(cluster_id=answer.get("cluster_id"))
    for row in answer["brokers"]:
        found.nodes[NodeKey("broker", row["node_id"])] = Address(row["host"], row["port"])
    if offered.get(DESCRIBE_QUORUM, 0) >= 2:
        quorum = await conversation.ask(DESCRIBE_QUORUM, offered[DESCRIBE_QUORUM], QUORUM)
        for node in quorum["nodes"] or ():
            for listener in node["listeners"][:1]:
                found.nodes[NodeKey("controller", node["node_id"])] = Address(
                    listener["host"], listener["port"]
                )
    return found


async def _of_controller(conversation: Conversation, offered: dict[int, int]) -> Found:
    asked = {"endpoint_type": CONTROLLERS} if offered[DESCRIBE_CLUSTER] >= 1 else {}
    answer = await conversation.ask(DESCRIBE_CLUSTER, offered[DESCRIBE_CLUSTER], asked)
    found = Found(cluster_id=answer["cluster_id"], is_controller=True)
    for row in answer["brokers"]:
        found.nodes[NodeKey("controller", row["broker_id"])] = Address(row["host"], row["port"])
    return found


async def _of_old_broker(address: Address, way: Way) -> Found:
    """Kafka 0.8 and 0.9 close on ApiVersions; Metadata v0 with no topics names all of them."""
    conversation = await converse(address, way)
    try:
        answer = await conversation.ask(METADATA, 0, {"topics": []})
    finally:
        conversation.close()
    return Found(
        {NodeKey("broker", row["node_id"]): Address(row["host"], row["port"]) for row in answer["brokers"]}
    )


async def _of_reticent_broker(address: Address, way: Way, offered: dict[int, int]) -> Found:
    """It closes rather than name its cluster. One that wants SASL first takes SaslHandshake; one that was
    stopped in these moments does not.
    """
    if SASL_HANDSHAKE not in offered:
        return Found(asks_sasl=True)
    conversation = await converse(address, way)
    try:
        answer = await conversation.ask(SASL_HANDSHAKE, offered[SASL_HANDSHAKE], {"mechanism": ""})
    except CLOSED:
        return Found(asks_sasl=True)
    finally:
        conversation.close()
    if answer["error_code"] == ILLEGAL_SASL_STATE:
        raise Unanswered(f"{address} closes the connection when it is asked for Metadata")
    return Found(asks_sasl=True, mechanisms=tuple(answer["mechanisms"]))


def about_sasl(mechanisms: Sequence[str]) -> str:
    passes = "it passes through, and klamm learns the brokers from what clients are told"
    bound = [name for name in mechanisms if name in HOST_BOUND] if mechanisms else HOST_BOUND
    fails = f"; mechanisms bound to the broker's host ({', '.join(bound)}) fail behind another name"
    return f"the cluster wants SASL: {passes}{fails if bound else ''}"


def why_not_bound(error: OSError) -> str:
    """Without asyncio's own words around it."""
    number = 0 if isinstance(error, socket.gaierror) else error.errno or 0
    return os.strerror(number).lower() if number > 0 else error.strerror or str(error)
