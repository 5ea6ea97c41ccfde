"""A scenario played: rules come and go phase by phase, counters are sampled, expectations judged.

Time and klamm are arguments: `clock` tells seconds, `wait` passes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Protocol

from klamm.client.failures import Refused
from klamm.scenarios.expectations import NS, Expectation, Judgement
from klamm.scenarios.model import Phase, Scenario
from klamm.scenarios.samples import Sample, sample

SAMPLE_S = 0.25
SPARE_S = 60.0  # a rule outlives its phase by so much at most, should this program be killed
CLOSE_S = 0.001
NOT_FOUND = 404


class Faults(Protocol):
    """A running klamm, such as klamm.client.Klamm."""

    def add_rule(self, written: Mapping[str, Any]) -> object: ...

    def remove_rule(self, name: str) -> None: ...

    def switch_rule(self, name: str, enabled: bool) -> object: ...

    def counters(self) -> Mapping[str, Any]:
        """/v1/counters"""


@dataclass
class Played:
    """The result of a phase so far, or of all of them. `scale`: how much shorter than written."""

    name: str
    began_s: float
    lasts_s: float
    expect: tuple[Expectation, ...]
    scale: float = 1.0
    samples: list[Sample] = field(default_factory=list)
    events: list[tuple[float, str]] = field(default_factory=list)

    def judged(self) -> Iterator[tuple[Expectation, Judgement | None]]:
        """Each expectation, as it stands; None: its window has not begun."""
        for expectation in self.expect:
            from_s = self.began_s + expectation.after / NS * self.scale
            window = [each for each in self.samples if each.at_s >= from_s - CLOSE_S]
            yield expectation, expectation.judge(window) if len(window) > 1 else None

    @property
    def met(self) -> bool:
        return all(judgement is not None and judgement.met for _, judgement in self.judged())


@dataclass
class Report:
    """A run. `whole` is over all phases."""

    scenario: Scenario
    speed: float
    phases: list[Played] = field(default_factory=list)
    whole: Played = field(default_factory=lambda: Played("whole", 0, 0, ()))
    complete: bool = False

    @property
    def met(self) -> bool:
        return self.complete and all(part.met for part in (*self.phases, self.whole))


def play(
    scenario: Scenario,
    faults: Faults,
    clock: Callable[[], float],
    wait: Callable[[float], None],
    speed: float = 1.0,
    show: Callable[[Report], None] = lambda _: None,
    begun: Callable[[Report], None] = lambda _: None,
) -> Report:
    """Play all phases. `speed` 10 makes phases, flaps and `after` ten times shorter; limits stay as they are.

    `show` is called after each sample, `begun` once with the report that grows. Whatever happens, the rules
    are taken out.
    """
    run = _Run(faults, clock, wait, 1 / speed)
    report = Report(scenario, speed)
    report.whole = Played("whole", 0, scenario.lasts_s / speed, scenario.expect, 1 / speed, run.samples)
    run.sample()
    begun(report)
    for phase in scenario.phases:
        report.phases.append(run.begun(phase))
        run.phase(phase, report.phases[-1], lambda: show(report))
    report.complete = True
    return report


class _Run:
    def __init__(
        self, faults: Faults, clock: Callable[[], float], wait: Callable[[float], None], scale: float
    ) -> None:
        self.faults, self.clock, self.wait, self.scale = faults, clock, wait, scale
        self.began = clock()
        self.samples: list[Sample] = []
        self.since: dict[str, int] = {}  # hits of rules when they were added

    @property
    def now(self) -> float:
        return self.clock() - self.began

    def begun(self, phase: Phase) -> Played:
        at_s = self.samples[-1].at_s
        return Played(
            phase.name, at_s, phase.lasts_s * self.scale, phase.expect, self.scale, [self.samples[-1]]
        )

    def sample(self) -> Sample:
        before = self.samples[-1].hits if self.samples else {}
        self.samples.append(sample(self.faults.counters(), self.now, before, self.since))
        return self.samples[-1]

    def phase(self, phase: Phase, played: Played, show: Callable[[], None]) -> None:
        flap_s = None if phase.flap_s is None else phase.flap_s * self.scale
        with ExitStack() as stack:
            added: list[str] = []
            for rule in phase.rules:
                name = str(rule["name"])
                self.since[name] = self.samples[-1].hits.get(name, 0)
                self.faults.add_rule({"for": f"{ceil(played.lasts_s + SPARE_S)}s", **rule})
                stack.callback(self._remove, name, played)
                added.append(name)
                played.events.append((self.now, f"added {name}"))
            self._pass(played, added, flap_s, show)

    def _remove(self, name: str, played: Played) -> None:
        try:
            self.faults.remove_rule(name)
            played.events.append((self.now, f"removed {name}"))
        except Refused as refused:
            if refused.status != NOT_FOUND:
                raise
            played.events.append((self.now, f"{name} had ended"))

    def _pass(self, played: Played, rules: list[str], flap_s: float | None, show: Callable[[], None]) -> None:
        ends_s = played.began_s + played.lasts_s
        every_s = min(SAMPLE_S, played.lasts_s / 8)
        enabled = True
        while (left_s := ends_s - self.now) > 0:
            if flap_s is not None:
                wanted = int((self.now - played.began_s) / flap_s) % 2 == 0
                if wanted != enabled:
                    enabled = wanted
                    for name in rules:
                        self.faults.switch_rule(name, enabled)
                        played.events.append((self.now, f"{'on' if enabled else 'off'} {name}"))
            self.wait(min(every_s, left_s))
            played.samples.append(self.sample())
            show()
