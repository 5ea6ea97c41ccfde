"""Each expectation of each ready scenario, seen to be missed by clients that deserve it."""

import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from klamm.client.front import Front, in_front_of
from klamm.scenarios import ready
from klamm.scenarios.expectations import Expectation
from klamm.scenarios.model import Scenario, read_scenario
from klamm.scenarios.run import Report, play
from tests.client.mock_cluster import mock_cluster
from tests.scenarios.recorded import counters


class Behaviour(NamedTuple):
    """Of all clients together, a second: requests of each API, of which so many fail, and connections."""

    requests: int
    errors: int
    opened: int


SPEED, HURRIED = 10, 200
DEAD = Behaviour(0, 0, 0)  # they gave up, and nobody noticed
STORMING = Behaviour(10_000, 10_000, 1000)  # they ask again at once, and get nothing but errors


class Fleet:
    """A klamm and clients that all behave like this; rules act on each request. Its time is its own."""

    def __init__(self, behaviour: Behaviour, apis: set[str]) -> None:
        self.behaviour, self.apis = behaviour, apis
        self.now = 0.0
        self.rules: dict[str, float] = {}  # since when

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def add_rule(self, written: Mapping[str, Any]) -> None:
        self.rules[written["name"]] = self.now

    def remove_rule(self, name: str) -> None:
        del self.rules[name]

    def switch_rule(self, name: str, enabled: bool) -> None:
        pass

    def counters(self) -> dict[str, Any]:
        count, errors, opened = (round(each * self.now) for each in self.behaviour)
        hits = {
            name: round((self.now - since) * self.behaviour.requests) for name, since in self.rules.items()
        }
        document = counters(count, count, hits, opened)
        (row,) = document["requests"]
        document["requests"] = [{**row, "api": api, "errors": {"X": errors}} for api in self.apis]
        return document


def scenario(name: str) -> Scenario:
    found, mistakes = read_scenario(ready.text(name), name, name)
    assert found is not None, mistakes
    return found


def expected(of: Scenario) -> list[Expectation]:
    """In the order of the file."""
    return [*(each for phase in of.phases for each in phase.expect), *of.expect]


def missed(report: Report) -> list[bool]:
    """Of each expectation; one that could not be judged is not met."""
    assert not report.met
    judged = [judgement for part in (*report.phases, report.whole) for _, judgement in part.judged()]
    return [judgement is None or not judgement.met for judgement in judged]


def played(of: Scenario, behaviour: Behaviour) -> Report:
    fleet = Fleet(behaviour, {api for each in expected(of) if (api := getattr(each, "api", None))})
    return play(of, fleet, fleet.clock, fleet.wait, SPEED)


@pytest.mark.parametrize("name", ready.names())
def test_the_dead_miss_what_must_be_done_and_the_storming_what_must_not(name: str) -> None:
    it = scenario(name)
    by_dead, by_storming = (missed(played(it, behaviour)) for behaviour in (DEAD, STORMING))
    for expectation, dead, storming in zip(expected(it), by_dead, by_storming, strict=True):
        least, most = (getattr(expectation, key, None) for key in ("at_least", "at_most"))
        assert dead or storming, expectation.text()
        assert dead or least is None, expectation.text()
        assert storming or most is None, expectation.text()


@pytest.fixture(scope="module")
def klamm() -> Iterator[Front]:
    """A real one, through which nobody works."""
    with mock_cluster() as bootstrap, in_front_of(bootstrap) as running:
        yield running


@pytest.mark.parametrize("name", ready.names())
def test_on_a_real_klamm_that_nobody_uses_the_same_is_missed(name: str, klamm: Front) -> None:
    it = scenario(name)
    report = play(it, klamm.api, time.monotonic, time.sleep, HURRIED)
    by_dead = missed(played(it, DEAD))
    assert [real for real, dead in zip(missed(report), by_dead, strict=True) if dead and not real] == []
    assert klamm.api.rules() == []
