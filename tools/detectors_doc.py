"""Write docs/detectors.md from the detectors: python -m tools.detectors_doc"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from klamm.pipeline.detectors.detector import Detector, Threshold
from klamm.pipeline.detectors.finding import SEVERITIES
from klamm.pipeline.detectors.registry import DETECTORS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "detectors.md"
MISBEHAVIOUR = ROOT / "tests" / "pipeline" / "misbehaviour"
HEAD = """\
# Detectors

`klamm analyze` has these detectors. Each is a file in a folder of `pipeline/detectors`, works on the
[tables](pipeline.md) and needs no content of records where it does not say so. A finding names the client,
the time, the number of times, and exchanges to look at; the sections below name the settings of Kafka to
change.

Each has a client that sets it off with a real client library and a mistake that people make easily:
`tests/pipeline/misbehaviour`. [detectors-confusion.md](detectors-confusion.md) lists the clients
that they named when all of these ran beside a healthy load. Where the advice is *tried*, this client also
does its work as the advice says, and is named no more: `tests/pipeline/detectors/test_cures.py`. This page is
made by `make docs`.
"""


def page() -> str:
    """The whole page: a table of all, the gravest first, and a section for each."""
    ordered = sorted(DETECTORS, key=lambda each: (SEVERITIES.index(each.severity), each.name))
    rows = [_row(each) for each in ordered]
    sections = ["\n".join(_section(each)) for each in sorted(DETECTORS, key=lambda each: each.name)]
    heads = "| detector | | severity, at most | advice |\n|---|---|---|---|\n"
    return "\n".join([HEAD, heads + "".join(rows), *sections])


def _row(detector: Detector) -> str:
    name, tried = detector.name, "tried" if _is_tried(detector.name) else ""
    return f"| [{name}](#{name}) | {detector.title} | {detector.severity} | {tried} |\n"


def _is_tried(name: str) -> bool:
    (client,) = MISBEHAVIOUR.glob(f"*/{name}.py")
    return "\ndef cured(" in client.read_text()


def _section(detector: Detector) -> Iterator[str]:
    about = " ".join((sys.modules[detector.find.__module__].__doc__ or "").split())
    settings = ", ".join(f"`{setting}`" for setting in detector.settings)
    yield f"## {detector.name}\n"
    yield f"{about}\n"
    yield f"**What to change.** {detector.advice}" + (f" Settings: {settings}.\n" if settings else "\n")
    yield f"Source: {detector.source}.\n"
    if detector.thresholds:
        yield "| threshold | | source |\n|---|---|---|"
        yield from (_threshold(name, each) for name, each in detector.thresholds.items())
        yield ""


def _threshold(name: str, threshold: Threshold) -> str:
    value = f"{threshold.value:,.0f}" if threshold.value == int(threshold.value) else str(threshold.value)
    return f"| `{name}` | {value} {threshold.unit} | {threshold.source} |"


if __name__ == "__main__":
    PAGE.write_text(page())
