"""The traces of a process, from its start to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from klamm.proxy.config import Cluster, Config, Traces
from klamm.proxy.control.exchange import Seen
from klamm.proxy.control.listeners import Exchanges
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.session.rewriting.topology import Topology, broker_label
from klamm.proxy.traces.parents import with_records
from klamm.proxy.traces.sampling import Chosen, Sampling
from klamm.proxy.traces.sending import Sending
from klamm.rules.expressions import parse
from klamm.settings.extras import installing


class Proxied(Protocol):
    """A cluster that is served."""

    settings: Cluster
    topology: Topology


class Owner(Protocol):
    """The proxy."""

    config: Config
    log: EventLog
    stats: Stats
    exchanges: Exchanges

    @property
    def proxied(self) -> Sequence[Proxied]: ...


def exporter_for(settings: Traces) -> Any:
    """An exporter of OpenTelemetry, which connects to nothing yet. Raises OSError."""
    try:
        from klamm.proxy.traces.sdk import exporter_of  # 20 MB, only if it is wanted
    except ModuleNotFoundError as missing:
        raise OSError(f"traces need OpenTelemetry ({missing.name}): {installing('otel')}") from missing
    return exporter_of(settings)


class Tracing:
    """Takes exchanges of its owner while it runs, if the settings want traces."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.sending: Sending | None = None
        self.failing = False

    def begin(self, alone: bool = True) -> None:
        """Take exchanges from now on; not if others serve them (`alone` False), which is only checked then.
        Raises OSError.
        """
        settings, owner = self.owner.config.traces, self.owner
        if settings is None:
            return
        exporter, loop = exporter_for(settings), asyncio.get_running_loop()
        if not alone:
            exporter.shutdown()
            return

        def say(why: str, count: int) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._say, why, count)

        from klamm.proxy.traces.sdk import maker

        self.sending = Sending(maker(), exporter, self._broker, owner.stats.traced, say)
        self._listen(settings, self.sending, loop)
        self.sending.start()

    def _listen(self, settings: Traces, sending: Sending, loop: asyncio.AbstractEventLoop) -> None:
        exchanges = self.owner.exchanges
        chosen: str | None = settings.filter
        if settings.parents:
            names = with_records()
            of_records = " or ".join(f"api == {name}" for name in names)
            exchanges.open(Chosen(sending), parse(_both(chosen, of_records)), settings.sample)
            chosen = _both(chosen, " and ".join(f"api != {name}" for name in names))
        sampling = Sampling(settings.sample, sending, loop.call_soon)
        exchanges.open(sampling, None if chosen is None else parse(chosen))

    def _broker(self, one: Seen) -> tuple[str, int] | None:
        """The address of the broker of an exchange, as its cluster advertises it."""
        cluster, label = one.fields["cluster"], one.fields["broker"]
        for each in self.owner.proxied:
            if each.settings.name == cluster:
                if label == broker_label(None):
                    known = each.settings.bootstrap
                    return known[0] if len(known) == 1 else None
                for node in each.topology.nodes.values():
                    if broker_label(node.key) == label:
                        return node.host, node.port
        return None

    def _say(self, why: str, count: int) -> None:
        log = self.owner.log
        if why:
            log.event("traces_failed", f"traces cannot be exported: {why}", "warning", exchanges=count)
        elif self.failing:
            log.event("traces_resumed", "traces are exported again")
        self.failing = bool(why)

    async def end(self) -> None:
        """Export the last ones."""
        if self.sending is not None:
            await asyncio.to_thread(self.sending.end)


def _both(one: str | None, other: str) -> str:
    return f"({other})" if one is None else f"({one}) and ({other})"
