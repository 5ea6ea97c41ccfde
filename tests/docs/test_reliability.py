"""The table of docs/reliability.md is of the attacks that `make bench-hostile` makes."""

import re

from benchmarks.hostile.attacks import ATTACKS
from tests.brokers.jars import ROOT

PAGE = (ROOT / "docs" / "reliability.md").read_text()


def test_the_table_has_a_row_for_each_attack() -> None:
    rows = [row.split(" | ")[0].removeprefix("| ") for row in PAGE.splitlines() if " ms |" in row]
    assert rows == [attack.name for attack in ATTACKS]
    assert re.search(r"^bench-hostile:", (ROOT / "Makefile").read_text(), re.MULTILINE)
