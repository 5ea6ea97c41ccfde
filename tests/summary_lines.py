"""Lines about how much the tests have really seen, printed when all are done."""

from collections.abc import Callable

sources: list[Callable[[], str | None]] = []
elsewhere: list[str] = []  # lines from the workers of pytest-xdist


def lines() -> list[str]:
    """The lines of tests that ran in this process."""
    return [line for line in (source() for source in sources) if line]
