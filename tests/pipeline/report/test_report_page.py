"""The page of a report: in real Chromium, and as text."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from datetime import datetime
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from klamm.pipeline.detectors.finding import Findings
from klamm.pipeline.report import wording
from klamm.pipeline.report.page import page
from tests.pipeline.report.chromium import opened
from tests.pipeline.report.reports import IMAGE, LINK, SCRIPT, busy, finding, report

POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')


@pytest.fixture(autouse=True)
def times_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wording, "local", wording.utc)


@pytest.mark.parametrize("guarded", [True, False], ids=["as it is", "without its policy"])
def test_the_page_draws_every_plot_runs_no_foreign_script_and_asks_for_nothing(
    tmp_path: Path, guarded: bool
) -> None:
    made, file = page(report(), "1.2"), tmp_path / "report.html"
    assert len(POLICY.findall(made)) == 1
    file.write_text(made if guarded else POLICY.sub("", made))
    found = opened(file, tmp_path)
    assert (found.console, found.wanted) == ([], [])
    assert '<html lang="en" data-plots="8">' in found.dom
    drawn = found.dom.split('id="plots"')[0]
    assert len(re.findall(r'id="plot-[a-z-]+" class="vega-embed[^>]*><svg', drawn)) == 8
    assert "<title>klamm: capture/</title>" in found.dom
    assert "billing" in re.sub(r"<[^>]*>", "", drawn)


# Run in the page: columns that are too narrow to be read, and drawn text that lies on other drawn text.
MEASURE = """
const narrow = (selector, px) => [...document.querySelectorAll(selector)]
  .filter((one) => one.getBoundingClientRect().width < px).map((one) => one.textContent);
const overlaps = (one, other) => one.left < other.right - 1 && other.left < one.right - 1
  && one.top < other.bottom - 1 && other.top < one.bottom - 1;
const upright = (one) => !/rotate\\((?!0[,)])/.test(one.getAttribute("transform") || "");
const rect = (one) => one.getBoundingClientRect();
new MutationObserver(() => {
  const found = [];
  for (const plot of document.querySelectorAll(".vega-embed")) {
    const legend = plot.querySelector(".role-legend");
    for (const axis of plot.querySelectorAll(".role-axis-label")) {
      if (legend && overlaps(rect(axis), rect(legend))) found.push(`${plot.id}: legend`);
      const drawn = [...axis.querySelectorAll("text")].filter((one) => one.getAttribute("opacity") !== "0");
      const texts = drawn.filter(upright).map(rect).filter((one) => one.width);
      for (const [at, one] of texts.entries())
        if (texts.slice(at + 1).some((other) => overlaps(one, other))) found.push(`${plot.id}: labels`);
    }
    if (!plot.querySelector(".role-axis-label text")) found.push(`${plot.id}: nothing is drawn`);
  }
  document.documentElement.dataset.unreadable =
    JSON.stringify([...narrow(".findings tr.fact > td:nth-child(2)", 250), ...found]);
}).observe(document.documentElement, { attributeFilter: ["data-plots"] });
"""


@pytest.mark.parametrize("width", [500, 1280])
def test_columns_and_plots_can_be_read_on_narrow_screens_too(width: int, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    made = POLICY.sub("", page(report(traffic=busy()), "1.2"))
    file.write_text(made.replace("<main>", f"<main><script>{MEASURE}</script>"))
    found = opened(file, tmp_path, width)
    assert re.findall(r'data-unreadable="(.*?)"', found.dom) == ["[]"]


# Run in the page: what is still folded, and how wide plots are, when it goes to paper.
PRINT = """
const measure = () => {
  const folded = [...document.querySelectorAll("details")].filter((one) => !one.open).length;
  const widths = [...document.querySelectorAll(".vega-embed svg")].map((one) => one.getAttribute("width"));
  document.documentElement.dataset.paper = JSON.stringify([folded, Math.max(...widths) <= 680]);
};
const print = () => {
  dispatchEvent(new Event("beforeprint"));
  setTimeout(measure);  // a size that is set is drawn once the listeners have ended
};
new MutationObserver(() => setTimeout(print))
  .observe(document.documentElement, { attributeFilter: ["data-plots"] });
"""


def test_on_paper_all_is_unfolded_and_as_wide_as_a4(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    made = POLICY.sub("", page(report(), "1.2"))
    assert "<details" in made
    file.write_text(made.replace("<main>", f"<main><script>{PRINT}</script>"))
    assert re.findall(r'data-paper="(.*?)"', opened(file, tmp_path).dom) == ["[0,true]"]


def test_the_page_has_light_and_dark_colours() -> None:
    text = page(report(), "1.2")
    light, _, dark = text.partition("@media (prefers-color-scheme: dark) {")
    assert "color-scheme: light dark;" in light
    named = [
        set(re.findall(r"(--[a-z-]+): #", part.partition("}\n")[0]))
        for part in (dark, light[light.index(":root") :])
    ]
    assert named[0] == named[1]
    assert len(named[0]) > 5


def test_a_finding_says_the_facts_before_the_advice() -> None:
    text = page(report(), "1.2")
    assert 0 < text.index("<bdi>its lag grew</bdi>") < text.index("Advice of consumer_lag.")


def test_the_summary_comes_first_and_links_severities_clients_and_groups_to_findings() -> None:
    text = page(report(), "1.2")
    summary = text[text.index("<h2>Summary") : text.index("<h2>Findings")]
    assert text.index("<h2>Summary") < text.index("<h2>Findings")
    assert [
        re.findall(rf"{severity}</span> (\d) finding", summary) for severity in ("high", "medium", "low")
    ] == [
        ["1"],
        ["3"],
        ["1"],
    ]
    links = set(re.findall(r'href="#([^"]+)"', text))
    assert links >= {"finding-0", "finding-1", "finding-3", "medium-consumer_lag"}
    assert links <= set(re.findall(r'id="([^"]+)"', text))
    by_group = summary[summary.index("By consumer group") :]
    assert re.findall(r'href="#(finding-\d)"', by_group) == [
        *("finding-0", "finding-1", "finding-3"),  # of billing
        *("finding-0", "finding-1"),  # of the other group with the same members
    ]


def test_many_clients_and_many_groups_are_folded() -> None:
    many = [finding(subject=f"group jobs-{number}") for number in range(20)]
    by_client = [finding(client_id=f"job-{number}") for number in range(20)]
    text = page(report(findings=Findings([*many, *by_client], Counter(tiny_batches=0), {})), "1.2")
    assert re.findall(r"<summary>(\d+) more</summary>", text) == ["9", "8"]  # of 21 clients, of 20 groups


def test_clients_and_groups_of_the_page_lead_to_their_findings() -> None:
    text = page(report(), "1.2")
    (billing,) = re.findall(r'<tr><td class="who"><bdi>billing</bdi>.*?</tr>', text)
    assert re.findall(r'href="#(finding-\d)"', billing) == ["finding-1"]
    groups = text[text.index('id="groups"') : text.index("<h2>Traffic")]
    assert "<bdi>billing</bdi></td><td>classic</td>" in groups
    assert "0 \u2192 590" in groups
    assert 'aria-label="2 rebalances; lag up to 590 records"' in groups
    assert "orders-23 and 6 more" in groups
    assert "and 12 more that came before" in groups
    assert "no commit seen" in groups


def test_the_page_shows_names_of_clients_as_the_text_that_they_are() -> None:
    made = page(report(), "1.2")
    assert SCRIPT not in made
    assert IMAGE not in made
    assert LINK not in made
    assert "\u202e" not in made
    assert "&lt;script&gt;document.title" in made
    assert "app\\u202egnp.exe\\x1b[31m" in made
    values = json.loads(re.findall(r'id="plots">(.*?)</script>', made)[0])
    names = next(one["value"] for one in values["clients"]["params"] if one["name"] == "rows")
    assert names[0] == "billing"
    assert names[1].startswith("<script>")  # as JSON: the page has \\u003c, and Vega draws it as text
    assert names[-1] == "(no client id)"


def test_the_page_is_one_file_below_one_megabyte() -> None:
    made = page(report(traffic=busy()), "1.2")
    assert len(made.encode()) < 1_000_000
    without_titles = re.sub(r' title="[^"]*"', "", made.split('id="plots"')[0])
    tags = re.findall(r"<\w[^>]*>", without_titles)
    assert len(tags) > 100
    leading = [tag for tag in tags if re.search(r"\b(src|href|action|data)\s*=", tag.replace('href="#', ""))]
    assert {tag.partition("#")[0] for tag in leading} == {'<a class="screen" href="http://127.0.0.1:19090/'}


def test_evidence_has_a_link_to_its_place_in_the_inspector() -> None:
    made = page(report(), "1.2", inspector="http://klamm.example:8080/")
    [first, *_] = re.findall(r'<div class="evidence">.*?</div>', made)
    link = unescape(re.findall(r'href="([^"]+)"', first)[0])
    address, _, query = link.partition("#exchanges?")
    assert address == "http://klamm.example:8080/"
    command = shlex.split(unescape(re.findall("<code>(.*?)</code>", first)[0]))
    wanted = parse_qs(query, strict_parsing=True)
    assert wanted["where"] == [command[3]]
    for name in ("since", "until"):
        told = datetime.fromisoformat(command[command.index(f"--{name}") + 1])
        assert float(wanted[name][0]) == told.timestamp()
    assert "where <code>klamm web capture/</code> shows the capture" in made
