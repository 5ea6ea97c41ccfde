"""Asks the nodes that may know a cluster, one after the other, until one answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from klamm.proxy.cluster.conversation import Unanswered
from klamm.proxy.cluster.own_requests.dialling import Dialler
from klamm.proxy.cluster.own_requests.discovery import Found, discover, greet
from klamm.proxy.config import Address
from klamm.proxy.log.event_log import EventLog

SILENT_S = 2.0  # without an answer for so long, klamm logs what it waits for


class Asking:
    """`answered` is the node that answered last; `asked` is the one that was asked last."""

    def __init__(self, cluster: str, dialler: Dialler, log: EventLog) -> None:
        self.cluster, self.dialler, self.log = cluster, dialler, log
        self.answered: Address | None = None
        self.asked: Address | None = None

    async def ask(self, address: Address) -> Found:
        """Raises Unanswered."""
        return await discover(self.dialler.reachable(address), self.dialler.way, address.host)

    async def greet(self, address: Address) -> None:
        """Does it answer at all? Raises Unanswered."""
        await greet(self.dialler.reachable(address), self.dialler.way)

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

    def patience(self) -> asyncio.TimerHandle:
        """A timer that logs which node klamm waits for, unless it is cancelled before: the timeout of a node
        that accepts connections and does not answer is many seconds.
        """
        return asyncio.get_running_loop().call_later(SILENT_S, self._say_waiting)

    def _say_waiting(self) -> None:
        message = f"{self.asked} has not answered for {SILENT_S:g} s; klamm waits for it"
        self.log.event("waiting", message, "warning", cluster=self.cluster)

    def say_controller(self) -> None:
        """Warn that the bootstrap server is a controller, which is of no use to most clients."""
        message = (
            f"{self.answered} is a controller, which serves no producers or consumers and names no brokers: "
            "give klamm a broker's address, as in its advertised.listeners"
        )
        self.log.event("controller", message, "warning", cluster=self.cluster)
