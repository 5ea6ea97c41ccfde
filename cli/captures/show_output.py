"""`klamm show -o`: captures cut and merged into another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from klamm.captures.captured import Captured
from klamm.captures.exports.exporting import Selection
from klamm.captures.storage.stored import stored
from klamm.cli.captures.moments import Period
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
    from klamm.captures.storage.segments import origin
    from klamm.captures.storage.writing import Writer, write_file

    path = Path(output)
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise WrongWord(f"{output} is there already: name a new file or folder")
    sources = [segment.origin for segment in found.segments()]
    kept = {source.records for source in sources}
    clusters = {name: cluster_id for source in sources for name, cluster_id in source.clusters.items()}
    of = origin(kept.pop() if len(kept) == 1 else "blank", clusters)
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
    """Those of the exchanges for which it holds, of what else happened on their connections, and what is
    missing. Of all time and without an expression, all.
    """
    if search.where is None and search.period == Period():
        yield from found
        return
    selection = Selection(search.of(found))
    for row in found:
        if row.connection is None:
            yield row
        else:
            yield from selection.of([row])
