"""The state that both directions of one proxied connection share, and that all connections to one cluster
share.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from klamm.decoders import API
from klamm.decoders.sasl_tokens import Tokens
from klamm.decoders.schema import Field, Side
from klamm.proxy.notes import EMPTY, QUIET, AnswerNote, Note, answer_note, shown, topics_named
from klamm.proxy.stats import Lane, Stats
from klamm.proxy.topology import Kind, Topology, Unbindable
from klamm.rules.engine import Engine
from klamm.rules.plan import API_VERSIONS, METADATA, PRODUCE, Plan, Planner
from klamm.rules.subjects import error_codes

if TYPE_CHECKING:
    from klamm.proxy.alike import Alike
    from klamm.proxy.ruling import Ruling

Effect = tuple[Any, ...]
Piece = bytes | memoryview  # of what goes on
NO_LENGTH = 2**31  # more than any frame has: the memo holds for none
MIB = 1024 * 1024
COPIED = 4096  # below it, copying costs less than another write
SIZE = Struct(">i")
NOT_KAFKA = {  # the first bytes of other protocols, where a size is due
    **dict.fromkeys(
        (b"GET ", b"HEAD", b"POST", b"PUT "), "HTTP: metrics and health are at --admin or --metrics"
    ),
    **dict.fromkeys((b"PROX", b"\r\n\r\n"), "the PROXY protocol: switch it off in the load balancer"),
}


@dataclass(frozen=True, slots=True)
class Ground:
    """What the connections to one cluster stand on. Limits in bytes."""

    cluster: str
    planner: Planner
    topology: Topology
    stats: Stats
    allow_unknown_apis: bool = False
    frame_limit: int = 1024 * MIB  # an announced size beyond it is absurd
    held_limit: int = 64 * MIB  # of a frame that is changed
    engine: Engine | None = None  # of rules


class Memo(NamedTuple):
    """What a response must look like to be known without being read: a length, and the bytes at three offsets
    from the correlation id on, between which only values of a fixed size, or records, may differ. `note` is
    what such a response says.
    """

    least: int
    most: int
    first: bytes
    second: bytes
    second_at: int
    third: bytes
    third_at: int
    note: AnswerNote


NO_MEMO = Memo(NO_LENGTH, NO_LENGTH, b"", b"", 0, b"", 0, QUIET)


class Flow:
    """One API version on one connection: where it is counted, and what the last frames said.

    `prefix` are the bytes from a request's client id to the last field read of it, and `note` what they mean:
    while they come again nothing is parsed. `least` is the shortest frame that can hold them. `before` is
    what was remembered before that: clients take turns between two topics. `answer` is the same for
    responses.
    """

    __slots__ = (
        "alike", "answer", "answer_columns", "answer_length", "answer_note", "answers_alike", "before",
        "header", "held", "lane", "least", "note", "noted", "plan", "prefix", "replaced", "revision", "rules",
    )  # fmt: skip

    def __init__(self, plan: Plan, lane: Lane) -> None:
        self.plan, self.lane = plan, lane
        self.header = b""  # of requests: client id and tagged fields
        self.prefix, self.least, self.note = b"", NO_LENGTH, EMPTY
        self.noted = NO_LENGTH  # `least`, where rules look at each frame
        self.alike: Alike | None = None
        self.before: tuple[bytes, int, Note, Alike | None] | None = None
        self.answer = NO_MEMO
        self.answers_alike: Alike | None = None
        self.answer_note = QUIET
        self.answer_columns: list[Any] | None = None
        self.answer_length = 0  # of the last response that was read
        self.held: bytes | None = None  # the last response that was held, from its correlation id on,
        self.replaced: list[bytes] = []  # what was sent for it,
        self.revision = -1  # and the topology's revision then
        self.rules: tuple[Any, Any] = (
            None,
            None,
        )  # for its requests, for its responses; None: there are none

    def forget(self) -> None:
        """Read the next request anew."""
        self.least, self.before = NO_LENGTH, None

    def turn(self, data: bytes, pos: int, length: int) -> bool:
        """Is the request at `pos` like the one before the last? Then that is what is remembered now."""
        before = self.before
        if before is None or length < before[1] or not data.startswith(before[0], pos + 12):
            return False
        self.before = self.prefix, self.least, self.note, self.alike
        self.prefix, self.least, self.note, self.alike = before
        return True


class Run(NamedTuple):
    """Requests of one flow that came in one read and say the same, waiting for their answers. `flow`
    None: klamm's own answer.
    """

    flow: Flow | None
    note: Note
    arrived: int  # ns
    ids: Sequence[int]  # correlation ids, in order
    length: int  # of the first, without its size field
    made: tuple[Any, ...] = ()  # pieces and effects
    fate: Any = None  # what rules have decided of the answer


@dataclass(slots=True, eq=False)
class Connection:
    """`broker` is a label; `advertise` the host that stands for every node, as this client can reach it."""

    ground: Ground
    broker: str
    advertise: str
    in_flight: deque[Run] = field(default_factory=deque)
    turn: int = 0  # answers that the oldest run has had
    tokens: Tokens | None = None
    effects: list[Effect] = field(default_factory=list)
    software_known: bool = False
    closing: bool = False
    clean: bool = True  # the broker's last read ended with a frame
    ruling: Ruling | None = None
    muted_until: int = 0  # ns: no request is read before; 0: the connection is not muted
    over: set[str] = field(default_factory=set)  # "client", "broker": nothing more goes there, behind a cut

    def ends(self, pieces: Sequence[Piece | Effect]) -> bool:
        """Do these end what goes on? Then nothing behind them is looked at."""
        last = pieces[-1] if pieces else None
        if not isinstance(last, tuple) or last[0] not in ("cut", "mute"):
            return False
        self.over |= {"client", "broker"} if last[0] == "mute" else {last[1]}
        return True

    def problem(self, kind: str, api: str, message: str, more: dict[str, Any] | None = None) -> None:
        """Count it and say it, with `more` fields; the traffic goes on."""
        self.ground.stats.problems[self.ground.cluster, self.broker, api, kind] += 1
        self.effects.append(("problem", kind, api, message, more))

    def close(self, kind: str, api: str, message: str, more: dict[str, Any] | None = None) -> None:
        """Count it, say it, and end both sides once what came before has gone out."""
        self.ground.stats.problems[self.ground.cluster, self.broker, api, kind] += 1
        self.closing = True
        self.effects.append(("close", kind, api, message, more))

    def refuse(self, plan: Plan, reason: str) -> None:
        """A response that may carry addresses cannot be rewritten: better no answer than one that
        leads past klamm.
        """
        message = f"a {plan.name} v{plan.version} response cannot be passed on: {reason}"
        self.close("unrewritable", plan.name, message)

    def own_answer(self, flow: Flow, run: Run, values: dict[str, Any], length: int) -> None:
        """klamm answers for the broker."""
        flow.lane.own_answers += 1
        codes = error_codes(*_answer(flow.plan), values)
        flow.lane.own_errors.update(codes)
        if flow.plan.logged or run.note.watchers:
            note = AnswerNote([(None, code) for code in codes])
            self.exchange(flow, run, run.ids[0], note, length, 0, "klamm")

    def edited(self, flow: Flow, before: dict[str, Any], after: dict[str, Any]) -> list[int]:
        """Rules have changed an answer: its errors now, of which theirs are counted."""
        codes = error_codes(*_answer(flow.plan), after)
        flow.lane.own_errors.update(Counter(codes) - Counter(error_codes(*_answer(flow.plan), before)))
        return codes

    def due(self, run: Run) -> None:
        """An answer made by klamm: at once, or when its turn comes."""
        if self.in_flight or not self.clean:
            self.in_flight.append(run)
        elif "client" not in self.over:
            self.effects += sends("client", list(run.made))
            self.ends(run.made)

    def too_large(self, plan: Plan, side: Side, size: int) -> None:
        message = f"a {plan.name} {side} of {size} bytes is more than a rule may hold; passed on as it is"
        self.problem("too_large_for_rules", plan.name, message)

    def undecodable(self, plan: Plan, side: Side) -> None:
        message = f"a {plan.name} v{plan.version} {side} does not decode; passed on as it is"
        self.problem("undecodable", plan.name, message)

    def asked(self, plan: Plan, columns: tuple[Any, ...]) -> Note:
        """What was picked of a request."""
        ground, picked = self.ground, plan.request
        assert picked is not None
        names, named = topics_named(picked, columns, ground.topology.topic_names.get)
        lanes = tuple(ground.stats.topic(ground.cluster, name, plan.name) for name in names)
        note = Note(lanes, plan.key != PRODUCE or picked.column(columns, ("acks",)) != 0)
        note.shown = shown(plan, picked, columns, ground.topology.topic_names.get)
        note.named = named
        if plan.key == API_VERSIONS and not self.software_known:
            self.software_known = True
            software = [
                picked.column(columns, (f"client_software_{what}",)) or "" for what in ("name", "version")
            ]
            ground.stats.client_software(ground.cluster, *software)
        return note

    def said(self, flow: Flow, columns: tuple[Any, ...]) -> AnswerNote:
        """What was picked of a response. Metadata tells the names of topic ids."""
        topology, plan = self.ground.topology, flow.plan
        if plan.key == METADATA and plan.response is not None:
            names, ids = (plan.response.column(columns, ("topics", what)) for what in ("name", "topic_id"))
            for name, topic_id in zip(names or (), ids or (), strict=False):
                if name is not None:
                    topology.learn_topic(topic_id, name)
        return answer_note(plan, columns, topology.topic_names.get)

    def count_errors(self, flow: Flow, note: AnswerNote, times: int) -> None:
        ground = self.ground
        for topic, code in note.errors:
            flow.lane.errors[code] += times
            if topic is not None:
                ground.stats.topic(ground.cluster, topic, flow.plan.name).errors[code] += times

    def standing(self, kind: Kind, node_id: int, host: str, port: int) -> tuple[str, int] | None:
        """The address that stands for a node; None until its listener is bound."""
        node = self.ground.topology.learn(kind, node_id, host, port)
        if node.failure is not None:
            raise Unbindable(node.failure)
        return None if node.listen_port is None else (self.advertise, node.listen_port)

    def exchange(
        self,
        flow: Flow,
        run: Run,
        correlation_id: int,
        note: AnswerNote,
        length: int | None,
        elapsed_ns: int | None,
        origin: str = "broker",
    ) -> None:
        """One line for the log, and for who watches; `length` is the response's, without its size field; None
        where none is due. `origin`: who made it.
        """
        said = {
            "api": flow.plan.name,
            "version": flow.plan.version,
            "client_id": flow.lane.client_id,
            "correlation_id": correlation_id,
            **(run.note.shown or note.shown or {}),
            "errors": note.errors,
            "request_bytes": run.length + 4,
            "response_bytes": None if length is None else length + 4,
            "latency_ns": elapsed_ns,
            "origin": origin,
        }
        self.effects.append(("exchange", said, run.note.watchers))


def tls_or_size(length: int, who: str, limit: int) -> tuple[str, str] | None:
    """Why a frame's size cannot be, as (kind, message). A TLS record's first bytes read as a size of
    352,518,912 and more.
    """
    record = {0x1603: "handshake", 0x1503: "alert"}.get(length >> 16 & 0xFFFF)
    if record and who == "client":
        return (
            "tls_from_client",
            f"the client speaks TLS ({record}) to a plain port: "
            "set security.protocol to PLAINTEXT or SASL_PLAINTEXT",
        )
    if record:
        return "tls_from_broker", f"the broker speaks TLS ({record}): start klamm with --upstream-tls"
    least = 8 if who == "client" else 4
    if least <= length <= limit:
        return None
    other = NOT_KAFKA.get(SIZE.pack(length))
    if other and who == "client":
        return "bad_size", f"the client does not speak Kafka but {other}"
    return "bad_size", f"the {who} announces a frame of {length} bytes; klamm takes {least} to {limit}"


def _answer(plan: Plan) -> tuple[tuple[Field, ...], int]:
    return API[plan.key].response, plan.version


def sends(side: str, pieces: Sequence[Piece | Effect]) -> list[Effect]:
    """Small pieces in one write, large ones in one each; effects keep their place among them."""
    effects: list[Effect] = []
    small: list[Piece] = []
    for piece in pieces:
        if not isinstance(piece, tuple) and len(piece) < COPIED:
            small.append(piece)
            continue
        if small:
            effects.append(("send", side, b"".join(small)))
            small = []
        effects.append(piece if isinstance(piece, tuple) else ("send", side, piece))
    if small:
        effects.append(("send", side, b"".join(small)))
    return [effect for effect in effects if effect[0] != "send" or len(effect[2])]


def part(data: bytes, start: int, stop: int) -> Piece:
    """A part of what was read, not copied when that is worth it."""
    return data[start:stop] if stop - start < COPIED else memoryview(data)[start:stop]


def resized(data: bytes, pos: int, body: int, new: list[bytes], late: int = 0) -> list[bytes]:
    """A frame with a new body, `late` bytes of which are still to come."""
    size = body - pos - 4 + sum(map(len, new)) + late
    return [SIZE.pack(size), data[pos + 4 : body], *new]
