"""Announces clusters as they are found, and logs how clients find klamm where none comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from klamm.proxy import config
from klamm.proxy.cluster.cluster import Proxied
from klamm.proxy.control.process.notify import READY, Notify
from klamm.proxy.edge.accepting.inherited import INHERITED
from klamm.proxy.log.events import Events
from klamm.proxy.metrics.snapshot import ClusterState

LONELY_S = 15.0  # without a client for so long, klamm logs how clients find it
ADVICE = "clients find klamm when their bootstrap.servers names it, not the brokers"
ADVICE_REDIRECTED = "a redirect in klamm's own network namespace leads clients to it (docs/sidecar.md)"
TOGETHER_S = 0.5  # clusters that are found soon after the first are announced with it


class Greeting(NamedTuple):
    """Clusters whose clients may come from now on. `first`: no other was announced before; the other fields,
    which are of the process, are printed only then.
    """

    clusters: list[ClusterState]
    first: bool
    admin: str | None
    metrics: str | None
    rules: str
    capture: config.Capture | None


Announce = Callable[[Greeting], None]


class Process(NamedTuple):
    """The fields of a Greeting that are the same for all clusters."""

    admin: str | None
    metrics: str | None
    rules: str
    capture: config.Capture | None


def status_of(clusters: Sequence[Proxied]) -> str:
    """One line for a supervisor."""
    return "; ".join(f"{each.settings.name} on {each.listening()}" for each in clusters)


class Greeter:
    """Calls `announce` with each cluster when it is found; none waits for another that does not answer."""

    def __init__(
        self, clusters: Sequence[Proxied], log: Events, notify: Notify, process: Process, announce: Announce
    ) -> None:
        self.clusters, self.log, self.notify = clusters, log, notify
        self.process, self.announce = process, announce

    async def greet(self) -> None:
        """Runs until each cluster was announced, and has had time for its first client."""
        loop = asyncio.get_running_loop()
        waiting = {loop.create_task(each.announced.wait()): each for each in self.clusters}
        self.notify.say(f"STATUS=looks for {', '.join(each.settings.name for each in self.clusters)}")
        lonely: list[asyncio.Task[None]] = []
        first = True
        try:
            while waiting:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.wait(waiting, timeout=TOGETHER_S)
                there = [each for task, each in waiting.items() if task.done()]
                waiting = {task: each for task, each in waiting.items() if not task.done()}
                self.announce(Greeting([each.state() for each in there], first, *self.process))
                lonely += [loop.create_task(self._say_lonely(each)) for each in there]
                first = False
            self.notify.say(READY, status_of(self.clusters))
            if left := INHERITED.left():
                message = (
                    f"systemd listens at {', '.join(left)}, which no cluster uses: clients wait there in vain"
                )
                self.log.event("unused_sockets", message, "warning", addresses=left)
            await asyncio.gather(*lonely)
        finally:
            for task in (*waiting, *lonely):
                task.cancel()

    async def _say_lonely(self, cluster: Proxied) -> None:
        await asyncio.sleep(LONELY_S)
        if cluster.had_client or cluster.problems.refused_any:
            return
        advice = ADVICE_REDIRECTED if cluster.redirected is not None else ADVICE
        message = f"no client yet on {cluster.listening()}: {advice}"
        self.log.event("lonely", message, "warning", cluster=cluster.settings.name)
