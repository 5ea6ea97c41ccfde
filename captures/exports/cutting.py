"""A part of captures as another capture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from klamm.captures.captured import Captured
from klamm.captures.exports.exporting import Selection
from klamm.captures.storage.segments import Origin, origin

if TYPE_CHECKING:
    from klamm.captures.storage.reading import Segment


def origin_of(segments: Sequence[Segment]) -> Origin:
    """The origin of a capture of their rows, written now."""
    kept = {one.origin.records for one in segments}
    clusters = {name: cluster_id for one in segments for name, cluster_id in one.origin.clusters.items()}
    return origin(kept.pop() if len(kept) == 1 else "blank", clusters)


def cut(rows: Iterable[Captured], selection: Selection) -> Iterator[Captured]:
    """The rows of the selected exchanges, the other rows of their connections, and the gaps."""
    for row in rows:
        if row.connection is None:
            yield row
        else:
            yield from selection.of([row])
