"""The expectations of a phase: one class for each kind, judged on the samples of its window.

A judgement says whether it is met and what was measured. Where nothing was measured, it is not met: a
scenario without traffic proves nothing. Times are seconds, `Duration` ns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import ClassVar, NamedTuple, Protocol

from klamm.rules.quantities import ApiName, Duration, Number, Share
from klamm.scenarios.samples import Counters, Sample, total

NS = 1_000_000_000


class Judgement(NamedTuple):
    """`measured` is for people."""

    met: bool
    measured: str


class Expectation(Protocol):
    """`after`: how much of the phase is left out, before it is scaled."""

    kind: ClassVar[str]

    @property
    def after(self) -> Duration: ...

    def text(self) -> str:
        """In words."""

    def judge(self, samples: Sequence[Sample]) -> Judgement:
        """Judges the samples of the window, oldest first; counts are from the first one on."""


@dataclass(frozen=True)
class Of:
    """Selects requests. A missing key means all."""

    api: ApiName | None = None
    """The API."""
    client: str = "*"
    """Client ids, as a glob."""
    broker: str = "*"
    """The broker, as a glob: a node id, or bootstrap."""
    cluster: str = "*"
    """The cluster, as a glob: its name in klamm.yaml."""
    after: Duration = Duration(0)
    """So much of the phase is left out; shorter where the scenario runs faster."""

    def counters(self, sample: Sample) -> Counters:
        return total(
            counters
            for (api, client, broker, cluster), counters in sample.counters.items()
            if self.api in (None, api)
            and fnmatchcase(client, self.client)
            and fnmatchcase(broker, self.broker)
            and fnmatchcase(cluster, self.cluster)
        )

    def since(self, samples: Sequence[Sample]) -> Counters:
        """The counts between the first and the last sample."""
        return self.counters(samples[-1]) - self.counters(samples[0]) if samples else Counters()

    def steps(self, samples: Sequence[Sample]) -> Iterator[tuple[float, Counters]]:
        """(time, the counts since the sample before it)."""
        for before, sample in pairwise(samples):
            yield sample.at_s, self.counters(sample) - self.counters(before)

    @property
    def who(self) -> str:
        parts = [self.api or "all requests"]
        parts += [f"of {self.client}"] if self.client != "*" else []
        parts += [f"at broker {self.broker}"] if self.broker != "*" else []
        parts += [f"of cluster {self.cluster}"] if self.cluster != "*" else []
        return " ".join(parts)

    @property
    def when(self) -> str:
        return f", after {seconds(self.after / NS)}" if self.after else ""


@dataclass(frozen=True)
class Errors(Of):
    """The share of answers that carry an error. An answer about several partitions may carry several."""

    kind: ClassVar[str] = "errors"

    below: Share | None = None
    """Fewer than this share."""
    above: Share | None = None
    """More than this share: the fault is felt."""

    def text(self) -> str:
        bounds = [f"under {percent(self.below)}"] if self.below is not None else []
        bounds += [f"over {percent(self.above)}"] if self.above is not None else []
        return f"{self.who}: errors {' and '.join(bounds)}{self.when}"

    def judge(self, samples: Sequence[Sample]) -> Judgement:
        found = self.since(samples)
        if not found.answers:
            return Judgement(False, "no answers")
        rate = found.errors / found.answers
        met = (self.below is None or rate < self.below) and (self.above is None or rate > self.above)
        return Judgement(met, f"{percent(rate)}: {found.errors} errors in {found.answers} answers")


@dataclass(frozen=True)
class Answered(Of):
    """Every request is answered in time: by the broker, or by klamm where rules say so. A request whose
    connection is cut is not. A delay that rules add to an answer is not counted.
    """

    kind: ClassVar[str] = "answered"

    within: Duration = Duration(5 * NS)
    """The longest time; klamm's own measure, rounded up to the next bound of its histograms."""

    def text(self) -> str:
        return f"{self.who}: every one answered within {seconds(self.within / NS)}{self.when}"

    def judge(self, samples: Sequence[Sample]) -> Judgement:
        found = self.since(samples)
        if not found.requests:
            return Judgement(False, "no requests")
        within_s = self.within / NS
        late = sum(count for bound, count in found.slower if bound > within_s)
        base, asked, answered = self.counters(samples[0]), 0, self.counters(samples[-1])
        for sample in samples:
            if sample.at_s <= samples[-1].at_s - within_s:
                asked = self.counters(sample).due - base.due
        missing = max(0, asked - (answered.answers - base.answers))
        misses = [f"{late} of {found.answers} later"] if late else []
        misses += [f"{missing} of {found.requests} never"] if missing else []
        misses = misses or ([] if found.answers else ["no answers"])
        return Judgement(not misses, ", ".join(misses) or f"all of {found.answers} in time")


@dataclass(frozen=True)
class Requests(Of):
    """The number of requests: a client asks again, or gives up."""

    kind: ClassVar[str] = "requests"

    at_least: Number | None = None
    """So many or more."""
    at_most: Number | None = None
    """So many or fewer."""

    def text(self) -> str:
        return f"{self.who}: requests {between(self.at_least, self.at_most)}{self.when}"

    def judge(self, samples: Sequence[Sample]) -> Judgement:
        number = self.since(samples).requests
        return Judgement(inside(number, self.at_least, self.at_most), count(number, "request"))


@dataclass(frozen=True)
class Rate(Of):
    """Requests a second: work goes on, and nobody storms."""

    kind: ClassVar[str] = "rate"

    at_least: float | None = None
    """Requests a second, or more."""
    at_most: float | None = None
    """Requests a second, or fewer."""

    def text(self) -> str:
        return f"{self.who}: requests a second {between(self.at_least, self.at_most)}{self.when}"

    def judge(self, samples: Sequence[Sample]) -> Judgement:
        length_s = samples[-1].at_s - samples[0].at_s if samples else 0
        if length_s <= 0:
            return Judgement(False, "no time")
        rate = self.since(samples).requests / length_s
        return Judgement(inside(rate, self.at_least, self.at_most), f"{rate:.3g} a second")


@dataclass(frozen=True)
class Resumes(Of):
    """The first good answer comes soon after the window begins."""

    kind: ClassVar[str] = "resumes"

    within: Duration = Duration(5 * NS)
    """The longest time."""

    def text(self) -> str:
        return f"{self.who}: a good answer within {seconds(self.within / NS)}{self.when}"

    def judge(self, samples: Sequence[Sample]) -> Judgement:
        for at_s, step in self.steps(samples):
            if step.good > 0:
                took_s = at_s - samples[0].at_s
                return Judgement(took_s <= self.within / NS, f"after {seconds(took_s)}")
        return Judgement(False, "no good answer")


@dataclass(frozen=True)
class Pause(Of):
    """The longest time without a good answer, the edges of the window included."""

    kind: ClassVar[str] = "pause"

    at_most: Duration = Duration(5 * NS)
    """The longest time."""

    def text(self) -> str:
        return f"{self.who}: no pause over {seconds(self.at_most / NS)} between good answers{self.when}"

    def judge(self, samples: Sequence[Sample]) -> Judgement:
        good = [at_s for at_s, step in self.steps(samples) if step.good > 0]
        if not good:
            return Judgement(False, "no good answer")
        times = [samples[0].at_s, *good, samples[-1].at_s]
        longest_s = max(later - earlier for earlier, later in pairwise(times))
        return Judgement(longest_s <= self.at_most / NS, f"longest {seconds(longest_s)}")


@dataclass(frozen=True)
class Connections:
    """The number of connections that clients open: they come back, and do not storm."""

    kind: ClassVar[str] = "connections"

    at_least: Number | None = None
    """So many or more."""
    at_most: Number | None = None
    """So many or fewer."""
    cluster: str = "*"
    """To this cluster, as a glob: its name in klamm.yaml."""
    after: Duration = Duration(0)
    """So much of the phase is left out."""

    def text(self) -> str:
        when = f", after {seconds(self.after / NS)}" if self.after else ""
        where = f" to cluster {self.cluster}" if self.cluster != "*" else ""
        return f"connections opened{where} {between(self.at_least, self.at_most)}{when}"

    def opened(self, sample: Sample) -> int:
        return sum(count for name, count in sample.opened.items() if fnmatchcase(name, self.cluster))

    def judge(self, samples: Sequence[Sample]) -> Judgement:
        number = self.opened(samples[-1]) - self.opened(samples[0]) if samples else 0
        return Judgement(inside(number, self.at_least, self.at_most), f"{number} opened")


@dataclass(frozen=True)
class Hits:
    """A rule acted: without hits, nothing was tried."""

    kind: ClassVar[str] = "hits"

    rule: str
    """The name of a rule."""
    at_least: Number | None = Number(1)
    """So many or more."""
    at_most: Number | None = None
    """So many or fewer."""
    after: Duration = Duration(0)
    """So much of the phase is left out."""

    def text(self) -> str:
        return f"{self.rule}: hits {between(self.at_least, self.at_most)}"

    def judge(self, samples: Sequence[Sample]) -> Judgement:
        first, last = (samples[0].hits, samples[-1].hits) if samples else ({}, {})
        number = max(0, last.get(self.rule, 0) - first.get(self.rule, 0))
        return Judgement(inside(number, self.at_least, self.at_most), count(number, "hit"))


KINDS: dict[str, type[Expectation]] = {
    kind.kind: kind for kind in (Errors, Answered, Requests, Rate, Resumes, Pause, Connections, Hits)
}


def seconds(number: float) -> str:
    """1.5 s"""
    return f"{number:.2f}".rstrip("0").rstrip(".") + " s"


def percent(share: float) -> str:
    """1%"""
    return f"{share * 100:.3g}%"


def count(number: float, what: str) -> str:
    """1 hit, 2 hits"""
    return f"{number:g} {what}{'s' * (number != 1)}"


def between(least: float | None, most: float | None) -> str:
    """at least 1 and at most 5"""
    bounds = [f"at least {least:g}"] if least is not None else []
    bounds += [f"at most {most:g}"] if most is not None else []
    return " and ".join(bounds)


def inside(number: float, least: float | None, most: float | None) -> bool:
    return (least is None or number >= least) and (most is None or number <= most)
