"""The address of the list says what is shown, and its filters are entries of the browser's history."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.captures.rows import Talk, written
from tests.e2e.web.inspector import filtered, inspector, opened, rows


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page of a capture with four exchanges, of which one has an error."""
    folder = tmp_path_factory.mktemp("web")
    capture = written(folder / "a.arrow", Talk().opened().metadata().produce().fetch().heartbeat(27).rows)
    with inspector(folder / "web.log", str(capture)) as found:
        yield found


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with opened(browser, address) as found:
        expect(rows(found)).to_have_count(4)
        yield found


def field(page: Page) -> Locator:
    return page.get_by_role("combobox", name="filter", exact=True)


def view(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="views").get_by_role("link", name=name, exact=True).click()


def test_the_list_is_left_and_found_again_with_its_filter_and_the_chosen_exchange(
    page: Page, browser: Browser
) -> None:
    filtered(page, "api == Produce")
    expect(rows(page)).to_have_count(1)
    page.get_by_role("button", name="columns", exact=True).click()
    page.get_by_role("button", name="remove broker", exact=True).click()
    page.get_by_role("button", name="columns", exact=True).click()
    rows(page).click()
    detail = page.locator(".detail")
    expect(detail.locator(".side.request .field").first).to_be_visible()
    shown = page.url
    view(page, "captures")
    expect(page.get_by_role("heading", name="Findings")).to_be_visible()
    view(page, "exchanges")
    expect(page).to_have_url(shown)
    expect(detail).to_be_visible()
    expect(rows(page)).to_have_count(1)
    page.get_by_role("grid").focus()
    page.keyboard.press("/")
    expect(field(page)).to_be_focused()
    expect(page).to_have_url(shown)
    with opened(browser, page.url) as other:
        expect(other.locator(".detail .side.request .field").first).to_be_visible()
        expect(rows(other)).to_have_count(1)
        expect(other).to_have_url(shown)


def test_an_address_without_an_exchange_shows_none(page: Page, address: str) -> None:
    rows(page).first.click()
    expect(page.locator(".detail")).to_be_visible()
    page.goto(f"{address}/#exchanges?where=api%20==%20Fetch")
    expect(page.locator(".detail")).to_be_hidden()
    expect(rows(page)).to_have_count(1)


def test_a_filter_that_is_typed_is_in_force_when_it_is_applied(page: Page) -> None:
    field(page).fill("api == Produce")
    page.get_by_role("button", name="hide", exact=True).click()
    page.get_by_label("empty fetches").check()
    expect(rows(page)).to_have_count(3)
    page.get_by_label("empty fetches").uncheck()
    expect(rows(page)).to_have_count(4)
    field(page).press("Enter")
    expect(rows(page)).to_have_count(1)


def test_back_and_forward_lead_from_filter_to_filter_with_its_list(page: Page) -> None:
    def shows(text: str, count: int) -> None:
        expect(field(page)).to_have_value(text)
        expect(rows(page)).to_have_count(count)

    filtered(page, "api == Produce")
    shows("api == Produce", 1)
    filtered(page, "api == Produce")  # once more the same
    filtered(page, "")
    shows("", 4)
    rows(page).nth(1).click()  # no entry
    page.get_by_label("ready filters").select_option("errors")
    shows("error != NONE", 1)
    filtered(page, "api = Fetch")  # a mistake, which the next filter takes the place of
    expect(page.get_by_role("alert").filter(has_text="=")).to_be_visible()
    filtered(page, "api in (Fetch, Produce)")
    shows("api in (Fetch, Produce)", 2)
    page.go_back()
    shows("error != NONE", 1)
    expect(page.locator(".detail")).to_be_visible()
    page.go_back()
    shows("", 4)
    page.go_back()
    shows("api == Produce", 1)
    expect(page.locator(".detail")).to_be_hidden()
    page.go_back()
    shows("", 4)
    page.go_forward()
    shows("api == Produce", 1)
