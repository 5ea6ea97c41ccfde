"""The confusion matrix, docs/detectors-confusion.md: the clients that detectors name, and what they did."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from klamm.pipeline.detectors.finding import Finding
from tests.pipeline import ground, healthy

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "detectors-confusion.md"
HEALTHY, NOBODY = "healthy", "nobody"
HEAD = """\
# Detectors and the clients that they name

For each detector there is a client that does what it looks for, by a mistake that is easily made, with a real
client library (`tests/pipeline/misbehaviour`). Here all of them ran side by side for {seconds:.0f} s on one
cluster of three brokers, Kafka {kafka}, through one klamm that captured, beside a healthy load: librdkafka,
aiokafka, kafka-python and the Java client with idempotent and transactional producers, classic, KIP-848 and
share groups, a reader that has read all, administrators. {rolled} All
detectors looked at everybody's traffic: {requests:,} requests of {clients} client ids.
`tests/pipeline/detectors/test_detectors.py` makes this run, asserts what is below, and writes this page where
`KLAMM_WRITE_DOCS` is set.

A detector has to name its own client. It may name others that do the same besides their own mistake. It must
name no other, and no healthy client.

| detector | its own client | others, rightly | others, wrongly | healthy clients |
|---|---|---|---|---|
"""


def owner(found: Finding) -> str:
    """The owner of a finding: a misbehaving client, the healthy load, or nobody."""
    name = found.client_id or (found.subject or "").partition(" ")[2]
    if name.startswith(healthy.CLIENT_ID):
        return HEALTHY
    modules = {each: ground.misbehaviour(each) for each in ground.names()}
    owners = [each for each, module in modules.items() if name.startswith(module.CLIENT_ID)]
    if found.client_id is None:
        owners += [
            each for each, module in modules.items() if found.subject in getattr(module, "SUBJECTS", ())
        ]
    return max(owners, key=lambda each: len(modules[each].CLIENT_ID), default=NOBODY)


def expected(name: str) -> set[str]:
    """The detectors that may name the client of a module."""
    return {name, *ground.misbehaviour(name).EXPECTED}


class Matrix(NamedTuple):
    """`named[owner][detector]`: the findings."""

    named: Mapping[str, Mapping[str, Sequence[Finding]]]

    @classmethod
    def of(cls, found: Iterable[Finding]) -> "Matrix":
        named: dict[str, dict[str, list[Finding]]] = defaultdict(lambda: defaultdict(list))
        for each in found:
            named[owner(each)][each.detector].append(each)
        return cls(named)

    def wrong(self) -> list[str]:
        """Findings that are nobody's fault, a line each."""
        return [
            f"{who}: {one.detector} names {one.client_id or one.subject}: {one.what}"
            for who, by_detector in self.named.items()
            for detector, findings in by_detector.items()
            if who in (HEALTHY, NOBODY) or detector not in expected(who)
            for one in findings
        ]


def document(matrix: Matrix, detectors: Iterable[str], **of_the_run: object) -> str:
    """docs/detectors-confusion.md."""
    return HEAD.format(**of_the_run) + "".join(_row(matrix, detector) for detector in sorted(detectors))


def _row(matrix: Matrix, detector: str) -> str:
    naming = {who for who, by_detector in matrix.named.items() if detector in by_detector}
    rightly = {who for who in naming - {detector, HEALTHY, NOBODY} if detector in expected(who)}
    cells = [
        detector,
        "named" if detector in naming else "not named",
        ", ".join(sorted(rightly)) or "-",
        ", ".join(sorted(naming - rightly - {detector, HEALTHY})) or "none",
        "named" if HEALTHY in naming else "none",
    ]
    return f"| {' | '.join(cells)} |\n"
