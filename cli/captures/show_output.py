"""`klamm show -o`: captures cut and merged into another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from klamm.captures.captured import Captured
from klamm.captures.exports.cutting import cut, origin_of
from klamm.captures.exports.exporting import Selection
from klamm.captures.period import Period
from klamm.captures.storage.stored import stored
from klamm.cli.captures.searching import Search
from klamm.cli.saying import WrongWord

if TYPE_CHECKING:
    from klamm.captures.storage.reading import Reading

ONE_FILE = ".arrow"
ROWS_AT_ONCE = 256


def write(found: Reading, search: Search, output: str) -> str:
    """One segment if `output` ends as such, else a folder of them; what was written, in words. Raises
    WrongWord for what is there already.
    """
    from klamm.captures.storage.writing import Writer, write_file

    path = Path(output)
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise WrongWord(f"{output} is there already: name a new file or folder")
    of = origin_of(found.segments())
    rows = _rows(found, search)
    if path.name.endswith(ONE_FILE):
        return f"{output}: {write_file(path, rows, of):,} rows"
    writer, count = Writer(path, of), 0
    while some := list(islice(rows, ROWS_AT_ONCE)):
        writer.write([stored(row) for row in some])
        count += len(some)
    writer.seal()
    return f"{output}: {count:,} rows in {writer.sealed} segment{'s' * (writer.sealed != 1)}"


def _rows(found: Reading, search: Search) -> Iterator[Captured]:
    """The rows of the matching exchanges, the other rows of their connections, and the gaps. All rows for all
    times without an expression.
    """
    if search.where is None and search.period == Period():
        yield from found
        return
    yield from cut(found, Selection(search.of(found)))
