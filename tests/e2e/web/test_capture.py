"""The inspector over a capture: of another machine, of a colleague, of a test run."""

import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.captures.rows import Talk, written
from tests.e2e.web.inspector import filtered, inspector, opened, reloaded, violations

MANY = 60_000


def test_a_capture_is_read_filtered_and_its_exchanges_have_links(browser: Browser, tmp_path: Path) -> None:
    capture = written(tmp_path / "a.arrow", Talk().opened().metadata().produce().fetch().heartbeat(27).rows)
    with inspector(tmp_path / "web.log", str(capture)) as address:
        with opened(browser, address) as page:
            rows = page.locator(".row[data-api]")
            expect(rows).to_have_count(4)
            expect(page.locator("#source")).to_contain_text(f"capture {capture}")
            views = ["exchanges", "traffic", "groups", "producers", "sessions", "captures"]
            expect(page.get_by_role("navigation", name="views").get_by_role("link")).to_have_text(views)
            filtered(page, "error != NONE")
            expect(rows).to_have_count(1)
            rows.click()
            error = page.locator('.side.answer .field[data-field="error_code"]')
            expect(error).to_contain_text("27 REBALANCE_IN_PROGRESS")
            expect(page).to_have_url(re.compile(r"#exchanges\?where=.*&exchange=\d+-\d+-1-\d+$"))
            link = page.url
            assert violations(page) == []
        with opened(browser, link) as page:
            expect(page.locator('.side.answer .field[data-field="error_code"]')).to_contain_text("27 ")
            expect(page.locator(".row[data-api]")).to_have_count(1)
            page.get_by_role("button", name="close").click()
            expect(page.locator(".detail")).to_be_hidden()


def test_a_list_without_exchanges_says_why(browser: Browser, tmp_path: Path) -> None:
    capture = written(tmp_path / "a.arrow", Talk().opened().metadata().heartbeat(0).rows)
    with inspector(tmp_path / "web.log", str(capture)) as address, opened(browser, address) as page:
        empty = page.locator(".empty")
        expect(page.locator(".row[data-api]")).to_have_count(2)
        expect(empty).to_have_text("")
        filtered(page, "error != NONE")
        expect(empty).to_have_text("No exchange of this capture matches the filter.")
        page.get_by_role("button", name="hide", exact=True).click()
        page.get_by_label("heartbeats").check()
        expect(empty).to_have_text("No exchange of this capture matches the filter and is not hidden.")
        assert violations(page) == []
        filtered(page, "")
        expect(page.locator(".row[data-api]")).to_have_count(1)
        expect(empty).to_have_text("")


def test_a_request_that_klamm_withheld_is_told_in_the_list_and_beside_it(
    browser: Browser, tmp_path: Path
) -> None:
    talk = Talk().opened().heartbeat()
    talk.rows[-2:] = [talk.rows[-2]._replace(fate="withheld")]
    capture = written(tmp_path / "a.arrow", talk.rows)
    with inspector(tmp_path / "web.log", str(capture)) as address, opened(browser, address) as page:
        error = page.locator('.row.by-klamm > [data-column="error"]')
        expect(error).to_have_text("request withheld")
        error.click()
        expect(page.locator(".facts dd.klamm")).to_have_text("request withheld")


def test_a_capture_without_exchanges_says_so(browser: Browser, tmp_path: Path) -> None:
    capture = written(tmp_path / "a.arrow", Talk().opened().rows)
    with inspector(tmp_path / "web.log", str(capture)) as address, opened(browser, address) as page:
        expect(page.locator(".empty")).to_have_text("This capture has no exchanges.")


def test_a_filter_with_a_mistake_is_told_and_nothing_is_counted(browser: Browser, tmp_path: Path) -> None:
    capture = written(tmp_path / "a.arrow", Talk().opened().metadata().heartbeat(0).rows)
    with (
        inspector(tmp_path / "web.log", str(capture)) as address,
        opened(browser, f"{address}/#exchanges?where=acsk%20==%201") as page,
    ):
        mistake = page.get_by_role("alert").filter(has_text="did you mean acks?")
        expect(mistake).to_be_visible()
        expect(page.locator(".count")).to_have_text("")
        expect(page.locator(".empty")).to_have_text("No exchanges are shown until the mistake is mended.")
        page.goto(f"{address}/#exchanges?where=api%20==%20Metadata")
        expect(page.locator(".count")).to_contain_text("1 exchange")
        expect(mistake).to_be_hidden()


def test_the_preset_that_is_in_force_is_told_however_it_came(browser: Browser, tmp_path: Path) -> None:
    capture = written(tmp_path / "a.arrow", Talk().opened().metadata().heartbeat(27).rows)
    errors = "where=error%20!%3D%20NONE"
    with (
        inspector(tmp_path / "web.log", str(capture)) as address,
        opened(browser, f"{address}/#exchanges?{errors}") as page,
    ):
        told = page.get_by_label("ready filters").locator("option:checked")
        expect(told).to_have_text("errors")
        reloaded(page)
        expect(told).to_have_text("errors")
        filtered(page, "api == Metadata")
        expect(told).to_have_text("own filter")
        page.get_by_label("ready filters").select_option("errors")
        expect(page.locator(".row[data-api]")).to_have_count(1)
        page.goto(f"{address}/#exchanges")
        expect(page.locator(".row[data-api]")).to_have_count(2)
        expect(told).to_have_text("all")
        for view in ("groups", "traffic"):
            page.goto(f"{address}/#{view}?{errors}")
            expect(told).to_have_text("errors")


def test_beside_an_open_exchange_the_list_begins_with_the_names_of_errors(
    browser: Browser, tmp_path: Path
) -> None:
    asked = {"group_id": "billing", "generation_id": 1, "member_id": "m"}
    talk = Talk().opened().exchange("Heartbeat", 3, asked, {"error_code": 27}, fate="made")
    capture = written(tmp_path / "a.arrow", talk.rows)
    with inspector(tmp_path / "web.log", str(capture)) as address, opened(browser, address) as page:
        error = page.locator('.row[data-api] > [data-column="error"]')
        expect(error).to_have_text("REBALANCE_IN_PROGRESS by klamm")
        error.click()
        page.locator(".side.answer .field").first.wait_for()
        expect(error).to_have_text("REBALANCE_IN_PROGRESS by klamm")
        assert page.get_by_role("grid").evaluate("list => list.scrollWidth <= list.clientWidth")


def test_more_than_a_page_holds_is_told_and_scrolled_through(browser: Browser, tmp_path: Path) -> None:
    talk = Talk().opened()
    for _ in range(MANY):
        talk.heartbeat(0)
    capture = written(tmp_path / "a.arrow", talk.rows)
    with inspector(tmp_path / "web.log", str(capture)) as address, opened(browser, address) as page:
        expect(page.locator(".count")).to_contain_text("the first 50,000 are shown")
        assert page.locator(".row[data-api]").count() < 100
        page.get_by_role("grid").focus()
        page.keyboard.press("End")
        expect(page.locator('.row.chosen[data-number="49999"]')).to_be_visible()
        page.keyboard.press("Home")
        expect(page.locator('.row.chosen[data-number="0"]')).to_be_visible()
