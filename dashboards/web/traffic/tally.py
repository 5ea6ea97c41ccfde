"""Exchanges of captures, counted into cells as klamm counts those that pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from klamm.captures.captured import CapturedConnection, api_name
from klamm.captures.frames import NOWHERE, Framed, columns
from klamm.captures.summaries.histogram import bucket, middle
from klamm.dashboards.captured import SIZE
from klamm.dashboards.web.traffic.answers import Latency
from klamm.dashboards.web.traffic.cells import (
    About,
    Amounts,
    Call,
    Cells,
    Counting,
    Error,
    Node,
    Opened,
    bounded,
    note,
)
from klamm.decoders import API
from klamm.decoders.compile import UNREADABLE, Path
from klamm.decoders.error_codes import error_name
from klamm.decoders.schema import GROUP, RECORDS, TOPIC, TOPIC_ID, Side, marked
from klamm.decoders.text import printable
from klamm.proxy.session.observing.summaries import label, topics_named
from klamm.rules.frame import Frame
from klamm.rules.plan import API_VERSIONS, Picked, Planner, Wishes, errors, flat, values

MOST_OPENED = 100_000  # connections that are counted
IN_SESSIONS = frozenset({"Fetch", "ShareFetch"})  # their requests leave out the topics that were named before
SOFTWARE = ("client_software_name",), ("client_software_version",)

Errors = Counter[tuple[str | None, str]]  # by topic and name


class Read(NamedTuple):
    """The wanted fields of a body."""

    frame: Frame
    picked: Picked
    columns: tuple[Any, ...]

    def topics(self) -> list[str]:
        """The topics that the body names, each once."""
        return topics_named(self.picked, self.columns, self.frame.names)[0]

    def errors(self) -> Errors:
        """Of a response."""
        return _errors(self.picked, self.columns, self.frame)


class Tally:
    """Takes exchanges in the order of their ends; `cells` has the sums. `last_ns`: the end of the last one;
    `unkept`: frames whose bodies are not there, or cannot be read; `without_request`: answers whose client
    and API are not known.
    """

    def __init__(self) -> None:
        self.cells = Cells(Counting(latency, bodies=True))
        self.exchanges = self.unkept = self.without_request = self.last_ns = 0
        self.full = False  # there were more connections than are counted
        self._planner = Planner(Wishes(logged=None), changes=False)
        self._opened: dict[tuple[str, int, str], int] = {}  # the places of connections in cells.opened

    def add(self, one: Framed) -> None:
        """Count it for its client, broker and API, and for each of its topics."""
        self.exchanges += 1
        request, response = one.exchange
        if request is not None and request.fate == "made":  # klamm's own, for the client's authentication
            return
        self.last_ns = max(self.last_ns, one.exchange.last.time_ns)
        first = one.exchange.first
        if first.api_key < 0:
            self.without_request += 1
            return
        of, client = first.connection or NOWHERE, bounded(first.client_id or "")
        name = api_name(first.api_key)
        call = self.cells.call(Call(of.cluster, client, bounded(of.broker), name, first.api_version))
        _count(call, one)
        call.request_bytes += 0 if request is None else request.size + SIZE
        call.response_bytes += 0 if response is None else response.size + SIZE
        self._open(of, client)
        self._read(one, About(of.cluster, client, "", name), call)

    def _open(self, of: CapturedConnection, client: str) -> None:
        key = (of.capture, of.number, client)
        if key not in self._opened and len(self._opened) >= MOST_OPENED:
            self.full = True
        elif key not in self._opened:
            self._opened[key] = len(self.cells.opened)
            self.cells.opened.append(Opened(of.number, of.client, of.cluster, client, bounded(of.broker)))

    def _read(self, one: Framed, about: About, call: Amounts) -> None:
        """Topics, errors, groups and software, from the bodies."""
        request = self._picked(one.exchange.request is not None, one.request)
        response = self._picked(one.exchange.response is not None, one.response)
        sides = [each for each in (request, response) if each is not None]
        self._note((about.cluster, about.client or ""), one.exchange.first.connection or NOWHERE, sides)
        topics = [] if request is None else request.topics()
        if response is not None and about.api in IN_SESSIONS:
            topics += response.topics()
        for topic in dict.fromkeys(topics):
            _count(self._of_topic(about, topic), one)
        for side in sides:
            for topic, size in record_bytes(side.frame):
                cell = self._of_topic(about, topic)
                if side is request:
                    cell.request_bytes += size
                else:
                    cell.response_bytes += size
        for error, topic_, count in _failures(one, response):
            call.errors[error] = call.errors.get(error, 0) + count
            if topic_ is not None:
                cell = self._of_topic(about, topic_)
                cell.errors[error] = cell.errors.get(error, 0) + count

    def _of_topic(self, about: About, topic: str) -> Amounts:
        return self.cells.topic(about._replace(topic=bounded(topic)))

    def _note(self, node: Node, of: CapturedConnection, sides: list[Read]) -> None:
        for side in sides:
            for group in values(side.picked, side.columns, GROUP):
                note(self.cells.groups, node, str(group))
            if side.frame.api.key == API_VERSIONS and side.frame.side == "request":
                names = (side.picked.column(side.columns, path) or "" for path in SOFTWARE)
                software = printable(" ".join(names).strip())
                place = self._opened.get((of.capture, of.number, node[1]))
                if software:
                    note(self.cells.software, node, software)
                if software and place is not None:
                    opened = self.cells.opened[place]
                    self.cells.opened[place] = opened._replace(software=bounded(software))

    def _picked(self, is_there: bool, frame: Frame | None) -> Read | None:
        if frame is None:
            self.unkept += is_there
            return None
        plan = self._planner.plan(frame.api.key, frame.version)
        picked = plan.request if frame.side == "request" else plan.response
        if picked is None:
            return None
        try:
            return Read(frame, picked, picked.pick(frame.body, 0, len(frame.body)))
        except UNREADABLE:
            self.unkept += 1
            return None


def _count(amounts: Amounts, one: Framed) -> None:
    """As klamm's counters: an answer of its own is none of a broker, and has no latency."""
    request, response = one.exchange
    amounts.requests += request is not None
    if response is None or response.fate == "made":
        return
    amounts.responses += 1
    took_ns = one.exchange.latency_ns
    if took_ns is not None:
        amounts.took(bucket(took_ns / 1e9), took_ns / 1e9)


def _failures(one: Framed, response: Read | None) -> Iterator[tuple[Error, str | None, int]]:
    """Errors, the topics that they are about, and their counts. klamm made those of its own answers, and
    those that it wrote into a broker's.
    """
    row = one.exchange.response
    if response is None or row is None:
        return
    told = response.errors()
    origin = "klamm" if row.fate == "made" else "broker"
    yield from (((error, origin), topic, count) for (topic, error), count in told.items())
    frame = response.frame
    if row.fate != "rewritten" or frame.sent is None:
        return
    try:
        now = response.picked.pick(frame.sent.body, 0, len(frame.sent.body))
    except UNREADABLE:
        return
    added = _errors(response.picked, now, frame) - told
    yield from (((error, "klamm"), topic, count) for (topic, error), count in added.items())


def _errors(picked: Picked, found: tuple[Any, ...], frame: Frame) -> Errors:
    codes: Errors = Counter()
    for topic, code in errors(picked, found):
        about = None if topic is None or topic == bytes(16) else label(topic, frame.names)[0]
        codes[about, error_name(code)] += 1
    return codes


def record_bytes(frame: Frame) -> Iterable[tuple[str, int]]:
    """The bytes of records of each topic: what is produced, or fetched."""
    paths = _of_records(frame.api.key, frame.version, frame.side)
    if not paths:
        return ()
    *topics, records = columns(frame.api.key, frame.version, frame.side, frame.body, paths)
    named_ = next((column for column in topics if column is not None), None)
    if not isinstance(named_, list) or not isinstance(records, list):
        return ()
    pairs = zip(named_, records, strict=False)
    sizes = ((topic, sum(map(len, flat(below)))) for topic, below in pairs if topic is not None)
    return [(label(topic, frame.names)[0], size) for topic, size in sizes if size]


@cache
def _of_records(key: int, version: int, side: Side) -> tuple[Path, ...]:
    """The paths of the topics beside records, and then that of the records; empty where there are none."""
    fields = API[key].fields(side)
    records = marked(fields, version, frozenset({RECORDS}))
    if not records:
        return ()
    topics = marked(fields, version, frozenset({TOPIC, TOPIC_ID}))
    return (*(path for path in topics if path[:-1] == records[0][:1]), records[0])


def latency(amounts: Amounts, share: float) -> Latency | None:
    """The quantile within 3%."""
    count = sum(amounts.latencies.values())
    if count <= 1:
        return Latency(amounts.total_s * 1000) if count else None
    left = count * share
    for number in sorted(amounts.latencies):
        left -= amounts.latencies[number]
        if left <= 0:
            return Latency(middle(number) * 1000)
    return None
