"""Write the tables into docs/pipeline.md: python -m tools.pipeline_doc"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from klamm.pipeline.schemas import TABLES, Table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "pipeline.md"
BEGIN, END = "<!-- made by tools/pipeline_doc.py -->", "<!-- end -->"


def reference() -> str:
    """The generated part of the page."""
    return "\n".join(line for name, table in TABLES.items() for line in _table(name, table))


def _table(name: str, table: Table) -> Iterator[str]:
    yield f"\n### {name}\n\n{table.about}\n\n| column | type | | null |\n|---|---|---|---|"
    for column in table.columns:
        yield f"| `{column.name}` | `{column.type}` | {column.about} | {column.null} |"


def main() -> None:
    """Between the marks of the page."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{reference()}\n\n{END}{after}")


if __name__ == "__main__":
    main()
