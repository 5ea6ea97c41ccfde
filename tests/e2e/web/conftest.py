"""A browser for the tests of a file, and its patience."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.web.inspector import PATIENCE_MS, chromium

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found
