"""The view `captures`: over a capture of real clients, and over a klamm that makes one."""

import json
import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from klamm.captures.choosing import chosen
from klamm.captures.exchanges import Exchange, exchanges
from klamm.captures.storage.reading import read
from klamm.client import Klamm as Client
from klamm.dashboards.captured import as_exchange
from tests.brokers.kraft import Cluster
from tests.brokers.processes import wait_for
from tests.e2e.klamm_process import COMMAND
from tests.e2e.light_traffic import SHOP, shop_behind_klamm
from tests.e2e.web.inspector import (
    chromium,
    filtered,
    inspector,
    opened,
    reloaded,
    rows,
    violations,
    visited,
)

pytestmark = pytest.mark.brokers
REFUSED, TIMES = "POLICY_VIOLATION", 5
COUNTED = re.compile("exchanges, .* with errors, [^·]*$")  # all of the capture
SPARK_MS = 280_000


class Ground(NamedTuple):
    """A klamm at work, a capture that it has made, and inspectors of both."""

    admin: str
    capture: Path
    live: str
    recorded: str
    browser: Browser


@pytest.fixture(scope="module")
def ground(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    folder = tmp_path_factory.mktemp("captures")
    capture = folder / "traffic"
    with shop_behind_klamm(kafka, folder / "klamm.log") as (klamm, shop):
        client = Client(klamm.admin)
        client.begin_capture(str(capture), "keep")
        rule = {"api": "Produce", "topic": shop.topic, "error": REFUSED, "times": TIMES}
        assert shop.errors(TIMES, lambda: client.add_rule(rule)) == [REFUSED] * TIMES
        client.rules_off()
        shop.deliveries(50)
        client.end_capture()
        with (
            inspector(folder / "live.log", "--admin", klamm.admin) as live,
            inspector(folder / "recorded.log", str(capture)) as recorded,
            chromium() as browser,
        ):
            yield Ground(klamm.admin, capture, live, recorded, browser)


@pytest.fixture
def page(ground: Ground) -> Iterator[Page]:
    with opened(ground.browser, f"{ground.recorded}/#captures") as found:
        expect(words(found)).to_have_text(COUNTED)
        yield found


def words(page: Page) -> Locator:
    """What is said below the histogram."""
    return page.locator(".reading")


def times(page: Page) -> tuple[int, int]:
    """Those of the link, in ns."""
    query = parse_qs(page.url.partition("?")[2])
    since, until = (int(query[name][0].replace(".", "")) * 1000 for name in ("since", "until"))
    return since, until


def ended(capture: Path, since: int, until: int) -> list[Exchange]:
    return [one for one in exchanges(read(capture)) if since <= one.last.time_ns < until]


def counted_words(number: int) -> str:
    """As it stands beside the list."""
    return f"{number:,} exchange{'' if number == 1 else 's'}"


def counted(page: Page) -> int:
    """The exchanges of the selected time, as the histogram has them."""
    found = re.search(r": (?:up to )?([\d,]+) exchange", words(page).inner_text())
    assert found is not None
    return int(found[1].replace(",", ""))


def test_the_head_tells_what_the_capture_holds(page: Page, ground: Ground) -> None:
    whole = list(exchanges(read(ground.capture)))
    failed = [one for one in map(as_exchange, chosen(whole)) if one.errors]
    facts = page.locator(".captures > .facts")
    expect(facts).to_contain_text(f"{len(whole):,}, {len(failed):,} with errors")
    expect(facts).to_contain_text("1 segment")
    expect(facts).to_contain_text("records")
    expect(facts).to_contain_text("kept")
    assert counted(page) == len(whole)
    assert len(failed) >= TIMES
    page.get_by_label("bytes").check()
    expect(page.locator(".plot .failed:not([height='0'])")).to_have_count(0)


def test_a_time_is_brushed_above_the_list_which_has_just_its_exchanges_then(ground: Ground) -> None:
    with opened(ground.browser, f"{ground.recorded}/#exchanges") as page:
        expect(words(page)).to_have_text(COUNTED)
        everything = len(list(exchanges(read(ground.capture))))
        expect(page.locator(".count")).to_have_text(counted_words(everything))
        box = page.locator(".plot").bounding_box()
        assert box is not None
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + box["width"] * 0.4, middle)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.5, middle)
        page.mouse.move(box["x"] + box["width"] * 0.7, middle)
        page.mouse.up()
        page.mouse.move(0, 0)
        expect(page).to_have_url(re.compile(r"#exchanges\?since=\d+\.\d{6}&until=\d+\.\d{6}$"))
        wanted = ended(ground.capture, *times(page))
        assert 0 < len(wanted) < everything
        assert counted(page) == len(wanted)
        expect(page.locator(".count")).to_have_text(counted_words(len(wanted)))
        address = page.url
        reloaded(page)
        expect(page.locator(".count")).to_have_text(counted_words(len(wanted)))
        filtered(page, f'client_id == "{SHOP}" and api == Produce')
        of_shop = [one for one in wanted if one.first.api_key == 0 and one.first.client_id == SHOP]
        expect(page.locator(".count")).to_have_text(counted_words(len(of_shop)))
        visited(page, address)
        page.get_by_role("button", name="all times").click()
        expect(page.locator(".count")).to_have_text(counted_words(everything))
        expect(page).to_have_url(re.compile("#exchanges$"))


def test_keys_select_a_time_too(page: Page) -> None:
    plot = page.get_by_role("slider", name="selected time")
    plot.focus()

    def pressed(keys: str) -> tuple[int, int]:
        before = page.url
        page.keyboard.press(keys)
        expect(page).not_to_have_url(before)
        return times(page)

    begin, end = pressed("ArrowRight")
    step = end - begin
    assert pressed("Shift+ArrowRight") == (begin, end + step)
    assert pressed("ArrowRight") == (begin + step, end + 2 * step)
    assert pressed("ArrowUp") == (begin, end + 3 * step)
    assert pressed("ArrowDown") == (begin + step, end + 2 * step)
    assert pressed("Home") == (begin, end + step)
    expect(plot).to_have_attribute("aria-valuetext", re.compile("to .* exchange"))
    count = counted(page)
    page.get_by_role("link", name="show the exchanges of this time").click()
    expect(page.locator(".count")).to_have_text(counted_words(count))
    page.get_by_role("link", name="captures").click()
    page.get_by_label("from").wait_for()  # the list has such a plot too
    assert times(page) == (begin, end + step)
    plot.focus()
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile("#captures$"))
    expect(plot).to_have_attribute("aria-valuetext", "all times")


def test_times_are_typed_and_a_wrong_one_is_told(page: Page, ground: Ground) -> None:
    since, until = page.get_by_label("from"), page.get_by_label("to", exact=True)
    first = since.input_value()
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d", first)
    since.fill(until.input_value())
    since.press("Enter")
    expect(words(page)).to_have_text("the first time has to be before the second")
    expect(since).to_have_attribute("aria-invalid", "true")
    later = page.evaluate("([a, b]) => (Date.parse(a) + Date.parse(b)) / 2", [first, until.input_value()])
    since.fill(
        page.evaluate(
            "(ms) => new Date(ms - new Date(ms).getTimezoneOffset() * 6e4).toISOString().slice(0, 23)", later
        )
    )
    since.press("Enter")
    expect(page).to_have_url(re.compile("since="))
    begin, end = times(page)
    assert begin == round(later) * 1_000_000
    count = counted(page)
    page.get_by_role("link", name="show the exchanges of this time").click()
    found = len(ended(ground.capture, begin, end))
    expect(page.locator(".count")).to_have_text(counted_words(found))
    assert 0 < found <= count


@pytest.mark.timeout(600)
def opened_from(page: Page, report: Path, detector: str, words: str) -> Page:
    """The address to which the first evidence of a finding in a report leads."""
    read = page.context.new_page()
    read.goto(report.as_uri())
    fact = f'[id$="-{detector}"] tr.told:has-text("{words}")'
    read.locator(f"{fact} + tr.more summary").first.click()
    with page.context.expect_page() as shown:
        read.locator(f"{fact} + tr.more a").first.click()
    read.close()
    return shown.value


def test_the_analysis_is_followed_and_a_finding_leads_to_its_exchanges(page: Page, tmp_path: Path) -> None:
    expect(page.get_by_text("klamm analyze reads all of the capture with Spark")).to_be_visible()
    page.get_by_role("button", name="look for problems").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.locator(".findings > .state")).to_contain_text("starting Spark")
    page.get_by_role("button", name="cancel").click()
    expect(page.locator(".findings > .state")).to_have_text("cancelled")
    page.get_by_role("button", name="look again").click()
    expect(page.locator(".findings > .state")).to_contain_text(
        re.compile(r"looking: \d+ of \d+"), timeout=SPARK_MS
    )
    finding = page.locator('[data-detector="unexplained_errors"] li', has_text=REFUSED)
    finding.wait_for(timeout=SPARK_MS)
    expect(page.locator(".findings > .state")).to_contain_text(re.compile(r"\d+ findings?.* in \d+ s"))
    assert violations(page) == []
    with page.expect_download() as report:
        page.get_by_role("link", name="report with plots").click()
    file = tmp_path / "report.html"
    report.value.save_as(file)
    shown = opened_from(page, file, "unexplained_errors", REFUSED)
    expect(rows(shown)).to_have_count(1)
    expect(rows(shown)).to_have_attribute("data-error", REFUSED)
    shown.close()
    expect(finding).to_contain_text(SHOP)
    finding.get_by_role("link", name="its exchanges").click()
    expect(rows(page)).to_have_count(TIMES)
    assert {row.get_attribute("data-error") for row in rows(page).all()} == {REFUSED}
    page.go_back()
    finding.get_by_role("link", name="evidence 1").click()
    expect(rows(page)).to_have_count(1)
    expect(rows(page)).to_have_attribute("data-error", REFUSED)
    page.get_by_role("link", name="captures").click()
    reloaded(page)
    expect(finding).to_be_visible()  # it is kept by the server


def test_without_java_the_advice_of_the_command_is_shown(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with (
        inspector(tmp_path / "web.log", str(ground.capture)) as address,
        opened(ground.browser, f"{address}/#captures") as page,
    ):
        page.get_by_role("button", name="look for problems").click()
        advice = "/nowhere/bin/java does not run: No such file or directory. Spark needs Java 17 or newer"
        expect(page.locator(".findings > .state")).to_contain_text(advice)


def test_the_exchanges_of_the_list_are_exported_in_each_form(ground: Ground, tmp_path: Path) -> None:
    where = f'client_id == "{SHOP}" and error == {REFUSED}'
    with opened(ground.browser, f"{ground.recorded}/#exchanges") as page:
        filtered(page, where)
        expect(rows(page)).to_have_count(TIMES)
        page.locator("summary", has_text="export").click()
        expect(page.locator(".export .of")).to_contain_text(f"{where}; at most 512 MiB")
        for form in ("jsonl", "pcapng", "arrow"):
            page.get_by_label("form of the file").select_option(form)
            with page.expect_download() as made:
                page.locator(".export button", has_text="export").click()
            assert made.value.suggested_filename == f"exchanges.{form}"
            made.value.save_as(tmp_path / made.value.suggested_filename)
            expect(page.locator(".export .state")).to_contain_text(f"{TIMES} exchanges")
        assert violations(page) == []
    lines = [json.loads(line) for line in (tmp_path / "exchanges.jsonl").read_text().splitlines()]
    assert [(one["client_id"], one["errors"]) for one in lines] == [(SHOP, {REFUSED: 1})] * TIMES
    assert shown(tmp_path / "exchanges.arrow").count(REFUSED) == TIMES
    subprocess.run(
        [COMMAND, "import", tmp_path / "exchanges.pcapng", "-o", tmp_path / "back"], check=True, timeout=120
    )
    assert shown(tmp_path / "back").count(REFUSED) == TIMES


def shown(capture: Path) -> str:
    return subprocess.run(
        [COMMAND, "show", capture], check=True, capture_output=True, text=True, timeout=120
    ).stdout


def test_a_capture_is_begun_grows_ends_and_is_fetched_from_klamms_machine(
    ground: Ground, tmp_path: Path
) -> None:
    folder = tmp_path / "it's new"
    with opened(ground.browser, f"{ground.live}/#captures") as page:
        expect(page.get_by_text("klamm captures nothing now.")).to_be_visible()
        page.get_by_label("Folder, on the machine of klamm").fill(str(folder))
        page.get_by_label("Only exchanges for which this holds").fill("acsk == 1")
        page.get_by_role("button", name="begin the capture").click()
        expect(page.locator("#message")).to_contain_text("did you mean acks?")
        page.get_by_label("Only exchanges for which this holds").fill(f'client_id == "{SHOP}"')
        page.get_by_role("button", name="begin the capture").click()
        expect(page.get_by_text(f"klamm captures into {folder}")).to_be_visible()
        number = page.locator("dt:has-text('rows') + dd")
        wait_for(lambda: int(number.inner_text().replace(",", "")) > 20, "rows")
        expect(page.locator(".captures .facts")).to_contain_text(f'client_id == "{SHOP}"')
        expect(page.get_by_text("No segment is sealed yet.")).to_be_visible()
        assert violations(page) == []
        page.get_by_role("button", name="end the capture").click()
        expect(page.get_by_text("1 sealed segment")).to_be_visible()
        expect(page.locator("code:visible")).to_have_text(
            f"klamm web '{tmp_path}/it'\"'\"'s new' --listen 127.0.0.1:0"
        )
        known = page.request.get(f"{ground.live}/api/capture").json()
        page.route("**/api/capture", lambda route: route.fulfill(json={**known, "install": "pip install it"}))
        expect(page.get_by_text("read with pyarrow")).to_contain_text("Install it first: pip install it")
        assert violations(page) == []
        page.unroute_all(behavior="wait")
        reloaded(page)  # klamm knows the last capture
        with page.expect_download() as made:
            page.get_by_role("link", name="download as a tar").click()
        assert made.value.suggested_filename == "it_s_new.tar"
        made.value.save_as(tmp_path / "made.tar")
        assert violations(page) == []
    with tarfile.open(tmp_path / "made.tar") as tar:
        tar.extractall(tmp_path / "elsewhere", filter="data")
    output = shown(tmp_path / "elsewhere" / "it_s_new")
    assert output == shown(folder)
    assert output.count(f"client={SHOP} ") > 10
    assert "Produce v" in output


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_hinders_people_who_use_other_means(scheme: str, ground: Ground) -> None:
    for address in (f"{ground.recorded}/#captures", f"{ground.live}/#captures"):
        with opened(ground.browser, address, color_scheme=scheme) as page:
            page.get_by_role("heading", level=2).first.wait_for()
            assert violations(page) == []


def test_a_phone_has_room_for_it(ground: Ground) -> None:
    size = {"width": 400, "height": 800}
    for address in (
        f"{ground.recorded}/#captures",
        f"{ground.recorded}/#exchanges",
        f"{ground.live}/#captures",
    ):
        with opened(ground.browser, address, viewport=size, has_touch=True) as page:
            page.locator("h2, .plot").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
