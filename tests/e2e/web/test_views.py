"""Several views of the inspector: names of clients, phones, people who use other means."""

import re

import pytest
from confluent_kafka.admin import AdminClient
from playwright.sync_api import Page, expect

from klamm.client import Klamm as Client
from tests.brokers.processes import wait_for
from tests.e2e.conversation import ask
from tests.e2e.light_traffic import BILLING, COMMON, PATIENCE_S, SHOP
from tests.e2e.web.inspected_shop import Ground, choose, of
from tests.e2e.web.inspector import contrasts_of_placeholders, filtered, opened, violations

pytestmark = pytest.mark.brokers


def test_names_from_the_wire_are_text_in_every_view(page: Page, ground: Ground) -> None:
    name = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    page.locator(".row[data-api]").first.wait_for()
    client = AdminClient({**COMMON, "bootstrap.servers": ground.klamm.bootstrap, "client.id": name})
    filtered(page, f'client_id == "{name}"')
    rows = page.locator(f".row[data-client='{name}']")
    wait_for(lambda: client.list_topics(timeout=PATIENCE_S) and rows.count(), "a row of the client")
    choose(page, f".row[data-client='{name}']")
    expect(page.locator("dd.client")).to_have_text(name)
    page.get_by_role("link", name="clusters").click()
    expect(page.get_by_role("cell", name=name).first).to_be_visible()
    assert page.locator("td img, dd img, .row img").count() == 0
    Client(ground.klamm.admin).add_rule(
        {"name": "<b>bold</b>", "api": "Fetch", "client": "nobody", "delay": "1ms"}
    )
    page.get_by_role("link", name="rules").click()
    expect(page.get_by_role("cell", name="<b>bold</b>", exact=True)).to_be_visible()


@pytest.mark.parametrize("view", ["exchanges", "rules", "paused", "clusters"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_hinders_people_who_use_other_means(view: str, scheme: str, ground: Ground) -> None:
    with opened(ground.browser, f"{ground.address}/#{view}", color_scheme=scheme) as page:
        if view == "exchanges":
            choose(page, of(SHOP, "Produce"))
            page.locator(".side.request .field").first.wait_for()
        else:
            page.get_by_role("heading", level=2).first.wait_for()
        assert violations(page) == []
        assert min(contrasts_of_placeholders(page), default=21.0) >= 4.5


def test_a_phone_shows_the_clusters_without_words_in_pieces(ground: Ground) -> None:
    size = {"width": 390, "height": 800}
    with opened(ground.browser, f"{ground.address}/#clusters", viewport=size, has_touch=True) as page:
        page.get_by_role("button", name="close").first.wait_for()
        heads = page.get_by_role("columnheader")
        one_line = heads.first.evaluate("head => 2 * parseFloat(getComputedStyle(head).lineHeight)")
        assert max(heads.evaluate_all("heads => heads.map((head) => head.clientHeight)")) < one_line
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert violations(page) == []


def test_groups_stay_where_they_came_first_and_lanes_have_the_order_of_their_names(ground: Ground) -> None:
    with opened(ground.browser, f"{ground.address}/#groups") as page:
        names, host = page.locator(".timeline .name.group b"), page.locator(".timeline .name small[title]")
        expect(names).to_have_text([f"▾ {BILLING}"])
        asked = {"group_id": "a-group-that-fails", "generation_id": 1}
        for member in ("member-10", "member-9"):
            refused = ask(ground.klamm.address, "Heartbeat", 3, {"member_id": member, **asked})
            assert refused["error_code"] != 0
        lanes = page.locator(".timeline .name:not(.group) b", has_text="member-")
        expect(lanes).to_have_text([re.compile(r"\(member-9\)"), re.compile(r"\(member-10\)")])
        expect(names).to_have_text([f"▾ {BILLING}", f"▾ {asked['group_id']}"])
        expect(page.locator(".timeline .name.group .sums").last).to_have_text(re.compile("^2 ✕"))
        expect(host.nth(1)).to_have_attribute("title", re.compile(r"^127\.0\.0\.1\nmember id: "))


def test_a_phone_has_its_head_in_three_lines(ground: Ground) -> None:
    size = {"width": 400, "height": 800}
    with opened(ground.browser, f"{ground.address}/#captures", viewport=size) as page:
        one_line = page.get_by_role("link", name="captures").evaluate("link => link.clientHeight")
        expect(page.get_by_role("banner").get_by_role("status")).to_contain_text("klamm at")
        assert page.get_by_role("banner").evaluate("head => head.clientHeight") < 4 * one_line
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert violations(page) == []


def test_a_phone_can_show_an_exchange(ground: Ground) -> None:
    size = {"width": 400, "height": 800}
    with opened(ground.browser, ground.address, viewport=size, has_touch=True) as page:
        page.locator(of(SHOP, "Produce")).first.wait_for()
        page.get_by_role("button", name="freeze").tap()
        page.get_by_role("grid").evaluate("list => list.scrollTo(0, 0)")
        page.locator(of(SHOP, "Produce")).first.tap()
        page.locator(".side.request .field").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
