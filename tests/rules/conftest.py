"""Counts the places where an error was injected and seen by Kafka, and tells the number at the end."""

from dataclasses import dataclass, field

import pytest

from tests import summary_lines


@dataclass
class Injected:
    """The result of Kafka's response classes: places by (API, version), and those left out, with reasons."""

    places: dict[tuple[str, int], int] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


_injected = Injected()


@pytest.fixture(scope="session")
def injected() -> Injected:
    """Filled by the matrix of errors."""
    return _injected


def _line() -> str | None:
    """A line about the places that `injected` collected."""
    if not _injected.places:
        return None
    count, layouts = sum(_injected.places.values()), len(_injected.places)
    left_out = "; ".join(_injected.left_out) or "nothing"
    return f"errors injected at {count} places of {layouts} layouts; left out: {left_out}"


summary_lines.sources.append(_line)
