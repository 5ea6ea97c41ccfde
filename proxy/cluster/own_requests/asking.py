"""Asks the nodes that may know a cluster, one after the other, until one answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from klamm.proxy.cluster.conversation import Unanswered
from klamm.proxy.cluster.own_requests.contact import QUESTIONS
from klamm.proxy.cluster.own_requests.dialling import Dialler
from klamm.proxy.cluster.own_requests.discovery import Found, about_sasl, discover, greet
from klamm.proxy.cluster.own_requests.readiness import Readiness
from klamm.proxy.config_types import Address
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.session.rewriting.topology import Node

RETRY_FIRST_S, RETRY_LAST_S = 0.5, 15.0  # while no bootstrap server answers
SILENT_S = 2.0  # without an answer for so long, klamm logs what it waits for


class Asking:
    """`answered` is the node that answered last; `asked` is the one that was asked last."""

    def __init__(self, cluster: str, dialler: Dialler, log: EventLog) -> None:
        self.cluster, self.dialler, self.log = cluster, dialler, log
        self.answered: Address | None = None
        self.asked: Address | None = None
        self.silent_to: dict[Address, tuple[str, ...]] = {}  # as it was logged

    async def ask(self, address: Address) -> Found:
        """Raises OSError. From now on the nodes are asked with the ApiVersions that this one answers."""
        found = await discover(self.dialler.elsewhere(address), self.dialler.way, address.host)
        if found.api_versions is not None:
            self.dialler.ask_with(found.api_versions)
        if found.silent_to != self.silent_to.get(address, ()):
            self._say_silent(address, found)
        return found

    def _say_silent(self, address: Address, found: Found) -> None:
        self.silent_to[address] = found.silent_to
        answers = QUESTIONS[found.api_versions]
        silent = " and ".join(found.silent_to)
        message = (
            f"{address} does not answer {silent}, but {answers}: clients that ask so wait until their timeout"
            if silent
            else f"{address} answers {answers} now"
        )
        self.log.event("silent", message, "warning" if silent else "info", cluster=self.cluster, per=address)

    async def greet(self, address: Address) -> None:
        """Does it answer at all? Raises OSError."""
        await greet(self.dialler.elsewhere(address), self.dialler.way)

    async def ask_any(self, addresses: Iterable[Address]) -> Found:
        """The answer of the first broker that answers, else of a controller. Raises Unanswered."""
        failures: list[str] = []
        controller: tuple[Address, Found] | None = None
        for self.asked in addresses:
            try:
                found = await self.ask(self.asked)
            except OSError as error:
                failures.append(str(error))
                continue
            if not found.is_controller:
                self.answered = self.asked
                return found
            controller = controller or (self.asked, found)
        if controller is None:
            raise Unanswered("no bootstrap server answers: " + "; ".join(failures))
        address, found = controller
        self.answered = self.answered or address  # keep a broker: clients need one, and it may come back
        return found

    async def until_answered(
        self, candidates: Callable[[], Iterable[Address]], readiness: Readiness
    ) -> Found:
        """Ask them again and again. The log has each new reason why none answers."""
        wait_s = RETRY_FIRST_S
        patience = self._patience()
        while True:
            try:
                return await self.ask_any(candidates())
            except OSError as error:
                readiness.not_found(str(error))
            finally:
                patience.cancel()
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, RETRY_LAST_S)

    def _patience(self) -> asyncio.TimerHandle:
        """A timer that logs which node klamm waits for, unless it is cancelled before: the timeout of a node
        that accepts connections and does not answer is many seconds.
        """
        return asyncio.get_running_loop().call_later(SILENT_S, self._say_waiting)

    def _say_waiting(self) -> None:
        message = f"{self.asked} has not answered for {SILENT_S:g} s; klamm waits for it"
        self.log.event("waiting", message, "warning", cluster=self.cluster)

    def say_not_found(self, listening: Address, before: Sequence[Node]) -> None:
        """Warn that clients come before the cluster is found. `before`: nodes of the run before."""
        named = ", ".join(str(node.key) for node in before)
        known = f"of its nodes klamm knows those of the run before ({named})" if named else "no node is known"
        message = (
            f"the cluster has not answered klamm yet. Clients may come to {listening}, and are led to its "
            f"bootstrap servers; {known}"
        )
        self.log.event("not_found", message, "warning", cluster=self.cluster)

    def say_kind(self, found: Found, same_names: bool) -> None:
        """Warn of a controller, which serves few clients, and of brokers that want SASL. `same_names`:
        clients know the brokers by their own.
        """
        if found.is_controller:
            message = (
                f"{self.answered} is a controller, which serves no producers or consumers and names no "
                "brokers: give klamm a broker's address, as in its advertised.listeners"
            )
            self.log.event("controller", message, "warning", cluster=self.cluster)
        if found.asks_sasl:
            about = about_sasl(found.mechanisms, same_names)
            self.log.event("sasl", about, "warning", cluster=self.cluster)
