"""Asks within seconds whether a cluster answers, of a node that need not know who klamm is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import islice

from klamm.proxy.cluster.conversation import API_VERSIONS, CLOSED, Conversation, Unanswered, Way, converse
from klamm.proxy.cluster.own_requests.broker_watch import BrokerWatch
from klamm.proxy.cluster.own_requests.contact import offered_by
from klamm.proxy.cluster.own_requests.dialling import Dialler
from klamm.proxy.cluster.own_requests.discovery import in_time
from klamm.proxy.cluster.own_requests.readiness import Readiness
from klamm.proxy.cluster.patience import within
from klamm.proxy.config_types import Address

PROBE_S = 2.0  # between two probes
REFUSES_S = 0.5  # so long a server has to refuse what it does not know, before it is asked what it knows
OTHERS_S = 1.0  # the node that answered last has so long, before others are asked too
ANSWER_S = 2.5  # a cluster none of whose nodes has answered by then does not answer
MOST = 32  # others; those that could not be reached lately come last
LOOKED_AT = 1000  # nodes of which these are chosen
UNKNOWN = 32767  # no broker knows this version of ApiVersions

Asked = dict[asyncio.Task[Conversation], Address]


class Probe:
    """Asks for API versions, which brokers tell before SASL, on a connection that stays open: brokers log no
    connections, and authenticate none. Others than its node are asked when that one does not answer.
    `at`: the node that answered last, as it is advertised. `candidates` are the nodes that may be asked.
    `asks_sasl`: do brokers want SASL, for which klamm has no credentials?
    """

    def __init__(
        self,
        dialler: Dialler,
        watch: BrokerWatch,
        candidates: Callable[[], Iterable[Address]],
        asks_sasl: Callable[[], bool],
    ) -> None:
        self.dialler, self.watch, self.candidates, self.asks_sasl = dialler, watch, candidates, asks_sasl
        self.at: Address | None = None
        self.way: Way = dialler.way
        self.kept: Conversation | None = None

    async def follow(
        self,
        readiness: Readiness,
        answered: Callable[[Address], Awaitable[None]],
        defect: Callable[[BaseException], None],
    ) -> None:
        """Ask again and again, until cancelled. `answered` gets the node that has answered."""
        try:
            while True:
                await asyncio.sleep(PROBE_S)
                if not readiness.probed:
                    continue
                try:
                    await answered(await self.ask())
                except OSError as error:
                    readiness.unanswered(str(error))
                except Exception as error:
                    defect(error)
        finally:
            self.close()

    async def ask(self) -> Address:
        """The node that answered. Raises Unanswered, whose text names each that did not."""
        asked: Asked = {}
        try:
            await within(ANSWER_S, self._ask_in_turn(asked), lambda late: None)
        except TimeoutError:
            pass  # some have not answered: their tasks are not done
        finally:
            failures = self._end(asked)
        if self.at is None:
            raise Unanswered("no broker answers: " + "; ".join(failures))
        return self.at

    def close(self) -> None:
        """Close the connection that is open."""
        if self.kept is not None:
            self.kept.close()
        self.kept = None

    def _end(self, asked: Asked) -> list[str]:
        """Keep the connection of a node that has answered, and close the others. Gives why they did not."""
        failures: list[str] = []
        defects: list[BaseException] = []
        kept, self.kept, self.at = self.kept, None, None
        for task, address in asked.items():
            if not task.done():
                task.cancel()
                where = self.dialler.reachable(address)
                failures.append(f"{where} does not answer within {ANSWER_S:g} s")
            elif isinstance(error := task.exception(), OSError):
                failures.append(str(error))
            elif error is not None:
                defects.append(error)
            elif self.kept is None:
                self.kept, self.at = task.result(), address
            else:
                task.result().close()
        if kept is not None and kept is not self.kept:
            kept.close()
        if defects:
            raise defects[0]
        return failures

    async def _ask_in_turn(self, asked: Asked) -> None:
        """Gives when one has answered, or all have failed."""
        first, *others = self._nodes()
        self._begin(asked, first)
        await asyncio.wait(asked, timeout=OTHERS_S)
        if not _answered(asked):
            for each in others:
                self._begin(asked, each)
        waiting: set[asyncio.Task[Conversation]] = set(asked)
        while waiting and not _answered(asked):
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)

    def _begin(self, asked: Asked, address: Address) -> None:
        asked[asyncio.get_running_loop().create_task(self._ask(address))] = address

    def _nodes(self) -> list[Address]:
        """The nodes to ask, the one that answered last first."""
        found = list(islice(self.candidates(), LOOKED_AT))
        if self.at not in found or self.way is not self.dialler.way:
            self.close()
        self.way = self.dialler.way
        lost = self.watch.attempts
        found.sort(key=lambda each: (each != self.at, lost.get(each) is False))
        return found[: 1 + MOST]

    async def _ask(self, address: Address) -> Conversation:
        """Raises Unanswered."""
        where, way = self.dialler.reachable(address), self.way
        wants_sasl = way.credentials is not None or self.asks_sasl()
        if self.kept is not None and address == self.at:
            kept = self.kept
            again = _refused_by if wants_sasl else partial(offered_by, newest=way.api_versions)
            try:
                async with asyncio.timeout(OTHERS_S):
                    await in_time(where, way, lambda *_: again(kept))
                return kept
            except OSError:  # a TimeoutError too: the broker may have begun anew, or ended an idle connection
                kept.close()
        return await in_time(where, way, partial(_connect, wants_sasl=wants_sasl))


async def _connect(address: Address, way: Way, wants_sasl: bool) -> Conversation:
    if wants_sasl:
        with suppress(*CLOSED, TimeoutError):  # not every server refuses what it does not know
            async with asyncio.timeout(REFUSES_S):
                return await _asked(address, way, _refused_by)
    return await _asked(address, way, partial(offered_by, newest=way.api_versions))


async def _asked(
    address: Address, way: Way, ask: Callable[[Conversation], Awaitable[object]]
) -> Conversation:
    conversation = await converse(address, way)
    try:
        await ask(conversation)
    except BaseException:
        conversation.close()
        raise
    return conversation


def _answered(asked: Asked) -> bool:
    return any(task.done() and not task.cancelled() and task.exception() is None for task in asked)


async def _refused_by(conversation: Conversation) -> object:
    """Before SASL a broker answers one request of a version that it knows. At the next one, of whatever
    version, it logs an error and closes the connection. Until then it refuses unknown versions, as often as
    they come.
    """
    return await conversation.exchange(API_VERSIONS, UNKNOWN, b"")
