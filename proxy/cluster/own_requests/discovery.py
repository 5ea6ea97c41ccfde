"""klamm's own requests for the nodes of a cluster, made before the first client is let in."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from klamm.decoders import DecodeError, EncodeError, UnknownApi
from klamm.decoders.text import valid_text
from klamm.proxy.cluster.conversation import (
    API_VERSIONS,
    CLOSED,
    Conversation,
    Silent,
    Unanswered,
    Way,
    converse,
)
from klamm.proxy.cluster.own_requests.contact import (
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    ENOUGH,
    METADATA,
    OFFERS_NOTHING,
    Contact,
    contact,
)
from klamm.proxy.cluster.own_sasl.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE, OwnSession, authenticate
from klamm.proxy.config_types import Address
from klamm.proxy.edge.sockets import why_tls_ended
from klamm.proxy.session.rewriting.topology import NodeKey, is_address

# Brokers name the controllers only in the answer to a request for this partition.
QUORUM = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
CONTROLLERS = 2
ILLEGAL_SASL_STATE = 34  # the answer of a broker without SASL to SaslHandshake
HOST_BOUND = ("GSSAPI", "AWS_MSK_IAM")
NOT_OURS = os.strerror(errno.EADDRNOTAVAIL).lower()

T = TypeVar("T")


@dataclass(slots=True)
class Found:
    """`asks_sasl`: the node names its cluster only after SASL; klamm then learns the nodes from responses to
    clients. `mechanisms`: of SASL, if the node named them. `is_controller`: the node serves no producers or
    consumers, and names no brokers. `api_versions`: the newest version of ApiVersions that it answers; None:
    none, as Kafka 0.8 and 0.9. `silent_to`: the questions that it did not answer, as in Contact.
    """

    nodes: dict[NodeKey, Address] = field(default_factory=dict)
    cluster_id: str | None = None
    asks_sasl: bool = False
    mechanisms: tuple[str, ...] = ()
    is_controller: bool = False
    api_versions: int | None = ENOUGH[API_VERSIONS]
    silent_to: tuple[str, ...] = ()


async def discover(address: Address, way: Way, name: str | None = None) -> Found:
    """Ask the node at `address`, which advertises the host `name`, about its cluster. Raises Unanswered (an
    OSError).
    """
    if way.credentials is not None:
        await way.credentials(False)  # the node is not to blame if that takes long
    newest = way._replace(api_versions=ENOUGH[API_VERSIONS])  # it may know by now what it did not know before
    return await in_time(address, newest, partial(_discover, name=name))


async def greet(address: Address, way: Way) -> None:
    """Ask a node for its API versions, which need no SASL. Raises Unanswered (an OSError)."""
    await in_time(address, way, _greet)


async def in_time(address: Address, way: Way, ask: Callable[[Address, Way], Awaitable[T]]) -> T:
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
    with suppress(*CLOSED):  # as Kafka 0.9 may do: the node is up
        (await contact(address, way)).conversation.close()


async def _discover(address: Address, way: Way, name: str | None = None) -> Found:
    met = await contact(address, way, name)
    try:
        found = await _of_node(met, address, way)
    finally:
        met.conversation.close()
    return replace(found, api_versions=met.api_versions, silent_to=met.silent_to)


async def _of_node(met: Contact, address: Address, way: Way) -> Found:
    if met.api_versions is None:
        return Found(_brokers(met.metadata))
    conversation, offered = met.conversation, met.offered
    try:
        await log_in(conversation, way, offered)
        if METADATA in offered:
            return await _of_broker(conversation, offered)
        if DESCRIBE_CLUSTER in offered:
            return await _of_controller(conversation, offered)
    except CLOSED:
        if way.credentials is not None:
            raise
        found = await _of_reticent_broker(address, way, offered)
        return replace(found, is_controller=METADATA not in offered)
    raise Unanswered(f"{address} {OFFERS_NOTHING}")


async def log_in(conversation: Conversation, way: Way, offered: dict[int, int]) -> OwnSession | None:
    """Authenticate klamm if it has credentials. Gives the session, if it ends. Raises Unanswered,
    and what `ask` raises.
    """
    if way.credentials is None:
        return None
    if SASL_AUTHENTICATE not in offered:
        where = conversation.address
        raise Unanswered(f"{where} knows no SaslAuthenticate: klamm's own SASL needs Kafka 1.0 or newer")
    return await authenticate(conversation, await way.credentials(False), offered[SASL_AUTHENTICATE])


async def _of_broker(conversation: Conversation, offered: dict[int, int]) -> Found:
    answer = await conversation.ask(METADATA, offered[METADATA], {"topics": []})
    found = Found(_brokers(answer), _cluster_id(answer))
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
    found = Found(cluster_id=_cluster_id(answer), is_controller=True)
    for row in answer["brokers"]:
        found.nodes[NodeKey("controller", row["broker_id"])] = Address(row["host"], row["port"])
    return found


def _cluster_id(answer: dict[str, Any]) -> str | None:
    told = answer.get("cluster_id")
    return None if told is None else valid_text(told)


def _brokers(metadata: dict[str, Any]) -> dict[NodeKey, Address]:
    return {
        NodeKey("broker", row["node_id"]): Address(row["host"], row["port"])
        for row in metadata["brokers"]
        if is_address(row["host"], row["port"])
    }


async def _of_reticent_broker(address: Address, way: Way, offered: dict[int, int]) -> Found:
    """Find out why the node closed the connection on Metadata. If it wants SASL first, it answers
    SaslHandshake; if it has just stopped, nobody answers.
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


def about_sasl(mechanisms: Sequence[str], same_names: bool) -> str:
    """`same_names`: clients know the brokers by their own."""
    passes = "it passes through, and klamm learns the brokers from what clients are told"
    bound = [name for name in mechanisms if name in HOST_BOUND] if mechanisms else HOST_BOUND
    fails = f"; mechanisms bound to the broker's host ({', '.join(bound)}) fail behind another name"
    return f"the cluster wants SASL: {passes}{fails if bound and not same_names else ''}"


def what_to_listen_on(reason: str) -> str:
    """The mistake in --listen, of a `why_not_bound`."""
    return "an address of this machine" if reason.endswith(NOT_OURS) else "other ports"


def why_not_bound(error: OSError) -> str:
    """The system's text for the error, without asyncio's around it."""
    number = 0 if isinstance(error, socket.gaierror) else error.errno or 0
    return os.strerror(number).lower() if number > 0 else error.strerror or str(error)
