"""Faults that are put into klamm on purpose are found."""

import pytest

from tests.simulation.fault_table import rows
from tests.simulation.faults import FAULTS, MOST_SEEDS, Planted, found_after


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.text)
def test_a_fault_is_found(fault: Planted) -> None:
    assert found_after(fault) is not None, f"not in {MOST_SEEDS} seeds"


def test_the_page_has_a_row_for_each_fault() -> None:
    assert list(rows()) == [fault.text for fault in FAULTS]
    assert max(rows().values()) <= MOST_SEEDS
