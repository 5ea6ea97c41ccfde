"""What each frame needs, decided before it is touched: one place, from subscriptions that are data.

PASS   the bytes go on as they come; at most the header is looked at.
WATCH  so too, while `request_pick` / `response_pick` read what metering and log want.
HOLD   what may change the frame: `hold` says why; `tail` names the field at a frame's end that may have to be
       rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from klamm.decoders import API
from klamm.decoders.compile import Locate, Path, Pick, Walk, locate, pick, walk
from klamm.decoders.failures import UnknownApi
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
    Api,
    Field,
    Side,
    marked,
)
from klamm.decoders.schema import walk as walk_fields

if TYPE_CHECKING:
    from klamm.rules.expressions import Expression
    from klamm.rules.frame import Frame

PRODUCE, METADATA, SASL_HANDSHAKE, API_VERSIONS = 0, 3, 17, 18
DESCRIBE_CLUSTER, DESCRIBE_QUORUM = 60, 55

# Fields that klamm always needs, whatever the metering: does Produce expect an answer, what comes after
# SaslHandshake v0.
ALWAYS: dict[tuple[int, Side], tuple[Path, ...]] = {
    (PRODUCE, "request"): (("acks",),),
    (SASL_HANDSHAKE, "request"): (("mechanism",),),
    (API_VERSIONS, "request"): (("client_software_name",), ("client_software_version",)),
    (METADATA, "response"): (("topics", "name"), ("topics", "topic_id")),
}

# Topics that a request names without asking anything of them: metering does not count them, and need not read
# on to them.
UNASKED = {"forgotten_topics_data"}


class ListenerWish(NamedTuple):
    """Somebody who wants to hear of the exchanges whose requests are so; None: of all. `sink` is theirs."""

    where: Expression | None
    sink: Any


@dataclass(frozen=True, slots=True)
class Wishes:
    """What metering, log and listeners have asked for. `logged` holds API names; None logs every API."""

    metering: Literal["header", "full"] = "full"
    logged: frozenset[str] | None = frozenset()
    listeners: tuple[ListenerWish, ...] = ()

    def logs(self, name: str) -> bool:
        return self.logged is None or name in self.logged


@dataclass(frozen=True, slots=True)
class Picked:
    """A pick with the paths it answers, in order, and what their fields mean."""

    paths: tuple[Path, ...]
    marks: tuple[str | None, ...]
    pick: Pick
    layout: Layout

    def column(self, columns: tuple[Any, ...], path: Path) -> Any:
        return columns[self.paths.index(path)] if path in self.paths else None


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where addresses stand in a response: spans in wire order, and the kind of node each is of."""

    locate: Locate
    marks: tuple[str | None, ...]
    port_kind: str
    flexible: bool
    kind: Literal["broker", "controller"]


@dataclass(slots=True, eq=False)
class Plan:
    """One (API key, version). `unknown` and `refuse` say what is wrong with it, in a line."""

    key: int
    name: str
    version: int
    has_client_id: bool = True
    request_tags: bool = False
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

    @property
    def told(self) -> bool:
        """May somebody be told of its exchanges?"""
        return self.logged or bool(self.listeners)

    def request_walk(self) -> Walk:
        """Made when a request is split over reads and its pick does not fit in the first."""
        assert self.request is not None
        if "request" not in self.walks:
            self.walks["request"] = walk(self.request.layout, self.request.paths)
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


class Planner:
    """Plans by (key, version), made on first use. One per process: plans hold no state of a connection."""

    def __init__(self, wishes: Wishes) -> None:
        self.wishes = wishes
        self.revision = 0  # goes up when the wishes change: plans made before are of no more use
        self._plans: dict[tuple[int, int], Plan] = {}

    def wish(self, wishes: Wishes) -> None:
        """From now on these."""
        self.wishes = wishes
        self.revision += 1
        self._plans.clear()

    def plan(self, key: int, version: int) -> Plan:
        made = self._plans.get((key, version))
        if made is None:
            if len(self._plans) > 4096:  # made-up versions of a hostile client
                self._plans.clear()
            made = self._plans[key, version] = self._make(key, version)
        return made

    def _make(self, key: int, version: int) -> Plan:
        try:
            api = API[key]
        except UnknownApi:
            return Plan(key, "unknown", version, unknown=f"API key {key} is not known")
        plan = Plan(key, api.name, version, logged=self.wishes.logs(api.name))
        if version not in api.versions:
            plan.unknown = f"{api.name} v{version} is not known, only {api.versions}"
            plan.answer = key == API_VERSIONS
            if not plan.answer and bears_addresses(api):
                plan.refuse = f"{plan.unknown}, and its answer may carry broker addresses"
            return plan
        plan.listeners = tuple(
            (None if wish.where is None else wish.where.on(api, version, "request"), wish.sink)
            for wish in self._listeners(api, version)
        )
        plan.has_client_id = request_header_version(api, version) > 0
        plan.request_tags = request_header_version(api, version) == 2
        plan.response_tags = response_header_version(api, version) == 1
        if api.request:
            plan.request = self._picked(api, version, "request", plan.told)
        if api.response:
            plan.endpoints = endpoints(api, version)
            plan.tail = tail_of(api, version)
            plan.tail_tagged = any(f.name == plan.tail and f.tag is not None for f in api.response)
            plan.hold = key == API_VERSIONS or (plan.endpoints is not None and plan.tail is None)
            plan.response = self._picked(api, version, "response", plan.told)
            if plan.tail is not None:
                plan.shape = _volatile(api, version)
        return plan

    def _listeners(self, api: Api, version: int) -> Iterator[ListenerWish]:
        for wish in self.wishes.listeners:
            where = wish.where
            if where is None or (where.by_request(api) and where.fits(api, version, "request") is None):
                yield wish

    def _picked(self, api: Api, version: int, side: Side, told: bool) -> Picked | None:
        fields = api.fields(side)
        wanted: list[Path] = []
        if self.wishes.metering == "full" or told:
            marks = {TOPIC, TOPIC_ID} if side == "request" else {ERROR}
            if side == "response" and any(marked(fields, version, frozenset({ERROR}))):
                marks |= {TOPIC, TOPIC_ID}
            if told:
                marks |= {PARTITION, GROUP}
            wanted = [path for path in marked(fields, version, frozenset(marks)) if path[0] not in UNASKED]
        there = dict(walk_fields(fields, version))
        always = ALWAYS.get((api.key, side), ())
        if side == "response":
            tail = tail_of(api, version)
            always = ((tail, "node_id"),) if tail else always if self.wishes.metering == "full" else ()
        if side == "request":
            tested = [wish.where for wish in self._listeners(api, version) if wish.where is not None]
            always += tuple(path for where in tested for path in where.paths(api, version, side))
        wanted += [path for path in dict.fromkeys(always) if path in there and path not in wanted]
        if not wanted:
            return None
        layout = Layout(api.name, version, side, version in api.flexible, fields)
        paths = tuple(wanted)
        return Picked(paths, tuple(there[path].mark for path in paths), pick(layout, paths), layout)


def bears_addresses(api: Api) -> bool:
    """Does a response of any version carry addresses that clients connect to?"""

    def deep(fields: tuple[Field, ...]) -> bool:
        return any(f.mark == HOST or (isinstance(f.of, tuple) and deep(f.of)) for f in fields)

    return deep(api.response)


def endpoints(api: Api, version: int) -> Endpoints | None:
    """Where the addresses stand in a response of this version, if anywhere."""
    found = marked(api.response, version, frozenset({NODE_ID, HOST, PORT}))
    fields = dict(walk_fields(api.response, version))
    if not any(fields[path].mark == HOST for path in found):
        return None
    paths = tuple(
        ([("endpoint_type",)] if api.key == DESCRIBE_CLUSTER and ("endpoint_type",) in fields else []) + found
    )
    layout = Layout(api.name, version, "response", version in api.flexible, api.response)
    port = next(fields[path] for path in found if fields[path].mark == PORT)
    kind: Literal["broker", "controller"] = "controller" if api.key == DESCRIBE_QUORUM else "broker"
    return Endpoints(
        locate(layout, paths), tuple(fields[path].mark for path in paths), port.kind, layout.flexible, kind
    )


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
    """Offsets, times and records of a response: they say nothing of its layout, nor of what metering
    wants.
    """
    paths = [
        path
        for path, f in walk_fields(api.response, version)
        if f.kind in ("int64", "records") and f.tag is None and f.mark in (None, RECORDS)
    ]
    tagged = {path for path, f in walk_fields(api.response, version) if f.tag is not None}
    kept = tuple(path for path in paths if not any(path[:n] in tagged for n in range(1, len(path))))
    return locate(Layout(api.name, version, "response", version in api.flexible, api.response), kept)


def flat(column: Any) -> Iterator[Any]:
    """The values of a column, whatever its nesting; nulls left out."""
    if isinstance(column, list):
        for below in column:
            yield from flat(below)
    elif column is not None:
        yield column


def values(picked: Picked, columns: tuple[Any, ...], mark: str) -> list[Any]:
    """All values of the fields with this mark, in wire order per field."""
    return [value for i, m in enumerate(picked.marks) if m == mark for value in flat(columns[i])]


def errors(picked: Picked, columns: tuple[Any, ...]) -> list[tuple[Any, int]]:
    """(topic name, topic id or None, error code) for every error code that is not 0."""
    found = []
    for i, mark in enumerate(picked.marks):
        if mark == ERROR and any(flat(columns[i])):
            found += [
                (topic, code)
                for topic, code in _beside(_topics_of(picked, columns, picked.paths[i]), columns[i])
                if code
            ]
    return found


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
