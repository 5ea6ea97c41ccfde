"""Scenarios are played phase by phase; time and klamm are the test's own."""

from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from klamm.client import Refused
from klamm.scenarios.expectations import NS, Errors, Hits, Rate, Resumes
from klamm.scenarios.model import Phase, Scenario
from klamm.scenarios.report import as_json, lines, table, verdict
from klamm.scenarios.run import Report, play
from tests.scenarios.recorded import counters

RULE = {"name": "moved", "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"}
SCENARIO = Scenario(
    "leaders",
    "leaders move",
    (
        Phase("steady", 10, expect=(Rate("Produce", at_least=1),)),
        Phase("moving", 10, (RULE,), expect=(Hits("moved"),)),
        Phase(
            "recovery",
            10,
            expect=(Resumes("Produce", within=NS), Errors("Produce", below=0.01, after=5 * NS)),
        ),
    ),
    (Rate("Produce", at_least=1),),
)


class FakeKlamm:
    """10 requests a second, all answered; a rule hits once a second while it is on."""

    def __init__(self, rate: int = 10) -> None:
        self.now, self.rate = 100.0, rate
        self.rules: dict[str, float] = {}  # hits
        self.off: set[str] = set()
        self.calls: list[tuple[float, str, str]] = []
        self.sent: list[Mapping[str, Any]] = []

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds
        for name in self.rules.keys() - self.off:
            self.rules[name] += seconds

    def add_rule(self, written: Mapping[str, Any]) -> None:
        self.sent.append(written)
        self.rules[written["name"]] = 0
        self.calls.append((self.now - 100, "add", written["name"]))

    def remove_rule(self, name: str) -> None:
        del self.rules[name]
        self.calls.append((self.now - 100, "remove", name))

    def switch_rule(self, name: str, enabled: bool) -> None:
        (self.off.discard if enabled else self.off.add)(name)
        self.calls.append((self.now - 100, "on" if enabled else "off", name))

    def counters(self) -> dict[str, Any]:
        count = round(self.rate * (self.now - 100))
        return counters(count, count, {name: round(hits) for name, hits in self.rules.items()})


def played(klamm: FakeKlamm, scenario: Scenario = SCENARIO, speed: float = 1) -> Report:
    return play(scenario, klamm, klamm.clock, klamm.wait, speed)


def test_rules_are_there_during_their_phase_alone() -> None:
    klamm = FakeKlamm()
    report = played(klamm)
    assert klamm.calls == [(10, "add", "moved"), (20, "remove", "moved")]
    assert klamm.rules == {}
    assert report.met
    assert verdict(report) == "leaders: met, all 5 expectations"


def test_a_rule_ends_by_itself_should_the_scenario_be_killed() -> None:
    klamm = FakeKlamm()
    played(klamm)
    assert klamm.sent == [{"for": "70s", **RULE}]
    klamm = FakeKlamm()
    played(klamm, Scenario("x", "", (Phase("one", 10, ({**RULE, "for": "3s"},)),)))
    assert klamm.sent[0]["for"] == "3s"


def test_a_faster_run_has_shorter_phases_and_the_same_limits() -> None:
    klamm = FakeKlamm()
    report = played(klamm, speed=10)
    assert klamm.calls == [(pytest.approx(1), "add", "moved"), (pytest.approx(2), "remove", "moved")]
    assert klamm.now == pytest.approx(103)
    recovery = report.phases[2]
    assert [expectation.text() for expectation, _ in recovery.judged()] == [
        "Produce: a good answer within 1 s",
        "Produce: errors under 1%, after 5 s",
    ]
    _, judgement = list(recovery.judged())[1]
    assert judgement is not None
    assert judgement.measured == "0%: 0 errors in 5 answers"


def test_a_faster_run_leaves_the_durations_in_rules_as_they_are() -> None:
    klamm = FakeKlamm()
    rule = {"name": "late", "api": "Produce", "delay": "1s", "from": "3s"}
    played(klamm, Scenario("x", "", (Phase("one", 10, (rule,)),)), speed=10)
    assert klamm.sent == [{"for": "61s", **rule}]


def test_a_faster_run_flaps_faster() -> None:
    klamm = FakeKlamm()
    played(klamm, Scenario("x", "", (Phase("flaps", 10, (RULE,), flap_s=5),)), speed=10)
    assert [(at, what) for at, what, _ in klamm.calls] == [
        (0, "add"),
        (pytest.approx(0.5), "off"),
        (1, "remove"),
    ]


@pytest.mark.parametrize(("lasts_s", "samples"), [(60, 240), (2, 8), (1, 8), (0.5, 8)])
def test_counters_are_sampled_four_times_a_second_and_eight_times_in_a_phase_at_least(
    lasts_s: float, samples: int
) -> None:
    report = played(FakeKlamm(), Scenario("x", "", (Phase("one", lasts_s),)))
    assert len(report.phases[0].samples) == 1 + samples


def test_flapping_rules_go_off_and_on() -> None:
    klamm = FakeKlamm()
    played(klamm, Scenario("x", "", (Phase("flaps", 10, (RULE,), flap_s=3),)))
    assert [(at, what) for at, what, _ in klamm.calls] == [
        (0, "add"),
        (3, "off"),
        (6, "on"),
        (9, "off"),
        (10, "remove"),
    ]


def test_an_expectation_that_is_not_met_decides_the_verdict() -> None:
    klamm = FakeKlamm(rate=0)
    report = played(klamm)
    assert not report.met
    assert verdict(report) == "leaders: 4 of 5 expectations not met"
    assert [line for line in lines(report) if line.startswith("  not met")] == [
        "  not met      Produce: requests a second at least 1: 0 a second",
        "  not met      Produce: a good answer within 1 s: no good answer",
        "  not met      Produce: errors under 1%, after 5 s: no answers",
        "  not met      Produce: requests a second at least 1: 0 a second",
    ]


@pytest.mark.parametrize("problem", [KeyboardInterrupt, OSError])
def test_rules_are_taken_out_when_a_run_is_broken_off(problem: type[BaseException]) -> None:
    klamm = FakeKlamm()
    reports: list[Report] = []

    def wait(seconds: float) -> None:
        klamm.wait(seconds)
        if klamm.rules and klamm.now > 112:
            raise problem

    with pytest.raises(problem):
        play(SCENARIO, klamm, klamm.clock, wait, begun=reports.append)
    assert klamm.rules == {}
    assert klamm.calls[-1][1:] == ("remove", "moved")
    assert not reports[0].met
    assert verdict(reports[0]) == "leaders: broken off"
    assert as_json(reports[0], 0.0)["complete"] is False


def test_the_report_of_a_run_that_is_broken_off_says_so_and_what_it_did_not_reach() -> None:
    klamm = FakeKlamm()
    reports: list[Report] = []

    def wait(seconds: float) -> None:
        klamm.wait(seconds)
        if klamm.now > 122:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(SCENARIO, klamm, klamm.clock, wait, begun=reports.append)
    assert list(lines(reports[0]))[-5:] == [
        "recovery",
        "  met          Produce: a good answer within 1 s: after 0.25 s",
        "  not reached  Produce: errors under 1%, after 5 s",
        "whole",
        "  met          Produce: requests a second at least 1: 10 a second",
    ]
    document = as_json(reports[0], 0.0)
    assert (document["verdict"], document["complete"]) == ("broken off", False)
    assert [phase["name"] for phase in document["phases"]] == ["steady", "moving", "recovery"]
    _, late = document["phases"][2]["expectations"]
    assert (late["met"], late["measured"]) == (None, "not reached")


def test_the_rules_that_were_added_are_taken_out_when_the_next_is_refused() -> None:
    klamm = FakeKlamm()
    add = klamm.add_rule

    def refuse(written: Mapping[str, Any]) -> None:
        if written["name"] == "second":
            raise RuntimeError("there is a rule 'second' already")
        add(written)

    klamm.add_rule = refuse  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        played(klamm, Scenario("x", "", (Phase("one", 10, (RULE, {**RULE, "name": "second"})),)))
    assert klamm.rules == {}


def test_hits_count_for_their_phase_when_a_rule_comes_again() -> None:
    phases = tuple(Phase(name, 10, (RULE,), expect=(Hits("moved", at_most=11),)) for name in ("one", "two"))
    report = played(FakeKlamm(), Scenario("x", "", phases, (Hits("moved", at_least=19),)))
    assert report.met, list(lines(report))


def test_a_rule_that_ended_by_itself_does_not_end_the_run() -> None:
    klamm = FakeKlamm()

    def wait(seconds: float) -> None:
        klamm.wait(seconds)
        if klamm.now > 112:
            klamm.rules.clear()

    def remove(name: str) -> None:
        raise Refused(404, "there is no rule 'moved'")

    klamm.remove_rule = remove  # type: ignore[method-assign]
    report = play(SCENARIO, klamm, klamm.clock, wait)
    assert report.met
    assert report.phases[1].events[-1] == (20, "moved had ended")


def test_all_rules_are_taken_out_where_one_cannot_be() -> None:
    klamm = FakeKlamm()
    take_out = klamm.remove_rule

    def remove(name: str) -> None:
        take_out(name)
        if name == "second":
            raise Refused(409, "it is of the rule file")

    klamm.remove_rule = remove  # type: ignore[method-assign]
    with pytest.raises(Refused):
        played(klamm, Scenario("x", "", (Phase("one", 10, (RULE, {**RULE, "name": "second"})),)))
    assert klamm.rules == {}


def test_the_report_says_what_happened_and_when() -> None:
    document = as_json(played(FakeKlamm()), 1_700_000_000.0)
    assert (document["scenario"], document["verdict"], document["complete"]) == ("leaders", "met", True)
    moving = document["phases"][1]
    assert (moving["name"], moving["began_s"], moving["lasted_s"]) == ("moving", 10, 10)
    assert moving["events"] == [
        {"at_s": 10, "what": "added moved"},
        {"at_s": 20, "what": "removed moved"},
    ]
    assert moving["expectations"] == [
        {
            "kind": "hits",
            "written": {"rule": "moved", "at_least": 1},
            "text": "moved: hits at least 1",
            "met": True,
            "measured": "10 hits",
        }
    ]
    assert len(document["samples"]) == 120
    assert sum(each["apis"]["Produce"]["requests"] for each in document["samples"]) == 300
    assert sum(each["hits"].get("moved", 0) for each in document["samples"]) == 10


def test_the_table_shows_phases_expectations_and_traffic_as_they_stand() -> None:
    klamm, screens = FakeKlamm(), list[str]()

    def show(report: Report) -> None:
        console = Console(width=100, force_terminal=False)
        with console.capture() as capture:
            console.print(table(report))
        screens.append(capture.get())

    play(SCENARIO, klamm, klamm.clock, klamm.wait, show=show)
    middle = screens[len(screens) // 2]
    assert "▶  moving" in middle
    assert "✓  steady" in middle
    assert "moved: hits at least 1" in middle
    assert "  recovery" in middle
    assert "10.0" in middle
