"""Another configuration for a proxy that runs: only what is different is touched.

First all that may fail is made: TLS from its files, listeners, the log's file, the folder of a capture. Then
nothing fails any more, and all of it is used.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Protocol

from klamm.proxy.cluster.client_ports.shared import Shared
from klamm.proxy.cluster.client_sasl import UnusableFiles
from klamm.proxy.cluster.cluster import Proxied
from klamm.proxy.cluster.clusters import Clusters
from klamm.proxy.cluster.reloading import Prepared, limit, prepare, release, take
from klamm.proxy.config import Cluster, Config, Limits, Log
from klamm.proxy.config_types import ALL_APIS, Address
from klamm.proxy.control.capturing import Begin, Captures, Capturing
from klamm.proxy.control.capturing import replace as replace_capture
from klamm.proxy.control.changes import at_start, changed, in_place
from klamm.proxy.control.config_file import Applied, Unusable
from klamm.proxy.control.listeners import Exchanges
from klamm.proxy.control.process.drain import Drain
from klamm.proxy.edge.accepting.inherited import INHERITED
from klamm.proxy.edge.accepting.listener import bound
from klamm.proxy.edge.open_files import connections_possible
from klamm.proxy.log.event_log import EventLog, Turned, turned
from klamm.proxy.metrics.expiry import Expiry
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.workers.captures import WorkersCaptures

REMOVED, REPLACED = "its cluster was removed", "its cluster has other listeners"


@dataclass(slots=True)
class Ready:
    """All that the next configuration needs, made before anything is changed."""

    kept: list[Prepared] = field(default_factory=list)
    new: list[Proxied] = field(default_factory=list)
    gone: list[tuple[Proxied, str]] = field(default_factory=list)
    log: Turned | None = None
    capture: Begin | None = None


class Proxy(Protocol):
    """The parts of a proxy that a configuration decides."""

    config: Config
    limits: Limits
    log: EventLog
    stats: Stats
    shared: Shared
    drain: Drain
    expiry: Expiry
    exchanges: Exchanges
    running: Clusters

    @property
    def listens(self) -> bool:
        """Does it listen itself? A worker does not."""

    async def tell_workers(self, config: Config) -> None: ...

    def cluster(self, settings: Cluster) -> Proxied:
        """A cluster that is not followed yet. Raises OSError whose text names it."""

    def captures(self) -> Captures | WorkersCaptures: ...
    def capturing(self) -> Capturing | None: ...


class Reloading:
    """Gives a proxy its next configuration."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy

    async def apply(self, after: Config) -> Applied:
        """Use it from now on. Raises Unusable, and changes nothing then."""
        proxy = self.proxy
        if proxy.drain.under_way:
            raise Unusable("klamm drains")
        before = proxy.config
        paths = changed(before, after)
        waiting = at_start(paths)
        after = replace(
            after,
            admin=before.admin,
            audit=before.audit,
            rules=before.rules,
            state=before.state,
            traces=before.traces,
            workers=before.workers,
            metrics=replace(after.metrics, listen=before.metrics.listen),
        )
        with ExitStack() as undo:
            try:
                ready = await self._prepared(before, after, undo)
            except OSError as error:
                raise Unusable(str(error)) from error
            undo.pop_all()
        await proxy.tell_workers(after)
        await self._take(ready, before, after)
        proxy.config = after
        return Applied(paths, waiting)

    async def _prepared(self, before: Config, after: Config, undo: ExitStack) -> Ready:
        """Raises OSError whose text names the part of the configuration."""
        ready, proxy = Ready(), self.proxy
        wanted = {each.name: each for each in after.clusters}
        for each in proxy.running.now:
            settings = wanted.pop(each.settings.name, None)
            if settings is None:
                ready.gone.append((each, REMOVED))
            elif settings != each.settings and in_place(each.settings, settings):
                try:
                    ready.kept.append(prepare(each, settings))
                except OSError as error:
                    raise OSError(tls_problem(settings, error)) from error
            elif settings != each.settings:
                ready.gone.append((each, REPLACED))
                wanted[settings.name] = settings
        freed = {port for each, _ in ready.gone for port in each.ports.held()}
        for settings in wanted.values():
            made = proxy.cluster(settings)
            undo.callback(release, made)
            ready.new.append(made)
            where = Address(settings.listen.host, settings.listen.first)
            shared = settings.names is not None and proxy.shared.ports.is_open(where)
            if proxy.listens and not shared:
                await _try_port(settings, freed)
        if after.capture is not None and after.capture != before.capture:
            ready.capture = proxy.captures().made(after.capture)
        if _output(after.log) != _output(before.log):
            ready.log = turned(after.log)  # the last step: it leaves a file open
        return ready

    async def _take(self, ready: Ready, before: Config, after: Config) -> None:
        proxy, clusters = self.proxy, self.proxy.running
        for each in ready.kept:
            take(each)
        for old, why in ready.gone:
            clusters.retire(old, why, after.limits.drain_s)
        capturing = proxy.capturing()
        for new in ready.new:
            new.capture(capturing)
            clusters.add(new)
        self._limit(after.limits)
        if ready.log is not None:
            proxy.log.turn(ready.log)
        self._observe(after)
        if after.capture != before.capture:
            await replace_capture(proxy.captures(), ready.capture)

    def _limit(self, limits: Limits) -> None:
        proxy, shared = self.proxy, self.proxy.shared
        proxy.limits = possible(limits)
        shared.held.most = limits.held_bytes
        shared.room.most, shared.room.each = proxy.limits.connections, limits.connections_per_address
        shared.room.each_principal = limits.connections_per_principal
        shared.pace.limit(limits.connects_per_second)
        proxy.drain.within_s = limits.drain_s
        for each in proxy.running.now:
            limit(each, limits)

    def _observe(self, after: Config) -> None:
        proxy, metrics = self.proxy, after.metrics
        proxy.stats.max_clients, proxy.stats.max_topics = metrics.clients, metrics.topics
        proxy.expiry.expire_s = metrics.expire_s
        proxy.exchanges.observe(metrics.level, logged_apis(after.log))


def possible(limits: Limits) -> Limits:
    """With as many connections as the system's limit of open files allows."""
    most = connections_possible()
    return replace(limits, connections=min(limits.connections or most, most))


def logged_apis(log: Log) -> frozenset[str] | None:
    """The APIs whose exchanges are logged; None: all."""
    return None if ALL_APIS in log.apis else frozenset(map(str, log.apis))


def _output(log: Log) -> tuple[object, ...]:
    return log.file, log.format


async def _try_port(settings: Cluster, freed: set[int]) -> None:
    """Raises OSError if the bootstrap port is taken, and not by a cluster that gives it up."""
    listen = settings.listen
    if not listen.first or listen.first in freed or INHERITED.has(listen.first):
        return
    try:
        for sock in await bound(listen.host, listen.first, 1):
            sock.close()
    except OSError as error:
        where = Address(listen.host, listen.first)
        raise OSError(f"cluster {settings.name}: cannot listen on {where}: {error.strerror}") from error


def tls_problem(settings: Cluster, error: OSError) -> str:
    files = "files of listen_sasl" if isinstance(error, UnusableFiles) else "TLS files"
    return f"cluster {settings.name}: the {files} cannot be used: {error}"
