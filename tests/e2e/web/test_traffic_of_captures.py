"""The view `traffic` over captures that a test has made up."""

import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.captures.rows import Talk, connection, in_time, written
from tests.e2e.web.inspector import filtered, inspector, opened


def test_a_part_of_a_capture_and_a_filter_choose_what_counts(browser: Browser, tmp_path: Path) -> None:
    talk = Talk().opened().metadata().produce().fetch().heartbeat(27)
    capture = written(tmp_path / "a.arrow", talk.rows)
    with (
        inspector(tmp_path / "web.log", str(capture)) as address,
        opened(browser, f"{address}/#traffic") as page,
    ):
        expect(page.locator(".traffic .count")).to_contain_text("4 exchanges")
        filtered(page, "error != NONE")
        expect(page.locator(".traffic .count")).to_contain_text("· 1 exchange")
        expect(page).to_have_url(re.compile("where=error"))
        filtered(page, "acsk == 1")
        expect(page.get_by_role("alert").filter(has_text="did you mean acks?")).to_be_visible()
        page.goto(f"{address}/#traffic?until=1700000000.0015")
        expect(page.locator(".traffic .count")).to_contain_text("· 1 exchange")
        page.get_by_role("button", name="all of it").click()
        expect(page.locator(".traffic .count")).to_contain_text("4 exchanges")


def test_thousands_of_clients_do_not_stop_the_page(browser: Browser, tmp_path: Path) -> None:
    talks = [
        Talk(connection(number, "1", f"10.0.0.7:{number}"), f"client-{number}", now_ms=number).heartbeat()
        for number in range(1, 5001)
    ]
    capture = written(tmp_path / "a.arrow", in_time(*talks))
    with (
        inspector(tmp_path / "web.log", str(capture)) as address,
        opened(browser, f"{address}/#traffic") as page,
    ):
        expect(page.locator(".traffic .count")).to_contain_text("the first 300 of 5,000 are shown")
        assert page.locator(".list-of-nodes tbody tr").count() == 300
        page.get_by_role("searchbox", name="search").fill("client-4711")
        expect(page.locator(".list-of-nodes tbody tr")).to_have_count(1)
        page.get_by_role("searchbox", name="search").fill("")
        page.get_by_role("link", name=re.compile("^brokers")).click()
        page.locator(".list-of-nodes tbody a").first.click()
        details = page.get_by_role("region", name="chosen")
        expect(details.get_by_text("4,700 more are not shown")).to_be_visible()
        expect(details.locator(".graph")).to_contain_text("and 4,990 more")


def test_findings_about_the_chosen_client_are_listed(browser: Browser, tmp_path: Path) -> None:
    capture = written(tmp_path / "a.arrow", Talk().opened().metadata().produce().rows)
    found = {
        "severity": "high", "title": "idle <b>connections</b>", "what": "12 of them", "clients": ["app"],
        "topics": [], "brokers": [], "where": 'client_id == "app"', "since": 1700000000, "until": 1700000001,
    }  # fmt: skip
    with (
        inspector(tmp_path / "web.log", str(capture)) as address,
        opened(browser, f"{address}/#traffic") as page,
    ):
        page.locator(".list-of-nodes tbody a").first.click()
        heading = page.get_by_role("heading", name="Findings")
        expect(page.get_by_role("region", name="chosen").get_by_role("table", name="APIs")).to_be_visible()
        expect(heading).to_be_hidden()
        page.get_by_role("button", name="close").click()
        page.route(
            "**/api/findings", lambda route: route.fulfill(json=[found, {**found, "clients": ["another"]}])
        )
        page.locator(".list-of-nodes tbody a").first.click()
        expect(heading).to_be_visible()
        expect(page.locator(".findings li")).to_have_text(
            ["high idle <b>connections</b>: 12 of them exchanges"]
        )
