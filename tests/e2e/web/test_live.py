"""The list of exchanges of a running klamm, in front of a real cluster, with real clients."""

import re
import socket
import struct
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from tests.brokers.processes import wait_for
from tests.e2e.conversation import Conversation
from tests.e2e.light_traffic import BILLING, SHOP
from tests.e2e.web.inspected_shop import Ground, choose, of
from tests.e2e.web.inspector import drawn, filtered, opened, reloaded, violations

pytestmark = pytest.mark.brokers


def test_exchanges_come_as_rows_and_a_filter_chooses_among_them(page: Page) -> None:
    page.locator(of(SHOP, "Produce")).first.wait_for()
    page.locator(of(BILLING, "Fetch")).first.wait_for()
    filtered(page, f'client_id == "{SHOP}" and api == Produce')
    page.locator(of(SHOP, "Produce")).nth(2).wait_for()
    assert page.locator(f'.row[data-api]:not([data-client="{SHOP}"])').count() == 0
    assert page.locator('.row[data-api]:not([data-api="Produce"])').count() == 0
    address = page.url
    reloaded(page)
    page.locator(of(SHOP, "Produce")).first.wait_for()
    assert page.url == address
    assert page.get_by_role("combobox", name="filter", exact=True).input_value().endswith("api == Produce")


def test_a_filter_that_cannot_be_read_is_explained_where_it_stands(page: Page) -> None:
    filtered(page, "acsk == 1")
    expect(page.get_by_role("alert").filter(has_text="did you mean acks?")).to_be_visible()


def test_a_list_without_exchanges_says_which_ones_it_waits_for(page: Page, ground: Ground) -> None:
    now = "only those are shown that end while this page is open."
    empty = page.locator(".empty")
    filtered(page, 'client_id == "nobody"')
    expect(empty).to_have_text(f"Waiting for exchanges that match the filter: {now}")
    page.get_by_role("button", name="freeze").click()
    expect(empty).to_have_text("The list is frozen: “go on” shows what came meanwhile.")
    page.get_by_role("button", name="go on").click()
    page.route("**/api/rows*", lambda route: None)  # no answer, so no rows
    filtered(page, "")
    expect(empty).to_have_text(f"Waiting for exchanges: {now}")
    page.unroute("**/api/rows*")
    filtered(page, f'client_id == "{SHOP}"')
    page.locator(of(SHOP, "Produce")).first.wait_for()
    expect(empty).to_have_text("")


def counts(page: Page) -> dict[str, int]:
    """The numbers beside the list, by the words that follow them."""
    text = page.locator(".bar .count").first.inner_text()
    found = (part.split(" ", 1) for part in text.split(" · ") if " " in part)
    return {words: int(number.replace(",", "")) for number, words in found}


def first_exchange(page: Page) -> str:
    """The row at the top of the list, where nothing is left out."""
    page.get_by_role("grid").evaluate("(list) => list.scrollTo(0, 0)")
    drawn(page)
    return page.locator('.row[data-api][data-number="0"]').inner_text()


def test_a_list_keeps_what_it_has_got_until_it_is_cleared(page: Page) -> None:
    before = "of them from before, not all"

    def told(words: str, least: int) -> bool:
        return counts(page).get(words, 0) >= least

    page.locator(of(SHOP, "Produce")).nth(2).wait_for()
    wait_for(lambda: told("exchanges", 50), "a list")
    all_of_them = counts(page)["exchanges"]
    filtered(page, f'client_id == "{SHOP}" and api == Produce')
    wait_for(lambda: told(before, 3), "what matches")
    assert counts(page)[before] < all_of_them
    filtered(page, "")
    wait_for(lambda: told(before, all_of_them), "all of the list")
    drawn(page)
    expect(page.get_by_role("button", name="to the newest")).to_be_hidden()  # it still follows
    reloaded(page)
    wait_for(lambda: told(before, all_of_them), "the list of before the reload")
    drawn(page)
    expect(page.get_by_role("button", name="to the newest")).to_be_hidden()
    page.get_by_role("button", name="clear").click()
    assert before not in counts(page)
    page.locator(".row[data-api]").first.wait_for()
    first = first_exchange(page)
    reloaded(page)
    wait_for(lambda: told(before, 1), "the list since it was cleared")
    assert first_exchange(page) == first


def test_what_an_earlier_filter_left_out_is_told_by_a_row_at_its_place(page: Page) -> None:
    produced, note = page.locator(of(SHOP, "Produce")), page.locator(".row.note")
    produced.first.wait_for()
    filtered(page, "api == Fetch")
    page.locator(of(BILLING, "Fetch")).first.wait_for()
    filtered(page, "api == Produce")
    before = "of them from before, not all"
    wait_for(lambda: counts(page).get("exchanges", 0) > counts(page).get(before, 0) > 0, "new ones")
    page.get_by_role("button", name="freeze").click()
    drawn(page)
    place, grid = counts(page)[before], page.get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", str(counts(page)["exchanges"] + 1))

    def look_there() -> None:
        drawn(page)
        grid.evaluate("(list, top) => list.scrollTo(0, top)", 24 * (place - 1))
        expect(note).to_have_attribute("data-number", str(place))

    look_there()
    words = r"^from [\d:.]+ to [\d:.]+ only what passed `api == Fetch` was kept$"
    expect(note).to_have_text(re.compile(words))
    page.locator(f'.row[data-number="{place - 1}"]').click()
    expect(page.locator(".detail .side.request .field").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".row.chosen")).to_have_class(re.compile("note"))
    expect(page.locator(".detail")).to_contain_text("do not come again")
    assert violations(page) == []
    page.keyboard.press("ArrowDown")
    expect(page.locator(".detail .side.request .field").first).to_be_visible()
    filtered(page, "api == Produce and acks == -1")
    wait_for(lambda: counts(page).get(before, 0) > place, "what was there")
    look_there()
    page.get_by_role("button", name="clear").click()
    expect(note).to_have_count(0)


def test_names_are_completed_while_one_types(page: Page) -> None:
    field = page.get_by_role("combobox", name="filter", exact=True)
    field.press_sequentially("api == HeartB")
    expect(page.get_by_role("option", name="Heartbeat", exact=True)).to_be_visible()
    field.press("Tab")
    assert field.input_value() == "api == Heartbeat"
    for typed, name in (("t", "topic"), ("err", "error"), ("gr", "group")):
        field.fill("")
        field.press_sequentially(typed)
        expect(page.get_by_role("listbox", name="proposals").get_by_role("option").first).to_have_text(name)


def test_names_that_come_late_are_not_proposed_for_a_filter_that_is_in_force(ground: Ground) -> None:
    with opened(ground.browser, "about:blank") as page:
        asked: list[Route] = []

        def hold_second(route: Route) -> None:  # the first is of the page itself
            asked.append(route)
            if len(asked) == 1:
                route.continue_()

        page.route("**/api/words", hold_second)
        page.goto(ground.address)
        filtered(page, "api == Produce")
        page.wait_for_function("document.activeElement.id == 'filter'")
        with page.expect_response("**/api/words"):
            asked[1].continue_()
        drawn(page)
        expect(page.get_by_role("listbox", name="proposals")).to_be_hidden()
        field = page.get_by_role("combobox", name="filter", exact=True)
        field.press_sequentially(" and client_i")
        expect(page.get_by_role("option", name="client_id", exact=True)).to_be_visible()


def test_a_field_is_lit_in_the_tree_and_in_the_bytes(page: Page) -> None:
    filtered(page, f'client_id == "{SHOP}" and api == Produce')
    choose(page, of(SHOP, "Produce"))
    request = page.locator(".side.request")
    request.locator('.field[data-field="acks"]').hover()
    expect(request.locator(".hex mark")).to_have_text(["ff", "ff", ".", "."])
    box = request.locator(".hex .line").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 7.5 / 40, box["y"] + box["height"] / 2)
    expect(request.locator(".field.lit")).to_contain_text("transactional_id")
    expect(request.locator(".hex mark").first).to_have_text("00")
    answer = page.locator(".side.answer")
    expect(answer.locator('.field[data-field="error_code"]')).to_contain_text("0 NONE")


def test_keys_go_from_row_to_row(page: Page) -> None:
    page.locator(of(SHOP, "Produce")).nth(2).wait_for()
    page.get_by_role("button", name="freeze").click()
    page.get_by_role("grid").focus()
    page.keyboard.press("End")
    expect(page.locator(".row.chosen")).to_have_count(1)
    number = int(page.locator(".row.chosen").get_attribute("data-number") or "")
    page.keyboard.press("ArrowUp")
    expect(page.locator(f'.row.chosen[data-number="{number - 1}"]')).to_be_visible()
    chosen = page.locator(".row.chosen").get_attribute("id") or ""
    expect(page.get_by_role("grid")).to_have_attribute("aria-activedescendant", chosen)
    page.keyboard.press("Escape")
    expect(page.locator(".detail")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="filter", exact=True)).to_be_focused()


def test_the_last_row_stays_in_sight_when_it_is_chosen(page: Page) -> None:
    more_than_it_shows = re.compile(r"\d{3,}")
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", more_than_it_shows)
    page.get_by_role("grid").focus()
    page.keyboard.press("End")
    expect(page.locator(".detail .side.answer")).to_be_visible()
    drawn(page)
    chosen, sight = page.locator(".row.chosen").bounding_box(), page.get_by_role("grid").bounding_box()
    assert chosen is not None
    assert sight is not None
    assert chosen["y"] + chosen["height"] <= sight["y"] + sight["height"] + 1


# Run in the page: a list that has just followed its end, and gets a row that it has not drawn yet.
CHOSEN_AT_ONCE = """async () => {
  const { List } = await import("/static/list.js");
  const rows = { first: 0, end: 1000, at: () => ({ api: "Fetch" }) };
  const column = { name: "API", label: "API", least: 5, text: () => "" };
  const list = new List(rows, [column], { select: () => null, look: () => "", arrange: null });
  const frame = () => new Promise(requestAnimationFrame);
  document.querySelector(".split").replaceChildren(list.element);
  list.toEnd();
  await frame();
  rows.end += 50;
  list.choose(rows.end - 1);
  await frame();
  await frame();
  const row = list.element.querySelector(".chosen").getBoundingClientRect();
  return [list.follow, row.bottom <= list.element.getBoundingClientRect().bottom + 1];
}"""


def test_a_row_that_is_chosen_before_it_is_drawn_stays_in_sight_and_the_list_stays(page: Page) -> None:
    page.get_by_role("grid").wait_for()
    assert page.evaluate(CHOSEN_AT_ONCE) == [False, True]


def test_the_list_is_found_again_where_it_was_left(page: Page) -> None:
    grid, row = page.get_by_role("grid"), page.locator('.row[data-number="20"]')
    expect(grid).to_have_attribute("aria-rowcount", re.compile(r"\d{3,}"))
    grid.evaluate("list => list.scrollTo(0, 247)")
    row.click()
    expect(page.locator(".detail .side.answer .field").first).to_be_visible()
    drawn(page)
    page.locator(".detail").evaluate("detail => detail.scrollTo(0, 50)")
    places = "[...document.querySelectorAll('.list, .exchanges .detail')].map((each) => each.scrollTop)"
    found = f"String({places}) == '247,50'"
    page.wait_for_function(found)
    for view in ("rules", "traffic"):
        page.get_by_role("link", name=view, exact=True).click()
        expect(page.get_by_role("grid")).to_have_count(0)
        page.get_by_role("link", name="exchanges", exact=True).click()
        expect(row).to_have_class(re.compile("chosen"))
        page.wait_for_function(found)  # an exchange may still be on its way to the page
    filtered(page, "api == Produce")
    page.locator(of(SHOP, "Produce")).first.wait_for()
    expect(page.get_by_role("button", name="to the newest")).to_be_hidden()  # another list follows


def test_of_the_menus_one_is_open_and_none_after_a_click_elsewhere(page: Page) -> None:
    menus = page.locator("details[name=menu][open]")
    for name in ("hide", "columns", "try a rule"):
        page.get_by_role("button", name=name, exact=True).click()
        expect(menus).to_have_count(1)
    expect(menus).to_contain_text("try a rule")
    page.locator("h1, header, #source").first.click()
    expect(menus).to_have_count(0)


def counted(ground: Ground) -> set[tuple[str, str]]:
    """The APIs that klamm has counted requests of, each with the client."""
    return {(each["api"], each["client_id"]) for each in ground.klamm.counters()["requests"]}


def test_a_request_that_gets_no_answer_says_why(page: Page, ground: Ground) -> None:
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    asked: dict[str, Any] = {"max_wait_ms": 60_000, "min_bytes": 1 << 30, "max_bytes": 1 << 30}
    asked |= {"topics": [{"topic": ground.shop.topic, "partitions": [part]}]}
    row, of_metadata = page.locator(of("by-hand", "Fetch")), page.locator(of("by-hand", "Metadata"))
    filtered(page, 'client_id == "by-hand"')
    wait_for(lambda: ground.leader and of_metadata.count(), "the filter is in force")
    with Conversation(ground.leader) as leaving:
        body = encode(asked, "Fetch", 11, "request")
        leaving.socket.sendall(request_frame(API["Fetch"], 11, 1, "by-hand", body))
        wait_for(lambda: ("Fetch", "by-hand") in counted(ground), "the request")
        leaving.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # RST
    expect(row.locator('[data-column="error"]')).to_have_text("no answer: reset by client")
    expect(row.locator('[data-column="answer"]')).to_have_text("none")
    expect(row.locator('[data-column="ms"]')).to_have_text(re.compile(r"^\d+\.\d$"))
    row.click()
    expect(page.locator(".facts dt", has_text="waited")).to_be_visible()
    expect(page.locator(".phases")).to_contain_text("no answer: reset by client")
