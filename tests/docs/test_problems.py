"""The table of problems in docs/protocol-notes.md has every kind that klamm counts."""

import re

from tests.brokers.jars import ROOT

SIDE = r"\"(?:request|response)\",\s+"
COUNTED = re.compile(
    rf"\b(?:problem|close|count|refused|NotServed|Way)\(\s*(?:[\w.]+, |{SIDE})*(?!{SIDE})\"([a-z0-9_]+)\""
)
REASONS = re.compile(r"return \(?\s*\"([a-z0-9_]+)\",\s")  # with the text of the problem
GIVING = ("decoders/framing.py", "proxy/session/connection.py")  # functions that return a kind of problem
KINDS = re.compile(r"\bkind = \"(\w+_\w+)\" if .+ else \"(\w+_\w+)\"")


def test_every_kind_has_its_row() -> None:
    page = (ROOT / "docs" / "protocol-notes.md").read_text()
    table = page.partition("| kind |")[2].partition("\n\n")[0]
    kinds = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split(" | ")[0])}
    code = [path.read_text() for path in sorted((ROOT / "proxy").rglob("*.py"))]
    counted = {name for text in code for name in COUNTED.findall(text)}
    counted |= {name for text in code for pair in KINDS.findall(text) for name in pair}
    counted |= {name for path in GIVING for name in REASONS.findall((ROOT / path).read_text())}
    assert counted == kinds
