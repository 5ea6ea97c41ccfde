"""A browser for the tests of a file, its patience, and the ground of files that have none of their own."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from klamm.client import Klamm as Client
from tests.brokers.kraft import Cluster
from tests.e2e.light_traffic import shop_behind_klamm
from tests.e2e.web.inspected_shop import Ground
from tests.e2e.web.inspector import PATIENCE_MS, chromium, inspector, opened

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def ground(kafka: Cluster, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    folder = tmp_path_factory.mktemp("web")
    with (
        shop_behind_klamm(kafka, folder / "klamm.log") as (klamm, shop),
        inspector(folder / "web.log", "--admin", klamm.admin) as address,
    ):
        yield Ground(klamm, shop, address, browser)


@pytest.fixture
def page(ground: Ground) -> Iterator[Page]:
    """The list of exchanges; rules that were made end with it."""
    with opened(ground.browser, ground.address) as found:
        yield found
    Client(ground.klamm.admin).rules_off()
