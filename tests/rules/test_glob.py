"""Names as rules select them."""

import pytest

from klamm.rules.glob import Glob


@pytest.mark.parametrize(
    ("patterns", "fit", "misfit"),
    [
        (["orders"], "orders", "orders-1"),
        (["orders"], "orders", "Orders"),
        (["orders-*"], "orders-1", "old-orders-1"),
        (["orders-?"], "orders-1", "orders-12"),
        (["orders-[ab]"], "orders-b", "orders-c"),
        (["orders-*", "bills"], "bills", "bill"),
        (["orders-*", "!orders-dlq"], "orders-1", "orders-dlq"),
        (["!orders-dlq"], "bills", "orders-dlq"),
    ],
)
def test_a_name_fits_one_of_the_patterns_and_none_that_is_taken_out(
    patterns: list[str], fit: str, misfit: str
) -> None:
    assert Glob(*patterns)(fit)
    assert not Glob(*patterns)(misfit)
