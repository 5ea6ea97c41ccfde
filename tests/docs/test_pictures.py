"""The pictures of the pages: they are there, and the one of the screen shows what klamm draws today."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from io import StringIO
from xml.etree import ElementTree

import pytest
from rich.console import Console

from klamm.dashboards.terminal.frame import frame
from tests.brokers.jars import ROOT
from tests.dashboards.fake_state import two_answers
from tests.docs.blocks import pages
from tools.pictures import COLUMNS, LINES, PICTURE

SCREEN_BYTES = 60_000
AGAIN = "take the picture anew: make pictures"
COLUMN = 12.2  # of a letter, in the picture


def shown_in_picture() -> list[str]:
    """The lines of the screen, read from the places of its texts."""
    lines: dict[int, dict[int, str]] = defaultdict(dict)
    for text in ElementTree.parse(PICTURE).iter("{http://www.w3.org/2000/svg}text"):
        if line := re.search(r"line-(\d+)", text.get("clip-path", "")):
            lines[int(line[1])][round(float(text.attrib["x"]) / COLUMN)] = text.text or ""
    return [joined(lines[line]) for line in range(max(lines) + 1)]


def joined(texts: Mapping[int, str]) -> str:
    line = ""
    for column in sorted(texts):
        line = line.ljust(column) + texts[column].replace("\xa0", " ")
    return line.rstrip()


def shown_today() -> list[str]:
    console = Console(file=StringIO(), width=COLUMNS, height=LINES, color_system=None)
    console.print(frame(*two_answers()))
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def headings(lines: Sequence[str]) -> list[str]:
    """The first lines of tables, and the last line."""
    return [line for line in lines if re.match(r"[A-Z]+ .* (err/s|total)$", line)] + [lines[-1]]


def labels(lines: Sequence[str]) -> list[list[str]]:
    """Of the figures above the tables: the words between them, but for names and units of these."""
    return [
        re.findall(
            r"(?<= )(?:in flight|conn|brokers|Ctrl-C ends|up|p\d\d|\w+/s|klamm itself)(?= |$)", f" {line}"
        )
        for line in lines[:3]
    ]


NAMED = [
    (page, name)
    for page in pages()
    for name in re.findall(r"!\[[^]]+\]\(([^)]+)\)", (ROOT / page).read_text())
]


@pytest.mark.parametrize(("page", "picture"), NAMED)
def test_a_picture_that_a_page_shows_is_there(page: str, picture: str) -> None:
    assert ((ROOT / page).parent / picture).is_file()


def test_the_readme_shows_the_screen() -> None:
    assert ("README.md", str(PICTURE.relative_to(ROOT))) in NAMED


def test_the_picture_of_the_screen_has_the_headings_and_labels_of_today() -> None:
    picture, today = shown_in_picture(), shown_today()
    assert len(headings(today)) == 5
    assert headings(picture) == headings(today), AGAIN
    assert labels(picture) == labels(today), AGAIN


def test_the_picture_of_the_screen_is_small_and_needs_no_network() -> None:
    text = PICTURE.read_text()
    assert len(text.encode()) < SCREEN_BYTES
    assert re.findall(r"url\((?!#)|href=|@import|@font-face", text) == []
