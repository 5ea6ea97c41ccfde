"""Every kind of expectation, met and not met, on recorded samples."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from klamm.scenarios.expectations import (
    KINDS,
    NS,
    Answered,
    Connections,
    Errors,
    Expectation,
    Hits,
    Pause,
    Rate,
    Requests,
    Resumes,
)
from klamm.scenarios.samples import Sample, sample
from tests.brokers.jars import ROOT
from tests.scenarios.recorded import at, counters

FINE = [
    at(0),
    at(1, 10, 10, opened=1, hits=1),
    at(2, 20, 20, opened=2, hits=2),
    at(3, 30, 30, opened=3, hits=3),
]
QUIET = [at(0, 5, 5), at(1, 5, 5), at(2, 5, 5)]
FAILING = [at(0), at(1, 10, 10, 9), at(2, 20, 20, 18)]
LATE = [at(0), at(5, 10, 10, slow=3), at(10, 20, 20, slow=3)]
NEVER = [at(0), at(1, 10, 10), at(2, 20, 10), at(8, 20, 10)]
HALTING = [at(0), at(1, 10, 10), at(8, 20, 12, 2), at(9, 30, 22, 2)]

CASES: list[tuple[Any, Sequence[Sample], bool, str]] = [
    (Errors("Produce", below=0.01), FINE, True, "0%: 0 errors in 30 answers"),
    (Errors("Produce", below=0.01), FAILING, False, "90%: 18 errors in 20 answers"),
    (Errors("Produce", below=0.01), QUIET, False, "no answers"),
    (Errors("Produce", above=0.5), FAILING, True, "90%: 18 errors in 20 answers"),
    (Errors("Produce", above=0.5), FINE, False, "0%: 0 errors in 30 answers"),
    (Answered("Produce", within=5 * NS), FINE, True, "all of 30 in time"),
    (Answered("Produce", within=5 * NS), LATE, False, "3 of 20 later"),
    (Answered("Produce", within=5 * NS), NEVER, False, "10 of 20 never"),
    (Answered("Produce", within=5 * NS), QUIET, False, "no requests"),
    (Answered("Produce", within=5 * NS), [at(0), at(1), at(2, 20)], False, "no answers"),
    (Requests("Produce", at_least=1, at_most=30), FINE, True, "30 requests"),
    (Requests("Produce", at_least=1), QUIET, False, "0 requests"),
    (Requests("Produce", at_most=10), FINE, False, "30 requests"),
    (Rate("Produce", at_least=1, at_most=10), FINE, True, "10 a second"),
    (Rate("Produce", at_least=11), FINE, False, "10 a second"),
    (Rate("Produce", at_most=9), FINE, False, "10 a second"),
    (Resumes("Produce", within=2 * NS), HALTING, True, "after 1 s"),
    (Resumes("Produce", within=2 * NS), HALTING[1:], False, "after 8 s"),
    (Resumes("Produce", within=2 * NS), QUIET, False, "no good answer"),
    (Pause("Produce", at_most=1 * NS), FINE, True, "longest 1 s"),
    (Pause("Produce", at_most=5 * NS), HALTING, False, "longest 8 s"),
    (Pause("Produce", at_most=5 * NS), QUIET, False, "no good answer"),
    (Connections(at_least=1, at_most=3), FINE, True, "3 opened"),
    (Connections(at_most=2), FINE, False, "3 opened"),
    (Connections(at_least=1), QUIET, False, "0 opened"),
    (Hits("moved"), FINE, True, "3 hits"),
    (Hits("moved"), QUIET, False, "0 hits"),
    (Hits("moved", at_most=2), FINE, False, "3 hits"),
]  # fmt: skip
NAMES = [f"{case[0].kind}-{'met' if case[2] else 'not-met'}-{index}" for index, case in enumerate(CASES)]


@pytest.mark.parametrize(("expectation", "samples", "met", "measured"), CASES, ids=NAMES)
def test_an_expectation_says_whether_it_is_met_and_what_was_measured(
    expectation: Expectation, samples: Sequence[Sample], met: bool, measured: str
) -> None:
    if expectation.kind in ("resumes",) and samples is HALTING[1:]:
        assert samples[0].at_s == 1
    assert expectation.judge(samples) == (met, measured)


def test_every_kind_is_seen_to_be_met_and_not_to_be() -> None:
    assert {(case[0].kind, case[2]) for case in CASES} == {
        (kind, met) for kind in KINDS for met in (True, False)
    }


UPPER: list[Any] = [Requests(at_most=5), Rate(at_most=5), Connections(at_most=5)]
NEEDS: list[Any] = [
    Errors(below=0.5), Errors(above=0.5), Answered(), Requests(at_least=1), Rate(at_least=1), Resumes(),
    Pause(), Connections(at_least=1), Hits("moved"), Hits("moved", at_most=5),
]  # fmt: skip


def test_where_nothing_happened_nothing_is_met_but_upper_bounds() -> None:
    assert {each.kind for each in NEEDS} == set(KINDS)
    assert [each for each in NEEDS if each.judge([at(0), at(10)]).met] == []
    assert all(each.judge([at(0), at(10)]).met for each in UPPER)


def test_what_is_left_out_of_an_expectation_is_what_the_guide_says() -> None:
    guide = (ROOT / "docs" / "scenarios.md").read_text()
    parameters = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", guide.partition("| kind |")[2], re.M))
    defaults_of_guide = {
        (kind, name): default
        for kind, text in parameters.items()
        if kind in KINDS
        for name, default in re.findall(r"`(\w+)` \((\w+)\)", text)
    }
    assert defaults_of_guide == {
        ("answered", "within"): "5s",
        ("resumes", "within"): "5s",
        ("pause", "at_most"): "5s",
        ("hits", "at_least"): "1",
    }
    assert (Answered().within, Resumes().within, Pause().at_most) == (5 * NS, 5 * NS, 5 * NS)
    assert Hits("moved").at_least == 1


@pytest.mark.parametrize("selection", [{"api": "Fetch"}, {"client": "other-*"}, {"broker": "1"}])
def test_what_is_not_selected_is_not_counted(selection: dict[str, Any]) -> None:
    assert Requests(**selection, at_least=1).judge(FINE) == (False, "0 requests")
    assert Requests(api="Produce", client="bill*", broker="2", at_least=30).judge(FINE).met


@pytest.mark.parametrize("kind", KINDS)
def test_an_expectation_has_words(kind: str) -> None:
    expectation = next(case[0] for case in CASES if case[0].kind == kind)
    assert expectation.text()
    assert "None" not in expectation.text()


def test_a_sample_takes_answers_of_klamm_and_errors_of_both() -> None:
    document = counters(requests=7, responses=4)
    document["requests"][0] |= {"own_answers": 2, "errors": {"X": 1}, "own_errors": {"Y": 2}, "one_way": 1}
    (counted,) = sample(document, 1.0, {}, {}).counters.values()
    assert (counted.requests, counted.answers, counted.errors, counted.due, counted.good) == (
        7,
        6,
        3,
        6,
        3,
    )


def test_versions_of_an_api_are_counted_together() -> None:
    document = counters(requests=3, responses=3)
    document["requests"] *= 2
    (counted,) = sample(document, 1.0, {}, {}).counters.values()
    assert counted.requests == 6
    assert counted.slower == ((0.1, 6),)


def test_hits_of_rules_that_are_gone_are_kept_and_those_that_came_again_count_on() -> None:
    found = sample(counters(hits={"moved": 2}), 1.0, {"moved": 4, "gone": 1}, {"moved": 3})
    assert found.hits == {"moved": 5, "gone": 1}
