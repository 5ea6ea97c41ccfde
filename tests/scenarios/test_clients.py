"""Every ready scenario, played on librdkafka and the Java client in front of real brokers.

KLAMM_WRITE_DOCS=1 pytest tests/scenarios/test_clients.py writes the verdicts into docs/scenarios.md.
"""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

import pytest

from klamm.scenarios import ready
from tests.brokers.kraft import VERSION, Cluster
from tests.scenarios.ground import WORKLOADS, Outcome, played

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "scenarios.md"
BEGIN, END = "<!-- made by tests/scenarios/test_clients.py -->\n", "<!-- end -->\n"
SPEED = 5.0
SHORT = ("leader-election", "quota-throttling")
RUNS = [
    pytest.param(name, client, marks=[] if name in SHORT else [pytest.mark.long])
    for name in ready.names()
    for client in WORKLOADS
]
KNOWN_TO_MISS: dict[tuple[str, str], set[tuple[str, str]]] = {}
WHY: dict[tuple[str, str], str] = {}
Runs = Mapping[tuple[str, str], "Future[Outcome]"]


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, kafka: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    """The runs that were selected: both clients side by side, each taking one scenario after another."""
    wanted = [
        (str(item.callspec.params["scenario"]), str(item.callspec.params["client"]))
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == TEST.__name__
    ]
    directory = tmp_path_factory.mktemp("scenarios")
    with ExitStack() as stack:
        queues = {client: stack.enter_context(ThreadPoolExecutor(1)) for client in WORKLOADS}
        yield {
            (scenario, client): queues[client].submit(played, kafka, client, scenario, SPEED, directory)
            for scenario, client in wanted
        }


@pytest.fixture(scope="module")
def seen() -> Iterator[dict[tuple[str, str], Outcome]]:
    """The outcomes of all runs. With KLAMM_WRITE_DOCS they are written into the document."""
    made: dict[tuple[str, str], Outcome] = {}
    yield made
    if os.environ.get("KLAMM_WRITE_DOCS"):
        assert len(made) == len(RUNS), "the document needs all runs, and that they pass"
        text = DOCUMENT.read_text()
        before, after = text.partition(BEGIN)[0], text.partition(END)[2]
        DOCUMENT.write_text(before + BEGIN + "\n".join(document(made)) + "\n" + END + after)


def document(made: Mapping[tuple[str, str], Outcome]) -> Iterator[str]:
    """The verdicts, and what was measured."""
    clients = f"librdkafka in confluent-kafka {version('confluent-kafka')} and the Java client {VERSION}"
    yield f"\nKafka {VERSION}, {clients}, at speed {SPEED:g}.\n"
    yield f"| scenario | {' | '.join(WORKLOADS)} |\n| --- | {' | '.join('---' for _ in WORKLOADS)} |"
    for name in ready.names():
        yield f"| `{name}` | {' | '.join(verdict(name, client, made) for client in WORKLOADS)} |"
    yield "\nExpectations and measurements:\n"
    yield f"| scenario | phase | expectation | {' | '.join(WORKLOADS)} |"
    yield f"| --- | --- | --- | {' | '.join('---' for _ in WORKLOADS)} |"
    for name in ready.names():
        phases = [made[name, client].report["phases"] for client in WORKLOADS]
        for same in zip(*phases, strict=True):
            for each in zip(*(phase["expectations"] for phase in same), strict=True):
                measured = [one["measured"] if one["met"] else f"**{one['measured']}**" for one in each]
                yield f"| `{name}` | {same[0]['name']} | {each[0]['text']} | {' | '.join(measured)} |"


def verdict(name: str, client: str, made: Mapping[tuple[str, str], Outcome]) -> str:
    """A cell of the table."""
    missed = made[name, client].missed
    misses = "; ".join(f"{phase}: {text} ({measured})" for (phase, text), measured in missed.items())
    why = f": {WHY[name, client]}" if (name, client) in WHY else ""
    return f"**not met**{why}. {misses}" if missed else "met"


@pytest.mark.brokers
@pytest.mark.parametrize(("scenario", "client"), RUNS)
def test_a_client_takes_a_scenario_as_it_is_known_to(
    scenario: str, client: str, runs: Runs, seen: dict[tuple[str, str], Outcome]
) -> None:
    outcome = runs[scenario, client].result(timeout=290)
    known = KNOWN_TO_MISS.get((scenario, client), set())
    assert set(outcome.missed) == known, outcome.output
    assert outcome.code == bool(known)
    seen[scenario, client] = outcome


TEST = test_a_client_takes_a_scenario_as_it_is_known_to


def test_the_document_has_the_verdicts_that_are_known() -> None:
    if os.environ.get("KLAMM_WRITE_DOCS"):
        pytest.skip("the document is written at the end of this run")
    rows = DOCUMENT.read_text().partition(BEGIN)[2].partition("Expectations and measurements")[0]
    verdicts = {}
    for row in rows.splitlines():
        if row.startswith("| `"):
            name, *cells = (cell.strip() for cell in row.strip("|").split("|"))
            verdicts |= {
                (name.strip("`"), client): cell for client, cell in zip(WORKLOADS, cells, strict=True)
            }
    assert verdicts.keys() == {(name, client) for name in ready.names() for client in WORKLOADS}
    assert {key for key, cell in verdicts.items() if cell != "met"} == KNOWN_TO_MISS.keys()
