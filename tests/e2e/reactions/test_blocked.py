"""Clients under `block`: what each of them does, and that none keeps klamm busy.

KLAMM_WRITE_DOCS=1 pytest tests/e2e/reactions/test_blocked.py writes docs/blocked.md.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.brokers.kraft import VERSION, Cluster
from tests.clients.drivers import DRIVERS, Event
from tests.e2e import topics
from tests.e2e.klamm_process import Klamm, klamm_in_front_of

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "blocked.md"
TOPIC = "blocked"
SECONDS = 10
SHORT = ("librdkafka", "java")
MOST = 150  # requests of one client in these seconds; each of its connections has its own
BLOCKED = '{client: "*-reactions", block: true}'
ACTIONS: dict[str, tuple[str, str, dict[str, Any]]] = {  # -> the rule, the action, its options
    "a producer": (BLOCKED, "produce", {"n": 1}),
    "an idempotent producer": (BLOCKED, "produce", {"n": 1, "idempotent": True}),
    "a consumer group": (BLOCKED, "consume", {"n": 1, "group": TOPIC}),
    "an idempotent producer that is refused its id only": (
        "{api: InitProducerId, block: true}",
        "produce",
        {"n": 1, "idempotent": True},
    ),
}
HEAD = """\
# Clients that klamm blocks

The tables show how clients react when the rule `block` refuses them: the error that the application gets,
the time until it gets it, and the requests that klamm refuses until then. Each client runs for at most
{seconds} s, with Kafka {kafka} and three brokers. `tests/e2e/reactions/test_blocked.py` makes these runs
and this page.

A client that asks again and again is slowed down: from its sixth refusal in a row on, klamm waits before it
reads the next request of the connection, at first 10 ms, then twice as long each time, up to 5 s.

"""


class Run(NamedTuple):
    """`refused`: requests by API, in the order of their number."""

    events: list[Event]
    refused: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.refused.values())

    def __str__(self) -> str:
        error = next((event for event in self.events if event["event"] == "error"), None)
        received = (
            "is told nothing"
            if error is None
            else f"is told {error['error']} after {error['ms'] / 1000:.1f} s"
        )
        asked = ", ".join(f"{api} ×{count}" for api, count in self.refused.items())
        return f"{received}; refused: {asked or 'nothing'}"


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, kafka: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], Run]:
    """The runs that were selected: a client does one action after the other, each through its own klamm."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    wanted = {
        (i.callspec.params["client"], i.callspec.params["who"]) for i in items if i.originalname == NAME
    }
    folder = tmp_path_factory.mktemp("blocked")
    topics.create(kafka.bootstrap(), TOPIC, [[1]])

    def each(client: str) -> Iterator[tuple[tuple[str, str], Run]]:
        for number, (who, (rule, action, options)) in enumerate(ACTIONS.items()):
            if (client, who) not in wanted:
                continue
            rules = folder / f"{client}-{number}.yaml"
            rules.write_text(f"rules:\n  - {rule}\n")
            log = folder / f"{client}-{number}-klamm.log"
            with klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", log, "--rules", str(rules)) as klamm:
                events = DRIVERS[client].run(
                    klamm.bootstrap,
                    action,
                    TOPIC,
                    log=folder / f"{client}-{number}.log",
                    timeout_ms=SECONDS * 1000,
                    **options,
                )
                yield (client, who), Run(events, refused(klamm))

    with ThreadPoolExecutor(2) as pool:
        return {
            of: run for found in pool.map(lambda client: list(each(client)), DRIVERS) for of, run in found
        }


def refused(klamm: Klamm) -> dict[str, int]:
    """The errors that klamm put into answers, by API."""
    counted: dict[str, int] = {}
    for row in klamm.counters()["requests"]:
        counted[row["api"]] = counted.get(row["api"], 0) + sum(row["own_errors"].values())
    return dict(sorted(((api, count) for api, count in counted.items() if count), key=lambda one: -one[1]))


@pytest.mark.brokers
@pytest.mark.parametrize(
    ("client", "who"),
    [
        pytest.param(client, who, marks=[] if client in SHORT else [pytest.mark.long])
        for client in DRIVERS
        for who in ACTIONS
    ],
)
def test_a_blocked_client_gets_nothing_and_does_not_keep_klamm_busy(
    client: str, who: str, runs: dict[tuple[str, str], Run]
) -> None:
    run = runs[client, who]
    assert not [event for event in run.events if event["event"] in ("produced", "record")]
    assert 0 < run.total <= MOST, str(run)


NAME = test_a_blocked_client_gets_nothing_and_does_not_keep_klamm_busy.__name__


def test_the_page_begins_with_what_its_runs_are() -> None:
    assert DOCUMENT.read_text().startswith(HEAD.format(seconds=SECONDS, kafka=VERSION))


@pytest.mark.brokers
@pytest.mark.long
def test_the_page_has_each_client_and_action(runs: dict[tuple[str, str], Run]) -> None:
    text = HEAD.format(seconds=SECONDS, kafka=VERSION)
    for who in ACTIONS:
        text += (
            f"## {who[0].upper()}{who[1:]}\n\n    {ACTIONS[who][0]}\n\n| client | reaction |\n| --- | --- |\n"
        )
        text += "".join(f"| {client} | {runs[client, who]} |\n" for client in DRIVERS) + "\n"
    if os.environ.get("KLAMM_WRITE_DOCS"):
        DOCUMENT.write_text(text.rstrip("\n") + "\n")
    rows = [line.split(" is told ")[0] for line in DOCUMENT.read_text().splitlines() if " is told " in line]
    assert rows == [line.split(" is told ")[0] for line in text.splitlines() if " is told " in line]
