"""The table of docs/reliability.md: the faults that were put in, and the seeds until each was found."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.brokers.jars import ROOT
from tests.simulation.faults import FAULTS, found_after

PAGE = ROOT / "docs" / "reliability.md"
HEAD = "| fault | seeds | what did not hold |\n|---|---|---|\n"
TABLE = re.compile(re.escape(HEAD) + r"(\|.*\n)*")


def write() -> None:
    """Put every fault in, in turn, and write the table. Raises AssertionError for one that is not found."""
    found = {}
    for fault in FAULTS:
        taken = found_after(fault)
        assert taken is not None, f"not found: {fault.text}"
        found[fault.text] = taken
        print(f"{taken[0]:5} {fault.text}", flush=True)
    PAGE.write_text(TABLE.sub(lambda _: table(found), PAGE.read_text()))


def table(found: Mapping[str, tuple[int, str]]) -> str:
    rows = [f"| {text} | {seeds} | {invariant} |\n" for text, (seeds, invariant) in found.items()]
    return HEAD + "".join(rows)


def rows() -> dict[str, int]:
    """The table as it stands: the seeds that each fault took."""
    match = TABLE.search(PAGE.read_text())
    assert match is not None, f"{PAGE.name} has no table of faults"
    cells = [row.strip("| ").split(" | ") for row in match[0].splitlines()[2:]]
    return {text: int(seeds) for text, seeds, _ in cells}
