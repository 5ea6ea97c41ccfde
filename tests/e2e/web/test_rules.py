"""Rules and paused frames in the inspector, for real clients behind a running klamm."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from klamm.client import Klamm as Client
from klamm.decoders import ERRORS
from tests.e2e.light_traffic import LEADER, PATIENCE_S, PROBE, SHOP, leader, probing
from tests.e2e.web.inspected_shop import Ground, choose, of
from tests.e2e.web.inspector import filtered, violations

pytestmark = pytest.mark.brokers
REFUSED = "POLICY_VIOLATION"


def test_a_rule_out_of_an_exchange_fails_the_next_ones_of_a_real_client(page: Page, ground: Ground) -> None:
    choose(page, of(SHOP, "Produce"))
    filtered(page, f'client_id == "{SHOP}" and error != NONE')
    page.get_by_role("button", name="go on").click()
    page.get_by_text("fail, delay or pause the next ones like this").click()
    page.get_by_label("error", exact=True).fill(REFUSED)
    page.get_by_label("times").fill("300")  # six seconds: the list may not read yet, with its new filter
    make = page.get_by_role("button", name="put it in force")

    def click() -> None:
        make.click()
        page.locator("#message", has_text="is in force").wait_for()

    assert ground.shop.errors(3, click) == [REFUSED] * 3, Client(ground.klamm.admin).rules()
    page.locator(f'.row[data-error="{REFUSED}"]').first.click()
    expect(page.locator("dd.meaning")).to_contain_text(ERRORS[REFUSED].meaning)
    page.get_by_role("link", name="rules").click()
    rule = page.locator("tr[data-rule]")
    expect(rule).to_contain_text("over: it had its 300 hits")
    expect(rule.get_by_role("button")).to_have_text(["remove"])
    rule.get_by_role("button", name="remove").click()
    expect(page.get_by_text("no rules")).to_be_visible()


def test_the_state_of_a_rule_tells_what_is_left_of_it_and_why_it_is_over(page: Page, ground: Ground) -> None:
    page.goto(f"{ground.address}/#rules")
    for rule in (
        {"name": "long", "for": "2h"},
        {"name": "few", "times": 3},
        {"name": "short", "for": "1s"},
        {"name": "lasts", "for": "forever"},
    ):
        Client(ground.klamm.admin).add_rule({"api": "Fetch", "client": "nobody", "delay": "1ms", **rule})

    def state(name: str) -> Locator:
        return page.locator(f'tr[data-rule="{name}"] td').nth(5)

    expect(state("long")).to_have_text(re.compile(r"^on, ends in 1 h 59 min$"))
    expect(state("few")).to_have_text(re.compile(r"^on, 3 of 3 hits left, ends in 9 min \d+ s$"))
    expect(state("lasts")).to_have_text("on")
    expect(state("short")).to_have_text("over: its time has ended")
    buttons = page.locator('tr[data-rule="short"]').get_by_role("button")
    expect(buttons).to_have_text(["remove"])
    page.locator('tr[data-rule="long"]').get_by_role("button", name="off").click()
    expect(state("long")).to_have_text(re.compile(r"^off, ends in"))


def test_all_rules_end_at_once_where_there_are_some(page: Page, ground: Ground) -> None:
    page.goto(f"{ground.address}/#rules")
    expect(page.get_by_text("no rules")).to_be_visible()
    expect(page.get_by_role("button", name="end all")).to_be_hidden()
    Client(ground.klamm.admin).add_rule({"api": "Metadata", "client": "nobody", "delay": "1ms"})
    page.get_by_role("button", name="end all").click()
    expect(page.get_by_text("no rules")).to_be_visible()
    assert Client(ground.klamm.admin).rules() == []


def test_a_paused_answer_is_edited_and_the_client_sees_the_edit(page: Page, ground: Ground) -> None:
    rule = {"api": "Metadata", "client": PROBE, "side": "response", "pause": "60s"}
    page.goto(f"{ground.address}/#paused")
    editor = page.get_by_label("The fields of the chosen frame")
    expect(page.get_by_text("no frame is paused")).to_be_visible()
    expect(editor).to_be_hidden()
    with probing(ground.klamm.bootstrap) as ask_for:
        Client(ground.klamm.admin).add_rule(rule)
        answer = ask_for(ground.shop.topic)
        expect(page.get_by_text("Choose a frame")).to_be_visible()
        page.get_by_role("button", name="Metadata").first.click()
        expect(page.get_by_text("Choose a frame")).to_be_hidden()
        expect(editor).to_have_value(re.compile(f'"leader_id": {LEADER},'))
        written = editor.input_value()
        editor.fill(written.replace(f'"leader_id": {LEADER},', '"leeder_id": 3,'))
        page.get_by_role("button", name="resume as edited").click()
        expect(page.get_by_role("alert")).to_contain_text("no field 'leeder_id'")
        editor.fill("{")
        expect(page.get_by_role("alert")).to_contain_text("not JSON")
        expect(page.get_by_role("button", name="resume as edited")).to_be_disabled()
        editor.fill(written.replace(f'"leader_id": {LEADER},', '"leader_id": 3,'))
        expect(page.get_by_role("alert")).to_be_hidden()
        expect(page.get_by_role("button", name="answer with")).to_be_disabled()
        page.get_by_role("link", name="rules").click()
        page.get_by_role("link", name="paused").click()
        page.get_by_role("button", name="Metadata").first.click()
        expect(editor).to_have_value(re.compile('"leader_id": 3,'))
        page.get_by_role("button", name="resume as edited").click()
        expect(page.locator("#message")).to_have_text(re.compile(r"frame \d+ goes on"))
        assert leader(answer.result(PATIENCE_S), ground.shop.topic) == 3


def test_what_was_written_into_a_frame_that_went_on_is_still_there(page: Page, ground: Ground) -> None:
    rule = {"api": "Metadata", "client": PROBE, "side": "response", "pause": "60s", "times": 1}
    page.goto(f"{ground.address}/#paused")
    editor = page.get_by_label("The fields of the chosen frame")
    with probing(ground.klamm.bootstrap) as ask_for:
        admin = Client(ground.klamm.admin)
        admin.add_rule(rule)
        answer = ask_for(ground.shop.topic)
        page.get_by_role("button", name="Metadata").first.click()
        expect(editor).to_have_value(re.compile(f'"leader_id": {LEADER},'))
        written = editor.input_value().replace(f'"leader_id": {LEADER},', '"leader_id": 3,')
        editor.fill(written)
        [frame] = admin.paused()
        admin.resolve(frame.id, "resume")
        assert leader(answer.result(PATIENCE_S), ground.shop.topic) == LEADER
        expect(page.get_by_role("alert")).to_contain_text(f"Frame {frame.id} went on before this was sent")
        expect(page.get_by_text("no frame is paused")).to_be_visible()
        expect(editor).to_have_value(written)
        expect(page.get_by_role("button", name="resume as edited")).to_be_disabled()
        assert violations(page) == []


def test_the_link_to_paused_frames_has_their_number_in_every_view(page: Page, ground: Ground) -> None:
    link = page.get_by_role("navigation", name="views").locator("a", has_text="paused")
    expect(link).to_have_accessible_name("paused")
    page.get_by_role("link", name="clusters").click()
    with probing(ground.klamm.bootstrap) as ask_for:
        Client(ground.klamm.admin).add_rule({"api": "Metadata", "client": PROBE, "pause": "60s", "times": 1})
        answer = ask_for(ground.shop.topic)
        expect(link).to_have_accessible_name("paused 1")
        expect(link).to_have_accessible_description("1 frame waiting for a decision")
        link.click()
        expect(link).to_have_attribute("aria-current", "page")
        page.get_by_role("button", name="Metadata").first.click()
        assert violations(page) == []
        page.get_by_role("button", name="resume unchanged").click()
        expect(link).to_have_accessible_name("paused")
        assert leader(answer.result(PATIENCE_S), ground.shop.topic) == LEADER
