"""Decides what each frame needs, before it is touched, from subscriptions that are data.

PASS   the bytes go on as they come; at most the header is looked at.
WATCH  so too, while `request` and `response` of the plan pick the fields that metering and log want; but a
       response with a `tail`, a last field that may have addresses, waits until it is whole (up to 256 KiB).
HOLD   klamm may change the frame on its own, as addresses in it: `hold` is set.

Rules hold frames of any of these plans: session/rule_orders.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from klamm.decoders import API
from klamm.decoders.apis import why_unknown
from klamm.decoders.compile import UNREADABLE, Locate, Path, Pick, Walk, beyond, locate, pick, walk
from klamm.decoders.headers import request_header_version, response_header_version
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import (
    ERROR,
    GROUP,
    HOST,
    NODE_ID,
    PARTITION,
    PORT,
    RECORDS,
    TOPIC,
    TOPIC_ID,
    TRANSACTIONAL_ID,
    Api,
    Field,
    Side,
    all_fields,
    deciding,
    marked,
)
from klamm.decoders.tolerant import Found, find

if TYPE_CHECKING:
    from klamm.rules.expressions import Expression
    from klamm.rules.frame import Frame

PRODUCE, METADATA, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 0, 3, 17, 18, 36
DESCRIBE_CLUSTER, DESCRIBE_QUORUM = 60, 55

# Fields that klamm always needs, whatever the metering: does Produce expect an answer, what comes after
# SaslHandshake v0.
ALWAYS: dict[tuple[int, Side], tuple[Path, ...]] = {
    (PRODUCE, "request"): (("acks",),),
    (SASL_HANDSHAKE, "request"): (("mechanism",),),
    (API_VERSIONS, "request"): (("client_software_name",), ("client_software_version",)),
    (METADATA, "response"): (("topics", "name"), ("topics", "topic_id")),
}

# The addresses in a response to Metadata, which are picked where they are not rewritten.
BROKERS: tuple[Path, ...] = (("brokers", "node_id"), ("brokers", "host"), ("brokers", "port"))

# Topics that a request names without asking anything of them: metering does not count them, and need not read
# on to them.
UNASKED = {"forgotten_topics_data"}


class ListenerWish(NamedTuple):
    """A listener that wants the exchanges whose requests meet a condition; None: all. `sink` takes them."""

    where: Expression | None
    sink: Any


@dataclass(frozen=True, slots=True)
class Wishes:
    """The wishes of metering, log and listeners. `logged` holds API names; None logs every API."""

    metering: Literal["header", "full"] = "full"
    logged: frozenset[str] | None = frozenset()
    listeners: tuple[ListenerWish, ...] = ()

    def logs(self, name: str) -> bool:
        return self.logged is None or name in self.logged


@dataclass(frozen=True, slots=True)
class Picked:
    """A pick with its paths, in order, and the marks of their fields."""

    paths: tuple[Path, ...]
    marks: tuple[str | None, ...]
    pick: Pick
    layout: Layout
    deciding: dict[int, tuple[int, int]]  # of paths whose marks hold where another column has a value: both

    def column(self, columns: tuple[Any, ...], path: Path) -> Any:
        return columns[self.paths.index(path)] if path in self.paths else None

    def means(self, place: int, columns: tuple[Any, ...]) -> bool:
        """Does the mark of this column hold?"""
        by = self.deciding.get(place)
        return by is None or columns[by[0]] == by[1]


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The addresses in a response: spans in wire order, and the kind of node of each."""

    layout: Layout
    paths: tuple[Path, ...]
    marks: tuple[str | None, ...]
    port_kind: str
    kind: Literal["broker", "controller"]
    locate: Locate

    def find(self, data: bytes, start: int, end: int) -> Found:
        """The same as `locate` in a body that does not decode. Raises DecodeError where that is not safe."""
        return find(self.layout, self.paths, data, start, end)


@dataclass(slots=True, eq=False)
class Plan:
    """The plan for one (API key, version). `unknown` and `refuse` say in a line what is wrong with it."""

    key: int
    name: str
    version: int
    request_header: int = 1  # its version
    response_tags: bool = False
    logged: bool = False
    listeners: tuple[
        tuple[Callable[[Frame], bool | None] | None, Any], ...
    ] = ()  # (test of a request, listener)
    unknown: str | None = None
    refuse: str | None = None
    answer: bool = False  # klamm itself answers: an ApiVersions request of a version it does not know
    request: Picked | None = None
    response: Picked | None = None
    endpoints: Endpoints | None = None
    hold: bool = False  # the response is held until its addresses are rewritten
    tail: str | None = None  # the top-level field with addresses that ends a response of any size
    tail_tagged: bool = False
    shape: Locate | None = (
        None  # of such a response: the values that change while everything else says the same
    )
    walks: dict[str, Walk] = field(default_factory=dict)
    beyond: Callable[[bytes, int, int], bool] | None = None

    def too_many(self, body: bytes) -> bool:
        """Has a request more elements than rules may look at? They take some 4 us for each."""
        if len(body) <= FEW_BYTES or self.unknown is not None:
            return False
        if self.beyond is None:
            api = API[self.key]
            layout = Layout(api.name, self.version, "request", self.version in api.flexible, api.request)
            self.beyond = beyond(layout, MOST_RULED)
        try:
            return self.beyond(body, 0, len(body))
        except UNREADABLE:
            return False

    def numbers(self) -> dict[str, Any]:
        """Log fields of an API or version that klamm does not know."""
        return {"key": self.key, "version": self.version}

    @property
    def observed(self) -> bool:
        """Whether the log or a listener may want its exchanges."""
        return self.logged or bool(self.listeners)

    def request_walk(self) -> Walk:
        """Made when a request is split over reads and its pick does not fit in the first."""
        assert self.request is not None
        if "request" not in self.walks:
            self.walks["request"] = walk(self.request.layout, self.request.paths, most=MOST_ELEMENTS)
        return self.walks["request"]

    def response_walk(self) -> Walk:
        """The same for responses."""
        assert self.response is not None
        if "response" not in self.walks:
            self.walks["response"] = walk(self.response.layout, self.response.paths)
        return self.walks["response"]

    def tail_walk(self) -> tuple[Walk, tuple[Path, ...]]:
        """Over a large response up to its tail, with the paths before it that are wanted."""
        assert self.response is not None
        paths = tuple(path for path in self.response.paths if path[0] != self.tail)
        if "tail" not in self.walks:
            self.walks["tail"] = walk(self.response.layout, paths, stop=self.tail)
        return self.walks["tail"], paths


MOST_ELEMENTS = 10_000  # of a request: topics, partitions and so on; beyond them it is not read
MOST_RULED = 5000  # of a request that rules read
FEW_BYTES = 4096  # of a request that has not so many
UNKNOWN = "unknown"  # the name of all APIs that klamm does not know, where numbers of them are without end
MOST_UNKNOWN = 1024  # plans of versions that a client may have made up


class Planner:
    """Plans by (key, version), made on first use. One per process: plans hold no state of a connection.
    `changes` False: its plans hold no response, and leave each as it is.
    """

    def __init__(self, wishes: Wishes, changes: bool = True) -> None:
        self.wishes, self.changes = wishes, changes
        self._unchanging: Planner | None = None
        self.revision = 0  # goes up when the wishes change: plans made before are of no more use
        self._plans: dict[tuple[int, int], Plan] = {}  # at most one for each layout of the tables
        self._unknown: dict[tuple[int, int], Plan] = {}

    def unchanging(self) -> Planner:
        """The planner with the same wishes, now and later, whose plans leave each response as it is."""
        if self._unchanging is None:
            self._unchanging = Planner(self.wishes, changes=False)
        return self._unchanging

    def wish(self, wishes: Wishes) -> None:
        """Replaces the wishes."""
        if self._unchanging is not None:
            self._unchanging.wish(wishes)
        self.wishes = wishes
        self.revision += 1
        self._plans.clear()
        self._unknown.clear()

    def plan(self, key: int, version: int) -> Plan:
        made = self._plans.get((key, version)) or self._unknown.get((key, version))
        if made is None:
            made = self._make(key, version)
            if made.unknown is None:
                self._plans[key, version] = made
            else:
                if len(self._unknown) >= MOST_UNKNOWN:
                    self._unknown.clear()
                self._unknown[key, version] = made
        return made

    def _make(self, key: int, version: int) -> Plan:
        api = API.any(key)
        plan = Plan(key, api.name if key in API else UNKNOWN, version, logged=self.wishes.logs(api.name))
        plan.listeners = tuple((None, wish.sink) for wish in self.wishes.listeners if wish.where is None)
        plan.unknown = why_unknown(api, version)
        if plan.unknown is not None:
            plan.answer = key == API_VERSIONS
            if self.changes and not plan.answer and bears_addresses(api):
                plan.refuse = f"{plan.unknown}, and its answer may carry broker addresses"
            return plan
        plan.listeners = tuple(
            (None if wish.where is None else wish.where.on(api, version, "request"), wish.sink)
            for wish in self._listeners(api, version)
        )
        plan.request_header = request_header_version(api, version)
        plan.response_tags = response_header_version(api, version) == 1
        if api.request:
            plan.request = self._picked(api, version, "request", plan.observed)
        if api.response:
            if self.changes:
                plan.endpoints = endpoints(api, version)
                plan.tail = tail_of(api, version)
                plan.tail_tagged = any(f.name == plan.tail and f.tag is not None for f in api.response)
                plan.hold = key == API_VERSIONS or (plan.endpoints is not None and plan.tail is None)
            plan.response = self._picked(api, version, "response", plan.observed)
            if tail_of(api, version) is not None:
                plan.shape = _volatile(api, version)
        return plan

    def _listeners(self, api: Api, version: int) -> Iterator[ListenerWish]:
        for wish in self.wishes.listeners:
            where = wish.where
            if where is None or (where.by_request(api) and where.fits(api, version, "request") is None):
                yield wish

    def _picked(self, api: Api, version: int, side: Side, observed: bool) -> Picked | None:
        fields = api.fields(side)
        wanted: list[Path] = []
        if self.wishes.metering == "full" or observed:
            marks = {TOPIC, TOPIC_ID} if side == "request" else {ERROR}
            if side == "response" and any(marked(fields, version, frozenset({ERROR}))):
                marks |= {TOPIC, TOPIC_ID}
            if observed:
                marks |= {PARTITION, GROUP, TRANSACTIONAL_ID}
            wanted = [path for path in marked(fields, version, frozenset(marks)) if path[0] not in UNASKED]
        there = dict(all_fields(fields, version))
        always = ALWAYS.get((api.key, side), ())
        if side == "response":
            tail = tail_of(api, version) if self.changes else None
            always = ((tail, "node_id"),) if tail else always if self.wishes.metering == "full" else ()
            always += BROKERS if api.key == METADATA and not self.changes else ()
        if side == "request":
            tested = [wish.where for wish in self._listeners(api, version) if wish.where is not None]
            always += tuple(path for where in tested for path in where.paths(api, version, side))
        deciders = {path: found for path in wanted if (found := deciding(there, path)) is not None}
        always += tuple(path for path, _ in deciders.values())
        wanted += [path for path in dict.fromkeys(always) if path in there and path not in wanted]
        if not wanted:
            return None
        layout = Layout(api.name, version, side, version in api.flexible, fields)
        paths = tuple(wanted)
        most = MOST_ELEMENTS if side == "request" else None
        of_paths = tuple(there[path].mark for path in paths)
        places = {paths.index(path): (paths.index(by), value) for path, (by, value) in deciders.items()}
        return Picked(paths, of_paths, pick(layout, paths, most), layout, places)


def bears_addresses(api: Api) -> bool:
    """Whether a response of any version has addresses that clients connect to."""

    def deep(fields: tuple[Field, ...]) -> bool:
        return any(f.mark == HOST or (isinstance(f.of, tuple) and deep(f.of)) for f in fields)

    return deep(api.response)


def endpoints(api: Api, version: int) -> Endpoints | None:
    """The addresses in a response of this version, or None."""
    found = marked(api.response, version, frozenset({NODE_ID, HOST, PORT}))
    fields = dict(all_fields(api.response, version))
    if not any(fields[path].mark == HOST for path in found):
        return None
    paths = tuple(
        ([("endpoint_type",)] if api.key == DESCRIBE_CLUSTER and ("endpoint_type",) in fields else []) + found
    )
    layout = Layout(api.name, version, "response", version in api.flexible, api.response)
    port = next(fields[path] for path in found if fields[path].mark == PORT)
    kind: Literal["broker", "controller"] = "controller" if api.key == DESCRIBE_QUORUM else "broker"
    marks = tuple(fields[path].mark for path in paths)
    return Endpoints(layout, paths, marks, port.kind, kind, locate(layout, paths))


def tail_of(api: Api, version: int) -> str | None:
    """The field at the very end of an answer that grows with data (Produce, Fetch, ShareFetch,
    ShareAcknowledge): KIP-951.
    """
    return (
        "node_endpoints"
        if ("node_endpoints", "host") in marked(api.response, version, frozenset({HOST}))
        else None
    )


def _volatile(api: Api, version: int) -> Locate:
    """Offsets, times and records of a response, which change neither its layout nor the wanted fields."""
    paths = [
        path
        for path, f in all_fields(api.response, version)
        if f.kind in ("int64", "records") and f.tag is None and f.mark in (None, RECORDS)
    ]
    tagged = {path for path, f in all_fields(api.response, version) if f.tag is not None}
    kept = tuple(path for path in paths if not any(path[:n] in tagged for n in range(1, len(path))))
    return locate(Layout(api.name, version, "response", version in api.flexible, api.response), kept)


def flat(column: Any) -> Sequence[Any]:
    """The values of a column, whatever its nesting; nulls left out."""
    found = column if isinstance(column, list) else [column]
    while isinstance(next((one for one in found if one is not None), None), list):
        found = list(chain.from_iterable(filter(None, found)))
    return [one for one in found if one is not None] if None in found else found


def values(picked: Picked, columns: tuple[Any, ...], mark: str) -> Iterator[Any]:
    """All values of the fields with this mark, in wire order for each field."""
    return (
        value
        for i, m in enumerate(picked.marks)
        if m == mark and picked.means(i, columns)
        for value in flat(columns[i])
    )


def errors(picked: Picked, columns: tuple[Any, ...]) -> Iterator[tuple[Any, int]]:
    """(topic name, topic id or None, error code) for every error code that is not 0."""
    for i, mark in enumerate(picked.marks):
        if mark == ERROR and any(flat(columns[i])):
            for topic, code in _beside(_topics_of(picked, columns, picked.paths[i]), columns[i]):
                if code:
                    yield topic, code


def _topics_of(picked: Picked, columns: tuple[Any, ...], error: Path) -> Any:
    """The column of topics whose struct the error's path goes through."""
    for i, mark in enumerate(picked.marks):
        parent = picked.paths[i][:-1]
        if mark in (TOPIC, TOPIC_ID) and parent and error[: len(parent)] == parent and columns[i] is not None:
            return columns[i]
    return None


def _beside(topics: Any, codes: Any) -> Iterator[tuple[Any, int]]:
    if isinstance(topics, list) and isinstance(codes, list) and len(topics) == len(codes):
        for topic, below in zip(topics, codes, strict=True):
            yield from _beside(topic, below)
    else:
        for code in flat(codes):
            yield (topics if isinstance(topics, (str, bytes)) else None), code
