"""A running klamm in front of a real cluster with a shop's clients, and its inspector in a browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Page

from klamm.client import Klamm as Client
from tests.brokers.kraft import Cluster
from tests.e2e.conversation import ask
from tests.e2e.klamm_process import Klamm
from tests.e2e.light_traffic import (
    LEADER,
    Shop,
    shop_behind_klamm,
)
from tests.e2e.web.inspector import (
    chromium,
    inspector,
    opened,
)


class Ground(NamedTuple):
    """A klamm at work, and the address of its inspector."""

    klamm: Klamm
    shop: Shop
    address: str
    browser: Browser

    @property
    def leader(self) -> tuple[str, int]:
        """Where klamm stands for the leader of the shop's partition."""
        asked = {"topics": [{"name": self.shop.topic}]}
        brokers = ask(self.klamm.address, "Metadata", 8, asked)["brokers"]
        [found] = [(each["host"], each["port"]) for each in brokers if each["node_id"] == LEADER]
        return found


@contextmanager
def inspected(kafka: Cluster, folder: Path) -> Iterator[Ground]:
    with (
        shop_behind_klamm(kafka, folder / "klamm.log") as (klamm, shop),
        inspector(folder / "web.log", "--admin", klamm.admin) as address,
        chromium() as browser,
    ):
        yield Ground(klamm, shop, address, browser)


@contextmanager
def looking(ground: Ground) -> Iterator[Page]:
    """The list of exchanges; rules that were made end with it."""
    with opened(ground.browser, ground.address) as found:
        yield found
    Client(ground.klamm.admin).rules_off()


def of(client: str, api: str) -> str:
    return f'.row[data-client="{client}"][data-api="{api}"]'


def choose(page: Page, row: str) -> None:
    """A row of a list that stands still: Playwright looks for it and presses it in two steps."""
    page.locator(row).first.wait_for()
    page.get_by_role("button", name="freeze").click()
    page.locator(row).first.click()
