"""docs/promises.md has no holes: its sentences stand in their pages, its tests exist, each page has rows."""

import re
from typing import NamedTuple

import pytest

from tests.brokers.jars import ROOT
from tests.docs.blocks import pages
from tests.named import missing

TABLE = "docs/promises.md"
ROW = re.compile(r"\| (.+) \| (`tests/.+`) \|")
ABOUT = [page for page in pages() if page != TABLE and not page.startswith("docs/decisions/")]


class Promise(NamedTuple):
    page: str
    sentence: str
    tests: tuple[str, ...]


def read() -> list[Promise]:
    promises, page = [], ""
    for line in (ROOT / TABLE).read_text().splitlines():
        if line.startswith("## "):
            page = line[3:]
        elif row := ROW.fullmatch(line):
            promises.append(Promise(page, row[1], tuple(re.findall(r"`([^`]+)`", row[2]))))
    return promises


PROMISES = read()


def flat(text: str) -> str:
    """With one space where there is a line break or several spaces."""
    return " ".join(text.split())


@pytest.mark.parametrize("page", ABOUT)
def test_a_sentence_of_the_table_stands_in_its_page(page: str) -> None:
    text = flat((ROOT / page).read_text())
    sentences = [promise.sentence for promise in PROMISES if promise.page == page]
    assert sentences, f"{page} has no row: add its promises, with their tests, to {TABLE}"
    assert [sentence for sentence in sentences if sentence not in text] == [], f"mend these rows of {TABLE}"


def test_the_table_is_about_pages_that_exist_and_says_nothing_twice() -> None:
    assert {promise.page for promise in PROMISES} == set(ABOUT)
    assert len({promise[:2] for promise in PROMISES}) == len(PROMISES)


def test_every_row_of_the_table_is_read() -> None:
    lines = [line for line in (ROOT / TABLE).read_text().splitlines() if line.startswith("| ")]
    headings = [line for line in lines if line == "| klamm does | shown by |"]
    assert len(lines) - len(headings) == len(PROMISES)


def test_every_promise_names_tests_that_exist() -> None:
    assert missing(test for promise in PROMISES for test in promise.tests) == set()


@pytest.mark.parametrize("page", [page for page in pages() if page != TABLE])
def test_a_file_of_tests_that_a_page_names_exists(page: str) -> None:
    named = set(re.findall(r"`(tests/[^`:*]+\.py)", (ROOT / page).read_text()))
    assert {name for name in named if not (ROOT / name).exists()} == set()
