"""The view `traffic`, over a running klamm with real clients, and over the capture of them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient
from playwright.sync_api import Browser, Locator, Page, expect

from klamm.client import Klamm as Client
from tests.brokers.kraft import Cluster
from tests.brokers.processes import wait_for
from tests.e2e.klamm_process import Klamm
from tests.e2e.light_traffic import BILLING, COMMON, LEADER, PATIENCE_S, SHOP, Shop, shop_behind_klamm
from tests.e2e.web.inspector import chromium, inspector, opened, violations

pytestmark = pytest.mark.brokers
REFUSED = "NOT_ENOUGH_REPLICAS"
CLUSTER = "kafka"


class Ground(NamedTuple):
    """A klamm at work that keeps a capture, and the address of its inspector."""

    klamm: Klamm
    shop: Shop
    capture: Path
    address: str
    browser: Browser


@pytest.fixture(scope="module")
def ground(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    folder = tmp_path_factory.mktemp("traffic")
    capture = folder / "capture"
    with (
        shop_behind_klamm(kafka, folder / "klamm.log", "--capture", str(capture)) as (klamm, shop),
        inspector(folder / "web.log", "--admin", klamm.admin) as address,
        chromium() as browser,
    ):
        yield Ground(klamm, shop, capture, address, browser)


@pytest.fixture
def page(ground: Ground) -> Iterator[Page]:
    with opened(ground.browser, f"{ground.address}/#traffic") as found:
        yield found
    Client(ground.klamm.admin).rules_off()


def of(page: Page, kind: str, name: str) -> Locator:
    """The row of a node."""
    return page.locator(f'.list-of-nodes tr[data-row="{kind} {CLUSTER} {name}"]')


def choose(page: Page, kind: str, name: str) -> Locator:
    """Choose a node of the table that is shown; its details."""
    of(page, kind, name).get_by_role("link").click()
    details = page.get_by_role("region", name="chosen")
    expect(details.get_by_role("heading", level=2)).to_contain_text(name)
    return details


def fact(details: Locator, name: str) -> Locator:
    return details.locator(f'dd[data-fact="{name}"]')


def first_number(text: str) -> int:
    found = re.match(r"[\d,]+", text)
    assert found, text
    return int(found[0].replace(",", ""))


def refreshed(page: Page, times: int = 1) -> None:
    """Wait until the figures have come anew."""
    view = page.locator(".traffic")
    turns = int(view.get_attribute("data-turns") or 0)
    wait_for(lambda: int(view.get_attribute("data-turns") or 0) >= turns + times, "new figures")


def test_the_errors_of_a_client_are_those_that_a_rule_gave_it(page: Page, ground: Ground) -> None:
    """All of them: the page counts from before the first one on."""
    page.get_by_label("period").select_option("opened")
    refreshed(page)
    rule = {"name": "refuse", "api": "Produce", "client": SHOP, "error": REFUSED, "times": 7}
    with ground.shop.between:
        Client(ground.klamm.admin).add_rule(rule)
    wait_for(lambda: Client(ground.klamm.admin).rule("refuse").hits == 7, "the rule's hits")
    details = choose(page, "client", SHOP)
    errors = details.get_by_role("table", name="errors")
    expect(errors.locator("tbody tr")).to_have_count(1)
    expect(errors.locator("tbody td")).to_contain_text([REFUSED, "Produce", "klamm", "7"])
    expect(fact(details, "errors")).to_contain_text("7, ")
    edge = details.locator(f'table[aria-label="talks to"] tr[data-row="broker {CLUSTER} {LEADER}"]')
    expect(edge).to_contain_text("%")
    expect(details.locator(".graph .edge:not(.idle)").first).not_to_have_class(re.compile("fine"))
    first = page.locator(".list-of-nodes tbody tr").first
    expect(first).to_contain_text(SHOP)


def test_requests_are_counted_as_the_client_made_them(page: Page, ground: Ground) -> None:
    """Since klamm began: it has seen all of them, and the producer has counted its own."""
    page.get_by_label("period").select_option("started")
    details = choose(page, "client", SHOP)
    apis = details.get_by_role("table", name="APIs")
    expect(apis.locator("tbody tr").first).to_contain_text("Produce")

    def exact() -> int:
        rows = ground.klamm.counters()["requests"]
        return sum(each["requests"] for each in rows if each["client_id"] == SHOP)

    def counted() -> int:
        return first_number(fact(details, "requests").inner_text())

    with ground.shop.between:
        wait_for(lambda: counted() == exact(), "all requests")
        assert counted() >= len(ground.shop.delivered)


def test_a_link_keeps_the_period_that_was_chosen_just_now(page: Page, ground: Ground) -> None:
    """Also where it is followed before klamm has answered for that period."""
    link = of(page, "client", SHOP).get_by_role("link")
    expect(link).to_be_visible()
    page.route("**/api/traffic*", lambda _: None)
    page.get_by_label("period").select_option("started")
    expect(link).to_have_attribute("href", re.compile("period=started"))
    page.unroute("**/api/traffic*")


def test_software_connections_and_addresses_are_told(page: Page, ground: Ground) -> None:
    details = choose(page, "client", BILLING)
    expect(fact(details, "software")).to_contain_text("rdkafka")
    mine = {one.id for one in Client(ground.klamm.admin).connections() if one.client_id == BILLING}
    links = details.get_by_role("table", name="connections").locator("tbody tr td:first-child")
    wait_for(lambda: {int(text) for text in links.all_inner_texts()} & mine, "its connections")
    expect(details.get_by_text("does not count topics and groups by client")).to_be_visible()
    page.get_by_role("link", name=re.compile("^software")).click()
    page.locator(".list-of-nodes").get_by_role("link", name=re.compile("rdkafka")).first.click()
    expect(of(page, "client", BILLING)).to_be_visible()
    expect(page.get_by_role("searchbox", name="search")).to_have_value(re.compile("rdkafka"))


def test_from_broker_to_client_to_its_exchanges(page: Page, ground: Ground) -> None:
    page.get_by_role("link", name=re.compile("^brokers")).click()
    details = choose(page, "broker", str(LEADER))
    expect(fact(details, "state")).to_have_text("up")
    details.locator(".graph .neighbour", has_text=SHOP).click()
    expect(details.get_by_role("heading", level=2)).to_have_text(f"client {SHOP}")
    details.get_by_role("link", name="its exchanges").click()
    page.locator(f'.row[data-client="{SHOP}"]').first.wait_for()
    assert page.locator(f'.row[data-api]:not([data-client="{SHOP}"])').count() == 0
    page.go_back()
    details.get_by_role("link", name="only its errors").click()
    field = page.get_by_role("combobox", name="filter", exact=True)
    expect(field).to_have_value(f'client_id == "{SHOP}" and error != NONE')


def test_a_topic_of_a_running_klamm_says_what_is_not_known(page: Page, ground: Ground) -> None:
    page.get_by_role("link", name=re.compile("^topics")).click()
    details = choose(page, "topic", ground.shop.topic)
    expect(details.get_by_text("not which clients use it")).to_be_visible()
    expect(details.locator(".graph")).to_be_hidden()
    expect(details.get_by_role("table", name="APIs")).to_contain_text("Produce")


def test_sorting_searching_and_choosing_are_in_the_link(page: Page, ground: Ground) -> None:
    page.get_by_role("button", name="requests/s").click()
    expect(page.get_by_role("columnheader", name="requests/s")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("button", name="requests/s").click()
    expect(page.get_by_role("columnheader", name="requests/s")).to_have_attribute("aria-sort", "ascending")
    page.keyboard.press("/")
    page.keyboard.type(BILLING[:4])
    expect(page.locator(".list-of-nodes tbody tr")).to_have_count(1)
    choose(page, "client", BILLING)
    page.get_by_label("period").select_option("60")
    expect(page).to_have_url(re.compile(r"sort=requests.*order=up.*search=bill.*name=billing.*period=60"))
    with opened(ground.browser, page.url) as other:
        details = other.get_by_role("region", name="chosen")
        expect(details.get_by_role("heading", level=2)).to_have_text(f"client {BILLING}")
        expect(other.get_by_role("searchbox", name="search")).to_have_value(BILLING[:4])
        expect(other.get_by_label("period")).to_have_value("60")
        head = other.get_by_role("columnheader", name="requests/s").first
        expect(head).to_have_attribute("aria-sort", "ascending")
    page.get_by_role("button", name="close").click()
    expect(page.get_by_role("region", name="chosen")).to_be_hidden()
    expect(of(page, "client", BILLING).get_by_role("link")).to_be_focused()
    page.get_by_role("searchbox", name="search").fill("zzz")
    expect(page.get_by_text('No name here has "zzz" in it.')).to_be_visible()


def test_new_figures_leave_focus_scroll_position_and_selection_alone(page: Page, ground: Ground) -> None:
    page.set_viewport_size({"width": 1280, "height": 300})
    of(page, "client", SHOP).wait_for()
    page.locator(".list-of-nodes tbody tr").first.get_by_role("link").focus()
    page.keyboard.press("ArrowDown")
    focused = page.evaluate("document.activeElement.closest('tr').dataset.row")
    page.keyboard.press("Enter")
    details = page.get_by_role("region", name="chosen")
    expect(details).to_be_visible()
    details.evaluate("element => (element.scrollTop = 150)")
    page.evaluate(
        "getSelection().selectAllChildren(document.querySelector('.chosen-node dd[data-fact=software]'))"
    )
    selected = page.evaluate("String(getSelection())")
    refreshed(page, 3)
    assert page.evaluate("document.activeElement.closest('tr').dataset.row") == focused
    assert details.evaluate("element => element.scrollTop") == 150
    assert selected
    assert page.evaluate("String(getSelection())") == selected


def test_a_row_with_the_focus_stays_while_the_others_are_sorted_around_it(page: Page) -> None:
    of(page, "client", SHOP).get_by_role("link").focus()
    before = page.locator(".list-of-nodes tbody tr").count()
    for _ in range(3):
        page.evaluate("document.querySelector('.list-of-nodes th[data-column=name] button').click()")
        refreshed(page)
        focused = page.evaluate("document.activeElement.closest('tr').dataset.row")
        assert focused == f"client {CLUSTER} {SHOP}"
        shown = page.locator(".list-of-nodes tbody td:first-child").all_inner_texts()
        down = page.locator('th[aria-sort="descending"]').count() == 1
        assert shown == sorted(shown, reverse=down)
    assert before >= 2


def test_rows_keep_their_places_under_the_pointer(page: Page) -> None:
    """The order changes, but not while the pointer has just moved."""
    of(page, "client", SHOP).wait_for()
    names = page.locator(".list-of-nodes tbody td:first-child")
    page.get_by_role("button", name="client", exact=True).click()
    expect(page.locator('th[data-column="name"][aria-sort="ascending"]')).to_have_count(1)
    refreshed(page)
    up = names.all_inner_texts()
    of(page, "client", SHOP).dispatch_event("pointermove")
    page.evaluate("document.querySelector('.list-of-nodes th[data-column=name] button').click()")
    expect(page.locator('th[data-column="name"][aria-sort="descending"]')).to_have_count(1)
    assert names.all_inner_texts() == up
    expect(names).to_have_text(up[::-1])


def test_a_line_is_as_wide_as_its_rate(page: Page) -> None:
    """The busiest of the leader's clients has the widest line."""
    page.get_by_role("link", name=re.compile("^brokers")).click()
    details = choose(page, "broker", str(LEADER))
    edges = details.locator(".graph .edge:not(.idle)")
    wait_for(lambda: edges.count() >= 2, "edges to two clients")
    page.get_by_role("button", name="freeze").click()
    page.get_by_role("button", name="go on").wait_for()
    names = details.locator(".graph .neighbour .name").all_text_contents()
    widths = [
        float(edge.get_attribute("stroke-width") or 0) for edge in details.locator(".graph .edge").all()
    ]
    found = dict(zip(names, widths, strict=True))
    rows = details.get_by_role("table", name="talks to").locator("tbody tr").all()
    rates = {
        row.locator("td").first.inner_text().removeprefix("client "): float(
            row.locator('td[data-column="requests"]').inner_text().replace(",", "").replace("<", "")
        )
        for row in rows
    }
    most = max(rates.values())
    for name, rate in rates.items():
        assert found[name] == pytest.approx(1.2 + 7.8 * (rate / most) ** 0.5, abs=0.3)


def test_figures_that_are_frozen_stand_still(page: Page) -> None:
    of(page, "client", SHOP).wait_for()
    page.get_by_role("button", name="freeze").click()
    page.get_by_role("button", name="go on").wait_for()
    counted = page.get_by_role("status").last.inner_text()
    with opened(page.context.browser, page.url) as other:  # type: ignore[arg-type]
        of(other, "client", SHOP).wait_for()
        refreshed(other, 3)
    assert page.get_by_role("status").last.inner_text() == counted
    page.get_by_role("button", name="go on").click()
    refreshed(page, 2)


def test_names_from_the_wire_are_text(page: Page, ground: Ground) -> None:
    name = "<img src=x onerror=alert(1)>"
    client = AdminClient({**COMMON, "bootstrap.servers": ground.klamm.bootstrap, "client.id": name})
    client.list_topics(timeout=PATIENCE_S)
    details = choose(page, "client", name)
    expect(details.locator(".graph .middle")).to_contain_text(name[:8])
    assert page.locator(".traffic img").count() == 0


@pytest.mark.parametrize("table", ["client", "broker", "topic", "software"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_hinders_people_who_use_other_means(table: str, scheme: Any, ground: Ground) -> None:
    link = f"#traffic?table={table}&kind=client&cluster={CLUSTER}&name={SHOP}"
    with opened(ground.browser, f"{ground.address}/{link}", color_scheme=scheme) as page:
        page.get_by_role("region", name="chosen").get_by_role("table", name="APIs").wait_for()
        assert violations(page) == []


def test_a_phone_can_show_it(ground: Ground) -> None:
    size = {"width": 400, "height": 800}
    with opened(ground.browser, f"{ground.address}/#traffic", viewport=size, has_touch=True) as page:
        of(page, "client", SHOP).get_by_role("link").tap()
        page.get_by_role("region", name="chosen").locator(".graph .neighbour").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_a_klamm_that_is_away_is_told_and_the_last_figures_stay(ground: Ground, tmp_path: Path) -> None:
    with opened(ground.browser, f"{ground.address}/#traffic") as page:
        of(page, "client", SHOP).wait_for()
        page.route(
            "**/api/traffic*", lambda route: route.fulfill(status=422, json={"error": "no klamm answers"})
        )
        expect(page.locator(".traffic .count")).to_have_text("no klamm answers")
        assert of(page, "client", SHOP).is_visible()
        page.unroute("**/api/traffic*")
        expect(page.locator(".traffic .count")).to_contain_text("over ")


def test_a_capture_of_real_clients_has_topics_groups_and_the_same_errors(
    ground: Ground, tmp_path: Path
) -> None:
    rule = {"name": "once", "api": "Produce", "client": SHOP, "error": REFUSED, "times": 3}
    client = Client(ground.klamm.admin)
    client.add_rule(rule)
    wait_for(lambda: client.rule("once").hits == 3, "the rule's hits")
    client.end_capture()
    hits = sum(each["own_errors"].get(REFUSED, 0) for each in ground.klamm.counters()["requests"])
    with (
        inspector(tmp_path / "web.log", str(ground.capture)) as address,
        opened(ground.browser, f"{address}/#traffic") as page,
    ):
        details = choose(page, "client", SHOP)
        expect(page.locator(".traffic .count")).not_to_contain_text("reading")
        row = details.get_by_role("table", name="errors").locator("tbody tr", has_text=REFUSED)
        expect(row.locator('td[data-column="count"]')).to_have_text(str(hits))
        edges = details.get_by_role("table", name="talks to")
        expect(edges).to_contain_text(f"topic {ground.shop.topic}")
        edges.get_by_role("link", name=f"topic {ground.shop.topic}").click()
        expect(fact(details, "clients")).to_have_text("2")
        expect(fact(details, "bytes of records out")).to_contain_text("/s")
        details.locator(".graph .neighbour", has_text=BILLING).click()
        expect(fact(details, "groups")).to_have_text(BILLING)
        assert violations(page) == []
