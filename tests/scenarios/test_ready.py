"""The ready scenarios are complete, and so are the pages about them."""

from pathlib import Path

import pytest

from klamm.scenarios import ready
from klamm.scenarios.expectations import KINDS, Hits
from klamm.scenarios.model import Scenario, read_scenario
from tests.scenarios.ground import KINDS as KINDS_OF_WORK
from tests.scenarios.ground import LEADERS

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "scenarios.md"
ASKED_FOR = {
    "coordinator-moves", "corrupt-batches", "expired-sasl-session", "fenced-producer", "flapping-network",
    "full-disk", "half-open-connections", "leader-election", "offset-out-of-range", "quota-throttling",
    "rebalance-storm", "rolling-restart", "slow-broker", "stale-metadata", "topic-deleted",
    "version-downgrade",
}  # fmt: skip


def scenario(name: str) -> Scenario:
    found, mistakes = read_scenario(ready.text(name), name, name)
    assert found is not None, mistakes
    return found


def test_all_are_there() -> None:
    assert set(ready.names()) == ASKED_FOR


@pytest.mark.parametrize("name", sorted(ASKED_FOR))
def test_a_ready_scenario_is_steady_then_has_its_fault_then_recovers(name: str) -> None:
    phases = scenario(name).phases
    assert phases[0].name == "steady"
    assert phases[0].rules == phases[-1].rules == ()
    assert all(phase.expect for phase in phases)
    assert scenario(name).about == ready.about(name)


@pytest.mark.parametrize("name", sorted(ASKED_FOR))
def test_a_ready_scenario_makes_sure_that_its_faults_were_felt(name: str) -> None:
    for phase in scenario(name).phases:
        watched = {expectation.rule for expectation in phase.expect if isinstance(expectation, Hits)}
        assert not phase.rules or watched & {rule["name"] for rule in phase.rules}, phase.name


@pytest.mark.parametrize("name", sorted(ASKED_FOR))
def test_a_page_says_what_a_well_behaved_client_does(name: str) -> None:
    page = ready.page(name)
    assert page.startswith("# ")
    assert "A well-behaved client\n\n- " in page
    assert "Judged: " in page


def test_the_guide_names_every_scenario_and_every_kind_of_expectation() -> None:
    guide = GUIDE.read_text()
    assert [name for name in ASKED_FOR if f"`{name}`" not in guide] == []
    assert [kind for kind in KINDS if f"| `{kind}` |" not in guide] == []


def test_the_workloads_do_what_the_guide_says() -> None:
    folder = Path(__file__).parent
    python = (folder / "librdkafka_workload.py").read_text()
    java = (folder / "Workload.java").read_text()
    guide = " ".join(GUIDE.read_text().split())
    assert "produce 40 records a second to three partitions on three brokers" in guide
    assert len(LEADERS) == 3
    assert f"PAUSE_S = {1 / 40}" in python
    assert f"Thread.sleep({1000 // 40});" in java
    assert "PARTITIONS = 3" in python
    assert "PARTITIONS = 3" in java
    assert "Request timeouts are 4 s in both" in guide
    assert '"socket.timeout.ms": 4000' in python
    assert '"request.timeout.ms", 4000' in java
    assert [name for name, kind in KINDS_OF_WORK.items() if kind == "transactions"] == ["fenced-producer"]
