"""Counts the layouts that Kafka's own classes judged, and tells the number when all tests are done."""

import pytest

from klamm.decoders import API
from klamm.decoders.interpret import Layout
from tests import summary_lines

_judged: dict[str, set[Layout]] = {"decode": set(), "encode": set(), "read back": set()}


@pytest.fixture(scope="session")
def judged() -> dict[str, set[Layout]]:
    """The layouts whose messages were decoded, encoded, and read back by Kafka, all of them rightly."""
    return _judged


def _line() -> str | None:
    """The layouts that `judged` collected: those that were judged in every way."""
    if not any(_judged.values()):
        return None
    layouts = sum(2 * (api.versions.last - api.versions.first + 1) for api in API)
    in_every_way = set.intersection(*_judged.values())
    return f"wire layouts judged by Kafka's classes: {len(in_every_way)} of {layouts} ({', '.join(_judged)})"


summary_lines.sources.append(_line)
