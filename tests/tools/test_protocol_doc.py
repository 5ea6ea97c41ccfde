"""docs/protocol.md says what the tables say."""

import re

from klamm.decoders import API, ERRORS
from tools.protocol_doc import PAGE, page


def test_the_page_is_what_the_tables_say_now() -> None:
    assert PAGE.read_text() == page(), "the tables changed; run: make docs"


def test_every_api_has_a_section_that_its_row_in_the_list_leads_to() -> None:
    links = re.findall(r"\]\(#(\S+)\) \|", page())
    headings = re.findall(r"^### (.*)$", page(), re.MULTILINE)
    assert len(headings) == len(API)
    assert links == [heading.lower().replace(" ", "-") for heading in headings]


def test_every_field_of_every_api_has_a_line() -> None:
    def count(fields: object) -> int:
        return sum(1 + count(f.of) for f in fields) if isinstance(fields, tuple) else 0

    lines = re.findall(r"^  +\w+ ", page(), re.MULTILINE)
    assert len(lines) == sum(count(api.request) + count(api.response) for api in API)


def test_every_error_has_a_row() -> None:
    assert len(re.findall(r"^\| -?\d+ \| [A-Z_]+ \|", page(), re.MULTILINE)) == len(ERRORS)
