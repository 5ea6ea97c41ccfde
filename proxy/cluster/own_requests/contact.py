"""The first contact with a node: what it offers, and which question it answered."""

from __future__ import annotations

import asyncio
from itertools import takewhile
from typing import Any, NamedTuple

from klamm.decoders import DecodeError
from klamm.proxy.cluster.conversation import (
    API_VERSIONS,
    CLOSED,
    SOFTWARE,
    Conversation,
    Unanswered,
    Way,
    converse,
)
from klamm.proxy.cluster.own_sasl.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE
from klamm.proxy.cluster.patience import wait_for_any
from klamm.proxy.config_types import Address

METADATA, DESCRIBE_QUORUM, DESCRIBE_CLUSTER = 3, 55, 60
ENOUGH = {
    API_VERSIONS: 3,
    METADATA: 12,
    SASL_HANDSHAKE: 1,
    SASL_AUTHENTICATE: 2,
    DESCRIBE_QUORUM: 2,
    DESCRIBE_CLUSTER: 2,
}  # the newest versions that klamm asks for
QUESTIONS = {3: "ApiVersions 3", 0: "ApiVersions 0", None: "Metadata 0"}
OFFERS_NOTHING = "offers neither Metadata nor DescribeCluster: is it Kafka?"
SILENT = 0.5  # of the time for a connection: with no answer by then, klamm asks another question too


class Contact(NamedTuple):
    """A node that has answered. `offered`: API key -> newest version that it and klamm know, of the APIs that
    klamm asks with. `api_versions`: the newest version of ApiVersions that it answers; None: it answers none,
    and `metadata` is its answer to Metadata 0. `silent_to`: the questions that it did not answer.
    """

    conversation: Conversation
    api_versions: int | None
    offered: dict[int, int]
    metadata: dict[str, Any]
    silent_to: tuple[str, ...] = ()


async def contact(address: Address, way: Way, name: str | None = None) -> Contact:
    """Connect, and ask for API versions. A node that does not answer is asked with version 0 and with
    Metadata 0 too, on connections of their own; the first answer counts.

    Raises Unanswered, ConnectionError, IncompleteReadError, DecodeError.
    """
    asked: dict[asyncio.Task[Contact], str] = {}
    answer: asyncio.Task[Contact] | None = None
    try:
        for version, question in QUESTIONS.items():
            if version is not None and version > way.api_versions:
                continue
            asked[asyncio.create_task(_ask(address, way, name, version))] = question
            if await wait_for_any(asked, way.timeout_s * SILENT):
                break
        else:
            await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        answer = next(task for task in asked if task.done())
        silent_to = takewhile(lambda task: task is not answer, asked)
        return answer.result()._replace(silent_to=tuple(asked[task] for task in silent_to))
    finally:
        for task in asked:
            if task is not answer:
                task.cancel()
                task.add_done_callback(_close)


async def _ask(address: Address, way: Way, name: str | None, version: int | None) -> Contact:
    """With this version of ApiVersions; None, or where the node knows no ApiVersions: with Metadata 0."""
    conversation = await converse(address, way, name)
    try:
        if version is None:
            return Contact(conversation, None, {}, await conversation.ask(METADATA, 0, {"topics": []}))
        offered = await offered_by(conversation, version)
        if offered:
            return Contact(conversation, version, offered, {})
    except CLOSED:
        conversation.close()
        if version is None:
            raise
        return await _ask(address, way, name, None)  # Kafka 0.8 and 0.9 close the connection on ApiVersions
    except BaseException:
        conversation.close()
        raise
    conversation.close()
    try:
        return await _ask(address, way, name, None)
    except (*CLOSED, DecodeError):
        raise Unanswered(f"{address} {OFFERS_NOTHING}") from None


def _close(late: asyncio.Task[Contact]) -> None:
    if not late.cancelled() and late.exception() is None:
        late.result().conversation.close()


async def offered_by(conversation: Conversation, newest: int) -> dict[int, int]:
    """API key -> newest version that node and klamm know, of the APIs that klamm asks with. `newest`: the
    version of ApiVersions to ask with; a node that refuses it is asked with version 0, and then with those
    between.
    """
    for version in dict.fromkeys((newest, 0, *range(newest - 1, 0, -1))):
        answer = await conversation.ask(API_VERSIONS, version, SOFTWARE if version >= 3 else {})
        if answer:
            break
    else:
        raise Unanswered(
            f"{conversation.address}: no version of ApiVersions is known to both sides: is it Kafka?"
        )
    offered = {}
    for row in answer["api_keys"] or ():
        best = min(row["max_version"], ENOUGH.get(row["api_key"], -1))
        if best >= max(0, row["min_version"]):
            offered[row["api_key"]] = best
    return offered
