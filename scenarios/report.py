"""A run as JSON, and as the table that a terminal shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from klamm.scenarios.expectations import Expectation, Judgement, seconds
from klamm.scenarios.run import Played, Report
from klamm.scenarios.samples import Counters, Sample, total
from klamm.settings.printable import printable

BUSIEST = 6  # APIs in the live table
MET, NOT_MET, NOT_REACHED, BROKEN_OFF = "met", "not met", "not reached", "broken off"


def as_json(report: Report, started_at: float) -> dict[str, Any]:
    """`started_at` in seconds since 1970; all other times are seconds since then."""
    scenario = report.scenario
    return {
        "scenario": scenario.name,
        "about": scenario.about,
        "parameters": dict(scenario.parameters),
        "speed": report.speed,
        "started_at": started_at,
        "complete": report.complete,
        "verdict": BROKEN_OFF if not report.complete else MET if report.met else NOT_MET,
        "phases": [_phase(part) for part in report.phases],
        "expectations": list(_expectations(report.whole)),
        "samples": [_sample(before, after) for before, after in pairwise(report.whole.samples)],
    }


def _phase(part: Played) -> dict[str, Any]:
    return {
        "name": part.name,
        "began_s": round(part.began_s, 3),
        "lasted_s": round(part.samples[-1].at_s - part.began_s, 3),
        "events": [{"at_s": round(at_s, 3), "what": what} for at_s, what in part.events],
        "expectations": list(_expectations(part)),
    }


def _expectations(part: Played) -> Iterator[dict[str, Any]]:
    """`met` is None where the expectation was not reached."""
    for expectation, judgement in part.judged():
        met, measured = judgement or (None, NOT_REACHED)
        parameters = vars(expectation).items()
        written = {key: value for key, value in parameters if value not in (None, "*", 0)}
        yield {
            "kind": expectation.kind,
            "written": written,
            "text": expectation.text(),
            "met": met,
            "measured": measured,
        }


def _sample(before: Sample, after: Sample) -> dict[str, Any]:
    """The counts between two samples, by API."""
    apis = {
        api: {"requests": step.requests, "answers": step.answers, "errors": step.errors}
        for api, step in _by_api(before, after)
    }
    hits = {name: count - before.hits.get(name, 0) for name, count in after.hits.items()}
    return {
        "at_s": round(after.at_s, 3),
        "opened": sum(after.opened.values()) - sum(before.opened.values()),
        "apis": apis,
        "hits": {name: count for name, count in hits.items() if count > 0},
    }


def _by_api(before: Sample, after: Sample) -> Iterator[tuple[str, Counters]]:
    for api in dict.fromkeys(api for api, *_ in after.counters):
        step = _of(api, after) - _of(api, before)
        if step.requests or step.answers:
            yield api, step


def _of(api: str, sample: Sample) -> Counters:
    return total(counters for (name, *_), counters in sample.counters.items() if name == api)


def verdict(report: Report) -> str:
    """The last line."""
    judged = [judgement for part in _parts(report) for _, judgement in part.judged()]
    missed = sum(judgement is None or not judgement.met for judgement in judged)
    if not report.complete:
        return f"{report.scenario.name}: {BROKEN_OFF}"
    if missed:
        return f"{report.scenario.name}: {missed} of {len(judged)} expectations {NOT_MET}"
    return f"{report.scenario.name}: {MET}, all {len(judged)} expectations"


def lines(report: Report) -> Iterator[str]:
    """Phase by phase, the expectations and the measured values."""
    for part in _parts(report):
        yield part.name
        for expectation, judgement in part.judged():
            yield f"  {_judged(expectation, judgement)}"


def _judged(expectation: Expectation, judgement: Judgement | None) -> str:
    if judgement is None:
        return f"{NOT_REACHED}  {expectation.text()}"
    word = MET if judgement.met else NOT_MET
    return f"{word:<{len(NOT_REACHED)}}  {expectation.text()}: {judgement.measured}"


def table(report: Report) -> RenderableType:
    """The picture while it runs: phases, expectations, and what clients ask now."""
    now_s = report.whole.samples[-1].at_s
    phases = Table(box=None, pad_edge=False, show_header=False)
    names = {part.name: part for part in report.phases}
    for phase in report.scenario.phases:
        part = names.get(phase.name)
        phases.add_row(*_phase_row(phase.name, phase.lasts_s / report.speed, part, report))
        if part is not None:
            for expectation, judgement in part.judged():
                phases.add_row("", *_expectation_row(expectation, judgement))
    if report.scenario.expect:
        phases.add_row("", Text("all phases"), "")
        for expectation, judgement in report.whole.judged():
            phases.add_row("", *_expectation_row(expectation, judgement))
    head = Text(
        f"{report.scenario.name}  {seconds(round(now_s, 1))} of {seconds(report.whole.lasts_s)}", "bold"
    )
    return Group(head, Text(), phases, Text(), _traffic(report.whole.samples))


def _phase_row(name: str, lasts_s: float, part: Played | None, report: Report) -> tuple[Text, Text, Text]:
    current = part is not None and part is report.phases[-1] and not report.complete
    state = "▶" if current else " " if part is None else "✓" if part.met else "✗"
    style = {"▶": "cyan", "✓": "green", "✗": "red"}.get(state, "dim")
    return (
        Text(state, style),
        Text(printable(name), "bold" if current else style),
        Text(seconds(lasts_s), "dim"),
    )


def _expectation_row(expectation: Expectation, judgement: Judgement | None) -> tuple[Text, Text]:
    text = Text(printable(f"  {expectation.text()}"), "dim")
    if judgement is None:
        return text, Text("–", "dim")
    return text, Text(judgement.measured, "green" if judgement.met else "yellow")


def _traffic(samples: Sequence[Sample]) -> RenderableType:
    """The requests of about the last second."""
    last = samples[-1]
    before = next((each for each in reversed(samples) if last.at_s - each.at_s >= 1), samples[0])
    length_s = last.at_s - before.at_s
    if length_s <= 0:
        return Text()
    grid = Table(box=None, pad_edge=False, header_style="dim")
    grid.add_column("API")
    for title in ("requests/s", "answers/s", "errors/s"):
        grid.add_column(title, justify="right")
    busiest = sorted(_by_api(before, last), key=lambda row: -row[1].requests)
    for api, step in busiest[:BUSIEST]:
        numbers = [f"{count / length_s:.1f}" for count in (step.requests, step.answers, step.errors)]
        grid.add_row(api, *numbers, style="red" if step.errors else "")
    return grid


def _parts(report: Report) -> list[Played]:
    return [*report.phases, *([report.whole] if report.whole.expect else [])]
