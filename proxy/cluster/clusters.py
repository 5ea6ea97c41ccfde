"""The clusters that are followed now: more may come, and some go, while klamm runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from klamm.proxy.cluster.cluster import Proxied
from klamm.proxy.cluster.reloading import release
from klamm.proxy.control.process.drain import Drained
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.metrics.snapshot import Certificate


class Clusters:
    """`now`: those whose clients may come. `leaving`: the ways to end their connections. Without `follows`
    another process finds their nodes.
    """

    def __init__(self, now: Sequence[Proxied], log: EventLog, follows: bool = True) -> None:
        self.now, self.log, self.follows = list(now), log, follows
        self.leaving: list[Drained] = [each.leaving for each in now]
        self.followers: dict[Proxied, asyncio.Task[None]] = {}
        self.retiring: set[asyncio.Task[None]] = set()
        self.failed: asyncio.Future[None] | None = None

    def certificates(self) -> Iterator[Certificate]:
        """Those of klamm's own that clients and brokers see."""
        for each in self.now:
            name, tls, upstream = each.settings.name, each.tls, each.upstream_tls
            yield from Certificate.of(name, "clients", None if tls is None else tls.validity)
            yield from Certificate.of(name, "brokers", None if upstream is None else upstream.validity)

    def start(self, alone: bool = True) -> asyncio.Future[None]:
        """Follow them all. The future fails as the first of them does, for a port that is taken, say. Not
        `alone`: another klamm serves their clients until they are found.
        """
        loop = asyncio.get_running_loop()
        self.failed = failed = loop.create_future()
        for each in self.now:
            task = self.followers[each] = loop.create_task(each.follow(alone))
            task.add_done_callback(self._fail)
        return failed

    def _fail(self, task: asyncio.Task[None]) -> None:
        failure = None if task.cancelled() else task.exception()
        if failure is not None and self.failed is not None and not self.failed.done():
            self.failed.set_exception(failure)

    def add(self, new: Proxied) -> None:
        """Follow one more. A port that cannot be opened is logged, and the others go on."""
        self.now.append(new)
        self.leaving.append(new.leaving)
        new.ports.expect()  # at once: to clients of a cluster that it replaces its names stay known
        if self.follows:
            self.followers[new] = asyncio.get_running_loop().create_task(self._follow(new))

    async def _follow(self, new: Proxied) -> None:
        announced = asyncio.create_task(self._announce(new))
        try:
            await new.follow()
        except OSError as error:
            new.readiness.ready, new.readiness.reason = False, str(error)
            self.log.event("unbindable", str(error), "error", cluster=new.settings.name)
        finally:
            announced.cancel()

    async def _announce(self, new: Proxied) -> None:
        await new.announced.wait()
        message = f"clients find the cluster at {new.listening()}"
        self.log.event("cluster_added", message, cluster=new.settings.name)

    def retire(self, old: Proxied, why: str, within_s: float) -> None:
        """Take no new clients for this cluster, and end its connections between two exchanges."""
        self.now.remove(old)
        self.leaving.remove(old.leaving)
        old.memory = None  # a cluster of the same name may have it
        old.ports.close()
        task = asyncio.get_running_loop().create_task(self._end(old, why, within_s))
        self.retiring.add(task)
        task.add_done_callback(self.retiring.discard)

    async def _end(self, old: Proxied, why: str, within_s: float) -> None:
        message = f"{why}: its {old.leaving.open_links()} connections end within {within_s:g} s"
        self.log.event("cluster_gone", message, cluster=old.settings.name)
        follower = self.followers.pop(old, None)
        try:
            await old.leaving.drain(why, within_s)
        finally:
            if follower is not None:
                follower.cancel()
                await asyncio.gather(follower, return_exceptions=True)
            await old.stop()
            release(old)

    async def stop(self) -> None:
        """End them all at once."""
        tasks = [*self.followers.values(), *self.retiring]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.failed is not None:
            self.failed.cancel()
        for each in self.now:
            await each.stop()
