"""Every block of code in README.md, docs/ and the help texts is tried by a test; a new one needs a way."""

from __future__ import annotations

import re

import pytest

from tests.docs import ways
from tests.docs.blocks import Block, blocks, commands
from tests.docs.test_files import READERS, reader
from tests.docs.test_python import PROGRAMS, program
from tests.named import missing

ADVICE = {
    "sh": "a command that needs more than the network of tests/docs/stage.py: a row in ways.ELSEWHERE",
    "python": "a row in PROGRAMS of tests/docs/test_python.py, with the names that the block uses",
    "text": "a row in ways.PRINTED: the test that holds this output; or begin with `$ ` and the command",
}


def way(block: Block) -> object:
    """How this block is tried; None where nobody has said it."""
    if block.language == "text":
        return ways.printed_by(block) or ways.first(ways.GENERATED, block.page) or reader(block)
    if block.language == "sh":
        return commands(block)
    if block.language == "python":
        return program(block)
    return reader(block)


@pytest.mark.parametrize("block", blocks(), ids=lambda block: block.where)
def test_a_block_is_tried(block: Block) -> None:
    advice = ADVICE.get(block.language, "a row in READERS of tests/docs/test_files.py")
    assert way(block), f"{block.where} is tried by nothing ({block.language}); add {advice}\n\n{block.text}"


def test_the_tables_have_no_row_that_nothing_needs() -> None:
    keys = [ways.key(block) for block in blocks()]
    texts = [command.text for block in blocks() if block.language == "sh" for command in commands(block)]
    assert [row for row in (*ways.PRINTED, *PROGRAMS) if not any(key.startswith(row) for key in keys)] == []
    assert [pattern for pattern in ways.ELSEWHERE if not any(re.match(pattern, text) for text in texts)] == []
    assert [pattern for pattern in READERS if not any(re.match(pattern, b.text) for b in blocks())] == []


def test_a_test_that_the_tables_name_is_there() -> None:
    named = [*ways.ELSEWHERE.values(), *ways.PRINTED.values(), *ways.GENERATED.values()]
    assert missing(named) == set()
