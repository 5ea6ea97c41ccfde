"""docs/guides.md has no holes: its lists are whole, agree with the tables, and name tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from klamm.decoders import API, ERRORS, layout
from klamm.decoders.schema import Field, Side, all_fields, members, present, version_range

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "guides.md"
DIFFERENCES = "Where the guides differ from Kafka"
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")

# The APIs of the guides: key -> newest version. All versions from 0 on, or from FIRST, belong to them.
V0_8 = {0: 0, 1: 0, 2: 0, 3: 0, 8: 0, 9: 0}
V0_8_DRAFT = {0: 0, 1: 0, 2: 0, 3: 0}
V0_9 = dict.fromkeys(range(17), 0) | {0: 2, 1: 2, 6: 1, 7: 1, 8: 2, 9: 1}
V0_10_1 = dict.fromkeys(range(21), 0) | {0: 2, 1: 3, 2: 1, 3: 2, 6: 2, 7: 1, 8: 2, 9: 1, 11: 1}
CORE = {0: 11, 1: 16, 2: 8, 3: 12, 18: 3}
FIRST = {7: 1}
NAMED = {
    "Kafka 0.8 guide": V0_8,
    "Kafka 0.8 guide, earlier draft": V0_8_DRAFT,
    "Kafka 0.9 guide": V0_9,
    "Kafka 0.10.1 guide": V0_10_1,
    "Core APIs reference": CORE,
}
CORE_ERRORS = {6, 7, 19, 10, 29, 45, 1, 3, 56, 35}
ERROR_CODES = {
    "Kafka 0.9 guide": set(range(-1, 33)),
    "Kafka 0.10.1 guide": set(range(-1, 44)),
    "Core APIs reference": CORE_ERRORS,
}

# Prose has no table to compare with. So here is, for each guide, the number of contracts and of structures.
PROSE = {
    "Kafka 0.8 guide": (11, 10),
    "Kafka 0.8 guide, earlier draft": (7, 3),
    "Kafka 0.9 guide": (7, 3),
    "Kafka 0.10.1 guide": (34, 8),
    "Core APIs reference": (34, 3),
}


class Row(NamedTuple):
    """One row of a table: the headings above it, the text of its cells by column, without their quotes."""

    guide: str
    section: str
    cells: dict[str, str]

    @property
    def tests(self) -> list[tuple[str, str]]:
        """(file, function) of each test that it names."""
        return TEST.findall(self.cells.get("shown by", ""))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def read() -> list[Row]:
    rows, guide, section, columns = [], "", "", list[str]()
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("## "):
            guide, section = line[3:], ""
        elif line.startswith("### "):
            section = line[4:]
        elif not line.startswith("|"):
            columns = []
        elif not columns:
            columns = _cells(line)
        elif not line.startswith("|---"):
            rows.append(Row(guide, section, dict(zip(columns, _cells(line), strict=True))))
    return rows


ROWS = read()


def of(section: str) -> list[Row]:
    return [row for row in ROWS if row.section == section]


LAYOUTS = [row for row in of("APIs") if "version" in row.cells]
FIELDS = [row for row in of("APIs") if "versions" in row.cells]


def test_every_guide_has_its_sections_and_none_lacks_rows() -> None:
    headings = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("##")]
    sections, guide = set(), ""
    for line in headings:
        guide = line[3:] if line.startswith("## ") else guide
        if line.startswith("### "):
            sections.add((guide, line[4:]))
    wanted = {(guide, section) for guide in NAMED for section in ("APIs", "Structures", "Contracts")}
    wanted |= {(guide, "Errors") for guide in ERROR_CODES} | {("Core APIs reference", "Keys")}
    assert sections == wanted == {(row.guide, row.section) for row in ROWS if row.guide in NAMED}
    assert f"## {DIFFERENCES}" in headings
    assert [row for row in ROWS if row.guide == DIFFERENCES]


@pytest.mark.parametrize("guide", NAMED)
def test_every_api_and_version_that_a_guide_names_has_its_row(guide: str) -> None:
    listed = [
        (int(row.cells["key"]), version)
        for row in of("APIs")
        if row.guide == guide
        for version in _versions(row.cells.get("version") or row.cells["versions"])
    ]
    named = [
        (key, version) for key, last in NAMED[guide].items() for version in range(FIRST.get(key, 0), last + 1)
    ]
    assert sorted(listed) == sorted(named)


@pytest.mark.parametrize("guide", ERROR_CODES)
def test_every_error_that_a_guide_names_has_its_row(guide: str) -> None:
    listed = [int(row.cells["code"]) for row in of("Errors") if row.guide == guide]
    assert sorted(listed) == sorted(ERROR_CODES[guide])


@pytest.mark.parametrize("guide", PROSE)
def test_no_contract_and_no_structure_of_a_guide_is_lost_or_told_twice(guide: str) -> None:
    contracts = [row.cells["contract"] for row in of("Contracts") if row.guide == guide]
    structures = [row.cells["structure"] for row in of("Structures") if row.guide == guide]
    assert (len(contracts), len(structures)) == PROSE[guide]
    assert (len(set(contracts)), len(set(structures))) == PROSE[guide]


def test_the_table_of_76_keys_is_whole() -> None:
    assert [int(row.cells["key"]) for row in of("Keys")] == list(range(76))


def _versions(text: str) -> range:
    found = version_range(text)
    return range(found.first, found.last + 1)


@pytest.mark.parametrize(
    "row", of("APIs") + of("Keys"), ids=lambda row: f"{row.guide}-{row.cells['API']}-{row.cells['key']}"
)
def test_an_api_of_a_guide_is_found_by_its_name_and_key(row: Row) -> None:
    found = API[row.cells["API"]]
    assert found.key == int(row.cells["key"])
    assert found is API[found.key]


@pytest.mark.parametrize("row", of("Errors"), ids=lambda row: f"{row.guide}-{row.cells['error']}")
def test_an_error_of_a_guide_is_found_by_its_name_and_code(row: Row) -> None:
    name, now = row.cells["error"], row.cells["name now"]
    found = ERRORS[name]
    assert found is ERRORS[int(row.cells["code"])]
    assert found.name == (name if now == "the same" else now)


def shape(fields: tuple[Field, ...], version: int) -> str:
    """The types in wire order, as the document writes them."""
    in_place, tagged = present(fields, version)
    return " ".join(_type(f, version) for f in (*in_place, *tagged))


def _type(f: Field, version: int) -> str:
    if f.kind == "array":
        return f"[{f.of if isinstance(f.of, str) else shape(f.of, version)}]"
    return shape(members(f), version) if f.kind == "struct" else f.kind.replace("records", "bytes")


@pytest.mark.parametrize(
    "row", LAYOUTS, ids=lambda row: f"{row.guide}-{row.cells['API']}-{row.cells['version']}"
)
def test_a_layout_of_a_guide_is_that_of_the_tables(row: Row) -> None:
    api, version = API[row.cells["API"]], int(row.cells["version"])
    sides: tuple[Side, Side] = ("request", "response")
    for side in sides:
        layout_of_row = row.cells[side].strip("`").replace("empty", "")
        assert layout_of_row == shape(layout(api.key, version, side).fields, version)


@pytest.mark.parametrize("row", FIELDS, ids=lambda row: row.cells["API"])
def test_the_fields_that_the_core_reference_names_are_in_the_tables(row: Row) -> None:
    api = API[row.cells["API"]]
    sides: tuple[Side, Side] = ("request", "response")
    for side in sides:
        there = {
            path[-1]
            for version in _versions(row.cells["versions"])
            for path, _ in all_fields(api.fields(side), version)
        }
        assert set(row.cells[f"fields of the {side}"].strip("`").split()) <= there


@cache
def _tests_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


def test_every_row_names_tests_that_exist() -> None:
    rows = [row for row in ROWS if row.guide in NAMED]
    assert [row for row in rows if not row.tests] == []
    missing = {
        f"{path}::{name}"
        for row in ROWS
        for path, name in row.tests
        if not (ROOT / path).exists() or name not in _tests_in(path)
    }
    assert missing == set()


def test_contracts_are_shown_with_real_brokers_or_where_no_broker_offers_them_in_the_session() -> None:
    elsewhere = [
        row.cells["contract"]
        for row in of("Contracts")
        if not any(path.startswith("tests/e2e/") for path, _ in row.tests)
    ]
    assert elsewhere == ["a GSSAPI client of 0.9 begins with a token"]


def test_every_contract_that_is_tested_is_named() -> None:
    named = {test for row in ROWS for test in row.tests}
    files = [*ROOT.glob("tests/e2e/test_contracts_*.py"), *ROOT.glob("tests/decoders/test_guides_*.py")]
    for path in files:
        relative = str(path.relative_to(ROOT))
        tests = {(relative, name) for name in _tests_in(relative) if name.startswith("test_")}
        assert tests - named == set()
