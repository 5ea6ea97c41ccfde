"""A running klamm in front of a real cluster with a shop's clients, and its inspector in a browser."""

from typing import NamedTuple

from playwright.sync_api import Browser, Page

from tests.e2e.conversation import ask
from tests.e2e.klamm_process import Klamm
from tests.e2e.light_traffic import LEADER, Shop


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


def of(client: str, api: str) -> str:
    return f'.row[data-client="{client}"][data-api="{api}"]'


def choose(page: Page, row: str) -> None:
    """A row of a list that stands still: Playwright looks for it and presses it in two steps."""
    page.locator(row).first.wait_for()
    page.get_by_role("button", name="freeze").click()
    page.locator(row).first.click()
