"""Exchanges are chosen by what they carry."""

from __future__ import annotations

import pytest

from klamm.client.sightings import Sought
from klamm.client.types import Exchange

SEEN = Exchange(0.0, "eu-1", "2", "127.0.0.1:5", "Produce", 9, "shop", "broker", 10, 10, 1.0)


@pytest.mark.parametrize(
    ("cluster", "holds"),
    [("eu-1", True), ("eu-*", True), (["us", "eu-?"], True), ("us", False), (None, True)],
)
def test_an_exchange_is_chosen_by_its_cluster(cluster: str | list[str] | None, holds: bool) -> None:
    sought = Sought.of("Produce", cluster=cluster)
    assert sought.holds(SEEN) is holds
    assert ("cluster" in str(sought)) is (cluster is not None)
