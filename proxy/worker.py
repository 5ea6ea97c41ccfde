"""A worker: a process that serves connections, which its lead hands over to it.

`python -m klamm.proxy.worker SOCKET TABLE`: numbers of open files, the socket to the lead, and the table of
counts that all workers share.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import pickle
import signal
import socket
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import uvloop

from klamm.proxy import config, own_memory
from klamm.proxy.cluster.client_ports.ports import Port
from klamm.proxy.cluster.client_sasl import follow_all
from klamm.proxy.cluster.cluster import Proxied
from klamm.proxy.cluster.leader import Cluster
from klamm.proxy.config import Config
from klamm.proxy.control.conditions import made_for_all
from klamm.proxy.control.rule_book import Refused
from klamm.proxy.edge.accepting.entrants import Entrants
from klamm.proxy.log.audit import Audit, open_audit
from klamm.proxy.log.event_log import EventLog, open_log
from klamm.proxy.metrics.summing import taken
from klamm.proxy.metrics.usage import usage
from klamm.proxy.reload import Reloading
from klamm.proxy.serve import GC_THRESHOLD, SWITCH_S, Proxy
from klamm.proxy.workers.channel import Call, Channel
from klamm.proxy.workers.messages import Accepted, Boot, Groups, Learned, Lines, Nodes, Part, receive_first
from klamm.proxy.workers.shared_counts import RuleCounts, Table, log_lock
from klamm.proxy.workers.topologies import Learning, take_learned, take_nodes
from klamm.rules.actions import ACTIONS
from klamm.rules.actions.throttle import Rate
from klamm.rules.file import plugins
from klamm.rules.peers import Peers

if TYPE_CHECKING:
    from klamm.proxy.admin.routes import Control
    from klamm.proxy.control.exchange import Bodies

LOOK_S = 0.1  # between two checks for nodes and names that are new
SETTLE_S = 0.5  # between two checks for rules that failed, and lines of the log that wait
MOST_ENTERING = 1024  # connections on their way in
THE_LEADS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Worker:
    """Carries out what the lead tells. `proxy`: all of klamm but its listeners and HTTP servers."""

    def __init__(
        self, boot: Boot, log: EventLog, audit: Audit | None, sock: socket.socket, table: Table
    ) -> None:
        self.proxy = Proxy(boot.config, log, audit, leader=self)
        self.log, self.table = log, table
        engine = self.proxy.rules.engine
        engine.seed, engine.wall_offset_ns = boot.seed, boot.wall_offset_ns
        engine.peer = Peers(f"{boot.slot + 1}.").peer
        self.new_groups: Groups = []
        engine.groups.told = lambda client, group: self.new_groups.append((client, group))
        self.ended = asyncio.Event()
        calls: dict[str, Call] = {
            "accept": self._accept,
            "capture": self._capture,
            "drain": self._drain,
            "end_capture": self._end_capture,
            "groups": self._groups,
            "learned": self._learned,
            "live": self._live,
            "live_end": self._live_end,
            "nodes": self._nodes,
            "part": self._part,
            "refuse": self._refuse,
            "reload": self._reload,
            "route": self._route,
            "rules": self._rules,
            "stop": self._stop,
        }
        self.channel = Channel(sock, calls, self._stop, (Refused,))
        self.learning = {each: Learning(each.topology) for each in self.proxy.proxied}
        self.open: set[int] = set()  # numbers of connections that have come in
        self.live: dict[int, asyncio.Task[None]] = {}
        self.control: Control | None = None
        self.entrants = Entrants(MOST_ENTERING)

    def _cluster(self, name: str) -> Proxied:
        return next(each for each in self.proxy.proxied if each.settings.name == name)

    # The calls of the lead.

    def _accept(self, accepted: Accepted, file: int) -> None:
        """Let a connection in. The lead accepts more when it is told so."""
        self.channel.tell("taken")
        sock = socket.socket(fileno=file)
        sock.setblocking(False)
        self.entrants.let(accepted.peer[0], sock, self._enter(accepted, sock))

    async def _enter(self, accepted: Accepted, sock: socket.socket) -> None:
        cluster = self._cluster(accepted.cluster)
        try:
            await cluster.ports.way_in(Port(accepted.target)).enter(sock, accepted.peer, accepted.number)
        finally:
            if accepted.number not in self.open:
                self.channel.tell("closed", accepted.number)

    def _refuse(self, cluster: str, number: int, why: str) -> None:
        self._cluster(cluster).no_room(number, why)

    def _nodes(self, cluster: str, nodes: Nodes) -> None:
        each = self._cluster(cluster)
        each.ports.opened_by_leader(nodes.bootstrap_port, nodes.let_in)
        take_nodes(each.topology, nodes)

    def _learned(self, cluster: str, learned: Learned) -> None:
        each = self._cluster(cluster)
        if take_learned(each.topology, learned):
            each.context.changed()

    def _groups(self, groups: Groups) -> None:
        for client, group in groups:
            self.proxy.rules.engine.groups.add(client, group)

    def _rules(self, files: Sequence[str], pickled: bytes) -> None:
        """Use these rules from now on. Ends the worker if they cannot be used: they may protect something."""
        try:
            for file in files:
                _, mistakes = plugins.load(file, ACTIONS)
                if mistakes:
                    raise ValueError("; ".join(map(str, mistakes)))
            self.proxy.rules.book.take(pickle.loads(pickled))
            self._share()
        except Exception as wrong:
            self.log.event("worker_failed", f"the rules cannot be used: {wrong}", "error")
            self._stop()

    def _share(self) -> None:
        """Rules whose counts decide are counted together with the other workers."""
        counted_rules = self.proxy.rules.engine.counted_rules
        whens = [each.rule.when for each in counted_rules]
        decisive = {name for when in whens for name in (when.once_hit, when.until_hit)}
        for each in counted_rules:
            counts = RuleCounts(self.table, each.rule.name, each.started_ns)
            if each.counts or each.rule.name in decisive:
                each.shared = counts
            for action in each.rule.do:
                if isinstance(action, Rate):
                    action.quotas.shared = counts

    async def _reload(self, config: Config) -> None:
        before = list(self.proxy.proxied)
        await Reloading(self.proxy).apply(config)
        for each in self.proxy.proxied:
            if each not in before:
                each.keep(follow_all(each))
        self.learning = {each: Learning(each.topology) for each in self.proxy.proxied}

    async def _part(self) -> Part:
        proxy, state = self.proxy, self.proxy.state
        used = await asyncio.to_thread(usage, state.started_at)
        return Part(
            taken(proxy.stats),
            dict(state.in_flight()),
            {
                (each.rule.name, each.started_ns): (
                    each.matches,
                    each.hits,
                    each.failures,
                    each.first_match_ns,
                )
                for each in proxy.rules.engine.counted_rules
                if each.matches or each.failures
            },
            state.frames_paused(),
            state.log_dropped(),
            state.audit_dropped(),
            state.capture_state(),
            used,
        )

    async def _route(self, method: str, path: str, *ask: Any) -> Any:
        """A request to the admin API that concerns this worker. Raises Refused."""
        from klamm.proxy.admin.routes import Ask
        from klamm.proxy.admin.server import ROUTES  # 12 MB, only if it is wanted

        self.control = self.control or self.proxy.control()
        route = next(each for each in ROUTES if (each.method, each.path) == (method, path))
        name, body, query, who = ask
        found = route.call(self.control, Ask(cast(Any, None), name, body, query, who))
        return await found if asyncio.iscoroutine(found) else found

    def _live(self, number: int, where: str | None, bodies: Bodies, rule: str | None) -> None:
        task = asyncio.get_running_loop().create_task(self._send_live(number, where, bodies, rule))
        task.add_done_callback(_raise_failure)
        self.live[number] = task

    def _live_end(self, number: int) -> None:
        task = self.live.pop(number, None)
        if task is not None:
            task.cancel()

    async def _send_live(self, number: int, where: str | None, bodies: Bodies, rule: str | None) -> None:
        from klamm.proxy.admin.api.live import GATHER_S, Own

        made = None if where is None else await asyncio.to_thread(made_for_all, where)
        source = Own(self.proxy.exchanges, made, bodies, rule)
        try:
            while True:
                lines = await source.lines()
                if lines != Lines() and not await self.channel.ask("lines", number, lines):
                    return
                await asyncio.sleep(GATHER_S)
        finally:
            source.close()

    def _capture(self, settings: config.Capture) -> None:
        """Begin a capture; the lead has tried its folder."""
        captures = self.proxy.captures()
        try:
            captures.made(settings)()
        except OSError as error:
            self.log.event("capture_failed", f"nothing can be captured: {error}", "error")

    async def _end_capture(self) -> None:
        await self.proxy.captures().end()

    async def _drain(self, reason: str, within_s: float) -> int:
        return sum(
            await asyncio.gather(*(each.leaving.drain(reason, within_s) for each in self.proxy.proxied))
        )

    def _stop(self) -> None:
        self.ended.set()

    # The lead, as the clusters of this process see it.

    def opened(self, cluster: str, number: int, host: str, principal: str | None) -> None:
        self.open.add(number)
        self.channel.tell("opened", cluster, number, host, principal)

    def closed(self, number: int) -> None:
        self.open.discard(number)
        self.channel.tell("closed", number)

    async def bind(self, cluster: Cluster) -> None:
        """Have the lead open ports for the nodes that have none."""
        nodes = [(node.key, node.host, node.port) for node in cluster.topology.unbound()]
        await self.channel.ask("bind", cluster.settings.name, Learned(nodes, []))

    async def run(self) -> None:
        """Serve until the lead says stop, or has gone."""
        loop = asyncio.get_running_loop()
        for number in THE_LEADS:
            signal.signal(number, signal.SIG_IGN)
        loop.set_exception_handler(self.proxy.defect)
        tasks = [
            loop.create_task(each) for each in (self._look(), self._settle(), self.proxy.expiry.follow())
        ]
        for each in self.proxy.proxied:
            each.keep(follow_all(each))
        sys.setswitchinterval(SWITCH_S)
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLD)
        self.proxy.tracing.begin()
        self.channel.tell("ready")
        try:
            await self.ended.wait()
        finally:
            tasks += self.live.values()
            tasks += self.entrants
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for each in self.proxy.proxied:
                await each.stop()
            await self.proxy.end_captures()
            await self.proxy.tracing.end()
            self.channel.close()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            for each, learning in self.learning.items():
                new = learning.new()
                if new is not None:
                    self.channel.tell("learned", each.settings.name, new)
            if self.new_groups:
                self.channel.tell("groups", self.new_groups)
                self.new_groups = []

    async def _settle(self) -> None:
        while True:
            await asyncio.sleep(SETTLE_S)
            self.proxy.rules.tell_failures()
            self.log.settle()


def _raise_failure(task: asyncio.Task[None]) -> None:
    """The loop logs it: nobody waits for the task."""
    if not task.cancelled():
        task.result()


async def _run(boot: Boot, log: EventLog, audit: Audit | None, sock: socket.socket, table: Table) -> None:
    await Worker(boot, log, audit, sock, table).run()


def main(arguments: Sequence[str]) -> int:
    """Gives the exit code."""
    own_memory.prepare()
    sock, table = socket.socket(fileno=int(arguments[0])), Table(int(arguments[1]))
    try:
        boot: Boot = receive_first(sock)
    except EOFError:
        return 0
    log = open_log(boot.config.log)
    log.lock = partial(log_lock, table.file)
    try:
        audit = open_audit(boot.config.audit, log)
        with contextlib.closing(audit) if audit is not None else contextlib.nullcontext():
            uvloop.run(_run(boot, log, audit, sock, table))
    finally:
        log.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
