"""Write the table of docs/admin-api.md from the routes: python -m tools.admin_api_doc"""

from __future__ import annotations

from pathlib import Path

from klamm.proxy.admin.openapi import ALWAYS
from klamm.proxy.admin.server import ROUTES

GUIDE = Path(__file__).resolve().parent.parent / "docs" / "admin-api.md"
BEGIN, END = "<!-- routes -->\n", "<!-- end of routes -->\n"


def table() -> str:
    """One row for each route."""
    rows = ["| | | parameters | refused with |", "|---|---|---|---|"]
    for route in ROUTES:
        query = [] if route.query is None else [f"`{name}`" for name in route.query.__struct_fields__]
        statuses = ", ".join(str(status) for status in sorted(route.refusals) if status not in ALWAYS)
        path = route.path if "/rules/" in route.path else route.path.replace("{name}", "{id}")
        rows.append(f"| `{route.method} {path}` | {route.summary} | {', '.join(query)} | {statuses} |")
    return "\n".join(rows) + "\n"


def written(text: str) -> str:
    """The guide with the table of today."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


if __name__ == "__main__":
    GUIDE.write_text(written(GUIDE.read_text()))
