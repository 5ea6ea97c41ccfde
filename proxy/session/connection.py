"""The state that both directions of one proxied connection share, and that all connections to one cluster
share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from klamm.decoders import API
from klamm.decoders.error_codes import error_name
from klamm.decoders.framing import SIZE
from klamm.decoders.headers import FIRST_TELLS, RequestHeader, shown_client_id
from klamm.decoders.sasl_tokens import Tokens
from klamm.decoders.schema import Field, Side
from klamm.decoders.text import uuid_text
from klamm.proxy.session.effects import Close, Cut, Effect, Event, Exchange, Piece, Silence, Turn, sends
from klamm.proxy.session.memory import ApiMemory
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.session.observing.summaries import (
    RequestSummary,
    ResponseSummary,
    logged_fields,
    response_summary,
    topics_named,
)
from klamm.proxy.session.paused import Paused
from klamm.proxy.session.pending import PendingQueue, PendingRequests
from klamm.proxy.session.rewriting.topology import Kind, Topology, Unbindable, is_address
from klamm.proxy.session.turns import Crowd
from klamm.proxy.session.undecodable import Undecodable
from klamm.rules.engine import Engine
from klamm.rules.frame import Frame, Treatment
from klamm.rules.plan import (
    API_VERSIONS,
    BROKERS,
    METADATA,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Picked,
    Plan,
    Planner,
)
from klamm.rules.subjects import error_codes

MIB = 1024 * 1024
MOST_OFFERS = 1000  # brokers
MECHANISM = re.compile("[A-Z0-9_-]{1,20}")  # RFC 4422; other bytes may be a secret in the wrong place
WITHOUT_SASL = "the broker's listener takes no SASL: set the client's security.protocol to PLAINTEXT or SSL"
REFUSALS = {
    SASL_HANDSHAKE: "the broker does not take the client's sasl.mechanism {}: sasl.enabled.mechanisms of its "
    "listener has those that it takes",
    SASL_AUTHENTICATE: "the broker refuses the client's credentials, mechanism {}: look at its user and "
    "password, or token",
}
NAMING = 20  # steps of work for a topic or an error of a frame


@dataclass(slots=True)
class HeldBytes:
    """The bytes of frames that all connections of the process keep until the frames are whole, and those that
    wait in lines: `now`, of at most `most` for rules. Frames in which klamm must replace addresses are kept
    in any case.
    """

    most: int = 96 * MIB
    now: int = 0


@dataclass(slots=True)
class ClusterContext:
    """The state that all connections to one cluster share. Limits in bytes. `revision` goes up when the
    rules, the listeners or the names of topic ids change: memories made before are then out of date.
    """

    cluster: str
    planner: Planner
    topology: Topology
    stats: Stats
    allow_unknown_apis: bool = False
    frame_limit: int = 1024 * MIB  # a frame that announces more closes the connection
    held_limit: int = 64 * MIB  # of a frame that klamm holds to change it
    held: HeldBytes = field(default_factory=HeldBytes)
    unruled: Literal["pass", "close"] = "pass"  # what to do with a frame that cannot be held for rules
    crowd: Crowd = field(default_factory=Crowd)  # one per process
    engine: Engine | None = None  # None: there are no rules
    revision: int = 0
    offers: dict[str, tuple[int, bytes]] = field(default_factory=dict)  # of brokers: see `offered`
    asks_sasl: bool = False  # a broker answered klamm only after SASL, which is left to the clients

    def __post_init__(self) -> None:
        if self.engine is not None:
            self.engine.on_change.append(self.changed)

    def changed(self) -> None:
        self.revision += 1

    def offered(self, broker: str, version: int, body: bytes) -> None:
        """Keep the newest response of this broker to an ApiVersions request of this version."""
        if len(self.offers) >= MOST_OFFERS:
            self.offers.clear()
        self.offers[broker] = version, body


@dataclass(slots=True, eq=False)
class Connection:
    """`broker` is a label; `advertise` is the host that this client gets in the address of every node
    that has no name of its own.
    """

    context: ClusterContext
    broker: str
    advertise: str
    pending: PendingQueue = field(default_factory=PendingQueue)
    turn: int = 0  # how many of the oldest pending requests have been answered
    acks_0: ApiMemory | None = None  # of the last Produce request to which no answer is due
    tokens: Tokens | None = None
    begins_sasl: bool = False  # has the client sent SaslHandshake?
    mechanism: str = ""  # of the last SaslHandshake
    shaking_hands: bool = False  # SaslHandshake 0 has no answer yet: behind it come tokens, or requests
    effects: list[Effect] = field(default_factory=list)
    software: str | None = None  # of the client, as it counts; None: not known yet
    closing: bool = False
    clean: bool = True  # the broker's last read ended at the end of a frame
    muted_until: int = 0  # ns: no request is read before; 0: the connection is not muted
    crowded: bool = False  # too many requests wait for answers: the client is not read
    held: int = 0  # bytes of frames that are kept until they are whole
    undecided: list[Paused] = field(default_factory=list)  # answers that are paused
    work: int = 0  # of metering and of rules on the last frame, in steps of up to 0.1 us
    client_over: bool = False  # rules have cut this side: nothing more goes to it
    broker_over: bool = False  # the same, or no request can be read any more
    client_id: str | None = None  # of the last request header that has one
    instance_id: str | None = None  # as Kafka prints a UUID
    treatment: Treatment | None = None  # by rules, of the answer that is read now

    def ends(self, pieces: Sequence[Piece | Effect]) -> bool:
        """Do these pieces end the connection? If so, note which side: nothing behind them is read."""
        match pieces[-1] if pieces else None:
            case Silence():
                self.client_over = self.broker_over = True
            case Cut("client"):
                self.client_over = True
            case Cut():
                self.broker_over = True
            case _:
                return False
        return True

    def identified(self, header: RequestHeader, version: int) -> str | None:
        """The client id of a request. From header v3 on, only a connection's first request has it."""
        if header.client_id is not None:
            self.client_id = shown_client_id(header, self.client_id)
        client_id = self.client_id if header.client_id is not None or version >= FIRST_TELLS else None
        if version >= FIRST_TELLS and header.instance_id is not None:
            self.instance_id = uuid_text(header.instance_id)
            self.context.stats.client_instance(self.context.cluster, client_id, self.instance_id)
        return client_id

    def problem(self, kind: str, api: str, message: object, more: dict[str, Any] | None = None) -> None:
        """Count a problem and log it, with `more` fields; the traffic goes on."""
        self.context.stats.problems[self.context.cluster, self.broker, api, kind] += 1
        self.effects.append(Event(kind, api, message, more))

    def close(
        self, side: Side, kind: str, api: str, message: str, more: dict[str, Any] | None = None
    ) -> None:
        """Count a problem of a frame, log it, and close both sides once all earlier bytes are sent. Requests
        before one that is not passed on still get their answers, as from Kafka.
        """
        self.context.stats.problems[self.context.cluster, self.broker, api, kind] += 1
        answered = side == "request"
        if answered:
            self.broker_over = True
        else:
            self.closing = True
        self.effects.append(Close(kind, api, message, more, answered))

    def refuse(self, plan: Plan, reason: str) -> None:
        """Close the connection: this response may carry addresses that klamm cannot rewrite, and clients must
        not be led past klamm.
        """
        message = f"a {plan.name} v{plan.version} response cannot be passed on: {reason}"
        self.close("response", "unrewritable", plan.name, message)

    def own_answer(
        self, memory: ApiMemory, run: PendingRequests, values: dict[str, Any], length: int, frame: Frame
    ) -> None:
        """Count an answer of klamm's own, and give it to the log and to listeners."""
        memory.counters.own_answers += 1
        codes = error_codes(*_answer(memory.plan), values)
        memory.counters.own_errors.update(codes)
        if memory.plan.logged or run.summary.listeners:
            summary = ResponseSummary([(None, code) for code in codes])
            self.exchange(memory, run, run.first, summary, length, 0, "klamm", frame)

    def edited(self, memory: ApiMemory, before: dict[str, Any], after: dict[str, Any]) -> list[int]:
        """The error codes of an answer that rules have changed. Counts the codes that they added."""
        codes = error_codes(*_answer(memory.plan), after)
        memory.counters.own_errors.update(
            Counter(codes) - Counter(error_codes(*_answer(memory.plan), before))
        )
        return codes

    def holds(self, size: int) -> None:
        """Count `size` more bytes that are kept until a frame is whole; negative: fewer."""
        self.held += size
        self.context.held.now += size

    def may_hold(self, size: int) -> bool:
        """May this connection keep `size` bytes in all for rules? As many as would be left for the others: so
        `n` connections that keep all they can leave an equal share, 1/(n + 1) of all, for the next one.
        """
        held = self.context.held
        return 2 * size + held.now - self.held <= held.most

    def sent(self, plan: Plan, now: int) -> None:
        """A request goes to the broker. Behind SaslHandshake 0 come tokens without a header if the broker
        takes the mechanism, else requests: no byte behind it is read before the answer.
        """
        if plan.key != SASL_HANDSHAKE:
            return
        self.begins_sasl = True
        if plan.version == 0:
            self.shaking_hands, self.muted_until = True, self.muted_until or now or 1
            self.effects.append(Turn("request"))

    def decides(self, plan: Plan) -> bool:
        """Does the answer to such a request end a handshake?"""
        return self.shaking_hands and plan.key == SASL_HANDSHAKE and plan.version == 0

    def end_handshake(self, taken: bool) -> None:
        """SaslHandshake 0 is answered, or never will be."""
        self.shaking_hands = False
        if taken:
            self.tokens = Tokens(self.mechanism)
        self.effects.append(Turn("request"))

    def awaits_token(self) -> bool:
        """Is a SASL token of the broker due before klamm's own answers?"""
        return self.tokens is not None and self.tokens.awaited > 0

    def in_turn(self, run: PendingRequests) -> list[Effect]:
        """The effects that send an answer of klamm's own; none where it has to wait for its turn."""
        if self.pending.oldest is not None or not self.clean or self.awaits_token():
            self.pending.append(run)
            return []
        if self.client_over:
            return []
        self.ends(run.made)
        return sends("client", list(run.made))

    def unruled(self, plan: Plan, side: Side, size: int, elements: int = 0) -> None:
        """Pass on a frame that cannot be held for rules, or that has more than so many elements, or close the
        connection, as the settings say.
        """
        frame, (kind, why) = f"a {plan.name} {side} of {size} bytes", self.unheld(size)
        if elements:
            kind = "too_large_for_rules"
            why = f"has more than {elements:,} elements, which is more than rules may read"
        if self.context.unruled == "close":
            self.close(side, kind, plan.name, f"{frame} {why}")
        else:
            self.problem(kind, plan.name, f"{frame} {why}; passed on as it is")

    def unheld(self, size: int) -> tuple[str, str]:
        """The kind of problem that a frame is which klamm does not hold for a rule or a filter; and why."""
        held, most = self.context.held.now, self.context.held_limit
        if size > most:
            return "too_large_for_rules", f"is more than limits.held_frame_bytes ({most})"
        return "too_much_for_rules", f"is more than its share of limits.held_bytes ({held} bytes are held)"

    def unjudged(self, plan: Plan, side: Side, why: str) -> bool:
        """Close the connection for a frame that a rule cannot read, or act on, if the settings say so."""
        if self.context.unruled != "close":
            return False
        self.close(side, "unreadable_for_rules", plan.name, f"a {plan.name} {side}: {why}")
        return True

    def undecodable(self, plan: Plan, side: Side, body: bytes | str) -> None:
        """Count and log a body that is not as its layout says: the body, or the reason where it is not at
        hand.
        """
        self.problem("undecodable", plan.name, Undecodable(plan, side, body))

    def summary_of_request(self, plan: Plan, columns: tuple[Any, ...]) -> RequestSummary:
        """The summary of a request, from the columns that were picked."""
        context, picked = self.context, plan.request
        assert picked is not None
        names, named = topics_named(picked, columns, context.topology.topic_names.get)
        self.work += NAMING * len(names)
        counters = tuple(context.stats.of_topic(context.cluster, name, plan.name) for name in names)
        summary = RequestSummary(counters, plan.key != PRODUCE or picked.column(columns, ("acks",)) != 0)
        summary.shown = logged_fields(plan, picked, columns, context.topology.topic_names.get)
        summary.named = named
        if plan.key == API_VERSIONS and self.software is None:
            software = [
                picked.column(columns, (f"client_software_{what}",)) or "" for what in ("name", "version")
            ]
            self.software = context.stats.client_software(context.cluster, *software)
        return summary

    def summary_of_response(self, memory: ApiMemory, columns: tuple[Any, ...]) -> ResponseSummary:
        """The summary of a response, from the picked columns. Metadata has the names of topic ids."""
        topology, plan = self.context.topology, memory.plan
        if plan.key == METADATA and plan.response is not None:
            names, ids = (plan.response.column(columns, ("topics", what)) for what in ("name", "topic_id"))
            for name, topic_id in zip(names or (), ids or (), strict=False):
                if name is not None and topology.learn_topic(topic_id, name):
                    self.context.changed()
            self._learn_brokers(plan.response, columns)
        summary = response_summary(plan, columns, topology.topic_names.get)
        self.work += NAMING * len(summary.errors)
        if summary.errors and plan.key in REFUSALS:
            self._tell_refusal(memory, error_name(summary.errors[0][1]))
        return summary

    def _tell_refusal(self, memory: ApiMemory, error: str) -> None:
        """A broker refuses the mechanism or the credentials of the client."""
        mechanism = self.mechanism if MECHANISM.fullmatch(self.mechanism) else "unknown"
        text = WITHOUT_SASL if error == "ILLEGAL_SASL_STATE" else REFUSALS[memory.plan.key]
        what = f"{text.format(mechanism)} ({error})"
        self.problem("sasl_refused", memory.plan.name, what, {"client_id": memory.client_id})

    def _learn_brokers(self, picked: Picked, columns: tuple[Any, ...]) -> None:
        """Of a response that goes on unchanged: they are picked of no other."""
        found = (picked.column(columns, path) or () for path in BROKERS)
        for node_id, host, port in zip(*found, strict=False):
            if is_address(host, port):
                self.context.topology.learn("broker", node_id, host, port)

    def count_errors(self, memory: ApiMemory, summary: ResponseSummary, times: int) -> None:
        context = self.context
        for topic, code in summary.errors:
            memory.counters.errors[code] += times
            if topic is not None:
                context.stats.of_topic(context.cluster, topic, memory.plan.name).errors[code] += times

    def standing(self, kind: Kind, node_id: int, host: str, port: int) -> tuple[str, int] | None:
        """klamm's address for a node; None until its port is bound. Raises Unbindable."""
        topology = self.context.topology
        node = topology.learn(kind, node_id, host, port)
        if node.failure is not None:
            raise Unbindable(node.failure)
        return topology.address(node, self.advertise)

    def exchange(
        self,
        memory: ApiMemory,
        run: PendingRequests,
        correlation_id: int,
        summary: ResponseSummary,
        length: int | None,
        elapsed_ns: int | None,
        origin: str = "broker",
        answer: Frame | None = None,
        more: dict[str, Any] | None = None,
    ) -> None:
        """Give an exchange to the log and its listeners, with `more` fields. `length`: of the response,
        without its size field; None if there is none. `origin`: "broker", or "klamm", which then changed it,
        or made it at once (`elapsed_ns` is 0). `answer`: the response, for listeners that take bodies.
        """
        fields = {
            "api": API.any(memory.plan.key).name,
            "version": memory.plan.version,
            "client_id": memory.client_id,
            "correlation_id": correlation_id,
            **(run.summary.shown or summary.shown or {}),
            "errors": summary.errors,
            "request_bytes": run.length + 4,
            "response_bytes": None if length is None else length + 4,
            "latency_ns": elapsed_ns,
            "origin": origin,
        }
        if origin == "klamm" and elapsed_ns:
            fields["changed"] = True
        if self.instance_id is not None:
            fields["client_instance_id"] = self.instance_id
        if self.treatment is not None or run.summary.treatment is not None:
            fields["treatments"] = run.summary.treatment, self.treatment
            self.treatment = None
        if run.frame is not None:
            fields["frames"] = run.frame, answer
        if more is not None:
            fields |= more
        self.effects.append(Exchange(fields, run.summary.listeners))


def _answer(plan: Plan) -> tuple[tuple[Field, ...], int]:
    return API[plan.key].response, plan.version


def resized(data: bytes, pos: int, body: int, new: list[bytes], late: int = 0) -> list[bytes]:
    """A frame with a new body, `late` bytes of which are still to come."""
    size = body - pos - 4 + sum(map(len, new)) + late
    return [SIZE.pack(size), data[pos + 4 : body], *new]
