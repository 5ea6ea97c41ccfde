"""The process: a loop, the clusters, the admin server, and the end."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from typing import TYPE_CHECKING, Any

import uvloop

from klamm.proxy import own_memory
from klamm.proxy.admin.http_servers import HttpServers
from klamm.proxy.cluster.client_ports.shared import shared_by
from klamm.proxy.cluster.cluster import Proxied
from klamm.proxy.cluster.clusters import Clusters
from klamm.proxy.cluster.leader import Leader
from klamm.proxy.cluster.nodes.saved_nodes import memory_of
from klamm.proxy.config import Cluster, Config
from klamm.proxy.control.audit.auditing import Auditing
from klamm.proxy.control.audit.logins import Logins
from klamm.proxy.control.config_file import Applied, ConfigFile, Source
from klamm.proxy.control.intercept import Intercept
from klamm.proxy.control.listeners import Exchanges
from klamm.proxy.control.process.drain import Drain
from klamm.proxy.control.process.handover import PROBED_S, Handover, NotTaken, Predecessor, take_over
from klamm.proxy.control.process.notify import READY, STOPPING, Notify
from klamm.proxy.control.process.signals import Signals
from klamm.proxy.control.rule_files import RuleReload
from klamm.proxy.edge.accepting.inherited import INHERITED
from klamm.proxy.greeting import Announce, Greeter, Process, status_of
from klamm.proxy.log.audit import Audit, open_audit
from klamm.proxy.log.event_log import EventLog, open_log
from klamm.proxy.metrics.expiry import Expiry
from klamm.proxy.metrics.snapshot import product_version
from klamm.proxy.process_state import ProcessState
from klamm.proxy.reload import Reloading, logged_apis, possible, tls_problem
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.traces.tracing import Tracing
from klamm.proxy.workers.captures import WorkersCaptures
from klamm.proxy.workers.lead import Lead
from klamm.rules.file.presence import Known
from klamm.rules.plan import Planner, Wishes

if TYPE_CHECKING:
    from klamm.client.types import Capture
    from klamm.proxy.admin.routes import Control
    from klamm.proxy.control.capturing import Captures, Capturing

GC_THRESHOLD = (50_000, 20, 100)  # the hot path makes tuples that die young; nothing in it makes cycles
SWITCH_S = 0.0005  # threads of the log and of scrapes yield to the loop ten times sooner than by default


class CannotServe(Exception):
    """klamm cannot run with these settings; the text says what to change."""


class Proxy:
    """The whole process. Raises CannotServe, and ConfigError for its rules. A `leader` listens and follows
    the clusters for it.
    """

    def __init__(
        self,
        config: Config,
        log: EventLog,
        audit: Audit | None = None,
        source: Source | None = None,
        leader: Leader | None = None,
    ) -> None:
        self.config, self.log, self.audit = config, log, audit
        self.leader = leader
        self.lead: Lead | None = None
        self.config_file = ConfigFile(source, self._reload, log)
        self.notify = Notify(os.environ, log)
        self.stats = Stats(config.metrics.clients, config.metrics.topics)
        logged = logged_apis(config.log)
        self.planner = planner = Planner(Wishes(config.metrics.level, logged))
        limits = possible(config.limits)
        self.rules = RuleReload(config.rules, log)
        self.exchanges = Exchanges(log, config.metrics.level, logged, planner, self.rules.book)
        self.intercept = Intercept(self.rules.book.acts)
        self.rules.book.loaded = self._rules_changed
        self.rules.book.known = self.known
        self.auditing = None if audit is None else Auditing(audit, self.rules.book)
        self.logins = Logins(self.rules.book)
        self._made: Captures | None = None
        self.http = HttpServers()
        self.handover = Handover(config.handover, self._ready, self._leave, log)
        self.limits, self.shared = limits, shared_by(limits)
        if config.workers > 1:
            self.lead = Lead(self, config.workers)
        try:
            clusters = [self.cluster(settings) for settings in config.clusters]
            self.running = Clusters(clusters, log, self.listens)
        except OSError as error:
            raise CannotServe(str(error)) from error
        self.proxied = self.running.now
        if self.lead is not None:
            self.running.leaving.append(self.lead)
        self.drain = Drain(self.running.leaving, log, limits.drain_s)
        self.drain.began = self._drain_begins
        self.state = ProcessState(
            stats=self.stats,
            running=self.running,
            rules=self.rules,
            exchanges=self.exchanges,
            intercept=self.intercept,
            drain=self.drain,
            config_file=self.config_file,
            http=self.http,
            log=log,
            audit=audit,
            capture_state=self._capture_state,
            lead=self.lead,
        )
        self.tracing = Tracing(self)
        self.expiry = Expiry(self.stats, config.metrics.expire_s, self._labels_changed)

    async def _reload(self, config: Config) -> Applied:
        self.notify.reloading()
        try:
            return await Reloading(self).apply(config)
        finally:
            self.notify.say(READY, status_of(self.proxied))

    def _rules_changed(self) -> None:
        self.intercept.review()
        if self.lead is not None:
            self.lead.rules_changed()

    def _labels_changed(self) -> None:
        for each in self.proxied:
            each.context.changed()

    def cluster(self, settings: Cluster) -> Proxied:
        """A cluster that is not followed yet. Raises OSError whose text names it."""
        try:
            made = Proxied(
                settings,
                self.limits,
                self.planner,
                self.rules.engine,
                self.stats,
                self.log,
                self.intercept,
                memory_of(self.config.state, settings, self.log),
                self.shared,
            )
        except OSError as error:
            raise OSError(tls_problem(settings, error)) from error
        made.exchanged, made.auditing, made.doors.logins = self.exchanges.show, self.auditing, self.logins
        made.leader = self.leader
        if self.lead is not None:
            made.ports.hand_over = self.lead.hand_over(settings.name, made.problems.refused)
        return made

    @property
    def listens(self) -> bool:
        return self.leader is None

    async def tell_workers(self, config: Config) -> None:
        """Have them use these settings."""
        if self.lead is not None:
            await self.lead.reload(config)

    def known(self) -> Known:
        """The clusters, and their nodes as far as they are known."""
        return {each.settings.name: each.node_states.labels() for each in self.proxied}

    def defect(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an exception that nobody caught. An OSError comes from a dial that was given up: no defect."""
        if isinstance(context.get("exception"), OSError):
            return
        message = f"klamm failed: {context.get('exception')!r} ({context['message']})"
        self.log.event("defect", message, "error")

    async def run(self, announce: Announce, predecessor: Predecessor | None = None) -> int:
        """Run until SIGINT, or SIGHUP unless it is ignored, as under nohup; or drain after SIGTERM and end.
        Gives the number of connections that were cut off with requests under way. Raises CannotServe.

        With a predecessor there is no admin API until its place is taken.
        """
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self.defect)
        signals = Signals(self.drain, self.config_file, self.notify, self.log)
        signals.handle()
        if predecessor is None:
            await self._serve_http()
        self._begin_capture(predecessor is not None)
        following = [
            loop.create_task(each.follow())
            for each in (self.rules, self.config_file, self.expiry, self.notify)
        ]
        sys.setswitchinterval(SWITCH_S)
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLD)
        stopping, draining = loop.create_task(signals.stop.wait()), loop.create_task(self.drain.run())
        tasks = [stopping, draining, *following]
        try:
            self.tracing.begin(alone=self.lead is None)
            if self.lead is not None:
                await self.lead.start()
            failed = self.running.start(alone=predecessor is None)
            tasks.append(serving := loop.create_task(self._serve(announce, predecessor)))
            await asyncio.wait((failed, stopping, draining, serving), return_when=asyncio.FIRST_COMPLETED)
            for each in (failed, serving):
                if each.done():
                    each.result()
            return draining.result() if draining.done() else 0
        except OSError as error:
            raise CannotServe(str(error)) from error
        finally:
            self.handover.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.running.stop()
            if self.lead is not None:
                await self.lead.stop()
            await self.end_captures()
            await self.tracing.end()
            await self.http.close()

    async def _serve(self, announce: Announce, predecessor: Predecessor | None) -> None:
        """Be there for the clients, and for the next klamm. Runs until cancelled. Raises CannotServe."""
        if predecessor is not None:
            try:
                await predecessor.succeed({each.settings.name: each.announced for each in self.proxied})
            except NotTaken as error:
                raise CannotServe(str(error)) from error
            message = f"klamm has taken the place of the one before (pid {predecessor.pid})"
            self.log.event("took_over", message, pid=predecessor.pid)
            await self._serve_http()
            INHERITED.close_handed_over()
        self.handover.listen()
        greeting = asyncio.get_running_loop().create_task(self._greeter(announce).greet())
        try:
            await asyncio.Event().wait()
        finally:  # an output that takes no announcement ends no klamm
            greeting.cancel()
            await asyncio.gather(greeting, return_exceptions=True)

    def _ready(self) -> list[str]:
        return [each.settings.name for each in self.proxied if each.readiness.ready]

    def _leave(self, pid: int) -> None:
        self.http.stop_listening()
        later, why = asyncio.get_running_loop().call_later, f"another klamm (pid {pid}) has taken over"
        later(PROBED_S, self.drain.begin, why)

    def _drain_begins(self) -> None:
        self.handover.close()
        self.notify.say(STOPPING, "drains")

    def _greeter(self, announce: Announce) -> Greeter:
        process = Process(*self.http.urls(), self.rules.summary(), self.config.capture)
        return Greeter(self.proxied, self.log, self.notify, process, announce)

    async def end_captures(self) -> None:
        if self._made is not None:
            await self._made.end()

    async def _serve_http(self) -> None:
        """Raises CannotServe."""
        try:
            await self.http.start(self.config, self.state, self.control, self.log)
        except OSError as error:
            raise CannotServe(error.strerror or f"the admin API: {error}") from error

    def captures(self) -> Captures | WorkersCaptures:
        """The captures, made by the first call."""
        if self.lead is not None:
            return self.lead.captures
        if self._made is None:
            from klamm.proxy.control.capturing import Captures  # imported only if it is wanted

            self._made = Captures(self.proxied, self.log, locks=self.listens)
        return self._made

    def capturing(self) -> Capturing | None:
        """The capture that runs, if there is one."""
        return None if self._made is None else self._made.running

    def _capture_state(self) -> Capture | None:
        running = self.capturing() if self.lead is None else self.lead.captures.running
        return None if running is None else running.state()

    def _begin_capture(self, succeeds: bool) -> None:
        """Begin the capture of the settings, if there is one. Raises CannotServe."""
        settings = self.config.capture
        if settings is not None:
            try:
                self.captures().made(settings, succeeds)()
            except OSError as error:
                where = error.filename or settings.folder
                raise CannotServe(f"nothing can be captured into {where}: {error.strerror}") from error

    def control(self) -> Control:
        """The objects for the admin API. Raises OSError."""
        from klamm.proxy.admin.access import access_of
        from klamm.proxy.admin.routes import Control

        admin = self.config.admin
        return Control(
            self.state,
            lambda: self.config,
            self.rules.book,
            self.exchanges,
            self.intercept,
            self.captures,
            self.proxied,
            self.log,
            self.drain,
            self.config_file,
            access_of(admin),
            admin.read_only,
            self.audit,
            self.lead,
        )


def serve(config: Config, announce: Announce, source: Source | None = None) -> int:
    """Run until a signal, or a wish to drain. `source`: where to read the settings again. Gives the number of
    connections that were cut off with requests under way. Raises CannotServe, and ConfigError for rules with
    mistakes.
    """
    own_memory.prepare()
    try:
        log = open_log(config.log)
    except OSError as error:
        raise CannotServe(str(error)) from error
    try:
        predecessor = None if config.handover is None else take_over(config.handover)
    except NotTaken as error:
        raise CannotServe(str(error)) from error
    for unfit in INHERITED.find(os.environ):
        log.event("unused_sockets", unfit, "warning", per=unfit)
    try:
        audit = open_audit(config.audit, log)
    except OSError as error:
        assert config.audit is not None
        why = f"the audit file {config.audit.file} cannot be opened: {error.strerror}"
        raise CannotServe(why) from error
    try:
        if audit is None:
            return uvloop.run(Proxy(config, log, None, source).run(announce, predecessor))
        with audit.run(product_version(), [cluster.name for cluster in config.clusters]):
            return uvloop.run(Proxy(config, log, audit, source).run(announce, predecessor))
    finally:
        log.close()
