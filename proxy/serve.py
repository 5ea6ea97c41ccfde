"""The process: a loop, the clusters, the admin server, and the end."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import ssl
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import uvloop

from klamm.proxy import config
from klamm.proxy.cluster.cluster import Proxied
from klamm.proxy.cluster.saved_nodes import Memory
from klamm.proxy.cluster.state_file import folder_by_default
from klamm.proxy.config import ALL_APIS, AUTO, Address, Cluster, Config, State
from klamm.proxy.control.intercept import Intercept
from klamm.proxy.control.listeners import Exchanges
from klamm.proxy.control.rule_files import RuleReload
from klamm.proxy.edge.open_files import connections_possible
from klamm.proxy.log.event_log import EventLog, open_log
from klamm.proxy.metrics.snapshot import ClusterState, RuleCounts, RuleState
from klamm.proxy.session.counters import Stats
from klamm.rules.file.presence import Known
from klamm.rules.plan import Planner, Wishes

if TYPE_CHECKING:
    from klamm.client.types import Capture
    from klamm.proxy.admin.http_server import HttpServer
    from klamm.proxy.admin.routes import Control
    from klamm.proxy.control.capturing import Captures

LONELY_S = 15.0  # without a client: time to say how clients find klamm
GC_THRESHOLD = (50_000, 20, 100)  # the hot path makes tuples that die young; nothing in it makes cycles
SWITCH_S = (
    0.0005  # a scrape or the log's writer gives the loop its turn back ten times sooner than by default
)

TOGETHER_S = 0.5  # clusters that are there soon after the first are announced with it


class Greeting(NamedTuple):
    """Clusters whose clients may come from now on. `first`: none was announced before, and the rest, which is
    the process's own, has not been said either.
    """

    clusters: list[ClusterState]
    first: bool
    admin: Address | None
    metrics: Address | None
    rules: str
    capture: config.Capture | None


Announce = Callable[[Greeting], None]


class CannotServe(Exception):
    """What is asked for cannot be had; the text says what to change."""


class Proxy:
    """Everything that runs. Implements snapshot.State. Raises CannotServe, and ConfigError for its rules."""

    def __init__(self, config: Config, log: EventLog) -> None:
        self.config, self.log = config, log
        self.stats = Stats(config.metrics.clients, config.metrics.topics)
        self.metering: Literal["full", "header"] = config.metrics.level
        self.started_at = time.time()
        logged = None if ALL_APIS in config.log.apis else frozenset(map(str, config.log.apis))
        planner = Planner(Wishes(config.metrics.level, logged))
        possible = connections_possible()
        limits = replace(config.limits, connections=min(config.limits.connections or possible, possible))
        self.rules = RuleReload(config.rules, log)
        self.exchanges = Exchanges(log, config.metrics.level, logged, planner, self.rules.book)
        self.intercept = Intercept(self.rules.book.acts)
        self.rules.book.loaded = self.intercept.review
        self.rules.book.known = self.known
        self._made: Captures | None = None
        self._admin: HttpServer | None = None
        self._metrics: HttpServer | None = None
        self.proxied: list[Proxied] = []
        for settings in config.clusters:
            try:
                proxied = Proxied(
                    settings,
                    limits,
                    planner,
                    self.rules.engine,
                    self.stats,
                    log,
                    self.intercept,
                    memory_of(config.state, settings, log),
                )
                proxied.exchanged = self.exchanges.told
                self.proxied.append(proxied)
            except (OSError, ssl.SSLError) as error:
                raise CannotServe(tls_error(settings, error)) from error

    def known(self) -> Known:
        """The clusters, and their nodes as far as they are known."""
        return {each.settings.name: frozenset(map(str, each.topology.nodes)) for each in self.proxied}

    def clusters(self) -> Sequence[ClusterState]:
        return [proxied.state() for proxied in self.proxied]

    def in_flight(self) -> Mapping[tuple[str, str], int]:
        total: Counter[tuple[str, str]] = Counter()
        for proxied in self.proxied:
            total.update(proxied.in_flight())
        return total

    def rule_states(self) -> Sequence[RuleState]:
        listening = self.rules.book.listening
        return [RuleState.of(t) for t in self.rules.engine.tallies if t.rule.name not in listening]

    def rule_counts(self) -> RuleCounts:
        return replace(self.rules.book.counts(), file_rejected=self.rules.rejected)

    def frames_paused(self) -> int:
        return len(self.intercept.waiting)

    def log_dropped(self) -> int:
        return self.log.dropped

    def _defect(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What nobody caught; the loop goes on. An OSError is of a dial that was given up, and no defect."""
        if isinstance(context.get("exception"), OSError):
            return
        self.log.event(
            "defect", f"klamm failed: {context.get('exception')!r} ({context['message']})", "error"
        )

    async def run(self, announce: Announce) -> None:
        """Until SIGINT or SIGTERM, or SIGHUP where nohup does not ignore it. Raises CannotServe."""
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        loop.set_exception_handler(self._defect)
        hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
        for number in (signal.SIGINT, signal.SIGTERM, *hangup):
            loop.add_signal_handler(number, self._stopping, number, stop)
        await self._serve_http()
        self._begin_capture()
        followers = [loop.create_task(proxied.follow()) for proxied in self.proxied]
        ruler = loop.create_task(self.rules.follow())
        greeter = loop.create_task(self._greet(announce))
        sys.setswitchinterval(SWITCH_S)
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLD)
        stopping = loop.create_task(stop.wait())
        try:
            await asyncio.wait([stopping, *followers], return_when=asyncio.FIRST_COMPLETED)
            for follower in followers:
                failure = follower.exception() if follower.done() else None
                if isinstance(failure, OSError):
                    raise CannotServe(str(failure)) from failure
                if failure is not None:
                    raise failure
        finally:
            for task in (stopping, greeter, ruler, *followers):
                task.cancel()
            await asyncio.gather(stopping, greeter, ruler, *followers, return_exceptions=True)
            for proxied in self.proxied:
                await proxied.stop()
            if self._made is not None:
                await self._made.end()
            for server in (self._admin, self._metrics):
                if server is not None:
                    await server.close()

    def _stopping(self, number: int, stop: asyncio.Event) -> None:
        links, waiting = self.stats.connections.total(), sum(self.in_flight().values())
        message = (
            f"{signal.Signals(number).name}: klamm stops; connections: {links}, requests under way: {waiting}"
        )
        if not stop.is_set():
            self.log.event("stopping", message, connections=links, requests=waiting)
        stop.set()

    async def _serve_http(self) -> None:
        """What is asked over HTTP, where it is wanted. Raises CannotServe."""
        admin, metrics = self.config.admin.listen, self.config.metrics.listen
        try:
            if admin is not None:
                from klamm.proxy.admin import server as admin_server  # 12 MB that only those pay who want it

                self._admin = await admin_server.start(self, *admin, self._control())
            if metrics is not None:
                from klamm.proxy.admin import health

                self._metrics = await health.start(self, metrics)
        except OSError as error:
            if self._admin is not None:
                await self._admin.close()
            raise CannotServe(error.strerror) from error

    def captures(self) -> Captures:
        """Made when they are wanted first."""
        if self._made is None:
            from klamm.proxy.control.capturing import Captures  # only those pay who want it

            self._made = Captures(self.proxied, self.log)
        return self._made

    def capture_state(self) -> Capture | None:
        running = None if self._made is None else self._made.running
        return None if running is None else running.state()

    def _begin_capture(self) -> None:
        """If it is wanted. Raises CannotServe."""
        settings = self.config.capture
        if settings is not None:
            try:
                self.captures().begin(settings)
            except OSError as error:
                where = error.filename or settings.folder
                raise CannotServe(f"nothing can be captured into {where}: {error.strerror}") from error

    def _control(self) -> Control:
        """What the admin server may do. Raises CannotServe."""
        from klamm.proxy.admin.routes import Control

        admin = self.config.admin
        token = None if admin.token_file is None else token_of(admin.token_file)
        return Control(
            self,
            self.config,
            self.rules.book,
            self.exchanges,
            self.intercept,
            self.captures,
            self.proxied,
            self.log,
            admin.read_only,
            token,
        )

    async def _greet(self, announce: Announce) -> None:
        """Each cluster when it is there; one that does not answer hides no other."""
        loop = asyncio.get_running_loop()
        waiting = {loop.create_task(proxied.announced.wait()): proxied for proxied in self.proxied}
        lonely: list[asyncio.Task[None]] = []
        first = True
        try:
            while waiting:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.wait(waiting, timeout=TOGETHER_S)
                there = [proxied for task, proxied in waiting.items() if task.done()]
                waiting = {task: proxied for task, proxied in waiting.items() if not task.done()}
                announce(self._greeting(there, first))
                lonely += [loop.create_task(self._say_lonely(proxied)) for proxied in there]
                first = False
            await asyncio.gather(*lonely)
        finally:
            for task in (*waiting, *lonely):
                task.cancel()

    def _greeting(self, there: list[Proxied], first: bool) -> Greeting:
        admin = None if self._admin is None else self._admin.address
        metrics = None if self._metrics is None else self._metrics.address
        states = [proxied.state() for proxied in there]
        return Greeting(states, first, admin, metrics, self.rules.said(), self.config.capture)

    async def _say_lonely(self, proxied: Proxied) -> None:
        await asyncio.sleep(LONELY_S)
        if proxied.had_client:
            return
        where = f"no client yet on {proxied.listening()}"
        message = f"{where}: clients find klamm when their bootstrap.servers names it, not the brokers"
        self.log.event("lonely", message, "warning", cluster=proxied.settings.name)


def tls_error(settings: Cluster, error: OSError | ssl.SSLError) -> str:
    return f"cluster {settings.name}: the TLS files cannot be used: {error}"


def token_of(file: str) -> str:
    """What stands in a file. Raises CannotServe."""
    try:
        token = Path(file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotServe(f"the token file {file} cannot be read: {error}") from error
    if not token:
        raise CannotServe(f"the token file {file} is empty")
    return token


def memory_of(state: State, settings: Cluster, log: EventLog) -> Memory | None:
    """What a cluster is remembered by; where klamm's ports are any that are free, nothing of use can be."""
    if state.folder is None or not settings.listen.first:
        return None
    folder = folder_by_default(os.environ) if state.folder == AUTO else Path(state.folder)
    return Memory(folder, settings, log)


def serve(config: Config, announce: Announce) -> None:
    """Run until a signal. Raises CannotServe, and ConfigError for rules with mistakes."""
    try:
        log = open_log(config.log)
    except OSError as error:
        raise CannotServe(f"the log file {config.log.file} cannot be opened: {error.strerror}") from error
    try:
        uvloop.run(Proxy(config, log).run(announce))
    finally:
        log.close()
