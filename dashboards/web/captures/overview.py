"""Sums up a capture over time. First comes the sum in the ends of its segments, then the exact one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from time import monotonic

from msgspec import Struct, field
from msgspec.structs import replace

from klamm.captures.choosing import TELL_S
from klamm.captures.storage.reading import Reading, Segment, read
from klamm.captures.summaries import statistics_errors, timeline
from klamm.captures.summaries.columns import together
from klamm.captures.summaries.statistics_errors import ErrorCounts
from klamm.captures.summaries.timeline import Steps, Timeline, steps

MOST_STEPS = 180
ERRORS = ("time_ns", *statistics_errors.WANTED)


class Histogram(Struct, frozen=True):
    """Numbers of each step of `step` seconds, the first of which begins at `first`, in seconds since 1970.
    Exchanges and `errors`, those of them whose answers have errors, count where they end.
    """

    first: float
    step: float
    exchanges: list[int]
    errors: list[int]
    bytes: list[int]


class Overview(Struct, frozen=True):
    """`bytes`: of the files; `growing`: segments that are not sealed; `records`: how they were kept. `frames`
    and what comes after them is as far as it was counted, and all where `whole`; `lost` are frames that are
    missing, by the reason. `problems`: parts that cannot be read; `problem`: why the rest was not counted.
    """

    first: float
    last: float
    segments: int
    growing: int
    cut: int
    bytes: int
    records: list[str]
    clusters: dict[str, str | None]
    histogram: Histogram | None = None
    frames: int = 0
    exchanges: int = 0
    unanswered: int = 0
    errors: int = 0
    connections: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    problem: str = ""
    counted: bool = False
    whole: bool = False


def overviews(paths: Sequence[str], clock: Callable[[], float] = monotonic) -> Iterator[Overview]:
    """Ever more of it, until it is whole. Reads the files twice: columns of all rows, then answers."""
    reading = read(paths)
    segments = reading.segments()
    head = head_of(segments, reading.problems)
    yield head
    if not segments:
        yield replace(head, counted=True, whole=True)
        return
    first_ns, last_ns = min(one.first_ns for one in segments), max(one.last_ns for one in segments)
    counting = _Counting(head, steps(first_ns, last_ns, MOST_STEPS))
    yield from _paced(counting.rows(reading), clock)
    yield from _paced(counting.answers(reading), clock)
    yield counting.told(whole=True)


def head_of(segments: Sequence[Segment], problems: Iterable[str]) -> Overview:
    """The overview before anything is counted: what the ends of the segments tell."""
    sealed = [one.statistics for one in segments if one.statistics is not None]
    return Overview(
        min((one.first_ns for one in segments), default=0) / 1e9,
        max((one.last_ns for one in segments), default=0) / 1e9,
        len(segments),
        len(segments) - len(sealed),
        sum(one.cut for one in sealed),
        sum(one.size_bytes() for one in segments),
        sorted({one.origin.records for one in segments}),
        {name: of for one in segments for name, of in one.origin.clusters.items()},
        frames=sum(sum(one.frames.values()) for one in sealed),
        problems=list(problems),
    )


class _Counting:
    """The counts so far."""

    def __init__(self, head: Overview, of: Steps) -> None:
        self.head, self.timeline = head, Timeline(of)
        self.errors = [0] * of.amount
        self.problems: dict[str, None] = {}
        self.counted = False

    def rows(self, reading: Reading) -> Iterator[Overview]:
        for some in together(reading.batches(timeline.WANTED)):
            self.timeline.add(some)
            yield self.told()
        self.timeline.end()
        self._read(reading)

    def answers(self, reading: Reading) -> Iterator[Overview]:
        self.counted = True
        counts, place = ErrorCounts(), self.timeline.of.place
        for batch in reading.batches(ERRORS):
            for row, _, _ in counts.found(batch):
                at = place(batch["time_ns"][row].as_py())
                if at is not None:
                    self.errors[at] += 1
            yield self.told()
        self._read(reading)

    def told(self, whole: bool = False) -> Overview:
        found, of = self.timeline, self.timeline.of
        shown = Histogram(of.first_ns / 1e9, of.step_ns / 1e9, found.exchanges, self.errors, found.bytes)
        return replace(
            self.head,
            histogram=shown,
            frames=found.frames if self.counted else max(found.frames, self.head.frames),
            exchanges=sum(found.exchanges),
            unanswered=found.unanswered,
            errors=sum(self.errors),
            connections=found.connections,
            lost=dict(found.lost),
            problems=list(self.problems) or self.head.problems,
            counted=self.counted,
            whole=whole,
        )

    def _read(self, reading: Reading) -> None:
        self.problems |= dict.fromkeys(reading.problems)


def _paced(found: Iterator[Overview], clock: Callable[[], float]) -> Iterator[Overview]:
    """One of them now and then, and the last."""
    told_s, last = clock(), None
    for last in found:
        if clock() - told_s >= TELL_S:
            yield last
            told_s, last = clock(), None
    if last is not None:
        yield last
