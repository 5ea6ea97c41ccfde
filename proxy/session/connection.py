"""The state that both directions of one proxied connection share, and that all connections to one cluster
share.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from klamm.decoders import API
from klamm.decoders.framing import SIZE
from klamm.decoders.sasl_tokens import Tokens
from klamm.decoders.schema import Field, Side
from klamm.proxy.session.counters import Stats
from klamm.proxy.session.effects import Close, Cut, Effect, Event, Exchange, Piece, Silence, sends
from klamm.proxy.session.memory import ApiMemory
from klamm.proxy.session.pending import PendingRequests
from klamm.proxy.session.summaries import (
    RequestSummary,
    ResponseSummary,
    response_summary,
    shown,
    topics_named,
)
from klamm.proxy.session.topology import Kind, Topology, Unbindable
from klamm.rules.engine import Engine
from klamm.rules.plan import API_VERSIONS, METADATA, PRODUCE, Plan, Planner
from klamm.rules.subjects import error_codes

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ClusterContext:
    """The state that all connections to one cluster share. Limits in bytes."""

    cluster: str
    planner: Planner
    topology: Topology
    stats: Stats
    allow_unknown_apis: bool = False
    frame_limit: int = 1024 * MIB  # an announced size beyond it is absurd
    held_limit: int = 64 * MIB  # of a frame that is changed
    engine: Engine | None = None  # of rules


@dataclass(slots=True, eq=False)
class Connection:
    """`broker` is a label; `advertise` the host that stands for every node, as this client can reach it."""

    context: ClusterContext
    broker: str
    advertise: str
    pending: deque[PendingRequests] = field(default_factory=deque)
    turn: int = 0  # how many of the oldest pending requests have been answered
    tokens: Tokens | None = None
    effects: list[Effect] = field(default_factory=list)
    software_known: bool = False
    closing: bool = False
    clean: bool = True  # the broker's last read ended with a frame
    muted_until: int = 0  # ns: no request is read before; 0: the connection is not muted
    over: set[str] = field(default_factory=set)  # "client", "broker": nothing more goes there, behind a cut

    def ends(self, pieces: Sequence[Piece | Effect]) -> bool:
        """Do these pieces end the connection? Then nothing behind them is looked at."""
        match pieces[-1] if pieces else None:
            case Silence():
                self.over |= {"client", "broker"}
            case Cut(to):
                self.over.add(to)
            case _:
                return False
        return True

    def problem(self, kind: str, api: str, message: str, more: dict[str, Any] | None = None) -> None:
        """Count it and say it, with `more` fields; the traffic goes on."""
        self.context.stats.problems[self.context.cluster, self.broker, api, kind] += 1
        self.effects.append(Event(kind, api, message, more))

    def close(self, kind: str, api: str, message: str, more: dict[str, Any] | None = None) -> None:
        """Count it, say it, and end both sides once what came before has gone out."""
        self.context.stats.problems[self.context.cluster, self.broker, api, kind] += 1
        self.closing = True
        self.effects.append(Close(kind, api, message, more))

    def refuse(self, plan: Plan, reason: str) -> None:
        """A response that may carry addresses cannot be rewritten: better no answer than one that
        leads past klamm.
        """
        message = f"a {plan.name} v{plan.version} response cannot be passed on: {reason}"
        self.close("unrewritable", plan.name, message)

    def own_answer(
        self, memory: ApiMemory, run: PendingRequests, values: dict[str, Any], length: int
    ) -> None:
        """Count and show an answer of klamm's own."""
        memory.counters.own_answers += 1
        codes = error_codes(*_answer(memory.plan), values)
        memory.counters.own_errors.update(codes)
        if memory.plan.logged or run.summary.listeners:
            summary = ResponseSummary([(None, code) for code in codes])
            self.exchange(memory, run, run.ids[0], summary, length, 0, "klamm")

    def edited(self, memory: ApiMemory, before: dict[str, Any], after: dict[str, Any]) -> list[int]:
        """The error codes of an answer that rules have changed; those that they added are counted."""
        codes = error_codes(*_answer(memory.plan), after)
        memory.counters.own_errors.update(
            Counter(codes) - Counter(error_codes(*_answer(memory.plan), before))
        )
        return codes

    def due(self, run: PendingRequests) -> None:
        """Send an answer of klamm's own, at once or when its turn comes."""
        if self.pending or not self.clean:
            self.pending.append(run)
        elif "client" not in self.over:
            self.effects += sends("client", list(run.made))
            self.ends(run.made)

    def too_large(self, plan: Plan, side: Side, size: int) -> None:
        message = f"a {plan.name} {side} of {size} bytes is more than a rule may hold; passed on as it is"
        self.problem("too_large_for_rules", plan.name, message)

    def undecodable(self, plan: Plan, side: Side) -> None:
        message = f"a {plan.name} v{plan.version} {side} does not decode; passed on as it is"
        self.problem("undecodable", plan.name, message)

    def asked(self, plan: Plan, columns: tuple[Any, ...]) -> RequestSummary:
        """The summary of a request, from the columns that were picked."""
        context, picked = self.context, plan.request
        assert picked is not None
        names, named = topics_named(picked, columns, context.topology.topic_names.get)
        counters = tuple(context.stats.of_topic(context.cluster, name, plan.name) for name in names)
        summary = RequestSummary(counters, plan.key != PRODUCE or picked.column(columns, ("acks",)) != 0)
        summary.shown = shown(plan, picked, columns, context.topology.topic_names.get)
        summary.named = named
        if plan.key == API_VERSIONS and not self.software_known:
            self.software_known = True
            software = [
                picked.column(columns, (f"client_software_{what}",)) or "" for what in ("name", "version")
            ]
            context.stats.client_software(context.cluster, *software)
        return summary

    def said(self, memory: ApiMemory, columns: tuple[Any, ...]) -> ResponseSummary:
        """The summary of a response, from the columns picked. Metadata tells the names of topic ids."""
        topology, plan = self.context.topology, memory.plan
        if plan.key == METADATA and plan.response is not None:
            names, ids = (plan.response.column(columns, ("topics", what)) for what in ("name", "topic_id"))
            for name, topic_id in zip(names or (), ids or (), strict=False):
                if name is not None:
                    topology.learn_topic(topic_id, name)
        return response_summary(plan, columns, topology.topic_names.get)

    def count_errors(self, memory: ApiMemory, summary: ResponseSummary, times: int) -> None:
        context = self.context
        for topic, code in summary.errors:
            memory.counters.errors[code] += times
            if topic is not None:
                context.stats.of_topic(context.cluster, topic, memory.plan.name).errors[code] += times

    def standing(self, kind: Kind, node_id: int, host: str, port: int) -> tuple[str, int] | None:
        """The address of klamm that stands for a node; None until its port is bound."""
        node = self.context.topology.learn(kind, node_id, host, port)
        if node.failure is not None:
            raise Unbindable(node.failure)
        return None if node.listen_port is None else (self.advertise, node.listen_port)

    def exchange(
        self,
        memory: ApiMemory,
        run: PendingRequests,
        correlation_id: int,
        summary: ResponseSummary,
        length: int | None,
        elapsed_ns: int | None,
        origin: str = "broker",
    ) -> None:
        """One line for the log, and for who watches; `length` is the response's, without its size field; None
        where none is due. `origin`: who made it.
        """
        said = {
            "api": memory.plan.name,
            "version": memory.plan.version,
            "client_id": memory.counters.client_id,
            "correlation_id": correlation_id,
            **(run.summary.shown or summary.shown or {}),
            "errors": summary.errors,
            "request_bytes": run.length + 4,
            "response_bytes": None if length is None else length + 4,
            "latency_ns": elapsed_ns,
            "origin": origin,
        }
        self.effects.append(Exchange(said, run.summary.listeners))


def _answer(plan: Plan) -> tuple[tuple[Field, ...], int]:
    return API[plan.key].response, plan.version


def resized(data: bytes, pos: int, body: int, new: list[bytes], late: int = 0) -> list[bytes]:
    """A frame with a new body, `late` bytes of which are still to come."""
    size = body - pos - 4 + sum(map(len, new)) + late
    return [SIZE.pack(size), data[pos + 4 : body], *new]
