"""Coverage-guided: any text as a rule file, or as an expression."""

import re
from collections.abc import Iterator

import atheris

from tests.brokers.jars import ROOT
from tests.fuzz.libfuzzer import run

with atheris.instrument_imports(include=["klamm.rules", "klamm.settings"]):
    from klamm.rules.expressions import ExpressionError, parse
    from klamm.rules.file.explain import explain
    from klamm.rules.file.rule_file import read_text

PAGES = (ROOT / "docs" / "rules.md", ROOT / "docs" / "expressions.md")
EXPRESSION, FILE = b"\0", b"\1"  # the first byte


def one_input(data: bytes) -> None:
    text = data[1:].decode(errors="replace")
    if data[:1] == EXPRESSION:
        expression(text)
    else:
        rule_file(text)


def expression(text: str) -> None:
    """It is written as it is read, or its mistake has a place."""
    try:
        found = parse(text)
    except ExpressionError as refused:
        column = refused.column
    else:
        assert str(parse(str(found))) == str(found)
        return
    assert 0 <= column <= len(text) + 1


def rule_file(text: str) -> None:
    """Rules that can be explained, or mistakes."""
    found = read_text(text, "fuzz")
    assert not (found.rules and found.mistakes)
    for line in explain(found):
        assert line.isprintable() or "\n" in line


def seeds() -> Iterator[tuple[str, bytes]]:
    """The rules of the scenarios, and the blocks of the pages about rules."""
    for file in sorted((ROOT / "scenarios" / "library").glob("*.yaml")):
        yield file.stem, FILE + file.read_bytes()
    for page in PAGES:
        for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)):
            yield f"{page.stem}-{number}", FILE + block.encode()
        for number, line in enumerate(re.findall(r"^ +where: (.*)$", page.read_text(), re.MULTILINE)):
            yield f"{page.stem}-where-{number}", EXPRESSION + line.encode()


if __name__ == "__main__":
    run(one_input, seeds())
