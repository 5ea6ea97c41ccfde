"""The table of problems in docs/protocol-notes.md has every kind that klamm counts."""

import re

from tests.brokers.jars import ROOT

SIDE = r"\"(?:request|response)\",\s+"
COUNTED = re.compile(
    rf"\b(?:problem|close|count|refused|NotServed|Way)\(\s*(?:[\w.]+, |{SIDE})*(?!{SIDE})\"([a-z0-9_]+)\""
)
SIZES = re.compile(r"return \(?\s*\"([a-z0-9_]+)\",\s")  # of frames that cannot be
KINDS = re.compile(r"\bkind = \"(\w+_\w+)\" if .+ else \"(\w+_\w+)\"")


def test_every_kind_has_its_row() -> None:
    page = (ROOT / "docs" / "protocol-notes.md").read_text()
    table = page.partition("| kind |")[2].partition("\n\n")[0]
    kinds = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split(" | ")[0])}
    code = [path.read_text() for path in sorted((ROOT / "proxy").rglob("*.py"))]
    counted = {name for text in code for name in COUNTED.findall(text)}
    counted |= {name for text in code for pair in KINDS.findall(text) for name in pair}
    counted |= set(SIZES.findall((ROOT / "decoders" / "framing.py").read_text()))
    assert counted == kinds
